"""The prediction of tasks: every partition calibrates once, chooses items once, and predicts from each choice.

Items are chosen at once for all test models, or one at a time for each by adaptive sessions (WILD 6.2, 6.4).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.costs import CostUnit, response_costs
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.splits import places_within
from itembank.responses.responses import ResponseMatrix
from itembank.selection.anchors import NO_SPREAD, choose_anchors, spread
from itembank.selection.criteria import criterion_of
from itembank.selection.greedy import Bounds, next_items
from itembank.selection.item_worth import DesignItems, goal_matrix
from itembank.selection.pools import ScenarioPool
from itembank.sessions.events import Told
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.preparation import Recorded, answer_from_record
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
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
from itembank_studies.prediction.error_curves import costs_to_reach, errors_at_cost, sum_errors, summarise_curves
from itembank_studies.prediction.prediction_spec import ANCHORS, Assessor, PredictionSpec
from itembank_studies.prediction.prepared import (
    STUDY_COST,
    Known,
    Partition,
    Prepared,
    Tasks,
    TestModels,
    budgets_of,
    calibration_task_counts,
    find_tasks,
    make_partition,
    part_of,
    predict_item_model,
    predict_ridge_tasks,
    predict_task_mean,
    prepare,
)
from itembank_studies.splits import folds_of, stream


@dataclass(frozen=True, slots=True)
class Pool:
    """The items that may be chosen, and those whose prediction matters."""

    items: IntArray  # (n_pool,): Columns of the interpolation tasks' items that are not held out
    targets: IntArray  # (n_targets,): Columns of the held-out items of all tasks
    target_weights: FloatArray  # (n_targets,): Every task weighs the same; they sum to one


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
            return predict_task_mean(known.task[np.maximum(items, 0)], answers, prepared.train_means)
        case "task-mean-eb":
            # WILD's lambda of eq. 15
            return predict_task_mean(known.task[np.maximum(items, 0)], answers, prepared.train_means, strength=5.0)
        case "ridge":
            return predict_ridge_tasks(items, answers, known.responses, prepared.train_means)
        case name:
            answers, n_trials = known.as_fitted(name, items, answers), prepared.new.trials(items)
            found = predict_item_model(known.calibrations[name], items, answers, prepared.held_out, n_trials=n_trials)
            return np.clip(found + prepared.offsets[name], 0.0, 1.0) if name in prepared.offsets else found


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
        pl.Series("n_items", np.concatenate(asked), dtype=pl.Int32), pl.Series("cost", np.concatenate(costs))
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


def make_pool(
    known: Known,
    interpolation: IntArray,  # (n_interpolation,): Tasks by number
    held_out: IntArray,  # (n_targets,): Columns of all held-out items
) -> Pool:
    """Return the pool of some interpolation tasks."""
    is_open = np.isin(known.task, interpolation) & ~known.is_held_out
    counts = np.bincount(known.task[held_out], minlength=known.n_tasks)
    weights = 1.0 / counts[known.task[held_out]]
    return Pool(np.flatnonzero(is_open), held_out, weights / weights.sum())


def choose_static(
    assessor: Assessor, known: Known, pool: Pool, budgets: tuple[int, ...], *, rng: np.random.Generator
) -> Mapping[int, IntArray]:
    """Choose items for each budget; columns in the order of choice.

    Where a method ranks items one after the other, a smaller budget's are the first of a larger one's. Random and
    uniform choices take any item of the pool, the others only such as tell training models apart.

    Returns mapping of budget to (n,): Fewer than the budget where no more may be chosen.
    """
    if assessor.selector in ANCHORS:
        return {n: _anchors(assessor, known, pool, n, rng) for n in budgets}
    if assessor.selector == "random":
        order = rng.permutation(pool.items)
    elif assessor.selector == "uniform":
        order = uniform_order(pool.items, known.task[pool.items], rng)
    elif assessor.selector == "min-cost":
        items = _informative(known, pool)
        order = items[np.argsort(_cost(known)[items], kind="stable")]
    else:
        order = greedy_order(assessor, known, pool, min(max(budgets), pool.items.size), rng)
    return {n: order[:n] for n in budgets}


def uniform_order(
    items: IntArray,  # (n,)
    task: IntArray,  # (n,)
    rng: np.random.Generator,
) -> IntArray:
    """Items by chance so that, however many are taken, the numbers of two tasks differ by at most one (WILD 6.4).

    Returns (n,): In rounds: each takes one item of every task that has some left, tasks in a new random order.
    """
    shuffled = rng.permutation(items.size)
    shuffled = shuffled[np.argsort(task[shuffled], kind="stable")]
    rounds = places_within(np.bincount(task))
    return items[shuffled[np.lexsort((rng.random(items.size), rounds))]]


def greedy_order(assessor: Assessor, known: Known, pool: Pool, n: int, rng: np.random.Generator) -> IntArray:
    """Items by a criterion, each knowing of those before it, at the centre of the training models' abilities.

    The centre is the median ability where there is one (WILD 6.4), else the prior's mean.
    """
    open_items = _informative(known, pool)
    calibration = part_of(known.calibrations[assessor.design_model], open_items)
    is_open = np.ones(open_items.size, dtype=bool)
    items = DesignItems.of(calibration, is_open, _cost(known)[open_items] if assessor.per_cost else None)
    prior, n = calibration.prior, min(n, open_items.size)
    chosen = next_items(
        items,
        criterion_of(assessor.selector, per_cost=assessor.per_cost),
        np.median(calibration.abilities, axis=0) if prior.n_dims == 1 else prior.mean,
        prior.covariance,
        n,
        target_weights=np.zeros(open_items.size),
        is_open=is_open,
        counts=np.zeros(1, dtype=np.int64),
        bounds=Bounds(np.zeros(1, dtype=np.int64), np.array([open_items.size])),
        n_left=n,
        rng=rng,
        goal=fixed_goal(assessor, known, pool),
    )
    return open_items[chosen]


def fixed_goal(assessor: Assessor, known: Known, pool: Pool) -> FloatArray | None:
    """V-optimality's matrix of the target items (WILD eq. 6), where it is the same at any ability.

    Taken once, so that choosing does not weigh the target items, often far more than there are to choose from.
    """
    if assessor.selector != "v-optimal":
        return None
    calibration = part_of(known.calibrations[assessor.design_model], pool.targets)
    items = DesignItems.of(calibration, np.zeros(pool.targets.size, dtype=bool))
    return goal_matrix(items, pool.target_weights)


def _anchors(assessor: Assessor, known: Known, pool: Pool, n: int, rng: np.random.Generator) -> IntArray:
    """Items nearest the centres of n clusters of the pool (WILD 6.4, after tinyBenchmarks 3.2)."""
    items = _informative(known, pool)
    everyone = ScenarioPool(np.arange(items.size), np.full(items.size, 1.0 / items.size), np.ones(items.size, bool))
    if assessor.selector == "anchor-binary":
        responses = known.responses[:, items]
        means = np.nanmean(responses, axis=0)
        features: FloatArray = np.where(np.isnan(responses), means, responses).T
    else:
        parameters = known.calibrations[assessor.design_model].parameters.take(items)
        features = np.column_stack([parameters.loadings, parameters.intercept])
        scale = spread(features, everyone)
        scale[:-1] = np.sqrt(np.sum(scale[:-1] ** 2))  # as `irt_features`
        features = features / np.where(scale > NO_SPREAD, scale, 1.0)
    return items[choose_anchors(everyone, features, min(n, items.size), rng, n_restarts=1).chosen]


def _informative(known: Known, pool: Pool) -> IntArray:
    return pool.items[~known.is_degenerate[pool.items]]


def _cost(known: Known) -> FloatArray:
    if known.cost is None:
        raise ParameterError("this selector needs the study to name a cost.")
    return known.cost


def choose_adaptively(
    assessor: Assessor, known: Known, new: TestModels, pool: Pool, budgets: tuple[int, ...]
) -> Mapping[int, IntArray]:
    """Run one session for each test model; a smaller budget's items are the first of a larger one's.

    An item that the model has no response to fails when it is asked, and counts for nothing.

    Returns mapping of budget to (n_test, n): Columns in the order of asking; -1 where a session ended before.
    """
    most = min(max(budgets), pool.items.size)
    spec = SessionSpec(
        criterion_of(assessor.selector, per_cost=assessor.per_cost),
        cost=CostUnit(STUDY_COST) if assessor.per_cost else None,
        budget=Budget(n_items=most),
        n_start=0,
        interval="model-based",
    )
    columns = pool.items
    # what the sessions of all test models share
    sessions = SessionPool.create(known.bank(assessor.design_model, columns), spec)
    sessions = replace(sessions, goal=fixed_goal(assessor, known, pool))
    n_trials = None if new.n_trials is None else new.n_trials[:, columns]
    recorded = Recorded(new.model_ids, np.arange(columns.size), new.responses[:, columns], n_trials, costs={})
    asked = np.full((len(new.model_ids), most), -1, dtype=np.int64)
    for row in range(len(new.model_ids)):
        places = answered_in_turn(AdaptiveSession(sessions), recorded, row, most)
        asked[row, : places.size] = columns[places]
    return {n: asked[:, :n] for n in budgets}


def answered_in_turn(session: AdaptiveSession, recorded: Recorded, row: int, most: int) -> IntArray:
    """Answer what a session asks as the model at `row` did, at most `most` times.

    Returns (n_answered,): Positions in the bank, in the order of asking.
    """
    answer_from_record(session, recorded, row, n_answers=most)
    answered = [event.item_id for event in session.history if isinstance(event, Told)]
    return np.array([session.pool.positions[item_id] for item_id in answered], dtype=np.int64)
