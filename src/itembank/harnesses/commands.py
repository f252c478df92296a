"""Items run by a command, one process an item: the command with its places, the process, and what its answer is."""

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, TypeAlias

import polars as pl

from itembank.checks import check_positive
from itembank.errors import DataError, ParameterError, did_you_mean, quoted, remedy, shown
from itembank.harnesses.drive import reason
from itembank.readers.columns import response_of
from itembank.sessions.answers import answer_to
from itembank.sessions.events import Answer, Failed, Told, checked_costs

PLACE = re.compile(r"\{\{([A-Za-z_][\w.]*)\}\}|\{([A-Za-z_][\w.]*)\}")
"""`{name}`, which a value takes the place of, or `{{name}}`, which stands for itself in single braces."""
VARIABLE_PREFIX = "ITEMBANK_ITEM_"
SHELL = ("/bin/sh", "-c")
GRACE = 3.0
"""Seconds that programs which were asked to end have for it, before they are killed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks at a program that runs."""
MOST_OUTPUT: Final = 2**20
"""Bytes, of the end of what a program prints, that are looked at."""
RIGHT, WRONG = 0, 1
TRACEBACK: Final = "Traceback (most recent call last):"
READ_ALL: Final = ("eval", "ssh")
"""Programs that read all their arguments as commands of a shell."""
READ_SCRIPTS: Final = re.compile(r"(ba|da|z|k|a|fi|c|tc)?sh|su|python[\d.]*|perl|ruby|node|php")
"""Programs that read one argument as code, after `SCRIPT_OPTION`."""
SCRIPT_OPTION: Final = re.compile(r"-[A-Za-z]*[ceEr]|--(command|eval)")
MOST_OF_NAME: Final = 60
"""Characters of an item's id in the name of its log."""


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command in which `{name}` stands for what is known of an item.

    Values are never part of a line that a shell reads. Without a shell each argument is filled in by itself. With one,
    `{name}` becomes a reference to an environment variable, since a shell does not read again what it got from there.
    """

    text: str
    columns: tuple[str, ...]  # Names that may be in braces
    uses_shell: bool = False  # Whether a shell is to read the command, with its pipes, redirections and variables

    def __post_init__(self) -> None:
        unknown = [name for name in _names(self.text) if name not in self.columns]
        if unknown:
            raise ParameterError(
                f"names in braces in the command must be columns of the item table, {shown(self.columns, limit=99)}, "
                f"got {shown(unknown)}.{did_you_mean(unknown, self.columns)} Double the braces of what is none: "
                f"{{{{{unknown[0]}}}}}."
            )
        if not self.words(dict.fromkeys(self.columns, "")):
            raise ParameterError("the command must name a program, got an empty text.")
        reader, place = _read_again(self.text)
        if place:
            raise ParameterError(
                f"{place} must not be in what {reader} reads as code: an id may hold commands, which it would run. "
                f"Give it as an argument of its own, sh -c 'solve \"$1\"' - {place}, let the program read "
                f"${variable(place[1:-1])}, or send it on standard input."
            )

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Program and arguments for an item of which these values are known."""
        if self.uses_shell:
            return [*SHELL, _as_references(self.text)]
        return [
            PLACE.sub(lambda found: values[found[2]] if found[2] else f"{{{found[1]}}}", word)
            for word in _split(self.text)
        ]

    def environment(self, values: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of an item: its id and place in the benchmark, and what the command names."""
        wanted = {"item_id", "scenario", "subscenario", *_names(self.text)}
        return {variable(name): values[name] for name in values if name in wanted}


def variable(column: str) -> str:
    """Name of the environment variable that holds a column: `ITEMBANK_ITEM_ID`, `ITEMBANK_ITEM_SCENARIO`."""
    return VARIABLE_PREFIX + re.sub(r"\W", "_", column.removeprefix("item_")).upper()


def _read_again(text: str) -> tuple[str, str]:
    """Find a name in braces that a second program reads as code: that program, and the name; empty where none does.

    A shell reads a variable's value but once. What it gives to `sh -c`, `eval` or `ssh` as part of a script is read
    again.
    """
    words = shlex.shlex(text, posix=True, punctuation_chars="();&|\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    reader, is_code = "", False
    try:
        for word in words:
            name = word.rpartition("/")[2]
            if not word.strip("();&|\n"):  # the next command begins
                reader, is_code = "", False
            elif is_code and (names := _names(word)):
                return reader, f"{{{names[0]}}}"
            elif name in READ_ALL or READ_SCRIPTS.fullmatch(name):
                reader, is_code = name, name in READ_ALL
            elif reader not in READ_ALL:
                is_code = bool(reader and SCRIPT_OPTION.fullmatch(word))
    except ValueError:  # quotes that only a shell can match, as in a text for standard input
        pass
    return "", ""


def _names(text: str) -> list[str]:
    return [found[2] for found in PLACE.finditer(text) if found[2]]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ParameterError(f"the command must split into words: {error}, in {text!r}.") from error


def _as_references(text: str) -> str:
    """Put references to environment variables in place of names, as one word whatever they hold."""

    def reference(found: re.Match[str]) -> str:
        if not found[2]:
            return f"{{{found[1]}}}"
        quotes = _quotes_before(text[: found.start()])
        if quotes == "'":
            raise ParameterError(
                f"{found[0]} must not be in single quotes in a command for a shell, which replaces nothing there. "
                "Leave the quotes out: the value stays one word."
            )
        return f"${{{variable(found[2])}}}" if quotes else f'"${{{variable(found[2])}}}"'

    return PLACE.sub(reference, text)


def _quotes_before(text: str) -> str:
    """Return the kind of quotes that are open at the end of a text, nothing where none are."""
    open_quotes, is_escaped = "", False
    for letter in text:
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and open_quotes != "'":
            is_escaped = True
        elif letter == open_quotes:
            open_quotes = ""
        elif letter in "'\"" and not open_quotes:
            open_quotes = letter
    return open_quotes


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program left."""

    status: int  # Its exit status; the number of a signal that ended it, negative
    is_late: bool  # Whether it was ended because its time was up
    output: str  # The end of what it printed on standard output and on standard error
    errors: str


class Programs:
    """Runs programs, and ends those that run.

    What a program prints goes to files, so that no program that it started, and that goes on, keeps anybody waiting.
    """

    def __init__(self) -> None:
        self._is_ending = threading.Event()
        self._is_killing = threading.Event()

    def run(
        self,
        words: Sequence[str],  # The program and its arguments
        environment: Mapping[str, str],  # Added to that of this process
        timeout: float,
    ) -> Ended:
        """Run a program to its end, which comes after `timeout` seconds at the latest."""
        with TemporaryFile() as output, TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 (words, not a line for a shell)
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )
            is_late = False
            if not self._has_ended(process, timeout, self._is_ending):
                is_late = not self._is_ending.is_set()
                _signal_group(process, signal.SIGTERM)
                self._has_ended(process, GRACE, self._is_killing)
                _signal_group(process, signal.SIGKILL)
                process.wait()
            return Ended(process.returncode, is_late, _end_of(output), _end_of(errors))

    def interrupt(self) -> None:
        """Ask all programs to end; the second time, kill them."""
        if self._is_ending.is_set():
            self._is_killing.set()
        self._is_ending.set()

    def _has_ended(self, process: subprocess.Popen[bytes], seconds: float, unless: threading.Event) -> bool:
        """Wait until a program has ended, its seconds are over, or an event comes before that."""
        until, pause = time.monotonic() + seconds, FIRST_PAUSE
        while process.poll() is None:
            left = until - time.monotonic()
            if left <= 0.0 or unless.wait(min(pause, left)):
                return process.poll() is not None
            pause = min(2.0 * pause, LONGEST_PAUSE)
        return True


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(process.pid, number)


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_OUTPUT))
    return file.read().decode("utf-8", errors="replace")


ReadReply: TypeAlias = Callable[[str, Ended], Answer]
"""Makes the answer to an item of what a program left; raises `DataError` where there is none."""


def json_reply(item_id: str, ended: Ended) -> Answer:
    """Take the last JSON object or number that is on lines of its own, or a word for right or wrong at the end."""
    record: object = _last_json(ended.output)
    if record is None:
        record = response_of(_last_line(ended.output))
    if record is None:
        raise DataError(
            'standard output must hold JSON such as {"response": 1}, a number, or a word such as resolved, got '
            f"{quoted(_last_line(ended.output)) if ended.output.strip() else 'nothing'}."
        )
    return answer_to(item_id, record)


def exit_reply(item_id: str, ended: Ended) -> Answer:
    """Take exit status 0 for right and 1 for wrong; a Python program that broke down ends with 1, too, and failed."""
    if ended.status not in {RIGHT, WRONG} or (ended.status == WRONG and TRACEBACK in ended.errors):
        raise DataError(_how_it_ended(ended))
    return Told(item_id, 1.0 if ended.status == RIGHT else 0.0)


def pattern_reply(pattern: str) -> ReadReply:
    """Make a reader that takes the number in the last match of a regular expression on standard output.

    It is the group called `response`, else the first group, else the whole match.
    """
    try:
        expression = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ParameterError(f"the pattern must be a regular expression, got {pattern!r}: {error}.") from error
    group: str | int = "response" if "response" in expression.groupindex else min(1, expression.groups)

    def read(item_id: str, ended: Ended) -> Answer:
        found = None
        for found in expression.finditer(ended.output):  # noqa: B007 (the last one counts)
            pass
        if found is None:
            raise DataError(f"standard output must match {pattern!r}, got {quoted(_last_line(ended.output))}.")
        try:
            word = response_of(found[group] or "")
            return answer_to(item_id, float(found[group]) if word is None else word)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"what {pattern!r} finds must be a number in [0, 1] or a word for right or wrong, got {found[group]!r}."
            ) from error

    return read


def reply(item_id: str, ended: Ended, read: ReadReply) -> Answer:
    """Return the answer to an item, or a failure with what the program said last; costs that it told count."""
    try:
        if ended.is_late or ended.status < 0 or (ended.status and read is not exit_reply):
            raise DataError(_how_it_ended(ended))
        return read(item_id, ended)
    except DataError as error:
        said = _last_line(ended.errors)
        text = f"{error} {said}" if said else str(error)
        record, costs = _last_json(ended.output), {}
        with contextlib.suppress(DataError):
            costs = checked_costs(record.get("costs") if isinstance(record, Mapping) else None, "a failed attempt")
        return Failed(item_id, again=True, reason=reason(text), costs=costs)


def _how_it_ended(ended: Ended) -> str:
    if ended.is_late:
        return "Its time was up."
    if ended.status >= 0:
        return f"Exit status {ended.status}."
    try:
        name = signal.Signals(-ended.status).name
    except ValueError:
        name = str(-ended.status)
    return f"Ended by signal {name}."


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _last_json(text: str) -> Mapping[str, Any] | float | None:
    """Return the JSON object or number that a text is, or its last line that is one."""
    for part in (text, *reversed(text.splitlines())):
        try:
            record = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, Mapping) or (isinstance(record, int | float) and not isinstance(record, bool)):
            return record
    return None


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
        check_positive("timeout", self.timeout)
        if self.pattern is not None and self.uses_exit_status:
            raise ParameterError("the answer must be a pattern's or the exit status, got both. Leave one of them out.")


class CommandItems:
    """Runs items by a command; `drive` calls it with the id of each."""

    def __init__(
        self,
        spec: CommandSpec,
        items: pl.DataFrame,  # The bank's table of items
    ) -> None:
        self._spec = spec
        self._items = items
        self._rows = {item_id: row for row, item_id in enumerate(items["item_id"].to_list())}
        self._template = CommandTemplate(spec.command, tuple(items.columns), spec.uses_shell)
        self._read: ReadReply = exit_reply if spec.uses_exit_status else json_reply
        if spec.pattern is not None:
            self._read = pattern_reply(spec.pattern)
        self._programs = Programs()
        first, second = (self._template.words(dict.fromkeys(self._items.columns, text))[0] for text in ("a", "b"))
        if first == second and shutil.which(first) is None:
            raise ParameterError(
                f"the command must begin with a program that is there and may be run, got {first!r}. Check "
                f"the name, or take {remedy('uses_shell=True', '--shell')} for commands of a shell."
            )
        if spec.logs is not None:
            spec.logs.mkdir(parents=True, exist_ok=True)

    def __call__(self, item_id: str) -> Answer:
        """Run an item and return its answer; what goes wrong is a failure with a reason."""
        row = self._items.row(self._rows[item_id], named=True)
        values = {name: "" if value is None else str(value) for name, value in row.items()}
        words = self._template.words(values)
        ended = self._programs.run(words, self._template.environment(values), self._spec.timeout)
        answer = reply(item_id, ended, self._read)
        if self._spec.logs is not None:
            outcome = f"failed: {answer.reason}" if isinstance(answer, Failed) else "answered"
            log = self._spec.logs / file_name(item_id, ".log")
            with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(
                    f"== {list(words)!r}\n== exit status {ended.status}, {outcome}\n"
                    f"== standard output\n{ended.output}\n== standard error\n{ended.errors}\n"
                )
        return answer

    def interrupt(self) -> None:
        """End the programs that run: ask them to, and kill them when it is called once more."""
        self._programs.interrupt()


def file_name(text: str, ending: str) -> str:
    """Return the name of a file about something: what is harmless of its id, and a digest that tells all ids apart."""
    harmless = re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:MOST_OF_NAME]
    return f"{harmless}.{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}{ending}"
