import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.selection.random_items import expected_counts, random_counts, rounded_counts


def test_parts_that_are_too_small_give_the_rest_to_the_others():
    expected = expected_counts(20, np.ones(4), np.array([2, 100, 5, 100]))
    np.testing.assert_allclose(expected, [2.0, 6.5, 5.0, 6.5])


def test_a_share_is_a_proportion():
    np.testing.assert_allclose(expected_counts(12, np.array([1.0, 2.0, 3.0]), np.array([50, 50, 50])), [2, 4, 6])


def test_the_remainder_goes_to_the_larger_parts():
    capacities = np.array([10, 30, 20])
    np.testing.assert_array_equal(rounded_counts(expected_counts(8, np.ones(3), capacities), capacities), [2, 3, 3])


def test_fractions_that_agree_to_rounding_are_equal():
    """What is left of 2.5 and 2.5 goes to the larger part, whatever the last digits say."""
    for rest in (0.0, 2e-7, -2e-7):
        counts = rounded_counts(np.array([2.5 + rest, 2.5 - rest]), np.array([3, 10]))
        np.testing.assert_array_equal(counts, [2, 3])


@st.composite
def allocations(draw):
    capacities = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any))
    shares = draw(st.lists(st.floats(0.05, 5.0), min_size=len(capacities), max_size=len(capacities)))
    return draw(st.integers(1, sum(capacities))), np.array(shares), np.array(capacities)


@given(allocations(), st.integers(0, 100))
def test_counts_add_up_and_fit_and_are_the_expected_ones_rounded(allocation, seed):
    n_items, shares, capacities = allocation
    expected = expected_counts(n_items, shares, capacities)
    assert expected.sum() == pytest.approx(n_items)
    assert np.all(expected <= capacities)
    for counts in (rounded_counts(expected, capacities), random_counts(expected, np.random.default_rng(seed))):
        assert counts.sum() == n_items
        assert np.all((counts >= 0) & (counts <= capacities))
        assert np.all(np.abs(counts - expected) < 1.0 + 1e-6)


@given(st.integers(1, 40), st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_equal_shares_differ_by_at_most_one_unless_full(n_items, sizes):
    capacities = np.array(sizes)
    n_items = min(n_items, int(capacities.sum()))
    counts = rounded_counts(expected_counts(n_items, np.ones(len(sizes)), capacities), capacities)
    open_counts = counts[counts < capacities]
    assert counts.max() - (open_counts.min() if open_counts.size else counts.max()) <= 1


def test_random_counts_have_the_expected_means(rng):
    expected = np.array([0.2, 1.7, 3.0, 0.6, 2.5])
    draws = np.array([random_counts(expected, rng) for _ in range(5000)])
    # a count is its floor plus a Bernoulli of the fraction: four standard errors
    error = np.sqrt((expected % 1.0) * (1.0 - expected % 1.0) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - expected) <= 4.0 * error)
