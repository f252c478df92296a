"""Partitions (WILD 6.1), and what all assessors of one share: item models, held-out items, costs, the truth.

And predictors: from some answers of the test models to their mean on the held-out items of every task (WILD 6.4).
"""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.banks import Bank, Calibration
from itembank.bank.costs import CostUnit, response_costs
from itembank.calibration.fit_item_model import MINIMUM_MODELS, fit_item_model
from itembank.errors import DataError, ItembankWarning, shown, unsaid
from itembank.estimation.regressions import predict_ridge
from itembank.irt.bernoulli import probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.family_names import WITH_PRECISION
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.splits import Split, first_of_each
from itembank.responses.responses import ResponseMatrix, column_of
from itembank.responses.targets import ScoreTargets
from itembank_studies.prediction.prediction_spec import PredictionSpec
from itembank_studies.splits import ITEM_COLUMNS, stream


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The items that are predicted, task after task."""

    items: IntArray  # (n_held_out,): Columns of the responses
    task: IntArray  # (n_held_out,): Rising
    n_tasks: int
    # (n_test, n_held_out): 1.0 where the test model answered, else 0.0: predictions are means over the same items as
    # the truth.
    observed: FloatArray

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of values (n_test, n_held_out) over what each test model answered of each task, (n_test, n_tasks)."""
        return task_means(values, self.observed, self.task, self.n_tasks)


NO_TASK = "(none)"


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a study."""

    names: tuple[str, ...]  # Those large enough, sorted
    index: IntArray  # (n_items,): Task of each item; -1 for items of tasks that are too small
    n_items: IntArray  # (n_tasks,): Items of each task, and how many of them are predicted
    n_held_out: IntArray  # (n_tasks,)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.names)

    def table(self) -> pl.DataFrame:
        """One row a task: `task`, `n_items`, `n_held_out`."""
        return pl.DataFrame({"task": list(self.names), "n_items": self.n_items, "n_held_out": self.n_held_out})


@dataclass(frozen=True, slots=True)
class Partition(Split):
    """One random division of models and items."""

    number: int
    is_held_out: BoolArray  # (n_items,)
    task_order: IntArray  # (n_tasks,): The first T of them are the interpolation tasks where there are T

    @property
    def division(self) -> bytes:
        """What of the responses the partition takes."""
        arrays = (self.train, self.test, self.is_held_out, self.task_order)
        return b"/".join(array.tobytes() for array in arrays)


def find_tasks(spec: PredictionSpec, responses: ResponseMatrix) -> Tasks:
    """Return the tasks of the items, and how many items of each are held out."""
    column = column_of(responses.items, spec.task, "the task of an item").cast(pl.String)
    if spec.task_pattern:
        column = column.str.extract(f"({spec.task_pattern})", 1)
    every, first_index = np.unique(column.fill_null(NO_TASK).to_numpy().astype(str), return_inverse=True)
    size = np.bincount(first_index.ravel(), minlength=every.size)
    is_large = size >= spec.smallest_task
    if is_large.sum() < 2:
        raise DataError(
            f"at least two tasks of {spec.smallest_task} items or more are needed, got {int(is_large.sum())} of "
            f"{every.size} in column {spec.task!r}: {shown(every.tolist())}. Name another column, or lower "
            "smallest_task."
        )
    renumbered = np.where(is_large, np.cumsum(is_large) - 1, -1)
    held_out = np.minimum(spec.n_held_out, (spec.largest_held_out_share * size).astype(np.int64))
    return Tasks(
        tuple(every[is_large].tolist()),
        renumbered[first_index.ravel()],
        size[is_large].astype(np.int64),
        np.maximum(held_out, 1)[is_large],
    )


def calibration_task_counts(spec: PredictionSpec, n_tasks: int) -> tuple[int, ...]:
    """Numbers of interpolation tasks that are run: those asked for, at most half of the tasks each."""
    return tuple(dict.fromkeys(min(n, n_tasks // 2) for n in spec.n_calibration_tasks))


def budgets_of(spec: PredictionSpec, tasks: Tasks, n_calibration_tasks: int) -> tuple[int, ...]:
    """Budgets that can be spent on the largest choice of so many tasks, and the first budget in any case.

    Partitions whose tasks have fewer items spend all they have, so that a curve is of the same partitions throughout.
    """
    sizes = np.sort(tasks.n_items - tasks.n_held_out)[::-1]
    most = max(int(sizes[:n_calibration_tasks].sum()), spec.n_items[0])
    return tuple(n for n in spec.n_items if n <= most)


def make_partition(
    spec: PredictionSpec,
    responses: ResponseMatrix,
    tasks: Tasks,
    number: int,
    among: Split | None = None,  # Models that may be tested, and those that may train; all may be either by default
) -> Partition:
    """Draw a partition: the same for the same seed and number, whatever else is in the study."""
    order = stream(spec.seed, "models", number).permutation(responses.n_models)
    may_train = order if among is None else order[np.isin(order, among.train)]
    test = (order if among is None else order[np.isin(order, among.test)])[: spec.n_test]
    train = may_train[~np.isin(may_train, test)]
    least = MINIMUM_MODELS if spec.n_train is None else spec.n_train
    if test.size < spec.n_test or train.size < max(least, MINIMUM_MODELS):
        raise DataError(
            f"a partition of {spec.n_test} test models must leave at least {max(MINIMUM_MODELS, least)} to train on, "
            f"got {test.size + train.size} models in all. Lower n_test or n_train."
        )
    models = Split(np.sort(train[: spec.n_train]), np.sort(test))
    items = np.argsort(stream(spec.seed, "held-out", number).random(tasks.index.size), kind="stable")
    is_held_out = np.zeros(tasks.index.size, dtype=bool)
    is_held_out[first_of_each(items[tasks.index[items] >= 0], tasks.index, tasks.n_held_out)] = True
    return Partition(
        models.train, models.test, number, is_held_out, stream(spec.seed, "tasks", number).permutation(tasks.n_tasks)
    )


STUDY_COST = "study_cost"
"""Name of the one cost that the banks of sessions have: the study's."""


@dataclass(frozen=True, slots=True)
class Known:
    """What may be known before a test model is asked anything. Items are those that a training model answered."""

    responses: FloatArray  # (n_train, n_items): Of the training models
    n_trials: IntArray | None  # (n_train, n_items): Repeated trials behind each response
    item_ids: tuple[str, ...]
    task: IntArray  # (n_items,): Task of each item; -1 for none
    task_names: tuple[str, ...]
    is_held_out: BoolArray  # (n_items,): Items that are only predicted; items that every training model answered alike
    is_degenerate: BoolArray  # (n_items,)
    # (n_items,): Expected cost of each item (WILD eq. 10); the mean of the others where no training model's is known.
    cost: FloatArray | None
    calibrations: Mapping[str, Calibration]  # On all items

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.task_names)

    def as_fitted(self, name: str, items: IntArray, answers: FloatArray) -> FloatArray:
        """Make answers to items (n,), or to each model's own (n_test, n), what an item model was fitted to.

        They are made binary by its thresholds, where it has some, and are left alone where not.
        """
        thresholds = self.calibrations[name].thresholds
        if not thresholds:
            return answers
        of_task = item_thresholds(thresholds, [*self.task_names, NO_TASK])
        return apply_thresholds(answers, of_task[self.task[np.maximum(items, 0)]])

    def bank(self, name: str, items: IntArray) -> Bank:
        """Return the bank of an item model and some items, as sessions need it, without what only scores need."""
        calibration = part_of(self.calibrations[name], items)
        responses = self.responses[:, items]
        table = pl.DataFrame(
            {
                "item_id": [self.item_ids[item] for item in items],
                "scenario": _task_names(self.task_names, self.task[items]),
                "subscenario": pl.Series([None] * items.size, dtype=pl.String),
            }
        )
        costs = {} if self.cost is None else {STUDY_COST: np.broadcast_to(self.cost[items], responses.shape)}
        models = pl.DataFrame({"model_id": [f"train-{row}" for row in range(responses.shape[0])]})
        targets = ScoreTargets.create(table)
        unknown = np.full(targets.n_scenarios, np.nan)
        n_trials = None if self.n_trials is None else self.n_trials[:, items]
        matrix = ResponseMatrix(responses, models, table, n_trials, costs)
        return Bank("study", matrix, calibration, targets, unknown, unknown)


@dataclass(frozen=True, slots=True)
class TestModels:
    """The test models, and all their responses: assessors see of them what `answers` gives."""

    model_ids: tuple[str, ...]
    responses: FloatArray  # (n_test, n_items)
    n_trials: IntArray | None  # (n_test, n_items): Repeated trials behind each response
    cost: FloatArray | None  # (n_test, n_items): Of each response; the expected one where it is not known

    def answers(self, items: IntArray) -> FloatArray:
        """Responses to items (n,), or to each model's own (n_test, n); (n_test, n), NaN for none."""
        return _at(self.responses, items)

    def trials(self, items: IntArray) -> FloatArray | None:
        """Trials behind each of `answers`; None where there is one behind each."""
        return None if self.n_trials is None else _at(self.n_trials.astype(np.float64), items)

    def spent(self, items: IntArray) -> FloatArray:
        """Cost of running the items, (n_test,); NaN without costs."""
        if self.cost is None:
            return np.full(len(self.model_ids), np.nan)
        result: FloatArray = np.where(items < 0, 0.0, _at(self.cost, items)).sum(axis=-1)
        return result


@dataclass(frozen=True, slots=True)
class Prepared:
    """A partition before any item is chosen."""

    known: Known
    new: TestModels
    held_out: HeldOut
    train_means: FloatArray  # (n_train, n_tasks), (n_test, n_tasks): Mean of every model on each task's held-out items
    truth: FloatArray  # (n_train, n_tasks), (n_test, n_tasks)
    # mapping of item model to (n_tasks,): What the training models' means lie above what it predicts for them
    # (`mean_offsets`); of families with a precision alone.
    offsets: Mapping[str, FloatArray]
    task_order: IntArray  # (n_tasks,)
    seconds: Mapping[str, float]


def prepare(spec: PredictionSpec, responses: ResponseMatrix, tasks: Tasks, partition: Partition) -> Prepared:
    """Calibrate the item models of a partition on its training models, and find the truth of the others."""
    answered = np.flatnonzero(responses.observed[partition.train].any(axis=0))
    train, train_trials = _of_models(responses, partition.train, answered)
    values, new_trials = _of_models(responses, partition.test, answered)
    cost, new_cost = _costs(spec, responses, partition, answered)
    # of the item table nothing that may be a mean over test models; tasks are the scenarios
    columns = [name for name in ITEM_COLUMNS if name in responses.items.columns]
    items = responses.items.select(columns)[answered].with_columns(_task_names(tasks.names, tasks.index[answered]))
    models = pl.DataFrame({"model_id": [f"train-{row}" for row in range(len(train))]})
    calibrations, seconds = {}, {}
    for name, choice in spec.item_models.items():
        started = time.process_time()
        with unsaid(ItembankWarning):  # said once, at the end of the study
            calibrations[name] = fit_item_model(
                ResponseMatrix(train, models, items, train_trials), choice.spec(int(choice.n_dims))
            )
        seconds[name] = time.process_time() - started
    task, is_held_out = tasks.index[answered], partition.is_held_out[answered]
    known = Known(
        train,
        train_trials,
        tuple(items["item_id"].to_list()),
        task,
        tasks.names,
        is_held_out,
        np.nanmin(train, axis=0) == np.nanmax(train, axis=0),
        cost,
        calibrations,
    )
    asked = np.flatnonzero(is_held_out)
    asked = asked[np.argsort(task[asked], kind="stable")]
    held_out = HeldOut(asked, task[asked], tasks.n_tasks, (~np.isnan(values[:, asked])).astype(np.float64))
    of_train = HeldOut(asked, task[asked], tasks.n_tasks, (~np.isnan(train[:, asked])).astype(np.float64))
    train_means = of_train.means(train[:, asked])
    offsets = {
        name: mean_offsets(one, of_train, train_means)
        for name, one in calibrations.items()
        if one.parameters.family in WITH_PRECISION
    }
    ids = responses.model_ids
    return Prepared(
        known,
        TestModels(tuple(ids[row] for row in partition.test), values, new_trials, new_cost),
        held_out,
        train_means,
        held_out.means(values[:, asked]),
        offsets,
        partition.task_order,
        seconds,
    )


def part_of(calibration: Calibration, items: IntArray) -> Calibration:
    """Return the calibration with these items only."""
    return dataclasses.replace(
        calibration,
        parameters=calibration.parameters.take(items),
        item_covariance=calibration.item_covariance[items],
        is_degenerate=calibration.is_degenerate[items],
    )


def _of_models(responses: ResponseMatrix, models: IntArray, items: IntArray) -> tuple[FloatArray, IntArray | None]:
    cells = np.ix_(models, items)
    return responses.responses[cells], None if responses.n_trials is None else responses.n_trials[cells]


def _costs(
    spec: PredictionSpec, responses: ResponseMatrix, partition: Partition, items: IntArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the expected cost of each item over the training models, and the test models' of each response."""
    if not spec.cost:
        return None, None
    every = response_costs(responses, CostUnit(spec.cost, spec.input_weight))
    train, test = every[np.ix_(partition.train, items)], every[np.ix_(partition.test, items)]
    expected = mean_where_known(train)
    if np.isnan(expected).all():
        raise DataError(f"at least one training model's cost in {spec.cost!r} must be known, got none of any item.")
    expected = np.where(np.isnan(expected), np.nanmean(expected), expected)
    bad = items[expected <= 0.0]
    if bad.size and any(one.per_cost for one in spec.assessors):
        ids = responses.items["item_id"][bad].to_list()
        raise DataError(
            f"expected costs in {spec.cost!r} must be above zero for per_cost, got zero or less for {bad.size} of "
            f"{items.size} items: {shown(ids)}. Correct them, or leave per_cost out."
        )
    return expected, np.where(np.isnan(test), expected, test)


def _task_names(names: tuple[str, ...], task: IntArray) -> pl.Series:
    known = np.array([*names, NO_TASK], dtype=object)
    return pl.Series("scenario", known[task].tolist(), dtype=pl.String)


def _at(values: FloatArray, items: IntArray) -> FloatArray:
    """Columns (n,) of every row, or each row's own (n_rows, n)."""
    if items.ndim == 1:
        return values[:, items]
    result: FloatArray = np.take_along_axis(values, np.maximum(items, 0), axis=1)
    return np.where(items < 0, np.nan, result)


def task_means(
    values: FloatArray,  # (n_models, n_items): Anything where not observed
    observed: FloatArray,  # (n_models, n_items): 1.0 or 0.0
    task: IntArray,  # (n_items,): Rising
    n_tasks: int,
) -> FloatArray:
    """Mean of values (n_models, n_items) over the items of each task that were observed, (n_models, n_tasks).

    Returns (n_models, n_tasks): NaN where nothing was observed.
    """
    present, starts = np.unique(task, return_index=True)
    result = np.full((values.shape[0], n_tasks), np.nan)
    if not present.size:
        return result
    total = np.add.reduceat(np.where(observed > 0.0, values, 0.0), starts, axis=1)
    count = np.add.reduceat(observed, starts, axis=1)
    result[:, present] = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0.0)
    return result


def predict_item_model(
    calibration: Calibration,
    # (n,) or (n_test, n): Columns of the answered items: the same for all, or each model's own; -1 for none
    items: IntArray,
    answers: FloatArray,  # (n_test, n): NaN where the model has no answer; as the calibration's family takes them
    held_out: HeldOut,
    *,
    n_trials: FloatArray | None = None,  # (n_test, n): Trials behind each answer, one by default
) -> FloatArray:
    """Mean predicted response of each task at the posterior mode of ability (WILD eq. 9), (n_test, n_tasks)."""
    parameters, prior = calibration.parameters, calibration.prior
    if items.ndim == 1:
        scored = map_abilities(parameters.take(items), answers, prior, n_trials=n_trials)
    else:
        columns = np.unique(items[items >= 0])
        trials = None if n_trials is None else _in_columns(n_trials, items, columns)
        scored = map_abilities(parameters.take(columns), _in_columns(answers, items, columns), prior, n_trials=trials)
    return held_out.means(probability(parameters.take(held_out.items), scored.theta))


def mean_offsets(
    calibration: Calibration,
    held_out: HeldOut,  # As the training models answered
    means: FloatArray,  # (n_train, n_tasks): Theirs on the held-out items
) -> FloatArray:
    """How far the training models' means lie above those predicted at their own abilities, on average, (n_tasks,).

    The likelihood of a family with a precision looks at the logits of responses: where these crowd at an end, as a
    judge's preferences do, the mean of the fitted distribution is not theirs.
    """
    predicted = held_out.means(probability(calibration.parameters.take(held_out.items), calibration.abilities))
    return mean_where_known(means - predicted)


def _in_columns(values: FloatArray, items: IntArray, columns: IntArray) -> FloatArray:
    """Each model's values (n_test, n) of its own items in the columns (n_columns,) of all; NaN elsewhere."""
    wide = np.full((len(values), columns.size), np.nan)
    rows, places = np.nonzero(items >= 0)
    wide[rows, np.searchsorted(columns, items[rows, places])] = values[rows, places]
    return wide


def predict_task_mean(
    task_of_items: IntArray,  # (n,) or (n_test, n): Task of each answered item
    answers: FloatArray,  # (n_test, n): NaN where the model has no answer
    train_means: FloatArray,  # (n_train, n_tasks): On the held-out items
    *,
    strength: float = 0.0,  # Zero for the plain mean
) -> FloatArray:
    """Mean of the answers of each task, drawn to the training models' mean with `strength` (WILD eq. 15).

    ``(strength mu_t + sum_R y) / (strength + |R|)``; mu_t itself where nothing was answered.

    Returns (n_test, n_tasks).
    """
    n_test, n_tasks = answers.shape[0], train_means.shape[1]
    cell = np.arange(n_test)[:, None] * n_tasks + np.broadcast_to(task_of_items, answers.shape)
    is_there = ~np.isnan(answers)
    total = np.bincount(cell[is_there], weights=answers[is_there], minlength=n_test * n_tasks)
    count = np.bincount(cell[is_there], minlength=n_test * n_tasks)
    total, count = total.reshape(n_test, n_tasks), count.reshape(n_test, n_tasks).astype(np.float64)
    prior = np.broadcast_to(np.nanmean(train_means, axis=0), total.shape)
    known = strength + count
    result: FloatArray = np.divide(strength * prior + total, known, out=prior.copy(), where=known > 0.0)
    return result


def predict_ridge_tasks(
    items: IntArray,  # (n,) or (n_test, n): Columns of the answered items; -1 for none
    answers: FloatArray,  # (n_test, n)
    train_responses: FloatArray,  # (n_train, n_items)
    train_means: FloatArray,  # (n_train, n_tasks): On the held-out items
) -> FloatArray:
    """Ridge regression of each task's mean on the answered items, fitted on the training models (WILD 6.4).

    Where each test model has its own items, each has its own regression.

    Returns (n_test, n_tasks).
    """
    if items.ndim == 1:
        return predict_ridge(train_responses[:, items], train_means, answers)
    rows = [
        predict_ridge(train_responses[:, asked[asked >= 0]], train_means, answers[[row]][:, asked >= 0])
        for row, asked in enumerate(items)
    ]
    return np.concatenate(rows)
