from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from itembank.planning.goals import detectable_difference, grid_sizes, precision_curve, try_grid


def sampling_error(sizes, n_total, scale=1.0):
    """Standard error of a mean of n of N items."""
    return scale * np.sqrt(1.0 / sizes - 1.0 / n_total)


def test_the_curve_of_random_samples_is_exact():
    sizes = grid_sizes(400)
    curve = precision_curve(sizes, sampling_error(sizes, 500), 500)
    every = np.arange(10, 501)
    np.testing.assert_allclose(curve.at(every), sampling_error(every, 500), atol=1e-9)


def test_a_score_that_all_items_do_not_give_is_that_of_endless_items_and_level_beyond_the_largest_size():
    sizes, every = grid_sizes(400), np.arange(10, 501)
    curve = precision_curve(sizes, 1.0 / np.sqrt(sizes), 500, is_exact=False)
    np.testing.assert_allclose(curve.at(every), 1.0 / np.sqrt(np.minimum(every, 400)))


def test_the_fewest_items_are_those_of_the_closed_form():
    sizes = grid_sizes(400)
    curve = precision_curve(sizes, sampling_error(sizes, 500, 0.5), 500)
    n = curve.fewest(0.04)
    assert n == int(np.ceil(1.0 / (0.04**2 / 0.25 + 1.0 / 500)))
    assert curve.at(np.array([n]))[0] <= 0.04 < curve.at(np.array([n - 1]))[0]


def test_the_curve_never_rises_and_ends_at_nothing(rng):
    sizes = grid_sizes(2000)
    noisy = sampling_error(sizes, 2000) * rng.lognormal(0.0, 0.3, sizes.shape)
    noisy[-1] = 0.0
    curve = precision_curve(sizes, noisy, 2000)
    assert np.all(np.diff(curve.values) <= 0.0)
    assert curve.at(np.array([2000]))[0] == 0.0
    assert curve.fewest(1e-12) == 2000


def test_the_curve_goes_through_what_was_measured_and_depends_on_no_other_sizes(rng):
    sizes = np.array([10, 20, 30, 50, 100, 200])
    values = np.array([0.3, 0.21, 0.2, 0.13, 0.1, 0.05])
    curve = precision_curve(sizes, values, 1000)
    assert curve.at(sizes) == pytest.approx(values)
    few = precision_curve(sizes[:4], values[:4], 1000)
    assert few.at(np.arange(10, 51)) == pytest.approx(curve.at(np.arange(10, 51)))


def test_more_items_that_did_worse_are_pooled_with_fewer():
    sizes = np.array([10, 20, 30, 50])
    curve = precision_curve(sizes, np.array([0.3, 0.18, 0.2, 0.1]), 1000)
    assert curve.at(sizes) == pytest.approx([0.3, 0.19, 0.19, 0.1])
    assert np.all(np.diff(curve.values) <= 0.0)


@pytest.mark.parametrize("n_sizes", [1, 2, 3])
def test_few_sizes_do(n_sizes):
    sizes = np.array([10, 15, 22])[:n_sizes]
    curve = precision_curve(sizes, sampling_error(sizes, 100), 100)
    assert curve.at(np.array([15])) == pytest.approx(sampling_error(15, 100))


def test_the_sizes_that_are_tried_are_the_same_for_all_banks():
    assert grid_sizes(639).tolist() == [10, 20, 30, 50, 100, 200, 300, 500, 639]
    assert grid_sizes(1100).tolist() == [10, 20, 30, 50, 100, 200, 300, 500, 1100]
    assert grid_sizes(10).tolist() == [10]
    assert grid_sizes(7).tolist() == [7]


def test_more_than_500_items_are_tried_until_the_goal_is_reached_twice():
    goal = SimpleNamespace(value=0.05, measure=lambda n_items: 100.0 / n_items)
    tried = try_grid(lambda n_items: n_items, np.array([10, 500, 1000, 2000, 5000, 10_000]), goal)  # type: ignore[arg-type]
    assert tried == [10, 500, 1000, 2000, 5000]


def test_a_detectable_difference_is_found_with_its_power(rng):
    errors = rng.normal(size=800)
    found = detectable_difference(errors, level=0.95, power=0.8)
    assert found == pytest.approx((norm.ppf(0.975) + norm.ppf(0.8)) * np.sqrt(2.0), rel=0.06)
    shown = np.abs(found + rng.normal(size=100_000) * np.sqrt(2.0)) > norm.ppf(0.975) * np.sqrt(2.0)
    assert shown.mean() == pytest.approx(0.8, abs=0.04)


def test_a_common_bias_is_no_obstacle_to_differences(rng):
    errors = rng.normal(size=100)
    one, other = (detectable_difference(errors + bias, level=0.95, power=0.8) for bias in (0.0, 7.0))
    assert one == pytest.approx(other)
