import warnings

import numpy as np
import pytest
from scipy.special import expit

from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pretraining import measured_abilities as kernel
from itembank_scaling.pretraining.law_specs import ItemResponseLaw


@pytest.fixture
def parameters(rng):
    return ItemParameters.create(rng.lognormal(0.0, 0.4, 30), rng.normal(0.0, 1.0, 30), lower_asymptote=0.2)


@pytest.mark.parametrize(("precision", "family"), [(3.0, "beta-binomial"), (1e6, "binomial")])
def test_counts_are_fitted_as_calibrate_fits_them(rng, precision, family):
    """As 'beta-binomial' where attempts at an item agree more than chance, with a warning that says so."""
    p = expit(rng.normal(0.0, 1.0, (40, 1)) - rng.normal(0.0, 1.0, 25))
    n_right = rng.binomial(30, rng.beta(precision * p, precision * (1.0 - p)))
    responses = ResponseMatrix.from_counts(n_right, np.full(p.shape, 30))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (found,), _ = kernel.measured_abilities(responses, ItemResponseLaw())
    assert found.parameters.family == family
    assert [("beta-binomial" in str(one.message)) for one in caught] == [True] * (family == "beta-binomial")


def test_taking_the_prior_out_undoes_bayes():
    prior = AbilityPrior(np.array([0.4]), np.array([[2.0]]))
    mean, variance = np.array([1.5, -3.0]), np.array([0.3, 0.9])
    posterior = 1.0 / (1.0 / variance + 0.5)
    shrunk = posterior * (mean / variance + 0.4 / 2.0)
    back, back_variance = kernel.without_prior(shrunk, posterior, prior)
    np.testing.assert_allclose(back, mean)
    np.testing.assert_allclose(back_variance, variance)
    prior = AbilityPrior(np.zeros(1), np.eye(1))
    mean, variance = kernel.without_prior(np.zeros(1), np.ones(1), prior)
    assert mean[0] == 0.0
    assert variance[0] == 100.0


def test_mean_probability_and_item_variance_are_those_of_the_items_and_gaps_those_of_all(parameters, rng):
    theta = np.array([-1.0, 0.5])
    expected = [np.mean(0.2 + 0.8 * expit(parameters.loadings[:, 0] * at + parameters.intercept)) for at in theta]
    np.testing.assert_allclose(kernel.mean_probability(parameters, theta), expected)
    covariance = np.tile(np.array([[0.02, 0.005], [0.005, 0.03]]), (30, 1, 1)) * 0.1
    theta = np.array([-1.0, 2.0])
    drawn = []
    for _ in range(4000):
        noise = rng.multivariate_normal(np.zeros(2), covariance[0], size=30)
        slopes, intercepts = parameters.loadings[:, 0] + noise[:, 0], parameters.intercept + noise[:, 1]
        items = ItemParameters.create(slopes, intercepts, lower_asymptote=0.2)
        drawn.append(kernel.mean_probability(items, theta))
    np.testing.assert_allclose(kernel.item_variance(parameters, covariance, theta), np.var(drawn, axis=0), rtol=0.08)
    theta = np.array([0.3, -0.2])
    p = 0.2 + 0.8 * expit(theta[:, None] * parameters.loadings[:, 0] + parameters.intercept)
    responses = np.clip(p + 0.05, 0.0, 1.0)
    np.testing.assert_allclose(kernel.score_gap(parameters, responses, theta), np.mean(responses - p, axis=1))
    responses[:, 10:] = np.nan
    few = np.mean((responses - p)[:, :10], axis=1) * np.sqrt(10 / 30)
    np.testing.assert_allclose(kernel.score_gap(parameters, responses, theta), few)
    responses[1] = np.nan
    assert np.isnan(kernel.score_gap(parameters, responses, theta)[1])


PRIOR = AbilityPrior(np.zeros(1), np.eye(1))


@pytest.fixture(params=["bernoulli", "beta", "binomial"])
def answers(request, rng):
    """Items, responses of 40 models to all of them, trials, and the models' abilities."""
    theta, loadings, intercept = rng.standard_normal(40), np.exp(0.4 * rng.standard_normal(90)), rng.normal(0, 1.5, 90)
    p = expit(theta[:, None] * loadings + intercept)
    trials = None
    if request.param == "beta":
        responses = rng.beta(20.0 * p, 20.0 * (1.0 - p))
    elif request.param == "binomial":
        trials = rng.integers(1, 6, size=p.shape)
        responses = rng.binomial(trials, p) / trials
    else:
        responses = (rng.random(p.shape) < p).astype(float)
    precision = np.full(90, 20.0) if request.param == "beta" else None
    parameters = ItemParameters.create(loadings, intercept, family=request.param, precision=precision)
    return parameters, responses, trials, theta


def test_every_model_answers_the_budget_from_a_start_that_spans_the_difficulties(answers):
    parameters, responses, trials, _ = answers
    np.testing.assert_array_equal(
        kernel.choose_within_budget(parameters, responses, PRIOR, 500, n_trials=trials), responses
    )
    responses[:, 5] = np.nan
    chosen = kernel.choose_within_budget(parameters, responses, PRIOR, 12, n_trials=trials)
    is_chosen = ~np.isnan(chosen)
    assert (is_chosen.sum(axis=1) == 12).all()
    assert not is_chosen[:, 5].any()
    np.testing.assert_array_equal(chosen[is_chosen], responses[is_chosen])
    parameters, responses, trials, _ = answers
    wanted = np.quantile(parameters.difficulty, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(sorted(kernel.start_difficulties(parameters, 15)), wanted)
    chosen = ~np.isnan(kernel.choose_within_budget(parameters, responses, PRIOR, 3, n_trials=trials))
    # one item of three is the start: the one nearest the median
    assert chosen[:, np.argmin(np.abs(parameters.difficulty - wanted[1]))].all()


def test_later_items_tell_most_at_the_ability_so_far(answers):
    """The 9th item of a model is the one of most information at its posterior mean after 8, by brute force."""
    parameters, responses, _, _ = answers
    if parameters.family != "bernoulli":
        pytest.skip("information is spelled out for right and wrong alone")
    before, after = (kernel.choose_within_budget(parameters, responses, PRIOR, n) for n in (8, 9))
    grid = np.linspace(-6.0, 6.0, 121)
    p = expit(grid[:, None] * parameters.loadings[:, 0] + parameters.intercept)
    information = parameters.loadings[:, 0] ** 2 * p * (1.0 - p)
    for model in range(40):
        known = ~np.isnan(before[model])
        likelihood = np.where(responses[model, known] == 1.0, p[:, known], 1.0 - p[:, known]).prod(axis=1)
        weights = likelihood * np.exp(-0.5 * grid**2)
        node = int(np.rint(np.sum(weights * np.arange(121)) / weights.sum()))
        best = np.argmax(np.where(known, -1.0, information[node]))
        assert np.flatnonzero(~np.isnan(after[model]) & np.isnan(before[model])).tolist() == [best]


def test_abilities_are_nearer_the_truth_than_from_as_many_random_items(answers, rng):
    parameters, responses, trials, theta = answers
    weights = None if trials is None else trials.astype(float)
    chosen = kernel.choose_within_budget(parameters, responses, PRIOR, 20, n_trials=trials)
    rank = rng.random(responses.shape).argsort(axis=1).argsort(axis=1)
    drawn = np.where(rank < 20, responses, np.nan)
    errors = [
        np.sqrt(np.mean((map_abilities(parameters, some, PRIOR, weights=weights).theta[:, 0] - theta) ** 2))
        for some in (chosen, drawn)
    ]
    assert errors[0] < 0.9 * errors[1]


def test_rounding_does_not_choose_between_items_as_far_from_the_median():
    """The median of an even number lies midway between two items: the first is asked on any processor."""
    difficulty = np.array([-1.5, 0.5, -0.5, 1.5])
    for change in (-1e-12, 0.0, 1e-12):
        parameters = ItemParameters.create(np.ones((4, 1)), -(difficulty + change * np.array([0, 1, 0, 0])))
        chosen = kernel.choose_within_budget(parameters, np.ones((1, 4)), PRIOR, 1)
        assert list(np.flatnonzero(~np.isnan(chosen[0]))) == [1]
