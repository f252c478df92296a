import numpy as np
import pytest
from scipy import stats

from itembank.scaling.transfers.ability_link import fit_line, predict, quantiles, same_scale


def test_few_models_give_the_textbook_line_and_prediction_interval(rng):
    x = rng.normal(size=12)
    y = 1.0 + 0.5 * x + 0.3 * rng.normal(size=12)
    link = fit_line(x, y, np.zeros(12))
    by_scipy = stats.linregress(x, y)
    assert link.slope == pytest.approx(by_scipy.slope, abs=1e-12)
    assert link.intercept == pytest.approx(by_scipy.intercept, abs=1e-12)
    at = np.array([0.0, 3.0])
    centre, low, high = quantiles(predict(link, at, np.zeros(2)), 0.9)
    residual = np.sqrt(((y - by_scipy.intercept - by_scipy.slope * x) ** 2).sum() / 10)
    half = stats.t.ppf(0.95, 10) * residual * np.sqrt(1 + 1 / 12 + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
    np.testing.assert_allclose(centre, by_scipy.intercept + by_scipy.slope * at)
    np.testing.assert_allclose(high - centre, half)
    np.testing.assert_allclose(centre - low, half)


def test_models_without_both_values_are_left_out(rng):
    x, y = rng.normal(size=(2, 12))
    holes = np.concatenate([x, [np.nan, 1.0]]), np.concatenate([y, [1.0, np.nan]])
    assert fit_line(*holes, np.zeros(14)) == fit_line(x, y, np.zeros(12))


def test_a_source_known_worse_widens_the_prediction():
    x = np.linspace(-1, 1, 10)
    y = 2.0 * x + 0.1 * (-1.0) ** np.arange(10)
    link = fit_line(x, y, np.full(10, 0.2))
    same, worse, better = predict(link, np.zeros(3), np.array([0.2, 0.5, 0.0])).scale ** 2
    assert same == better
    assert worse - same == pytest.approx(link.slope**2 * (0.5**2 - 0.2**2))


def test_the_spread_may_change_along_the_line(rng):
    x = rng.uniform(-2, 2, size=4000)
    y = 1.0 + x + np.exp(0.5 * x) * rng.normal(size=4000)
    link = fit_line(x, y, np.zeros(4000))
    assert link.log_variance_slope == pytest.approx(1.0, abs=0.1)
    assert link.slope == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(predict(link, np.array([-1.0, 1.0]), np.zeros(2)).scale, np.exp([-0.5, 0.5]), rtol=0.1)


def test_a_floor_hides_nothing_of_the_line(rng):
    x = rng.uniform(-3, 3, size=200)
    y = 2.0 * x + 0.2 * rng.normal(size=200)
    hidden = np.maximum(y, -2.0)
    link = fit_line(x, hidden, np.zeros(200), bounds=(-2.0, np.inf))
    assert link.slope == pytest.approx(2.0, abs=0.05)
    assert link.intercept == pytest.approx(0.0, abs=0.1)
    assert fit_line(x, hidden, np.zeros(200)).slope < 1.9


def test_models_at_the_floor_count_where_the_line_says_otherwise():
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 3.5])
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, -1.0])  # the last one ought to be far above the floor
    link = fit_line(x, y, np.zeros(6), bounds=(-1.0, np.inf))
    assert link.n_models == 6
    assert link.residual_sd > 1.0


def test_same_scale_is_as_far_off_as_the_calibration_models(rng):
    x = rng.normal(size=50)
    y = x + 0.4
    link = same_scale(x, y, np.zeros(50))
    centre, low, _ = quantiles(predict(link, np.array([1.0]), np.zeros(1)), 0.95)
    assert centre[0] == 1.0
    assert centre[0] - low[0] == pytest.approx(0.4 * stats.t.ppf(0.975, 50))
