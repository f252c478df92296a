import numpy as np
import pytest

from itembank.scaling.pretraining.size_law import fit_sizes, log_sizes

A, B, ALPHA, BETA = 406.4, 410.7, 0.34, 0.28
"""Hoffmann et al. 2022, eq. 10: the fit of Chinchilla's runs."""


def published(params, tokens):
    """Less of the published loss is more of an ability; tenfold, so that its noise is small beside it."""
    return -10.0 * (A / params**ALPHA + B / tokens**BETA)


@pytest.fixture
def runs(rng):
    """Log N and log D of 40 runs over three powers of ten each, and their abilities."""
    params, tokens = 10.0 ** rng.uniform(7.5, 10.0, 40), 10.0 ** rng.uniform(9.0, 11.5, 40)
    sizes = np.log(np.stack([params, tokens], axis=1))
    return sizes, published(params, tokens) + 0.02 * rng.standard_normal(40)


def test_published_exponents_come_back_from_runs_that_they_made(runs):
    sizes, theta = runs
    laws = fit_sizes(sizes, np.zeros(40, dtype=np.int64), theta, np.full(40, 1e-6))
    np.testing.assert_allclose(laws.mean_exponents, [ALPHA, BETA], atol=0.06)
    mean, _ = laws.predict(np.log([[7e10, 1.4e12]]), np.array([0]))
    assert mean[0] == pytest.approx(published(7e10, 1.4e12), abs=0.6)  # sevenfold beyond; abilities span 13


def test_tokens_are_compute_over_six_times_the_parameters():
    found = log_sizes(np.log([6.0 * 7e10 * 1.4e12]), np.log([7e10]))
    np.testing.assert_allclose(found, np.log([[7e10, 1.4e12]]))


def test_the_law_is_as_sure_of_runs_it_has_seen_as_their_noise_allows(runs):
    sizes, theta = runs
    recipe = np.zeros(40, dtype=np.int64)
    laws = fit_sizes(sizes, recipe, theta, np.full(40, 1e-6))
    error = np.sqrt(laws.predict(sizes, recipe)[1])
    assert error.min() > 0.019
    assert error.max() < 0.1
    far = np.sqrt(laws.predict(np.log([[7e13, 1.4e15]]), recipe[:1])[1])
    assert far[0] > 3.0 * error.max()
