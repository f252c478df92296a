from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal, norm

from itembank.calibration.variational.state import ItemPrior
from itembank.calibration.variational.updates import (
    ability_divergence,
    divergence,
    item_divergence,
    item_prior_divergence,
    update_common_slope,
)
from tests.calibration.simulated import random_posterior

PRIOR = ItemPrior(
    np.array([0.4, -0.3, 0.1]), np.array([0.02, 0.1, 0.3]), np.array([4.0, 7.0, 2.5]), np.array([2.0, 9.0, 3.0])
)


def kl_by_entropy(mean, covariance, prior_mean, prior_covariance):
    """Minus entropy plus cross entropy, the latter by the expectation of a quadratic."""
    deviation = mean - prior_mean
    inside = np.trace(np.linalg.solve(prior_covariance, covariance + np.outer(deviation, deviation)))
    cross = 0.5 * (inside + np.linalg.slogdet(2 * np.pi * prior_covariance)[1])
    return cross - multivariate_normal(mean, covariance).entropy()


def test_abilities_against_entropies():
    posterior = random_posterior(5, 4, 2)
    expected = sum(
        kl_by_entropy(mean, covariance, np.zeros(2), np.eye(2))
        for mean, covariance in zip(posterior.ability_mean, posterior.ability_covariance, strict=True)
    )
    assert ability_divergence(posterior) == pytest.approx(expected, rel=1e-10)


def test_items_against_draws_of_their_prior():
    posterior = replace(random_posterior(5, 4, 2), item_prior=PRIOR)
    rng = np.random.default_rng(0)
    draws = [
        [
            kl_by_entropy(mean, covariance, mu, np.diag(1.0 / u))
            for mean, covariance in zip(posterior.item_mean, posterior.item_covariance, strict=True)
        ]
        for mu, u in zip(
            rng.normal(PRIOR.mean, np.sqrt(PRIOR.mean_variance), size=(400, 3)),
            rng.gamma(PRIOR.shape, 1.0 / PRIOR.rate, size=(400, 3)),
            strict=True,
        )
    ]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(item_divergence(posterior) - np.mean(draws, axis=0)) < 4.5 * error)


def test_parameters_of_the_prior_by_integration():
    posterior = replace(random_posterior(5, 4, 2), item_prior=PRIOR)
    expected = 0.0
    for k in range(3):
        q_mean = norm(PRIOR.mean[k], np.sqrt(PRIOR.mean_variance[k]))
        p_mean = norm(0.0, np.sqrt(10.0))
        expected += quad(lambda x, q=q_mean, p=p_mean: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), -6, 6, limit=200)[0]
        q_precision, p_precision = gamma(PRIOR.shape[k], scale=1.0 / PRIOR.rate[k]), gamma(1.0)
        expected += quad(
            lambda x, q=q_precision, p=p_precision: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), 1e-12, 30, limit=200
        )[0]
    assert item_prior_divergence(posterior) == pytest.approx(expected, rel=1e-6)


def test_a_known_mean_of_the_prior_has_no_divergence():
    """What is left of it is that of the precision: the limit of a mean that is known better and better."""
    known = replace(PRIOR, mean=np.array([0.4, 0.0, 0.1]), mean_variance=np.array([0.02, 0.0, 0.3]))
    posterior = random_posterior(5, 4, 2)
    free = replace(known, mean_variance=np.array([0.02, 10.0, 0.3]))  # as its own prior: no divergence either
    found = [item_prior_divergence(replace(posterior, item_prior=prior)) for prior in (known, free)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_whole_is_the_sum_of_its_parts():
    posterior = random_posterior(5, 4, 2)
    parts = ability_divergence(posterior) + item_divergence(posterior).sum() + item_prior_divergence(posterior)
    assert divergence(posterior) == pytest.approx(parts)


def test_common_slope_counts_once():
    rng = np.random.default_rng(1)
    n_items = 4
    posterior = replace(random_posterior(6, n_items, 1), has_common_slope=True)
    root = rng.normal(size=(n_items, 2, 2))
    posterior = update_common_slope(posterior, root @ root.swapaxes(1, 2), rng.normal(size=(n_items, 2)), 1.0)
    # the joint covariance of slope and intercepts, from that of each pair
    slope_variance = posterior.item_covariance[0, 0, 0]
    coupling = posterior.item_covariance[:, 0, 1]
    joint = np.empty((n_items + 1, n_items + 1))
    joint[0, 0], joint[0, 1:], joint[1:, 0] = slope_variance, coupling, coupling
    joint[1:, 1:] = np.outer(coupling, coupling) / slope_variance
    joint[np.arange(1, n_items + 1), np.arange(1, n_items + 1)] = posterior.item_covariance[:, 1, 1]
    mean = np.append(posterior.item_mean[0, 0], posterior.item_mean[:, 1])
    prior = posterior.item_prior
    tight = replace(
        prior, mean_variance=np.full(2, 1e-12), shape=np.full(2, 1e12), rate=np.full(2, 2e12)
    )  # a known prior: mean 0, precision 1/2
    posterior = replace(posterior, item_prior=tight)
    expected = kl_by_entropy(mean, joint, np.zeros(n_items + 1), np.diag([10.0, *[2.0] * n_items]))
    assert item_divergence(posterior).sum() == pytest.approx(expected, rel=1e-6)
