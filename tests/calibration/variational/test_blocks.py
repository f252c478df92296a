"""Passes over answers that stay where they are give what those over a copy give, whoever answered which items."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational import blocks, fit
from itembank.calibration.variational.ascent import improve_items
from itembank.calibration.variational.cells import normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.progress import silent
from tests.calibration.simulated import random_posterior, simulate

DOUBLE = np.dtype(np.float64)
N_MODELS, N_ITEMS = 40, 60


def of_models_that_ran(n_models=N_MODELS, n_items=N_ITEMS, seed=0):
    """Four benchmarks of interleaved items, of which each model ran one or two."""
    rng = np.random.default_rng(seed)
    ran = rng.permuted(np.tile(np.arange(4)[:, None], n_models), axis=0) < rng.integers(1, 3, size=n_models)
    return ran[np.arange(n_items) % 4].T


def scattered(n_models=N_MODELS, n_items=N_ITEMS, seed=0):
    return np.random.default_rng(seed).random((n_models, n_items)) < 0.2


def complete(n_models=N_MODELS, n_items=N_ITEMS):
    return np.ones((n_models, n_items), dtype=bool)


def nearly_complete(n_models=N_MODELS, n_items=N_ITEMS, seed=0):
    return np.random.default_rng(seed).random((n_models, n_items)) < 0.95


DESIGNS = {"blocks": of_models_that_ran, "scattered": scattered, "complete": complete, "nearly all": nearly_complete}


@pytest.fixture(params=list(DESIGNS))
def observed(request, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 200)
    monkeypatch.setattr(blocks, "COLUMNS_AT_ONCE", 3)
    return DESIGNS[request.param]()


def data_of(observed, seed=1, guessing=0.0):
    """The same answers copied, and where they stay: in every second column of a larger matrix."""
    simulated = simulate(*observed.shape, seed=seed, guessing=guessing).data
    responses = np.where(observed, simulated.responses, 0.0)
    numbers = replace(simulated, responses=responses, observed=None if observed.all() else observed)
    wide = np.repeat(np.where(observed, simulated.responses, np.nan), 2, axis=1)
    columns = np.arange(0, wide.shape[1], 2)
    return numbers, FitData(wide, None, simulated.lower_asymptote, columns=columns)


def both(observed, **options):
    numbers, large = data_of(observed, **options)
    copied = blocks.make_blocks(numbers, single_precision=False)
    return copied, blocks.UncopiedBlocks(large.responses, large.columns, large.lower_asymptote, DOUBLE)


def test_every_answer_is_in_one_block_once(observed):
    copied, uncopied = both(observed)
    values, weights = np.zeros(observed.T.shape), np.zeros(observed.T.shape)
    for part in uncopied.parts():
        models = slice(None) if part.models is None else part.models
        values[part.items, models] += part.values
        weights[part.items, models] += 1.0 if part.weights is None else part.weights
    assert_array_equal(values, copied.values)
    assert_array_equal(weights, observed.T)
    assert_allclose(uncopied.mean_values(), copied.mean_values(), rtol=1e-12, atol=1e-15)
    assert uncopied.n_cells == copied.n_cells


def test_data_in_a_larger_matrix_are_copied_as_they_would_have_been(observed):
    numbers, large = data_of(observed)
    some = np.array([5, 2, 40])
    for found, expected in ((large.copied(), numbers), (large.take_items(some).copied(), numbers.take_items(some))):
        assert_array_equal(found.responses, expected.responses)
        seen = [
            np.ones(one.responses.shape, bool) if one.observed is None else one.observed for one in (found, expected)
        ]
        assert_array_equal(*seen)
        assert found.columns is None
        assert found.n_cells == expected.n_cells


def test_blocks_of_whole_benchmarks_have_the_models_that_ran_them(monkeypatch):
    monkeypatch.setattr(blocks, "COLUMNS_AT_ONCE", 15)
    interleaved = of_models_that_ran()
    observed = np.concatenate([interleaved[:, number::4] for number in range(4)], axis=1)
    held = sum(part.values.size for part in both(observed)[1].parts())
    assert held == observed.sum()


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("guessing", [0.0, 0.2])
def test_statistics_are_those_of_a_copy(observed, n_dims, guessing):
    copied, uncopied = both(observed, guessing=guessing)
    posterior = random_posterior(N_MODELS, N_ITEMS, n_dims, seed=2)
    for statistics in (item_statistics, ability_statistics):
        expected, found = (statistics(one, posterior, normal_expectation) for one in (copied, uncopied))
        for name in ("precision", "linear", "likelihood"):
            assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_statistics_of_all_items_are_those_of_parts_together(observed):
    """Rows for the items, and one sum for the abilities: items that are put back rest on it."""
    uncopied = both(observed)[1]
    posterior = random_posterior(N_MODELS, N_ITEMS, 2, seed=3)
    parts = np.array_split(np.random.default_rng(0).permutation(N_ITEMS), 3)
    of_items = [
        item_statistics(uncopied.take_items(part), posterior.take_items(part), normal_expectation) for part in parts
    ]
    whole = item_statistics(uncopied, posterior, normal_expectation)
    assert_allclose(np.concatenate([one.linear for one in of_items]), whole.linear[np.concatenate(parts)])
    swept = [
        improve_items(
            uncopied.take_items(part), posterior.take_items(part), one, np.ones(part.size), rule=normal_expectation
        )
        for part, one in zip(parts, of_items, strict=True)
    ]
    together, of_abilities, _ = improve_items(uncopied, posterior, whole, np.ones(N_ITEMS), rule=normal_expectation)
    for name in ("precision", "linear"):
        found = sum(getattr(of_part, name) for _, of_part, _ in swept)
        assert_allclose(found, getattr(of_abilities, name), rtol=1e-9)
    means = np.concatenate([one.item_mean for one, _, _ in swept])
    assert_allclose(means, together.item_mean[np.concatenate(parts)], rtol=1e-9)


@pytest.mark.parametrize("design", list(DESIGNS))
def test_the_fit_is_that_of_a_copy(design, monkeypatch):
    monkeypatch.setattr(fit, "SUBSET_SIZE", 50)
    monkeypatch.setattr(blocks, "MOST_COUPLED_CELLS", 0)  # a copy would take coupled steps, on another way to the end
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 1000)
    numbers, large = data_of(DESIGNS[design](60, 90), seed=4)
    spec = Variational("2pl", single_precision=False, tolerance=1e-4)
    expected, found = (fit_variational(one, spec, progress=silent) for one in (numbers, large))
    assert found.n_iterations == expected.n_iterations
    for name in ("loadings", "intercept", "item_covariance", "abilities", "ability_covariance", "history"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-6)
    if design == "complete":
        assert_array_equal(found.loadings, expected.loadings)
