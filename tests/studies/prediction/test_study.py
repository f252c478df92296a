import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.errors import ConvergenceWarning, DataError, ParameterError
from itembank.files.documents import with_digest
from itembank.responses.responses import ResponseMatrix
from itembank_studies.prediction import prepared, study
from itembank_studies.prediction.prediction_spec import ANCHORS, CRITERIA, UNINFORMED, Assessor
from itembank_studies.prediction.prepared import find_tasks, make_partition, prepare
from itembank_studies.prediction.study import run_partition
from itembank_studies.results import PredictionResult, StudyResult
from itembank_studies.run import run_prediction
from itembank_studies.study_specs import CalibrationChoice
from tests.studies.prediction.simulated import MIRT, make_responses, make_spec

RESPONSES = make_responses()
FISHER, V_OPTIMAL = Assessor("2pl", "adaptation", "fisher"), Assessor("mirt", "adaptation", "v-optimal")
PREDICTED = ("n_calibration_tasks", "assessor", "budget", "model_id", "task", "prediction")

EVERY_ASSESSOR = [
    *(Assessor(predictor) for predictor in ("2pl", "mirt", "task-mean", "task-mean-eb", "ridge")),
    *(Assessor("mirt", "selection", one) for one in UNINFORMED),
    *(Assessor("mirt", "selection", one) for one in (*CRITERIA, *ANCHORS)),
    *(Assessor("mirt", "adaptation", one) for one in CRITERIA),
    Assessor("mirt", "adaptation", "v-optimal", per_cost=True),
    Assessor("ridge", "adaptation", "v-optimal", design="mirt"),
]


def run(spec, responses, number=0):
    tasks = find_tasks(spec, responses)
    partition = make_partition(spec, responses, tasks, number)
    return run_partition(spec, responses, tasks, partition), partition


def with_asked(spec, responses, monkeypatch):
    """Run a partition; also return which test model was asked which item by any assessor."""
    asked = np.zeros((spec.n_test, responses.n_items), dtype=bool)
    honest = study._choose

    def recorded(*given):
        found = honest(*given)
        for items in found.values():
            rows = np.broadcast_to(items, (spec.n_test, items.shape[-1]))
            model, place_of = np.nonzero(rows >= 0)
            asked[model, rows[model, place_of]] = True
        return found

    with monkeypatch.context() as patched:
        patched.setattr(study, "_choose", recorded)
        tables, partition = run(spec, responses)
    return tables, partition, asked


def poisoned(responses, partition, asked):
    """The same data, but test models answer every item they were not asked the other way, at other costs."""
    values = responses.responses.copy()
    values[partition.test] = np.where(asked, values[partition.test], 1.0 - values[partition.test])
    is_tested = np.isin(np.arange(responses.n_models), partition.test)[:, None]
    costs = {unit: np.where(is_tested, 3.0 * cost, cost) for unit, cost in responses.costs.items()}
    n_trials = None if responses.n_trials is None else responses.n_trials.copy()
    if n_trials is not None:
        n_trials[partition.test] *= np.where(asked, 1, 5)
    return replace(responses, responses=values, n_trials=n_trials, costs=costs)


def is_blind(spec, monkeypatch, responses=RESPONSES):
    """Whether predictions stay the same to the last bit when all else that test models did is changed."""
    tables, partition, asked = with_asked(spec, responses, monkeypatch)
    assert 0 < asked.sum() < 0.6 * asked.size
    other, _ = run(spec, poisoned(responses, partition, asked))
    before, after = tables["predictions"], other["predictions"]
    assert not before["truth"].equals(after["truth"])  # the poison is there
    return before.select(PREDICTED).equals(after.select(PREDICTED)) and tables["choices"].equals(other["choices"])


@pytest.mark.parametrize("assessor", EVERY_ASSESSOR, ids=lambda one: one.name)
def test_no_assessor_sees_more_than_the_answers_to_chosen_items(assessor, monkeypatch):
    assert is_blind(make_spec(assessor, n_calibration_tasks=(3,), n_items=(1, 6)), monkeypatch)


@pytest.mark.parametrize(("kind", "family"), [("probability", "beta"), ("probability", "auto"), ("count", "binomial")])
def test_nor_where_responses_are_partial(kind, family, monkeypatch):
    item_model = CalibrationChoice("variational", n_dims=1, item_model="2pl", options={"family": family})
    spec = make_spec(FISHER, Assessor("2pl"), item_models={"2pl": item_model}, n_calibration_tasks=(3,), n_items=(1, 6))
    assert is_blind(spec, monkeypatch, make_responses(kind=kind))


def test_the_guard_catches_a_prediction_that_knows_the_truth(monkeypatch):
    honest = study._predict
    monkeypatch.setattr(study, "_predict", lambda prepared, *rest: 0.9 * honest(prepared, *rest) + 0.1 * prepared.truth)
    assert not is_blind(make_spec(Assessor("2pl"), n_calibration_tasks=(3,), n_items=(1, 6)), monkeypatch)


def test_tables_say_what_was_done():
    spec = make_spec(Assessor("2pl"), FISHER, Assessor("task-mean"))
    tables, partition = run(spec, RESPONSES)
    predictions = tables["predictions"]
    assert predictions.height == 3 * (3 + 3) * 6 * 6  # assessors, budgets for 1 and 3 tasks, models, tasks
    assert predictions.filter(n_calibration_tasks=3)["is_interpolation"].mean() == 0.5
    assert set(predictions["model_id"].cast(pl.String)) == {RESPONSES.model_ids[row] for row in partition.test}
    held_out = np.flatnonzero(partition.is_held_out)
    of_task = held_out[[RESPONSES.items["subscenario"][int(item)] == "task-2" for item in held_out]]
    row = int(partition.test[0])
    truth = predictions.filter(pl.col("task") == "task-2", pl.col("model_id") == RESPONSES.model_ids[row])["truth"]
    np.testing.assert_allclose(truth.to_numpy(), RESPONSES.responses[row, of_task].mean(), rtol=1e-6)
    runs = tables["runs"]
    assert (runs["n_items"] == runs["budget"]).all()
    chosen = tables["choices"].group_by("n_calibration_tasks", "assessor", "budget").agg(pl.col("n_items").sum())
    assert chosen.filter((pl.col("n_items") - pl.col("budget")).abs() > 1e-9).is_empty()
    assert set(tables["seconds"]["work"]) == {"calibrate", "choose", "predict"}


def test_costs_are_the_test_models_own_unknown_ones_as_expected_and_none_that_cannot_be_divided_by():
    """Of one random item each: output tokens and half of the input tokens, which are twice as many."""
    spec = make_spec(Assessor("2pl"), n_calibration_tasks=(3,), n_items=(1,))
    tables, partition = run(spec, RESPONSES)
    cost = 2.0 * RESPONSES.costs["output_tokens"][partition.test]
    spent = tables["runs"]["cost"].to_numpy()
    assert np.isclose(cost, spent[:, None]).all(axis=0).sum() == 1  # the item that was drawn
    other, _ = run(replace(spec, input_weight=0.0), RESPONSES)
    np.testing.assert_allclose(other["runs"]["cost"].to_numpy(), 0.5 * spent)
    costs = {unit: cost.copy() for unit, cost in RESPONSES.costs.items()}
    costs["output_tokens"][partition.test] = np.nan
    spent = run(spec, replace(RESPONSES, costs=costs))[0]["runs"]["cost"].to_numpy()
    expected = 2.0 * RESPONSES.costs["output_tokens"][partition.train].mean(axis=0)
    assert np.isclose(expected, spent[0]).sum() == 1
    assert np.allclose(spent, spent[0])
    costs = {"output_tokens": RESPONSES.costs["output_tokens"].copy()}
    costs["output_tokens"][:, [3, 5]], costs["output_tokens"][:, 7] = 0.0, 0.5
    free, adaptive = replace(RESPONSES, costs=costs), Assessor("2pl", "adaptation", "fisher", per_cost=True)
    with pytest.raises(DataError, match=r"for per_cost, got zero or less for 2 of 144 items: 'item-3', 'item-5'"):
        run(make_spec(adaptive), free)
    run(make_spec(Assessor("2pl")), free)
    costs["output_tokens"][:] = np.nan
    with pytest.raises(DataError, match="at least one training model's cost in 'tokens' must be known"):
        run(make_spec(Assessor("2pl")), replace(RESPONSES, costs=costs))


@pytest.mark.parametrize(
    ("kind", "family"), [("binary", "auto"), ("probability", "beta"), ("probability", "auto"), ("count", "binomial")]
)
def test_ability_is_that_of_the_session(kind, family, monkeypatch):
    """What sessions find after their last item is what the study predicts from."""
    found, thetas = [], []
    honest, real = study.answered_in_turn, prepared.map_abilities

    def watched(session, *arguments):
        places = honest(session, *arguments)
        found.append(session.estimate().theta)
        return places

    def scored(*given, **more):
        thetas.append(real(*given, **more))
        return thetas[-1]

    monkeypatch.setattr(study, "answered_in_turn", watched)
    monkeypatch.setattr(prepared, "map_abilities", scored)
    method = "variational" if family == "beta" else "map"
    item_model = replace(MIRT, method=method, options={**MIRT.options, "family": family})
    spec = make_spec(V_OPTIMAL, item_models={"mirt": item_model}, n_calibration_tasks=(3,), n_items=(6,))
    run(spec, make_responses(kind=kind))
    np.testing.assert_allclose(thetas[-1].theta, np.stack(found).reshape(6, -1), atol=1e-6)


def test_nothing_else_in_a_study_changes_an_assessor():
    alone, _ = run(make_spec(V_OPTIMAL), RESPONSES)
    spec = make_spec(Assessor("ridge"), Assessor("mirt", "selection", "uniform"), V_OPTIMAL, n_calibration_tasks=(3, 1))
    among, _ = run(spec, RESPONSES)
    order = ["n_calibration_tasks", "budget", "model_id", "task"]
    own = [one["predictions"].filter(pl.col("assessor").cast(pl.String) == V_OPTIMAL.name) for one in (alone, among)]
    tables = [one.select(pl.col(*order, "prediction").cast(pl.String)).sort(order) for one in own]
    assert tables[0].height > 0
    assert tables[0].equals(tables[1])


def test_missing_responses_are_neither_answers_nor_truth():
    responses = make_responses(missing=0.3)
    spec = make_spec(Assessor("2pl"), FISHER, Assessor("ridge"), n_calibration_tasks=(3,), n_items=(1, 6))
    tables, partition = run(spec, responses)
    assert not np.isnan(tables["predictions"]["prediction"].to_numpy()).any()
    adaptive = tables["runs"].filter(pl.col("assessor").cast(pl.String) == FISHER.name)
    assert (adaptive["n_items"] == adaptive["budget"]).all()  # items that failed were followed by others
    assert np.isnan(responses.responses[partition.test]).any()


def test_marks_that_crowd_at_an_end_are_predicted_as_training_models_lie_above_theirs(monkeypatch):
    """By hand: of probabilities each task's prediction moves by the training models' mean residual, and stays one."""
    rng = np.random.default_rng(3)
    ability = rng.normal(size=30)
    share = 1.0 / (1.0 + np.exp(2.0 - ability))[:, None]
    values = np.where(rng.random((30, 120)) < share, rng.uniform(0.5, 1.0, (30, 120)), 1e-5)
    responses = ResponseMatrix.create(values, scenarios=[f"task-{j // 40}" for j in range(120)])
    item_model = CalibrationChoice("variational", 1, "2pl", options={"family": "beta", "precision": 5.0})
    spec = make_spec(Assessor("2pl"), item_models={"2pl": item_model}, task="scenario", cost="", n_test=10)
    tasks = find_tasks(spec, responses)
    prepared = prepare(spec, responses, tasks, make_partition(spec, responses, tasks, 0))
    calibration, held_out = prepared.known.calibrations["2pl"], prepared.held_out.items
    x = calibration.abilities @ calibration.parameters.loadings[held_out].T + calibration.parameters.intercept[held_out]
    own = (1.0 / (1.0 + np.exp(-x))).reshape(20, 3, 20).mean(axis=2)
    raw = prepared.known.responses[:, held_out].reshape(20, 3, 20).mean(axis=2)
    np.testing.assert_allclose(prepared.offsets["2pl"], (raw - own).mean(axis=0), atol=1e-12)
    tables, _ = run(spec, responses)
    found = tables["predictions"].filter(n_calibration_tasks=1, budget=1)["prediction"].to_numpy().reshape(10, 3)
    monkeypatch.setattr(study, "predict_item_model", lambda *given, **more: np.full((10, 3), 0.99))
    moved, _ = run(spec, responses)
    high = moved["predictions"].filter(n_calibration_tasks=1, budget=1)["prediction"].to_numpy().reshape(10, 3)
    np.testing.assert_allclose(high, np.clip(0.99 + np.tile(prepared.offsets["2pl"], (10, 1)), 0.0, 1.0), rtol=1e-6)
    assert ((found >= 0.0) & (found <= 1.0)).all()


def test_without_noise_partial_credit_shows_a_models_ability_at_once():
    """One ability, and responses that are their own mean: two items place a model, where right and wrong do not."""
    rng = np.random.default_rng(2)
    ability, difficulty = rng.normal(size=24), rng.normal(size=60)
    values = 1.0 / (1.0 + np.exp(difficulty - ability[:, None]))
    responses = ResponseMatrix.create(values, scenarios=[f"task-{j // 20}" for j in range(60)])
    mae = {}
    for family in ("beta", "bernoulli"):
        options = {"family": family, "precision": 100.0, "tolerance": 1e-4}
        item_model = CalibrationChoice("variational", n_dims=1, item_model="2pl", options=options)
        choices = {"task": "scenario", "cost": "", "n_calibration_tasks": (1,), "n_items": (2,), "n_test": 10}
        spec = make_spec(Assessor("2pl"), FISHER, item_models={"2pl": item_model}, **choices)
        found = run(spec, responses)[0]["predictions"]
        mae[family] = (found["prediction"] - found["truth"]).abs().mean()
    assert mae["beta"] < 0.01
    assert mae["bernoulli"] > 0.05


def test_what_cannot_be_studied_is_refused_before_the_work_and_errors_say_where_they_arose(tmp_path):
    broken = np.ones_like(RESPONSES.responses)
    broken[0, 0] = 0.0
    responses = replace(RESPONSES, responses=broken)
    spec = make_spec(Assessor("2pl"))
    tasks = find_tasks(spec, responses)
    partition = make_partition(spec, responses, tasks, 0)
    partition = replace(partition, test=np.arange(6), train=np.arange(6, 24))
    with pytest.raises(DataError, match="partition 0, calibration: at least one item must tell models apart"):
        run_partition(spec, responses, tasks, partition)
    with pytest.raises(ParameterError, match="n_jobs must be -1"):
        run_prediction(SPEC, tmp_path / "a", responses=RESPONSES, n_jobs=0)
    with pytest.raises(ParameterError, match="names no data"):
        run_prediction(SPEC, tmp_path / "a")
    with pytest.raises(DataError, match=r"cost unit must be one of .* got 'cost_usd'"):
        run_prediction(replace(SPEC, cost="cost_usd"), tmp_path / "a", responses=RESPONSES)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "assessor", [Assessor("2pl"), FISHER, Assessor("2pl", "selection", "uniform")], ids=lambda one: one.name
)
def test_without_noise_the_error_vanishes(assessor):
    """One ability, and items that all and only models above their difficulty solve: 64 items place a model."""
    rng = np.random.default_rng(1)
    n_models, n_tasks, n_per_task = 60, 4, 150
    ability, difficulty = rng.normal(size=n_models), rng.normal(size=n_tasks * n_per_task)
    values = (ability[:, None] > difficulty).astype(float)
    tasks = [f"task-{j // n_per_task}" for j in range(difficulty.size)]
    responses = ResponseMatrix.create(values, scenarios=tasks)
    spec = make_spec(assessor, task="scenario", cost="", n_calibration_tasks=(2,), n_items=(1, 64), n_test=10)
    tables, _ = run(spec, responses)
    found = tables["predictions"].with_columns(error=(pl.col("prediction") - pl.col("truth")).abs())
    mae = dict(found.group_by("budget").agg(pl.col("error").mean()).rows())
    assert mae[64] < 0.02
    assert mae[1] > 0.08


ANCHORED, BY_COST = Assessor("2pl", "selection", "anchor-irt"), replace(FISHER, per_cost=True, name="")
SPEC = make_spec(Assessor("2pl"), Assessor("ridge"), ANCHORED, FISHER, BY_COST, n_partitions=3, levels=(0.15,))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "study"
    return folder, run_prediction(SPEC, folder, responses=RESPONSES)


def same(one, other):
    names = ("curves", "costs", "at_cost", "predictions", "runs", "choices")
    tables = [[getattr(result, name).lazy().collect() for name in names] for result in (one, other)]
    return all(mine.equals(theirs, null_equal=True) for mine, theirs in zip(*tables, strict=True))


def test_a_study_is_what_its_folder_says(finished):
    folder, result = finished
    assert same(PredictionResult.load(folder), result)
    assert result.manifest.kind == "prediction"
    assert result.tasks.columns == ["task", "n_items", "n_held_out"]
    # 5 assessors, sets, budgets 1, 4, 12 of one and of three tasks
    assert result.curves.height == 5 * 2 * (3 + 3)
    assert result.predictions.collect().height == 3 * 5 * (3 + 3) * 6 * 6
    is_ridge, largest = pl.col("assessor").cast(pl.String) == "ridge, random", {"budget": 12, "n_calibration_tasks": 3}
    predicted = result.predictions.filter(is_ridge, ~pl.col("is_interpolation"), **largest).collect()
    row = result.curves.filter(is_ridge, pl.col("set") == "extrapolation", **largest)
    error = (predicted["prediction"].cast(pl.Float64) - predicted["truth"].cast(pl.Float64)).abs().mean()
    assert row["mae"][0] == pytest.approx(error)
    assert result.unit == "tokens"
    assert result.costs.height == 5 * 2 * 2 * 2  # assessors, sets, numbers of tasks, levels


def test_the_numbers_do_not_depend_on_the_number_of_processes(finished, tmp_path):
    assert same(run_prediction(SPEC, tmp_path / "study", responses=RESPONSES, n_jobs=2), finished[1])


def test_folders_of_other_tasks_or_kinds_are_refused(finished, tmp_path):
    folder, _ = finished
    renamed = pl.col("subscenario").replace("task-0", "task-9").reverse()
    changed = replace(RESPONSES, items=RESPONSES.items.with_columns(renamed))
    with pytest.raises(DataError, match="the responses, costs, dates or groups changed"):
        run_prediction(SPEC, folder, responses=changed)
    with pytest.raises(DataError, match=r"is a prediction study\. Load it with PredictionResult"):
        StudyResult.load(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["kind"]
    (tmp_path / "manifest.json").write_text(json.dumps(with_digest(manifest)))
    with pytest.raises(DataError, match=r"is a comparison study\. Load it with StudyResult"):
        PredictionResult.load(tmp_path)


def test_fits_that_stop_early_are_told_models_without_responses_left_out_and_of_absent_costs_nothing_is_said(tmp_path):
    hasty = CalibrationChoice("map", n_dims=1, item_model="2pl", options={"max_iterations": 1})
    spec = make_spec(Assessor("2pl"), n_partitions=2, item_models={"2pl": hasty})
    with pytest.warns(ConvergenceWarning, match="2 of 2 calibrations did not converge, of '2pl'"):
        result = run_prediction(spec, tmp_path / "study", responses=RESPONSES)
    told = result.seconds.filter(pl.col("work") == "calibrate").collect()
    assert told["converged"].to_list() == [False, False]
    values = RESPONSES.responses.copy()
    values[:10] = np.nan
    responses = replace(RESPONSES, responses=values, costs={})
    spec = make_spec(Assessor("2pl"), n_partitions=2, cost="")
    result = run_prediction(spec, tmp_path / "few", responses=responses)
    assert result.manifest.n_models == 14
    assert result.costs.is_empty()
    assert np.isnan(result.curves["cost"].to_numpy()).all()
    assert not np.isnan(result.curves["mae"].to_numpy()).any()
