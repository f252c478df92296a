"""Which tasks of a harness's logs are read, of how many models they may be, and what these are called."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import NoTaskLeftError
from itembank.readers.rows import ResponseRows
from itembank.responses.responses import DEFAULT_SCENARIO
from itembank.responses.secrets import arguments_text, without_homes


class OfTask(Protocol):
    """A log of one model on one task; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def model_name(self) -> str:
        """What the log calls the model; empty where it does not tell."""

    @property
    def model_id(self) -> str:
        """What the model is called from now on."""


Log = TypeVar("Log", bound=OfTask)


def wanted(logs: Sequence[Log], spec: ReadingSpec) -> list[Log]:
    """Return the logs of the tasks that were asked for; ids of models are without secrets and home folders.

    Raises
    ------
    DataError
        When none of them is left, one model id was given for several models, or several have one id without home
        folders.
    """
    kept = [one for one in logs if is_wanted(one.task, spec)]
    if logs and not kept:
        raise NoTaskLeftError(_no_task_left(sorted({one.task for one in logs}), spec))
    names = sorted({one.model_name for one in kept if one.model_name})
    if spec.model_id is not None and len(names) > 1:
        raise DataError(f"model_id={spec.model_id!r} was given for logs of {len(names)} models: {shown(names)}.")
    return kept if spec.model_id is not None else _with_clean_ids(kept)


def _with_clean_ids(logs: Sequence[Log]) -> list[Log]:
    """Take secrets and home folders out of the ids of models, which are published with a bank."""
    told = {one.model_id: arguments_text(one.model_id) for one in logs}
    owners: dict[str, set[str]] = {}
    for text in told.values():
        owners.setdefault(without_homes(text), set()).add(text)
    alike = [name for name, texts in owners.items() if len(texts) > 1]
    if alike:
        by_name = remedy("model_id='...'", "--model-id NAME")
        raise DataError(
            f"models must have ids that differ without home folders (~), got {shown(alike)} for several. Read each "
            f"model's logs by themselves, and say its name ({by_name})."
        )
    return [replace(one, model_id=without_homes(told[one.model_id])) for one in logs]


def only_wanted(rows: ResponseRows, spec: ReadingSpec) -> ResponseRows:
    """Return the rows of the scenarios that were asked for as tasks, of results that know no tasks.

    Raises
    ------
    NoTaskLeftError
        When none of them is left.
    """
    if not (spec.tasks or spec.exclude_tasks):
        return rows
    known = rows.item_table.select("item_id", "scenario") if "scenario" in rows.item_table.columns else None
    names = [spec.scenario or DEFAULT_SCENARIO] * rows.items.n_names
    if known is not None:
        of_item = dict(known.drop_nulls().iter_rows())
        names = [of_item.get(item, names[0]) for item in rows.items.names.to_list()]
    is_kept = {name: is_wanted(name, spec) for name in dict.fromkeys(names)}
    if not any(is_kept.values()):
        raise NoTaskLeftError(f"{rows.source}: {_no_task_left(sorted(is_kept), spec)}")
    return rows.take(np.flatnonzero(np.array([is_kept[name] for name in names])[rows.items.index]))


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
