"""What `itembank study` prints and draws of prediction studies."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank_studies
from itembank.cli.options import write_figure
from itembank.cli.render import TABLE, Printer, print_object

if TYPE_CHECKING:
    import polars as pl

    from itembank_studies.results import PredictionResult

Row = dict[str, Any]


def wide(
    table: "pl.DataFrame", keys: Sequence[str], column: Callable[[Row], str], cell: Callable[[Row], str]
) -> list[Row]:
    """One row for all rows with the same keys; each of them gives a cell, and says in which column."""
    rows: dict[tuple[object, ...], Row] = {}
    for row in table.iter_rows(named=True):
        names = {key: row[key] for key in keys}
        rows.setdefault(tuple(names.values()), names)[column(row)] = cell(row)
    return list(rows.values())


def number(row: Row, metric: str, *, scale: float = 1.0, digits: int | None = None) -> str:
    """Write a metric of a row and, if there is one, its standard error; three figures if no digits are given."""
    value, error = row[metric], row.get(f"{metric}_se")
    if value is None or math.isnan(value):
        return "-"
    size = abs(scale * value)
    form = f",.{0 if size >= 100.0 else 1 if size >= 10.0 else 2}f" if digits is None else f".{digits}f"
    text = f"{scale * value:{form}}"
    return text if error is None or math.isnan(error) else f"{text} ± {scale * error:{form}}"


SETS = ("interpolation", "extrapolation")
COMPARISON_KINDS = ("error", "rank", "coverage", "width", "spread")
PREDICTION_KINDS = ("items", "cost", "tasks", "models", "dims")

PARTS = ("tasks", "errors", "cost", "at-cost", "reach")
"""Tables of a prediction study."""


def check_kind(kind: str, known: tuple[str, ...]) -> None:
    """Refuse figures of studies of the other kind."""
    if kind not in known:
        raise click.BadParameter(
            f"must be one of {', '.join(known)} for this study, got {kind!r}.", param_hint="--kind"
        )


def print_prediction(
    folder: Path, parts: tuple[str, ...], *, sets: tuple[str, ...], n_tasks: tuple[int, ...], out: Printer
) -> None:
    """Print tasks, errors and costs at each budget, errors at given costs and costs of errors."""
    result = _loaded(folder, n_tasks)
    if not out.is_table:
        of_part = {"tasks": result.tasks, "at-cost": result.at_cost, "reach": result.costs}
        tables = {part: of_part.get(part, result.curves) for part in parts or ("errors",)}
        found = {part: _chosen(table, sets, n_tasks).to_dicts() for part, table in tables.items()}
        if out.is_json:
            print_object(found, "prediction")
        for printed in found.values() if out.is_csv else ():
            out.rows(printed, "prediction")
        return
    curves = _chosen(result.curves, sets, n_tasks)
    known = PARTS if result.unit else PARTS[:2]
    for part in parts or known:
        if part == "tasks":
            TABLE.rows(result.tasks.to_dicts(), "prediction", title="tasks: items, and how many of them are held out")
        elif part == "cost":
            # the same for both sets
            for title, rows in _panels(curves.filter(curves["set"] == curves["set"][0])):
                words = f"cost of a test model in {result.unit}, {title.partition(', ')[2]}"
                TABLE.rows(_by_budget(rows, "cost"), "prediction", title=words)
        else:
            words, table = {
                "errors": ("mean absolute error in points", curves),
                "at-cost": ("mean absolute error in points at the cost of the reference", result.at_cost),
                "reach": ("cost of reaching an error", result.costs),
            }[part]
            for title, rows in _panels(_chosen(table, sets, n_tasks)):
                TABLE.rows(LAYOUTS[part](rows), "prediction", title=f"{words}, {title}")


def print_differences(
    folder: Path, against: str, *, sets: tuple[str, ...], n_tasks: tuple[int, ...], out: Printer
) -> None:
    """Print each assessor's error less that of one."""
    from itembank_studies.prediction.error_curves import differences

    result = _loaded(folder, n_tasks)
    table = _chosen(differences(result.errors, against), sets, n_tasks)
    if not out.is_table:
        out.rows(table.to_dicts(), "prediction-differences")
        return
    for title, part in _panels(table):
        words = f"mean absolute error minus that of {against}, in points"
        TABLE.rows(_by_budget(part, "difference"), "prediction-differences", title=f"{words}, {title}")


def _loaded(folder: Path, n_tasks: tuple[int, ...]) -> "PredictionResult":
    """Read a prediction study; refuse numbers of calibration tasks that it does not have."""
    result = itembank_studies.PredictionResult.load(folder)
    known = result.curves["n_calibration_tasks"].unique().sort().to_list()
    unknown = [n for n in n_tasks if n not in known]
    if unknown:
        listed = ", ".join(map(str, known))
        raise click.BadParameter(f"must be one of {listed}, got {unknown[0]}.", param_hint="--tasks")
    return result


def _chosen(table: "pl.DataFrame", sets: tuple[str, ...], n_tasks: tuple[int, ...]) -> "pl.DataFrame":
    """Keep some sets and numbers of calibration tasks; all where none is named."""
    for column, wanted in (("set", sets), ("n_calibration_tasks", n_tasks)):
        if wanted and column in table.columns:
            table = table.filter(table[column].is_in(wanted))
    return table


def _panels(table: "pl.DataFrame") -> list[tuple[str, "pl.DataFrame"]]:
    """Return one table a set and number of calibration tasks, with a title."""
    groups = table.group_by("n_calibration_tasks", "set", maintain_order=True)
    return [(f"{which}, calibration tasks: {n_tasks}", part) for (n_tasks, which), part in groups]


def _by_budget(table: "pl.DataFrame", metric: str) -> list[Row]:
    """One row an assessor, one column a budget."""
    scale, digits = (1.0, None) if metric == "cost" else (100.0, 2)
    cell = partial(number, metric=metric, scale=scale, digits=digits)
    return wide(table, ["assessor"], lambda row: f"n = {row['budget']}", cell)


def _by_cost(table: "pl.DataFrame") -> list[Row]:
    """One row an assessor, one column a cost."""
    cell = partial(number, metric="mae", scale=100.0, digits=2)
    return wide(table, ["assessor"], lambda row: f"{number(row, 'cost')} (n = {row['reference_budget']})", cell)


def _reached(table: "pl.DataFrame") -> list[Row]:
    """One row a level and assessor that reaches it."""
    return [
        {
            "level": row["level"],
            "error": number(row, "mae", scale=100.0, digits=2),
            "assessor": row["assessor"],
            "cost": number(row, "cost"),
            "of not dividing by cost": number(row, "ratio", digits=2),
            "of the reference": number(row, "ratio_to_reference", digits=2),
        }
        for row in table.iter_rows(named=True)
        if not math.isnan(row["cost"])
    ]


LAYOUTS: Mapping[str, Callable[["pl.DataFrame"], list[Row]]] = {
    "errors": partial(_by_budget, metric="mae"),
    "at-cost": _by_cost,
    "reach": _reached,
}
"""How the tables of errors and costs are laid out."""


def plot_prediction(
    folder: Path,
    kind: str,
    output: Path,
    *,
    sets: tuple[str, ...],
    n_tasks: tuple[int, ...],
    assessors: tuple[str, ...],
) -> None:
    """Draw one of the figures of a prediction study."""
    from itembank_studies.charts.prediction_charts import prediction_chart

    result = _loaded(folder, n_tasks)
    given = {"--tasks": n_tasks, "--set": sets}
    for name, values in given.items():
        if kind in {"tasks", "models"} and len(values) > 1:
            raise click.UsageError(f"{name} is given once with --kind {kind}, got {len(values)} values.")
    chart = prediction_chart(result, kind, sets=sets, n_tasks=n_tasks, assessors=assessors)
    write_figure(chart, output)
