"""Calls of the command line in this process, and everything that they produce."""

import contextlib
import csv
import hashlib
import io
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass

import pytest

from itembank.cli.main import main

OUTPUT = "out"  # Folder of the made-up world that calls write into; it is empty before each

ECHOES = {"level", "method", "methods", "interval", "interval_kind", "selector", "seed", "target_flops"}
"""Columns of CSV output that only repeat what was asked for: that is no effect."""


CLOCK = re.compile(rb'"(time|check)":"[^"]*"')
"""Of a line of a journal, when it was written, and its checksum, which is of that too."""


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard error, and the result: standard output, files, and what later commands say."""

    code: object
    err: str
    result: tuple


def carry_out(words, mode, world):
    """Call the command line in the made-up world as a mode says, and look at everything that is left behind."""
    output = world / OUTPUT
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    for name in mode.brings:
        place = world / name
        (shutil.copytree if place.is_dir() else shutil.copy)(place, output / name)
    with _inside(world):
        code, out, err = run(words, mode.stdin)
        result = (_without_echoes(out), *_files(output, mode.unseen))
        if code in mode.codes:
            result += tuple(run(*one)[:2] for one in mode.then)
    return Outcome(code, err, (*result, err) if mode.hears else result)


def run(words, stdin=""):
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["itembank", *shlex.split(words)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except Exception as error:  # noqa: BLE001 (what --debug lets through)
            code = f"traceback of {type(error).__name__}"
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


KEPT = {"ITEMBANK_CACHE", "ITEMBANK_BANKS"}


@contextlib.contextmanager
def _inside(world):
    """Work in a folder, free of settings of the environment, but for the folders of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        for name in [one for one in os.environ if one.startswith("ITEMBANK_") and one not in KEPT]:
            patch.delenv(name)
        yield


def _files(folder, unseen):
    """Name and content of every file, in order; of those that repeat what was asked for the name alone."""
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        content = b"" if path.name in unseen else path.read_bytes()
        if path.suffix == ".jsonl":
            content = CLOCK.sub(b"", content)
        yield str(path.relative_to(folder)), hashlib.sha256(content).hexdigest()


def _without_echoes(out):
    """Standard output; of CSV without the columns that repeat what was asked for."""
    rows = list(csv.reader(io.StringIO(out)))
    if len(rows) < 2 or len(rows[0]) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        return out
    kept = [j for j, name in enumerate(rows[0]) if name not in ECHOES]
    return "\n".join(",".join(row[j] for j in kept) for row in rows)
