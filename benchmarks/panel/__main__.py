"""Run the panel: ``ITEMBANK_SHARED=... python -m benchmarks.panel -o DIR``.

Every fold is kept when it is done (`benchmarks.kept_parts`): stopped, the same command goes on; other code starts
anew. Writes `panel.md`, `estimates.parquet` and the figures `coverage.png` and `widths.png`.
"""

import argparse
from pathlib import Path

import polars as pl

from benchmarks.kept_parts import run_parts
from benchmarks.panel import goals
from benchmarks.panel.report import report
from benchmarks.panel.studies import STUDIES, open_study
from benchmarks.panel.work import parts


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.panel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=STUDIES, help="studies to run")
    parser.add_argument("--only-kept", action="store_true", help="tables of the folds that are done; run nothing")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/panel"))
    parser.add_argument("--figures", type=Path, help="folder of the figures, where it is not the output's")
    arguments = parser.parse_args()
    found, models = [], {}
    for name in arguments.only:
        spec, responses, folder = open_study(name, kept_as="panel")
        work = parts(name, spec, responses)
        found += run_parts(folder, work, jobs=arguments.jobs, only_kept=arguments.only_kept)
        models[name] = responses.models
    figures = arguments.figures or arguments.output
    text = report("panel", pl.concat(found), models, arguments.output, goals=goals.markdown, figures=figures)
    print(text)


if __name__ == "__main__":
    main()
