"""The posterior of success rates against brute-force integration, and its intervals against known truth."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank_scaling.pass_at_k.cell_posterior import (
    Counts,
    PrecisionPrior,
    cell_posterior,
    draw_pass_at_k,
    expected_failure,
    mean_rates,
    precision_prior,
)

PRIOR = AbilityPrior.standard(1)


def simulated_items(rng, n_items=40):
    return ItemParameters.create(rng.uniform(0.5, 2.0, size=(n_items, 1)), rng.normal(-2.0, 2.0, n_items))


def simulated_rates(rng, parameters, theta, phi):
    mean, rest = mean_rates(parameters, theta)
    return rng.beta(np.maximum(mean * phi, 1e-10), np.maximum(rest * phi, 1e-10))


def by_grid(parameters, precision, counts, k):
    """Posterior mean of pass@k by a product grid over (theta, log phi), with scipy's own distributions."""
    thetas = np.linspace(-5.0, 5.0, 401)
    logs = precision.mean + precision.sd * np.linspace(-5.0, 5.0, 81)
    total, weight = np.zeros(len(k)), 0.0
    for log_phi in logs:
        mean = expit(thetas[:, None] * parameters.loadings[:, 0] + parameters.intercept)
        a, b = mean * np.exp(log_phi), (1.0 - mean) * np.exp(log_phi)
        terms = betabinom.logpmf(counts.n_correct, counts.n_trials, a, b).sum(axis=1)
        density = np.exp(terms - 0.5 * thetas**2 - 0.5 * ((log_phi - precision.mean) / precision.sd) ** 2 + 60.0)
        after_a, after_b = a + counts.n_correct, b + counts.n_trials - counts.n_correct
        for place, samples in enumerate(k):
            failure = np.prod([(after_b + j) / (after_a + after_b + j) for j in range(samples)], axis=0)
            total[place] += density @ (1.0 - failure).mean(axis=1)
        weight += density.sum()
    return total / weight


@pytest.mark.parametrize("n_samples", [0, 3, 40])
def test_expected_failure_agrees_with_a_grid_over_ability_and_precision(n_samples):
    rng = np.random.default_rng(n_samples)
    parameters = simulated_items(rng, 12)
    rates = simulated_rates(rng, parameters, np.array([[0.7]]), 3.0)[0]
    n_trials = np.full(12, n_samples)
    n_trials[:4] = 0  # items that were not sampled
    counts = Counts(n_trials, rng.binomial(n_trials, rates))
    precision, k = PrecisionPrior(np.log(3.0), 0.8), np.array([1, 5, 30])
    posterior = cell_posterior(parameters, PRIOR, precision, counts, n_draws=1024, rng=rng)
    found = 1.0 - expected_failure(posterior, k).mean(axis=0)
    np.testing.assert_allclose(found, by_grid(parameters, precision, counts, k.tolist()), atol=2e-3)
    assert 1.0 / np.sum(posterior.weights**2) > 300  # Kish 1965


def test_draws_have_the_closed_forms_mean():
    rng = np.random.default_rng(5)
    parameters = simulated_items(rng)
    counts = Counts(np.full(40, 20), rng.binomial(20, 0.2, 40))
    posterior = cell_posterior(parameters, PRIOR, PrecisionPrior(1.0, 0.5), counts, rng=rng)
    k, weights = np.array([1, 10, 1000]), rng.dirichlet(np.ones(40))
    draws = draw_pass_at_k(posterior, k, weights, n_draws=4000, rng=rng)
    np.testing.assert_allclose(draws.mean(axis=0), 1.0 - weights @ expected_failure(posterior, k), atol=0.004)


def test_an_item_sampled_often_speaks_for_itself():
    rng = np.random.default_rng(6)
    parameters = simulated_items(rng)
    n_trials, n_correct = np.full(40, 50), np.full(40, 10)
    n_trials[0], n_correct[0] = 1_000_000, 123_000
    posterior = cell_posterior(parameters, PRIOR, PrecisionPrior(1.0, 1.0), Counts(n_trials, n_correct), rng=rng)
    rates = posterior.weights @ (posterior.alpha / (posterior.alpha + posterior.beta))
    assert rates[0] == pytest.approx(0.123, abs=1e-4)
    many = Counts(19_999 * n_trials, 19_999 * n_correct)  # whose log-likelihoods have few digits behind the point
    posterior = cell_posterior(parameters, PRIOR, PrecisionPrior(1.0, 1.0), many, rng=rng)
    assert posterior.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_precision_prior_finds_how_models_differ():
    rng = np.random.default_rng(7)
    parameters, theta = simulated_items(rng, 300), rng.normal(size=(40, 1))
    phi = np.exp(rng.normal(1.0, 0.7, size=(40, 1)))
    n_trials = np.full((40, 300), 30)
    n_correct = rng.binomial(n_trials, simulated_rates(rng, parameters, theta, phi))
    found = precision_prior(parameters, theta, n_trials, n_correct)
    assert found.mean == pytest.approx(1.0, abs=3 * 0.7 / np.sqrt(40))
    assert found.sd == pytest.approx(0.7, abs=0.25)


@pytest.mark.parametrize("phi", [0.05, 8.6, 300.0])
def test_precision_prior_of_models_that_are_alike_is_their_common_maximum(phi):
    """Most likely single precision of all models, by scipy's own distribution."""
    rng = np.random.default_rng(11)
    parameters, theta = simulated_items(rng, 500), rng.normal(size=(6, 1))
    n_trials = np.full((6, 500), 50)
    n_correct = rng.binomial(n_trials, simulated_rates(rng, parameters, theta, np.full((6, 1), phi)))
    mean = expit(theta * parameters.loadings[:, 0] + parameters.intercept)

    def loss(log_phi):
        a, b = mean * np.exp(log_phi), (1.0 - mean) * np.exp(log_phi)
        return -betabinom.logpmf(n_correct, n_trials, a, b).sum()

    common = minimize_scalar(loss, bounds=(np.log(phi) - 1.0, np.log(phi) + 1.0), method="bounded").x
    found = precision_prior(parameters, theta, n_trials, n_correct)
    assert found.mean == pytest.approx(common, abs=0.02)
    assert found.sd < 0.15


def test_a_model_that_repeats_itself_is_known_for_it():
    """Answers of 0 or all right tell a low precision, whatever the prior's centre."""
    rng = np.random.default_rng(8)
    parameters = ItemParameters.create(np.ones((200, 1)), np.zeros(200))
    n_correct = np.where(rng.random(200) < 0.5, 0, 10)
    precision = PrecisionPrior(np.log(5.0), 1.5)
    posterior = cell_posterior(parameters, PRIOR, precision, Counts(np.full(200, 10), n_correct), rng=rng)
    assert np.exp(posterior.weights @ posterior.log_precision) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [2, 50])
def test_intervals_hold_the_truth_as_often_as_they_say(n_samples):
    rng = np.random.default_rng(9)
    parameters, precision = simulated_items(rng, 60), PrecisionPrior(np.log(4.0), 0.6)
    k, weights, inside = np.array([1, 10, 100]), np.full(60, 1.0 / 60.0), []
    for _ in range(300):
        theta, phi = rng.normal(size=(1, 1)), np.exp(rng.normal(precision.mean, precision.sd))
        rates = simulated_rates(rng, parameters, theta, phi)[0]
        n_trials = np.full(60, n_samples)
        counts = Counts(n_trials, rng.binomial(n_trials, rates))
        posterior = cell_posterior(parameters, PRIOR, precision, counts, rng=rng)
        low, high = np.quantile(draw_pass_at_k(posterior, k, weights, n_draws=400, rng=rng), [0.025, 0.975], axis=0)
        truth = (1.0 - (1.0 - rates)[:, None] ** k).mean(axis=0)
        inside.append((low <= truth) & (truth <= high))
    coverage = np.mean(inside, axis=0)
    assert np.all(coverage > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300))


def test_shapes_are_those_of_the_conjugate_beta():
    rng = np.random.default_rng(10)
    parameters = ItemParameters.create(np.zeros((3, 1)), np.array([-1.0, 0.0, 2.0]))
    counts = Counts(np.array([0, 4, 9]), np.array([0, 1, 9]))
    posterior = cell_posterior(parameters, PRIOR, PrecisionPrior(np.log(2.0), 1e-3), counts, rng=rng)
    phi = np.exp(posterior.log_precision[:, None])
    mean = expit(parameters.intercept)
    expected = beta_distribution(mean * phi + counts.n_correct, (1 - mean) * phi + counts.n_trials - counts.n_correct)
    np.testing.assert_allclose(posterior.alpha / (posterior.alpha + posterior.beta), expected.mean())
