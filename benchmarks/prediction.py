"""Tables of a prediction study: ``python -m benchmarks.prediction SET [--figure KIND=FILE] [-o DIR]``.

SET names a file benchmarks/studies/prediction_SET.toml. The study runs in DIR/study; stopped, it goes on. Its tables
are written beside it, each for the most calibration tasks of the study: the error of every assessor in points, paired
differences and, where items have costs, the cost of reaching the error of random items over the cost of these.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from itembank.pages.blocks import Chart
from itembank.responses.response_files import write_responses
from itembank_studies.charts.prediction_charts import prediction_chart
from itembank_studies.prediction.error_curves import differences
from itembank_studies.results import PredictionResult
from itembank_studies.run import run_prediction
from itembank_studies.simulation.simulate import simulate
from itembank_studies.simulation.simulation_specs import SimulationSpec
from itembank_studies.study_files import load_prediction

STUDIES = Path(__file__).parent / "studies"
SETS = ("extrapolation", "interpolation")
BUDGETS = (4, 16, 64)
PAIRS = (
    ("nested, random", "mirt, random"),
    ("nested, adaptive v-optimal", "mirt, adaptive v-optimal"),
    ("nested-4, adaptive v-optimal", "nested, adaptive v-optimal"),
    ("nested, adaptive v-optimal", "nested, v-optimal"),
    ("nested, v-optimal", "nested, random"),
    ("nested, adaptive v-optimal", "2pl, adaptive fisher"),
    ("by-task, adaptive v-optimal", "nested-4, adaptive v-optimal"),
)
"""The first less the second, paired within partitions."""
SHOWN = (
    *("task-mean-eb, random", "ridge, random", "2pl, random", "mirt, random", "nested, random", "nested-4, random"),
    *("nested, uniform", "nested, anchor-binary", "nested, anchor-irt", "nested, v-optimal", "2pl, adaptive fisher"),
    *("mirt, adaptive v-optimal", "nested, adaptive v-optimal", "nested-4, adaptive v-optimal"),
    "by-task, adaptive v-optimal",
)
SHOWN_COSTS = (
    *("nested, min-cost", "nested, v-optimal", "nested, adaptive v-optimal", "nested, adaptive v-optimal/cost"),
    "by-task, adaptive v-optimal/cost",
)
"""Assessors with a row; `itembank study table DIR/study` has all."""
DRAWN = (
    *("task-mean-eb, random", "nested, random", "nested, v-optimal", "2pl, adaptive fisher"),
    *("mirt, adaptive v-optimal", "nested, adaptive v-optimal", "nested, adaptive v-optimal/cost"),
)
SIMULATED_MODELS = 75


def main() -> None:
    arguments = _arguments()
    output: Path = arguments.output or Path("benchmarks/results") / f"prediction-{arguments.set}"
    if arguments.set == "simulated":
        os.environ["ITEMBANK_SIMULATED"] = str(simulated_responses(output / "simulated"))
    spec = load_prediction(STUDIES / f"prediction_{arguments.set}.toml")
    result = run_prediction(spec, output / "study", n_jobs=arguments.jobs, progress=_report)
    for name, table in tables(result).items():
        path = output / f"prediction-{arguments.set}{name}.md"
        path.write_text(table, encoding="utf-8")
        print(f"\n{path.stem}\n\n{table}")
    for figure in arguments.figure:
        kind, _, path = figure.partition("=")
        _chart(result, kind).save(path)


def _chart(result: PredictionResult, kind: str) -> Chart:
    if kind not in {"items", "cost"}:
        return prediction_chart(result, kind, assessors=("nested, adaptive v-optimal", "2pl, adaptive fisher"))
    known = result.curves["assessor"].unique()
    most = max(result.curves["n_calibration_tasks"].to_list())
    return prediction_chart(result, kind, n_tasks=[most], assessors=[one for one in DRAWN if one in known])


def simulated_responses(folder: Path) -> Path:
    """Make data of the second paper's size, once."""
    path = folder / "responses.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_responses(simulate(SimulationSpec(SIMULATED_MODELS), 0).responses, path)
    return folder


def tables(result: PredictionResult) -> dict[str, str]:
    """Return the tables by the end of their names."""
    most = max(result.curves["n_calibration_tasks"].to_list())
    errors = _cells(result.curves.filter(n_calibration_tasks=most), "mae", SHOWN)
    found = {
        "": _markdown(errors, factor=100.0, form=".1f", least=True),
        "-differences": _markdown(pl.concat(_differences(result, most)), factor=100.0, form="+.1f"),
    }
    if result.unit:
        found["-costs"] = _markdown(_costs(result.costs.filter(n_calibration_tasks=most)))
    return found


def _differences(result: PredictionResult, n_tasks: int) -> Iterator[pl.DataFrame]:
    known = set(result.curves["assessor"])
    for one, other in PAIRS:
        if {one, other} <= known:
            found = differences(result.errors, other).filter(n_calibration_tasks=n_tasks)
            yield _cells(found, "difference", [one]).with_columns(row=pl.lit(f"{one}, less {other}"))


def _costs(costs: pl.DataFrame) -> pl.DataFrame:
    """Cost of reaching the error of random items over their cost, and over that of the same assessor without /cost."""
    budget = pl.col("level").str.strip_prefix("reference at ").cast(pl.Int32, strict=False)
    costs = costs.with_columns(budget=budget).drop_nulls("budget")
    own = _cells(costs, "ratio", SHOWN_COSTS).with_columns(row=pl.format("{} over the same without /cost", "row"))
    both = pl.concat([_cells(costs, "ratio_to_reference", SHOWN_COSTS), own])
    return both.filter(pl.col("value").is_not_nan())


def _cells(table: pl.DataFrame, metric: str, rows: Sequence[str]) -> pl.DataFrame:
    cells = table.select("set", "budget", row="assessor", value=metric, error=f"{metric}_se")
    return cells.filter(pl.col("row").is_in(rows)).sort(pl.col("row").cast(pl.Enum(rows)), maintain_order=True)


def _markdown(cells: pl.DataFrame, *, factor: float = 1.0, form: str = ".2f", least: bool = False) -> str:
    """Rows down, items of both sets across; the least of a column in bold where asked for."""
    columns = [(one, n) for one in SETS for n in BUDGETS if cells.filter(set=one, budget=n).height]
    best = {column: cells.filter(set=column[0], budget=column[1])["value"].min() for column in columns}
    lines = ["| items | " + " | ".join(f"{one}: {n}" for one, n in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for (row,), part in cells.group_by("row", maintain_order=True):
        known = {(one, n): (value, error) for one, n, _, value, error in part.iter_rows()}
        shown = []
        for column in columns:
            value, error = known.get(column, (np.nan, np.nan))
            text = f"{factor * value:{form}} ± {factor * error:{form.lstrip('+')}}" if np.isfinite(value) else "-"
            shown.append(f"**{text}**" if least and value == best[column] else text)
        lines.append(f"| {row} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _report(message: str, fraction: float) -> None:
    print(f"{100.0 * fraction:.0f} % {message}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "set", choices=sorted(path.stem.partition("_")[2] for path in STUDIES.glob("prediction_*.toml"))
    )
    parser.add_argument("--figure", action="append", default=[], metavar="KIND=FILE")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
