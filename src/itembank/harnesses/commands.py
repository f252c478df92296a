"""Items run by a command, one process an item."""

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from itembank.checks import check_positive
from itembank.errors import ParameterError, remedy
from itembank.harnesses.programs import Ended, Programs
from itembank.harnesses.replies import ReadReply, exit_reply, json_reply, pattern_reply, reply
from itembank.harnesses.templates import CommandTemplate
from itembank.sessions.answers import Answer

MOST_OF_NAME: Final = 60
"""Characters of an item's id in the name of its log."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """How a command runs an item."""

    command: str  # With names of columns of the item table in braces, `{item_id}` first of all
    uses_shell: bool = False  # Whether a shell reads it
    # Take the number in this regular expression's last match on standard output; by default the last JSON there.
    pattern: str | None = None
    uses_exit_status: bool = False  # Take exit status 0 for right, 1 for wrong, and any other for a failure
    timeout: float = 600.0  # Seconds
    logs: Path | None = None  # Folder for what the programs print, one file an item

    def __post_init__(self) -> None:
        """Check the choices."""
        check_positive("timeout", self.timeout)
        if self.pattern is not None and self.uses_exit_status:
            raise ParameterError("the answer must be a pattern's or the exit status, got both. Leave one of them out.")


class CommandItems:
    """Runs items by a command; `drive` calls it with the id of each.

    Parameters
    ----------
    spec : CommandSpec
    items : DataFrame
        The bank's table of items.

    Raises
    ------
    ParameterError
        When the command names a column that is not there or a program that is not found, or the pattern is none.
    """

    def __init__(self, spec: CommandSpec, items: pl.DataFrame) -> None:
        self._spec = spec
        self._items = items
        self._rows = {item_id: row for row, item_id in enumerate(items["item_id"].to_list())}
        self._template = CommandTemplate(spec.command, tuple(items.columns), spec.uses_shell)
        self._read: ReadReply = exit_reply if spec.uses_exit_status else json_reply
        if spec.pattern is not None:
            self._read = pattern_reply(spec.pattern)
        self._programs = Programs()
        self._check_program()
        if spec.logs is not None:
            spec.logs.mkdir(parents=True, exist_ok=True)

    def __call__(self, item_id: str) -> Answer:
        """Run an item and return its answer; what goes wrong is a failure with a reason."""
        values = self._values(item_id)
        words = self._template.words(values)
        ended = self._programs.run(words, self._template.environment(values), self._spec.timeout)
        answer = reply(item_id, ended, self._read)
        if self._spec.logs is not None:
            _append(self._spec.logs / log_name(item_id), words, ended, answer)
        return answer

    def interrupt(self) -> None:
        """End the programs that run: ask them to, and kill them when it is called once more."""
        self._programs.interrupt()

    def _values(self, item_id: str) -> dict[str, str]:
        row = self._items.row(self._rows[item_id], named=True)
        return {name: "" if value is None else str(value) for name, value in row.items()}

    def _check_program(self) -> None:
        """Find the program before an item is asked for; one whose name depends on the item shows when it runs."""
        first, second = (self._template.words(dict.fromkeys(self._items.columns, text))[0] for text in ("a", "b"))
        if first == second and shutil.which(first) is None:
            raise ParameterError(
                f"the command must begin with a program that is there and may be run, got {first!r}. Check "
                f"the name, or take {remedy('uses_shell=True', '--shell')} for commands of a shell."
            )


def log_name(item_id: str) -> str:
    """Return the name of an item's log: what is harmless of its id, and a digest that tells all ids apart."""
    harmless = re.sub(r"[^A-Za-z0-9_-]+", "_", item_id)[:MOST_OF_NAME]
    return f"{harmless}.{hashlib.sha256(item_id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.log"


def _append(path: Path, words: Sequence[str], ended: Ended, answer: Answer) -> None:
    """Add a run of an item to its log; where it was asked again there are several."""
    outcome = f"failed: {answer.reason}" if answer.failed else "answered"
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(
            f"== {list(words)!r}\n== exit status {ended.status}, {outcome}\n"
            f"== standard output\n{ended.output}\n== standard error\n{ended.errors}\n"
        )
