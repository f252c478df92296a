import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from itembank.calibration.calibration_specs import ItemPrior, RelativeItemPrior
from itembank.calibration.marginal_ml.items import LinePrior, best_scale, log_prior, prior_terms, rescale, with_line

PRIORS = [ItemPrior(0.1, 0.4, 1.7), LinePrior(0.4, 1.5, 0.3)]


def positive_items(n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.lognormal(0.0, 0.4, n_items), rng.normal(size=n_items)])


def test_fixed_prior_is_the_lognormal_and_normal_density():
    items, prior = positive_items(), ItemPrior(0.1, 0.4, 1.7)
    expected = stats.lognorm.logpdf(items[:, 0], 0.4, scale=np.exp(0.1)).sum()
    expected += stats.norm.logpdf(items[:, 1], 0.0, 1.7).sum()
    assert log_prior(items, prior) == pytest.approx(expected, rel=1e-13)


def test_a_common_slope_counts_once():
    items = positive_items()
    items[:, 0] = 1.3
    expected = stats.lognorm.logpdf(1.3, 0.5) + stats.norm.logpdf(items[:, 1], 0.0, 2.0).sum()
    assert log_prior(items, ItemPrior(), has_common_slope=True) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("has_common_slope", [False, True])
def test_gradient_is_the_slope_of_the_density(prior, has_common_slope):
    items = positive_items()
    if has_common_slope:
        items[:, 0] = 1.3
    gradient = prior_terms(items, prior, has_common_slope=has_common_slope).gradient
    directions = list(np.ndindex(items.shape))
    if has_common_slope:  # only the slope of all items together may move
        directions = [(item, 1) for item in range(len(items))]
        step = np.zeros_like(items)
        step[:, 0] = 1e-6
        rise = log_prior(items + step, prior, has_common_slope=True)
        rise -= log_prior(items - step, prior, has_common_slope=True)
        assert gradient[:, 0].sum() == pytest.approx(rise / 2e-6, abs=1e-6)
    for index in directions:
        step = np.zeros_like(items)
        step[index] = 1e-6
        rise = log_prior(items + step, prior, has_common_slope=has_common_slope)
        rise -= log_prior(items - step, prior, has_common_slope=has_common_slope)
        assert gradient[index] == pytest.approx(rise / 2e-6, abs=1e-6)


def test_precision_of_the_fixed_prior_is_minus_its_curvature():
    items, prior, step = positive_items(n_items=1), ItemPrior(0.1, 0.4, 1.7), 1e-4
    precision = prior_terms(items, prior).precision[0]
    for one in range(2):
        ahead, behind = items.copy(), items.copy()
        ahead[0, one] += step
        behind[0, one] -= step
        change = (prior_terms(ahead, prior).gradient - prior_terms(behind, prior).gradient)[0] / (2.0 * step)
        np.testing.assert_allclose(precision[one], -change, rtol=1e-6, atol=1e-8)


def test_relative_prior_does_not_hold_the_scale_of_ability():
    items = positive_items()
    # c' = c + a m moves an item along the line's direction, and the line with it when it is fitted anew
    for shift, scale in [(0.0, 3.0), (1.5, 1.0), (-0.7, 0.2)]:
        moved = np.column_stack([scale * items[:, 0], items[:, 1] + shift * items[:, 0]])
        before = log_prior(items, with_line(RelativeItemPrior(), items))
        assert log_prior(moved, with_line(RelativeItemPrior(), moved)) == pytest.approx(before, rel=1e-12)


def test_fixed_prior_does_hold_the_scale_of_ability():
    items = positive_items()
    moved = items * np.array([3.0, 1.0])
    assert log_prior(moved, ItemPrior()) < log_prior(items, ItemPrior()) - 10.0


def test_best_scale_without_a_prior_is_the_mean_and_variance_of_the_posteriors():
    mean = np.random.default_rng(1).normal(0.4, 1.3, (50, 1))
    scale = best_scale(mean, np.full((50, 1, 1), 0.1), positive_items(), None)
    np.testing.assert_allclose(scale.shift, mean.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale.matrix**2, mean.var() + 0.1, rtol=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_best_scale_with_a_prior_against_a_derivative_free_optimiser(prior):
    rng = np.random.default_rng(2)
    mean, covariance = rng.normal(0.2, 1.1, (20, 1)), np.full((20, 1, 1), 0.05)
    items = positive_items(n_items=30)

    def negative(packed):  # E log N(theta; m, s^2) of all models plus the prior of the moved items
        shift, size = packed[0], np.exp(packed[1])
        expected = stats.norm.logpdf(mean[:, 0], shift, size).sum() - 0.5 * 20 * 0.05 / size**2
        moved = np.column_stack([items[:, 0] * size, items[:, 1] + items[:, 0] * shift])
        return -expected - log_prior(moved, prior)

    found = minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    scale = best_scale(mean, covariance, items, prior)
    assert scale.shift[0] == pytest.approx(found[0], abs=1e-4)
    assert scale.matrix[0, 0] == pytest.approx(np.exp(found[1]), abs=1e-4)


def test_rescaled_items_predict_the_same():
    rng = np.random.default_rng(3)
    items, theta = positive_items(), rng.normal(size=(9, 1))
    scale = best_scale(rng.normal(1.0, 2.0, (40, 1)), np.zeros((40, 1, 1)), items, None)
    moved = rescale(items, scale)
    original = scale.shift + theta @ scale.matrix.T
    np.testing.assert_allclose(
        theta @ moved[:, :1].T + moved[:, 1], original @ items[:, :1].T + items[:, 1], atol=1e-12
    )
