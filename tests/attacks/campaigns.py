"""Runs many attacks in processes of their own, so that one that hangs or dies ends nothing but itself."""

import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import itembank
from tests.attacks.running import fork

Work = Callable[[int], dict[str, Any]]
"""Makes the attack of a number, and says what became of it; `verdict` is one of the keys."""
CHUNK = 50
"""Attacks that one process makes before another takes over."""


def import_everything() -> None:
    """Import all that any command needs, so that forks need not; Polars is imported and not used."""
    for module in pkgutil.walk_packages(itembank.__path__, "itembank."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # parts that a harness imports, where there is none
                importlib.import_module(module.name)
    for name in ("vl_convert", "rich.table"):
        importlib.import_module(name)


@dataclass
class _Worker:
    """A process with the attacks that are left to it."""

    process: int
    pipe: int
    left: list[int]
    heard: float
    text: bytes = b""


def campaign(
    work: Work, numbers: Iterable[int], log: Path, *, n_jobs: int, seconds: float, gibibytes: float | None = 4.0
) -> list[dict[str, Any]]:
    """Make the attacks of these numbers that the log does not hold yet; return the log's records of all.

    Parameters
    ----------
    work : function
    numbers : ints
    log : Path
        One JSON object a line, added to as attacks end: a campaign that was stopped goes on.
    n_jobs : int
        Processes.
    seconds : float
        An attack that takes longer hangs: its process is killed, and another goes on with the next.
    gibibytes : float, optional
        Bound of each process's memory.
    """
    wanted = list(numbers)
    done = {record["number"] for record in _records(log)}
    todo = [number for number in wanted if number not in done]
    chunks = [todo[start : start + CHUNK] for start in range(0, len(todo), CHUNK)]
    workers: list[_Worker] = []
    with log.open("a", encoding="utf-8") as file:

        def keep(record: dict[str, Any]) -> None:
            file.write(json.dumps(record) + "\n")
            file.flush()

        while chunks or workers:
            while chunks and len(workers) < n_jobs:
                workers.append(_start(work, chunks.pop(0), gibibytes))
            ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 0.5)
            for worker in list(workers):
                if worker.pipe in ready:
                    is_alive = _hear(worker, keep)
                elif time.monotonic() - worker.heard > seconds:
                    os.killpg(worker.process, signal.SIGKILL)
                    keep({"number": worker.left.pop(0), "verdict": "hang", "detail": f"longer than {seconds} s"})
                    is_alive = False
                else:
                    continue
                if not is_alive:
                    workers.remove(worker)
                    if rest := _ended(worker, keep):
                        chunks.insert(0, rest)
    wanted_set = set(wanted)
    return [record for record in _records(log) if record["number"] in wanted_set]


def _records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.is_file() else []


def _start(work: Work, numbers: Sequence[int], gibibytes: float | None) -> _Worker:
    reading, writing = os.pipe()

    def make_all() -> None:
        os.close(reading)
        warnings.simplefilter("always", RuntimeWarning)
        for number in numbers:
            os.write(writing, (json.dumps({"number": number, **work(number)}) + "\n").encode())

    process = fork(make_all, gibibytes=gibibytes)
    os.close(writing)
    return _Worker(process, reading, list(numbers), time.monotonic())


def _hear(worker: _Worker, keep: Callable[[dict[str, Any]], None]) -> bool:
    """Keep the records that a process has sent; return whether it goes on."""
    part = os.read(worker.pipe, 1 << 16)
    worker.heard = time.monotonic()
    *lines, worker.text = (worker.text + part).split(b"\n")
    for line in lines:
        record = json.loads(line)
        worker.left.remove(record["number"])
        keep(record)
    return bool(part)


def _ended(worker: _Worker, keep: Callable[[dict[str, Any]], None]) -> list[int]:
    """Take leave of a process that ended; return the attacks that it has not come to."""
    os.close(worker.pipe)
    code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
    if code and worker.left and code != -signal.SIGKILL:
        keep({"number": worker.left.pop(0), "verdict": "death", "detail": f"the process ended with {code}"})
    return worker.left
