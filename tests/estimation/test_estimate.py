import dataclasses
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

import itembank as ib
from itembank.bank.norms import noise_ratio
from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import checked
from itembank.estimation.estimator_specs import GPIRT
from itembank.estimation.observations import chance_shares
from itembank.estimation.predictions import predicted_sums, score_posterior, standard_error
from itembank.estimation.response_summary import ResponseSummary, ScoreBasis, summarise_responses, summary_at
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.estimation.simulated import (
    full_scores,
    having,
    held,
    new_models,
    possible_range,
    select_cells,
    shared_bank,
    small_bank,
    with_gaps,
)

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return shared_bank(n_models=20, n_items=60)


def test_items_without_weight_are_not_needed_for_an_exact_score(bank):
    items = bank.responses.items.with_columns(weight=pl.Series(np.where(np.arange(60) < 9, 0.0, 1.0)))
    custom, responses = dataclasses.replace(bank, targets=ScoreTargets.create(items, within="custom")), new_models(bank)
    found = estimate(custom, responses.take(items=np.arange(9, 60)), method="gp-irt")
    np.testing.assert_allclose(found.value, full_scores(custom, responses), atol=1e-14)
    np.testing.assert_array_equal(found.standard_error, 0.0)


def test_blocks_of_models_change_nothing(bank, monkeypatch):
    responses = with_gaps(new_models(bank), "scattered")
    whole = estimate(bank, responses, method="gp-irt")
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 30)
    np.testing.assert_allclose(estimate(bank, responses, method="gp-irt").scores, whole.scores, atol=1e-9)


def test_p_irt_is_the_brute_force_sum_at_the_posterior_mode(bank):
    responses = with_gaps(new_models(bank), "scattered")
    found = estimate(bank, responses, method="p-irt")
    prior, parameters = bank.calibration.prior, bank.parameters
    for model in range(responses.n_models):
        values = responses.responses[model]
        seen = np.flatnonzero(~np.isnan(values))

        def loss(theta, values=values, seen=seen):
            x, distance = parameters.loadings[seen] @ theta + parameters.intercept[seen], theta - prior.mean
            of_prior = 0.5 * distance @ np.linalg.solve(prior.covariance, distance)
            return np.sum(np.logaddexp(0.0, x) - values[seen] * x) + of_prior

        theta = minimize(loss, np.zeros(2), tol=1e-12).x
        np.testing.assert_allclose(found.abilities[model], theta, atol=1e-4)
        filled = np.where(np.isnan(values), probability(parameters, theta[None])[0], values)
        expected = [filled[bank.targets.scenario_index == j].mean() for j in range(3)]
        np.testing.assert_allclose(found.value[model, :3], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*answered unlike the bank")
def test_gp_irt_is_the_mixture_with_lambda_from_the_bank(bank):
    responses = new_models(bank)
    for method, factor in (("random", 1.0), ("stratified", 1.0), ("anchor-irt", 4.0), ("anchor-correctness", 4.0)):
        choices = {"selection": select(bank, 30, method=method, rng=0)}
        names = ("weighted", "p-irt", "gp-irt")
        weighted, predicted, found = (estimate(bank, responses, method=name, **choices) for name in names)
        variance = bank.response_variance / (factor * 10)
        share = bank.item_model_bias**2 / (bank.item_model_bias**2 + variance)
        np.testing.assert_allclose(found.sample_share, np.tile(share, (6, 1)))
        mixed = share * weighted.value[:, :3] + (1.0 - share) * predicted.value[:, :3]
        np.testing.assert_allclose(found.value[:, :3], mixed)


def test_an_unmeasured_bias_is_taken_as_large_and_a_measured_one_counts_as_of_random_items(bank):
    found = estimate(bank, with_gaps(new_models(bank), "scattered"), method="gp-irt", interval="model-based")
    bias2 = bank.item_model_bias**2
    expected = bias2 / (bias2 + bank.response_variance / found.n_items[:, :3])
    np.testing.assert_allclose(found.sample_share, expected)
    unmeasured = dataclasses.replace(bank, item_model_bias=np.full(3, np.nan))
    choices = {"responses": new_models(bank), "selection": select(bank, 30, method="random", rng=0)}
    for method, bias in ((GPIRT(unmeasured_bias=0.05), 0.05), (GPIRT(unmeasured_bias=0.2), 0.2), ("gp-irt", 0.05)):
        share = estimate(unmeasured, **choices, method=method).sample_share[0]
        np.testing.assert_allclose(share, bias**2 / (bias**2 + bank.response_variance / 10))


def test_the_estimated_factor_measures_the_anchors_on_the_calibration_models(bank):
    selection = select(bank, 30, method="anchor-correctness", rng=0)
    found = estimate(bank, new_models(bank), selection=selection, method=GPIRT("estimated"))
    positions, own = bank.responses.item_indices(selection.item_ids), np.array(selection.scenarios)
    errors = np.zeros((bank.n_models, 3))
    for j, name in enumerate(bank.targets.scenarios):
        estimates = bank.responses.responses[:, positions[own == name]] @ selection.weights[own == name]
        errors[:, j] = estimates - bank.scenario_scores[:, j]
    variance = np.mean(errors**2, axis=0)  # sigma^2 / (k n) with the measured k
    share = bank.item_model_bias**2 / (bank.item_model_bias**2 + variance)
    np.testing.assert_allclose(found.sample_share[0], share)


def test_only_the_items_of_the_selection_count_by_its_weights(bank):
    responses, selection = new_models(bank), select(bank, 12, rng=0)
    whole = estimate(bank, responses, selection=selection)
    cut = estimate(bank, select_cells(responses, selection), selection=selection)
    np.testing.assert_allclose(whole.value, cut.value)
    assert whole.n_items[0, -1] == 12
    ids = [bank.item_ids[index] for index in (0, 3, 1, 4, 2, 5)]
    scenarios = tuple(item.split("/")[0] for item in ids)
    selection = Selection(tuple(ids), scenarios, np.array([0.9, 0.1, 0.2, 0.8, 0.5, 0.5]), "anchor-irt", bank.bank_id)
    found, values = estimate(bank, responses, selection=selection, method="weighted").value, responses.responses
    np.testing.assert_allclose(found[:, 0], 0.9 * values[:, 0] + 0.1 * values[:, 3])
    np.testing.assert_allclose(found[:, 1], 0.2 * values[:, 1] + 0.8 * values[:, 4])


def test_missing_items_of_the_selection_are_counted_and_said(bank):
    selection, responses = select(bank, 12, rng=0), new_models(bank, n_models=2)
    lost = having(responses, (1, responses.item_indices(selection.item_ids[:4])))
    with pytest.warns(DataWarning, match=r"of the 12 items .* by 1 of 2 models: 'new-1' \(4\)\."):
        found = estimate(bank, lost, selection=selection)
    np.testing.assert_array_equal(found.n_missing, [0, 4])
    np.testing.assert_array_equal(found.n_items[:, -1], [12, 8])


def test_a_model_without_any_response_has_no_estimate_and_no_response_at_all_is_an_error(bank):
    with pytest.warns(DataWarning, match="no response to the items to be used from 'new-1'"):
        found = estimate(bank, having(new_models(bank, n_models=3), 1), method="p-irt")
    np.testing.assert_array_equal(np.isnan(found.value), [[False] * 4, [True] * 4, [False] * 4])
    selection = select(bank, 3, rng=0)
    rest = [index for index, item in enumerate(bank.item_ids) if item not in selection.item_ids]
    with pytest.raises(DataError, match=r"at least one response .* got none from 6 models"):
        estimate(bank, new_models(bank).take(items=np.array(rest)), selection=selection)


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
    least, most = possible_range(bank, responses)
    for level in (0.5, 0.999999):
        found = estimate(bank, responses, method="gp-irt", interval="model-based", level=level)
        half = norm.ppf((1 + level) / 2) * found.standard_error
        np.testing.assert_allclose(found.low, np.maximum(found.value - half, least))
        np.testing.assert_allclose(found.high, np.minimum(found.value + half, most))


def test_the_overall_error_counts_that_scenarios_share_ability(bank):
    found = estimate(bank, new_models(bank), selection=select(bank, 6, method="random", rng=0), method="p-irt")
    independent = np.sqrt(np.sum(found.standard_error[:, :3] ** 2, axis=1)) / 3.0
    assert np.all(found.standard_error[:, 3] > 1.2 * independent)


@pytest.mark.filterwarnings("ignore:.*answered unlike the bank")
def test_binary_ability_and_raw_scores_for_continuous_responses(bank):
    """Ability sees ``Y >= threshold``; the observed part of the score is the raw mean."""
    calibration = dataclasses.replace(bank.calibration, thresholds={"math": 0.3, "code": 0.5, "law": 0.8})
    continuous, responses = dataclasses.replace(bank, calibration=calibration), new_models(bank)
    raw = having(responses, ..., np.random.default_rng(3).random(responses.responses.shape))
    limits = np.array([0.3, 0.5, 0.8])[bank.targets.scenario_index]
    binary = having(responses, ..., (raw.responses >= limits).astype(float))
    found, expected = (
        estimate(of, given.take(items=np.arange(30)), method="p-irt")
        for of, given in ((continuous, raw), (bank, binary))
    )
    np.testing.assert_allclose(found.abilities, expected.abilities)
    change, own = (raw.responses - binary.responses)[:, :30], bank.targets.scenario_index[:30]
    shift = np.column_stack([change[:, own == j].sum(axis=1) / 20 for j in range(3)])
    np.testing.assert_allclose(found.value[:, :3], expected.value[:, :3] + shift)


def test_noise_ratio_compares_raw_responses_with_the_item_model(bank):
    assert noise_ratio(bank).tolist() == [1.0, 1.0, 1.0]
    p = probability(bank.parameters, bank.calibration.abilities)
    offset = 0.4 * np.sqrt(p * (1.0 - p)) * np.where(np.arange(60) % 2, 1.0, -1.0)
    calibration = dataclasses.replace(bank.calibration, thresholds={"code": 0.5})
    continuous = dataclasses.replace(having(bank, ..., np.clip(p + offset, 0.0, 1.0)), calibration=calibration)
    ratio, own = noise_ratio(continuous), bank.targets.scenario_index == 1
    assert ratio[[0, 2]].tolist() == [1.0, 1.0]
    expected = np.sum((continuous.responses.responses - p)[:, own] ** 2) / np.sum((p * (1 - p))[:, own])
    assert ratio[1] == pytest.approx(expected)
    assert 0.1 < ratio[1] <= 0.16 + 1e-9  # 0.4 ** 2, less where clipping bites


def test_rows_say_all_that_a_reader_needs(bank):
    found = estimate(bank, with_gaps(new_models(bank, n_models=2), "scattered"), method="gp-irt")
    rows = found.rows()
    targets = ("math", "code", "law", "overall")
    assert [(row["model_id"], row["target"]) for row in rows] == list(product(("new-0", "new-1"), targets))
    needed = {"estimate", "low", "high", "level", "n_items", "n_total", "method", "bank", "standard_error", "interval"}
    assert needed <= set(rows[0])
    assert rows[3]["estimate"] == found.value[0, 3]
    told = [rows[0][name] for name in ("method", "bank", "n_total", "interval")]
    assert told == ["gp-irt", bank.bank_id, 20, "calibrated"]
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
    selection, truth = select(bank, 60, method=chosen, rng=0), full_scores(bank, responses)
    for level in (0.8, 0.95):
        found = estimate(bank, responses, selection=selection, method=method, interval="model-based", level=level)
        covered = np.mean(held(found, truth), axis=0)
        # the plain mean is charged for its distance from the posterior mean, so it may cover more
        assert np.all(covered > level - 0.03), covered
        if method in {"p-irt", "gp-irt"}:
            assert np.all(covered < level + 0.03), covered


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
def test_p_irt_beats_the_sample_mean_when_the_item_model_is_true():
    bank = simulated_bank(600, bias=0.02)
    responses, errors = new_models(bank, n_models=1000, seed=12), {}
    for method in ("mean", "p-irt", "gp-irt"):
        how = {"method": method, "interval": "model-based"}
        chosen = [select(bank, 60, method="random", rng=seed) for seed in range(5)]
        found = [estimate(bank, responses, selection=selection, **how).value for selection in chosen]
        errors[method] = np.mean(np.abs(np.array(found) - full_scores(bank, responses)), axis=(0, 1))
    assert np.all(errors["p-irt"] < np.array([0.7, 0.7, 0.7, 1.0]) * errors["mean"])
    assert errors["gp-irt"][3] < errors["mean"][3]


def test_one_item_and_one_model_by_enumeration():
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
    responses, grid = ResponseMatrix.create(np.array([[1.0]]), item_ids=["b"]), np.linspace(-8.0, 8.0, 160_001)
    theta = grid[np.argmax(-np.logaddexp(0.0, -(0.5 * grid + 1.0)) - 0.5 * grid**2)]
    p = 1.0 / (1.0 + np.exp(-np.array([theta, 2.0 * theta - 1.0])))  # items a and c
    b = 1.0 / (1.0 + np.exp(-(0.5 * theta + 1.0)))
    ability_variance, mean = 1.0 / (1.0 + 0.25 * b * (1.0 - b)), (1.0 + p.sum()) / 3.0
    slope = (p * (1.0 - p)) @ np.array([1.0, 2.0]) / 3.0
    variance, share = slope**2 * ability_variance + np.sum(p * (1.0 - p)) / 9.0, 0.01 / (0.01 + 0.2)
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
        covered.append(held(found, answers[60:].mean(axis=1)[:, None])[:, -1])
        widths.append(found.high[:, -1] - found.low[:, -1])
    assert np.mean(covered) > 0.92 - 0.02  # the standard error of a share of 200
    assert np.mean(widths) < 0.35


def losing(responses, places, kind=3, **how):
    """Lose the answers at some places."""
    n = np.zeros(responses.responses.shape, dtype=np.int64)
    n[places] = 1
    return dataclasses.replace(having(responses, places), lost=LostAnswers(n, n * kind, **how))


@pytest.mark.filterwarnings("ignore:of the .* items of the selection")
@pytest.mark.parametrize("method", ["auto", "p-irt", "mean"])
def test_the_policies_are_what_answers_filled_in_by_hand_give(bank, method):
    selection, whole = select(bank, 20), new_models(bank)
    places, how = (1, bank.responses.item_indices(selection.item_ids[:4])), {"selection": selection, "method": method}
    wrong, right = (estimate(bank, having(whole, places, value), **how) for value in (0.0, 1.0))
    found = {each: estimate(bank, losing(whole, places), **how, errors=each) for each in ("missing", "wrong", "bounds")}
    for one in found.values():
        np.testing.assert_allclose(one.lost.if_wrong[1], wrong.value[1], atol=1e-12)
        np.testing.assert_allclose(one.lost.if_right[1], right.value[1], atol=1e-12)
        assert (one.lost.n.tolist(), one.lost.in_words[1]) == ([0, 4, *[0] * (whole.n_models - 2)], "4 time-outs")
        assert np.isnan(one.lost.if_wrong[0]).all()
    np.testing.assert_allclose(found["wrong"].scores, wrong.scores, atol=1e-12)
    plain, bounds = found["missing"], found["bounds"]
    np.testing.assert_array_equal(bounds.value, plain.value)
    np.testing.assert_array_equal(bounds.low[0], plain.low[0])  # another model lost nothing
    low, high = (np.stack([getattr(one, end) for one in (plain, wrong, right)])[:, 1] for end in ("low", "high"))
    np.testing.assert_allclose(bounds.low[1], low.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(bounds.high[1], high.max(axis=0), atol=1e-12)


@pytest.mark.filterwarnings("ignore:of the .* items of the selection")
def test_what_is_left_of_a_draw_gives_no_more_than_if_lost_answers_were_right(bank):
    for seed in range(8):
        selection = select(bank, 20, method="drawn", rng=seed)
        right = having(new_models(bank, n_models=1), ..., 1.0)
        lost = losing(right, (0, bank.responses.item_indices(selection.item_ids[::4])))
        found = estimate(bank, lost, selection=selection)
        assert np.all((found.lost.if_wrong <= found.value) & (found.value <= found.lost.if_right))
        assert np.all((found.low <= found.value) & (found.value <= found.high))


@pytest.mark.filterwarnings("ignore:of the .* items of the selection")
def test_the_policy_of_the_responses_holds_and_answers_lost_outside_the_selection_are_not_counted(bank):
    responses, selection = losing(new_models(bank), (0, [3, 8])).with_errors("wrong"), select(bank, 20)
    assert estimate(bank, responses).lost.errors == "wrong"
    assert estimate(bank, responses, errors="missing").lost.errors == "missing"
    outside = [item for item in bank.item_ids if item not in selection.item_ids][:3]
    responses = losing(new_models(bank), (0, bank.responses.item_indices(outside)))
    assert estimate(bank, responses, selection=selection).lost is None
    without = having(responses, (0, bank.responses.item_indices(selection.item_ids[:2])))
    notes = estimate(bank, without, selection=selection).notes
    assert any(one.text.startswith("no answer to 2 of the chosen items") for one in notes)


def test_bounds_cover_the_truth_however_answers_were_lost(bank):
    """The very answers that a model fails are lost: the interval without them misses, and bounds do not."""
    responses = new_models(bank)
    truth, n = responses.responses.mean(axis=1), responses.responses == 0.0
    found = estimate(bank, losing(responses, n, 2, errors="bounds"), interval="model-based", method="p-irt")
    assert n.any()
    assert held(found, truth[:, None], 1e-9)[n.any(axis=1), -1].all()


def test_an_unknown_policy_is_refused_and_what_was_lost_is_said_once(bank):
    for given in (new_models(bank), losing(new_models(bank), (0, [3]))):
        with pytest.raises(ParameterError, match="errors must be one of 'missing', 'wrong', 'bounds', got 'drop'"):
            estimate(bank, given, errors="drop")
    table = pl.DataFrame({"model_id": "new", "item_id": bank.item_ids, "response": [None, *[1, 0] * 29, 1]})
    with pytest.warns(DataWarning, match="lost answers count as missing"):
        notes = estimate(bank, table).notes
    assert [one.text[:13] for one in notes if "lost" in one.text] == ["lost 1 answer"]


def test_new_answers_count_as_those_of_the_bank_did(bank, tmp_path):
    """Past models' lost answers counted as wrong: so do a new one's, in memory, in a file and after `bank.save`."""
    lost = losing(bank.responses, (1, [2, 5])).with_errors("wrong")
    made, new = ib.calibrate(lost, ib.calibrations.JointMAP()), losing(new_models(bank), (0, [3, 8]))
    made.save(tmp_path / "bank")
    assert made.responses.responses[1, 2] == 0.0
    ib.write_responses(new, tmp_path / "new.parquet")
    for source in (made, tmp_path / "bank"):
        for given in (new, tmp_path / "new.parquet"):
            assert estimate(source, given).lost.errors == "wrong"
            assert estimate(source, given, errors="missing").lost.errors == "missing"
    assert estimate(bank, new).lost.errors == "missing"


def test_weights_that_do_not_go_with_the_scenarios_or_the_method_are_told():
    bank = make_bank()
    selection = select(bank, 6, rng=0)
    weights = np.where(np.array(selection.scenarios) == "code", 0.0, selection.weights)
    with pytest.raises(DataError, match="zero in a scenario, but are in 'code'"):
        estimate(bank, bank.responses, selection=replace(selection, weights=weights))
    with pytest.raises(DataError, match="scenarios of the selection must be those of bank"):
        estimate(bank, bank.responses, selection=replace(selection, scenarios=("math",) * 6))
    targets = ScoreTargets.create(bank.responses.items.with_columns(weight=np.arange(1.0, 31.0)), within="custom")
    with pytest.warns(DataWarning, match="method 'weighted'"):
        estimate(replace(bank, targets=targets), bank.responses, method="mean")


def test_unequal_weights_of_a_random_sample_count_as_fewer_items():
    bank = make_bank()
    selection = select(bank, 12, method="random", rng=0)
    new, weights = select_cells(bank.responses, selection), selection.weights.copy()
    math = np.flatnonzero(np.array(selection.scenarios) == "math")
    weights[math] = np.array([0.7, 0.1, 0.1, 0.1])
    share = estimate(bank, new, selection=replace(selection, weights=weights), method="gp-irt").sample_share[0]
    b, v = bank.item_model_bias[0] ** 2, bank.response_variance[0] * np.sum(weights[math] ** 2)
    assert share[0] == pytest.approx(b / (b + v))
    equal = bank.item_model_bias[1] ** 2, bank.response_variance[1] / 4
    assert share[1] == pytest.approx(equal[0] / sum(equal))


def test_items_come_in_the_banks_order_and_answers_of_other_calibration_models_are_not_made_numbers(monkeypatch):
    """Of 2,000 models and 20,000 items those of a fifth are 64 MB, all are 320 MB."""
    bank, asked, plain = make_bank(), [], ResponseMatrix.of_items
    found = Asked.of(bank, bank.responses.take(items=np.random.default_rng(0).permutation(30)), None).observations
    np.testing.assert_array_equal(found.positions, np.arange(30))
    np.testing.assert_array_equal(found.responses, bank.responses.responses)
    observations = Asked.of(bank, bank.responses.take(items=np.arange(3, 9)), None).observations

    def of_items(self, items, *, models=None):
        asked.append(models.tolist())
        return plain(self, items, models=models)

    monkeypatch.setattr(ResponseMatrix, "of_items", of_items)
    found = observations.answered_by_calibration_models(bank, np.array([7, 2])).responses
    assert asked == [[7, 2]]
    np.testing.assert_array_equal(found, bank.responses.responses[[7, 2], 3:9])


@pytest.mark.parametrize(
    ("responses", "n_trials", "weights", "shares"),
    [
        ([1.0, 0.5, 0.0, 1.0], [4, 2, 1, 1], [0.5, 0.5, 0.5, 0.5], [0.375, 1.0]),
        ([1.0, 0.5, np.nan, np.nan], [4, 2, 0, 0], [0.25, 0.75, 0.5, 0.5], [0.475, 0.375]),  # the mean of 1/4 and 1/2
        ([1.0, 0.5, np.nan, np.nan], [4, 4, 0, 0], [0.0, 0.0, 0.5, 0.5], [0.25, 0.25]),  # as if tried once, it said
        ([np.nan] * 4, [0] * 4, [0.5] * 4, [1.0, 1.0]),
        ([1.0, 0.5, 0.0, 1.0], None, [0.5] * 4, [1.0, 1.0]),
    ],
)
def test_attempts_leave_a_share_of_chance_that_is_known_where_no_answer_counts(responses, n_trials, weights, shares):
    trials = None if n_trials is None else np.array([n_trials])
    found = chance_shares(np.array([responses]), trials, np.array(weights), np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(found, [shares])


def test_evidence_at_the_ability_that_is_found_is_the_evidence_of_one_model_alone_as_among_others():
    bank = small_bank()
    observations = Asked.of(bank, with_gaps(new_models(bank), "scattered"), None).observations
    found, parameters = summarise_responses(bank, observations), bank.parameters.take(observations.positions)
    abilities = map_abilities(parameters, observations.responses, bank.calibration.prior)
    again = summary_at(ScoreBasis.of_bank(bank), observations, abilities)
    alone = summarise_responses(bank, observations.take(models=np.array([2]), columns=np.arange(30)))
    for name in ResponseSummary.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
        np.testing.assert_allclose(getattr(alone, name)[0], getattr(found, name)[2], atol=1e-9)


def test_another_ability_changes_what_is_predicted_and_not_what_is_known():
    bank = small_bank()
    observations = Asked.of(bank, new_models(bank).take(items=np.arange(12)), None).observations
    prior = AbilityPrior(bank.calibration.prior.mean + 1.0, 0.5 * bank.calibration.prior.covariance)
    other = map_abilities(bank.parameters.take(observations.positions), observations.responses, prior)
    moved = summary_at(ScoreBasis.of_bank(bank), observations, other)
    found = summarise_responses(bank, observations)
    np.testing.assert_array_equal(moved.known, found.known)
    assert np.all(moved.posterior_mean > found.posterior_mean)
    traces = [np.trace(one.ability_covariance, axis1=1, axis2=2) for one in (moved, found)]
    assert np.all(traces[0] < traces[1])


def test_moments_equal_those_of_drawn_scores(rng):
    n_items, n_draws = 30, 100_000
    parameters = ItemParameters.create(rng.normal(size=(n_items, 2)), rng.normal(size=n_items))
    scenario, weights = np.arange(n_items) % 3, rng.random(n_items)
    weights /= np.bincount(scenario, weights=weights)[scenario]
    mask, theta, known = np.arange(n_items)[None] >= 6, np.array([[0.4, -0.7]]), np.array([[0.11, 0.05, 0.17]])
    root = np.array([[0.12, 0.0], [-0.05, 0.1]])  # narrow, as in the setting the first-order formula is for
    sums = predicted_sums(parameters, weights, scenario, 3, theta, mask=mask)
    mean, found = score_posterior(known, sums, (root @ root.T)[None], np.ones(3))
    drawn = theta + rng.standard_normal((n_draws, 2)) @ root.T
    responses, onto = rng.random((n_draws, n_items)) < probability(parameters, drawn), np.zeros((n_items, 3))
    onto[np.arange(n_items), scenario] = weights
    scores = known + (responses * mask) @ onto
    np.testing.assert_allclose(mean[0], scores.mean(axis=0), atol=2e-3)
    # entries of a covariance from 100,000 draws have a relative error of about 0.5 %; the rest is second order
    scale = np.sqrt(np.diag(found[0]))
    np.testing.assert_allclose(found[0] / np.outer(scale, scale), np.cov(scores.T) / np.outer(scale, scale), atol=0.02)


def test_noise_and_distance_from_the_posterior_mean_count_in_the_error(rng):
    parameters = ItemParameters.create(np.zeros((4, 1)), np.zeros(4))  # p = 1/2, no slope
    sums = predicted_sums(parameters, np.full(4, 0.25), np.zeros(4, int), 1, np.zeros((1, 1)))
    _, found = score_posterior(np.zeros((1, 1)), sums, np.ones((1, 1, 1)), np.array([0.3]))
    assert found[0, 0, 0] == pytest.approx(0.3 * 4 * 0.25**2 * 0.25)
    scores = 0.6 + 0.05 * rng.standard_normal(400_000)
    expected = np.sqrt(np.mean((scores - 0.67) ** 2))
    assert standard_error(np.array(0.67), np.array(0.6), np.array(0.0025)) == pytest.approx(expected, rel=0.01)
