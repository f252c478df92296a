"""Pre-training laws on the built-in suite (decisions, forecasts), and forecasts of the largest public models.

python -m benchmarks.pretraining decisions [--splits 5] [-o benchmarks/results/pretraining]
    [--figure docs/figures/decisions.png]
python -m benchmarks.pretraining laws [-o benchmarks/results/pretraining]
python -m benchmarks.pretraining aggregates [-o benchmarks/results/pretraining]
python -m benchmarks.pretraining datadecide [--suites 1] [--noise 0.3] [-o benchmarks/results/pretraining]
"""

import argparse
import os
from pathlib import Path

from benchmarks.pretraining import aggregates, datadecide, decisions, laws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("decisions", "laws", "aggregates", "datadecide"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--suites", type=int, default=1)
    parser.add_argument("--noise", type=float, action="append")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.part == "decisions":
        decisions.run(arguments.splits, arguments.output, arguments.figure)
    elif arguments.part == "datadecide":
        datadecide.run(arguments.noise or [0.3], arguments.suites, arguments.output)
    elif arguments.part == "laws":
        laws.run(arguments.output)
    else:
        aggregates.run(Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data", arguments.output)


if __name__ == "__main__":
    main()
