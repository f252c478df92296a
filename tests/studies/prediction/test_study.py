import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from itembank.errors import ConvergenceWarning, DataError, ParameterError
from itembank.files.documents import with_digest
from itembank.responses.responses import ResponseMatrix
from itembank.studies.prediction import study as study_module
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.results import PredictionResult, StudyResult
from itembank.studies.run import run_prediction
from itembank.studies.study_specs import CalibrationChoice
from tests.studies.prediction.simulated import make_responses, make_spec

RESPONSES = make_responses()
SPEC = make_spec(
    Assessor("2pl"),
    Assessor("ridge"),
    Assessor("2pl", "selection", "anchor-irt"),
    Assessor("2pl", "adaptation", "fisher"),
    Assessor("2pl", "adaptation", "fisher", per_cost=True),
    n_partitions=3,
    levels=(0.15,),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "study"
    return folder, run_prediction(SPEC, folder, responses=RESPONSES)


def same(one, other):
    """Whether two results hold the same numbers."""
    return (
        one.curves.equals(other.curves, null_equal=True)
        and one.costs.equals(other.costs, null_equal=True)
        and one.at_cost.equals(other.at_cost, null_equal=True)
        and one.predictions.collect().equals(other.predictions.collect(), null_equal=True)
        and one.runs.collect().equals(other.runs.collect(), null_equal=True)
        and one.choices.collect().equals(other.choices.collect(), null_equal=True)
    )


def test_a_study_is_what_its_folder_says(finished):
    folder, result = finished
    assert same(PredictionResult.load(folder), result)
    assert result.manifest.kind == "prediction"
    assert result.tasks.columns == ["task", "n_items", "n_held_out"]
    # 5 assessors, sets, budgets 1, 4, 12 of one and of three tasks
    assert result.curves.height == 5 * 2 * (3 + 3)
    assert result.predictions.collect().height == 3 * 5 * (3 + 3) * 6 * 6
    predicted = result.predictions.filter(
        pl.col("assessor").cast(pl.String) == "ridge, random",
        pl.col("budget") == 12,
        pl.col("n_calibration_tasks") == 3,
        ~pl.col("is_interpolation"),
    ).collect()
    row = result.curves.filter(
        pl.col("assessor").cast(pl.String) == "ridge, random",
        pl.col("budget") == 12,
        pl.col("n_calibration_tasks") == 3,
        pl.col("set") == "extrapolation",
    )
    error = (predicted["prediction"].cast(pl.Float64) - predicted["truth"].cast(pl.Float64)).abs().mean()
    assert row["mae"][0] == pytest.approx(error)
    assert result.unit == "tokens"
    assert result.costs.height == 5 * 2 * 2 * 2  # assessors, sets, numbers of tasks, levels


def test_the_numbers_do_not_depend_on_the_number_of_processes(finished, tmp_path):
    _, result = finished
    assert same(run_prediction(SPEC, tmp_path / "study", responses=RESPONSES, n_jobs=2), result)


@pytest.mark.slow
def test_a_killed_study_goes_on_where_it_stopped_and_finds_the_same(finished, tmp_path, monkeypatch):
    _, result = finished
    ran, honest = [], study_module.run_partition

    def killed(spec, responses, tasks, partition):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(partition.number)
        return honest(spec, responses, tasks, partition)

    monkeypatch.setattr(study_module, "run_partition", killed)
    with pytest.raises(KeyboardInterrupt):
        run_prediction(SPEC, tmp_path / "study", responses=RESPONSES)
    with pytest.raises(DataError, match="is not finished: 2 of 3 partitions are done"):
        PredictionResult.load(tmp_path / "study")

    def counted(spec, responses, tasks, partition):
        ran.append(partition.number)
        return honest(spec, responses, tasks, partition)

    monkeypatch.setattr(study_module, "run_partition", counted)
    said = []
    resumed = run_prediction(SPEC, tmp_path / "study", responses=RESPONSES, progress=lambda *told: said.append(told))
    assert ran == [0, 1, 2]
    assert same(resumed, result)
    assert said[0] == ("2 of 3 partitions", 2 / 3)


@pytest.mark.parametrize(
    "changed", [{"seed": 4}, {"n_held_out": 5}, {"assessors": SPEC.assessors[:2]}, {"input_weight": 1.0}]
)
def test_another_study_is_refused(finished, changed):
    folder, _ = finished
    with pytest.raises(DataError, match=f"is another study: '{next(iter(changed))}' of the study file changed"):
        run_prediction(dataclasses.replace(SPEC, **changed), folder, responses=RESPONSES)


def test_other_tasks_of_the_same_items_are_another_study(finished):
    folder, _ = finished
    items = RESPONSES.items.with_columns(subscenario=pl.col("subscenario").replace("task-0", "task-9"))
    order = items.with_columns(subscenario=pl.col("subscenario").reverse())
    changed = ResponseMatrix(RESPONSES.responses, RESPONSES.models, order, None, RESPONSES.costs)
    with pytest.raises(DataError, match="the responses, costs, dates or groups changed"):
        run_prediction(SPEC, folder, responses=changed)


def test_a_folder_of_another_kind_is_refused(finished, tmp_path):
    folder, _ = finished
    with pytest.raises(DataError, match=r"is a prediction study\. Load it with PredictionResult"):
        StudyResult.load(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["kind"]
    (tmp_path / "manifest.json").write_text(json.dumps(with_digest(manifest)))
    with pytest.raises(DataError, match=r"is a comparison study\. Load it with StudyResult"):
        PredictionResult.load(tmp_path)


def test_what_cannot_be_studied_is_refused_before_the_work(tmp_path):
    with pytest.raises(ParameterError, match="n_jobs must be -1"):
        run_prediction(SPEC, tmp_path / "a", responses=RESPONSES, n_jobs=0)
    with pytest.raises(ParameterError, match="names no data"):
        run_prediction(SPEC, tmp_path / "a")
    with pytest.raises(DataError, match=r"cost unit must be one of .* got 'cost_usd'"):
        run_prediction(dataclasses.replace(SPEC, cost="cost_usd"), tmp_path / "a", responses=RESPONSES)
    assert not (tmp_path / "a").exists()


def test_fits_that_stop_early_are_told(tmp_path):
    hasty = CalibrationChoice("map", n_dims=1, item_model="2pl", options={"max_iterations": 1})
    spec = make_spec(Assessor("2pl"), n_partitions=2, item_models={"2pl": hasty})
    with pytest.warns(ConvergenceWarning, match="2 of 2 calibrations did not converge, of '2pl'"):
        result = run_prediction(spec, tmp_path / "study", responses=RESPONSES)
    told = result.seconds.filter(pl.col("work") == "calibrate").collect()
    assert told["converged"].to_list() == [False, False]


def test_models_without_responses_are_left_out(tmp_path):
    values = RESPONSES.responses.copy()
    values[:10] = np.nan
    spec = make_spec(Assessor("2pl"), n_partitions=2, cost="")
    result = run_prediction(
        spec, tmp_path / "study", responses=ResponseMatrix(values, RESPONSES.models, RESPONSES.items, None, {})
    )
    assert result.manifest.n_models == 14


def test_a_study_without_costs_says_nothing_of_them(tmp_path):
    spec = make_spec(Assessor("2pl"), cost="", n_partitions=2)
    bare = ResponseMatrix(RESPONSES.responses, RESPONSES.models, RESPONSES.items, None, {})
    result = run_prediction(spec, tmp_path / "study", responses=bare)
    assert result.costs.is_empty()
    assert np.isnan(result.curves["cost"].to_numpy()).all()
    assert not np.isnan(result.curves["mae"].to_numpy()).any()
