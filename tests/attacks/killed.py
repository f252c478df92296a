"""Attack: commands that write, killed at any moment. What is there afterwards must be whole, or not there.

A command is run once undisturbed. Then it is killed again and again, each time in a folder of its own: what it was to
write must be absent, as it was before, or to the letter what the undisturbed run wrote; and once the command is given
again, all must be as if it had not been killed, with nothing left behind that is not named.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.attacks.dying import before_step, ended, within_write
from tests.attacks.judging import contents
from tests.attacks.running import fork, run_here

PATIENCE = 900.0
"""Seconds for what is not killed, on a machine with much else to do."""
WAYS = ("at a moment", "before a step", "within a write")


@dataclass(frozen=True, slots=True)
class Job:
    """A command that writes.

    Attributes
    ----------
    words : tuple of str
    beside : tuple of str
        What it needs of the workplace.
    writes : tuple of str
        Files and folders that it makes or replaces.
    again : tuple of str, optional
        What is given after a kill, where that is another command.
    read : function
        What must be the same of a file or folder that was written, by its path.
    goes_on : bool
        It keeps a part of its work, which the same command goes on with.
    """

    words: tuple[str, ...]
    beside: tuple[str, ...]
    writes: tuple[str, ...]
    again: tuple[str, ...] = ()
    read: Callable[[Path], object] | None = None
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """What was there before and after an undisturbed run, what it printed, and what it took."""

    before: dict[str, object]
    after: dict[str, object]
    out: str
    seconds: float
    n_steps: int
    n_bytes: int


def bytes_of(path: Path) -> object:
    """Digests of a file or of all files of a folder but its cache, which can be made again."""
    if path.is_dir():
        return {name: one for name, one in contents(path).items() if not name.startswith("cache/")}
    return contents(path.parent).get(path.name)


def without_time(path: Path) -> object:
    """Header of a new journal less the time."""
    header = json.loads(path.read_bytes().splitlines()[0])
    return {name: value for name, value in header.items() if name not in {"time", "check"}}


def numbers_of_study(folder: Path) -> object:
    """Every number of a finished study less the seconds; None while it is not finished."""
    names = ("estimates.parquet", "summary.parquet", "curves.parquet", "costs.parquet", "tasks.parquet")
    tables = {name: pl.read_parquet(folder / name) for name in names if (folder / name).is_file()}
    return {
        name: table.select(one for one in table.columns if not one.startswith("seconds")).write_json()
        for name, table in tables.items()
    }


def dateless(folder: Path) -> object:
    """Files of a bank less the times of its changes."""
    if not (folder / "bank.json").is_file():
        return None
    record = json.loads((folder / "bank.json").read_text(encoding="utf-8"))
    for change in record.get("history", {}).get("changes", ()):
        change.pop("at")
    record.get("history", {}).pop("created", None)
    record.pop("record_sha256")
    return {**{name: one for name, one in contents(folder).items() if name != "bank.json"}, "record": record}


RETIRE = ("bank", "retire", "bank", "math/0", "--reason", "wrong key")
CALIBRATE = ("calibrate", "responses.parquet", "-o", "new", "--item-model", "2pl", "--no-folds")
ESTIMATE = ("estimate", "bank", "new.csv", "--selection", "selection.json", "--method", "p-irt", "--format", "csv")
PLOT = ("study", "plot", "study", "--kind", "error", "--figure", "error.png")
JOBS = {
    "import": Job(("import", "table", "long.csv", "-o", "out.parquet"), ("long.csv",), ("out.parquet",)),
    "import over another": Job(
        ("import", "table", "long.csv", "-o", "responses.parquet"),
        ("long.csv", "responses.parquet"),
        ("responses.parquet",),
    ),
    "import with choice scores": Job(
        (
            "import",
            "lm-eval",
            "logs",
            "--task",
            "capitals",
            "--response",
            "probability",
            "--choice-scores",
            "s.csv",
            "-o",
            "out.parquet",
        ),
        ("logs",),
        ("out.parquet", "s.csv"),
    ),
    "calibrate": Job(CALIBRATE, ("responses.parquet",), ("new",), again=(*CALIBRATE, "--force")),
    "calibrate --force": Job(
        ("calibrate", "responses.parquet", "-o", "bank", "--item-model", "1pl", "--no-folds", "--force"),
        ("responses.parquet", "bank"),
        ("bank",),
    ),
    "select": Job(
        ("select", "bank", "-n", "6", "--method", "anchor-irt", "-o", "selection.json"),
        ("bank", "selection.json"),
        ("selection.json",),
    ),
    "estimate": Job(ESTIMATE, ("bank", "new.csv", "selection.json"), ("bank",)),
    "session start": Job(
        (
            "session",
            "start",
            "bank",
            "-o",
            "new.jsonl",
            "--model-id",
            "m",
            "--max-items",
            "9",
            "--interval",
            "model-based",
        ),
        ("bank",),
        ("new.jsonl",),
        again=("session", "ask", "new.jsonl"),
        read=without_time,
    ),
    "session export": Job(
        ("session", "export", "run.jsonl", "-o", "told.parquet"), ("bank", "run.jsonl"), ("told.parquet",)
    ),
    "study run": Job(
        ("study", "run", "study.toml", "-o", "study", "--jobs", "1"),
        ("study.toml", "study-data.parquet"),
        ("study",),
        read=numbers_of_study,
        goes_on=True,
    ),
    "study predict": Job(
        ("study", "predict", "prediction.toml", "-o", "prediction", "--jobs", "1"),
        ("prediction.toml", "prediction-data.parquet"),
        ("prediction",),
        read=numbers_of_study,
        goes_on=True,
    ),
    "study plot": Job(PLOT, ("study",), ("error.png",), again=(*PLOT, "--force")),
    "scaling": Job(
        (
            "scaling",
            "pretrain",
            "suite.parquet",
            "--models",
            "compute.csv",
            "--law",
            "sigmoid",
            "--checked",
            "0",
            "--figure",
            "scores.png",
        ),
        ("suite.parquet", "compute.csv"),
        ("scores.png",),
    ),
    "simulate": Job(
        (
            "simulate",
            "-o",
            "made.parquet",
            "--models",
            "6",
            "--items",
            "12",
            "--tasks",
            "2",
            "--dims",
            "1",
            "--seed",
            "7",
        ),
        (),
        ("made.parquet", "made.truth.safetensors"),
    ),
    "replay": Job(
        ("replay", "bank", "new.csv", "--max-items", "5", "--interval", "model-based", "-o", "asked.csv"),
        ("bank", "new.csv"),
        ("asked.csv",),
    ),
    "bank retire": Job(
        (*RETIRE, "-o", "new"), ("bank",), ("new",), again=(*RETIRE, "-o", "new", "--force"), read=dateless
    ),
    "bank restore --force": Job(
        ("bank", "restore", "retired", "math/0", "--reason", "right", "-o", "named", "--force"),
        ("retired", "named"),
        ("named",),
        read=dateless,
    ),
    "prepare": Job(("prepare", "bank"), ("bank",), ("bank",)),
    "sample-data": Job(("sample-data", "-o", "sample"), (), ("sample/past.csv", "sample/new-model.csv")),
    "quickstart": Job(("quickstart", "-n", "30", "--repeats", "1", "-o", "quickstart"), (), ("quickstart",)),
}


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of one killed command; `problem` is empty when all was well."""

    job: str
    way: str
    was_killed: bool
    problem: str = ""


def undisturbed(job: Job, workplace: Path) -> Reference:
    """Run a command to its end in a fork, and keep what it wrote and took."""
    with tempfile.TemporaryDirectory(prefix="itembank-kill-") as place:
        folder = Path(place)
        copy_all(job.beside, workplace, folder)
        return Reference(**answer_of(lambda: _undisturbed(job, folder)))


def _undisturbed(job: Job, folder: Path) -> dict[str, object]:
    n_steps = before_step(0)
    before = {name: _state(job, folder / name) for name in job.writes}
    started = time.monotonic()
    outcome = run_here(job.words, folder=folder, seconds=PATIENCE)
    seconds = time.monotonic() - started
    if outcome.code:
        raise RuntimeError(f"{job.words}: {outcome.err}{outcome.escaped}")
    after = {name: _state(job, folder / name) for name in job.writes}
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return {
        "before": before,
        "after": after,
        "out": outcome.out,
        "seconds": seconds,
        "n_steps": n_steps(),
        "n_bytes": max(sizes),
    }


def kill(name: str, reference: Reference, workplace: Path, rng: np.random.Generator) -> Kill:
    """Run a command, kill it in one of the three ways, and see what it left."""
    job, way = JOBS[name], WAYS[int(rng.integers(len(WAYS)))]
    with tempfile.TemporaryDirectory(prefix="itembank-kill-") as place:
        folder = Path(place)
        copy_all(job.beside, workplace, folder)
        others = {path: one for path, one in contents(folder).items() if not _is_of(path, job.writes)}
        moment = float(rng.uniform(0.0, 1.1 * reference.seconds)) if way == "at a moment" else None
        step = int(rng.integers(1, reference.n_steps + 1)) if way == "before a step" else 0
        n_bytes = int(rng.integers(reference.n_bytes)) if way == "within a write" else None

        def work() -> None:
            before_step(step)
            if n_bytes is not None:
                within_write(n_bytes)
            run_here(job.words, folder=folder)

        code = ended(fork(work), after=moment)
        return Kill(name, way, code < 0, answer_of(lambda: _problem(job, reference, folder, others)))


def copy_all(names: tuple[str, ...], workplace: Path, folder: Path) -> None:
    """Copy files and folders of the workplace into a folder."""
    for name in names:
        if (workplace / name).is_dir():
            shutil.copytree(workplace / name, folder / name)
        else:
            shutil.copy(workplace / name, folder / name)


def answer_of(work: Callable[[], Any]) -> Any:
    """Do some work in a fork, and return what it says, by way of JSON."""
    reading, writing = os.pipe()

    def said() -> None:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            json.dump(work(), pipe)

    process = fork(said)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    if (code := ended(process, most=PATIENCE)) != 0:
        raise RuntimeError(f"a fork that was not attacked ended with {code}")
    return json.loads(text)


def _state(job: Job, path: Path) -> object:
    """Return what must be the same of a target; None where it is not there."""
    return (job.read or bytes_of)(path) if path.exists() else None


def _is_of(path: str, names: tuple[str, ...]) -> bool:
    return any(path == name or path.startswith(f"{name}/") for name in names)


def _problem(job: Job, reference: Reference, folder: Path, others: dict[str, str]) -> str:
    """Say what a kill spoiled: at once, or when the command is given again."""
    now = contents(folder)
    spoilt = [path for path, one in others.items() if now.get(path) != one]
    if spoilt:
        return f"{spoilt} changed"
    is_there = {name: (folder / name).exists() for name in job.writes}
    for name in () if job.goes_on else job.writes:
        if _state(job, folder / name) not in (reference.before[name], reference.after[name]):
            return f"{name} is neither as it was nor as it should be: {sorted(contents(folder))}"
    for path in folder.rglob("*.partial"):  # only what is older than a minute is sure to be left over
        os.utime(path, (time.time() - 600.0,) * 2)
    again = job.again if job.again and all(is_there.values()) else job.words
    outcome = run_here(again, folder=folder, seconds=PATIENCE)
    if outcome.code:
        return f"given again, {again} exits {outcome.code}: {outcome.err}{outcome.escaped}"
    changed = [name for name in job.writes if _state(job, folder / name) != reference.after[name]]
    if changed or (again == job.words and outcome.out != reference.out):
        return f"given again, {changed or 'the output'} is not what it would have been"
    partial = [path.name for path in folder.rglob("*.partial") if path.name not in outcome.err]
    return f"left behind without a word: {partial}" if partial else ""
