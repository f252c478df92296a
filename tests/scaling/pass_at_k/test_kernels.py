import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc, betaincc, betaln, gammaln
from scipy.stats import beta, hypergeom, kstest

from itembank.errors import DataError, ParameterError
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k import kernels as kernel
from itembank_scaling.pass_at_k.samples import SampleCounts, check_budget, cut_down, sample_counts, with_counts


def exact_failure(n, c, k):
    """C(n - c, k) / C(n, k) in whole numbers."""
    return Fraction(math.comb(n - c, k), math.comb(n, k))


def test_the_estimate_is_that_of_whole_numbers_of_enumeration_and_unbiased():
    n, c, k = (axis.ravel() for axis in np.meshgrid(*[np.arange(31)] * 3, indexing="ij"))
    inside = (n >= 1) & (c <= n) & (k >= 1) & (k <= n)
    n, c, k = n[inside], c[inside], k[inside]
    failure = [exact_failure(*cell) for cell in zip(n.tolist(), c.tolist(), k.tolist(), strict=True)]
    wanted = np.array([float(1 - one) for one in failure])
    np.testing.assert_allclose(kernel.unbiased_pass_at_k(n, c, k), wanted, rtol=1e-13, atol=1e-15)
    some = np.array([one > 0 for one in failure])
    logs = np.log([float(one) for one in failure if one > 0])
    np.testing.assert_allclose(kernel.log_unbiased_failure(n, c, k)[some], logs, rtol=1e-12, atol=1e-13)
    assert np.all(np.isneginf(kernel.log_unbiased_failure(n, c, k)[~some]))
    # enumerate the samples themselves: five, two of them right, every subset of three
    chosen = list(combinations([1, 1, 0, 0, 0], 3))
    assert kernel.unbiased_pass_at_k(5, 2, 3) == pytest.approx(np.mean([max(one) for one in chosen]), rel=1e-14)
    # the binomial average of the estimate is 1 - (1 - p)^k exactly
    n, p, k = 12, 0.07, 5
    counts = np.arange(n + 1)
    weights = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in counts])
    assert weights @ kernel.unbiased_pass_at_k(n, counts, k) == pytest.approx(1 - (1 - p) ** k, rel=1e-13)


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [
        *((4_000_000, 1, 1), (4_000_000, 3, 17), (3_720_320, 5, 1_000_000)),
        *((2_980_608, 2_900_000, 3), (1_000_000, 999, 500), (10_112, 7, 10_000)),
    ],
)
def test_millions_of_samples_keep_their_digits(n, c, k):
    """Against the product over min(c, k) factors, its logarithms summed exactly."""
    few, many = sorted((c, k))
    log_failure = math.fsum(math.log1p(-many / (n - j)) for j in range(few))
    assert kernel.unbiased_pass_at_k(n, c, k) == pytest.approx(-math.expm1(log_failure), rel=1e-13)
    naive = gammaln(n - c + 1) + gammaln(n - k + 1) - gammaln(n - c - k + 1) - gammaln(n + 1)
    assert kernel.log_unbiased_failure(n, c, k) == pytest.approx(naive, abs=1e-6)


def test_k_beyond_the_samples_has_no_value_and_small_and_certain_rates_keep_theirs():
    found = kernel.unbiased_pass_at_k(np.array([[10], [100]]), np.array([[3], [3]]), np.array([10, 11, 100, 101]))
    assert np.isnan(found).tolist() == [[False, True, True, True], [False, False, False, True]]
    assert found[0, 0] == 1.0
    rng = np.random.default_rng(0)
    n = rng.integers(50, 3_000_000, (10_000, 1))
    c = rng.integers(0, 4, (10_000, 1))
    k = np.unique(np.geomspace(1, 1e6, 50).round())
    found = kernel.unbiased_pass_at_k(n, c, k)
    assert found.shape == (10_000, k.size)
    rises = np.diff(found, axis=1)
    assert np.nanmin(rises) >= -1e-12
    np.testing.assert_allclose(found[:, 0], (c / n)[:, 0], rtol=1e-12)
    assert kernel.plug_in_pass_at_k(1e-12, 10.0) == pytest.approx(1e-11, rel=1e-9)
    assert kernel.plug_in_pass_at_k(np.array([0.0, 1.0]), 3.0).tolist() == [0.0, 1.0]
    assert kernel.plug_in_pass_at_k(0.25, 3.0) == pytest.approx(1 - 0.75**3, rel=1e-15)
    assert kernel.jeffreys_pass_at_k(50, 3, 1) == pytest.approx(beta(3.5, 47.5).mean(), rel=1e-14)
    # to first order in a, log E[(1-p)^k] = -a (psi(b + k) - psi(b)), here -a times a harmonic number
    harmonic = math.fsum(1.0 / j for j in range(1, 11))
    assert kernel.log_beta_failure(1e-7, 1.0, 10.0) == pytest.approx(-1e-7 * harmonic, rel=1e-6)


@pytest.mark.parametrize(("a", "b", "k"), [(0.5, 30.0, 1000.0), (2.5, 0.4, 3.0), (40.0, 7.0, 2.0), (1.5, 9.0, 1e4)])
def test_beta_pass_at_k_is_the_integral(a, b, k):
    wanted, _ = quad(lambda p: (1 - p) ** k, 0, 1, weight="alg", wvar=(a - 1, b - 1), limit=400, epsabs=0.0)
    wanted /= math.exp(betaln(a, b))
    assert math.exp(kernel.log_beta_failure(a, b, k)) == pytest.approx(wanted, rel=1e-7)
    assert kernel.beta_pass_at_k(a, b, k) == pytest.approx(1 - wanted, rel=1e-7)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 3000), st.data())
def test_more_samples_or_more_right_ones_never_lower_it(n, data):
    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    here = float(kernel.unbiased_pass_at_k(n, c, k))
    assert 0.0 <= here <= 1.0
    if c < n:
        assert kernel.unbiased_pass_at_k(n, c + 1, k) >= here - 1e-12
    if k < n:
        assert kernel.unbiased_pass_at_k(n, c, k + 1) >= here - 1e-12


N = 20_000


def redrawn(known, a, b):
    rng = np.random.default_rng(0)
    a, b = np.full((N, 1), a), np.full((N, 1), b)
    return known.redrawn(rng.beta(a, b), a, b, known.share(a, b), rng)[:, 0]


@pytest.mark.parametrize(
    ("a", "b", "m"),
    [(0.05, 50.0, 40.0), (0.02, 400.0, 40.0), (0.3, 300.0, 1000.0), (1e-8, 5.0, 7.0), (2.0, 3.0, 1.0), (0.5, 0.2, 3.0)],
)
def test_one_of_m_samples_was_right(a, b, m):
    """The density is that of the Beta times ``1 - (1 - p)^m``, over its mean."""
    all_fail = np.exp(betaln(a, b + m) - betaln(a, b))

    def below(p):
        return (betainc(a, b, p) - all_fail * betainc(a, b + m, p)) / (1.0 - all_fail)

    assert kstest(redrawn(kernel.KnownAbove(0.0, np.array([m])), a, b), below).pvalue > 1e-3


def test_rates_above_a_floor_and_those_of_which_nothing_more_is_known():
    a, b, floor = 0.3, 50.0, 0.01

    def below(p):
        return 1.0 - betaincc(a, b, p) / betaincc(a, b, floor)

    assert kstest(redrawn(kernel.KnownAbove(floor, np.array([np.nan])), a, b), below).pvalue > 1e-3
    rates = np.array([[0.2, 0.0, 1.0]])
    shapes, known = np.ones((1, 3)), kernel.KnownAbove(0.1, np.zeros(3))
    found = known.redrawn(rates, shapes, shapes, known.share(shapes, shapes), np.random.default_rng(0))
    np.testing.assert_array_equal(found, rates)


def matrix(rates, trials):
    return ResponseMatrix.create(np.array(rates, dtype=float), n_trials=None if trials is None else np.array(trials))


def test_counts_come_back_from_rates_of_any_precision():
    counts = sample_counts(matrix([[1 / 3, 0.5], [np.nan, 1.0]], [[3, 4_000_000], [0, 7]]))
    np.testing.assert_array_equal(counts.n_correct, [[1, 2_000_000], [0, 7]])
    np.testing.assert_array_equal(counts.n_trials, [[3, 4_000_000], [0, 7]])
    np.testing.assert_array_equal(counts.rates, [[1 / 3, 0.5], [np.nan, 1.0]])
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


def test_a_budget_draws_without_replacement_and_one_above_the_samples_names_the_cells():
    """Every cell's counts are hypergeometric; those of other models and empty cells stay."""
    n_trials = np.array([[10, 10, 0], [9, 9, 9]])
    n_correct = np.array([[3, 10, 0], [1, 2, 3]])
    counts, rows = SampleCounts(n_trials, n_correct), np.array([0])
    draws = [cut_down(counts, rows, 4, np.random.default_rng(seed)) for seed in range(3000)]
    assert all(one.n_trials.tolist() == [[4, 4, 0], [9, 9, 9]] for one in draws)
    got = np.array([one.n_correct for one in draws])
    assert np.all(got[:, 0, 1] == 4)
    assert np.all(got[:, 1] == [1, 2, 3])
    shares = np.bincount(got[:, 0, 0], minlength=5) / len(draws)
    np.testing.assert_allclose(shares, hypergeom(10, 3, 4).pmf(np.arange(5)), atol=0.035)
    np.testing.assert_array_equal(n_correct[0], [3, 10, 0])
    # the first item of the first model is cut; the second has fewer samples than the budget, and keeps them
    counts = SampleCounts(np.array([[10, 3], [9, 9]]), np.array([[10, 2], [9, 9]]))
    found = cut_down(counts, np.array([0]), 4, np.random.default_rng(0), columns=np.array([0]))
    assert found.n_trials.tolist() == [[4, 3], [9, 9]]
    assert found.n_correct.tolist() == [[4, 2], [9, 9]]
    counts = SampleCounts(np.array([[10, 3], [2, 10]]), np.array([[1, 1], [1, 1]]))
    responses = with_counts(matrix(counts.rates, counts.n_trials), counts)
    check_budget(counts, 3, responses, np.array([0]))
    with pytest.raises(DataError, match=r"fewer samples in 1 of 2 cells: 'model-1' item 'item-2' = 3\..*of 3"):
        check_budget(counts, 5, responses, np.array([0]))
    with pytest.raises(ParameterError, match="budget must be a whole number >= 1, got 0"):
        check_budget(counts, 0, responses, np.array([0]))
    counts = SampleCounts(np.array([[4, 6]]), np.array([[1, 2]])).spread(np.array([3, 0]), 5)
    assert counts.n_trials.tolist() == [[6, 0, 0, 4, 0]]
    assert counts.n_correct.tolist() == [[2, 0, 0, 1, 0]]
