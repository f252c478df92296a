"""CPU time and peak memory of `itembank import table`, on long tables of simulated responses.

The table has one row a model and item, model after model or in random order (`--shuffled`), as Parquet or CSV. The
command runs in a process of its own; CPU time is that of all its threads, user and system together.

    python -m benchmarks.importing --models 500 --items 10000
    python -m benchmarks.importing --models 5000 --items 10000 --shuffled
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

ROWS_AT_ONCE = 1_000_000
MEGABYTE = 2**20


def main() -> None:
    """Write the table, import it, and read the response file back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--missing", type=float, default=0.0, help="share of rows that are left out")
    parser.add_argument("--shuffled", action="store_true", help="rows in random order (takes memory to write)")
    parser.add_argument("--csv", action="store_true", help="a CSV table in place of a Parquet one")
    parser.add_argument("--keep", type=Path, help="folder where the files stay; those that are there are used")
    parser.add_argument("--no-read", action="store_true", help="leave out reading the response file back")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        kind = f"{given.models}x{given.items}-{given.missing:g}{'-shuffled' if given.shuffled else ''}"
        table = folder / f"{kind}.{'csv' if given.csv else 'parquet'}"
        if not table.exists():
            write_table(table, given.models, given.items, given.missing, is_shuffled=given.shuffled)
        output = folder / f"{kind}-responses.parquet"
        command = ["-m", "itembank", "import", "table", str(table), "-o", str(output), "--format", "json"]
        print(f"{table.name}: {table.stat().st_size / MEGABYTE:,.0f} MB")
        print(f"import table    {measured(command)}")
        if not given.no_read:
            read = f"from itembank import read_responses; read_responses({json.dumps(str(output))})"
            print(f"read_responses  {measured(['-c', read])}")


def measured(arguments: list[str]) -> str:
    """Run Python with these arguments; return its CPU seconds and its largest resident set."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the command failed with status {process.returncode}.")
    wall = time.monotonic() - start
    return (
        f"{usage.ru_utime + usage.ru_stime:6.1f} CPU-s ({usage.ru_utime:.1f} user), {wall:.1f} s wall, "
        f"peak {usage.ru_maxrss / 1024:,.0f} MB"
    )


def write_table(path: Path, n_models: int, n_items: int, missing: float, *, is_shuffled: bool) -> None:
    """Write a long table of simulated responses, part by part."""
    temporary = path.with_name(path.name + ".tmp")
    if is_shuffled:
        whole = pl.concat(parts(n_models, n_items, missing))
        order = np.random.default_rng(1).permutation(whole.height)
        frames = iter([whole[order]])
    else:
        frames = parts(n_models, n_items, missing)
    if path.suffix == ".csv":
        with temporary.open("wb") as file:
            for number, frame in enumerate(frames):
                frame.write_csv(file, include_header=number == 0)
    else:
        folder = path.with_name(path.name + ".parts")
        folder.mkdir(exist_ok=True)
        for number, frame in enumerate(frames):
            frame.write_parquet(folder / f"{number:05d}.parquet")
        pl.scan_parquet(folder / "*.parquet").sink_parquet(temporary)
        for part in folder.iterdir():
            part.unlink()
        folder.rmdir()
    temporary.replace(path)


def parts(n_models: int, n_items: int, missing: float) -> Iterator[pl.DataFrame]:
    """Simulate the rows of some models at a time."""
    rng = np.random.default_rng(0)
    easiness = rng.normal(0.5, 1.2, n_items)
    item_ids = pl.Series("item_id", [f"benchmark/task-{k // 1000}/{k}" for k in range(n_items)])
    at_once = max(1, ROWS_AT_ONCE // n_items)
    for first in range(0, n_models, at_once):
        models = np.arange(first, min(first + at_once, n_models))
        logit = rng.normal(0.0, 1.0, models.size)[:, None] + easiness
        responses = (rng.random(logit.shape) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
        kept = rng.random(logit.shape) >= missing
        model, item = np.nonzero(kept)
        names = pl.Series("model_id", [f"organisation/model-{k}" for k in models.tolist()])
        yield pl.DataFrame([names.gather(model), item_ids.gather(item), pl.Series("response", responses[kept])])


if __name__ == "__main__":
    main()
