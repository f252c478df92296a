"""What cannot be read: refused in one error that says what to add to the command, or left out with a line for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol, TypeVar

import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, did_you_mean, shown, warn
from itembank.readers.reading_specs import ReadingSpec, how_to_add, how_to_name_model
from itembank.readers.rows import ResponseRows
from itembank.responses.labels import names_of
from itembank.responses.responses import DEFAULT_SCENARIO
from itembank.responses.secrets import arguments_text, without_homes


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What may be added to a command so that results which were refused can be read."""

    # Metrics and filters to choose, and tasks to leave out. Together they mend all that is wrong; all empty where no
    # such choice does.
    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    can_skip: bool = False  # Whether something is left where what cannot be read is left out

    @property
    def is_mended_by_choices(self) -> bool:
        """Whether metrics, filters and tasks to leave out are enough."""
        return bool(self.metrics or self.filters or self.excluded)

    def lines(self, spec: ReadingSpec) -> list[str]:
        """Say it in whole lines that can be pasted."""
        lines = []
        if self.is_mended_by_choices:
            how = how_to_add(spec, metric=self.metrics, filter_name=self.filters, exclude_tasks=self.excluded)
            lines.append(f"To read {'the rest' if self.excluded else 'them'}, add: {how}")
        if self.can_skip and not spec.skip_unusable:
            lines.append(f"To leave out what cannot be read, add: {how_to_add(spec, skip_unusable=True)}")
        return lines


class RefusedError(DataError):
    """Results that cannot be read as they are; `problems` and `ways_out` say it piece by piece."""

    def __init__(self, problems: Sequence[str], ways_out: WaysOut, spec: ReadingSpec) -> None:
        self.problems, self.ways_out = tuple(problems), ways_out
        super().__init__("\n".join([*shortened(problems), *ways_out.lines(spec)]))


class NoTaskLeftError(DataError):
    """No task of some results is among those that were asked for."""


def shortened(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and how many more there are."""
    more = len(problems) - N_SHOWN
    return [*problems[:N_SHOWN], *([f"and {more} more problem{'s' * (more > 1)}."] if more > 0 else [])]


def refuse(problems: Sequence[str]) -> None:
    """Raise `DataError` with the first problems, when there are any."""
    if problems:
        raise DataError("\n".join(shortened(problems)))


def refuse_or_leave_out(problems: Sequence[str], spec: ReadingSpec, *, has_rest: bool) -> None:
    """Leave out what cannot be read where `spec` asks for that and something else was read; refuse it otherwise."""
    if not problems:
        return
    if not (spec.skip_unusable and has_rest):
        raise RefusedError(problems, WaysOut(can_skip=has_rest), spec)
    say_left_out(problems)


def say_left_out(problems: Sequence[str]) -> None:
    """Give one warning for each file, task or run that is left out because it cannot be read; after many, count."""
    most = 50
    for problem in problems[:most]:
        warn(f"left out: {' '.join(problem.splitlines())}", DataWarning)
    if len(problems) > most:
        warn(f"{len(problems) - most} more files or tasks are left out that cannot be read.", DataWarning)


def problems_of(errors: Sequence[Exception]) -> list[str]:
    """Say what is wrong, problem by problem and without advice."""
    return [one for error in errors for one in (error.problems if isinstance(error, RefusedError) else [str(error)])]


def combined(errors: Sequence[Exception], spec: ReadingSpec, *, has_rest: bool) -> RefusedError:
    """Make one error of those of several readers, whose advice holds for all of them together."""
    ways = [error.ways_out if isinstance(error, RefusedError) else WaysOut() for error in errors]
    together = WaysOut(can_skip=has_rest or any(one.can_skip for one in ways))
    if all(one.is_mended_by_choices for one in ways):
        together = WaysOut(
            tuple(dict.fromkeys(name for one in ways for name in one.metrics)),
            tuple(dict.fromkeys(name for one in ways for name in one.filters)),
            tuple(dict.fromkeys(name for one in ways for name in one.excluded)),
            together.can_skip,
        )
    return RefusedError(problems_of(errors), together, spec)


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
    """Return the logs of the tasks that were asked for; ids of models are without secrets and home folders."""
    kept = [one for one in logs if is_wanted(one.task, spec)]
    if logs and not kept:
        raise NoTaskLeftError(_no_task_left(sorted({one.task for one in logs}), spec))
    names = sorted({one.model_name for one in kept if one.model_name})
    if spec.model_id is not None and len(names) > 1:
        raise DataError(f"model_id={spec.model_id!r} was given for logs of {len(names)} models: {shown(names)}.")
    if spec.model_id is not None:
        return kept
    # secrets and home folders are taken out of the ids of models, which are published with a bank
    told = {one.model_id: arguments_text(one.model_id) for one in kept}
    owners: dict[str, set[str]] = {}
    for text in told.values():
        owners.setdefault(without_homes(text), set()).add(text)
    alike = [name for name, texts in owners.items() if len(texts) > 1]
    if alike:
        raise DataError(
            f"models must have ids that differ without home folders (~), got {shown(alike)} for several. Read each "
            f"model's logs by themselves, and say its name ({how_to_name_model()})."
        )
    return [replace(one, model_id=without_homes(told[one.model_id])) for one in kept]


def only_wanted(rows: ResponseRows, spec: ReadingSpec) -> ResponseRows:
    """Return the rows of the scenarios that were asked for as tasks, of results that know no tasks."""
    if not (spec.tasks or spec.exclude_tasks):
        return rows
    default = pl.lit(spec.scenario or DEFAULT_SCENARIO)
    scenario = pl.coalesce("scenario", default) if "scenario" in rows.items.columns else default
    items = rows.items.select("item_id", scenario.alias("scenario"))
    is_kept = {name: is_wanted(name, spec) for name in names_of(items["scenario"])}
    if not any(is_kept.values()):
        raise NoTaskLeftError(f"{rows.source}: {_no_task_left(sorted(is_kept), spec)}")
    kept = items.filter(pl.col("scenario").is_in([name for name, is_one in is_kept.items() if is_one]))["item_id"]
    return rows.take(rows.frame["item_id"].cast(pl.String).is_in(kept.implode()).arg_true().to_numpy())


def is_wanted(task: str, spec: ReadingSpec) -> bool:
    """Whether a task is among those to be read."""
    is_named = not spec.tasks or any(fnmatchcase(task, pattern) for pattern in spec.tasks)
    return is_named and not any(fnmatchcase(task, pattern) for pattern in spec.exclude_tasks)


def _no_task_left(tasks: Sequence[str], spec: ReadingSpec) -> str:
    if not spec.exclude_tasks:
        near = did_you_mean(spec.tasks, tasks)
        return f"no task matches {shown(spec.tasks)}; there are {shown(tasks, 20)}.{near}"
    named = f" that match {shown(spec.tasks)}" if spec.tasks else ""
    return (
        f"no task is left of those{named} when {shown(spec.exclude_tasks)} are left out; there are {shown(tasks, 20)}."
    )
