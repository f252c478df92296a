from dataclasses import replace

import numpy as np
import pytest

from itembank.calibration.start import start_abilities
from itembank.calibration.variational import ascent as variational_ascent
from itembank.calibration.variational.ascent import Coupling, ascend, coupled_step
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.passes import ability_statistics, cells, item_statistics
from itembank.calibration.variational.state import Covariances, start_posterior
from itembank.calibration.variational.updates import update_abilities, update_items
from itembank.numerics.symmetric import unpack
from itembank.progress import silent
from tests.calibration.simulated import simulate

N_MODELS, N_ITEMS, N_DIMS = 20, 30, 2


@pytest.fixture
def state():
    """Items just updated, not far from the maximum, where the objective bends everywhere."""
    data = simulate(N_MODELS, N_ITEMS, n_dims=N_DIMS, missing=0.2, seed=1).data
    blocks = make_blocks(data, single_precision=False)
    abilities = start_abilities(data.responses, data.observed, n_dims=N_DIMS)
    start = start_posterior(abilities, np.tile(0.1 * np.eye(N_DIMS), (N_MODELS, 1, 1)), N_ITEMS, has_common_slope=False)
    posterior = ascend(blocks, start, jaakkola_jordan, tolerance=1e-3, max_sweeps=20, progress=silent).posterior
    posterior = update_items(posterior, item_statistics(blocks, posterior, normal_expectation), np.ones(N_ITEMS))
    return blocks, posterior, ability_statistics(blocks, posterior, normal_expectation, with_cross=True)


def dense_newton_step(blocks, posterior, statistics):
    """Solve the whole system of items and abilities at once, item by item and model by model."""
    block = next(cells(blocks, posterior, normal_expectation))
    residual = block.linear - block.curvature * block.mean
    size = N_DIMS + 1
    precision = unpack(statistics.precision, N_DIMS) + np.eye(N_DIMS)
    of_items, of_models = N_ITEMS * size, N_MODELS * N_DIMS
    hessian = np.zeros((of_items + of_models, of_items + of_models))
    for i in range(N_ITEMS):
        hessian[i * size : (i + 1) * size, i * size : (i + 1) * size] = np.linalg.inv(posterior.item_covariance[i])
        for m in range(N_MODELS):
            x = np.append(posterior.ability_mean[m], 1.0)
            cross = block.curvature[i, m] * np.outer(x, posterior.item_mean[i, :N_DIMS])
            cross[:N_DIMS] -= residual[i, m] * np.eye(N_DIMS)
            rows = slice(i * size, (i + 1) * size)
            columns = slice(of_items + m * N_DIMS, of_items + (m + 1) * N_DIMS)
            hessian[rows, columns] = cross
            hessian[columns, rows] = cross.T
    for m in range(N_MODELS):
        block_of_m = slice(of_items + m * N_DIMS, of_items + (m + 1) * N_DIMS)
        hessian[block_of_m, block_of_m] = precision[m]
    gradient = statistics.linear - np.einsum("ljk,lk->lj", precision, posterior.ability_mean)
    right = np.concatenate([np.zeros(of_items), gradient.ravel()])
    assert np.linalg.eigvalsh(hessian).min() > 0.0
    step = np.linalg.solve(hessian, right)
    return step[:of_items].reshape(N_ITEMS, size), step[of_items:].reshape(N_MODELS, N_DIMS)


def test_step_solves_the_coupled_system(state, monkeypatch):
    monkeypatch.setattr(variational_ascent, "MAX_ITERATIONS", 200)
    monkeypatch.setattr(variational_ascent, "RELATIVE_RESIDUAL", 1e-10)
    blocks, posterior, statistics = state
    items, abilities = dense_newton_step(blocks, posterior, statistics)
    spread = update_abilities(posterior, statistics, 1.0).abilities_spread
    moved = coupled_step(posterior, statistics, statistics.cross, spread)
    np.testing.assert_allclose(moved.ability_mean - posterior.ability_mean, abilities, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moved.item_mean - posterior.item_mean, items, rtol=1e-6, atol=1e-9)


def test_cross_derivatives_are_those_of_the_objective(state):
    """The residual part of the cross derivatives, by finite differences of the items' gradient."""
    blocks, posterior, _ = state
    flat = replace(
        posterior,
        items_spread=Covariances.of(1e-7 * np.tile(np.eye(N_DIMS + 1), (N_ITEMS, 1, 1))),
        abilities_spread=Covariances.of(1e-7 * np.tile(np.eye(N_DIMS), (N_MODELS, 1, 1))),
    )
    direction = np.random.default_rng(3).normal(size=(N_MODELS, N_DIMS))

    def gradient(state):
        block = next(cells(blocks, state, normal_expectation))
        x = np.column_stack([state.ability_mean, np.ones(N_MODELS)])
        return (block.linear - block.curvature * block.mean) @ x

    step = 1e-5
    ahead = gradient(replace(flat, ability_mean=flat.ability_mean + step * direction))
    behind = gradient(replace(flat, ability_mean=flat.ability_mean - step * direction))
    cross = ability_statistics(blocks, flat, normal_expectation, with_cross=True).cross
    coupling = replace(Coupling.at(flat, cross), item_covariance=np.tile(np.eye(3), (N_ITEMS, 1, 1)))
    np.testing.assert_allclose(-(ahead - behind) / (2 * step), coupling.items_follow(direction), rtol=1e-4, atol=1e-5)
