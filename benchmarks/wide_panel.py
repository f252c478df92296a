"""WILD's studies on a wide panel, 78 models x 35 tasks: ``python -m benchmarks.wide_panel [-o DIR]``.

The study is benchmarks/studies/prediction_lb2.toml. It runs in DIR/study; stopped, it goes on. Tables are beside
it, all of tasks that were not asked: errors in points by items; what an error of 7 points costs; and where the nested
model predicts better than the 2PL, items chosen adaptively by both.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

from itembank_studies.results import PredictionResult
from itembank_studies.run import run_prediction
from itembank_studies.study_files import load_prediction

STUDY = Path(__file__).parent / "studies" / "prediction_lb2.toml"
NAME = "wide-panel"
UNSEEN, LEVEL = "extrapolation", "7 points"
OURS, THEIRS = "nested, adaptive v-optimal", "2pl, adaptive fisher"
BUDGETS = (16, 128)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results") / NAME)
    arguments = parser.parse_args()
    output: Path = arguments.output
    result = run_prediction(load_prediction(STUDY), output / "study", n_jobs=arguments.jobs, progress=_report)
    for name, table in (("", errors(result)), ("-costs", costs(result)), ("-2pl", beside_2pl(result))):
        (output / f"{NAME}{name}.md").write_text(table, encoding="utf-8")
        print(f"\n{NAME}{name}\n\n{table}")


def errors(result: PredictionResult) -> str:
    """Mean absolute error of every assessor by the number of items, with its standard error over partitions."""
    curves = result.curves.filter(set=UNSEEN)
    budgets = sorted(curves["budget"].unique().to_list())
    rows = []
    for (assessor,), part in curves.group_by("assessor", maintain_order=True):
        known = {n: f"{100 * mae:.1f} ± {100 * se:.1f}" for n, mae, se in part.select("budget", "mae", "mae_se").rows()}
        rows.append([assessor, *(known.get(n, "-") for n in budgets)])
    return _table(["items", *map(str, budgets)], rows)


def costs(result: PredictionResult) -> str:
    """Cost of reaching 7 points, over that of random items, and over that of the same assessor without /cost."""
    found = result.costs.filter(set=UNSEEN, level=LEVEL).filter(pl.col("cost").is_not_nan())
    numbers = found.select(
        "assessor", "cost", "ratio_to_reference", "ratio_to_reference_se", "ratio", "ratio_se"
    ).rows()
    rows = [[row[0], f"{row[1]:,.0f}", *(_with_error(*pair) for pair in (row[2:4], row[4:6]))] for row in numbers]
    return _table(["tokens to 7 points", "tokens", "over random items", "over the same without /cost"], rows)


def beside_2pl(result: PredictionResult) -> str:
    """Count tasks and models that the nested model predicts better, and say by how much on the tasks of MATH."""
    rows = []
    for budget in BUDGETS:
        of = pl.col("assessor").is_in([OURS, THEIRS]) & (pl.col("budget") == budget) & ~pl.col("is_interpolation")
        known = (
            result.predictions.filter(of).with_columns(error=(pl.col("prediction") - pl.col("truth")).abs()).collect()
        )
        counts = []
        for by in ("task", "model_id"):
            wide = known.pivot(index=by, on="assessor", values="error", aggregate_function="mean")
            counts.append(f"{int((wide[OURS] < wide[THEIRS]).sum())} of {wide.height}")
        math = (
            known.filter(pl.col("task").cast(pl.String).str.starts_with("math"))
            .group_by("assessor")
            .agg(pl.col("error").mean())
        )
        mean = {str(name): 100 * error for name, error in math.rows()}
        rows.append([str(budget), *counts, f"{mean[OURS]:.1f}", f"{mean[THEIRS]:.1f}"])
    return _table(["items", "tasks better", "models better", "MATH: nested", "MATH: 2PL"], rows)


def _with_error(value: float, error: float) -> str:
    return f"{value:.2f}{'' if np.isnan(error) else f' ± {error:.2f}'}" if np.isfinite(value) else "-"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _report(message: str, fraction: float) -> None:
    print(f"{100.0 * fraction:.0f} % {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
