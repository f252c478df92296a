"""CPU time and peak memory of `itembank import`, on long tables of simulated responses.

The table has one row a model and item, model after model or in random order (`--shuffled`), or one row a model
(`--wide`), as Parquet, CSV or JSON Lines. The command runs in a process of its own; CPU time is that of all its
threads, user and system together.

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
from numpy.typing import NDArray

ROWS_AT_ONCE = 1_000_000
MEGABYTE = 2**20


def main() -> None:
    """Write the table, import it, and read the response file back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--missing", type=float, default=0.0, help="share of rows that are left out")
    parser.add_argument("--shuffled", action="store_true", help="rows in random order (takes memory to write)")
    parser.add_argument("--wide", action="store_true", help="one row a model and one column an item")
    parser.add_argument("--kind", choices=("parquet", "csv", "jsonl"), default="parquet")
    parser.add_argument("--keep", type=Path, help="folder where the files stay; those that are there are used")
    parser.add_argument("--no-read", action="store_true", help="leave out reading the response file back")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        layout = f"{'-shuffled' if given.shuffled else ''}{'-wide' if given.wide else ''}"
        kind = f"{given.models}x{given.items}-{given.missing:g}{layout}"
        table = folder / f"{kind}.{given.kind}"
        if not table.exists():
            shape = given.models, given.items
            write_table(table, *shape, given.missing, is_shuffled=given.shuffled, is_wide=given.wide)
        output = folder / f"{kind}-responses.parquet"
        command = ["-m", "itembank", "import", str(table), "-o", str(output), "--format", "json"]
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


def write_table(
    path: Path, n_models: int, n_items: int, missing: float, *, is_shuffled: bool = False, is_wide: bool = False
) -> None:
    """Write a table of simulated responses, part by part."""
    temporary = path.with_name(path.name + ".tmp")
    frames = (wide_parts if is_wide else parts)(n_models, n_items, missing)
    if is_shuffled:
        whole = pl.concat(frames)
        frames = iter([whole[np.random.default_rng(1).permutation(whole.height)]])
    if path.suffix in {".csv", ".jsonl"}:
        with temporary.open("wb") as file:
            for number, frame in enumerate(frames):
                if path.suffix == ".csv":
                    frame.write_csv(file, include_header=number == 0)
                else:
                    frame.write_ndjson(file)
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
    """Give the rows of some models at a time, one a response."""
    item_ids = pl.Series("item_id", items_of(n_items))
    for names, responses, kept in simulated(n_models, n_items, missing):
        model, item = np.nonzero(kept)
        yield pl.DataFrame([names.gather(model), item_ids.gather(item), pl.Series("response", responses[kept])])


def wide_parts(n_models: int, n_items: int, missing: float) -> Iterator[pl.DataFrame]:
    """Give the rows of some models at a time, one a model."""
    for names, responses, kept in simulated(n_models, n_items, missing):
        values = pl.DataFrame(np.where(kept, responses, -1), schema=items_of(n_items))
        yield values.with_columns(pl.all().replace(-1, None)).insert_column(0, names)


def items_of(n_items: int) -> list[str]:
    """Return ids of items."""
    return [f"benchmark/task-{k // 1000}/{k}" for k in range(n_items)]


def simulated(
    n_models: int, n_items: int, missing: float
) -> Iterator[tuple[pl.Series, NDArray[np.int64], NDArray[np.bool_]]]:
    """Simulate responses of some models at a time: their names, responses (n_models, n_items), and which are kept."""
    rng = np.random.default_rng(0)
    easiness = rng.normal(0.5, 1.2, n_items)
    at_once = max(1, ROWS_AT_ONCE // n_items)
    for first in range(0, n_models, at_once):
        models = np.arange(first, min(first + at_once, n_models))
        logit = rng.normal(0.0, 1.0, models.size)[:, None] + easiness
        responses = (rng.random(logit.shape) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
        kept = rng.random(logit.shape) >= missing
        yield pl.Series("model_id", [f"organisation/model-{k}" for k in models.tolist()]), responses, kept


if __name__ == "__main__":
    main()
