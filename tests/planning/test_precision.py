import numpy as np
import pytest
from scipy.stats import norm

from itembank.estimation.intervals import ALLOWANCE
from itembank.planning.precision import detectable_difference, expected_half_width, grid_sizes, precision_curve


def sampling_error(sizes, n_total, scale=1.0):
    """Standard error of a mean of n of N items."""
    return scale * np.sqrt(1.0 / sizes - 1.0 / n_total)


def test_the_curve_of_random_samples_is_exact():
    sizes = grid_sizes(10, 400)
    curve = precision_curve(sizes, sampling_error(sizes, 500), 500)
    every = np.arange(10, 501)
    np.testing.assert_allclose(curve.at(every), sampling_error(every, 500), atol=1e-9)


def test_the_fewest_items_are_those_of_the_closed_form():
    sizes = grid_sizes(10, 400)
    curve = precision_curve(sizes, sampling_error(sizes, 500, 0.5), 500)
    n = curve.fewest(0.04)
    assert n == int(np.ceil(1.0 / (0.04**2 / 0.25 + 1.0 / 500)))
    assert curve.at(np.array([n]))[0] <= 0.04 < curve.at(np.array([n - 1]))[0]


def test_the_curve_never_rises_and_ends_at_nothing(rng):
    sizes = grid_sizes(10, 2000)
    noisy = sampling_error(sizes, 2000) * rng.lognormal(0.0, 0.3, sizes.shape)
    noisy[-1] = 0.0
    curve = precision_curve(sizes, noisy, 2000)
    assert np.all(np.diff(curve.values) <= 0.0)
    assert curve.at(np.array([2000]))[0] == 0.0
    assert curve.fewest(1e-12) == 2000


def test_noise_of_the_trials_averages_out(rng):
    sizes = grid_sizes(10, 1000)
    true = sampling_error(sizes, 10_000)
    curve = precision_curve(sizes, true * rng.lognormal(0.0, 0.1, sizes.shape), 10_000)
    assert curve.at(sizes) == pytest.approx(true, rel=0.15)


@pytest.mark.parametrize("n_sizes", [1, 2, 3])
def test_few_sizes_do(n_sizes):
    sizes = np.array([10, 15, 22])[:n_sizes]
    curve = precision_curve(sizes, sampling_error(sizes, 100), 100)
    assert curve.at(np.array([15])) == pytest.approx(sampling_error(15, 100))


def test_grid_sizes_grow_by_half():
    sizes = grid_sizes(10, 500)
    assert (sizes[0], sizes[-1]) == (10, 500)
    ratio = sizes[1:] / sizes[:-1]
    assert np.all((ratio > 1.3) & (ratio < 1.7))
    assert grid_sizes(10, 10).tolist() == [10]


def test_half_width_is_the_normal_quantile_of_many_errors_and_its_allowance(rng):
    found = expected_half_width(rng.normal(size=50_000), level=0.9)
    assert found == pytest.approx(ALLOWANCE * norm.ppf(0.95), rel=0.02)


def test_half_width_of_few_errors_is_the_conformal_order_statistic():
    # 19 errors: the 95 % interval reaches to the largest
    assert expected_half_width(np.arange(1.0, 20.0), level=0.95) == pytest.approx(19.0 * ALLOWANCE)
    assert expected_half_width(np.arange(1.0, 20.0), level=0.9) == pytest.approx(18.0 * ALLOWANCE)


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
