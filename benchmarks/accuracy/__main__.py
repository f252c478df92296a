"""Run the study: ``ITEMBANK_SHARED=... python -m benchmarks.accuracy -o DIR``.

Every split is kept when it is done (`benchmarks.kept_parts`): stopped, the same command goes on.
Writes `estimates.parquet` (every single estimate), `summary.csv`, and the tables of benchmarks/tables/tables.md.
"""

import argparse
from pathlib import Path

import polars as pl

from benchmarks.accuracy.data_sets import NAMES, load
from benchmarks.accuracy.figure import draw
from benchmarks.accuracy.study import parts
from benchmarks.accuracy.summary import summarise, tables
from benchmarks.kept_parts import kept_folder, run_parts
from benchmarks.result_manifests import data_folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="splits (by date: groups of draws)")
    parser.add_argument("--draws", type=int, default=4, help="selections a split and repeat")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="data sets to run")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/accuracy"))
    parser.add_argument("--only-kept", action="store_true", help="tables of the splits that are done; run nothing")
    parser.add_argument("--figure", type=Path, help="PNG file")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    tables_of_splits: list[pl.DataFrame] = []
    for name in arguments.only:
        # one split of the large simulation is enough: 553 new models, and minutes of work
        is_large = name == "leaderboard2_factors"
        n_repeats, n_draws = (1, 1) if is_large else (arguments.repeats, arguments.draws)
        folder = kept_folder(f"accuracy-{name}", [Path(__file__).with_name("study.py")], data=[name])
        work = parts(load(name, data_folder(name).parent), n_repeats, n_draws)
        tables_of_splits += run_parts(folder, work, jobs=arguments.jobs, only_kept=arguments.only_kept)
    estimates = pl.concat(tables_of_splits)
    summary = summarise(estimates)
    arguments.output.mkdir(parents=True, exist_ok=True)
    estimates.write_parquet(arguments.output / "estimates.parquet")
    summary.write_csv(arguments.output / "summary.csv")
    for name, text in tables(summary).items():
        (arguments.output / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{name}\n\n{text}\n")
    if arguments.figure:
        draw(summary, arguments.figure)
    print(f"written to {arguments.output}")


if __name__ == "__main__":
    main()
