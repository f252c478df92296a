import numpy as np
import pytest
from scipy.stats import betabinom

from itembank.scaling.sampling.expected_variance import best_purchases, count_nodes, expected_variances
from itembank.scaling.sampling.pass_at_k import beta_failure_variance

A, B = np.array([[0.02, 0.5, 2.0, 0.3]]), np.array([[3.0, 60.0, 40.0, 0.4]])


def test_no_samples_leave_what_there_is():
    found = expected_variances(A, B, 20.0, np.array([0]))
    np.testing.assert_allclose(found.within[0], beta_failure_variance(A, B, 20.0)[0], rtol=1e-12)
    np.testing.assert_allclose(found.between[0], 0.0, atol=1e-30)


def test_what_is_left_is_the_mean_over_simulated_samples():
    rng = np.random.default_rng(0)
    m, k, n = 7, 20.0, 400_000
    found = expected_variances(A, B, k, np.array([m]))
    rates = rng.beta(A[0], B[0], (n, 4))
    counts = rng.binomial(m, rates)
    left = beta_failure_variance(A + counts, B + m - counts, k)
    np.testing.assert_allclose(found.within[0], left.mean(axis=0), atol=5 * (left.std(axis=0) / n**0.5).max())


def test_between_is_the_spread_of_means_given_the_same_samples():
    """Two draws of ability; average over the counts of the squared half-difference of their posterior means."""
    a, b, m = np.array([[0.4], [1.2]]), np.array([[8.0], [7.0]]), 3
    found = expected_variances(a, b, 1.0, np.array([0, m]))
    means = (a / (a + b))[:, 0]
    assert found.between[0, 0] == pytest.approx(means.var(), rel=1e-12)
    # k = 1: the failure's mean is 1 - (a + c) / (a + b + m), so its spread shrinks like the means of the rates do
    counts = np.arange(m + 1)
    posterior = (a + counts) / (a + b + m)
    weights = np.mean([betabinom(m, a[d, 0], b[d, 0]).pmf(counts) for d in (0, 1)], axis=0)
    assert found.between[1, 0] == pytest.approx(weights @ posterior.var(axis=0), rel=1e-12)


@pytest.mark.parametrize("m", [100, 1000, 10_000])
def test_sums_with_steps_are_close_to_full_sums(m, monkeypatch):
    quick = expected_variances(A, B, 100.0, np.array([m])).within
    monkeypatch.setattr(
        "itembank.scaling.sampling.expected_variance.count_nodes", lambda m: (np.arange(m + 1.0), np.ones(m + 1))
    )
    np.testing.assert_allclose(quick, expected_variances(A, B, 100.0, np.array([m])).within, rtol=0.02)


def test_weights_of_counts_sum_straight_lines():
    for m in (0, 5, 88, 89, 1000, 12_345):
        counts, weights = count_nodes(m)
        assert weights.sum() == pytest.approx(m + 1)
        assert weights @ counts == pytest.approx(m * (m + 1) / 2)


def test_purchases_beat_every_other_way_of_spending_as_much():
    rng = np.random.default_rng(2)
    n_more = np.array([0, 1, 2, 4])
    variances = np.sort(rng.random((4, 3)), axis=0)[::-1]
    items, steps = best_purchases(variances, n_more)
    at = np.zeros(3, dtype=int)
    every = np.array(np.meshgrid(*[np.arange(4)] * 3)).reshape(3, -1)
    costs = n_more[every].sum(axis=0)
    left = variances[every, np.arange(3)[:, None]].sum(axis=0)
    for item, step in zip(items, steps, strict=True):
        at[item] = step
        spent = n_more[at].sum()
        assert variances[at, np.arange(3)].sum() <= left[costs <= spent].min() + 1e-12
    assert at.tolist() == [3, 3, 3]
