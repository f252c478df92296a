"""Run the panel: ``ITEMBANK_SHARED=... python -m benchmarks.panel -o DIR``.

Every study is resumed where it stopped. Writes `panel.md`, `summary.csv` and `coverage.png` beside the studies.
"""

import argparse
from pathlib import Path

import polars as pl

from benchmarks.panel.figure import draw_coverage
from benchmarks.panel.table import NAMES, cells, markdown
from itembank.studies.run import run_study
from itembank.studies.study_files import load_study

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES), help="studies to run")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/panel"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    summaries, found = [], []
    for name in arguments.only:
        result = run_study(
            load_study(HERE / f"{name}.toml"), arguments.output / name, n_jobs=arguments.jobs, progress=_say
        )
        summaries.append(result.summary.with_columns(study=pl.lit(name)))
        found.append(cells(name, result.estimates, result.summary))
    table = pl.concat(found)
    pl.concat(summaries, how="diagonal").write_csv(arguments.output / "summary.csv")
    (arguments.output / "panel.md").write_text(markdown(table), encoding="utf-8")
    draw_coverage(table, arguments.output / "coverage.png")
    print(markdown(table))


def _say(text: str, share: float) -> None:
    print(f"{share:.0%} {text}", flush=True)


if __name__ == "__main__":
    main()
