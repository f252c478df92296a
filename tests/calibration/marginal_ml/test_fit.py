from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from itembank.calibration.calibration_specs import ItemPrior, MarginalML, RelativeItemPrior
from itembank.calibration.fits import FitData
from itembank.calibration.marginal_ml import errors as marginal_ml_errors
from itembank.calibration.marginal_ml import fit as marginal_ml
from itembank.calibration.marginal_ml.em import Problem, em_step, item_derivatives, prior_terms
from itembank.calibration.marginal_ml.errors import affordable_degree, item_covariances, lost_information
from itembank.calibration.marginal_ml.fit import fit_items, fit_marginal_ml
from itembank.calibration.marginal_ml.posterior import ability_grid, ability_posterior, adaptive_grid
from itembank.errors import ParameterError
from tests.calibration.counts import counted, one_by_one, repeated, summed
from tests.calibration.simulated import simulate
from tests.numerics.compare import alike, slopes

BOUNDS = (-6.0, 6.0)
FINE = ability_grid(61, 61, bounds=BOUNDS)


@pytest.mark.parametrize(
    ("item_model", "missing", "guessing"), [("1pl", 0.0, 0.0), ("2pl", 0.2, 0.0), ("2pl", 0.0, 0.2)]
)
@pytest.mark.parametrize("prior", [None, ItemPrior(), RelativeItemPrior()])
def test_the_objective_never_falls(item_model, missing, guessing, prior):
    data = simulate(80, 30, missing=missing, guessing=guessing).data
    fit = fit_marginal_ml(data, MarginalML(item_model, prior=prior, tolerance=1e-6))
    assert fit.converged
    assert np.all(np.diff(fit.history) >= -1e-9 * np.abs(fit.history[-1]))
    assert np.all(np.isfinite(fit.item_covariance))
    assert np.all(np.linalg.eigvalsh(fit.ability_covariance) > 0.0)


def test_abilities_have_mean_zero_and_total_variance_one_by_themselves_at_maximum_likelihood():
    fit = fit_marginal_ml(simulate(50, 200).data, MarginalML())
    assert fit.abilities.mean() == pytest.approx(0.0, abs=1e-10)
    assert fit.abilities.var() + fit.ability_covariance.mean() == pytest.approx(1.0, rel=1e-10)
    step = fit_items(simulate(400, 25).data, MarginalML(prior=None, tolerance=1e-7))[1].end
    assert step.posterior.mean.mean() == pytest.approx(0.0, abs=1e-5)
    assert step.posterior.mean.var() + step.posterior.covariance.mean() == pytest.approx(1.0, abs=1e-5)


def test_more_nodes_than_needed_change_nothing():
    data = simulate(100, 150).data
    automatic, fine = (
        fit_marginal_ml(data, MarginalML(tolerance=1e-7, **more)) for more in ({}, {"n_quadrature": 1001})
    )
    alike(automatic, fine, "loadings intercept", atol=2e-5)
    alike(automatic, fine, "ability_covariance", rtol=1e-3)


def test_nodes_that_cannot_hold_the_posteriors_are_refused_wide_ones_named_and_automatic_ones_grow_with_the_test():
    data = simulate(60, 400).data
    with pytest.raises(ParameterError, match=r"closer than 4 posterior standard deviations.*'auto'"):
        fit_marginal_ml(data, MarginalML(n_quadrature=21))
    messages = [fit_marginal_ml(data, MarginalML(**nodes)).message for nodes in ({"n_quadrature": 61}, {})]
    assert ["results depend on the nodes" in message for message in messages] == [True, False]
    counts = [len(fit_items(simulate(40, n_items).data, MarginalML())[0].grid.nodes) for n_items in (20, 500)]
    assert counts[0] == 61
    assert counts[1] > 100


def test_priors_and_degrees_by_shape_and_a_fit_says_how_its_errors_were_found():
    assert marginal_ml._prior(MarginalML(), 1000, 32) is None
    assert marginal_ml._prior(MarginalML(), 400, 5000) == RelativeItemPrior()
    assert marginal_ml._prior(MarginalML(), 200, 100) == RelativeItemPrior()
    assert marginal_ml._prior(MarginalML(prior=None), 10, 500) is None
    assert [affordable_degree(*shape) for shape in ((1000, 10), (400, 56_000), (20_000, 60_000))] == [12, 1, 0]
    fit = fit_marginal_ml(simulate(60, 40).data, MarginalML())
    assert "observed information, polynomials of degree 12" in fit.message
    assert np.all(np.linalg.eigvalsh(fit.item_covariance) > 0.0)


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (MarginalML, {"n_dims": 2, "item_model": "mirt"}, "must be one of '1pl', '2pl' for this method"),
        (MarginalML, {"bounds": (1.0, 6.0)}, "enclose 0"),
        (MarginalML, {"n_quadrature": 1}, "at least 2"),
        (ItemPrior, {"intercept_sd": 0.0}, "must be > 0"),
        (RelativeItemPrior, {"slope_sd": -1.0}, "must be > 0"),
    ],
)
def test_impossible_specs_and_priors_without_spread_are_refused(kind, arguments, words):
    with pytest.raises(ParameterError, match=words):
        kind(**arguments)


@pytest.mark.parametrize("n_items", [7, 30, 50])
def test_items_of_one_slope_have_no_line_of_intercepts(n_items):
    problem = fit_items(simulate(20, n_items).data, MarginalML("1pl"))[0]
    assert problem.prior.line_slope == 0.0


def test_an_item_with_the_wrong_key_gets_a_negative_slope_and_known_guessing_is_taken_into_account():
    simulated = simulate(200, 40)
    simulated.data.responses[:, 5] = 1.0 - (simulated.theta[:, 0] > 0.3)
    fit = fit_marginal_ml(simulated.data, MarginalML())
    assert fit.loadings[5, 0] < -0.3
    simulated = simulate(400, 60, guessing=0.25, seed=4)
    without = FitData(simulated.data.responses, None, np.zeros(60))
    right, wrong = (fit_marginal_ml(data, MarginalML()) for data in (simulated.data, without))
    errors = [np.sqrt(np.mean((fit.intercept - simulated.intercept) ** 2)) for fit in (right, wrong)]
    assert errors[0] < 0.6 * errors[1]


def standard_errors(covariances):
    return np.sqrt(np.einsum("ijj->ij", covariances))


@pytest.mark.slow
def test_standard_errors_are_the_spread_over_data_sets():
    # new models from the same population each time: the errors must know that their abilities are unknown
    rng = np.random.default_rng(7)
    slope, intercept = rng.lognormal(0.0, 0.3, 20), rng.normal(size=20)
    found, claimed = [], []
    for _ in range(150):
        chances = expit(rng.normal(size=400)[:, None] * slope + intercept)
        data = FitData((rng.random(chances.shape) < chances).astype(float), None, np.zeros(20))
        fit = fit_marginal_ml(data, MarginalML(prior=None))
        found.append(np.column_stack([fit.loadings, fit.intercept]))
        claimed.append(standard_errors(fit.item_covariance))
    ratio = np.std(found, axis=0) / np.mean(claimed, axis=0)  # (n_items, 2), each with error 0.06
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)
    assert np.all(np.abs(ratio - 1.0) < 0.25)


def numerical_information(data, items):
    """Minus the second derivatives of the log marginal likelihood, by differences of its gradient."""

    def gradient(flat):
        moved = flat.reshape(items.shape)
        return item_derivatives(data, moved, ability_posterior(data, moved, FINE), FINE).gradient.ravel()

    information = -slopes(gradient, items.ravel(), 1e-4)
    return 0.5 * (information + information.T)


def blocks_of(matrix, items):
    n_items, size = items.shape
    index = np.arange(n_items)
    return matrix.reshape(n_items, size, n_items, size)[index, :, index, :]


@pytest.mark.parametrize(("missing", "guessing"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2)])
@pytest.mark.parametrize("prior", [None, ItemPrior()])
def test_covariances_are_those_of_the_whole_information_matrix(missing, guessing, prior):
    # enough models for the information to be positive definite even away from the maximum
    simulated = simulate(600, 7, missing=missing, guessing=guessing, seed=3)
    items = np.column_stack([np.abs(simulated.loadings) + 0.3, simulated.intercept])
    problem, information = Problem(simulated.data, FINE, prior), numerical_information(simulated.data, items)
    if prior is not None:
        index = np.arange(len(items))
        information.reshape(7, 2, 7, 2)[index, :, index, :] += prior_terms(items, prior).precision
    expected = blocks_of(np.linalg.inv(information), items)
    found, _ = item_covariances(problem, em_step(problem, items), degree=12)
    assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_covariances_of_a_common_slope():
    simulated = simulate(200, 6, common_slope=1.2, missing=0.1)
    items = np.column_stack([np.full(6, 1.2), simulated.intercept])
    problem = Problem(simulated.data, FINE, None, has_common_slope=True)
    expand = np.zeros((12, 7))  # from (slope, intercepts) to all parameters
    expand[::2, 0], expand[1::2, 1:] = 1.0, np.eye(6)
    information = expand.T @ numerical_information(simulated.data, items) @ expand
    expected = blocks_of(expand @ np.linalg.inv(information) @ expand.T, items)
    found, _ = item_covariances(problem, em_step(problem, items), degree=10)
    assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("item_model", ["1pl", "2pl"])
def test_both_sides_of_the_woodbury_identity_agree(item_model):
    simulated = simulate(40, 30, common_slope=1.0 if item_model == "1pl" else None)
    problem, path = fit_items(simulated.data, MarginalML(item_model, prior=ItemPrior()))
    lost = lost_information(problem.data, path.end.items, problem.grid, degree=2)
    core = marginal_ml_errors._core(problem, path.end)
    by_models, by_parameters = marginal_ml_errors._by_models(core, lost), marginal_ml_errors._by_parameters(core, lost)
    assert_allclose(by_models, by_parameters, rtol=1e-9, atol=1e-12)


def test_linear_functions_nearly_suffice_when_abilities_are_known_well():
    problem, path = fit_items(simulate(120, 250, seed=1).data, MarginalML())
    exact, linear, none = (
        standard_errors(item_covariances(problem, path.end, degree=degree)[0]) for degree in (6, 1, 0)
    )
    # measured: 0.9989 and 0.9853 at the median, 0.976 and 0.82 at the least
    assert np.median(linear / exact) == pytest.approx(1.0, abs=0.003)
    assert (linear / exact).min() > 0.95
    assert np.median(none / exact) < 0.995
    assert np.all(none <= exact * (1.0 + 1e-9))


@pytest.mark.parametrize(("missing", "lower"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_posteriors_and_derivatives_of_counts_are_those_of_the_single_answers(missing, lower):
    data, rng = counted(12, 9, lower=lower, missing=missing), np.random.default_rng(1)
    items, single, grid = rng.normal(size=(9, 2)), one_by_one(data), ability_grid(61, 31, bounds=BOUNDS)
    ours, theirs = ability_posterior(data, items, grid), ability_posterior(single, repeated(items), grid)
    assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-11)
    assert_allclose(ours.mean, theirs.mean, atol=1e-10)
    for observed in (False, True):
        mine = item_derivatives(data, items, ours, grid, observed=observed)
        other = item_derivatives(single, repeated(items), ours, grid, observed=observed)
        assert_allclose(mine.gradient, summed(other.gradient), atol=1e-10)
        assert_allclose(mine.precision, summed(other.precision), atol=1e-10)
    mine = lost_information(data, items, grid, degree=2).factors(slice(0, 9))
    other = lost_information(single, repeated(items), grid, degree=2).factors(slice(0, 9 * 6))
    assert_allclose(mine, summed(other), atol=1e-9)


def marginal_log_likelihood(data, values):
    """Of all models, on a fine grid of ability, written anew."""
    slope, intercept = values.reshape(2, -1)
    nodes = np.linspace(-6.0, 6.0, 241)
    log_weights = -0.5 * nodes**2 - logsumexp(-0.5 * nodes**2)
    chances = expit(nodes[:, None] * slope + intercept)
    n_correct = data.responses * data.n_trials
    log_joint = n_correct @ np.log(chances).T + (data.n_trials - n_correct) @ np.log1p(-chances).T
    return logsumexp(log_joint + log_weights, axis=1).sum()


@pytest.mark.parametrize("missing", [False, True])
def test_the_fit_of_counts_and_its_errors_are_those_of_the_marginal_likelihood(missing):
    data = counted(40, 6, missing=missing, seed=2)
    problem, path = fit_items(data, MarginalML(prior=None, tolerance=1e-7))

    def loss(values):
        return -marginal_log_likelihood(data, values)

    found = minimize(loss, np.repeat([1.0, 0.0], 6), options={"gtol": 1e-6})
    assert_allclose(path.end.items, found.x.reshape(2, -1).T, atol=2e-4)
    assert path.end.objective == pytest.approx(-found.fun, abs=1e-4)
    hessian = slopes(lambda at: slopes(loss, at, 1e-3), path.end.items.T.ravel(), 1e-3)
    theirs = np.sqrt(np.diag(np.linalg.inv(hessian))).reshape(2, -1).T
    assert_allclose(standard_errors(item_covariances(problem, path.end)[0]), theirs, rtol=2e-3)


def test_curve_nodes_suffice_for_many_trials():
    data = counted(8, 6, seed=3)
    data, items = replace(data, n_trials=data.n_trials * 1e4), np.array([[1.0, 0.0], [3.0, -1.0], [6.0, 0.5]] * 2)
    grid = adaptive_grid(0.01, 6.0, n_trials=6e4, bounds=BOUNDS)
    assert len(grid.curve_nodes) < len(grid.nodes) / 2
    few = len(adaptive_grid(0.01, 6.0, bounds=BOUNDS).curve_nodes)
    exact, coarse = (ability_grid(len(grid.nodes), n, bounds=BOUNDS) for n in (len(grid.nodes), few))
    ours, theirs, far = (ability_posterior(data, items, one).log_likelihood for one in (grid, exact, coarse))
    assert_allclose(ours, theirs, atol=0.02)  # of 10^5 answers, each off by less than 2e-7
    assert np.abs(far - theirs).max() > 0.02
