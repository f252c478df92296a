import numpy as np
import pytest
from scipy.optimize import least_squares

from itembank_scaling.pretraining import curve_laws as kernel
from itembank_scaling.pretraining.law_specs import SigmoidLaw, TwoStep

LOWER, UPPER = np.array([0.0, -10.0, 0.0, 0.0]), np.array([6.0, 10.0, 1.0, 1.0])


@pytest.mark.parametrize("huber_delta", [np.inf, 0.01])
def test_best_start_is_as_good_as_scipys(rng, huber_delta):
    x = np.linspace(-3.0, 3.0, 9)
    truth = np.array([1.3, 0.4, 0.6, 0.2])
    y = kernel.sigmoid_values(truth, x) + 0.02 * rng.standard_normal(9)
    starts = kernel.spread_points(np.array([0.2, -2.0, 0.2, 0.0]), np.array([3.0, 2.0, 1.0, 0.5]), 12, rng)
    ours = kernel.fit_curves(
        kernel.sigmoid_curve, x[None], y[None], starts[None], lower=LOWER, upper=UPPER, huber_delta=huber_delta
    )
    loss = {} if np.isinf(huber_delta) else {"loss": "huber", "f_scale": huber_delta}
    choices = {"bounds": (LOWER, UPPER), "xtol": 1e-12, "ftol": 1e-12, **loss}
    theirs = min(least_squares(lambda p: kernel.sigmoid_values(p, x) - y, start, **choices).cost for start in starts)
    assert ours.cost.min() == pytest.approx(theirs, rel=1e-5)
    assert ours.converged.all()


def test_parameters_stay_within_bounds_and_points_that_are_missing_change_nothing(rng):
    x = np.linspace(0.0, 1.0, 6)[None]
    y = 1.0 + 0.5 * x  # nothing within the bounds comes near
    found = kernel.fit_curves(
        kernel.sigmoid_curve, x, y, np.full((1, 3, 4), 0.5), lower=LOWER, upper=np.array([6, 10, 0.3, 0.4])
    )
    assert (found.parameters >= LOWER).all()
    assert found.best[0, 3] == pytest.approx(0.4)
    assert found.best[0, 2] == pytest.approx(0.3)
    x = np.linspace(-2.0, 2.0, 7)
    y = kernel.sigmoid_values(np.array([1.0, 0.0, 0.8, 0.1]), x) + 0.01 * rng.standard_normal(7)
    starts = np.tile([0.5, 0.2, 0.5, 0.2], (1, 1, 1))
    short = kernel.fit_curves(kernel.sigmoid_curve, x[None], y[None], starts, lower=LOWER, upper=UPPER)
    longer = np.append(x, [np.nan, 5.0])[None], np.append(y, [0.3, np.nan])[None]
    long = kernel.fit_curves(kernel.sigmoid_curve, *longer, starts, lower=LOWER, upper=UPPER)
    np.testing.assert_allclose(long.best, short.best, rtol=1e-3)


@pytest.mark.parametrize(
    ("curve", "values", "parameters"),
    [
        (kernel.sigmoid_curve, kernel.sigmoid_values, [1.2, 0.3, 0.7, 0.1]),
        (kernel.sigmoid_curve, kernel.sigmoid_values, [3.0, 1.1, -0.8, 0.95]),
        (kernel.log_loss_curve, lambda p, x: np.log(kernel.loss_of_compute(p, x)), [0.4, 0.3, 0.6]),
    ],
)
def test_derivatives_are_those_of_finite_differences(curve, values, parameters):
    at, x, step = np.array([parameters]), np.linspace(-1.0, 2.0, 5)[None], 1e-6
    value, slopes = curve(at, x)
    np.testing.assert_allclose(value, values(at, x), rtol=1e-12)
    for k in range(at.shape[1]):
        shift = step * np.eye(at.shape[1])[k]
        numeric = (values(at + shift, x) - values(at - shift, x)) / (2.0 * step)
        np.testing.assert_allclose(slopes[..., k], numeric, rtol=1e-6, atol=1e-9)


def test_starts_take_every_slice_of_every_axis_once_and_of_those_that_fit_alike_the_first_is_taken(rng):
    points = kernel.spread_points(np.array([0.0, -1.0]), np.array([1.0, 3.0]), 20, rng)
    slices = np.floor((points - [0.0, -1.0]) / [1.0, 4.0] * 20).astype(int)
    assert [sorted(column) for column in slices.T] == [list(range(20))] * 2
    # rounding, which is another on another processor, does not choose among curves through all points
    parameters = np.arange(6.0).reshape(1, 3, 2)
    for cost, first in (([3e-20, 0.0, 1.0], 0), ([0.2, 0.1 * (1.0 + 1e-12), 0.1], 1), ([0.2, 0.15, 0.1], 2)):
        fits = kernel.CurveFits(parameters, np.array([cost]), np.ones((1, 3), dtype=bool))
        np.testing.assert_array_equal(fits.best, parameters[:, first])


def made_by_two_steps(n_recipes=3, n_sizes=8):
    x = np.tile(np.linspace(np.log(1e15), np.log(1e19), n_sizes), (n_recipes, 1))
    first = np.stack([np.linspace(0.2, 0.4, n_recipes), np.full(n_recipes, 0.2), np.full(n_recipes, 0.5)], axis=1)
    second = np.tile([4.0, 1.2, -0.7, 0.95], (n_recipes, 1))
    losses = kernel.loss_of_compute(first, x - x.mean())
    return x, losses, kernel.sigmoid_values(second, losses), (first, second)


def test_two_step_extrapolates_what_it_made_and_an_outlier_moves_its_loss_little(rng):
    x, losses, scores, (first, second) = made_by_two_steps()
    fits = kernel.fit_two_step((x, losses), (losses, scores), TwoStep(), rng)
    target = np.log([1e20, 1e21, 1e24])  # far away the score is right only if the loss's exponent is
    best, every = fits(target)
    truth = kernel.sigmoid_values(second, kernel.loss_of_compute(first, target - x.mean()))
    np.testing.assert_allclose(best, truth, atol=2e-4)
    assert every.shape == (3, TwoStep().n_starts, 3)
    lost = np.where(np.arange(3)[:, None] == 1, np.nan, losses)  # a recipe without losses
    found = kernel.fit_two_step((x, lost), (lost, scores), TwoStep(), rng)(target)[0]
    np.testing.assert_allclose(found, np.where([[False], [True], [False]], np.nan, truth), atol=2e-4)
    # nor has it where the final losses of all are lost
    none = np.full(losses.shape, np.nan)
    assert np.isnan(kernel.fit_two_step((x, none), (losses, scores), TwoStep(), rng)(target)[0]).all()
    x, losses, scores, _ = made_by_two_steps()
    bad = losses.copy()
    bad[0, 3] *= 1.5
    robust = kernel.fit_two_step((x, bad), (losses, scores), TwoStep(), rng)(np.log([1e20]))[0]
    plain = kernel.fit_two_step((x, bad), (losses, scores), TwoStep(huber_delta=1e3), rng)(np.log([1e20]))[0]
    clean = kernel.fit_two_step((x, losses), (losses, scores), TwoStep(), rng)(np.log([1e20]))[0]
    assert abs(robust - clean)[0, 0] < 0.25 * abs(plain - clean)[0, 0]


def test_sigmoid_extrapolates_what_it_made_from_as_many_sizes_as_there_are(rng):
    x = np.tile(np.linspace(30.0, 40.0, 7), (2, 1))
    truth = np.array([[0.5, 1.0, 0.6, 0.25], [0.8, -1.0, 0.7, 0.1]])
    fits = kernel.fit_sigmoid_law(x, kernel.sigmoid_values(truth, x - 35.0), SigmoidLaw(), rng)
    at = np.array([43.0, 45.0])
    np.testing.assert_allclose(fits(at)[0], kernel.sigmoid_values(truth, at - 35.0), atol=1e-3)
    x = np.tile(np.linspace(30.0, 40.0, 8), (2, 1))
    y = kernel.sigmoid_values(np.array([[0.5, 1.0, 0.6, 0.25], [0.8, -1.0, 0.7, 0.1]]), x - 35.0)
    y[1, 6:] = np.nan
    both = kernel.fit_sigmoid_law(x, y, SigmoidLaw(), np.random.default_rng(0))(np.array([42.0]))[0]
    assert both[1, 0] == pytest.approx(0.1 + 0.7 / (1.0 + np.exp(-0.8 * 8.0)), abs=2e-3)
