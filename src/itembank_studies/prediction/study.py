"""The prediction of tasks: every partition calibrates once, chooses items once, and predicts from each choice."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a study assessors work: a partition with a number of calibration tasks."""

    spec: PredictionSpec
    prepared: Prepared
    number: int  # Of the partition
    n_tasks: int  # Calibration tasks
    pool: Pool
    budgets: tuple[int, ...]


@dataclass(slots=True)
class _Collected:
    """Columns of the tables as they grow, one array an assessor and budget."""

    places: list[tuple[int, str, int]] = field(default_factory=list)  # (n_calibration_tasks, assessor, budget)
    predictions: list[FloatArray] = field(default_factory=list)  # (n_test, n_tasks)
    spent: list[FloatArray] = field(default_factory=list)  # (n_test,)
    asked: list[IntArray] = field(default_factory=list)  # (n_test,)
    chosen: list[FloatArray] = field(default_factory=list)  # (n_tasks,)
    seconds: list[tuple[int, str, str, float, bool | None]] = field(default_factory=list)


@one_blas_thread()
def run_partition(
    spec: PredictionSpec, responses: ResponseMatrix, tasks: Tasks, partition: Partition
) -> dict[str, pl.DataFrame]:
    """Return the tables of a partition: 'predictions', 'runs', 'choices' and 'seconds'; see `PredictionResult`."""
    where = f"partition {partition.number}"
    with errors_at(f"{where}, calibration"):
        prepared = prepare(spec, responses, tasks, partition)
    collected = _Collected()
    for name, calibration in prepared.known.calibrations.items():
        collected.seconds.append((0, name, "calibrate", prepared.seconds[name], calibration.converged))
    for n_tasks in calibration_task_counts(spec, tasks.n_tasks):
        pool = make_pool(prepared.known, prepared.task_order[:n_tasks], prepared.held_out.items)
        place = Place(spec, prepared, partition.number, n_tasks, pool, budgets_of(spec, tasks, n_tasks))
        choices: Choices = {}
        for assessor in spec.assessors:
            with errors_at(f"{where}, {n_tasks} calibration tasks, assessor {assessor.name!r}"):
                _assess(place, assessor, choices, collected)
    return _tables(spec, prepared, partition.number, collected)


def _assess(place: Place, assessor: Assessor, choices: Choices, collected: _Collected) -> None:
    """Choose items, unless another assessor chose the same, and predict at every budget."""
    key, prepared, known = assessor.selection_key, place.prepared, place.prepared.known
    started = time.process_time()
    if key not in choices:
        choices[key] = _choose(place, assessor)
        collected.seconds.append((place.n_tasks, assessor.name, "choose", time.process_time() - started, None))
    started = time.process_time()
    for budget, items in choices[key].items():
        collected.places.append((place.n_tasks, assessor.name, budget))
        collected.predictions.append(_predict(prepared, assessor, items))
        collected.spent.append(prepared.new.spent(items))
        collected.asked.append(np.broadcast_to((items >= 0).sum(axis=-1), len(prepared.new.model_ids)))
        # on average over the models where each has its own
        n_sets, of_items = 1 if items.ndim == 1 else items.shape[0], known.task[items[items >= 0]]
        collected.chosen.append(np.bincount(of_items, minlength=known.n_tasks) / n_sets)
    collected.seconds.append((place.n_tasks, assessor.name, "predict", time.process_time() - started, None))


def _choose(place: Place, assessor: Assessor) -> Mapping[int, IntArray]:
    """Return the items of each budget, by one sequence of random numbers a way of choosing."""
    known, new = place.prepared.known, place.prepared.new
    if assessor.paradigm == "adaptation":
        return choose_adaptively(assessor, known, new, place.pool, place.budgets)
    rng = stream(place.spec.seed, "choose", place.number, place.n_tasks, repr(assessor.selection_key))
    return choose_static(assessor, known, place.pool, place.budgets, rng=rng)


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


def _tables(spec: PredictionSpec, prepared: Prepared, number: int, collected: _Collected) -> dict[str, pl.DataFrame]:
    """Lay the collected arrays out as tables: places, within them test models, within these tasks."""
    assessors = pl.Enum([assessor.name for assessor in spec.assessors])
    schema: dict[str, Any] = {"n_calibration_tasks": pl.Int32, "assessor": assessors, "budget": pl.Int32}
    places = pl.DataFrame(collected.places, schema=schema, orient="row")
    places = places.select(pl.lit(number, dtype=pl.Int32).alias("partition"), pl.all())
    models = pl.DataFrame({"model_id": prepared.new.model_ids}, schema={"model_id": pl.Categorical})
    names = prepared.known.task_names
    rank = np.argsort(prepared.task_order)  # the first tasks are those of interpolation
    tasks = pl.DataFrame({"task": names, "rank": rank}, schema={"task": pl.Enum(names), "rank": pl.Int64})
    runs = places.join(models, how="cross")
    predictions = runs.join(tasks, how="cross").with_columns(
        (pl.col("rank") < pl.col("n_calibration_tasks")).alias("is_interpolation"),
        pl.Series("truth", np.tile(prepared.truth.ravel(), places.height), dtype=pl.Float32),
        pl.Series("prediction", np.concatenate(collected.predictions).ravel(), dtype=pl.Float32),
    )
    runs = runs.with_columns(
        pl.Series("n_items", np.concatenate(collected.asked), dtype=pl.Int32),
        pl.Series("cost", np.concatenate(collected.spent)),
    )
    choices = places.join(tasks, how="cross").with_columns(pl.Series("n_items", np.concatenate(collected.chosen)))
    seconds = pl.DataFrame(collected.seconds, schema=SECONDS_COLUMNS, orient="row")
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
    return Study.of(
        PREDICTION,
        spec,
        responses,
        dict(enumerate(partitions)),
        run=partial(run_partition, spec, responses, tasks),
        summarise=partial(_summaries, spec, tasks),
        division=tasks.index.tobytes(),
    )


def _summaries(spec: PredictionSpec, tasks: Tasks, folder: Path) -> Tables:
    errors = sum_errors(PREDICTION.scan(folder, PREDICTIONS), PREDICTION.scan(folder, RUNS))
    return {
        TASKS: tasks.table(),
        CURVES: summarise_curves(errors),
        COSTS: costs_to_reach(errors, spec),
        AT_COST: errors_at_cost(errors, spec),
    }
