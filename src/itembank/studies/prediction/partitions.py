"""Which models are tested, which tasks are shown, and which items are only ever predicted (WILD 6.1)."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.calibration.calibrate import MINIMUM_MODELS
from itembank.errors import DataError, shown
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.numerics.splits import Split, first_of_each, first_tested
from itembank.responses.responses import ResponseMatrix, column_of
from itembank.studies.prediction.prediction_spec import PredictionSpec
from itembank.studies.streams import stream

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
    """One random division of models and items.

    Attributes
    ----------
    train, test
        As in `Split`: rows of the responses.
    number : int
    is_held_out : (n_items,)
    task_order : (n_tasks,)
        The first T of them are the interpolation tasks where there are T.
    """

    number: int
    is_held_out: BoolArray
    task_order: IntArray


def find_tasks(spec: PredictionSpec, responses: ResponseMatrix) -> Tasks:
    """Return the tasks of the items, and how many items of each are held out.

    Raises
    ------
    DataError
        When the column is not there, or fewer than two tasks are large enough.
    """
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


def make_partition(spec: PredictionSpec, responses: ResponseMatrix, tasks: Tasks, number: int) -> Partition:
    """Draw a partition: the same for the same seed and number, whatever else is in the study.

    Raises
    ------
    DataError
        When there are too few models for both sides.
    """
    n_models = responses.n_models
    n_train = n_models - spec.n_test if spec.n_train is None else spec.n_train
    if n_train < MINIMUM_MODELS or n_train + spec.n_test > n_models:
        raise DataError(
            f"a partition of {spec.n_test} test models must leave at least {max(MINIMUM_MODELS, n_train)} to train on, "
            f"got {n_models} models in all. Lower n_test or n_train."
        )
    order = stream(spec.seed, "models", number).permutation(n_models)
    models = first_tested(order, spec.n_test, n_train)
    return Partition(
        models.train,
        models.test,
        number,
        _held_out(tasks, stream(spec.seed, "held-out", number)),
        stream(spec.seed, "tasks", number).permutation(tasks.n_tasks),
    )


def _held_out(tasks: Tasks, rng: np.random.Generator) -> BoolArray:
    """Draw the held-out items of every task."""
    order = np.argsort(rng.random(tasks.index.size), kind="stable")
    is_held_out = np.zeros(tasks.index.size, dtype=bool)
    is_held_out[first_of_each(order[tasks.index[order] >= 0], tasks.index, tasks.n_held_out)] = True
    return is_held_out
