from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.families import best_threshold, precision_index, scenario_thresholds, with_family
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.item_model_bias import item_model_bias
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.folds import folds, spec_of
from itembank.irt.newton import map_abilities
from itembank.responses.responses import ResponseMatrix

N_MODELS, N_ITEMS = 16, 20
SCENARIOS = ["math"] * 10 + ["law"] * 10


def simulated(family, *, seed=0, n_models=N_MODELS, edges=False):
    rng = np.random.default_rng(seed)
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
    assert fit_item_model(single).parameters.family == "bernoulli"
    assert set(fit_item_model(single).thresholds) == {"math", "law"}
    assert with_family(Variational(), replace(single, n_trials=np.ones((N_MODELS, N_ITEMS), dtype=int))).family == (
        "bernoulli"
    )


def test_counts_without_trials_are_refused():
    rates = replace(simulated("binomial"), n_trials=None)
    for family in ("binomial", "beta-binomial"):
        with pytest.raises(DataError, match="needs the number of trials behind each response"):
            fit_item_model(rates, Variational(family=family))


def test_right_and_wrong_are_no_probabilities():
    responses = ResponseMatrix.create(np.random.default_rng(0).integers(0, 2, (8, 12)).astype(float))
    with pytest.raises(DataError, match="family must be 'bernoulli' or 'auto' for responses that are all 0 or 1"):
        fit_item_model(responses, Variational("2pl", family="beta"))


def test_a_response_without_a_trial_is_refused():
    made = simulated("binomial")
    trials = made.n_trials.copy()
    trials[2, 5] = 0
    with pytest.raises(DataError, match=r"at least one trial, got none for 1 responses, in items 'item-6'"):
        fit_item_model(replace(made, n_trials=trials), Variational(family="binomial"))


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_items_answered_alike_in_all_trials_are_flagged_and_get_parameters(family):
    found = fit_item_model(simulated(family, edges=True), Variational(family=family))
    assert_array_equal(np.flatnonzero(found.is_degenerate), [3, 12])
    difficulty = -found.parameters.intercept
    assert difficulty[3] == difficulty.max()
    assert difficulty[12] == difficulty.min()
    assert np.all(np.isfinite(found.standard_errors))
    assert found.standard_errors[3, 1] > np.median(found.standard_errors[:, 1])


def test_a_constant_share_tells_of_its_item():
    made = simulated("binomial")
    values, trials = made.responses.copy(), made.n_trials.copy()
    values[:, 4], trials[:, 4] = 0.5, 8
    found = fit_item_model(replace(made, responses=values, n_trials=trials))
    assert not found.is_degenerate[4]
    assert abs(found.parameters.intercept[4]) < 0.5


def test_clipped_probabilities_are_counted_and_told():
    made = simulated("beta")
    values = made.responses.copy()
    values[0, :3], values[1, 0] = 0.0, 1.0
    with pytest.warns(DataWarning, match=r"4 of 320 probabilities lie outside .* \(3 are exactly 0, 1 exactly 1\)"):
        found = fit_item_model(replace(made, responses=values), Variational(family="beta", tolerance=1e-2))
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
    assert np.unique(precision_index(spec, SCENARIOS)).size == n_precisions
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
    fold = made[0]
    expected = fit_item_model(fold.bank.responses, spec).parameters
    assert_allclose(fold.bank.parameters.intercept, expected.intercept)
    if expected.precision is not None:
        assert_allclose(fold.bank.parameters.precision, expected.precision)


def test_the_bias_counts_trials():
    made = simulated("binomial", n_models=30)
    targets = calibrate(made, Variational(tolerance=1e-4), rng=0).targets
    rich = replace(made, n_trials=made.n_trials * 50)
    few, many = (
        item_model_bias(one, Variational(tolerance=1e-4), targets, rng=np.random.default_rng(0)) for one in (made, rich)
    )
    assert np.all(np.isfinite(few))
    assert not np.allclose(few, many)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Variational(family="poisson"), "family must be one of"),
        (lambda: Variational(family="beta", precision=0.0), "precision must be a finite number > 0"),
        (lambda: Variational(family="beta", precision="each"), "'global' or 'scenario'"),
        (lambda: Variational("mirt", 2, positive_discrimination=True), "for one dimension"),
        (lambda: MarginalML(family="beta"), "this method has no family 'beta', the variational one has it"),
        (lambda: JointMAP("nested", n_dims=3, family="beta"), "this method has no family 'beta'"),
        (lambda: JointMAP(family="gamma"), "family must be one of"),
    ],
)
def test_choices_that_cannot_be(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0).map(lambda value: round(value, 2)), min_size=1, max_size=40))
def test_no_other_threshold_keeps_the_total_better(values):
    values = np.array(values)
    misfit = abs(np.sum(values >= best_threshold(values)) - values.sum())
    others = np.abs(np.sum(values >= np.linspace(0.0, 1.01, 1200)[:, None], axis=1) - values.sum())
    assert misfit <= others.min()


def test_paper_example_of_a_continuous_score():
    values = np.array([0.1, 0.2, 0.6, 0.7, 0.9])  # the sum is 2.5: two or three ones are equally close
    assert best_threshold(values) == 0.7


def test_only_scenarios_with_fractions_get_a_threshold():
    responses = np.array([[0.0, 1.0, 0.2, 0.9], [1.0, np.nan, 0.8, np.nan]])
    thresholds = scenario_thresholds(responses, ["binary", "binary", "graded", "graded"])
    assert thresholds == {"graded": pytest.approx(0.8)}


def test_responses_all_alike_below_one_half_become_wrong():
    assert best_threshold(np.full(4, 0.3)) > 0.3
