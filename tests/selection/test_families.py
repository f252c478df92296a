"""Optimal design with probabilities and counts."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution

from itembank.irt import beta
from itembank.irt.families import ResponseModel
from itembank.irt.logistic import asymptotes_of
from itembank.selection.criteria import CRITERIA
from itembank.selection.item_worth import criterion_scores, goal_matrix
from tests.selection.designs import KINDS, make_items, make_parameters, make_posterior


def with_family(parameters, family, precision):
    """The same items with responses of another family."""
    return dataclasses.replace(parameters, family=family, precision=np.full(parameters.n_items, precision))


def scores(items, name, goal_of="logits"):
    """Worth of every item by a criterion, at a made-up posterior."""
    theta, covariance = make_posterior()
    goal = goal_matrix(items, np.full(items.n_items, 1.0 / items.n_items), theta, of=goal_of)
    return criterion_scores(
        items,
        CRITERIA.resolve(name),
        theta,
        covariance,
        goal=goal,
        counts=np.zeros(3, dtype=np.int64),
        rng=np.random.default_rng(0),
    )


def _densities(logit, other, phi, lower, upper):
    """Beta densities at two logits."""
    p, q = (lower + (upper - lower) / (1.0 + np.exp(-x)) for x in (logit, other))
    return beta_distribution(p * phi, (1 - p) * phi), beta_distribution(q * phi, (1 - q) * phi)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", [4.0, 60.0])
@pytest.mark.parametrize(("logit", "other"), [(0.3, 0.31), (0.0, 1.5), (1.0, -1.0)])
def test_divergence_is_the_integral_of_the_log_ratio(kind, precision, logit, other):
    here, there = _densities(logit, other, precision, *KINDS[kind])
    inside, _ = quad(
        lambda y: here.pdf(y) * (here.logpdf(y) - there.logpdf(y)), 1e-6, 1.0 - 1e-6, epsabs=1e-10, limit=400
    )
    below = here.cdf(1e-6) * (here.logcdf(1e-6) - there.logcdf(1e-6))
    expected = inside + below + here.sf(1.0 - 1e-6) * (here.logsf(1.0 - 1e-6) - there.logsf(1.0 - 1e-6))
    asymptotes = asymptotes_of(*(np.array(bound) for bound in KINDS[kind]))
    found = beta.divergence(np.array(logit), np.array(other), np.array(precision), asymptotes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_divergence_keeps_its_digits_near_zero():
    x = np.linspace(-3.0, 3.0, 7)
    step = 1e-4
    for precision in (0.5, 30.0, 1e6):
        found = beta.divergence(x, x + step, np.array(precision))
        np.testing.assert_allclose(found, 0.5 * step**2 * beta.information_weights(x, precision), rtol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_expected_divergence_of_probabilities(kind):
    """By Monte Carlo over the posterior of the logit."""
    items = make_items(with_family(make_parameters(kind=kind, n_items=6), "beta", 15.0))
    theta, covariance = make_posterior()
    rng = np.random.default_rng(1)
    eta = items.logit(theta)
    spread = np.sqrt(np.einsum("id,de,ie->i", items.loadings, covariance, items.loadings))
    draws = eta + spread * rng.normal(size=(40_000, 6))
    sampled = beta.divergence(eta, draws, np.array(15.0), items.model.asymptotes)
    error = sampled.std(axis=0) / 200.0
    # the nodes are those of a variance of the logit of up to 4
    is_narrow = spread**2 < 4.0
    assert np.all(np.abs(scores(items, "kl") - sampled.mean(axis=0))[is_narrow] < 4.0 * error[is_narrow] + 0.02)


@pytest.mark.parametrize("name", ["d-optimal", "a-optimal", "v-optimal", "trace", "kl"])
def test_counts_of_one_trial_are_worth_what_an_answer_is(name):
    plain = make_parameters(kind="lower")
    expected = scores(make_items(plain), name)
    binomial = dataclasses.replace(plain, family="binomial")
    for other in (binomial, with_family(plain, "beta-binomial", 2.0)):
        np.testing.assert_array_equal(scores(make_items(other), name), expected)


@pytest.mark.parametrize("name", ["d-optimal", "a-optimal", "v-optimal", "trace", "kl"])
def test_precise_probabilities_are_worth_more(name):
    plain = make_parameters()
    worth = [scores(make_items(with_family(plain, "beta", precision)), name) for precision in (5.0, 50.0)]
    assert np.all(worth[1] > worth[0])
    assert np.all(worth[1] > scores(make_items(plain), name))


def test_weights_are_the_information_of_the_family():
    parameters = with_family(make_parameters(kind="both"), "beta", 7.0)
    items = make_items(parameters)
    theta, _ = make_posterior()
    np.testing.assert_array_equal(
        items.weights(theta), ResponseModel.of(parameters).information_weights(items.logit(theta))
    )
