"""Boundaries against published constants and simulation; bounds against Wilson's interval."""

import numpy as np
import pytest
from scipy.stats import binomtest, t

from itembank.numerics.looks import (
    constant_boundary,
    crossing_probability,
    lower_bound,
    null_variance,
    student_boundary,
    upper_bound,
)


@pytest.mark.parametrize(("n_looks", "published"), [(1, 1.960), (2, 2.178), (3, 2.289), (5, 2.413), (10, 2.555)])
def test_boundary_is_the_published_one(n_looks: int, published: float) -> None:
    """Jennison & Turnbull (2000), table 2.1, at equal steps; the other side adds nothing to three digits."""
    assert constant_boundary(tuple(range(1, n_looks + 1)), 0.025) == pytest.approx(published, abs=6e-4)


def test_crossing_probability_agrees_with_simulated_paths() -> None:
    """Of looks at unequal steps, as those of a finite number of items are."""
    information = np.array([1.0 / (1.0 / n - 1.0 / 552) for n in (25, 49, 97, 190, 372, 500)])
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((200_000, information.size)) * np.sqrt(np.diff(information, prepend=0.0))
    crossed = (np.cumsum(steps, axis=1) / np.sqrt(information) > 2.1).any(axis=1).mean()
    assert crossing_probability(information, 2.1) == pytest.approx(crossed, abs=0.002)


@pytest.mark.parametrize(("n_items", "n_falls"), [(50, 0), (100, 1), (200, 7)])
def test_bound_on_falls_alone_is_wilsons(n_items: int, n_falls: int) -> None:
    """Where answers only fall, the difference is a proportion, and its bound Wilson's without correction."""
    drop = n_falls / n_items
    wilson = binomtest(n_falls, n_items).proportion_ci(0.9, method="wilson").high
    bound = lower_bound(-drop, 0.0, 1.0 / n_items, (drop, 0.0), 1.6448536269514722)
    assert -bound == pytest.approx(wilson, rel=1e-9)
    assert upper_bound(drop, 0.0, 1.0 / n_items, (0.0, drop), 1.6448536269514722) == pytest.approx(wilson, rel=1e-9)


def test_null_variance_is_at_the_highest_likelihood() -> None:
    """Of falls and rises whose difference is given, by search."""
    f, r, m = 0.06, 0.02, 0.1
    q = np.linspace(1e-6, 0.4, 400_001)
    likelihood = f * np.log(q + m) + r * np.log(q) + (1 - f - r) * np.log(1 - 2 * q - m)
    best = q[np.argmax(likelihood)]
    assert null_variance(-m, (f, r)) == pytest.approx(2 * best + m - m**2, abs=1e-5)
    assert null_variance(m, (r, f)) == pytest.approx(null_variance(-m, (f, r)))


def test_bound_is_the_usual_one_where_many_answers_differ() -> None:
    """The variance that was seen counts where it is larger than the least."""
    assert lower_bound(0.01, 0.02**2, 1e-4, (0.02, 0.03), 2.0) == pytest.approx(0.01 - 0.04)


@pytest.mark.parametrize("degrees", [1.0, 20.0, 99.0, 100.0, 750.0, np.inf])
def test_students_boundary_is_crossed_as_rarely(degrees: float) -> None:
    """By few degrees of freedom and by many."""
    assert student_boundary(2.4, degrees) == pytest.approx(t.isf(0.008197535924596, degrees), rel=1e-7)
