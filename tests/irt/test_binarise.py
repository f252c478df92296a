import numpy as np

from itembank.irt.binarise import apply_thresholds


def test_a_response_at_the_threshold_counts_as_right():
    binary = apply_thresholds(np.array([[0.49, 0.5, 0.51]]), np.full(3, 0.5))
    np.testing.assert_array_equal(binary, [[0.0, 1.0, 1.0]])


def test_missing_stays_missing_and_items_without_threshold_stay_as_they_are():
    responses = np.array([[np.nan, 0.3, 0.3], [0.9, np.nan, 0.1]])
    binary = apply_thresholds(responses, np.array([0.5, np.nan, 0.2]))
    np.testing.assert_array_equal(binary, [[np.nan, 0.3, 1.0], [1.0, np.nan, 0.0]])
    assert responses[0, 1] == 0.3
    assert np.isnan(responses[0, 0])
