"""IRSL's simulation: errors of item parameters from probabilities, single answers, and counts.

    python -m benchmarks.published_simulation -o benchmarks/results/published_simulation

writes a CSV file with a row for each trial and one with their means for both studies (`recovery.csv`, `budgets.csv`,
`recovery-summary.csv`, `budgets-summary.csv`), and the figure where both are there. The first study takes IRSL's own
ten trials, the second the same simulation with five, by the default method alone.
"""

import argparse
from pathlib import Path

import polars as pl

from benchmarks.published_simulation import studies
from benchmarks.published_simulation.figure import draw
from benchmarks.published_simulation.tables import TABLES
from benchmarks.published_simulation.ways import PUBLISHED
from itembank.numerics.parallel import one_blas_thread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--figure", type=Path, help="PNG file")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--budget-trials", type=int, default=5)
    parser.add_argument("--ways", nargs="+", default=[PUBLISHED, "variational", "map"])
    parser.add_argument("--only", choices=("recovery", "budgets"), help="leave the other study out")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    runs = {
        "recovery": lambda: studies.recovery(chosen.ways, chosen.trials),
        "budgets": lambda: studies.budgets(["variational"], chosen.budget_trials),
    }
    found = {}
    with one_blas_thread():
        for name, run in runs.items():
            if chosen.only in {None, name}:
                found[name] = pl.DataFrame(list(run()), infer_schema_length=None)
                found[name].with_columns(pl.selectors.float().round_sig_figs(6)).write_csv(
                    chosen.output / f"{name}.csv"
                )
    summaries = {name: studies.summary(rows) for name, rows in found.items()}
    for name, one in summaries.items():
        for table, text in TABLES[name](one).items():
            (chosen.output / f"{table}.md").write_text(text, encoding="utf-8")
            print(f"\n{table}\n\n{text}")
    print(f"\nCPU seconds: { {name: round(one['cpu_seconds'].sum(), 1) for name, one in summaries.items()} }")
    for name, one in summaries.items():
        one.with_columns(pl.selectors.float().round_sig_figs(4)).write_csv(chosen.output / f"{name}-summary.csv")
    files = {name: chosen.output / f"{name}-summary.csv" for name in runs}
    if chosen.figure and all(file.exists() for file in files.values()):
        draw(pl.read_csv(files["recovery"]), pl.read_csv(files["budgets"]), chosen.figure)


if __name__ == "__main__":
    main()
