import numpy as np
import pytest
from scipy.stats import hypergeom

from itembank.errors import DataError, ParameterError
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k.samples import SampleCounts, check_budget, cut_down, sample_counts, with_counts


def matrix(rates, trials):
    return ResponseMatrix.create(np.array(rates, dtype=float), n_trials=None if trials is None else np.array(trials))


def test_counts_come_back_from_rates():
    counts = sample_counts(matrix([[1 / 3, 0.5], [np.nan, 1.0]], [[3, 4_000_000], [0, 7]]))
    np.testing.assert_array_equal(counts.n_correct, [[1, 2_000_000], [0, 7]])
    np.testing.assert_array_equal(counts.n_trials, [[3, 4_000_000], [0, 7]])
    np.testing.assert_array_equal(counts.rates, [[1 / 3, 0.5], [np.nan, 1.0]])


def test_rates_in_single_precision_are_counts_too():
    n, c = 2_980_608, 1_000_001
    assert sample_counts(matrix([[np.float32(c / n)]], [[n]])).n_correct[0, 0] == pytest.approx(c, abs=1)
    exact = np.float64(np.float32(7 / 10_112))
    assert sample_counts(matrix([[exact]], [[10_112]])).n_correct[0, 0] == 7


@pytest.mark.parametrize(
    ("rates", "trials", "words"),
    [
        ([[0.3, 0.4]], None, "repeats='count'.*shares or probabilities"),
        ([[0.0, 1.0]], None, "all 0 or 1"),
        ([[0.5, 0.5]], [[2, 0]], "n_trials must be at least 1.*'model-1' item 'item-2'"),
        ([[0.5, 0.25]], [[2, 3]], "whole number of right samples.*'item-2' = 0.75"),
        ([[0.0, 1.0]], [[1, 1]], "one sample of each"),
    ],
)
def test_what_has_no_counts_is_refused(rates, trials, words):
    with pytest.raises(DataError, match=words):
        sample_counts(matrix(rates, trials))


def test_a_budget_draws_without_replacement():
    """Every cell's counts are hypergeometric; those of other models and empty cells stay."""
    n_trials = np.array([[10, 10, 0], [9, 9, 9]])
    n_correct = np.array([[3, 10, 0], [1, 2, 3]])
    draws = [
        cut_down(SampleCounts(n_trials, n_correct), np.array([0]), 4, np.random.default_rng(seed))
        for seed in range(3000)
    ]
    assert all(one.n_trials.tolist() == [[4, 4, 0], [9, 9, 9]] for one in draws)
    got = np.array([one.n_correct for one in draws])
    assert np.all(got[:, 0, 1] == 4)
    assert np.all(got[:, 1] == [1, 2, 3])
    shares = np.bincount(got[:, 0, 0], minlength=5) / len(draws)
    np.testing.assert_allclose(shares, hypergeom(10, 3, 4).pmf(np.arange(5)), atol=0.035)
    np.testing.assert_array_equal(n_correct[0], [3, 10, 0])


def test_a_budget_of_some_items_leaves_the_others():
    """The first item of the first model is cut; the second has fewer samples than the budget, and keeps them."""
    counts = SampleCounts(np.array([[10, 3], [9, 9]]), np.array([[10, 2], [9, 9]]))
    found = cut_down(counts, np.array([0]), 4, np.random.default_rng(0), columns=np.array([0]))
    assert found.n_trials.tolist() == [[4, 3], [9, 9]]
    assert found.n_correct.tolist() == [[4, 2], [9, 9]]


def test_a_budget_above_the_samples_names_the_cells():
    counts = SampleCounts(np.array([[10, 3], [2, 10]]), np.array([[1, 1], [1, 1]]))
    responses = with_counts(matrix(counts.rates, counts.n_trials), counts)
    check_budget(counts, 3, responses, np.array([0]))
    with pytest.raises(DataError, match=r"fewer samples in 1 of 2 cells: 'model-1' item 'item-2' = 3\..*of 3"):
        check_budget(counts, 5, responses, np.array([0]))
    with pytest.raises(ParameterError, match="budget must be a whole number >= 1, got 0"):
        check_budget(counts, 0, responses, np.array([0]))


def test_counts_spread_over_a_bank():
    counts = SampleCounts(np.array([[4, 6]]), np.array([[1, 2]])).spread(np.array([3, 0]), 5)
    assert counts.n_trials.tolist() == [[6, 0, 0, 4, 0]]
    assert counts.n_correct.tolist() == [[2, 0, 0, 1, 0]]
