"""Attack: commands that write, killed at any moment. What is there afterwards must be whole, or not there.

A command is run once undisturbed. Then it is killed again and again, each time in a folder of its own: what it was to
write must be absent, as it was before, or to the letter what the undisturbed run wrote; and once the command is given
again, all must be as if it had not been killed, with nothing left behind that is not named.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks.dying import before_step, ended, within_write
from tests.attacks.jobs import Job, bytes_of
from tests.attacks.judging import contents
from tests.attacks.running import fork, run_here, run_well

PATIENCE = 900.0
"""Seconds for what is not killed, on a machine with much else to do."""
BY_CHANCE = re.compile(r"[\d.]+ seconds")
"""What took how long: another each time."""
ORPHAN = "another run goes on in this folder"
"""Said while a harness runs on whose parent was killed."""
WAYS = ("at a moment", "before a step", "within a write")


@dataclass(frozen=True, slots=True)
class Reference:
    """What was there before and after an undisturbed run, what it printed, and what it took."""

    before: dict[str, object]
    after: dict[str, object]
    out: str
    seconds: float
    n_steps: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of one killed command; `problem` is empty when all was well."""

    job: str
    way: str
    was_killed: bool
    problem: str = ""


def undisturbed(job: Job, workplace: Path) -> Reference:
    """Run a command to its end in a fork, and keep what it wrote and took."""
    with folder_with(job.beside, workplace) as folder:
        return Reference(**answer_of(lambda: _undisturbed(job, folder)))


def _undisturbed(job: Job, folder: Path) -> dict[str, object]:
    n_steps = before_step(0)
    before = {name: _state(job, folder / name) for name in job.writes}
    started = time.monotonic()
    outcome = run_well(job.words, folder, seconds=PATIENCE)
    told = {"before": before, "out": outcome.out, "seconds": time.monotonic() - started}
    after = {name: _state(job, folder / name) for name in job.writes}
    n_bytes = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {**told, "after": after, "n_steps": n_steps(), "n_bytes": n_bytes}


def kill(name: str, job: Job, reference: Reference, workplace: Path, rng: np.random.Generator) -> Kill:
    """Run a command, kill it in one of the three ways, and see what it left."""
    way = WAYS[int(rng.integers(len(WAYS)))]
    with folder_with(job.beside, workplace) as folder:
        others = {path: one for path, one in contents(folder).items() if not is_of(path, job.writes)}
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


@contextmanager
def folder_with(names: Iterable[str], workplace: Path) -> Iterator[Path]:
    """Make a folder for one attack, with copies of files and folders of the workplace."""
    with tempfile.TemporaryDirectory(prefix="itembank-attack-") as place:
        for name in names:
            copy = shutil.copytree if (workplace / name).is_dir() else shutil.copy
            copy(workplace / name, Path(place, name))
        yield Path(place)


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


def is_of(path: str, names: tuple[str, ...]) -> bool:
    """Whether a path is one of these, or in a folder of them."""
    return any(path == name or path.startswith(f"{name}/") for name in names)


def _problem(job: Job, reference: Reference, folder: Path, others: dict[str, str]) -> str:
    """Say what a kill spoiled: at once, or when the command is given again."""
    now = contents(folder)
    if spoilt := [path for path, one in others.items() if now.get(path) != one]:
        return f"{spoilt} changed"
    is_there = {name: (folder / name).exists() for name in job.writes}
    for name in () if job.goes_on else job.writes:
        if _state(job, folder / name) not in (reference.before[name], reference.after[name]):
            return f"{name} is neither as it was nor as it should be: {sorted(contents(folder))}"
    for path in folder.rglob("*.partial"):  # only what is older than a minute is sure to be left over
        os.utime(path, (time.time() - 600.0,) * 2)
    again = job.again if job.again and all(is_there.values()) else job.words
    while ORPHAN in (outcome := run_here(again, folder=folder, seconds=PATIENCE)).err:
        time.sleep(0.5)
    if outcome.code:
        return f"given again, {again} exits {outcome.code}: {outcome.err}{outcome.escaped}"
    changed = [name for name in job.writes if _state(job, folder / name) != reference.after[name]]
    said, meant = (BY_CHANCE.sub("", out) for out in (outcome.out, reference.out))
    if changed or (again == job.words and said != meant):
        return f"given again, {changed or 'the output'} is not what it would have been"
    partial = [path.name for path in folder.rglob("*.partial") if path.name not in outcome.err]
    return f"left behind without a word: {partial}" if partial else ""
