"""One step of an adaptive test in one dimension: choose the item of most information, take the answer, estimate."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.adaptive_banks import bank_and_models
from benchmarks.adaptive_reference import TOOLS
from benchmarks.rivals.fits import Row
from benchmarks.speed_commands import ONE_THREAD
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec

SIZES = (5_000, 30_000)
N_STEPS = 30


def run(python: str) -> Iterator[Row]:
    """Give the row of every tool for every size of a bank."""
    for n_items in SIZES:
        for tool in ("itembank", *TOOLS):
            module = "benchmarks.rivals.steps" if tool == "itembank" else "benchmarks.adaptive_reference"
            interpreter = sys.executable if tool in ("itembank", "plain Python") else python
            command = [interpreter, "-W", "ignore", "-m", module, tool, str(n_items), str(N_STEPS)]
            done = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=False
            )
            found = (
                {"skipped": (done.stderr.strip().splitlines() or ["failed"])[-1]}
                if done.returncode
                else json.loads(done.stdout.strip().splitlines()[-1])
            )
            yield {"name": f"{tool}, {n_items:,} items", "tool": tool, "n_items": n_items, **found}


def table(rows: list[Row]) -> Iterator[str]:
    """Give the lines of a Markdown table."""
    yield from ("\n| a step, one dimension | bank | CPU-ms, median | times ours |", "|---|---|---|---|")
    ours = {row["n_items"]: row for row in rows if row["tool"] == "itembank"}
    for row in rows:
        tool = f"{row['tool']} {row.get('version', '')}".strip()
        if "skipped" in row:
            yield f"| {tool} | {row['n_items']:,} | {row['skipped']} | |"
            continue
        seconds, own = (one["median_seconds"] for one in (row, ours[row["n_items"]]))
        yield f"| {tool} | {row['n_items']:,} | {1e3 * seconds:.2f} | {seconds / own:.1f} |"


def measure(n_items: int, n_steps: int) -> Row:
    """Time each ask with its tell in one of our sessions, after one session that pays for the start."""
    bank, new = bank_and_models(n_items, 1)
    spec = SessionSpec("fisher", budget=Budget(n_items=n_steps), interval="model-based")
    pool = SessionPool.create(bank, spec)
    seconds: list[float] = []
    for row in range(3):
        session = AdaptiveSession(pool)
        answers = dict(zip(new.item_ids, new.responses[row], strict=True))
        for _ in range(n_steps):
            started = time.process_time()
            (item,) = session.ask()
            session.tell(item, answers[item])
            seconds.append(time.process_time() - started)
    return {"median_seconds": float(np.median(seconds[n_steps:])), "largest_seconds": max(seconds)}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[2]), int(sys.argv[3]))))
