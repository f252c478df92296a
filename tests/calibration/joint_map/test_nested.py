"""Nested item models against WILD's objective in WILD's own parameters (alpha, K, delta), written anew here."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import FitData, Point
from itembank.calibration.joint_map.fit import fit_joint_map
from itembank.calibration.joint_map.nested import best_axes, best_scale, make_problem, start_point
from itembank.calibration.joint_map.steps import ascend
from itembank.errors import ParameterError
from tests.calibration.joint_map.test_fit import least_nearby
from tests.numerics.compare import slopes, slopes_by_column

SPEC = JointMAP("nested", n_dims=3, l1=0.8, general_weight=0.6, tolerance=1e-8)


def simulated(n_models=30, n_items=18, *, n_dims=3, missing=False, lower=0.0, seed=0):
    rng = np.random.default_rng(seed)
    abilities = rng.normal(size=(n_models, n_dims))
    slope, specific = rng.lognormal(0.0, 0.3, n_items), rng.normal(0.0, 0.8, (n_items, n_dims - 1))
    specific[rng.random(specific.shape) < 0.4] = 0.0
    logit = (abilities[:, :1] + abilities[:, 1:] @ specific.T) * slope + rng.normal(size=n_items)
    chances = lower + (1.0 - lower) * expit(logit)
    responses = (rng.random(chances.shape) < chances).astype(float)
    observed = rng.random(chances.shape) > 0.2 if missing else None
    if missing:
        responses[~observed] = 0.0
    return FitData(responses, observed, np.full(n_items, lower)), chances, abilities


def log_likelihood(data, logit):
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * expit(logit)
    cells = data.responses * np.log(chances) + (1.0 - data.responses) * np.log1p(-chances)
    return cells.sum() if data.observed is None else cells[data.observed].sum()


def both_logits(data, weight, alpha, loadings, delta, abilities):
    """WILD's L_total: l(alpha (theta_g + K . theta - delta)) + lambda l(alpha (theta_g - delta))."""
    general = alpha * (abilities[:, :1] - delta)
    whole = alpha * (abilities[:, :1] + abilities[:, 1:] @ loadings.T - delta)
    return log_likelihood(data, whole) + weight * log_likelihood(data, general)


def objective(data, spec, alpha, loadings, delta, abilities):
    """WILD's objective, with the two priors it does not state."""
    added = 0.5 * np.sum(((alpha - 1.0) / spec.slope_sd) ** 2) + 0.5 * np.sum((alpha * delta / spec.intercept_sd) ** 2)
    stated = 0.5 * np.sum(abilities**2) + spec.l1 * np.abs(loadings).sum()
    return both_logits(data, spec.general_weight, alpha, loadings, delta, abilities) - stated - added


def of_point(point):
    """(alpha, K, delta, abilities)."""
    items, abilities = point
    return items[:, 0], items[:, 1:-1], -items[:, -1] / items[:, 0], abilities


def begin(data, spec=SPEC):
    """The problem of some data, and where it starts."""
    problem = make_problem(data, spec)
    return problem, start_point(problem)


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, general_weight=0.0)])
@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_gradients_are_the_slopes_of_p2_s_objective_and_the_precision_of_abilities_its_curvature(spec, missing, lower):
    data, _, _ = simulated(10, 9, missing=missing, lower=lower)
    problem, start = begin(data, spec)
    noise = 0.3 * np.random.default_rng(1).normal(size=start.items.shape)
    items, abilities = start.items + noise * (start.items != 0.0), start.abilities

    def value(items, abilities):
        return both_logits(data, spec.general_weight, *of_point(Point(items, abilities)))

    of_items, of_abilities = (
        of(Point(items, abilities)) for of in (problem.item_derivatives, problem.ability_derivatives)
    )
    assert [of_items.value, of_abilities.value] == pytest.approx([value(items, abilities)] * 2, rel=1e-12)
    assert_allclose(of_items.gradient, slopes(lambda moved: value(moved, abilities), items), atol=1e-6)
    assert_allclose(of_abilities.gradient, slopes(lambda moved: value(items, moved), abilities), atol=1e-6)
    if lower == 0.0:  # else the expected curvature is taken
        bends = slopes_by_column(lambda moved: problem.ability_derivatives(Point(items, moved)).gradient, abilities)
        assert_allclose(of_abilities.precision, -bends, atol=1e-6)


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.2)])
def test_a_general_optimiser_finds_no_better_point_nearby(missing, lower):
    """In (alpha, K, delta)."""
    data, _, _ = simulated(12, 9, missing=missing, lower=lower)
    problem, start = begin(data, replace(SPEC, tolerance=1e-11, max_iterations=5000))
    path = ascend(problem, start)
    assert path.converged
    ours = objective(data, SPEC, *of_point(path.end))
    assert path.history[-1] - path.history[0] == pytest.approx(ours - objective(data, SPEC, *of_point(start)), rel=1e-8)
    alpha, loadings, delta, abilities = of_point(path.end)

    def smooth(specific, rest):
        own, shift, thetas = np.split(rest, [9, 18])
        value = objective(data, SPEC, own, specific, shift, thetas.reshape(abilities.shape))
        return -value - SPEC.l1 * np.abs(specific).sum()

    rest = np.concatenate([alpha, delta, abilities.ravel()])
    best = -least_nearby(smooth, SPEC.l1, loadings, rest, noise=0.02)
    assert ours >= best - 1e-4 * abs(best)
    assert ours == pytest.approx(best, rel=3e-3)


def test_the_optimum_meets_the_conditions_of_the_l1_penalty():
    data, _, _ = simulated(60, 40)
    spec = replace(SPEC, l1=3.0, tolerance=1e-10)
    problem, start = begin(data, spec)
    items, abilities = ascend(problem, start).end
    part = problem.item_derivatives(Point(items, abilities))
    loadings, slopes = items[:, 1:-1], part.gradient[:, 1:-1]
    is_zero = loadings == 0.0
    assert 0.1 < is_zero.mean() < 0.9
    assert_allclose(slopes[~is_zero], 3.0 * np.sign(loadings[~is_zero]), atol=0.02)
    assert np.all(np.abs(slopes[is_zero]) <= 3.0 + 1e-6)
    assert_allclose(part.gradient[:, 0], (items[:, 0] - 1.0) / spec.slope_sd**2, atol=0.02)
    assert_allclose(part.gradient[:, -1], items[:, -1] / spec.intercept_sd**2, atol=0.02)


def test_another_start_gives_the_same_predictions():
    data, _, _ = simulated(80, 90)
    problem, first = begin(data, JointMAP("nested", n_dims=3, tolerance=1e-7))
    one = ascend(problem, first)
    rng = np.random.default_rng(2)
    general = first.abilities[:, :1] + 0.5 * rng.normal(size=(80, 1))
    items = np.zeros_like(first.items)
    items[:, 1:-1] = 0.3 * rng.normal(size=(90, 2))
    items[:, 0] = 1.0
    other = ascend(problem, Point(items, np.column_stack([general, rng.normal(size=(80, 2))])))
    assert other.history[-1] == pytest.approx(one.history[-1], rel=1e-4)
    chances = []
    for alpha, loadings, delta, abilities in map(of_point, (one.end, other.end)):
        chances.append(expit(alpha * (abilities[:, :1] + abilities[:, 1:] @ loadings.T - delta)))
    assert np.sqrt(np.mean((chances[0] - chances[1]) ** 2)) < 0.01


def test_p2_s_objective_alone_rises_for_ever_in_the_scale():
    """What the prior of alpha is for: without it abilities shrink and alpha grows, and no logit changes."""
    data, _, _ = simulated()
    alpha, loadings, delta, abilities = of_point(begin(data)[1])
    free, held = (
        [objective(data, spec, alpha * s, loadings, delta / s, abilities / s) for s in (1.0, 10.0, 1e3)]
        for spec in (replace(SPEC, slope_sd=1e9), SPEC)
    )
    assert free[0] < free[1] < free[2] == pytest.approx(free[0] + 0.5 * np.sum(abilities**2), rel=1e-3)
    assert held[2] < held[1] < held[0]


@pytest.mark.parametrize("turn", [best_scale, best_axes])
def test_scale_and_axes_raise_the_prior_and_leave_every_logit(turn):
    data, _, _ = simulated(40, 50)
    problem, start = begin(data)
    mixed = np.array([[1.2, 0.5], [-0.6, 0.9]])
    items, abilities = start.items.copy(), start.abilities.copy()
    items[:, 1:-1], abilities[:, 1:] = items[:, 1:-1] @ mixed, abilities[:, 1:] @ np.linalg.inv(mixed).T
    items[:, 0], abilities[:, 0], items[:, 1:-1] = 2.0 * items[:, 0], 0.5 * abilities[:, 0], 0.5 * items[:, 1:-1]
    point = Point(items, abilities)
    moved = Point(*turn(*point, SPEC))
    for weight in (0.0, 0.6):
        before, after = (both_logits(data, weight, *of_point(one)) for one in (point, moved))
        assert after == pytest.approx(before, rel=1e-10)
    assert problem.log_prior(moved) > problem.log_prior(point)
    if turn is best_scale:  # found last, it cannot be bettered
        for scale in (0.99, 1.01):
            for dim in range(3):
                scaled, other = moved.items.copy(), moved.abilities.copy()
                other[:, dim] /= scale
                scaled[:, dim] *= scale
                if dim == 0:
                    scaled[:, 1:-1] /= scale
                assert problem.log_prior(Point(scaled, other)) < problem.log_prior(moved)


def test_abilities_are_standardised_each_by_itself():
    data, _, _ = simulated(40, 60, missing=True)
    fit = fit_joint_map(data, SPEC)
    assert fit.converged
    assert np.all(np.diff(fit.history) >= -1e-9 * np.abs(fit.history[-1]))
    assert_allclose(fit.abilities.mean(axis=0), 0.0, atol=1e-10)
    assert_allclose(fit.prior.mean, 0.0, atol=1e-10)
    total = np.cov(fit.abilities.T, bias=True) + fit.ability_covariance.mean(axis=0)
    assert_allclose(fit.prior.covariance, total, atol=1e-10)
    assert_allclose(np.diag(total), 1.0, atol=1e-10)
    assert np.abs(total - np.diag(np.diag(total))).max() > 0.01
    assert np.all(np.linalg.eigvalsh(fit.item_covariance) >= -1e-10)
    # the same probabilities as on the scale of the fit
    alpha, loadings, delta, abilities = of_point(ascend(*begin(data)).end)
    logit = alpha * (abilities[:, :1] + abilities[:, 1:] @ loadings.T - delta)
    assert_allclose(fit.abilities @ fit.loadings.T + fit.intercept, logit, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_dims": 1}, "'nested' needs n_dims of 2 or more"),
        ({"general_weight": -0.1}, "general_weight must be a finite number >= 0"),
        ({"general_weight": float("nan")}, "general_weight"),
        ({"slope_sd": 0.0}, "slope_sd must be a finite number > 0"),
        ({"degenerate": "drop"}, "degenerate must be one of 'prior', 'majority'"),
    ],
)
def test_choices_that_cannot_be_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        JointMAP("nested", **{"n_dims": 3, **options})


@pytest.mark.slow
def test_truth_is_recovered():
    """Many items, few models: probabilities, and the general ability, whose axis the model fixes."""
    data, chances, abilities = simulated(65, 4000, n_dims=4, seed=3)
    tells = data.responses.min(axis=0) < data.responses.max(axis=0)
    data = FitData(data.responses[:, tells], None, data.lower_asymptote[tells])
    fit = fit_joint_map(data, JointMAP("nested", n_dims=4))
    assert fit.converged
    assert np.corrcoef(fit.abilities[:, 0], abilities[:, 0])[0, 1] > 0.99
    found = expit(fit.abilities @ fit.loadings.T + fit.intercept)
    error = np.sqrt(np.mean((found - chances[:, tells]) ** 2))
    plain = fit_joint_map(data, JointMAP())
    of_one = expit(plain.abilities @ plain.loadings.T + plain.intercept)
    assert error < 0.11
    assert error < 0.9 * np.sqrt(np.mean((of_one - chances[:, tells]) ** 2))
