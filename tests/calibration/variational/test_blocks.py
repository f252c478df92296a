"""Passes over codes give what the passes over numbers give, whichever models answered which items."""

from dataclasses import replace

import numpy as np
import pytest

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational import blocks, fit
from itembank.calibration.variational.ascent import improve_items
from itembank.calibration.variational.cells import normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.progress import silent
from itembank.responses.code_array import codes_of
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
    return DESIGNS[request.param]()


def data_of(observed, seed=1, guessing=0.0):
    """The same answers as numbers and as codes."""
    simulated = simulate(*observed.shape, seed=seed, guessing=guessing).data
    responses = np.where(observed, simulated.responses, 0.0)
    numbers = replace(simulated, responses=responses, observed=None if observed.all() else observed)
    codes = codes_of(np.where(observed, simulated.responses, np.nan))
    return numbers, FitData.of_codes(codes, simulated.lower_asymptote)


def both(observed, **options):
    numbers, coded = data_of(observed, **options)
    of_numbers = blocks.make_blocks(numbers, single_precision=False)
    return of_numbers, blocks.coded_blocks(coded.codes, coded.lower_asymptote, DOUBLE)


def test_every_answer_is_in_one_block_once(observed):
    of_numbers, coded = both(observed)
    values, weights = np.zeros(observed.T.shape), np.zeros(observed.T.shape)
    for part in coded.parts():
        items = np.arange(coded.n_items)[part.items]
        models = np.arange(N_MODELS) if part.models is None else part.models
        models = np.broadcast_to(models, part.values.shape)
        np.add.at(values, (items[:, None], models), part.values)
        np.add.at(weights, (items[:, None], models), 1.0 if part.weights is None else part.weights)
    np.testing.assert_array_equal(values, of_numbers.values)
    np.testing.assert_array_equal(weights, observed.T)


def test_blocks_of_whole_benchmarks_hold_no_missing_cell_and_lists_few(monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 200)
    for design, most in ((of_models_that_ran, 1.0), (scattered, 2.0)):
        observed = design()
        held = sum(part.values.size for part in both(observed)[1].parts())
        assert observed.sum() <= held <= most * observed.sum()


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("guessing", [0.0, 0.2])
def test_statistics_are_those_of_numbers(observed, n_dims, guessing):
    of_numbers, coded = both(observed, guessing=guessing)
    posterior = random_posterior(N_MODELS, N_ITEMS, n_dims, seed=2)
    for statistics in (item_statistics, ability_statistics):
        expected, found = (statistics(one, posterior, normal_expectation) for one in (of_numbers, coded))
        for name in ("precision", "linear", "likelihood"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_statistics_of_all_items_are_those_of_parts_together(observed):
    """Rows for the items, and one sum for the abilities: items that are put back rest on it."""
    coded = both(observed)[1]
    posterior = random_posterior(N_MODELS, N_ITEMS, 2, seed=3)
    parts = np.array_split(np.random.default_rng(0).permutation(N_ITEMS), 3)
    of_items = [
        item_statistics(coded.take_items(part), posterior.take_items(part), normal_expectation) for part in parts
    ]
    whole = item_statistics(coded, posterior, normal_expectation)
    np.testing.assert_allclose(np.concatenate([one.linear for one in of_items]), whole.linear[np.concatenate(parts)])
    swept = [
        improve_items(
            coded.take_items(part), posterior.take_items(part), one, np.ones(part.size), rule=normal_expectation
        )
        for part, one in zip(parts, of_items, strict=True)
    ]
    together = improve_items(coded, posterior, whole, np.ones(N_ITEMS), rule=normal_expectation)
    for name in ("precision", "linear"):
        found = sum(getattr(one.statistics, name) for one in swept)
        np.testing.assert_allclose(found, getattr(together.statistics, name), rtol=1e-9)
    means = np.concatenate([one.posterior.item_mean for one in swept])
    np.testing.assert_allclose(means, together.posterior.item_mean[np.concatenate(parts)], rtol=1e-9)


@pytest.mark.parametrize("design", list(DESIGNS))
def test_the_fit_is_that_of_numbers(design, monkeypatch):
    monkeypatch.setattr(fit, "SUBSET_SIZE", 50)
    monkeypatch.setattr(blocks, "MOST_COUPLED_CELLS", 0)  # numbers would take coupled steps, on another way to the end
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 1000)
    numbers, coded = data_of(DESIGNS[design](60, 90), seed=4)
    spec = Variational("2pl", single_precision=False, tolerance=1e-4)
    expected, found = (fit_variational(one, spec, progress=silent) for one in (numbers, coded))
    assert found.n_iterations == expected.n_iterations
    for name in ("loadings", "intercept", "item_covariance", "abilities", "ability_covariance", "history"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-6)
    if design == "complete":
        np.testing.assert_array_equal(found.loadings, expected.loadings)
