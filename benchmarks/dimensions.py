"""Errors of predicted tasks by the number of abilities (WILD Figure 8): ``python -m benchmarks.dimensions [-o DIR]``.

The study is benchmarks/studies/prediction_bfcl_dims.toml. It runs in DIR/study; stopped, it goes on. Tables are written
beside it: the change of the error against that with one ability, in percent, from the same random items, and errors of
predictors with adaptively chosen items in points.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from itembank_studies.charts.prediction_charts import prediction_chart
from itembank_studies.prediction.error_curves import SETS
from itembank_studies.results import PredictionResult, assessors_by_dims, percent_of_one
from itembank_studies.run import run_prediction
from itembank_studies.study_files import load_prediction

STUDY = Path(__file__).parent / "studies" / "prediction_bfcl_dims.toml"
NAME = "dimensions-bfcl"
NESTED = ("2pl, random", "nested-2, random", "nested, random", "nested-4, random")
"""Nested models by their number of abilities, which counts the general one."""
WAYS = ("random", "adaptive v-optimal")
PREDICTORS = ("2pl", "mirt", "mirt-4", "mirt-6", "nested", "nested-4", "variational", "variational-4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results") / NAME)
    arguments = parser.parse_args()
    output: Path = arguments.output
    result = run_prediction(load_prediction(STUDY), output / "study", n_jobs=arguments.jobs, progress=_report)
    for name, table in tables(result).items():
        (output / f"{NAME}{name}.md").write_text(table, encoding="utf-8")
        print(f"\n{NAME}{name}\n\n{table}")
    if arguments.figure:
        prediction_chart(result, "dims").save(arguments.figure)


def tables(result: PredictionResult) -> dict[str, str]:
    """Return the tables by the end of their names."""
    columns = [(which, budget) for which in SETS for budget in result.curves["budget"].unique().sort().to_list()]
    return {
        "": _markdown(columns, "abilities, calibration tasks", _changes(result)),
        "-predictors": _markdown(columns, "predictor, items", _errors(result)),
    }


def _changes(result: PredictionResult) -> Iterator[tuple[str, dict[tuple[str, int], str]]]:
    """Give each item model, number of abilities and of calibration tasks its changes by set and budget."""
    for model, names in (("MIRT", ()), ("nested", NESTED)):
        found = percent_of_one(result, assessors_by_dims(result, names))
        for (n_dims, n_tasks), part in found.sort("n_dims", "n_calibration_tasks").group_by(
            "n_dims", "n_calibration_tasks", maintain_order=True
        ):
            cells = part.select("set", "budget", "percent", "percent_se").rows()
            yield (
                f"{model}, {n_dims}, {n_tasks}",
                {(which, budget): f"{value:+.0f} ± {error:.0f}" for which, budget, value, error in cells},
            )


def _errors(result: PredictionResult) -> Iterator[tuple[str, dict[tuple[str, int], str]]]:
    """Give each predictor its errors in points by set and budget, with the most calibration tasks."""
    most = max(result.curves["n_calibration_tasks"].to_list())
    curves = result.curves.filter(n_calibration_tasks=most)
    for way in WAYS:
        for predictor in PREDICTORS:
            part = curves.filter(assessor=f"{predictor}, {way}")
            cells = part.select("set", "budget", pl.col("mae", "mae_se") * 100.0).rows()
            if cells:
                yield (
                    f"{predictor}, {way}",
                    {(which, budget): f"{value:.1f} ± {error:.1f}" for which, budget, value, error in cells},
                )


def _markdown(columns: list[tuple[str, int]], head: str, rows: Iterator[tuple[str, dict[tuple[str, int], str]]]) -> str:
    names = " | ".join(f"{which}: {budget}" for which, budget in columns)
    lines = [f"| {head} | {names} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {label} | {' | '.join(cells.get(column, '-') for column in columns)} |" for label, cells in rows]
    return "\n".join(lines)


def _report(message: str, fraction: float) -> None:
    print(f"{100.0 * fraction:.0f} % {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
