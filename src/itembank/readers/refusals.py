"""What cannot be read: refused in one error that says what to add to the command, or left out with a line for each."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from itembank.errors import N_SHOWN, DataError, DataWarning, remedy, warn
from itembank.readers.reading_specs import ReadingSpec

MOST_LINES = 50
"""Of what is left out; the rest is counted."""


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
            changed = replace(
                spec,
                metric=(*spec.metric, *self.metrics),
                filter_name=(*spec.filter_name, *self.filters),
                exclude_tasks=(*spec.exclude_tasks, *self.excluded),
            )
            options = {"--metric": self.metrics, "--filter": self.filters, "--exclude-task": self.excluded}
            words = " ".join(f"{name} {shlex.quote(value)}" for name, values in options.items() for value in values)
            lines.append(f"To read {'the rest' if self.excluded else 'them'}, add: {_in_words(changed, words)}")
        if self.can_skip and not spec.skip_unusable:
            skipping = _in_words(replace(spec, skip_unusable=True), "--skip-unusable")
            lines.append(f"To leave out what cannot be read, add: {skipping}")
        return lines


def _in_words(spec: ReadingSpec, options: str) -> str:
    """Options of the command line; in Python the whole spec, which takes the place of other arguments."""
    default = ReadingSpec()
    given = [(one.name, getattr(spec, one.name)) for one in fields(spec)]
    changed = ", ".join(f"{name}={value!r}" for name, value in given if value != getattr(default, name))
    return remedy(f"spec=ReadingSpec({changed})", options)


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
    return [*problems[:N_SHOWN], *([f"and {more} more problems."] if more > 0 else [])]


def refuse(problems: Sequence[str]) -> None:
    """Raise `DataError` with the first problems, when there are any."""
    if problems:
        raise DataError("\n".join(shortened(problems)))


def refuse_or_leave_out(problems: Sequence[str], spec: ReadingSpec, *, has_rest: bool) -> None:
    """Leave out what cannot be read where `spec` asks for that and something else was read; refuse it otherwise.

    Raises
    ------
    RefusedError
        With the first problems, and what to add.
    """
    if not problems:
        return
    if not (spec.skip_unusable and has_rest):
        raise RefusedError(problems, WaysOut(can_skip=has_rest), spec)
    say_left_out(problems)


def say_left_out(problems: Sequence[str]) -> None:
    """Give one warning for each file, task or run that is left out because it cannot be read."""
    for problem in problems[:MOST_LINES]:
        warn(f"left out: {' '.join(problem.splitlines())}", DataWarning)
    if len(problems) > MOST_LINES:
        warn(f"{len(problems) - MOST_LINES} more files or tasks are left out that cannot be read.", DataWarning)


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
