import numpy as np

from itembank.estimation.point_methods import weighted_means


def test_weighted_means_are_over_what_was_answered():
    responses = np.array([[1.0, 0.0, 0.5], [1.0, np.nan, 0.0], [np.nan, np.nan, 1.0], [np.nan] * 3])
    found = weighted_means(responses, np.array([1.0, 3.0, 0.0]))
    np.testing.assert_array_equal(found, [0.25, 1.0, np.nan, np.nan])
