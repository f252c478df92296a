from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from itembank.calibration.variational.updates import LEAST_SLOPE, note_of_least_slopes, with_positive_slopes
from tests.calibration.simulated import random_posterior


def test_items_move_to_the_most_probable_point_with_the_least_slope():
    posterior = replace(random_posterior(8, 12, 1), is_positive=True)
    moved = with_positive_slopes(posterior)
    below = posterior.item_mean[:, 0] < LEAST_SLOPE
    assert 0 < below.sum() < 12
    np.testing.assert_array_equal(moved.item_mean[~below], posterior.item_mean[~below])
    for item in np.flatnonzero(below):
        precision = np.linalg.inv(posterior.item_covariance[item])

        def distance(intercept, item=item, precision=precision):
            away = np.array([LEAST_SLOPE, intercept[0]]) - posterior.item_mean[item]
            return away @ precision @ away

        best = minimize(distance, [0.0], tol=1e-12).x[0]
        np.testing.assert_allclose(moved.item_mean[item], [LEAST_SLOPE, best], atol=1e-5)


def test_slopes_are_free_unless_asked_for():
    posterior = random_posterior(8, 12, 1)
    assert with_positive_slopes(posterior) is posterior


def test_least_slopes_are_counted():
    posterior = replace(random_posterior(8, 12, 1), is_positive=True)
    below = int(np.sum(posterior.item_mean[:, 0] < LEAST_SLOPE))
    assert f"{below} of 12 slopes" in note_of_least_slopes(with_positive_slopes(posterior))
    assert note_of_least_slopes(replace(posterior, is_positive=False)) == ""
    assert note_of_least_slopes(replace(posterior, item_mean=np.abs(posterior.item_mean) + 0.1)) == ""
