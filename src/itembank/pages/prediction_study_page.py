"""The page of a prediction study: how well few answers to some tasks predict these and others, and at what cost."""

import numpy as np
import polars as pl

from itembank.pages.blocks import Answer, Answers, Chart, Column, Data, Section, Table, Text
from itembank.pages.common import plural
from itembank.pages.panels import across, panels
from itembank.pages.render import Page
from itembank.pages.study_charts import curves, errors_up_to, grey_note, shades, size_axis
from itembank.pages.study_numbers import IN_COLOUR, OTHERS, TWO_ERRORS
from itembank.pages.study_page import manifest_provenance
from itembank.studies.results import PredictionResult

WORDS = {"interpolation": "tasks that were asked", "extrapolation": "tasks that were not asked"}
PANEL = {"panel": "Tasks"}


def prediction_study_page(result: PredictionResult, *, title: str = "", command: str = "") -> Page:
    """Return the page of a prediction study."""
    curve = _with_panels(result.curves)
    order = _order(curve)
    coloured = order if len(order) <= IN_COLOUR + 1 else order[:IN_COLOUR]
    data = _data(curve, coloured)
    found = [_best(curve, which) for which in curve["set"].unique(maintain_order=True)]
    sections = [Section("Errors", (_by_items(curve, data, order, coloured, found),), _what(result))]
    if result.unit:
        sections.append(Section("Costs", (_by_cost(result, data, order, coloured), *_cost_tables(result))))
    sections.append(Section("All numbers", (_numbers(curve, result.unit), _tasks(result))))
    return Page(
        title=title or f"Prediction study {result.manifest.study['name']}",
        kind="Prediction study",
        lead=(Text(" ".join(_sentence(one) for one in found)), Answers(tuple(_answer(one) for one in found))),
        sections=tuple(sections),
        provenance=manifest_provenance(result.manifest),
        command=command,
    )


def _what(result: PredictionResult) -> str:
    return (
        f"Every assessor is asked a few items and predicts the score on the held-out items of "
        f"{plural(result.tasks.height, 'task')}; errors are in points, over models that it was not trained on."
    )


def _with_panels(curves_table: pl.DataFrame) -> pl.DataFrame:
    """Return the curves in points, with the panel of each row: which tasks are predicted, and of how many asked."""
    n_asked = pl.col("n_calibration_tasks")
    words = pl.col("set").replace(WORDS)
    asked = pl.when(n_asked == 1).then(pl.lit("1 task asked")).otherwise(pl.format("{} tasks asked", n_asked))
    return curves_table.with_columns(
        pl.col("mae", "mae_se", "bias") * 100.0, panel=pl.concat_str(asked, pl.lit(": "), words)
    )


def _order(curve: pl.DataFrame) -> tuple[str, ...]:
    """Return the assessors by their error against the mean of each panel and budget, the best first."""
    relative = pl.col("mae") / pl.col("mae").mean().over("panel", "budget")
    means = (
        curve.with_columns(relative=relative).group_by("assessor", maintain_order=True).agg(pl.col("relative").mean())
    )
    return tuple(means.sort("relative", maintain_order=True, nulls_last=True)["assessor"].to_list())


def _data(curve: pl.DataFrame, coloured: tuple[str, ...]) -> Data:
    names = curve["panel"].unique(maintain_order=True).to_list()
    spread = curve["mae_se"].fill_nan(0.0)
    columns = {
        "panel": curve["panel"],
        "panel_place": [names.index(name) for name in curve["panel"]],
        "method": curve["assessor"],
        "shade": [name if name in coloured else OTHERS for name in curve["assessor"]],
        "size": curve["budget"],
        "cost": curve["cost"],
        "error": curve["mae"],
        "error_low": curve["mae"] - spread,
        "error_high": curve["mae"] + spread,
    }
    return Data("assessors", columns)


def _best(curve: pl.DataFrame, which: str) -> pl.DataFrame:
    """Return the assessors of one set at the middle budget and most tasks asked, the best first."""
    part = curve.filter(set=which)
    part = part.filter(n_calibration_tasks=part["n_calibration_tasks"].to_numpy().max())
    budgets = part["budget"].unique().sort()
    return part.filter(budget=budgets[len(budgets) // 2]).sort("mae", maintain_order=True)


def _sentence(best: pl.DataFrame) -> str:
    """Say which assessor was best on one set of tasks, and how many others are about as good."""
    first = best.row(0, named=True)
    gap = best["mae"] - first["mae"]
    error = (best["mae_se"].fill_nan(0.0) ** 2 + _known(first["mae_se"]) ** 2).sqrt()
    near = best.filter(gap <= TWO_ERRORS * error)["assessor"].to_list()[1:]
    tied = f"; {plural(len(near), 'other')} within two standard errors of it" if near else ""
    return (
        f"With {plural(first['budget'], 'item')} of {plural(first['n_calibration_tasks'], 'task')}, "
        f"{first['assessor']} predicts {WORDS[first['set']]} best: {first['mae']:.1f} points off on average{tied}."
    )


def _answer(best: pl.DataFrame) -> Answer:
    first = best.row(0, named=True)
    error = (
        f"± {first['mae_se']:.2f} over {plural(first['n_partitions'], 'partition')}"
        if np.isfinite(first["mae_se"])
        else ""
    )
    asked = f"{plural(first['budget'], 'item')} of {plural(first['n_calibration_tasks'], 'task')}"
    words = f"by {first['assessor']} with {asked}"
    return Answer(f"Smallest mean error, {WORDS[first['set']]}", f"{first['mae']:.1f} points", error, words)


def _known(value: float) -> float:
    return value if np.isfinite(value) else 0.0


def _by_items(
    curve: pl.DataFrame, data: Data, order: tuple[str, ...], coloured: tuple[str, ...], found: list[pl.DataFrame]
) -> Chart:
    sizes = curve["budget"].unique().sort().to_list()
    shade = shades(coloured, is_cut=len(coloured) < len(order))
    scale, cut = errors_up_to(data)
    x, y, band = size_axis(sizes, "Items asked"), ("error", "Mean error (points)", ""), ("error_low", "error_high")
    parts = curves(x, y, shade, band=band, scale=scale, panel=PANEL)
    return Chart(
        f"{order[0]} has the smallest errors over all panels",
        panels("panel", "panel_place", *parts, height=230),
        (data,),
        " ".join(_sentence(one) for one in found),
        note="Bars are a standard error up and down over partitions of models and items."
        + grey_note(len(coloured), len(order))
        + cut,
    )


def _by_cost(result: PredictionResult, data: Data, order: tuple[str, ...], coloured: tuple[str, ...]) -> Chart:
    shade = shades(coloured, is_cut=len(coloured) < len(order))
    x = across("cost", f"Spent on a model ({result.unit})", form="~g", scale={"type": "log"}, axis={"tickCount": 4})
    scale, cut = errors_up_to(data)
    parts = curves(x, ("error", "Mean error (points)", ""), shade, scale=scale, panel=PANEL)
    reached = result.costs.filter(pl.col("ratio_to_reference").is_not_nan()).sort("ratio_to_reference")
    words = "; ".join(
        f"{name} reaches {100.0 * error:.1f} points for {ratio:.2f} times what the reference spends"
        for name, error, ratio in reached.head(5).select("assessor", "mae", "ratio_to_reference").rows()
    )
    return Chart(
        "What an error costs",
        panels("panel", "panel_place", *parts, height=230),
        (data,),
        f"Errors against what was spent on a model. {words}.",
        note=f"Each line goes through the same budgets in items.{grey_note(len(coloured), len(order))}{cut}",
    )


def _cost_tables(result: PredictionResult) -> tuple[Table, ...]:
    reach = (
        Column("n_calibration_tasks", "Tasks asked", "count", has_menu=True),
        Column("set", "Predicted", has_menu=True),
        Column("level", "Error to reach", has_menu=True),
        Column("mae", "Error (points)", "number", digits=2),
        Column("assessor", "Assessor", has_menu=True),
        Column("cost", f"Costs ({result.unit})", "number", digits=2),
        Column(
            "ratio",
            "Of not dividing by cost",
            "number",
            digits=2,
            explanation="Its cost over that of the same assessor that does not divide by cost",
        ),
        Column(
            "ratio_to_reference",
            "Of the reference",
            "number",
            digits=2,
            explanation="Its cost over that of random items",
        ),
    )
    at_cost = (
        Column("n_calibration_tasks", "Tasks asked", "count", has_menu=True),
        Column("set", "Predicted", has_menu=True),
        Column("reference_budget", "Items of the reference", "count", has_menu=True),
        Column("cost", f"Spent ({result.unit})", "number", digits=2),
        Column("assessor", "Assessor", has_menu=True),
        Column("mae", "Mean error (points)", "number", digits=2),
        Column("mae_se", "±", "number", digits=2, explanation="Standard error over partitions"),
    )
    return (
        _table("Cost of reaching an error", "reach", result.costs.filter(pl.col("cost").is_not_nan()), reach),
        _table("Errors at what the reference spends", "at-cost", result.at_cost, at_cost),
    )


def _table(caption: str, name: str, rows: pl.DataFrame, columns: tuple[Column, ...]) -> Table:
    scaled = rows.with_columns(pl.col("^mae.*$") * 100.0, pl.col("set").replace(WORDS))
    return Table(caption, Data(name, {one.name: scaled[one.name] for one in columns}), columns)


def _numbers(curve: pl.DataFrame, unit: str) -> Table:
    columns = (
        Column("panel", "Tasks", has_menu=True),
        Column("assessor", "Assessor", has_menu=True),
        Column("budget", "Items", "count", has_menu=True),
        Column("mae", "Mean error (points)", "number", digits=2),
        Column("mae_se", "±", "number", digits=2, explanation="Standard error over partitions"),
        Column("bias", "Bias", "number", digits=2, explanation="Mean of prediction less truth, in points"),
        *((Column("cost", f"Cost ({unit})", "number", digits=2),) if unit else ()),
        Column("n_partitions", "Partitions", "count"),
    )
    data = Data("prediction-numbers", {one.name: curve[one.name] for one in columns})
    return Table("Every assessor at every budget", data, columns, n_shown=20)


def _tasks(result: PredictionResult) -> Table:
    columns = (
        Column("task", "Task"),
        Column("n_items", "Items", "count"),
        Column("n_held_out", "Held out", "count", explanation="Items that are predicted and never asked"),
    )
    return Table("Tasks", Data("tasks", {one.name: result.tasks[one.name] for one in columns}), columns)
