"""The prediction of tasks: every partition calibrates once, chooses items once, and predicts from each choice."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.costs import CostUnit, response_costs
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank_studies.engine import (
    AT_COST,
    CHOICES,
    COSTS,
    CURVES,
    PREDICTION,
    PREDICTIONS,
    RUNS,
    SECONDS,
    TASKS,
    Study,
    StudyManifest,
    Tables,
    errors_at,
)
from itembank_studies.prediction.designs import Pool, choose_adaptively, choose_static, make_pool
from itembank_studies.prediction.error_curves import costs_to_reach, errors_at_cost, sum_errors, summarise_curves
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.prediction.predictors import predict_item_model, predict_ridge_tasks, predict_task_mean
from itembank_studies.prediction.prepared import (
    Known,
    Partition,
    Prepared,
    Tasks,
    budgets_of,
    calibration_task_counts,
    find_tasks,
    make_partition,
    prepare,
)
from itembank_studies.splits import folds_of, stream

SECONDS_COLUMNS = {
    "n_calibration_tasks": pl.Int32,
    "name": pl.String,
    "work": pl.String,
    "seconds": pl.Float64,
    "converged": pl.Boolean,
}

Choices: TypeAlias = dict[tuple[object, ...], Mapping[int, IntArray]]
"""Items of each budget, by what the choice depends on."""


Place: TypeAlias = tuple[int, str, int]
Found: TypeAlias = tuple[Place, FloatArray, FloatArray, IntArray, FloatArray]
"""Calibration tasks, assessor and budget; predictions (n_test, n_tasks), what each test model spent and how many items
it was asked, (n_test,); and items of each task, (n_tasks,)."""
Seconds: TypeAlias = tuple[int, str, str, float, bool | None]


@one_blas_thread()
def run_partition(
    spec: PredictionSpec, responses: ResponseMatrix, tasks: Tasks, partition: Partition
) -> dict[str, pl.DataFrame]:
    """Return the tables of a partition: 'predictions', 'runs', 'choices' and 'seconds'; see `PredictionResult`."""
    where = f"partition {partition.number}"
    with errors_at(f"{where}, calibration"):
        prepared = prepare(spec, responses, tasks, partition)
    found: list[Found] = []
    seconds: list[Seconds] = [
        (0, name, "calibrate", prepared.seconds[name], calibration.converged)
        for name, calibration in prepared.known.calibrations.items()
    ]
    for n_tasks in calibration_task_counts(spec, tasks.n_tasks):
        pool = make_pool(prepared.known, prepared.task_order[:n_tasks], prepared.held_out.items)
        budgets = budgets_of(spec, tasks, n_tasks)
        choices: Choices = {}
        for assessor in spec.assessors:
            with errors_at(f"{where}, {n_tasks} calibration tasks, assessor {assessor.name!r}"):
                started = time.process_time()
                key = assessor.selection_key
                if key not in choices:  # by one sequence of random numbers a way of choosing
                    rng = stream(spec.seed, "choose", partition.number, n_tasks, repr(key))
                    choices[key] = _choose(prepared, assessor, pool, budgets, rng)
                    seconds.append((n_tasks, assessor.name, "choose", time.process_time() - started, None))
                started = time.process_time()
                for budget, items in choices[key].items():
                    found.append(_found(prepared, assessor, items, (n_tasks, assessor.name, budget)))
                seconds.append((n_tasks, assessor.name, "predict", time.process_time() - started, None))
    return _tables(spec, prepared, partition.number, found, seconds)


def _choose(
    prepared: Prepared, assessor: Assessor, pool: Pool, budgets: tuple[int, ...], rng: np.random.Generator
) -> Mapping[int, IntArray]:
    """Return the items of each budget."""
    if assessor.paradigm == "adaptation":
        return choose_adaptively(assessor, prepared.known, prepared.new, pool, budgets)
    return choose_static(assessor, prepared.known, pool, budgets, rng=rng)


def _found(prepared: Prepared, assessor: Assessor, items: IntArray, place: Place) -> Found:
    """Predict from the answers to some items, and count these."""
    known, new = prepared.known, prepared.new
    asked: IntArray = np.broadcast_to((items >= 0).sum(axis=-1), len(new.model_ids))
    # on average over the models where each has its own
    n_sets, of_items = 1 if items.ndim == 1 else items.shape[0], known.task[items[items >= 0]]
    chosen = np.bincount(of_items, minlength=known.n_tasks) / n_sets
    return place, _predict(prepared, assessor, items), new.spent(items), asked, chosen


def _predict(prepared: Prepared, assessor: Assessor, items: IntArray) -> FloatArray:
    """Predict every task's mean on the held-out items, (n_test, n_tasks), from the answers to these items."""
    known, answers = prepared.known, prepared.new.answers(items)
    match assessor.predictor:
        case "task-mean":
            return predict_task_mean(_tasks_of(known, items), answers, prepared.train_means)
        case "task-mean-eb":
            # WILD's lambda of eq. 15
            return predict_task_mean(_tasks_of(known, items), answers, prepared.train_means, strength=5.0)
        case "ridge":
            return predict_ridge_tasks(items, answers, known.responses, prepared.train_means)
        case name:
            answers, n_trials = known.as_fitted(name, items, answers), prepared.new.trials(items)
            found = predict_item_model(known.calibrations[name], items, answers, prepared.held_out, n_trials=n_trials)
            return np.clip(found + prepared.offsets[name], 0.0, 1.0) if name in prepared.offsets else found


def _tasks_of(known: Known, items: IntArray) -> IntArray:
    return known.task[np.maximum(items, 0)]


def _tables(
    spec: PredictionSpec, prepared: Prepared, number: int, found: list[Found], spent: list[Seconds]
) -> dict[str, pl.DataFrame]:
    """Lay out what was found as tables: places, within them test models, within these tasks."""
    assessors = pl.Enum([assessor.name for assessor in spec.assessors])
    schema: dict[str, Any] = {"n_calibration_tasks": pl.Int32, "assessor": assessors, "budget": pl.Int32}
    where, predicted, costs, asked, chosen = zip(*found, strict=True)
    places = pl.DataFrame(where, schema=schema, orient="row")
    places = places.select(pl.lit(number, dtype=pl.Int32).alias("partition"), pl.all())
    models = pl.DataFrame({"model_id": prepared.new.model_ids}, schema={"model_id": pl.Categorical})
    names = prepared.known.task_names
    rank = np.argsort(prepared.task_order)  # the first tasks are those of interpolation
    tasks = pl.DataFrame({"task": names, "rank": rank}, schema={"task": pl.Enum(names), "rank": pl.Int64})
    runs = places.join(models, how="cross")
    predictions = runs.join(tasks, how="cross").with_columns(
        (pl.col("rank") < pl.col("n_calibration_tasks")).alias("is_interpolation"),
        pl.Series("truth", np.tile(prepared.truth.ravel(), places.height), dtype=pl.Float32),
        pl.Series("prediction", np.concatenate(predicted).ravel(), dtype=pl.Float32),
    )
    runs = runs.with_columns(
        pl.Series("n_items", np.concatenate(asked), dtype=pl.Int32),
        pl.Series("cost", np.concatenate(costs)),
    )
    choices = places.join(tasks, how="cross").with_columns(pl.Series("n_items", np.concatenate(chosen)))
    seconds = pl.DataFrame(spent, schema=SECONDS_COLUMNS, orient="row")
    return {
        PREDICTIONS: predictions.drop("rank"),
        RUNS: runs,
        CHOICES: choices.drop("rank").filter(pl.col("n_items") > 0),
        SECONDS: seconds.with_columns(pl.lit(number, dtype=pl.Int32).alias("partition")),
    }


def prediction_study(spec: PredictionSpec, responses: ResponseMatrix) -> Study[Partition]:
    """Return the study of these responses, ready to run. Models without any response are left out."""
    has_answers = responses.observed.any(axis=1)
    if not has_answers.all():  # a filter of items left some models nothing
        responses = responses.take(models=np.flatnonzero(has_answers))
    if spec.cost:
        response_costs(responses, CostUnit(spec.cost, spec.input_weight))
    tasks = find_tasks(spec, responses)
    among = None if spec.split is None else folds_of([spec.split], responses)[0]
    partitions = [make_partition(spec, responses, tasks, number, among) for number in range(spec.n_partitions)]
    parts = [tasks.index.tobytes(), *(one.division for one in partitions)]
    manifest = StudyManifest.of(
        PREDICTION.name, spec.to_dict(), responses, division=parts, seed=spec.seed, n_folds=len(partitions)
    )
    run = partial(run_partition, spec, responses, tasks)
    return Study(PREDICTION, manifest, dict(enumerate(partitions)), run, partial(_summaries, spec, tasks))


def _summaries(spec: PredictionSpec, tasks: Tasks, folder: Path) -> Tables:
    errors = sum_errors(PREDICTION.scan(folder, PREDICTIONS), PREDICTION.scan(folder, RUNS))
    return {
        TASKS: tasks.table(),
        CURVES: summarise_curves(errors),
        COSTS: costs_to_reach(errors, spec),
        AT_COST: errors_at_cost(errors, spec),
    }
