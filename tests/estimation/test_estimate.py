import dataclasses
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from itembank.bank.norms import noise_ratio
from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import checked
from itembank.estimation.estimator_specs import GPIRT
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.estimation.simulated import full_scores, new_models, possible_range, select_cells, shared_bank, with_gaps

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=20, n_items=60)


def test_items_without_weight_are_not_needed_for_an_exact_score(bank):
    weights = np.where(np.arange(60) < 9, 0.0, 1.0)
    items = bank.responses.items.with_columns(weight=pl.Series(weights))
    custom = dataclasses.replace(bank, targets=ScoreTargets.create(items, within="custom"))
    responses = new_models(bank)
    found = estimate(custom, responses.take(items=np.arange(9, 60)), method="gp-irt")
    np.testing.assert_allclose(found.value, full_scores(custom, responses), atol=1e-14)
    np.testing.assert_array_equal(found.standard_error, 0.0)


def test_blocks_of_models_change_nothing(bank, monkeypatch):
    responses = with_gaps(new_models(bank), "scattered")
    whole = estimate(bank, responses, method="gp-irt")
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 30)
    blocked = estimate(bank, responses, method="gp-irt")
    np.testing.assert_allclose(blocked.value, whole.value, atol=1e-9)
    np.testing.assert_allclose(blocked.standard_error, whole.standard_error, atol=1e-9)


def test_p_irt_is_the_brute_force_sum_at_the_posterior_mode(bank):
    responses = with_gaps(new_models(bank), "scattered")
    found = estimate(bank, responses, method="p-irt")
    prior, parameters = bank.calibration.prior, bank.parameters
    for model in range(responses.n_models):
        values = responses.responses[model]
        seen = np.flatnonzero(~np.isnan(values))

        def loss(theta, values=values, seen=seen):
            x = parameters.loadings[seen] @ theta + parameters.intercept[seen]
            distance = theta - prior.mean
            return np.sum(np.logaddexp(0.0, x) - values[seen] * x) + 0.5 * distance @ np.linalg.solve(
                prior.covariance, distance
            )

        theta = minimize(loss, np.zeros(2), tol=1e-12).x
        np.testing.assert_allclose(found.abilities[model], theta, atol=1e-4)
        filled = np.where(np.isnan(values), probability(parameters, theta[None])[0], values)
        expected = [filled[bank.targets.scenario_index == j].mean() for j in range(3)]
        np.testing.assert_allclose(found.value[model, :3], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*answered unlike the bank")
def test_gp_irt_is_the_mixture_with_lambda_from_the_bank(bank):
    responses = new_models(bank)
    for method, factor in (("random", 1.0), ("stratified", 1.0), ("anchor-irt", 4.0), ("anchor-correctness", 4.0)):
        selection = select(bank, 30, method=method, rng=0)
        weighted = estimate(bank, responses, selection=selection, method="weighted").value[:, :3]
        predicted = estimate(bank, responses, selection=selection, method="p-irt").value[:, :3]
        found = estimate(bank, responses, selection=selection, method="gp-irt")
        variance = bank.response_variance / (factor * 10)
        share = bank.item_model_bias**2 / (bank.item_model_bias**2 + variance)
        np.testing.assert_allclose(found.sample_share, np.tile(share, (6, 1)))
        np.testing.assert_allclose(found.value[:, :3], share * weighted + (1.0 - share) * predicted)


def test_an_unmeasured_bias_is_taken_as_large_and_a_measured_one_counts_as_of_random_items(bank):
    found = estimate(bank, with_gaps(new_models(bank), "scattered"), method="gp-irt", interval="model-based")
    n_observed = found.n_items[:, :3]
    bias2 = bank.item_model_bias**2
    np.testing.assert_allclose(found.sample_share, bias2 / (bias2 + bank.response_variance / n_observed))
    unmeasured = dataclasses.replace(bank, item_model_bias=np.full(3, np.nan))
    selection = select(bank, 30, method="random", rng=0)
    responses = new_models(bank)
    for bias in (0.05, 0.2):
        found = estimate(unmeasured, responses, selection=selection, method=GPIRT(unmeasured_bias=bias))
        np.testing.assert_allclose(found.sample_share[0], bias**2 / (bias**2 + bank.response_variance / 10))
    default = estimate(unmeasured, responses, selection=selection, method="gp-irt").sample_share
    np.testing.assert_allclose(default[0], 0.05**2 / (0.05**2 + bank.response_variance / 10))


def test_the_estimated_factor_measures_the_anchors_on_the_calibration_models(bank):
    selection = select(bank, 30, method="anchor-correctness", rng=0)
    found = estimate(bank, new_models(bank), selection=selection, method=GPIRT("estimated"))
    positions = bank.responses.item_indices(selection.item_ids)
    errors = np.zeros((bank.n_models, 3))
    for j, name in enumerate(bank.targets.scenarios):
        own = np.array(selection.scenarios) == name
        estimates = bank.responses.responses[:, positions[own]] @ selection.weights[own]
        errors[:, j] = estimates - bank.scenario_scores[:, j]
    variance = np.mean(errors**2, axis=0)  # sigma^2 / (k n) with the measured k
    share = bank.item_model_bias**2 / (bank.item_model_bias**2 + variance)
    np.testing.assert_allclose(found.sample_share[0], share)


def test_only_the_items_of_the_selection_count_by_its_weights(bank):
    responses = new_models(bank)
    selection = select(bank, 12, rng=0)
    whole = estimate(bank, responses, selection=selection)
    cut = estimate(bank, select_cells(responses, selection), selection=selection)
    np.testing.assert_allclose(whole.value, cut.value)
    assert whole.n_items[0, -1] == 12
    ids = [bank.item_ids[index] for index in (0, 3, 1, 4, 2, 5)]
    scenarios = tuple(item.split("/")[0] for item in ids)
    selection = Selection(tuple(ids), scenarios, np.array([0.9, 0.1, 0.2, 0.8, 0.5, 0.5]), "anchor-irt", bank.bank_id)
    found = estimate(bank, responses, selection=selection, method="weighted").value
    values = responses.responses
    np.testing.assert_allclose(found[:, 0], 0.9 * values[:, 0] + 0.1 * values[:, 3])
    np.testing.assert_allclose(found[:, 1], 0.2 * values[:, 1] + 0.8 * values[:, 4])


def test_missing_items_of_the_selection_are_counted_and_said(bank):
    selection = select(bank, 12, rng=0)
    responses = new_models(bank, n_models=2)
    lost = responses.item_indices(selection.item_ids[:4])
    values = responses.responses.copy()
    values[1, lost] = np.nan
    with pytest.warns(DataWarning, match=r"of the 12 items .* by 1 of 2 models: 'new-1 \(4\)'"):
        found = estimate(bank, dataclasses.replace(responses, responses=values), selection=selection)
    np.testing.assert_array_equal(found.n_missing, [0, 4])
    np.testing.assert_array_equal(found.n_items[:, -1], [12, 8])


def test_a_model_without_any_response_has_no_estimate_and_no_response_at_all_is_an_error(bank):
    responses = new_models(bank, n_models=3)
    values = responses.responses.copy()
    values[1] = np.nan
    with pytest.warns(DataWarning, match="no response to the items to be used from 'new-1'"):
        found = estimate(bank, dataclasses.replace(responses, responses=values), method="p-irt")
    assert np.isnan(found.value[1]).all()
    assert not np.isnan(found.value[[0, 2]]).any()
    responses = new_models(bank)
    selection = select(bank, 3, rng=0)
    rest = [index for index, item in enumerate(bank.item_ids) if item not in selection.item_ids]
    with pytest.raises(DataError, match=r"at least one response .* got none from 6 models"):
        estimate(bank, responses.take(items=np.array(rest)), selection=selection)


def test_selections_and_items_of_other_banks_are_used_with_a_warning_or_refused(bank):
    selection = dataclasses.replace(select(bank, 12, rng=0), bank="another", target_digest="another")
    with pytest.warns(DataWarning, match="made for bank another"):
        estimate(bank, new_models(bank), selection=selection)
    responses = ResponseMatrix.create(np.ones((1, 2)), item_ids=["math/0", "math/unknown"])
    with pytest.raises(DataError, match="1 of 2 are not: 'math/unknown'"):
        estimate(bank, responses)
    foreign = Selection(("else/1",), ("else",), np.ones(1), "random", bank.bank_id)
    with pytest.raises(DataError, match="every item of the selection must be in bank"):
        estimate(bank, new_models(bank), selection=foreign)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_outside_its_range_is_an_error(bank, level):
    with pytest.raises(ParameterError, match="level must be between 0 and 1"):
        estimate(bank, new_models(bank), level=level)


def test_model_based_intervals_are_normal_quantiles_cut_to_what_is_possible(bank):
    responses = with_gaps(new_models(bank), "scattered")
    for level in (0.5, 0.999999):
        found = estimate(bank, responses, method="gp-irt", interval="model-based", level=level)
        half = norm.ppf((1 + level) / 2) * found.standard_error
        least, most = possible_range(bank, responses)
        np.testing.assert_allclose(found.low, np.maximum(found.value - half, least))
        np.testing.assert_allclose(found.high, np.minimum(found.value + half, most))
    assert found.interval_kind == "model-based"


def test_the_overall_error_counts_that_scenarios_share_ability(bank):
    """Summing independent scenario variances would give less: all three move together with ability."""
    selection = select(bank, 6, method="random", rng=0)
    found = estimate(bank, new_models(bank), selection=selection, method="p-irt")
    independent = np.sqrt(np.sum(found.standard_error[:, :3] ** 2, axis=1)) / 3.0
    assert np.all(found.standard_error[:, 3] > 1.2 * independent)


@pytest.mark.filterwarnings("ignore:.*answered unlike the bank")
def test_binary_ability_and_raw_scores_for_continuous_responses(bank):
    """Ability sees ``Y >= threshold``; the observed part of the score is the raw mean."""
    continuous = dataclasses.replace(
        bank, calibration=dataclasses.replace(bank.calibration, thresholds={"math": 0.3, "code": 0.5, "law": 0.8})
    )
    rng = np.random.default_rng(3)
    responses = new_models(bank)
    raw = dataclasses.replace(responses, responses=rng.random(responses.responses.shape))
    limits = np.array([0.3, 0.5, 0.8])[bank.targets.scenario_index]
    binary = dataclasses.replace(responses, responses=(raw.responses >= limits).astype(float))
    items = np.arange(0, 30)
    found = estimate(continuous, raw.take(items=items), method="p-irt")
    expected = estimate(bank, binary.take(items=items), method="p-irt")
    np.testing.assert_allclose(found.abilities, expected.abilities)
    change = (raw.responses - binary.responses)[:, :30]
    own = bank.targets.scenario_index[:30]
    shift = np.column_stack([change[:, own == j].sum(axis=1) / 20 for j in range(3)])
    np.testing.assert_allclose(found.value[:, :3], expected.value[:, :3] + shift)


def test_noise_ratio_compares_raw_responses_with_the_item_model(bank):
    assert noise_ratio(bank).tolist() == [1.0, 1.0, 1.0]
    p = probability(bank.parameters, bank.calibration.abilities)
    offset = 0.4 * np.sqrt(p * (1.0 - p)) * np.where(np.arange(60) % 2, 1.0, -1.0)
    responses = dataclasses.replace(bank.responses, responses=np.clip(p + offset, 0.0, 1.0))
    continuous = dataclasses.replace(
        bank, responses=responses, calibration=dataclasses.replace(bank.calibration, thresholds={"code": 0.5})
    )
    ratio = noise_ratio(continuous)
    assert ratio[[0, 2]].tolist() == [1.0, 1.0]
    own = bank.targets.scenario_index == 1
    expected = np.sum((responses.responses - p)[:, own] ** 2) / np.sum((p * (1 - p))[:, own])
    assert ratio[1] == pytest.approx(expected)
    assert 0.1 < ratio[1] <= 0.16 + 1e-9  # 0.4 ** 2, less where clipping bites


def test_rows_say_all_that_a_reader_needs(bank):
    found = estimate(bank, with_gaps(new_models(bank, n_models=2), "scattered"), method="gp-irt")
    rows = found.rows()
    assert [(row["model_id"], row["target"]) for row in rows] == list(
        product(("new-0", "new-1"), ("math", "code", "law", "overall"))
    )
    needed = {"estimate", "low", "high", "level", "n_items", "n_total", "method", "bank", "standard_error", "interval"}
    assert needed <= set(rows[0])
    assert rows[3]["estimate"] == found.value[0, 3]
    assert (rows[0]["method"], rows[0]["bank"], rows[0]["n_total"]) == ("gp-irt", bank.bank_id, 20)
    assert {row["interval"] for row in rows} == {"calibrated"}
    assert all(type(row["n_items"]) is int and type(row["low"]) is float for row in rows)


def simulated_bank(n_items, bias):
    """A bank whose item model is the truth, in two dimensions, with three scenarios."""
    bank = make_bank(n_models=30, n_items=n_items, seed=7)
    calibration = dataclasses.replace(bank.calibration, thresholds={}, prior=AbilityPrior.standard(2))
    return dataclasses.replace(bank, calibration=calibration, item_model_bias=np.full(3, bias))


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
@pytest.mark.parametrize("method", ["mean", "weighted", "p-irt", "gp-irt"])
@pytest.mark.parametrize("chosen", ["random", "stratified", "anchor-correctness", "anchor-irt"])
def test_model_based_intervals_cover_when_the_item_model_is_true(method, chosen):
    bank = simulated_bank(600, bias=0.02)
    responses = new_models(bank, n_models=3000, seed=11)
    selection = select(bank, 60, method=chosen, rng=0)
    truth = full_scores(bank, responses)
    for level in (0.8, 0.95):
        found = estimate(bank, responses, selection=selection, method=method, interval="model-based", level=level)
        covered = np.mean((found.low <= truth) & (truth <= found.high), axis=0)
        # the plain mean is charged for its distance from the posterior mean, so it may cover more
        assert np.all(covered > level - 0.03), covered
        if method in {"p-irt", "gp-irt"}:
            assert np.all(covered < level + 0.03), covered


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
def test_p_irt_beats_the_sample_mean_when_the_item_model_is_true():
    bank = simulated_bank(600, bias=0.02)
    responses = new_models(bank, n_models=1000, seed=12)
    truth = full_scores(bank, responses)
    errors = {}
    for method in ("mean", "p-irt", "gp-irt"):
        how = {"method": method, "interval": "model-based"}
        chosen = [select(bank, 60, method="random", rng=seed) for seed in range(5)]
        found = [estimate(bank, responses, selection=selection, **how).value for selection in chosen]
        errors[method] = np.mean(np.abs(np.array(found) - truth), axis=(0, 1))
    assert np.all(errors["p-irt"][:3] < 0.7 * errors["mean"][:3])
    assert errors["p-irt"][3] < errors["mean"][3]
    assert errors["gp-irt"][3] < errors["mean"][3]


def test_one_item_and_one_model_by_enumeration():
    """Three items, one answered: every number follows from the definitions."""
    parameters = ItemParameters.create(np.array([[1.0], [0.5], [2.0]]), np.array([0.0, 1.0, -1.0]))
    base = make_bank(n_models=4, n_items=3, n_dims=1)
    items = pl.DataFrame({"item_id": ["a", "b", "c"], "scenario": ["s"] * 3, "subscenario": [None] * 3})
    bank = dataclasses.replace(
        base,
        responses=dataclasses.replace(base.responses, items=items),
        calibration=dataclasses.replace(base.calibration, parameters=parameters, thresholds={}),
        targets=ScoreTargets.create(items),
        item_model_bias=np.array([0.1]),
        response_variance=np.array([0.2]),
    )
    responses = ResponseMatrix.create(np.array([[1.0]]), item_ids=["b"])
    grid = np.linspace(-8.0, 8.0, 160_001)
    theta = grid[np.argmax(-np.logaddexp(0.0, -(0.5 * grid + 1.0)) - 0.5 * grid**2)]
    p = 1.0 / (1.0 + np.exp(-np.array([theta, 2.0 * theta - 1.0])))  # items a and c
    b = 1.0 / (1.0 + np.exp(-(0.5 * theta + 1.0)))
    ability_variance = 1.0 / (1.0 + 0.25 * b * (1.0 - b))
    mean = (1.0 + p.sum()) / 3.0
    slope = (p * (1.0 - p)) @ np.array([1.0, 2.0]) / 3.0
    variance = slope**2 * ability_variance + np.sum(p * (1.0 - p)) / 9.0
    share = 0.01 / (0.01 + 0.2)
    expected = {"mean": 1.0, "weighted": 1.0, "p-irt": mean, "gp-irt": share + (1.0 - share) * mean}
    for method, value in expected.items():
        found = estimate(bank, responses, method=method)
        np.testing.assert_allclose(found.value, [[value, value]], atol=1e-4)
        np.testing.assert_allclose(found.standard_error, np.sqrt(variance + (value - mean) ** 2), rtol=1e-3)


@pytest.mark.parametrize(("number", "is_owed"), [(np.inf, False), (np.nan, True)])
def test_no_infinite_and_no_missing_estimate_leaves_the_library(number, is_owed):
    bank = make_bank()
    found = estimate(bank, bank.responses.take(models=np.arange(2)), method="p-irt", interval="model-based")
    assert checked(found, np.ones(found.value.shape, dtype=bool)) is found
    found.value[1, 2] = number
    with pytest.raises(DataError, match=r"must be a finite number, got (inf|nan).*1 of 8: 'org/model-1 on law'"):
        checked(found, np.full(found.value.shape, is_owed))


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
@pytest.mark.filterwarnings("ignore:attempts at one item agree:itembank.errors.DataWarning")
@pytest.mark.parametrize("n_trials", [1, 10, 100])
def test_identical_attempts_count_once(n_trials):
    """200 new Rasch models over five banks: what 20 of 100 items tell, asked any number of times at temperature 0."""
    covered, widths = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        chances = expit(rng.normal(size=(100, 1)) - rng.normal(size=100))
        answers = (rng.random(chances.shape) < chances).astype(float)
        names = [f"model-{number}" for number in range(100)]
        responses = ResponseMatrix.create(answers, model_ids=names, n_trials=np.full(answers.shape, n_trials))
        bank = calibrate(responses.take(models=np.arange(60)))
        new = responses.take(models=np.arange(60, 100), items=np.sort(rng.choice(100, 20, replace=False)))
        found = estimate(bank, new, method="p-irt", interval="model-based")
        truth = answers[60:].mean(axis=1)
        covered.append((found.low[:, -1] <= truth) & (truth <= found.high[:, -1]))
        widths.append(found.high[:, -1] - found.low[:, -1])
    assert np.mean(covered) > 0.92 - 0.02  # the standard error of a share of 200
    assert np.mean(widths) < 0.35
