"""The page of a prediction study: how well few answers to some tasks predict these and others, and at what cost."""

import numpy as np
import polars as pl

from itembank.pages.blocks import Answer, Answers, Column, Data, Section, Table, Text
from itembank.pages.common import plural
from itembank.pages.prediction_charts import (
    WORDS,
    AssessorCurves,
    best_words,
    errors_by_cost_chart,
    errors_by_items_chart,
)
from itembank.pages.render import Page
from itembank.pages.study_page import manifest_provenance
from itembank.studies.results import PredictionResult


def prediction_study_page(result: PredictionResult, *, title: str = "", command: str = "") -> Page:
    """Return the page of a prediction study."""
    drawn = AssessorCurves.of(result)
    sections = [Section("Errors", (errors_by_items_chart(drawn),), _what(result))]
    if result.unit:
        sections.append(Section("Costs", (errors_by_cost_chart(result, drawn), *_cost_tables(result))))
    sections.append(Section("All numbers", (_numbers(drawn.curve, result.unit), _tasks(result))))
    return Page(
        title=title or f"Prediction study {result.manifest.study['name']}",
        kind="Prediction study",
        lead=(
            Text(" ".join(best_words(one) for one in drawn.best)),
            Answers(tuple(_answer(one) for one in drawn.best)),
        ),
        sections=tuple(sections),
        provenance=manifest_provenance(result.manifest),
        command=command,
    )


def _what(result: PredictionResult) -> str:
    return (
        f"Every assessor is asked a few items and predicts the score on the held-out items of "
        f"{plural(result.tasks.height, 'task')}; errors are in points, over models that it was not trained on."
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
