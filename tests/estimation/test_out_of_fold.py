import dataclasses

import numpy as np
import pytest

from itembank.estimation.calibrated_scores import OutOfFold, without_sampling_error
from itembank.numerics.intervals import calibrated_half_widths


def made_up(rng, sampling=0.03, n_models=600):
    """Estimates whose errors have the sizes `scale`; a third of the truths are exact, the others hardly known."""
    scale = rng.uniform(0.01, 0.03, (n_models, 1))
    truth, variance = rng.random((n_models, 1)), np.full((n_models, 1), sampling**2)
    variance[: n_models // 3] = 0.0
    observed = truth + np.sqrt(variance) * rng.standard_normal(truth.shape)
    value = truth + 1.5 * scale * rng.standard_normal(truth.shape)
    return OutOfFold(observed, value, scale, scale, variance), value - truth


def test_errors_get_the_size_that_they_have_against_the_truth(rng):
    found, true = made_up(rng)
    raw = found.value - found.truth
    size, raw_size, true_size = (np.sqrt(np.mean(error**2)) for error in (found.error, raw, true))
    assert raw_size > 1.2 * true_size
    assert size == pytest.approx(true_size, rel=0.1)
    np.testing.assert_array_equal(found.error[:200], raw[:200])


def test_intervals_are_as_wide_as_with_the_truth(rng):
    found, true = made_up(rng)
    ones = np.ones((1, 1))
    half, of_truth = (calibrated_half_widths(e, found.scale, ones, level=0.95)[0, 0] for e in (found.error, true))
    raw = calibrated_half_widths(found.value - found.truth, found.scale, ones, level=0.95)[0, 0]
    assert half == pytest.approx(of_truth, rel=0.12)
    assert raw > 1.25 * of_truth


def test_exact_truths_leave_errors_as_they_are(rng):
    found, _ = made_up(rng, sampling=0.0)
    np.testing.assert_array_equal(found.error, found.value - found.truth)
    np.testing.assert_array_equal(dataclasses.replace(found, truth_variance=None).error, found.error)


def test_no_more_than_three_quarters_of_the_squared_errors_are_taken_out(rng):
    error = rng.standard_normal((50, 1))
    ones = np.ones(error.shape)
    found = without_sampling_error(error, 100.0 * ones, ones)
    assert 0.0 < np.mean(found**2) < 0.25 * np.mean(error**2)
    assert np.isnan(without_sampling_error(np.array([[np.nan], [1.0]]), np.array([[np.nan], [1.0]]), ones[:2])[0, 0])
