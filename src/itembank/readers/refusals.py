"""What cannot be read: refused in one error that says what to add to the command, or left out with a line for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, did_you_mean, shown, warn
from itembank.readers.reading_specs import ReadingSpec, how_to_add
from itembank.readers.rows import ResponseRows
from itembank.responses.labels import names_of
from itembank.responses.responses import DEFAULT_SCENARIO
from itembank.tables import plural


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What may be added to a command so that results which were refused can be read."""

    # Metrics and filters to choose, and tasks to leave out. Together they mend what is wrong with tasks; all empty if
    # no such choice does.
    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    can_skip: bool = False  # Whether something is left where what cannot be read is left out
    typed: tuple[str, ...] = ()  # Metrics and filters as the command line takes both: task=metric,filter
    has_others: bool = False  # Whether something is wrong that no choice mends

    @property
    def has_choices(self) -> bool:
        """Whether there are metrics, filters or tasks to name."""
        return bool(self.metrics or self.filters or self.excluded)

    def lines(self, spec: ReadingSpec) -> list[str]:
        """Say it in whole lines that can be pasted."""
        lines = []
        if self.has_choices:
            choices = {"metric": self.metrics, "filter_name": self.filters, "exclude_tasks": self.excluded}
            typed = {"metric": self.typed, "filter_name": ()} if self.filters else {}
            how = how_to_add(spec, typed, **choices)
            what = "choose" if self.has_others else "read the rest" if self.excluded else "read them"
            lines.append(f"To {what}, add: {how}")
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
    return [*problems[:N_SHOWN], *([f"and {plural(more, 'more problem')}."] if more > 0 else [])]


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
        warn(f"{plural(len(problems) - most, 'more problem', 'leave')} out what cannot be read.", DataWarning)


def problems_of(errors: Sequence[Exception]) -> list[str]:
    """Say what is wrong, problem by problem and without advice."""
    return [one for error in errors for one in (error.problems if isinstance(error, RefusedError) else [str(error)])]


def combined(errors: Sequence[Exception], spec: ReadingSpec, *, has_rest: bool) -> RefusedError:
    """Make one error of those of several readers, with the advice of all of them together."""
    ways = [error.ways_out if isinstance(error, RefusedError) else WaysOut() for error in errors]
    lists = ("metrics", "filters", "excluded", "typed")
    together = WaysOut(
        **{name: tuple(dict.fromkeys(own for one in ways for own in getattr(one, name))) for name in lists},
        can_skip=has_rest or any(one.can_skip for one in ways),
        has_others=any(one.has_others or not one.has_choices for one in ways),
    )
    return RefusedError(problems_of(errors), together, spec)


def only_wanted(rows: ResponseRows, spec: ReadingSpec) -> ResponseRows:
    """Return the rows of the scenarios that were asked for as tasks, of results that know no tasks."""
    if not (spec.tasks or spec.exclude_tasks):
        return rows
    default = pl.lit(spec.scenario or DEFAULT_SCENARIO)
    scenario = pl.coalesce("scenario", default) if "scenario" in rows.items.columns else default
    items = rows.items.select("item_id", scenario.alias("scenario"))
    is_kept = {name: is_wanted(name, spec) for name in names_of(items["scenario"])}
    if not any(is_kept.values()):
        raise NoTaskLeftError(f"{rows.source}: {no_task_left(sorted(is_kept), spec)}")
    kept = items.filter(pl.col("scenario").is_in([name for name, is_one in is_kept.items() if is_one]))["item_id"]
    return rows.take(rows.frame["item_id"].cast(pl.String).is_in(kept.implode()).arg_true().to_numpy())


def is_wanted(task: str, spec: ReadingSpec) -> bool:
    """Whether a task is among those to be read."""
    is_named = not spec.tasks or any(fnmatchcase(task, pattern) for pattern in spec.tasks)
    return is_named and not any(fnmatchcase(task, pattern) for pattern in spec.exclude_tasks)


def no_task_left(tasks: Sequence[str], spec: ReadingSpec) -> str:
    """Say that none of the tasks that there are is one that was asked for."""
    if not spec.exclude_tasks:
        near = did_you_mean(spec.tasks, tasks)
        return f"no task matches {shown(spec.tasks)}; there are {shown(tasks, 20)}.{near}"
    named = f" that match {shown(spec.tasks)}" if spec.tasks else ""
    return (
        f"no task is left of those{named} when {shown(spec.exclude_tasks)} are left out; there are {shown(tasks, 20)}."
    )
