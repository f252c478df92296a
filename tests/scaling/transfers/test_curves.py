import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta

from itembank.irt.parameters import ItemParameters
from itembank_scaling.transfers.curves import (
    fit_line,
    item_curves,
    logit_curves,
    mean_curves,
    predict,
    quantiles,
    same_scale,
)


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
    x = rng.uniform(-1, 3, size=4000)
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


PLAIN = ItemParameters.create(np.array([[1.0], [2.0], [0.5]]), np.array([0.3, -1.0, 0.0]))
OVERDISPERSED = ItemParameters.create(
    PLAIN.loadings, PLAIN.intercept, family="beta-binomial", precision=np.array([0.5, 3.0, 40.0])
)
THETA = np.array([-1.0, 0.0, 2.5])


def test_pass_at_k_without_precision_is_the_papers_equation_4():
    p = expit(THETA[:, None] * PLAIN.loadings[:, 0] + PLAIN.intercept)
    np.testing.assert_allclose(item_curves(PLAIN, THETA, 1), p)
    np.testing.assert_allclose(item_curves(PLAIN, THETA, 7), 1 - (1 - p) ** 7)


def test_pass_at_k_with_precision_is_the_mean_over_the_cells_beta():
    found = item_curves(OVERDISPERSED, THETA, 5)
    p = item_curves(OVERDISPERSED, THETA, 1)
    for i, j in ((0, 0), (1, 1), (2, 2)):
        cell = beta(p[i, j] * OVERDISPERSED.precision[j], (1 - p[i, j]) * OVERDISPERSED.precision[j])
        # by parts, as the density may be endless at the ends: E[1 - (1-p)^5] = int 5 (1-p)^4 P(p' > p) dp
        expected = quad(lambda x, cell=cell: 5 * (1 - x) ** 4 * cell.sf(x), 0, 1, limit=200)[0]
        assert found[i, j] == pytest.approx(expected, rel=1e-6)


def test_means_are_over_the_items_that_count():
    counted = np.array([[True, True, True], [True, False, False], [False, True, True]])
    found = mean_curves(PLAIN, THETA, (1, 3), counted)
    for column, k in enumerate((1, 3)):
        curves = item_curves(PLAIN, THETA, k)
        expected = [curves[row][counted[row]].mean() for row in range(3)]
        np.testing.assert_allclose(found[:, column], expected)


def test_slopes_are_those_of_the_logit():
    counted = np.ones((3, 3), dtype=bool)
    value, slope = logit_curves(PLAIN, THETA, (1, 4), counted)
    at = [logit(mean_curves(PLAIN, THETA + step, (1, 4), counted)) for step in (-1e-5, 0.0, 1e-5)]
    np.testing.assert_allclose(value, at[1])
    np.testing.assert_allclose(slope, (at[2] - at[0]) / 2e-5, rtol=1e-5)


def test_one_items_logit_is_its_line():
    one = PLAIN.take(np.array([1]))
    value, slope = logit_curves(one, THETA, (1,), np.ones((3, 1), dtype=bool))
    np.testing.assert_allclose(value[:, 0], 2.0 * THETA - 1.0)
    np.testing.assert_allclose(slope, 2.0, rtol=1e-6)
