"""Which tasks of a harness's logs are read, and of how many models they may be."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from itembank.data.readers.specs import ReadingSpec
from itembank.errors import DataError, did_you_mean, shown


class OfTask(Protocol):
    """A log of one model on one task."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def model_name(self) -> str:
        """What the log calls the model; empty where it does not tell."""


Log = TypeVar("Log", bound=OfTask)


def wanted(logs: Sequence[Log], spec: ReadingSpec) -> list[Log]:
    """Return the logs of the tasks that were asked for.

    Raises
    ------
    DataError
        When none of them is left, or one model id was given for several models.
    """
    kept = [one for one in logs if is_wanted(one.task, spec)]
    if logs and not kept:
        raise DataError(_no_task_left(sorted({one.task for one in logs}), spec))
    names = sorted({one.model_name for one in kept if one.model_name})
    if spec.model_id is not None and len(names) > 1:
        raise DataError(f"model_id={spec.model_id!r} was given for logs of {len(names)} models: {shown(names)}.")
    return kept


def is_wanted(task: str, spec: ReadingSpec) -> bool:
    """Whether a task is among those to be read."""
    is_named = not spec.tasks or any(fnmatchcase(task, pattern) for pattern in spec.tasks)
    return is_named and not any(fnmatchcase(task, pattern) for pattern in spec.exclude_tasks)


def _no_task_left(tasks: Sequence[str], spec: ReadingSpec) -> str:
    """Say that no task is left of those that there are."""
    if not spec.exclude_tasks:
        near = did_you_mean(spec.tasks, tasks)
        return f"no task matches {shown(spec.tasks)}; there are {shown(tasks, 20)}.{near}"
    named = f" that match {shown(spec.tasks)}" if spec.tasks else ""
    return (
        f"no task is left of those{named} when {shown(spec.exclude_tasks)} are left out; there are {shown(tasks, 20)}."
    )
