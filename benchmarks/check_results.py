"""Say which tables of benchmarks/tables/tables.md are out of date: ``python -m benchmarks.check_results``.

A table is out of date when its benchmark, the data, the numbers that the library gives (`tests/snapshot/values.json`)
or the table itself changed since it was made. `python -m benchmarks.remake_results NAME` makes the tables of a run
again. Figures that other pages quote are compared with the tables (`benchmarks/tables/quoted.toml`). The exit code is
1 when a table is out of date or a figure another.
"""

import argparse
import sys

from benchmarks.quoted_figures import wrong_figures
from benchmarks.result_manifests import DOCUMENT, load_runs, out_of_date


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.check_results", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.parse_args()
    document = DOCUMENT.read_text(encoding="utf-8")
    n_stale = 0
    for run in load_runs().values():
        reasons = out_of_date(run, document)
        n_stale += bool(reasons)
        print(f"{run.name:26}{'out of date' if reasons else 'up to date'}")
        for reason in reasons:
            print(f"{'':26}  {reason}")
    wrong = wrong_figures()
    print("\n".join(wrong) or "quoted figures are those of the tables")
    sys.exit(1 if n_stale or wrong else 0)


if __name__ == "__main__":
    main()
