"""Charts of a prediction study: how well few answers to some tasks predict these and others, and at what cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import SOLID, Spec, beside, marks, nominal, number, of, panel, panels, ruled, shade, span
from itembank.pages.theme import points
from itembank.tables import plural
from itembank_studies.charts.study_charts import (
    IN_COLOUR,
    OTHERS,
    by_relative_error,
    curves,
    errors_up_to,
    grey_note,
    shades,
    size_axis,
)
from itembank_studies.prediction.error_curves import SETS, errors_by
from itembank_studies.results import PredictionResult, assessors_by_dims, percent_of_one

WORDS = {"interpolation": "tasks that were asked", "extrapolation": "tasks that were not asked"}
KINDS = ("items", "cost", "tasks", "models", "dims")
MOST_BARS = 80
"""Tasks or models of which two assessors are compared; of more, those with the largest differences."""


@dataclass(frozen=True, slots=True)
class AssessorCurves:
    """Errors of assessors in points, as the charts of a study share them."""

    curve: pl.DataFrame  # As `PredictionResult.curves`, in points, with the panel of each row
    order: tuple[str, ...]  # Assessors, the best first; those in colours of their own
    coloured: tuple[str, ...]
    data: Data

    @classmethod
    def of(cls, result: PredictionResult) -> Self:
        """Take the curves of a study."""
        curve = _panelled(result.curves).with_columns(pl.col("mae", "mae_se", "bias") * 100.0)
        order = by_relative_error(curve, "assessor", "panel")
        coloured = order if len(order) <= IN_COLOUR + 1 else order[:IN_COLOUR]
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
        return cls(curve, order, coloured, Data("assessors", columns))

    @property
    def best(self) -> list[pl.DataFrame]:
        """Assessors of each set at the middle budget and most tasks asked, the best first."""
        return [best_assessors(self.curve, which) for which in self.curve["set"].unique(maintain_order=True)]

    def errors(self, x: Spec, *, has_bars: bool = False) -> tuple[Spec, str]:
        """Return the errors along a channel, a panel a set of tasks, and words on what is grey or cut."""
        color = shades(self.coloured, is_cut=len(self.coloured) < len(self.order))
        scale, cut = errors_up_to(self.data)
        y = number("error", "Mean error (points)", scale=scale)
        parts = curves(x, y, color, "error" if has_bars else "", panel="Tasks")
        grey = grey_note(len(self.coloured), len(self.order))
        return panels("panel", "panel_place", *parts, height=230), f"{grey}{cut}"


def errors_by_items_chart(drawn: AssessorCurves) -> Chart:
    """Draw errors against the number of items asked."""
    spec, cut = drawn.errors(size_axis(drawn.curve["budget"].unique().sort().to_list(), "Items asked"), has_bars=True)
    return Chart(
        f"{drawn.order[0]} has the smallest errors over all panels",
        spec,
        (drawn.data,),
        " ".join(best_words(one) for one in drawn.best),
        note=f"Bars are ± one standard error over partitions of models and items.{cut}",
    )


def errors_by_cost_chart(result: PredictionResult, drawn: AssessorCurves) -> Chart:
    """Draw errors against what was spent on a model."""
    spec, cut = drawn.errors(number("cost", f"Spent on a model ({result.unit})", "~g", log=True, tickCount=4))
    reached = result.costs.filter(pl.col("ratio_to_reference").is_not_nan()).sort("ratio_to_reference")
    words = "; ".join(
        f"{name} reaches {100.0 * error:.1f} points for {ratio:.2f} times what the reference spends"
        for name, error, ratio in reached.head(5).select("assessor", "mae", "ratio_to_reference").rows()
    )
    return Chart(
        "What an error costs",
        spec,
        (drawn.data,),
        f"Errors against what was spent on a model. {words}.",
        note=f"Each line goes through the same budgets in items.{cut}",
    )


def _panelled(table: pl.DataFrame) -> pl.DataFrame:
    """Say of each row which tasks are predicted, and of how many asked: its panel."""
    n_asked = pl.col("n_calibration_tasks")
    words = pl.col("set").replace(WORDS)
    asked = pl.when(n_asked == 1).then(pl.lit("1 task asked")).otherwise(pl.format("{} tasks asked", n_asked))
    return table.with_columns(panel=pl.concat_str(asked, pl.lit(": "), words))


def best_assessors(curve: pl.DataFrame, which: str) -> pl.DataFrame:
    """Return the assessors of one set at the middle budget and most tasks asked, the best first."""
    part = curve.filter(set=which)
    part = part.filter(n_calibration_tasks=part["n_calibration_tasks"].to_numpy().max())
    budgets = part["budget"].unique().sort()
    return part.filter(budget=budgets[len(budgets) // 2]).sort("mae", maintain_order=True)


def best_words(best: pl.DataFrame) -> str:
    """Say which assessor was best on one set of tasks, and how many others are about as good."""
    first = best.row(0, named=True)
    gap = best["mae"] - first["mae"]
    error = (best["mae_se"].fill_nan(0.0) ** 2 + np.nan_to_num(first["mae_se"]) ** 2).sqrt()
    near = best.filter(gap <= 2.0 * error)["assessor"].to_list()[1:]
    tied = f"; {plural(len(near), 'other')} within two standard errors of it" if near else ""
    return (
        f"With {plural(first['budget'], 'item')} of {plural(first['n_calibration_tasks'], 'task')}, "
        f"{first['assessor']} predicts {WORDS[first['set']]} best: {first['mae']:.1f} points off on average{tied}."
    )


def prediction_chart(
    result: PredictionResult,
    kind: str,
    *,
    sets: Sequence[str] = (),
    n_tasks: Sequence[int] = (),
    assessors: Sequence[str] = (),
    budget: int | None = None,
) -> Chart:
    """Draw one of the charts of a prediction study.

    Parameters
    ----------
    result : PredictionResult
    kind : {'items', 'cost', 'tasks', 'models', 'dims'}
        Error against the number of items or the cost (WILD Figures 2, 3, 6, 10); two assessors compared task by task or
        model by model (WILD Figures 12 to 15); error against the number of abilities, in percent of that with one (WILD
        Figure 8).
    sets, n_tasks, assessors : sequences
        Which to draw; all if empty. 'tasks' and 'models' take one set (extrapolation), one number of calibration tasks
        (the largest) and two assessors (the first and the last that adapt). 'dims' takes assessors that differ in
        nothing but the number of abilities: by default item model 'mirt' with random items.
    budget : int or None
        Of 'tasks' and 'models'; the middle one if None.

    Raises
    ------
    ParameterError
        For something that the study does not have, or a cost that it does not know.
    """
    if kind not in KINDS:
        raise ParameterError(f"kind of a figure must be one of {shown(KINDS)}, got {kind!r}.")
    _check("assessors", assessors, [assessor.name for assessor in result.assessors])
    _check("sets", sets, SETS)
    counts = result.curves["n_calibration_tasks"].unique().sort().to_list()
    _check("n_tasks", n_tasks, counts)
    if kind in {"items", "cost"}:
        if kind == "cost" and not result.unit:
            raise ParameterError("the study names no cost to draw errors against. Draw them against items.")
        wanted = {"set": sets, "n_calibration_tasks": n_tasks, "assessor": assessors}
        tables = {"curves": result.curves, "costs": result.costs}
        for column, names in wanted.items():
            if names:
                tables = {
                    name: table.filter(pl.col(column).is_in(list(names))) if column in table.columns else table
                    for name, table in tables.items()
                }
        result = replace(result, curves=tables["curves"], costs=tables["costs"])
        drawn = AssessorCurves.of(result)
        return errors_by_items_chart(drawn) if kind == "items" else errors_by_cost_chart(result, drawn)
    if kind == "dims":
        return _dims(result, sets or SETS, n_tasks or counts, assessors)
    budgets = result.curves["budget"].unique().sort().to_list()
    if budget is None:
        budget = budgets[len(budgets) // 2]
    _check("budget", [budget], budgets)
    most = (n_tasks or counts)[-1]
    pair = tuple(assessors) if assessors else _two_adaptive(result)
    if len(pair) != 2:
        raise ParameterError(f"two assessors are compared, got {len(pair)}: {shown(pair)}. Name two.")
    return _pair(result, kind, pair, n_tasks=most, which=(sets or SETS)[-1], budget=budget)


def _pair(
    result: PredictionResult, kind: str, pair: tuple[str, ...], *, n_tasks: int, which: str, budget: int
) -> Chart:
    """Draw the differences of two assessors by task or model, and the errors of both beside them."""
    first, second = pair
    column = "task" if kind == "tasks" else "model_id"
    table = errors_by(result.predictions, column, (first, second), n_tasks=n_tasks, which=which, budget=budget)
    n_better, n_all = int((table["difference"] > 0.0).sum()), table.height
    gain = points(float(table["difference"].mean()), is_signed=True)  # type: ignore[arg-type]
    if n_all > MOST_BARS:  # the ends tell most
        table = pl.concat([table.head(MOST_BARS // 2), table.tail(MOST_BARS // 2)])
    table = table.reverse()
    difference, doubt = (100.0 * table[name].to_numpy() for name in ("difference", "difference_se"))
    doubt = np.nan_to_num(doubt)
    data = Data(
        "pair",
        {
            "name": table["name"],
            "place": np.arange(table.height),
            "difference": difference,
            "low": difference - doubt,
            "high": difference + doubt,
            "better": [second if one > 0.0 else first for one in difference],
            "first": 100.0 * table["first"].to_numpy(),
            "second": 100.0 * table["second"].to_numpy(),
        },
    )
    color = shade("better", {second: "@main", first: "@other"}, title="Errs less", labelLimit=220)
    row, bare = nominal("name", "place", labelLimit=170, grid=False), nominal("name", "place", labels=False)
    x, error = number("difference", "Difference (points)"), number("first", "Mean error (points)")
    left = (
        marks("bar", x, row, color=color),
        marks("rule", span(x), row, color="@ink"),
        ruled("x", 0.0, strokeDash=SOLID),
    )
    right = (
        marks("rule", span(error, "first", "second"), bare, color="@soft"),
        marks("point", error, bare, color="@other", opacity=1),
        marks("point", of(error, "second"), bare, color="@main", opacity=1),
    )
    height = 16 * table.height
    noun = "task" if kind == "tasks" else "model"
    words = (
        f"{second} errs less on {n_better} of {plural(n_all, noun)}; the mean difference is {gain} "
        f"({which}, {plural(n_tasks, 'calibration task')}, {plural(budget, 'item')})"
    )
    return Chart(
        words,
        beside(panel(230, height, *left), panel(230, height, *right)),
        (data,),
        f"{words}.",
        note=f"Left: error of {first} minus that of {second}, ± one standard error. Right: both errors.",
    )


def _dims(result: PredictionResult, sets: Sequence[str], n_tasks: Sequence[int], assessors: Sequence[str]) -> Chart:
    """Draw the change of the error against the number of abilities: a line a budget, a panel a set and task count.

    Assessors differ in the number of abilities alone, and one of them has one. By default those of item model 'mirt',
    and the one with one ability, that predict from random items.
    """
    table = percent_of_one(result, assessors_by_dims(result, assessors))
    table = table.filter(pl.col("set").is_in(list(sets)), pl.col("n_calibration_tasks").is_in(list(n_tasks)))
    key = ["n_calibration_tasks", "set", "budget"]
    zero = table.select(key).unique(maintain_order=True)
    zero = zero.with_columns(n_dims=pl.lit(1, pl.Int64), percent=pl.lit(0.0), percent_se=pl.lit(0.0))
    rows = _panelled(pl.concat([zero, table]).sort(*key, "n_dims"))
    budgets = rows["budget"].unique().sort().to_list()
    names = rows["panel"].unique(maintain_order=True).to_list()
    spread = rows["percent_se"].fill_nan(0.0)
    data = Data(
        "abilities",
        {
            "panel": rows["panel"],
            "place": [names.index(name) for name in rows["panel"]],
            "asked": [plural(budget, "item") for budget in rows["budget"]],
            "n_dims": rows["n_dims"],
            "percent": rows["percent"],
            "low": rows["percent"] - spread,
            "high": rows["percent"] + spread,
        },
    )
    color = shade("asked", [plural(budget, "item") for budget in budgets])
    dims = rows["n_dims"].unique().to_list()
    x, y = (
        number("n_dims", "Abilities", zero=False, tickMinStep=1, values=dims),
        number("percent", "Change of error (%)"),
    )
    parts = (
        ruled("y", 0.0, strokeDash=SOLID),
        marks("rule", x, span(y), color=color),
        marks("line", x, y, color=color),
        marks("point", x, y, color=color),
    )
    words = _least_words(table, sets[-1], n_tasks[-1])
    return Chart(
        words,
        panels("panel", "place", *parts, height=190),
        (data,),
        f"{words}.",
        note="Error with so many abilities against that with one, from the same items; items of so many tasks "
        "calibrated. Bars: ± one standard error over partitions.",
    )


def _least_words(table: pl.DataFrame, which: str, n_tasks: int) -> str:
    """Say which number of abilities errs least with few and with many items."""
    part = table.filter(pl.col("set") == which, pl.col("n_calibration_tasks") == n_tasks)
    budgets = part["budget"].unique().sort().to_list()
    said = []
    for budget in dict.fromkeys((budgets[0], budgets[-1])):
        best = part.filter(pl.col("budget") == budget).sort("percent").row(0, named=True)
        change = f"{best['n_dims']} abilities ({best['percent']:+.0f} %)" if best["percent"] < 0.0 else "one ability"
        said.append(f"{change} from {plural(budget, 'item')}")
    return f"On {which} tasks the error is least with {', with '.join(said)}"


def _two_adaptive(result: PredictionResult) -> tuple[str, ...]:
    """Fisher information in one dimension, and V-optimality, where the study has them (WILD appendix H)."""
    known = [one for one in result.assessors if one.paradigm == "adaptation"]
    plain = {one.selector: one.name for one in reversed(known) if not one.per_cost}
    if {"fisher", "v-optimal"} <= set(plain):
        return plain["fisher"], plain["v-optimal"]
    names = [assessor.name for assessor in result.assessors]
    raise ParameterError(
        "two assessors are compared, and the study has no adaptive ones by 'fisher' and by 'v-optimal' to take "
        f"unasked. Name two assessors (--assessor) of {shown(names, limit=len(names))}."
    )


def _check(what: str, given: Sequence[object], known: Sequence[object]) -> None:
    unknown = [one for one in given if one not in known]
    if unknown:
        raise ParameterError(f"{what} must be among {shown(list(known), len(known))}, got {shown(unknown)}.")


def charts_of_prediction(result: PredictionResult) -> tuple[Chart, ...]:
    """Draw errors against items, and against what they cost where the study names a cost."""
    drawn = AssessorCurves.of(result)
    costs = (errors_by_cost_chart(result, drawn),) if result.unit else ()
    return errors_by_items_chart(drawn), *costs
