"""The paired difference against textbook results, enumeration, and simulation of samples with known truth."""

import numpy as np
import pytest
from scipy.stats import binomtest, multinomial, t, ttest_rel

from itembank.numerics import looks
from itembank.numerics.paired import balanced_order, paired_look, run_chance


def test_without_end_it_is_the_paired_t_test_of_all_items_the_difference_itself_and_copies_are_one_draw():
    """Difference, standard error and degrees of freedom."""
    rng = np.random.default_rng(0)
    one, other = (rng.random(40) < 0.6).astype(float), (rng.random(40) < 0.5).astype(float)
    look, test = paired_look(one, other, is_finite=False), ttest_rel(other, one)
    assert look.difference / np.sqrt(look.variance) == pytest.approx(test.statistic)
    assert look.degrees == test.df
    # of one run nothing is left to chance; over repeated runs all of it may be
    one, other = np.random.default_rng(1).random((2, 30))
    exact = paired_look(one, other)
    assert (exact.is_exact, exact.variance) == (True, 0.0)
    assert exact.difference == pytest.approx((other - one).mean())
    assert not paired_look(one, other, is_finite=False).is_exact
    # items that all stand four times give the variance of a quarter of the items
    rng = np.random.default_rng(3)
    one, other = (rng.random((2, 50)) < 0.5).astype(float)
    single = paired_look(one, other, is_finite=False)
    copied = paired_look(np.repeat(one, 4), np.repeat(other, 4), clusters=np.repeat(np.arange(50), 4), is_finite=False)
    assert copied.variance == pytest.approx(single.variance)
    assert copied.unit == pytest.approx(single.unit)
    assert copied.degrees == single.degrees


@pytest.mark.parametrize("several", [(4, 4), (4, 1), (1, 4)])  # attempts at every fifth item; one at others
def test_the_chance_of_a_run_is_that_of_all_items_also_of_those_tried_once(several: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(0.8, 0.8, 400)
    trials = np.where(np.arange(400) % 5 == 0, np.array(several)[:, None], 1)
    expected = np.mean((p * (1.0 - p) / trials).sum(axis=0))
    found = [run_chance(rng.binomial(trials, p) / trials, trials) for _ in range(300)]
    assert np.mean(found) == pytest.approx(expected, rel=0.05)
    graded = np.array([[0.5, 0.75], [0.5, 0.6]])  # 0.6 of 4 attempts is no count
    assert run_chance(graded, np.full((2, 2), 4)) is None


@pytest.mark.parametrize("has_probabilities", [False, True])
def test_samples_of_known_items_hold_what_is_promised(has_probabilities: bool) -> None:
    """No bias, the variance that is stated, and a smaller one than the mean of the sample has."""
    rng = np.random.default_rng(2)
    n_items, n_asked = 600, 120
    p = np.clip(rng.beta(1.0, 0.7, n_items) + rng.normal(0.0, 0.1, (2, n_items)), 0.02, 0.98)
    errors, plain, seen = [], [], []
    for _ in range(600):
        one, other = (rng.random((2, n_items)) < p).astype(float)
        asked = rng.choice(n_items, n_asked, replace=False)
        candidate = np.full(n_items, np.nan)
        candidate[asked] = other[asked]
        known = np.stack([p[0], np.where(np.isnan(candidate), np.nan, p[1])]) if has_probabilities else None
        seen.append(paired_look(one, candidate, probabilities=known))
        errors.append(seen[-1].difference - (other - one).mean())
        plain.append((other - one)[asked].mean() - (other - one).mean())
    assert abs(np.mean(errors)) < 4 * np.std(plain) / np.sqrt(600)
    assert np.std(errors) < (0.75 if has_probabilities else 0.97) * np.std(plain)
    stated = np.mean([look.variance for look in seen])
    assert 0.8 < stated / np.mean(np.square(errors)) < 1.6


@pytest.mark.parametrize(("n_items", "margin", "rise"), [(60, 0.1, 0.0), (60, 0.1, 0.1), (200, 0.03, 0.0)])
def test_a_drop_of_the_margin_passes_as_rarely_as_said(n_items: int, margin: float, rise: float) -> None:
    """All counts of falls and rises, with their probabilities: few flips are where normal bounds are wrong."""
    most = n_items if rise else 40
    falls, rises = (grid.ravel() for grid in np.meshgrid(np.arange(most + 1), np.arange((30 if rise else 0) + 1)))
    is_possible = falls + rises <= n_items
    falls, rises = falls[is_possible], rises[is_possible]
    outcomes = np.column_stack([falls, rises, n_items - falls - rises])
    probability = multinomial.pmf(outcomes, n_items, [margin + rise, rise, 1.0 - margin - 2.0 * rise])
    passed = np.zeros(falls.size, dtype=bool)
    for row in np.flatnonzero(probability > 1e-9):
        d = np.zeros(n_items)
        d[: falls[row]], d[falls[row] : falls[row] + rises[row]] = -1.0, 1.0
        look = paired_look((d < 0).astype(float), (d > 0).astype(float), is_finite=False)
        boundary = looks.student_boundary(1.6448536, look.degrees)
        passed[row] = looks.lower_bound(look.difference, look.variance, look.unit, look.flips, boundary) > -margin
    assert probability[passed].sum() < 0.065


@pytest.mark.parametrize("kind", ["graded", "clusters"])
def test_rare_large_drops_pass_as_rarely_as_said(kind: str) -> None:
    """Of 50 graded answers a few fall far, or of 20 documents a tenth falls: 18 and 15 % passed."""
    rng, n, doc = np.random.default_rng(5), 50 if kind == "graded" else 200, np.repeat(np.arange(20), 10)
    fell = rng.random((3000, n)) < 0.06 if kind == "graded" else (rng.random((3000, 20)) < 0.1)[:, doc]
    size = rng.random((3000, n)) if kind == "graded" else rng.random((3000, n)) < 0.5
    noise = (rng.random((3000, n)) < 0.02) & (kind != "graded")
    drops = np.where(noise, 1.0, fell * size)
    n_passed = 0
    for row in drops[:600]:
        clusters = None if kind == "graded" else doc
        look = paired_look(np.ones(n), 1.0 - row, clusters=clusters, is_finite=False)
        known = look.difference, look.variance, look.unit, look.flips
        n_passed += looks.lower_bound(*known, looks.student_boundary(1.6448536, look.degrees)) > -drops.mean()
    assert n_passed / 600 < 0.065


def test_one_cluster_and_rounding_tell_of_no_spread() -> None:
    """Graded answers to one document passed with an interval of no width; rounding in the others hid a rare fall."""
    rng = np.random.default_rng(5)
    graded, one = rng.random(200), np.zeros(200, dtype=int)
    look = paired_look(graded, graded + rng.normal(0.0, 0.1, 200), clusters=one, is_finite=False)
    assert look.unit == 1.0
    fell = np.where(np.arange(200) == 5, 0.0, graded)
    noise = np.where(np.arange(200) == 5, 0.0, 1e-16 * rng.normal(size=200))
    units = [paired_look(graded, row, is_finite=False).unit for row in (fell, fell + noise)]
    np.testing.assert_allclose(*units)


def test_boundaries_of_the_smallest_errors_are_found() -> None:
    for error in (1e-9, 1e-20):
        single, twice = looks.constant_boundary((1.0,), error), looks.constant_boundary((1.0, 2.0), error)
        assert single < twice < looks.constant_boundary((1.0,), error / 2.0) + 1e-8
        np.testing.assert_allclose(looks.student_boundary(single, 1e9), single, rtol=1e-6)
    assert looks.student_boundary(9.0, 3.0) > 1000.0  # it was minus infinity


def test_small_changes_of_all_answers_have_the_bound_of_the_t_test_nearly() -> None:
    rng = np.random.default_rng(5)
    look = paired_look(np.full(200, 0.5), 0.5 + rng.normal(-0.02, 0.05, 200), is_finite=False)
    plain = look.difference - 1.65 * np.sqrt(look.variance)
    bound = looks.lower_bound(look.difference, look.variance, look.unit, look.flips, 1.65)
    assert plain - 0.001 < bound <= plain


def test_the_only_change_is_not_taken_for_a_law() -> None:
    """The baseline had one of 50 wrong, which the candidate has right: of falls among the others nothing is known."""
    one, other = np.repeat([0.0, 1.0], [40, 1960]), np.full(2000, np.nan)
    other[39:89] = 1.0
    look = paired_look(one, other)
    low = looks.lower_bound(
        look.difference, look.variance, look.unit, look.flips, looks.student_boundary(2.2, look.degrees)
    )
    assert 0.5 < look.unit * 50 < 1.1
    assert low < -0.04  # 4 % of falls are not seen among 49 with a probability of 0.14


@pytest.mark.parametrize(("value", "drop"), [(0.5, 0.0), (0.5, 0.1), (0.3, 0.3)])
def test_differences_that_are_all_alike_are_not_exact(value: float, drop: float) -> None:
    """Of items like these they leave as much possible as the same mean difference of right and wrong answers."""
    one = value + 0.1 * np.arange(3)
    graded = paired_look(one, one - drop, is_finite=False)
    assert (graded.unit, graded.degrees) == (1 / 3, 2.0)
    assert graded.flips == pytest.approx((drop, 0.0))
    assert paired_look(one[:1], one[:1], is_finite=False).unit == 1.0
    assert paired_look(one, one - drop).is_exact


def test_every_beginning_stands_for_all_items() -> None:
    """Each half and quarter of the sorted list has its part, and every item is equally likely to come first."""
    scenarios, known, first = np.repeat([0, 1], [32, 96]), np.tile([0.0, 1.0], 64), np.zeros(128)
    for seed in range(400):
        order = balanced_order(scenarios, known, np.random.default_rng(seed))
        assert sorted(order) == list(range(128))
        for size in (4, 8, 16, 40, 64):
            assert abs((scenarios[order[:size]] == 0).sum() - size / 4) <= 1
            assert abs(known[order[:size]].sum() - size / 2) <= 2
        first[order[:16]] += 1
    assert first.max() < 400 / 8 * 1.6
    assert first.min() > 400 / 8 * 0.5
    # clusters stay together: whoever runs a beginning runs whole documents
    clusters = np.array([2, 0, 1, 0, 2, 1, 2, 2])
    order = balanced_order(np.zeros(8, dtype=int), np.zeros(8), np.random.default_rng(0), clusters)
    assert np.count_nonzero(np.diff(clusters[order])) == 2


@pytest.mark.parametrize(("n_looks", "published"), [(1, 1.960), (2, 2.178), (3, 2.289), (5, 2.413), (10, 2.555)])
def test_boundary_is_the_published_one(n_looks: int, published: float) -> None:
    """Jennison & Turnbull (2000), table 2.1, at equal steps; the other side adds nothing to three digits."""
    assert looks.constant_boundary(tuple(range(1, n_looks + 1)), 0.025) == pytest.approx(published, abs=6e-4)


def test_crossing_probability_agrees_with_simulated_paths() -> None:
    """Of looks at unequal steps, as those of a finite number of items are."""
    information = np.array([1.0 / (1.0 / n - 1.0 / 552) for n in (25, 49, 97, 190, 372, 500)])
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((200_000, information.size)) * np.sqrt(np.diff(information, prepend=0.0))
    crossed = (np.cumsum(steps, axis=1) / np.sqrt(information) > 2.1).any(axis=1).mean()
    assert looks.crossing_probability(information, 2.1) == pytest.approx(crossed, abs=0.002)


@pytest.mark.parametrize(("n_items", "n_falls"), [(50, 0), (100, 1), (200, 7)])
def test_bound_on_falls_alone_is_wilsons(n_items: int, n_falls: int) -> None:
    """Where answers only fall, the difference is a proportion, and its bound Wilson's without correction."""
    drop = n_falls / n_items
    wilson = binomtest(n_falls, n_items).proportion_ci(0.9, method="wilson").high
    bound = looks.lower_bound(-drop, 0.0, 1.0 / n_items, (drop, 0.0), 1.6448536269514722)
    assert -bound == pytest.approx(wilson, rel=1e-9)
    assert looks.upper_bound(drop, 0.0, 1.0 / n_items, (0.0, drop), 1.6448536269514722) == pytest.approx(
        wilson, rel=1e-9
    )


def test_null_variance_is_at_the_highest_likelihood_and_the_bound_the_usual_one_where_many_differ():
    """Of falls and rises whose difference is given, by search."""
    f, r, m = 0.06, 0.02, 0.1
    q = np.linspace(1e-6, 0.4, 400_001)
    likelihood = f * np.log(q + m) + r * np.log(q) + (1 - f - r) * np.log(1 - 2 * q - m)
    best = q[np.argmax(likelihood)]
    assert looks.null_variance(-m, (f, r)) == pytest.approx(2 * best + m - m**2, abs=1e-5)
    assert looks.null_variance(m, (r, f)) == pytest.approx(looks.null_variance(-m, (f, r)))
    # the variance that was seen counts where it is larger than the least
    assert looks.lower_bound(0.01, 0.02**2, 1e-4, (0.02, 0.03), 2.0) == pytest.approx(0.01 - 0.04)


@pytest.mark.parametrize("degrees", [1.0, 20.0, 99.0, 100.0, 750.0, np.inf])
def test_students_boundary_is_crossed_as_rarely(degrees: float) -> None:
    """By few degrees of freedom and by many."""
    assert looks.student_boundary(2.4, degrees) == pytest.approx(t.isf(0.008197535924596, degrees), rel=1e-7)
