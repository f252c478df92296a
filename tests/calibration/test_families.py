from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit

from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration import families
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.fits import Fit, PreparedResponses
from itembank.calibration.item_model_bias import item_model_bias
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.folds import folds, spec_of
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior
from itembank.responses.responses import ResponseMatrix

N_MODELS, N_ITEMS = 16, 20
SCENARIOS = ["math"] * 10 + ["law"] * 10


def simulated(family, *, n_models=N_MODELS, edges=False):
    rng = np.random.default_rng(0)
    chances = expit(rng.normal(size=(n_models, 1)) - rng.normal(size=N_ITEMS))
    if family == "beta":
        values = np.clip(rng.beta(20 * chances, 20 * (1 - chances)), 1e-4, 1 - 1e-4)
        return ResponseMatrix.create(values, scenarios=SCENARIOS)
    trials = rng.integers(2, 9, chances.shape)
    values = rng.binomial(trials, chances) / trials
    values[:, 0] = np.maximum(values[:, 0], 1 / 8)  # right once at least, and not always
    if edges:
        values[:, 3], values[:, 12] = 0.0, 1.0
    return ResponseMatrix.create(values, scenarios=SCENARIOS, n_trials=trials)


def test_probabilities_at_the_ends_count_alike_in_calibration_and_scoring():
    rng, n_items, precision = np.random.default_rng(1), 300, 6.0
    theta = rng.normal(size=80)
    theta = (theta - theta.mean()) / theta.std()
    slope, difficulty = rng.lognormal(0.3, 0.4, n_items), rng.normal(0.3, 1.5, n_items)

    def draw(theta):
        chances = expit(slope * (theta[:, None] - difficulty))
        return rng.beta(*(np.maximum(precision * chance, 1e-9) for chance in (chances, 1.0 - chances)))

    responses = draw(theta)
    assert np.mean((responses < 1e-6) | (responses > 1 - 1e-6)) > 0.09
    with pytest.warns(DataWarning, match="clipped"):
        found = fit_item_model(ResponseMatrix.create(responses), Variational(family="beta", tolerance=1e-4))
    again = map_abilities(found.parameters, responses, found.prior)
    assert np.sqrt(np.mean(((again.theta - found.abilities) / again.standard_errors) ** 2)) < 0.1
    others = rng.normal(-1.0, 1.0, 200)
    scored = map_abilities(found.parameters, draw(others), found.prior)
    away = scored.theta[:, 0] - others
    assert np.sqrt(np.mean(away**2)) < 0.05
    assert np.sqrt(np.mean((away / scored.standard_errors[:, 0]) ** 2)) < 1.15


def test_repeated_trials_are_counts():
    counted = fit_item_model(simulated("binomial"))
    assert (counted.parameters.family, dict(counted.thresholds)) == ("binomial", {})
    single = replace(simulated("binomial"), n_trials=None)
    found = fit_item_model(single)
    assert found.parameters.family == "bernoulli"
    assert set(found.thresholds) == {"math", "law"}
    once = replace(single, n_trials=np.ones((N_MODELS, N_ITEMS), dtype=int))
    assert families.with_family(Variational(), once).family == "bernoulli"


def without_a_trial():
    made = simulated("binomial")
    made.n_trials[2, 5] = 0
    return made


RIGHT_AND_WRONG = ResponseMatrix.create(np.random.default_rng(0).integers(0, 2, (8, 12)).astype(float))


@pytest.mark.parametrize(
    ("responses", "family", "message"),
    [
        (replace(simulated("binomial"), n_trials=None), "binomial", "needs the number of trials behind each response"),
        (replace(simulated("binomial"), n_trials=None), "beta-binomial", "needs the number of trials behind each resp"),
        (RIGHT_AND_WRONG, "beta", "family must be 'bernoulli' or 'auto' for responses that are all 0 or 1"),
        (without_a_trial(), "binomial", r"at least one trial, got none for 1 response, in items 'item-6'"),
    ],
    ids=["rates", "rates, beta", "right and wrong", "without a trial"],
)
def test_responses_that_a_family_cannot_have_are_refused(responses, family, message):
    with pytest.raises(DataError, match=message):
        fit_item_model(responses, Variational(family=family))


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_items_answered_alike_in_all_trials_are_flagged_and_get_parameters(family):
    found = fit_item_model(simulated(family, edges=True), Variational(family=family))
    assert_array_equal(np.flatnonzero(found.is_degenerate), [3, 12])
    difficulty = -found.parameters.intercept
    assert (difficulty[3], difficulty[12]) == (difficulty.max(), difficulty.min())
    assert np.all(np.isfinite(found.standard_errors))
    assert found.standard_errors[3, 1] > np.median(found.standard_errors[:, 1])


def test_a_constant_share_tells_of_its_item_and_clipped_probabilities_are_counted_and_told():
    made = simulated("binomial")
    made.responses[:, 4], made.n_trials[:, 4] = 0.5, 8
    found = fit_item_model(made)
    assert not found.is_degenerate[4]
    assert abs(found.parameters.intercept[4]) < 0.5
    made = simulated("beta")
    made.responses[0, :3], made.responses[1, 0] = 0.0, 1.0
    with pytest.warns(DataWarning, match=r"4 of 320 probabilities lie outside .* \(3 are exactly 0, 1 exactly 1\)"):
        found = fit_item_model(made, Variational(family="beta", tolerance=1e-2))
    assert not found.is_degenerate.any()


def test_single_precision_responses_stay_so():
    made = simulated("beta")
    single = ResponseMatrix.create(made.responses.astype(np.float32), scenarios=SCENARIOS)
    assert single.responses.dtype == np.float32
    found, other = (fit_item_model(one, Variational(family="beta", tolerance=1e-3)) for one in (single, made))
    assert_allclose(found.parameters.loadings, other.parameters.loadings, atol=0.01)


@pytest.mark.parametrize(("precision", "n_precisions"), [("scenario", 2), ("global", 1), (9.0, 1)])
def test_precisions(precision, n_precisions):
    spec = Variational(family="beta", precision=precision, tolerance=1e-2)
    assert np.unique(families.precision_index(spec, SCENARIOS)).size == n_precisions
    found = fit_item_model(simulated("beta"), spec)
    assert np.unique(found.parameters.precision).size == n_precisions
    if precision == 9.0:
        assert_array_equal(found.parameters.precision, 9.0)
        assert found.log_precision_error is None
    else:
        assert np.all(found.log_precision_error > 0.0)


@pytest.mark.parametrize("family", ["binomial", "beta", "beta-binomial"])
def test_banks_keep_their_family_in_folds_and_files(family, tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 2)
    spec = Variational(family=family, tolerance=1e-2)
    bank = calibrate(simulated(family), spec, rng=0)
    save_bank(bank, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert spec_of(loaded.calibration) == spec
    if bank.calibration.log_precision_error is not None:
        assert_array_equal(loaded.calibration.log_precision_error, bank.calibration.log_precision_error)
    made = folds(loaded)
    assert {fold.bank.parameters.family for fold in made} == {family}
    found = made[0].bank.parameters
    expected = fit_item_model(made[0].bank.responses, spec).parameters
    assert_allclose(found.intercept, expected.intercept)
    if expected.precision is not None:
        assert_allclose(found.precision, expected.precision)


def test_the_bias_counts_trials():
    made, spec = simulated("binomial", n_models=30), Variational(tolerance=1e-4)
    targets = calibrate(made, spec, rng=0).targets
    rich = replace(made, n_trials=made.n_trials * 50)
    few, many = (item_model_bias(one, spec, targets, rng=np.random.default_rng(0)) for one in (made, rich))
    assert np.all(np.isfinite(few))
    assert not np.allclose(few, many)


@pytest.mark.parametrize(
    ("kind", "choices", "message"),
    [
        (Variational, {"family": "poisson"}, "family must be one of"),
        (Variational, {"family": "beta", "precision": 0.0}, "precision must be a finite number > 0"),
        (Variational, {"family": "beta", "precision": "each"}, "'global' or 'scenario'"),
        (Variational, {"item_model": "mirt", "n_dims": 2, "positive_discrimination": True}, "for one dimension"),
        (MarginalML, {"family": "beta"}, "this method has no family 'beta', the variational one has it"),
        (MarginalML, {"item_model": "nested", "n_dims": 2}, r"got 'nested'\. The variational method has it"),
        (JointMAP, {"item_model": "nested", "n_dims": 3, "family": "beta"}, "this method has no family 'beta'"),
        (JointMAP, {"family": "gamma"}, "family must be one of"),
    ],
)
def test_choices_that_cannot_be(kind, choices, message):
    with pytest.raises(ParameterError, match=message):
        kind(**choices)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0).map(lambda value: round(value, 2)), min_size=1, max_size=40))
def test_no_other_threshold_keeps_the_total_better(values):
    values = np.array(values)
    misfit = abs(np.sum(values >= families.best_threshold(values)) - values.sum())
    others = np.abs(np.sum(values >= np.linspace(0.0, 1.01, 1200)[:, None], axis=1) - values.sum())
    assert misfit <= others.min()


def test_thresholds_by_hand_where_there_are_fractions():
    # the paper's example, of sum 2.5: two or three ones are equally close
    assert families.best_threshold(np.array([0.1, 0.2, 0.6, 0.7, 0.9])) == 0.7
    assert families.best_threshold(np.full(4, 0.3)) > 0.3  # all alike below one half become wrong
    responses = np.array([[0.0, 1.0, 0.2, 0.9], [1.0, np.nan, 0.8, np.nan]])
    thresholds = families.scenario_thresholds(responses, ["binary", "binary", "graded", "graded"])
    assert thresholds == {"graded": pytest.approx(0.8)}


def made_up(rng, *, n_models=30, n_items=12, n_dims=2, common_slope=None):
    """A fit of made-up parameters."""
    shape = (n_items, n_dims)
    loadings = rng.lognormal(0.0, 0.4, shape) if common_slope is None else np.full((n_items, 1), common_slope)
    size = loadings.shape[1]
    abilities = rng.normal(size=(n_models, size))
    of_items, of_models = (0.1 * np.tile(np.eye(k), (n, 1, 1)) for k, n in ((size + 1, n_items), (size, n_models)))
    rest = (AbilityPrior.standard(size), True, 1, "", np.zeros(1))
    return Fit(loadings, rng.normal(size=n_items), of_items, abilities, of_models, *rest)


def with_degenerate(fit, rng, columns, *, order=None, lower=0.0):
    """Put degenerate columns back behind the fitted items, whose responses do not matter, all in an order."""
    n_models, n_items = len(fit.abilities), len(fit.loadings)
    varied = np.zeros((n_models, n_items))
    varied[rng.integers(n_models, size=n_items), np.arange(n_items)] = 1.0
    order = np.arange(n_items + len(columns)) if order is None else order
    responses, is_degenerate = np.column_stack([varied, *columns])[:, order], order >= n_items
    prepared = PreparedResponses("bernoulli", responses, None, {}, is_degenerate)
    return families.put_back(fit, prepared, np.where(is_degenerate, lower, 0.0))


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_a_degenerate_item_is_found_and_has_the_mode_of_its_posterior(lower):
    responses = np.array([[1.0, 0.0, 1.0, np.nan], [1.0, 0.0, 0.0, 1.0], [np.nan, 0.0, 1.0, np.nan]])
    assert_array_equal(families.find_degenerate(responses), [True, True, False, True])
    rng = np.random.default_rng(1)
    fit, right = made_up(rng), np.ones(30)
    right[5:20] = np.nan
    parameters, _ = with_degenerate(fit, rng, [right], lower=lower)
    fitted = np.column_stack([fit.loadings, fit.intercept])
    precision = np.linalg.inv(np.cov(fitted.T) + 1e-6 * np.eye(3))
    design = np.column_stack([fit.abilities, np.ones(30)])[~np.isnan(right)]

    def objective(beta):
        distance = beta - fitted.mean(axis=0)
        return 0.5 * distance @ precision @ distance - np.sum(np.log(lower + (1.0 - lower) * expit(design @ beta)))

    expected = minimize(objective, fitted.mean(axis=0), method="BFGS", options={"gtol": 1e-8}).x
    assert_allclose([*parameters.loadings[12], parameters.intercept[12]], expected, atol=1e-5)
    assert parameters.lower_asymptote[12] == lower


def test_what_nobody_solved_is_improbable_for_them_and_less_so_for_stronger_models():
    rng = np.random.default_rng(2)
    parameters, _ = with_degenerate(made_up(rng, n_dims=1), rng, [np.zeros(30)])
    chances = probability(parameters, np.array([[0.0], [3.0], [6.0]]))[:, 12]
    assert chances[0] < 0.1
    assert np.all(np.diff(chances) > 0.05)


def test_fitted_items_keep_their_parameters_order_and_common_slope_and_one_of_them_is_prior_enough():
    rng = np.random.default_rng(3)
    fit, order = made_up(rng), np.array([13, *range(5), 12, *range(5, 12)])
    parameters, covariance = with_degenerate(fit, rng, [np.zeros(30), np.ones(30)], order=order)
    fitted = np.flatnonzero(order < 12)
    assert_array_equal(parameters.loadings[fitted], fit.loadings)
    assert_array_equal(parameters.intercept[fitted], fit.intercept)
    assert_array_equal(covariance[fitted], fit.item_covariance)
    assert parameters.intercept[0] > parameters.intercept[6]  # all right above all wrong
    parameters, _ = with_degenerate(made_up(rng, common_slope=1.3), rng, [np.zeros(30)])
    assert parameters.loadings[12, 0] == pytest.approx(1.3, abs=1e-4)
    parameters, covariance = with_degenerate(made_up(rng, n_items=1), rng, [np.ones(30)])
    assert np.isfinite(parameters.loadings).all()
    assert np.all(np.linalg.eigvalsh(covariance[1]) > 0.0)


def test_the_majority_is_predicted_for_every_model_on_request():
    """WILD A.1: (n + 1/2) / (n + 1) for n equal answers, whatever the ability."""
    responses = (np.random.default_rng(0).random((20, 12)) < 0.5).astype(float)
    responses[:, 3], responses[:, 7] = 1.0, 0.0
    responses[:5, 7] = np.nan
    found = fit_item_model(ResponseMatrix.create(responses), JointMAP("nested", n_dims=2, degenerate="majority"))
    assert_array_equal(found.is_degenerate, np.isin(np.arange(12), [3, 7]))
    assert_array_equal(found.parameters.loadings[[3, 7]], 0.0)
    assert_allclose(expit(found.parameters.intercept[[3, 7]]), [20.5 / 21.0, 0.5 / 16.0])
    # the binomial information of n + 1 answers about a logit is (n + 1) p (1 - p)
    variance = found.item_covariance[[3, 7], -1, -1]
    assert_allclose(1.0 / variance, [21.0 * (20.5 * 0.5) / 21.0**2, 16.0 * (15.5 * 0.5) / 16.0**2])
