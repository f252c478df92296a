import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from itembank.studies.metrics import (
    clustered_mean,
    clustered_ratio,
    is_covered,
    pair_agreement,
    spearman,
)


@pytest.mark.parametrize("digits", [8, 1], ids=["no ties", "many ties"])
def test_rank_correlations_are_scipy_s(rng, digits):
    truth, estimates = np.round(rng.random((2, 20, 30)), digits)
    expected = [spearmanr(one, other).statistic for one, other in zip(truth, estimates, strict=True)]
    np.testing.assert_allclose(spearman(truth, estimates), expected, atol=1e-12)
    for one, other in zip(truth, estimates, strict=True):
        assert pair_agreement(one, other)[0] == pytest.approx(kendalltau(one, other).statistic, abs=1e-12)


def test_rank_correlations_of_equal_scores_are_unknown():
    equal, rising = np.full(4, 0.5), np.arange(4) / 4
    assert np.isnan(spearman(equal[None], rising[None])[0])
    assert np.isnan(pair_agreement(rising, equal)[0])
    assert np.isnan(pair_agreement(equal, rising)).all()


def test_rounding_breaks_no_tie():
    truth = np.array([0.3, 0.1 + 0.2, 0.9])
    assert truth[0] != truth[1]
    assert pair_agreement(truth, np.array([0.2, 0.1, 0.8])) == (pytest.approx(2 / np.sqrt(2 * 3)), 1.0)


def test_share_of_right_pairs_by_hand():
    # True order a < b < c = d. Pairs that differ: ab right, ac tied, ad right, bc wrong, bd right.
    _, share = pair_agreement(np.array([0.1, 0.2, 0.3, 0.3]), np.array([0.1, 0.3, 0.1, 0.4]))
    assert share == pytest.approx((1 + 0.5 + 1 + 0 + 1) / 5)


def test_clusters_of_one_size_have_the_error_of_their_means(rng):
    values = rng.normal(size=(7, 5))
    mean, error = clustered_mean(values.ravel(), np.repeat(np.arange(7), 5))
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.mean(axis=1).std(ddof=1) / np.sqrt(7))


def test_clusters_of_unequal_size_by_hand():
    # Clusters (1, 3) and (5): mean 3, residuals 4 - 6 = -2 and 5 - 3 = 2; SE^2 = 2/1 (4 + 4) / 9.
    mean, error = clustered_mean(np.array([1.0, 3.0, 5.0]), np.array([4, 4, 9]))
    assert (mean, error) == (3.0, pytest.approx(np.sqrt(16) / 3))


def test_one_cluster_has_no_error_and_nothing_no_mean():
    assert np.isnan(clustered_mean(np.ones(3), np.zeros(3, dtype=int))[1])
    assert np.isnan(clustered_mean(np.ones(0), np.zeros(0, dtype=int))).all()


def test_the_clustered_error_is_that_of_repetition(rng):
    # Values that share an effect of their cluster: over many data sets the mean spreads as the error says.
    cluster = np.repeat(np.arange(12), 4)
    found = [clustered_mean(rng.normal(size=12)[cluster] + rng.normal(size=48), cluster) for _ in range(2000)]
    means, errors = np.array(found).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(means.std(), rel=0.05)


def test_the_ratio_of_paired_values_by_hand():
    # Sums of clusters (3, 4) and (5, 2): ratio 8/6; residuals 3 - 16/3, 5 - 8/3; SE^2 = 2 (49/9 + 49/9) / 36.
    first, second = np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 2.0])
    ratio, error = clustered_ratio(first, second, np.array([0, 0, 1]))
    assert (ratio, error) == (pytest.approx(8 / 6), pytest.approx(np.sqrt(2 * 98 / 9) / 6))
    assert np.isnan(clustered_ratio(first, second, np.zeros(3, dtype=int))[1])
    assert np.isnan(clustered_ratio(first, np.zeros(3), np.arange(3))).all()


def test_the_error_of_a_ratio_is_that_of_repetition(rng):
    cluster = np.repeat(np.arange(20), 5)
    found = []
    for _ in range(2000):
        hard = rng.gamma(4.0, size=20)[cluster]  # what makes both errors large
        found.append(clustered_ratio(0.7 * hard * rng.gamma(9.0, size=100), hard * rng.gamma(9.0, size=100), cluster))
    ratios, errors = np.array(found).T
    assert ratios.mean() == pytest.approx(0.7, abs=0.003)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(ratios.std(), rel=0.08)


def test_coverage_counts_the_ends():
    truth = np.array([0.1, 0.2, 0.3, np.nextafter(0.4, 1.0), 0.41])
    low, high = np.array([0.1, 0.1, 0.31, 0.3, 0.3]), np.array([0.2, 0.2, 0.4, 0.4, 0.4])
    assert is_covered(truth, low, high).tolist() == [True, True, False, True, False]
