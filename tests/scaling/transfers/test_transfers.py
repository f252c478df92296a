import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import training_compute
from itembank_scaling.pass_at_k.kernels import unbiased_pass_at_k
from itembank_scaling.transfers import curves as kernel
from itembank_scaling.transfers.convergent import convergent_validity
from itembank_scaling.transfers.transfer_methods import item_means, split_by_difficulty
from itembank_scaling.transfers.transfer_specs import TransferSpec
from itembank_scaling.transfers.transfers import transfer
from tests.calibration.simulated import guessing_siblings
from tests.scaling.two_scenarios import simulated


def test_item_means_do_not_hang_on_who_answered_and_halves_are_easy_and_hard(rng):
    responses = rng.random((20, 7))
    np.testing.assert_allclose(item_means(responses), responses.mean(axis=0))
    # both items are as hard for a given model; strong models answered the first, weak ones the second
    strong, weak = [0.9, 0.9, np.nan, 0.9], [0.1, np.nan, 0.1, 0.1]
    means = item_means(np.array([strong] * 5 + [weak] * 5, dtype=float))
    assert means[1] == means[2]
    assert np.isnan(item_means(np.array([[1.0, np.nan], [0.0, np.nan]]))[1])
    responses = (rng.random((50, 31)) < rng.random(31)).astype(float)
    easy, hard = split_by_difficulty(responses, 0.5)
    assert (easy.size, hard.size) == (16, 15)
    assert sorted([*easy, *hard]) == list(range(31))
    means = responses.mean(axis=0)
    assert means[easy].min() >= means[hard].max()
    easy, hard = split_by_difficulty(responses, 0.01)
    assert (easy.size, hard.size) == (1, 30)
    easy, hard = split_by_difficulty(np.zeros((3, 4)), 0.5)
    np.testing.assert_array_equal(easy, [0, 1])
    np.testing.assert_array_equal(hard, [2, 3])


FEW_FOLDS = TransferSpec(n_folds=3)
ALL = TransferSpec(methods=("calibrated", "common-scale", "scores"))


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(5), n_models=120, shift=1.0)[0]


@pytest.fixture(scope="module")
def found(made):
    return transfer(made, "s0", "s1", spec=ALL, compute=training_compute(made.models, made.model_ids))


def by_method(found):
    return {row["method"]: row for row in found.method_rows()}


def test_ability_from_one_scenario_predicts_another_in_rows_that_hold_every_method(found, made):
    np.testing.assert_allclose(found.actual[:, 0], made.responses[:, 60:].mean(axis=1))
    rows = by_method(found)
    # abilities that correlate 0.9 leave 0.44 of the spread, and 60 items measure each with an error of about 0.25
    assert rows["calibrated"]["error"] < 0.65 * rows["uninformed"]["error"]
    assert abs(rows["calibrated"]["bias"]) < 0.01
    assert rows["calibrated"]["correlation"] > 0.75
    assert 0.88 <= rows["calibrated"]["coverage"] <= 0.99
    assert np.isnan(rows["uninformed"]["coverage"])
    assert found.correlation == pytest.approx(0.9, abs=0.08)
    errors = np.abs(found.prediction.value - found.actual)
    assert rows["calibrated"]["error"] == pytest.approx(errors.mean())
    values = np.array([errors[i::8].mean() for i in range(8)])
    assert rows["calibrated"]["error_standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(8))
    about, (n, *_) = found.to_dict(), found.validity["n_models"]
    widths = (found.validity["upper"] - found.validity["lower"]).to_numpy()
    width = about["correlation_upper"] - about["correlation_lower"]
    assert width == pytest.approx(widths.mean())
    reach = np.tanh(np.arctanh(about["correlation"]) + np.array([-1.96, 1.96]) / np.sqrt(n - 3.0))  # Fisher's
    assert width < 2.0 * np.diff(reach).item()
    rows = json.loads(json.dumps(found.rows()))
    assert len(rows) == 120
    assert rows[3]["group"] == "r3"
    assert rows[3]["flops"] == pytest.approx(found.flops[3])
    assert rows[3]["predicted_scores"] == found.predictions["scores"].value[3, 0]
    summary = json.loads(json.dumps(found.to_dict()))
    assert list(summary)[:3] == ["source", "target", "correlation"]
    assert summary["n_calibration_models"] < 120


def test_a_models_own_target_plays_no_part_in_its_prediction(made, found):
    responses = made.responses.copy()
    asked = np.arange(0, 120, 8)  # one recipe: a part of its own is predicted without it
    calibration = [name for i, name in enumerate(made.model_ids) if i % 8 != 0]
    first = transfer(made, "s0", "s1", calibration=calibration)
    responses[np.ix_(asked, np.arange(60, 120))] = 1.0
    changed = replace(made, responses=responses)
    second = transfer(changed, "s0", "s1", calibration=calibration)
    assert first.model_ids == tuple(made.model_ids[i] for i in asked)
    np.testing.assert_array_equal(first.prediction.value, second.prediction.value)
    assert np.all(second.actual == 1.0)


def test_what_is_easy_is_seen_from_calibration_models_alone_and_foretells_the_hard_without_bias(made):
    calibration = made.model_ids[:90]
    found = transfer(made, "s0", calibration=calibration)
    _, hard = split_by_difficulty(made.responses[:90, :60], 0.5)
    assert (found.source, found.target) == ("s0 (easy)", "s0 (hard)")
    assert (found.n_source_items, found.n_target_items) == (30, 30)
    np.testing.assert_allclose(found.actual[:, 0], made.responses[90:, hard].mean(axis=1))
    assert found.actual.mean() < made.responses[90:, :60].mean()
    # items called hard by the answers of the past models are less hard for a new one
    rng = np.random.default_rng(0)
    chance = expit(rng.normal(size=(48, 1)) - 0.5 * rng.normal(size=400))
    answers = (rng.random(chance.shape) < chance).astype(float)
    rows = by_method(transfer(ResponseMatrix.create(answers, scenarios=["one"] * 400), "one", spec=FEW_FOLDS))
    for name in ("calibrated", "scores", "uninformed"):
        assert abs(rows[name]["bias"]) < 0.01  # 0.04 if the past models' own answers choose their items


def test_a_new_model_is_predicted_from_a_bank_and_its_source_alone(made):
    past, new = made.take(models=np.arange(100)), made.take(models=np.arange(100, 120), items=np.arange(60))
    found = transfer(new, "s0", "s1", calibration=calibrate(past, Variational(tolerance=1e-4)))
    by_name = transfer(made, "s0", "s1", calibration=made.model_ids[:100])
    np.testing.assert_allclose(found.prediction.value, by_name.prediction.value, atol=1e-12)
    assert np.isnan(found.actual).all()
    with pytest.raises(DataError, match="must not be past models"):
        transfer(past, "s0", "s1", calibration=calibrate(past, Variational(tolerance=1e-4)))


def test_fewer_answers_to_the_source_widen_the_interval(made):
    responses = made.responses.copy()
    responses[110:, 5:60] = np.nan
    sparse = replace(made, responses=responses)
    whole, few = (transfer(one, "s0", "s1", calibration=made.model_ids[:100]) for one in (made, sparse))
    widths = [one.prediction.upper - one.prediction.lower for one in (whole, few)]
    np.testing.assert_allclose(widths[0][:10], widths[1][:10])
    assert np.all(few.standard_errors[10:] > 1.5 * whole.standard_errors[10:])
    assert widths[1][10:].mean() > 1.2 * widths[0][10:].mean()


def test_pass_at_k_of_hard_items_from_easy_ones():
    made = simulated(np.random.default_rng(2), n_models=60, n_items=40, n_trials=50, shift=2.0)[0]
    spec = TransferSpec(k=(1, 4, 20, 60), methods=("calibrated", "common-scale", "scores"))
    with pytest.warns(DataWarning, match=r"'calibrated' predicts no pass@k .* at k = 60: .* method 'common-scale'"):
        found = transfer(made, "s1", spec=spec, calibration=made.model_ids[:40])
    _, hard = split_by_difficulty(made.responses[:40, 40:], 0.5)
    right = np.rint(50 * made.responses[40:, 40 + hard])
    for j, k in enumerate((1, 4, 20)):
        expected = unbiased_pass_at_k(np.full_like(right, 50), right, np.float64(k)).mean(axis=1)
        np.testing.assert_allclose(found.actual[:, j], expected)
    assert np.isnan(found.actual[:, 3]).all()  # more than there are samples
    assert np.isnan(found.prediction.value[:, 3]).all()
    assert np.all(np.diff(found.prediction.value[:, :3], axis=1) > 0.0)
    rows = by_method(found)
    assert rows["calibrated"]["log_error"] < 0.5 * rows["uninformed"]["log_error"]
    assert rows["calibrated"]["error"] < 0.06
    # the item model alone, without any line, knows the whole curve beyond the samples
    assert np.isfinite(found.predictions["common-scale"].value).all()


def test_no_correlation_is_refused_and_a_weak_one_or_a_poor_source_warned_of():
    rng = np.random.default_rng(7)
    apart = simulated(rng, correlation=0.0)[0]
    with pytest.raises(DataError, match=r"must be correlated for a transfer, got -?0\.\d\d \(95 % interval"):
        transfer(apart, "s0", "s1", spec=FEW_FOLDS)
    with pytest.warns(DataWarning) as caught:
        found = transfer(apart, "s0", "s1", spec=replace(FEW_FOLDS, is_forced=True))
    assert any("was forced" in str(one.message) for one in caught)
    assert found.correlation < 0.3
    weak = simulated(rng, correlation=0.5, n_models=100)[0]
    with pytest.warns(DataWarning, match="they measure different things") as caught:
        transfer(weak, "s0", "s1", spec=FEW_FOLDS)
    assert len(caught) == 1
    made = simulated(np.random.default_rng(1), correlation=0.97, n_models=150)[0]
    few = made.take(items=np.concatenate([np.arange(5), np.arange(60, 120)]))
    with pytest.warns(DataWarning, match=r"'s0' measures it poorly \(reliability 0\.[2-7]"):
        transfer(few, "s0", "s1", spec=TransferSpec(warn_below=0.85))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"methods": ()}, "needs a method"),
        ({"methods": ("guess",)}, "transfer method must be one of"),
        ({"methods": ("scores", "scores")}, "named once"),
        ({"k": (0,)}, "rising whole numbers"),
        ({"k": (3, 1)}, "rising whole numbers"),
        ({"easy_fraction": 1.0}, "easy_fraction"),
        ({"n_folds": 1}, "n_folds"),
        ({"level": 0.0}, "level"),
        ({"warn_below": 2.0}, "correlation"),
    ],
)
def test_specs_check_themselves(given, text):
    with pytest.raises(ParameterError, match=text):
        TransferSpec(**given)


def test_models_of_one_recipe_are_left_out_one_by_one_and_what_cannot_be_done_is_said(made):
    models = made.models.with_columns(recipe=pl.lit("only"))
    with pytest.warns(DataWarning, match="all models are of one recipe, 'only'"):
        found = transfer(made, "s0", "s1", spec=FEW_FOLDS, compute=training_compute(models, made.model_ids))
    assert found.to_dict()["n_models"] == made.n_models
    assert found.groups is None
    assert found.rows()[0]["predicted"] == transfer(made, "s0", "s1", spec=FEW_FOLDS).rows()[0]["predicted"]
    graded = replace(made, responses=0.9 * made.responses, n_trials=np.full(made.responses.shape, 10))
    graded.responses[0, 0] = 0.55
    silent = replace(made, responses=made.responses.copy())
    silent.responses[100:, :60] = np.nan
    of_k = TransferSpec(k=(1, 10))
    for responses, target, choices, error, said in (
        (made, "s9", {}, DataError, "got 's9'; there are 's0', 's1'"),
        (made, "s0", {}, ParameterError, "must differ"),
        (made, "s1", {"spec": of_k}, ParameterError, "without repeated samples"),
        (graded, "s1", {"spec": of_k}, DataError, "whole number of right samples"),
        (made, "s1", {"calibration": made.model_ids[:3]}, DataError, "at least 4 past models"),
        (made, "s1", {"calibration": made.model_ids}, DataError, "besides the past models"),
        (made, "s1", {"groups": ["a"] * 120}, DataError, "two groups"),
        (made, "s1", {"groups": ["a"]}, ParameterError, "one group a model"),
        (silent, "s1", {"calibration": made.model_ids[:100]}, DataError, "must answer items of 's0'"),
    ):
        with pytest.raises(error, match=said):
            transfer(responses, "s0", target, **choices)


@pytest.mark.filterwarnings("ignore:abilities on", "ignore:.*correlate only")
@pytest.mark.filterwarnings("ignore:items of 'clear', 'guessed'.* are not skill")
def test_siblings_that_guess_alike_hide_no_correlation():
    """With slopes of both signs the target's ability is what siblings guess alike."""
    skill, guessed = guessing_siblings(seed=3)
    rng = np.random.default_rng(2)
    known = (rng.random((60, 60)) < 1.0 / (1.0 + np.exp(rng.normal(size=60) - skill[:, None]))).astype(float)
    scenarios = ["clear"] * 60 + ["guessed"] * 300
    responses = ResponseMatrix.create(np.hstack([known, guessed.responses]), scenarios=scenarios)
    found = transfer(responses, "clear", "guessed", spec=TransferSpec(n_folds=10))
    assert found.correlation > 0.5
    assert not any("skill" in text for text in found.notes)
    of_both_signs = TransferSpec(item_model=Variational("2pl"), is_forced=True, n_folds=3)
    with pytest.warns(DataWarning, match="items of 'guessed': The abilities are not skill"):
        forced = transfer(responses, "clear", "guessed", spec=of_both_signs)
    assert forced.correlation < 0.4
    assert any("are not skill" in text for text in forced.to_dict()["notes"])
    assert "are not skill" in repr(forced).replace("\n", " ")
    with pytest.warns(DataWarning, match="not skill"):
        validity = convergent_validity(responses, spec=Variational("2pl"))
    assert "'guessed': The abilities are not skill" in validity.message


@pytest.mark.parametrize("by_family", [False, True])
def test_the_easy_arc_predicts_the_challenge(shared_dir, by_family):
    """IRSL's own pair, of 90 encoders: refused with slopes of both signs (correlation -.24)."""
    table = pl.read_parquet(shared_dir / "data" / "nlu29" / "irsl8.parquet")
    rows = table.filter(pl.col("scenario").str.starts_with("arc"))
    wide = rows.pivot(on="item_id", index="model_id", values="response")
    scenarios = dict(rows.select("item_id", "scenario").unique().iter_rows())
    values = wide.drop("model_id").to_numpy().astype(float)
    responses = ResponseMatrix.create(values, scenarios=[scenarios[one] for one in wide.columns[1:]])
    groups = [name.rpartition("_")[0] for name in wide["model_id"].to_list()] if by_family else None
    found = transfer(responses, "arc-easy", "arc-challenge", groups=groups)
    assert found.correlation > 0.7  # raw scores correlate .79
    assert found.method_rows()[0]["error"] < found.method_rows()[-1]["error"]


def test_few_models_give_the_textbook_line_and_prediction_interval(rng):
    x = rng.normal(size=12)
    y = 1.0 + 0.5 * x + 0.3 * rng.normal(size=12)
    link = kernel.fit_line(x, y, np.zeros(12))
    by_scipy = stats.linregress(x, y)
    assert link.slope == pytest.approx(by_scipy.slope, abs=1e-12)
    assert link.intercept == pytest.approx(by_scipy.intercept, abs=1e-12)
    at = np.array([0.0, 3.0])
    centre, low, high = kernel.quantiles(link, at, np.zeros(2), 0.9)
    residual = np.sqrt(((y - by_scipy.intercept - by_scipy.slope * x) ** 2).sum() / 10)
    half = stats.t.ppf(0.95, 10) * residual * np.sqrt(1 + 1 / 12 + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
    np.testing.assert_allclose(centre, by_scipy.intercept + by_scipy.slope * at)
    np.testing.assert_allclose(high - centre, half)
    np.testing.assert_allclose(centre - low, half)
    x, y = rng.normal(size=(2, 12))
    holes = np.concatenate([x, [np.nan, 1.0]]), np.concatenate([y, [1.0, np.nan]])
    assert kernel.fit_line(*holes, np.zeros(14)) == kernel.fit_line(x, y, np.zeros(12))


def test_a_source_known_worse_widens_the_prediction_and_the_spread_may_change_along_the_line(rng):
    x = np.linspace(-1, 1, 10)
    y = 2.0 * x + 0.1 * (-1.0) ** np.arange(10)
    link = kernel.fit_line(x, y, np.full(10, 0.2))
    same, worse, better = kernel.predict(link, np.zeros(3), np.array([0.2, 0.5, 0.0]))[1] ** 2
    assert same == better
    assert worse - same == pytest.approx(link.slope**2 * (0.5**2 - 0.2**2))
    x = rng.normal(size=50)
    y = x + 0.4
    link = kernel.same_scale(x, y, np.zeros(50))
    centre, low, _ = kernel.quantiles(link, np.array([1.0]), np.zeros(1), 0.95)
    assert centre[0] == 1.0
    assert centre[0] - low[0] == pytest.approx(0.4 * stats.t.ppf(0.975, 50))
    x = rng.uniform(-1, 3, size=4000)
    y = 1.0 + x + np.exp(0.5 * x) * rng.normal(size=4000)
    link = kernel.fit_line(x, y, np.zeros(4000))
    assert link.log_variance_slope == pytest.approx(1.0, abs=0.1)
    assert link.slope == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(
        kernel.predict(link, np.array([-1.0, 1.0]), np.zeros(2))[1], np.exp([-0.5, 0.5]), rtol=0.1
    )


def test_a_floor_hides_nothing_of_the_line(rng):
    x = rng.uniform(-3, 3, size=200)
    y = 2.0 * x + 0.2 * rng.normal(size=200)
    hidden = np.maximum(y, -2.0)
    link = kernel.fit_line(x, hidden, np.zeros(200), bounds=(-2.0, np.inf))
    assert link.slope == pytest.approx(2.0, abs=0.05)
    assert link.intercept == pytest.approx(0.0, abs=0.1)
    assert kernel.fit_line(x, hidden, np.zeros(200)).slope < 1.9
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 3.5])
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, -1.0])  # the last one ought to be far above the floor
    link = kernel.fit_line(x, y, np.zeros(6), bounds=(-1.0, np.inf))
    assert link.n_models == 6
    assert link.residual_sd > 1.0


PLAIN = ItemParameters.create(np.array([[1.0], [2.0], [0.5]]), np.array([0.3, -1.0, 0.0]))
PRECISION = np.array([0.5, 3.0, 40.0])
OVERDISPERSED = ItemParameters.create(PLAIN.loadings, PLAIN.intercept, family="beta-binomial", precision=PRECISION)
THETA = np.array([-1.0, 0.0, 2.5])


def test_pass_at_k_is_the_papers_equation_4_or_the_mean_over_the_cells_beta():
    p = expit(THETA[:, None] * PLAIN.loadings[:, 0] + PLAIN.intercept)
    np.testing.assert_allclose(kernel.item_curves(PLAIN, THETA, 1), p)
    np.testing.assert_allclose(kernel.item_curves(PLAIN, THETA, 7), 1 - (1 - p) ** 7)
    found = kernel.item_curves(OVERDISPERSED, THETA, 5)
    p = kernel.item_curves(OVERDISPERSED, THETA, 1)
    for i, j in ((0, 0), (1, 1), (2, 2)):
        cell = beta(p[i, j] * OVERDISPERSED.precision[j], (1 - p[i, j]) * OVERDISPERSED.precision[j])
        # by parts, as the density may be endless at the ends: E[1 - (1-p)^5] = int 5 (1-p)^4 P(p' > p) dp
        expected = quad(lambda x, cell=cell: 5 * (1 - x) ** 4 * cell.sf(x), 0, 1, limit=200)[0]
        assert found[i, j] == pytest.approx(expected, rel=1e-6)


def test_means_are_over_the_items_that_count_and_slopes_those_of_the_logit():
    counted = np.array([[True, True, True], [True, False, False], [False, True, True]])
    found = kernel.mean_curves(PLAIN, THETA, (1, 3), counted)
    for column, k in enumerate((1, 3)):
        curves = kernel.item_curves(PLAIN, THETA, k)
        expected = [curves[row][counted[row]].mean() for row in range(3)]
        np.testing.assert_allclose(found[:, column], expected)
    counted = np.ones((3, 3), dtype=bool)
    value, slope = kernel.logit_curves(PLAIN, THETA, (1, 4), counted)
    at = [logit(kernel.mean_curves(PLAIN, THETA + step, (1, 4), counted)) for step in (-1e-5, 0.0, 1e-5)]
    np.testing.assert_allclose(value, at[1])
    np.testing.assert_allclose(slope, (at[2] - at[0]) / 2e-5, rtol=1e-5)
    one = PLAIN.take(np.array([1]))
    value, slope = kernel.logit_curves(one, THETA, (1,), np.ones((3, 1), dtype=bool))
    np.testing.assert_allclose(value[:, 0], 2.0 * THETA - 1.0)
    np.testing.assert_allclose(slope, 2.0, rtol=1e-6)
