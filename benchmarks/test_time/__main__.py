"""pass@k from a small sampling budget: traditional law, item response by plug-in, and integrated (IRSL 4.3, Figure 8).

Each split calibrates on two thirds of the models with all their samples and estimates the others from the budget (50
samples an item; 5 of 10 on livecodebench). Errors are means over k from 1 to the model's samples (10,000 at most; 25
steps) and over models, of pass@k and of -log pass@k.

    python -m benchmarks.test_time [--sources llmonkeys_pythia,livecodebench,bytelms-samples] [--splits 100] [--jobs 2]
        [--asked all] [--interval model-based] [--coverage]
        [-o benchmarks/results/test_time] [--figure docs/figures/test-time-gaps.png]

Without --splits 30 splits of llmonkeys_pythia and 10 of the others. With `--asked all` no model keeps all its samples:
every model is asked about at once, and splits are draws of the budget. `--interval model-based` shows what intervals
are before they are widened. `--coverage` prints no more than how often intervals held, and how wide they are.
"""

import argparse
import os
import sys
from pathlib import Path

import polars as pl
from joblib import Parallel, delayed

from benchmarks.test_time.figure import draw
from benchmarks.test_time.sets import SOURCES, SPLITS, load_sets
from benchmarks.test_time.study import METHODS, SHARES, run_split
from benchmarks.test_time.summary import as_markdown, coverage, gaps, summarise, table


def main() -> None:
    arguments = _arguments()
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    methods = ("irsl",) if arguments.coverage else METHODS
    parts = []
    for source in arguments.sources.split(","):
        for one in load_sets(source, folder):
            found = Parallel(n_jobs=arguments.jobs)(
                delayed(run_split)(one, split, SHARES[arguments.asked], arguments.interval, methods)
                for split in range(arguments.splits or SPLITS[source])
            )
            parts.append(pl.DataFrame([record for records in found for record in records]))
            shape = f"{one.responses.n_models} models x {one.responses.n_items} items, budget {one.budget}"
            print(f"{one.name}: {shape}", file=sys.stderr)
            if arguments.coverage:
                print(coverage(parts[-1]), flush=True)
    if arguments.coverage:
        return
    records = pl.concat(parts)
    summary = summarise(records)
    print(as_markdown(summary))
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "pass-at-k.md").write_text(table(summary), encoding="utf-8")
        summary.write_csv(arguments.output / "summary.csv", float_precision=6)
        gaps(records).write_csv(arguments.output / "gaps.csv", float_precision=6)
    if arguments.figure:
        draw(gaps(records), arguments.figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--splits", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--asked", choices=list(SHARES), default="third")
    parser.add_argument("--interval", choices=["calibrated", "model-based"], default="calibrated")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--figure", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
