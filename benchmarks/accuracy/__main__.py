"""Run the study: ``python -m benchmarks.accuracy --data DIR -o DIR``.

Writes `estimates.parquet` (every single estimate), `summary.csv`, and the tables of docs/results-tables.md.
"""

import argparse
import os
import time
from pathlib import Path

import polars as pl

from benchmarks.accuracy.data_sets import NAMES, load
from benchmarks.accuracy.figure import draw
from benchmarks.accuracy.study import run_data_set
from benchmarks.accuracy.summary import summarise, tables

SHARED = Path(os.environ.get("ITEMBANK_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the data sets")
    parser.add_argument("--repeats", type=int, default=5, help="splits (by date: groups of draws)")
    parser.add_argument("--draws", type=int, default=4, help="selections a split and repeat")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="data sets to run")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/accuracy"))
    parser.add_argument("--figure", type=Path, help="PNG file")
    arguments = parser.parse_args()
    started = time.process_time()
    parts = []
    for name in arguments.only:
        data_set = load(name, arguments.data)
        # one split of the large simulation is enough: 553 new models, and minutes of work
        is_large = name == "leaderboard2_factors"
        n_repeats, n_draws = (1, 1) if is_large else (arguments.repeats, arguments.draws)
        parts.extend(run_data_set(data_set, n_repeats, n_draws))
    estimates = pl.concat(parts)
    summary = summarise(estimates)
    arguments.output.mkdir(parents=True, exist_ok=True)
    estimates.write_parquet(arguments.output / "estimates.parquet")
    summary.write_csv(arguments.output / "summary.csv")
    for name, text in tables(summary).items():
        (arguments.output / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{name}\n\n{text}\n")
    if arguments.figure:
        draw(summary, arguments.figure)
    print(f"{time.process_time() - started:.0f} CPU-s in all; written to {arguments.output}")


if __name__ == "__main__":
    main()
