"""Joint MAP against an objective written anew here and a general optimiser; counts against single answers, tied."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import Point
from itembank.calibration.joint_map import steps
from itembank.calibration.joint_map.fit import Plain, fit_joint_map, start_point
from itembank.calibration.joint_map.nested import make_problem
from itembank.calibration.start import start_abilities
from itembank.errors import ParameterError
from tests.calibration.counts import counted, one_by_one, repeated, summed
from tests.calibration.simulated import simulate
from tests.numerics.compare import alike, slopes, slopes_by_column

ITEM_MODELS = pytest.mark.parametrize(("item_model", "n_dims"), [("1pl", 1), ("2pl", 1), ("mirt", 3)])


def leading_point(data, spec):
    """Start at the leading directions of the responses."""
    return start_point(data, spec, start_abilities(data.responses, data.observed, n_dims=spec.n_dims))


def log_likelihood(data, items, abilities):
    """Counts as the single answers to as many items with the same parameters."""
    if data.n_trials is not None:
        data, items = one_by_one(data), repeated(items)
    chances = data.lower_asymptote + (1.0 - data.lower_asymptote) * expit(abilities @ items[:, :-1].T + items[:, -1])
    cells = data.responses * np.log(chances) + (1.0 - data.responses) * np.log1p(-chances)
    return np.sum(cells if data.observed is None else cells[data.observed])


def penalised(data, spec, items, abilities):
    """Minus the log posterior density without its constant."""
    prior = 0.5 * np.sum(abilities**2) + 0.5 * np.sum((items[:, -1] / spec.intercept_sd) ** 2)
    return prior + spec.l1 * np.abs(items[:, :-1]).sum() - log_likelihood(data, items, abilities)


def least_nearby(smooth, l1, loadings, rest, *, noise=0.1):
    """Least of a smooth function and an L1 penalty of loadings, by L-BFGS-B on their two parts from near a point."""
    rng, size = np.random.default_rng(1), loadings.size
    free, rest = (values + noise * rng.normal(size=values.size) for values in (loadings.ravel(), rest))

    def objective(values):
        plus, minus, others = np.split(values, [size, 2 * size])
        return smooth((plus - minus).reshape(loadings.shape), others) + l1 * (plus + minus).sum()

    start = np.concatenate([np.maximum(free, 0.0), np.maximum(-free, 0.0), rest])
    bounds = [(0.0, None)] * (2 * size) + [(None, None)] * rest.size
    options = {"maxiter": 4000, "maxfun": 10**7, "ftol": 1e-14, "gtol": 1e-8}
    return minimize(objective, start, method="L-BFGS-B", bounds=bounds, options=options).fun


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2)])
def test_gradients_and_precisions_are_the_slopes_and_curvatures_of_the_log_likelihood(n_dims, missing, guessing):
    truth = simulate(12, 9, n_dims=n_dims, missing=missing, guessing=guessing)
    data, abilities, items = truth.data, truth.theta, np.column_stack([truth.loadings, truth.intercept])
    of_items, of_abilities = (
        steps.item_derivatives(data, items, abilities),
        steps.ability_derivatives(data, items, abilities),
    )
    expected = log_likelihood(data, items, abilities)
    assert [of_items.value, of_abilities.value] == pytest.approx([expected] * 2, rel=1e-12)
    by_items = slopes(lambda values: log_likelihood(data, values, abilities), items)
    by_abilities = slopes(lambda values: log_likelihood(data, items, values), abilities)
    assert_allclose(of_items.gradient, by_items, atol=1e-6)
    assert_allclose(of_abilities.gradient, by_abilities, atol=1e-6)
    if guessing == 0.0:  # else the expected curvature is taken
        by_items = slopes_by_column(lambda values: steps.item_derivatives(data, values, abilities).gradient, items)
        by_abilities = slopes_by_column(
            lambda values: steps.ability_derivatives(data, items, values).gradient, abilities
        )
        assert_allclose(of_items.precision, -by_items, atol=1e-6)
        assert_allclose(of_abilities.precision, -by_abilities, atol=1e-6)


@ITEM_MODELS
def test_shift_and_scale_raise_the_prior_and_leave_every_logit(item_model, n_dims):
    simulated = simulate(20, 30, n_dims=n_dims, common_slope=1.5 if item_model == "1pl" else None)
    spec = JointMAP(item_model, n_dims=n_dims, l1=0.7)
    items, abilities = np.column_stack([simulated.loadings, simulated.intercept + 1.0]), simulated.theta * 2.0 - 0.4
    moved, moved_abilities = steps.best_affine(items, abilities, spec)
    logits = abilities @ items[:, :-1].T + items[:, -1]
    assert_allclose(moved_abilities @ moved[:, :-1].T + moved[:, -1], logits, atol=1e-10)
    best = steps.log_prior(moved, moved_abilities, spec)
    assert best > steps.log_prior(items, abilities, spec)
    if n_dims == 1:  # the scale, found last, cannot be bettered
        for scale in (0.99, 1.01):
            other = np.column_stack([moved[:, :-1] * scale, moved[:, -1]])
            assert steps.log_prior(other, moved_abilities / scale, spec) < best


def test_steps_and_optimum_meet_the_conditions_of_the_l1_penalty_which_may_leave_no_loading():
    simulated = simulate(60, 25, n_dims=2)
    data, abilities, spec = simulated.data, simulated.theta, JointMAP("mirt", n_dims=2, l1=6.0)
    items = np.zeros((25, 3))
    for _ in range(60):
        items = items + steps.item_step(items, steps.item_derivatives(data, items, abilities), spec)
    gradient = steps.item_derivatives(data, items, abilities).gradient
    loadings, slope = items[:, :-1], gradient[:, :-1]
    is_zero = loadings == 0.0
    assert 0 < is_zero.sum() < is_zero.size
    assert_allclose(slope[~is_zero], 6.0 * np.sign(loadings[~is_zero]), atol=1e-6)
    assert np.all(np.abs(slope[is_zero]) <= 6.0 + 1e-9)
    assert_allclose(gradient[:, -1], items[:, -1] / spec.intercept_sd**2, atol=1e-7)
    simulated, zeros = simulate(60, 40), []
    for l1 in (0.1, 3.0):
        problem = Plain(simulated.data, JointMAP(l1=l1, tolerance=1e-13))
        items, abilities = steps.ascend(problem, leading_point(*problem)).end
        gradient = steps.item_derivatives(simulated.data, items, abilities).gradient[:, 0]
        is_zero = items[:, 0] == 0.0
        assert_allclose(gradient[~is_zero], l1 * np.sign(items[~is_zero, 0]), atol=5e-3)
        assert np.all(np.abs(gradient[is_zero]) <= l1)
        zeros.append(is_zero.sum())
    assert zeros[0] < zeros[1] < 40
    fit = fit_joint_map(simulate(30, 20).data, JointMAP(l1=1000.0))
    assert_array_equal(fit.loadings, 0.0)
    assert np.all(np.isfinite(fit.item_covariance))


def test_a_jump_along_sweeps_of_one_rate_of_convergence_ends_at_the_top(rng):
    """``x + c r^k`` at k = 0, 1, 2 gives x (Aitken's formula): after two sweeps, of which each goes 0.3 of the way."""
    top = Point(rng.random((4, 3)) + 0.5, rng.normal(size=(5, 2)))

    def derivatives(point):
        return SimpleNamespace(value=1.0 - sum(np.sum((a - b) ** 2) for a, b in zip(point, top, strict=True)))

    problem = SimpleNamespace(
        spec=JointMAP(max_iterations=9, tolerance=1e-10),
        item_derivatives=derivatives,
        ability_derivatives=derivatives,
        item_step=lambda point, _: 0.3 * (top.items - point.items),
        ability_step=lambda point, _: 0.3 * (top.abilities - point.abilities),
        settled=lambda point: point,
        log_prior=lambda _: 0.0,
    )
    history = steps.ascend(problem, Point(2.0 * top.items, rng.normal(size=(5, 2)))).history
    assert history[2] < 0.9
    assert history[3] == pytest.approx(1.0, abs=1e-12)


@ITEM_MODELS
def test_the_density_rises_to_the_end_and_a_common_slope_is_common(item_model, n_dims):
    simulated = simulate(50, 80, n_dims=n_dims, missing=0.2)
    fit = fit_joint_map(simulated.data, JointMAP(item_model, n_dims=n_dims))
    assert fit.converged
    assert np.all(np.diff(fit.history) >= -1e-9 * np.abs(fit.history[-1]))
    total = np.cov(fit.abilities.T, bias=True).reshape(n_dims, n_dims) + fit.ability_covariance.mean(axis=0)
    assert_allclose(total, np.eye(n_dims), atol=1e-10)
    assert (fit.loadings.std() < 1e-12) == (item_model == "1pl")


@pytest.mark.parametrize("arguments", [{"l1": 0.0}, {"intercept_sd": 0.0}])
def test_priors_that_leave_no_optimum_are_refused(arguments):
    with pytest.raises(ParameterError, match="must be a finite number > 0"):
        JointMAP(**arguments)


@pytest.mark.parametrize(
    ("data", "n_dims", "l1"),
    [
        (simulate(11, 7).data, 1, 0.1),
        (simulate(11, 7, missing=0.2).data, 1, 1.0),
        (simulate(11, 7, guessing=0.2).data, 1, 0.1),
        (simulate(11, 7, n_dims=2).data, 2, 0.1),
        (counted(10, 6, missing=True, seed=3), 1, 0.1),
    ],
    ids=["plain", "missing", "guessing", "two abilities", "counts"],
)
def test_no_general_optimiser_finds_a_better_point_nearby(data, n_dims, l1):
    spec = JointMAP("2pl" if n_dims == 1 else "mirt", n_dims=n_dims, l1=l1, tolerance=1e-12, max_iterations=5000)
    start = leading_point(data, spec)
    path = steps.ascend(Plain(data, spec), start)
    assert path.converged
    ours = penalised(data, spec, *path.end)
    # the history is the same objective up to a constant
    assert path.history[-1] - path.history[0] == pytest.approx(penalised(data, spec, *start) - ours, rel=1e-8)
    items, abilities = path.end

    def smooth(loadings, rest):
        moved = np.column_stack([loadings, rest[: len(items)]])
        value = penalised(data, spec, moved, rest[len(items) :].reshape(abilities.shape))
        return value - l1 * np.abs(loadings).sum()

    best = least_nearby(smooth, l1, items[:, :-1], np.append(items[:, -1], abilities))
    assert ours == pytest.approx(best, abs=1e-4 * abs(best) if n_dims > 1 else 1e-4)


def test_covariances_are_inverse_blocks_of_the_information_of_every_trial():
    single, data = simulate(60, 40).data, counted(60, 40, seed=4)
    data = replace(data, n_trials=data.n_trials * 50.0)
    # on the reported scale the block of an item is X' W X, plus the intercept's prior moved with the scale
    for one, trials, rtol in ((single, np.ones((60, 40)), 0.1), (data, data.n_trials, 0.02)):
        fit = fit_joint_map(one, JointMAP())
        design = np.column_stack([fit.abilities, np.ones(60)])
        share = expit(fit.abilities @ fit.loadings.T + fit.intercept)
        for item in (0, 7):
            weights = trials[:, item] * share[:, item] * (1.0 - share[:, item])
            without_prior = np.linalg.inv((design * weights[:, None]).T @ design)
            assert np.all(np.diag(fit.item_covariance[item]) <= np.diag(without_prior) + 1e-9)
            assert_allclose(fit.item_covariance[item], without_prior, rtol=rtol)


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_derivatives_of_counts_are_those_of_the_single_answers(missing, lower):
    data, rng = counted(12, 9, n_dims=2, lower=lower, missing=missing), np.random.default_rng(1)
    single = one_by_one(data)
    items, abilities = rng.normal(size=(9, 3)), rng.normal(size=(12, 2))
    pairs = [
        [of(one, values, abilities) for one, values in ((data, items), (single, repeated(items)))]
        for of in (steps.item_derivatives, steps.ability_derivatives)
    ]
    spec, items, abilities = (
        JointMAP("nested", n_dims=3, general_weight=0.6),
        rng.normal(size=(9, 4)),
        rng.normal(size=(12, 3)),
    )
    problems = (make_problem(data, spec), items), (make_problem(single, spec), repeated(items))
    pairs.append([problem.item_derivatives(Point(values, abilities)) for problem, values in problems])
    pairs.append([problem.ability_derivatives(Point(values, abilities)) for problem, values in problems])
    for ours, theirs in pairs[::2]:
        assert ours.value == pytest.approx(theirs.value, rel=1e-12)
        assert_allclose(ours.gradient, summed(theirs.gradient), atol=1e-11)
        assert_allclose(ours.precision, summed(theirs.precision), atol=1e-11)
    for ours, theirs in pairs[1::2]:
        alike(ours, theirs, "gradient precision", atol=1e-11)
