import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.estimation.regressions import predict_factor
from itembank.irt.linear_gaussian import (
    FactorModel,
    factor_posterior,
    fit_factor_model,
    group_residuals,
    item_residuals,
    successive_residuals,
)


def simulated(rng, n_models, n_items, n_factors, noise=0.05):
    loadings = rng.normal(scale=0.15, size=(n_items, n_factors))
    factors = rng.normal(size=(n_models, n_factors))
    mean = rng.uniform(0.3, 0.7, size=n_items)
    return mean + factors @ loadings.T + rng.normal(scale=np.sqrt(noise), size=(n_models, n_items)), loadings


@pytest.mark.parametrize("n_factors", [3, 4, 6])  # of four items: either of two formulas takes the smaller matrix
def test_the_posterior_is_that_of_dense_gaussian_conditioning(n_factors):
    rng = np.random.default_rng(0)
    model = FactorModel(rng.random(12), rng.normal(size=(12, n_factors)), rng.uniform(0.1, 1.0, 12))
    items, answers = np.array([1, 4, 7, 11]), rng.random((5, 4))
    mean, covariance = factor_posterior(model, items, answers)
    own = model.loadings[items]
    inverse = np.linalg.inv(own @ own.T + np.diag(model.noise[items]))
    assert_allclose(mean, (answers - model.mean[items]) @ inverse @ own, atol=1e-12)
    assert_allclose(covariance, np.eye(n_factors) - own.T @ inverse @ own, atol=1e-12)


def test_finds_the_factors_it_was_given_and_none_in_noise():
    rng = np.random.default_rng(1)
    responses, loadings = simulated(rng, 300, 400, 3)
    model = fit_factor_model(responses)
    assert model.n_factors == 3
    true = loadings @ loadings.T
    assert np.linalg.norm(model.loadings @ model.loadings.T - true) < 0.25 * np.linalg.norm(true)
    assert_allclose(model.noise.mean(), 0.05, rtol=0.05)
    rng = np.random.default_rng(3)
    assert fit_factor_model(rng.normal(size=(80, 300))).n_factors <= 2


def test_the_strength_of_the_factors_is_not_inflated_where_models_are_few():
    rng = np.random.default_rng(2)
    responses, _ = simulated(rng, 40, 2000, 1)
    model = fit_factor_model(responses)
    true = 2000 * 0.15**2
    assert model.n_factors == 1
    # what is left of a factor is its variance times the squared cosine, below the truth and near it
    assert 0.5 * true < np.sum(model.loadings**2) < 1.6 * true


def test_a_factor_has_its_variance_times_the_squared_cosine_between_its_vector_and_the_true_one():
    found, expected = [], []
    for seed in range(6):
        responses, loadings = simulated(np.random.default_rng([4, seed]), 40, 300, 1, noise=0.5)
        model = fit_factor_model(responses)
        true, own = np.sum(loadings**2), np.sum(model.loadings**2)
        found.append(own / true)
        expected.append(np.sum(loadings * model.loadings) ** 2 / (true * own))
    # 39 draws of the factor tell its variance to sqrt(2 / 39); six times, to a tenth
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.25)


def test_fifty_factors_are_the_most_and_another_unit_changes_theirs_alone():
    responses, _ = simulated(np.random.default_rng(10), 150, 160, 60, noise=1e-4)
    assert fit_factor_model(responses).n_factors == 50
    assert fit_factor_model(responses, n_factors=55).n_factors == 55
    responses, _ = simulated(np.random.default_rng(5), 40, 300, 2)
    one, ten = fit_factor_model(responses), fit_factor_model(10.0 * responses)
    assert_allclose(np.sum(ten.loadings**2), 100.0 * np.sum(one.loadings**2), rtol=1e-9)
    assert_allclose(ten.noise, 100.0 * one.noise, rtol=1e-9)


@pytest.mark.parametrize("n_factors", ["auto", 0])
def test_without_spread_or_without_factors_there_is_only_noise(n_factors):
    responses = np.full((6, 4), 0.5) if n_factors == "auto" else simulated(np.random.default_rng(9), 6, 4, 1)[0]
    model = fit_factor_model(responses, n_factors=n_factors)
    assert model.loadings.shape == (4, 0)
    assert_allclose(model.mean, responses.mean(axis=0))
    assert_allclose(model.noise, np.maximum(responses.var(axis=0, ddof=1), np.finfo(np.float64).tiny))


@pytest.mark.parametrize("n_models", [1, 2, 3])
def test_a_handful_of_models_is_survived(n_models):
    rng = np.random.default_rng(4)
    model = fit_factor_model((rng.random((n_models, 20)) < 0.5).astype(float))
    assert np.isfinite(model.loadings).all()
    assert np.all(model.noise > 0.0)


def test_missing_responses_hardly_change_the_fit():
    rng = np.random.default_rng(5)
    responses, _ = simulated(rng, 200, 150, 2)
    holes = np.where(rng.random(responses.shape) < 0.2, np.nan, responses)
    whole, holed = fit_factor_model(responses), fit_factor_model(holes)
    assert_allclose(holed.noise.mean(), whole.noise.mean(), rtol=0.1)
    true, found = whole.loadings @ whole.loadings.T, holed.loadings @ holed.loadings.T
    assert np.linalg.norm(found - true) < 0.3 * np.linalg.norm(true)
    rng = np.random.default_rng(6)
    responses, _ = simulated(rng, 50, 40, 1)
    responses[:, 7] = np.nan
    model = fit_factor_model(responses)
    assert np.isfinite(model.mean).all()
    assert np.abs(model.loadings[7]).max() < 0.1


def test_models_that_answered_hardly_anything_change_nothing():
    rng = np.random.default_rng(8)
    responses, _ = simulated(rng, 230, 300, 3)
    sparse = np.where(rng.random((200, 300)) < 0.05, responses[30:], np.nan)
    alone, beside = fit_factor_model(responses[:30]), fit_factor_model(np.vstack([responses[:30], sparse]))
    np.testing.assert_array_equal(beside.mean, alone.mean)
    np.testing.assert_array_equal(beside.loadings, alone.loadings)
    only_sparse = fit_factor_model(sparse)  # better from these than from nothing
    assert np.corrcoef(only_sparse.mean, np.nanmean(sparse, axis=0))[0, 1] > 0.9


@pytest.mark.parametrize("fraction", [0.2, 0.5])
def test_incomplete_models_make_the_fit_better(fraction):
    distances = []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        responses, loadings = simulated(rng, 330, 300, 3)
        true, more = loadings @ loadings.T, np.where(rng.random((300, 300)) < fraction, responses[30:], np.nan)
        models = (fit_factor_model(part) for part in (responses[:30], np.vstack([responses[:30], more])))
        distances.append([np.linalg.norm(model.loadings @ model.loadings.T - true) for model in models])
    alone, beside = np.mean(distances, axis=0)
    assert beside < 0.9 * alone


@pytest.fixture
def model(rng):
    return FactorModel(rng.random(12), rng.normal(size=(12, 3)), rng.uniform(0.1, 1.0, 12))


ITEMS = np.array([7, 1, 11, 4, 0])


@pytest.fixture
def answers(rng):
    return rng.random((4, ITEMS.size))


def given(model, wanted, known, values):
    """Mean and covariance of some items given the values (n_models, n_known) of others, by the dense matrix."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    gain = covariance[np.ix_(wanted, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    mean = model.mean[wanted] + (values - model.mean[known]) @ gain.T
    return mean, covariance[np.ix_(wanted, wanted)] - gain @ covariance[np.ix_(known, wanted)]


def test_an_items_and_a_groups_residual_are_what_leaving_answers_out_gives(model, answers):
    residual, variance = item_residuals(model, ITEMS, answers)
    for column in range(ITEMS.size):
        others = np.delete(np.arange(ITEMS.size), column)
        mean, covariance = given(model, ITEMS[[column]], ITEMS[others], answers[:, others])
        assert_allclose(residual[:, column], answers[:, column] - mean[:, 0], atol=1e-12)
        assert_allclose(variance[column], covariance[0, 0])
    group, reference = np.array([0, 3]), np.array([1, 4])
    residual, variance = group_residuals(model, ITEMS, answers, group, reference)
    mean, covariance = given(model, ITEMS[group], ITEMS[reference], answers[:, reference])
    assert_allclose(residual, answers[:, group].mean(axis=1) - mean.mean(axis=1), atol=1e-12)
    assert_allclose(variance, covariance.mean())
    model = FactorModel(np.full(12, 0.5), np.zeros((12, 0)), np.full(12, 0.25))
    residual, variance = item_residuals(model, ITEMS, answers)
    assert_allclose(residual, answers - 0.5)
    assert_allclose(variance, 0.25)
    assert_allclose(successive_residuals(model, ITEMS, answers), (answers - 0.5) / 0.5)


def test_successive_residuals_are_those_given_all_answers_before_and_make_up_the_misfit(model, answers):
    found = successive_residuals(model, ITEMS, answers)
    for t in range(1, ITEMS.size):
        mean, covariance = given(model, ITEMS[[t]], ITEMS[:t], answers[:, :t])
        assert_allclose(found[:, t], (answers[:, t] - mean[:, 0]) / np.sqrt(covariance[0, 0]), atol=1e-12)
    misfit = predict_factor(model, ITEMS, np.ones((12, 1)), answers).misfit
    assert_allclose(np.mean(found**2, axis=1), misfit)
