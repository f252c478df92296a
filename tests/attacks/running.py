"""Runs the real command line in this process, or in a fork of it, with the three standard streams caught as they are.

Streams are caught where the system writes them, so that a library that prints to the terminal itself is heard too.
"""

import importlib
import io
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from unittest import mock

import itembank
from itembank.cli.main import main
from itembank.files.atomic import VARIABLE

CACHE = "cache"
"""Folder for what is kept for the user, in the folder of a command."""
HUNG = 124
"""Exit code of a command that did not end in its time, as `timeout` has it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left on its streams; `escaped` is the traceback of what `main` let through."""

    code: int
    out: str
    err: str
    escaped: str = ""


def import_everything() -> None:
    """Import all that any command needs, so that forks need not; Polars is imported and not used."""
    for module in pkgutil.walk_packages(itembank.__path__, "itembank."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # parts that a harness imports, where there is none
                importlib.import_module(module.name)
    for name in ("vl_convert", "rich.table"):
        importlib.import_module(name)


class HungError(BaseException):
    """No Exception: nothing that catches those may stop it."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise HungError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _redirected(files: Sequence[IO[bytes]]) -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept, streams = [os.dup(number) for number in range(3)], (sys.stdin, sys.stdout, sys.stderr)
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, mode, closefd=False), encoding="utf-8", errors=errors)
        for number, (mode, errors) in enumerate((("r", "strict"), ("w", "strict"), ("w", "backslashreplace")))
    )
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, handle in enumerate(kept):
            os.dup2(handle, number)
            os.close(handle)


@contextmanager
def _at(folder: Path) -> Iterator[None]:
    """Work in a folder, and keep there what would be kept for the user: no earlier run must be found."""
    with mock.patch.dict(os.environ, {VARIABLE: CACHE}), chdir(folder):
        yield


def run_here(
    words: Sequence[object], *, folder: Path | None = None, stdin: bytes = b"", seconds: float = 60.0
) -> Outcome:
    """Run `itembank` with these words in this process, in a folder."""

    def command() -> None:
        sys.argv = ["itembank", *map(str, words)]
        with _at(folder) if folder else nullcontext():
            main()

    return call_here(command, stdin=stdin, seconds=seconds)


def run_well(words: Sequence[object], folder: Path | None = None, *, seconds: float = 60.0) -> Outcome:
    outcome = run_here(words, folder=folder, seconds=seconds)
    if outcome.code:
        raise RuntimeError(f"{words}: {outcome.err}{outcome.escaped}")
    return outcome


def run_to_files(words: Sequence[object], folder: Path) -> None:
    """Run `itembank` in a folder, its streams in the files `out` and `err` there, to be read after its death."""
    sys.argv = ["itembank", *map(str, words)]
    with (
        Path(os.devnull).open("rb") as given,
        (folder / "out").open("wb") as out,
        (folder / "err").open("wb") as err,
        _redirected((given, out, err)),
        _at(folder),
    ):
        main()


def call_here(command: Callable[[], object], *, stdin: bytes = b"", seconds: float = 60.0) -> Outcome:
    arguments, code, escaped = sys.argv, 0, ""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        try:
            with _redirected((given, out, err)), alarm(seconds):
                command()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except HungError:
            code, escaped = HUNG, traceback.format_exc(limit=-3)
        except Exception:  # noqa: BLE001 (whatever escapes is what is looked for)
            code, escaped = 1, traceback.format_exc()
        finally:
            sys.argv = arguments
        for file in (out, err):
            file.seek(0)
        texts = [file.read().decode("utf-8", errors="backslashreplace") for file in (out, err)]
    return Outcome(code, *texts, escaped)


def fork(work: Callable[[], None]) -> int:
    """Start a process that does this work and ends; return its id.

    The caller must have imported whatever the work needs, and must not have used Polars: its threads do not survive
    in a fork.
    """
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.setsid()
        work()
        code = 0
    except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
