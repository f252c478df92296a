"""Passes over answers that stay where they are give what those over a copy give, whoever answered which items."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational import blocks, fit
from itembank.calibration.variational.ascent import improve_items
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics
from itembank.numerics.symmetric import unpack
from itembank.progress import silent
from tests.calibration.simulated import random_posterior, simulate
from tests.numerics.compare import alike

DOUBLE = np.dtype(np.float64)
N_MODELS, N_ITEMS = 40, 60


def of_models_that_ran(n_models=N_MODELS, n_items=N_ITEMS, seed=0):
    """Four benchmarks of interleaved items, of which each model ran one or two."""
    rng = np.random.default_rng(seed)
    ran = rng.permuted(np.tile(np.arange(4)[:, None], n_models), axis=0) < rng.integers(1, 3, size=n_models)
    return ran[np.arange(n_items) % 4].T


def scattered(share):
    return lambda n_models=N_MODELS, n_items=N_ITEMS: np.random.default_rng(0).random((n_models, n_items)) < share


DESIGNS = {
    "blocks": of_models_that_ran, "scattered": scattered(0.2), "complete": scattered(1.0), "nearly all": scattered(0.95)
}  # fmt: skip


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


def test_every_answer_is_in_one_block_once_and_data_in_a_larger_matrix_are_copied_as_they_would_have_been(observed):
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
    numbers, large = data_of(observed)
    some = np.array([5, 2, 40])
    for found, expected in ((large.copied(), numbers), (large.take_items(some).copied(), numbers.take_items(some))):
        assert_array_equal(found.responses, expected.responses)
        seen = (one.observed for one in (found, expected))
        assert_array_equal(*(np.ones(found.responses.shape, bool) if one is None else one for one in seen))
        assert found.columns is None
        assert found.n_cells == expected.n_cells


def test_blocks_of_whole_benchmarks_have_the_models_that_ran_them(monkeypatch):
    monkeypatch.setattr(blocks, "COLUMNS_AT_ONCE", 15)
    interleaved = of_models_that_ran()
    observed = np.concatenate([interleaved[:, number::4] for number in range(4)], axis=1)
    assert sum(part.values.size for part in both(observed)[1].parts()) == observed.sum()


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("guessing", [0.0, 0.2])
def test_statistics_are_those_of_a_copy(observed, n_dims, guessing):
    copied, uncopied = both(observed, guessing=guessing)
    posterior = random_posterior(N_MODELS, N_ITEMS, n_dims, seed=2)
    for statistics in (item_statistics, ability_statistics):
        expected, found = (statistics(one, posterior, normal_expectation) for one in (copied, uncopied))
        alike(found, expected, "precision linear likelihood", rtol=1e-9, atol=1e-9)


def test_statistics_of_all_items_are_those_of_parts_together(observed):
    """Rows for the items, and one sum for the abilities: items that are put back rest on it."""
    uncopied = both(observed)[1]
    posterior = random_posterior(N_MODELS, N_ITEMS, 2, seed=3)
    parts = np.array_split(np.random.default_rng(0).permutation(N_ITEMS), 3)
    pairs = [(uncopied.take_items(part), posterior.take_items(part)) for part in parts]
    of_items = [item_statistics(*pair, normal_expectation) for pair in pairs]
    whole = item_statistics(uncopied, posterior, normal_expectation)
    assert_allclose(np.concatenate([one.linear for one in of_items]), whole.linear[np.concatenate(parts)])
    swept = [
        improve_items(*pair, one, np.ones(pair[0].n_items), rule=normal_expectation)
        for pair, one in zip(pairs, of_items, strict=True)
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
    names = "loadings intercept item_covariance abilities ability_covariance history"
    alike(found, expected, names, rtol=1e-6, atol=1e-6)
    if design == "complete":
        assert_array_equal(found.loadings, expected.loadings)


def moments_by_hand(posterior, item, model):
    """Mean and variance of the logit as the covariance of a product of independent vectors."""
    x = np.append(posterior.ability_mean[model], 1.0)
    spread = np.zeros((x.size, x.size))
    spread[:-1, :-1] = posterior.ability_covariance[model]
    beta, covariance = posterior.item_mean[item], posterior.item_covariance[item]
    second = np.sum((covariance + np.outer(beta, beta)) * (spread + np.outer(x, x)))
    return beta @ x, second - (beta @ x) ** 2, spread + np.outer(x, x), x


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_statistics_are_the_sums_they_claim_to_be(rule, missing, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 20)  # several blocks
    data = simulate(7, 9, n_dims=2, missing=missing, seed=1).data
    posterior = random_posterior(7, 9, 2)
    whole = blocks.make_blocks(data, single_precision=False)
    items, abilities = item_statistics(whole, posterior, rule), ability_statistics(whole, posterior, rule)
    of_items, of_items_linear = np.zeros((9, 3, 3)), np.zeros((9, 3))
    of_models, of_models_linear = np.zeros((7, 2, 2)), np.zeros((7, 2))
    likelihood = np.zeros(9)
    for item in range(9):
        for model in range(7):
            if data.observed is not None and not data.observed[model, item]:
                continue
            mean, variance, second, x = moments_by_hand(posterior, item, model)
            terms = rule(np.array([[mean]]), np.array([[variance]]))
            tilt, curvature, log_cosh = (0.0 if value is None else value.item() for value in terms)
            centred = data.responses[model, item] - 0.5
            beta = posterior.item_mean[item]
            squares = posterior.item_covariance[item] + np.outer(beta, beta)
            of_items[item] += curvature * second
            of_items_linear[item] += (centred + tilt) * x
            of_models[model] += curvature * squares[:2, :2]
            of_models_linear[model] += (centred + tilt) * beta[:2] - curvature * squares[:2, 2]
            likelihood[item] += centred * mean - log_cosh
    assert_allclose(unpack(items.precision, 3), of_items, rtol=1e-10)
    assert_allclose(items.linear, of_items_linear, rtol=1e-9, atol=1e-12)
    assert_allclose(unpack(abilities.precision, 2), of_models, rtol=1e-10)
    assert_allclose(abilities.linear, of_models_linear, rtol=1e-9, atol=1e-12)
    assert_allclose([items.likelihood, abilities.likelihood], [likelihood] * 2, rtol=1e-10)


def test_single_precision_agrees_with_double():
    data = simulate(40, 60, n_dims=2, missing=0.2, guessing=0.2, seed=2).data
    posterior = random_posterior(40, 60, 2)
    single, double = (
        item_statistics(blocks.make_blocks(data, single_precision=one), posterior, normal_expectation)
        for one in (True, False)
    )
    assert_allclose(single.precision, double.precision, atol=1e-5 * np.abs(double.precision).max())
    assert_allclose(single.likelihood, double.likelihood, rtol=1e-5)
