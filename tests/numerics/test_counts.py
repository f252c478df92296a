"""Which responses are shares of right attempts, and which are means of graded ones."""

import numpy as np
import pytest

from itembank.numerics.paired import is_count


@pytest.mark.parametrize("n", [2, 8, 64, 100, 1000])
def test_shares_are_counts_in_double_and_single_precision_and_rounded(n):
    shares = np.arange(n + 1) / n
    for given in (shares, shares.astype(np.float32), *(np.round(shares, decimals) for decimals in (2, 3, 4, 6))):
        assert is_count(given, np.full(n + 1, n)).all()


@pytest.mark.parametrize("n", [2, 8, 100, 128, 5000])
def test_means_of_graded_attempts_are_none_however_many_there_are(n):
    graded = np.random.default_rng(n).beta(0.8, 0.6, (400, n)).mean(axis=1)
    assert is_count(graded, np.full(400, n)).mean() < 0.02
    quarters = np.random.default_rng(n).integers(0, 5, (400, n)).mean(axis=1) / 4.0
    assert is_count(quarters, np.full(400, n)).mean() == pytest.approx(0.25, abs=0.15)  # those that are whole by chance


def test_rounded_to_two_decimals_a_mean_of_eight_shows_and_one_of_a_hundred_cannot():
    graded = np.round(np.random.default_rng(3).uniform(size=500), 2)
    assert is_count(graded, np.full(500, 8)).mean() < 0.3
    assert is_count(graded, np.full(500, 100)).all()


def test_a_single_attempt_is_right_or_wrong():
    assert is_count(np.array([0.0, 1.0, 0.5, 0.996]), np.ones(4)).tolist() == [True, True, False, False]
