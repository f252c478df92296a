from dataclasses import replace

import numpy as np
import pytest

from itembank.calibration.variational.updates import update_common_slope
from tests.calibration.simulated import random_posterior

N_ITEMS = 6


def statistics(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N_ITEMS, 2, 2))
    return root @ root.swapaxes(1, 2) + 0.1 * np.eye(2), rng.normal(size=(N_ITEMS, 2))


def dense(posterior, precision, linear):
    """Natural parameters of slope and intercepts as one dense matrix and vector, the prior included."""
    prior = posterior.item_prior
    whole, right = np.zeros((N_ITEMS + 1, N_ITEMS + 1)), np.zeros(N_ITEMS + 1)
    whole[0, 0], right[0] = precision[:, 0, 0].sum() + 0.1, linear[:, 0].sum()
    whole[0, 1:] = whole[1:, 0] = precision[:, 0, 1]
    whole[np.arange(1, N_ITEMS + 1), np.arange(1, N_ITEMS + 1)] = precision[:, 1, 1] + prior.precision[1]
    right[1:] = linear[:, 1] + prior.precision[1] * prior.mean[1]
    return whole, right


def check(posterior, whole, right):
    covariance = np.linalg.inv(whole)
    mean = covariance @ right
    np.testing.assert_allclose(posterior.item_mean[:, 0], mean[0], rtol=1e-9)
    np.testing.assert_allclose(posterior.item_mean[:, 1], mean[1:], rtol=1e-9)
    np.testing.assert_allclose(posterior.item_covariance[:, 0, 0], covariance[0, 0], rtol=1e-9)
    np.testing.assert_allclose(posterior.item_covariance[:, 0, 1], covariance[0, 1:], rtol=1e-9)
    np.testing.assert_allclose(posterior.item_covariance[:, 1, 1], np.diag(covariance)[1:], rtol=1e-9)


@pytest.fixture
def start():
    return replace(random_posterior(5, N_ITEMS, 1), has_common_slope=True)


def test_update_is_the_dense_solution(start):
    precision, linear = statistics(0)
    check(update_common_slope(start, precision, linear, 1.0), *dense(start, precision, linear))


def test_a_short_step_lies_between_the_natural_parameters(start):
    first, second = statistics(0), statistics(1)
    before = update_common_slope(start, *first, 1.0)
    after = update_common_slope(before, *second, 0.3)
    old, new = dense(start, *first), dense(before, *second)
    check(after, 0.7 * old[0] + 0.3 * new[0], 0.7 * old[1] + 0.3 * new[1])
