"""Every command on a bank larger than the memory holds as numbers: ``python -m benchmarks.past_memory_commands``.

The simulated answers of `benchmarks.past_memory` are written as a response file of twenty scenarios. Then a user's
commands follow, each in a process of its own on one thread, with an empty cache at first: calibrate, select, estimate
(twice), session start. A line tells CPU seconds, the most memory and what the command found. By default 2,000 models x
20,000 items; ``--case more-complete`` is 2,000 x 100,000 and takes an hour.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.past_memory import N_BLOCKS, Case, simulate
from benchmarks.speed_commands import ONE_THREAD
from itembank.responses.coded_responses import CodedResponses
from itembank.responses.response_files import write_responses

CASES = {
    "small": Case(400, 5_000),
    "complete": Case(2_000, 20_000),
    "blocks": Case(2_000, 28_000, 0.1, "blocks"),
    "more-complete": Case(2_000, 100_000),
}
N_CHOSEN = 100


def main() -> None:
    """Run the commands of each case and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append", help="repeatable; 'complete' by default")
    for name in parser.parse_args().case or ["complete"]:
        case = CASES[name]
        print(f"{case.n_models:,} x {case.n_items:,}, {100 * case.answered:.0f} % {case.design}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            _commands(case, Path(folder))


def _commands(case: Case, folder: Path) -> None:
    simulate(case, folder)
    codes = np.memmap(folder / "codes", np.uint8, "r", shape=(case.n_items, case.n_models))
    items = pl.DataFrame(
        {"item_id": [f"item{i}" for i in range(case.n_items)], "scenario": _scenarios(case.n_items)},
    )
    everything = CodedResponses.from_item_codes(codes, items=items)
    write_responses(everything.take(models=np.arange(1, case.n_models)), folder / "past.parquet")
    print(f"  response file {(folder / 'past.parquet').stat().st_size / 1e6:.0f} MB", flush=True)
    _run(folder, "calibrate", "past.parquet", "-o", "bank")
    _run(folder, "select", "bank", "-n", str(N_CHOSEN), "-o", "chosen.json")
    chosen = ib.Selection.load(folder / "chosen.json").item_ids
    new = everything.take(models=np.arange(1), items=everything.item_indices(chosen))
    write_responses(new, folder / "new.parquet")
    truth = float(np.mean(codes[:, 0][codes[:, 0] <= 1]))
    for _ in range(2):
        told = _run(folder, "estimate", "bank", "new.parquet", "--selection", "chosen.json", "--format", "csv")
        found = pl.read_csv(io.StringIO(told)).filter(pl.col("target") == "overall").row(0, named=True)
        print(f"    score {truth:.4f}, estimate {found['estimate']:.4f} ({found['low']:.4f} to {found['high']:.4f})")
    _run(folder, "session", "start", "bank", "-o", "session.jsonl", "--model-id", "new")


def _scenarios(n_items: int) -> list[str]:
    return [f"task{i * N_BLOCKS // n_items}" for i in range(n_items)]


def _run(folder: Path, *arguments: str) -> str:
    """Run one command in the folder, with its cache there, print what it took, and return what it said."""
    environment = {**os.environ, **ONE_THREAD, "ITEMBANK_CACHE": str(folder / "cache")}
    start = time.perf_counter()
    with (folder / "output").open("w+") as output, (folder / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "itembank", *arguments], cwd=folder, env=environment, stdout=output, stderr=errors
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"itembank {' '.join(arguments)} failed: {(folder / 'errors').read_text()[-2000:]}")
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    wall = time.perf_counter() - start
    print(f"  {arguments[0]:10s} {seconds:8.1f} CPU-s {wall:8.1f} s {megabytes:8.0f} MB", flush=True)
    return (folder / "output").read_text()


if __name__ == "__main__":
    main()
