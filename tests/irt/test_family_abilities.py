"""Scoring with probabilities and counts, against brute force on scipy's distributions."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

from itembank.estimation.model_abilities import abilities_of, estimate_abilities
from itembank.irt import answers as layout
from itembank.irt import likelihood_abilities as starts
from itembank.irt.ability_specs import METHODS
from itembank.irt.bernoulli import probability
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.families import ResponseModel
from itembank.irt.family_names import FAMILIES, WITH_PRECISION
from itembank.irt.likelihood_abilities import ml_abilities, wle_abilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank, with_family

GRID = np.linspace(-6.0, 6.0, 6001)
NEW = [family for family in FAMILIES if family != "bernoulli"]
KINDS = {"plain": (0.0, 1.0), "asymptotes": (0.2, 0.97)}
ONE = AbilityPrior.standard(1)
Case = tuple[ItemParameters, FloatArray, FloatArray | None]


def make_case(family: str, **choices) -> Case:
    """Parameters, responses drawn from them with missing cells, and trials for counts."""
    return draw_case(family, **choices)[:3]


def draw_case(family: str, *, n_models=5, n_items=20, n_dims=1, kind="plain", missing=0.2, spread=1.0, seed=0):
    """The same with the true abilities, (n_models, n_dims)."""
    rng = np.random.default_rng([seed, n_dims])
    precision = rng.uniform(2.0, 30.0, n_items) if family in WITH_PRECISION else None
    loadings, intercept = rng.lognormal(0.0, 0.4, (n_items, n_dims)), rng.normal(size=n_items)
    parameters = ItemParameters.create(loadings, intercept, *KINDS[kind], family=family, precision=precision)
    theta = spread * rng.normal(size=(n_models, n_dims))
    p = probability(parameters, theta)
    if precision is not None:
        p = rng.beta(p * precision, (1.0 - p) * precision)
    if family == "beta":
        n_trials, responses = None, p
    else:
        n_trials = rng.integers(1, 30, p.shape).astype(np.float64)
        responses = rng.binomial(n_trials.astype(int), p) / n_trials
    responses = np.where(rng.random(p.shape) < missing, np.nan, responses)
    return parameters, responses, n_trials, theta


def log_likelihood(parameters: ItemParameters, y: FloatArray, n: FloatArray | None, theta: FloatArray) -> FloatArray:
    """Log-likelihood of one model's responses (n_items,) at points (n_points, n_dims), by scipy."""
    seen = ~np.isnan(y)
    p = probability(parameters, theta)[:, seen]
    k = None if n is None else np.rint(n[seen] * y[seen])
    if parameters.family == "binomial":
        return binom.logpmf(k, n[seen], p).sum(axis=1)
    phi = parameters.precision[seen]
    if parameters.family == "beta":
        return beta_log_likelihood(y[seen], p * phi, (1 - p) * phi).sum(axis=1)
    return betabinom.logpmf(k, n[seen], p * phi, (1 - p) * phi).sum(axis=1)


def beta_log_likelihood(y: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Log-density (n_points, n_items), and of responses within a millionth of 0 or 1 the log of their chance."""
    values = beta_distribution.logpdf(np.clip(y, 1e-6, 1 - 1e-6), a, b)
    low, high = y <= 1e-6, y >= 1 - 1e-6  # the chance is dear, and few responses ask for it
    values[:, low] = beta_distribution.logcdf(1e-6, a[:, low], b[:, low])
    values[:, high] = beta_distribution.logsf(1 - 1e-6, a[:, high], b[:, high])
    return values


def row(n_trials: FloatArray | None, model: int) -> FloatArray | None:
    return None if n_trials is None else n_trials[model]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", NEW)
def test_ml_and_map_are_the_highest_points(family, kind):
    parameters, responses, n_trials = make_case(family, kind=kind)
    prior = AbilityPrior(np.array([0.3]), np.array([[0.8]]))
    ml = ml_abilities(parameters, responses, n_trials=n_trials)
    found = map_abilities(parameters, responses, prior, n_trials=n_trials)
    assert (ml.converged & found.converged & ~ml.at_bound).all()
    for model in range(len(responses)):
        values = log_likelihood(parameters, responses[model], row(n_trials, model), GRID[:, None])
        assert abs(ml.theta[model, 0] - GRID[np.argmax(values)]) < 1.1e-3
        posterior = values - 0.5 * (GRID - 0.3) ** 2 / 0.8
        top = int(np.argmax(posterior))
        assert abs(found.theta[model, 0] - GRID[top]) < 1.1e-3
        step = GRID[1] - GRID[0]
        bend = -(posterior[top + 10] - 2 * posterior[top] + posterior[top - 10]) / (10 * step) ** 2
        assert_allclose(1.0 / found.covariance[model, 0, 0], bend, rtol=2e-3)


@pytest.mark.parametrize(
    ("family", "kind", "n_items", "error"),
    [*((family, kind, 20, 2e-4) for family in NEW for kind in KINDS), ("beta-binomial", "plain", 150, 1e-6)],
)
def test_eap_has_the_moments_of_the_posterior(family, kind, n_items, error):
    """Of 150 over-dispersed answers without the common grid."""
    parameters, responses, n_trials = make_case(family, kind=kind, n_items=n_items, n_models=2 if n_items > 20 else 5)
    found = eap_abilities(parameters, responses, ONE, n_trials=n_trials)
    assert found.converged.all()
    for model in range(len(responses)):
        values = log_likelihood(parameters, responses[model], row(n_trials, model), GRID[:, None]) - 0.5 * GRID**2
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        mean = weights @ GRID
        assert_allclose(found.theta[model, 0], mean, atol=error)
        assert_allclose(found.covariance[model, 0, 0], weights @ (GRID - mean) ** 2, rtol=10.0 * error)


@pytest.mark.parametrize("family", NEW)
def test_wle_adds_half_the_log_information(family):
    parameters, responses, n_trials = make_case(family, n_items=8)
    found = wle_abilities(parameters, responses, n_trials=n_trials)
    assert found.converged.all()
    model_of_items, grid = ResponseModel.of(parameters), np.linspace(-5.0, 5.0, 4001)
    logits = grid[:, None] * parameters.loadings[:, 0] + parameters.intercept
    for model in range(len(responses)):
        seen = ~np.isnan(responses[model])
        n = np.ones(seen.shape) if n_trials is None else n_trials[model]
        weights = model_of_items.information_weights(logits, np.broadcast_to(n, logits.shape))
        information = (weights * parameters.loadings[:, 0] ** 2)[:, seen].sum(axis=1)
        values = log_likelihood(parameters, responses[model], row(n_trials, model), grid[:, None])
        assert abs(found.theta[model, 0] - grid[np.argmax(values + 0.5 * np.log(information))]) < 3e-3


@pytest.mark.parametrize("family", NEW)
def test_map_in_many_dimensions_is_the_mode(family):
    parameters, responses, n_trials = make_case(family, n_dims=4, n_items=40, n_models=3)
    prior = AbilityPrior(np.full(4, 0.1), np.eye(4) + 0.3)
    found = map_abilities(parameters, responses, prior, n_trials=n_trials)
    precision = np.linalg.inv(prior.covariance)

    def loss(theta: FloatArray, model: int) -> float:
        away = theta - prior.mean
        fit = log_likelihood(parameters, responses[model], row(n_trials, model), theta[None])[0]
        return float(0.5 * away @ precision @ away - fit)

    for model in range(3):
        best = minimize(loss, found.theta[model] + 0.2, args=(model,), method="BFGS")
        assert loss(found.theta[model], model) <= best.fun + 1e-7
        assert_allclose(found.theta[model], best.x, atol=2e-3)


@pytest.mark.parametrize("method", [ml_abilities, wle_abilities])
@pytest.mark.parametrize("family", ["beta", "beta-binomial"])
def test_abilities_far_from_the_items_are_found_in_two_dimensions(family, method):
    parameters, responses, n_trials, truth = draw_case(family, n_models=100, n_items=60, n_dims=2, spread=3.0)
    found = method(parameters, responses, n_trials=n_trials)
    assert found.converged.all()
    z = ((found.theta - truth) / found.standard_errors)[~found.at_bound]
    assert len(z) > 90
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("method", METHODS.kinds)
@pytest.mark.parametrize("family", NEW)
def test_own_item_lists_and_another_ability_scale_give_what_the_matrix_gives(family, method, monkeypatch):
    """theta becomes 2.5 theta - 1, parameters and prior to match."""
    parameters, responses, n_trials = make_case(family, missing=0.5)
    spec = METHODS.resolve(method)
    here = abilities_of(parameters, responses, ONE, spec, n_trials=n_trials)
    loadings, intercept = parameters.loadings / 2.5, parameters.intercept + parameters.loadings[:, 0] / 2.5
    moved = dataclasses.replace(parameters, loadings=loadings, intercept=intercept)
    there = abilities_of(moved, responses, AbilityPrior(np.array([-1.0]), np.array([[6.25]])), spec, n_trials=n_trials)
    assert_allclose(there.theta, 2.5 * here.theta - 1.0, rtol=1e-6, atol=1e-6)
    assert_allclose(there.covariance, 6.25 * here.covariance, rtol=1e-5)
    monkeypatch.setattr(layout, "SPARSE_BELOW", 1.1)
    own = abilities_of(parameters, responses, ONE, spec, n_trials=n_trials)
    assert_allclose(own.theta, here.theta, rtol=1e-7, atol=1e-9)
    assert_allclose(own.covariance, here.covariance, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS.kinds)
def test_binomial_counts_are_as_many_bernoulli_answers(method):
    parameters, responses, n_trials = make_case("binomial", missing=0.1)
    spec = METHODS.resolve(method)
    found = abilities_of(parameters, responses, ONE, spec, n_trials=n_trials)
    trials, correct = n_trials.astype(int), np.rint(np.nan_to_num(responses) * n_trials).astype(int)
    for model in range(len(responses)):
        items = np.repeat(np.arange(parameters.n_items), np.where(np.isnan(responses[model]), 0, trials[model]))
        starts = np.concatenate([[0], np.flatnonzero(np.diff(items)) + 1])
        place = np.arange(len(items)) - np.repeat(starts, np.diff(np.append(starts, len(items))))
        single = ItemParameters.create(parameters.loadings[items], parameters.intercept[items])
        answers = (place < correct[model][items]).astype(np.float64)[None]
        expected = abilities_of(single, answers, ONE, spec)
        assert_allclose(found.theta[model], expected.theta[0], atol=1e-7)
        assert_allclose(found.covariance[model], expected.covariance[0], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS.kinds)
@pytest.mark.parametrize("right", [0.0, 1.0])
def test_counts_all_alike(method, right):
    parameters, responses, n_trials = make_case("beta-binomial", missing=0.0, n_models=2)
    found = abilities_of(parameters, np.full_like(responses, right), ONE, METHODS.resolve(method), n_trials=n_trials)
    sign = 2.0 * right - 1.0
    if method == "ml":
        assert found.at_bound.all()
        assert_array_equal(found.theta, sign * np.inf)
    else:
        assert np.all(sign * found.theta > 0.5)
        assert np.isfinite(found.theta).all()


@pytest.mark.parametrize("method", METHODS.kinds)
def test_probabilities_of_zero_and_one_only_say_how_near_they_are(method):
    parameters, responses, _ = make_case("beta", missing=0.0, n_models=2)
    spec, extreme = METHODS.resolve(method), np.array([[0.0], [1.0]]) * np.ones_like(responses)
    found, nearly = (abilities_of(parameters, one, ONE, spec) for one in (extreme, np.clip(extreme, 5e-7, 1 - 5e-7)))
    assert_array_equal(found.theta, nearly.theta)
    if method == "ml":
        assert found.at_bound.all()
        assert_array_equal(found.theta[:, 0], [-np.inf, np.inf])
    else:
        assert found.converged.all()
        assert -np.inf < found.theta[0, 0] < -1.0 < 1.0 < found.theta[1, 0] < np.inf


@pytest.mark.filterwarnings("ignore:.*scores came without numbers of questions")
@pytest.mark.parametrize("family", NEW)
def test_score_takes_trials_from_the_responses(family):
    bank, rng = with_family(make_bank(n_dims=1), family), np.random.default_rng(3)
    trials = rng.integers(1, 20, (4, 10))
    values = rng.binomial(trials, 0.6) / trials
    values[0, 2] = np.nan
    items = pl.DataFrame({"item_id": bank.item_ids[5:15]})
    found = estimate_abilities(bank, ResponseMatrix.create(values, items=items, n_trials=trials))
    parameters = bank.parameters.take(np.arange(5, 15))
    expected = map_abilities(parameters, values, bank.calibration.prior, n_trials=trials.astype(np.float64))
    assert_array_equal(found.theta, expected.theta)
    plain = estimate_abilities(bank, ResponseMatrix.create(values, items=items))
    assert np.array_equal(plain.theta, found.theta) == (family == "beta")


@pytest.mark.slow
@pytest.mark.parametrize("family", NEW)
def test_abilities_are_recovered_within_their_standard_errors(family):
    parameters, responses, n_trials, truth = draw_case(family, n_models=2000, n_items=30)
    found = map_abilities(parameters, responses, ONE, n_trials=n_trials)
    z = (found.theta - truth) / found.standard_errors
    assert abs(z.mean()) < 0.08
    assert abs(z.std() - 1.0) < 0.06


@pytest.mark.parametrize("family", NEW)
def test_starts_from_some_of_many_answers_lead_to_the_same_mode(family, monkeypatch):
    parameters, responses, n_trials = make_case(family, n_items=90)
    full = map_abilities(parameters, responses, ONE, n_trials=n_trials)
    monkeypatch.setattr(starts, "MOST_ANSWERS", 9)
    some = map_abilities(parameters, responses, ONE, n_trials=n_trials)
    assert_allclose(some.theta, full.theta, atol=1e-8)
