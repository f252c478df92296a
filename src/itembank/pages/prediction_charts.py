"""Charts of a prediction study: errors by items and cost, two assessors side by side, items chosen, abilities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.blocks import Chart, Data
from itembank.pages.common import plural
from itembank.pages.panels import across, beside, colours, ends, in_order, marked, panel, panels, ruled
from itembank.pages.study_charts import curves, errors_up_to, grey_note, shades, size_axis
from itembank.pages.study_numbers import IN_COLOUR, OTHERS, TWO_ERRORS
from itembank.pages.theme import points
from itembank.studies.prediction.error_curves import SETS, errors_by
from itembank.studies.results import PredictionResult, assessors_by_dims, percent_of_one

WORDS = {"interpolation": "tasks that were asked", "extrapolation": "tasks that were not asked"}
PANEL = {"panel": "Tasks"}
KINDS = ("items", "cost", "tasks", "models", "choices", "dims")
MOST_BARS = 80
"""Tasks or models of which two assessors are compared; of more, those with the largest differences."""
MOST_CHOICES = 10


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
        curve = _with_panels(result.curves)
        order = _order(curve)
        coloured = order if len(order) <= IN_COLOUR + 1 else order[:IN_COLOUR]
        return cls(curve, order, coloured, _data(curve, coloured))

    @property
    def best(self) -> list[pl.DataFrame]:
        """Assessors of each set at the middle budget and most tasks asked, the best first."""
        return [best_assessors(self.curve, which) for which in self.curve["set"].unique(maintain_order=True)]

    @property
    def grey_note(self) -> str:
        """Say which assessors stand in grey."""
        return grey_note(len(self.coloured), len(self.order))


def errors_by_items_chart(drawn: AssessorCurves) -> Chart:
    """Draw errors against the number of items asked."""
    sizes = drawn.curve["budget"].unique().sort().to_list()
    shade = shades(drawn.coloured, is_cut=len(drawn.coloured) < len(drawn.order))
    scale, cut = errors_up_to(drawn.data)
    x, y, band = size_axis(sizes, "Items asked"), ("error", "Mean error (points)", ""), ("error_low", "error_high")
    parts = curves(x, y, shade, band=band, scale=scale, panel=PANEL)
    return Chart(
        f"{drawn.order[0]} has the smallest errors over all panels",
        panels("panel", "panel_place", *parts, height=230),
        (drawn.data,),
        " ".join(best_words(one) for one in drawn.best),
        note=f"Bars are a standard error up and down over partitions of models and items.{drawn.grey_note}{cut}",
    )


def errors_by_cost_chart(result: PredictionResult, drawn: AssessorCurves) -> Chart:
    """Draw errors against what was spent on a model."""
    shade = shades(drawn.coloured, is_cut=len(drawn.coloured) < len(drawn.order))
    x = across("cost", f"Spent on a model ({result.unit})", form="~g", scale={"type": "log"}, axis={"tickCount": 4})
    scale, cut = errors_up_to(drawn.data)
    parts = curves(x, ("error", "Mean error (points)", ""), shade, scale=scale, panel=PANEL)
    reached = result.costs.filter(pl.col("ratio_to_reference").is_not_nan()).sort("ratio_to_reference")
    words = "; ".join(
        f"{name} reaches {100.0 * error:.1f} points for {ratio:.2f} times what the reference spends"
        for name, error, ratio in reached.head(5).select("assessor", "mae", "ratio_to_reference").rows()
    )
    return Chart(
        "What an error costs",
        panels("panel", "panel_place", *parts, height=230),
        (drawn.data,),
        f"Errors against what was spent on a model. {words}.",
        note=f"Each line goes through the same budgets in items.{drawn.grey_note}{cut}",
    )


def _with_panels(curves_table: pl.DataFrame) -> pl.DataFrame:
    """Return the curves in points, with the panel of each row."""
    return _panelled(curves_table).with_columns(pl.col("mae", "mae_se", "bias") * 100.0)


def _panelled(table: pl.DataFrame) -> pl.DataFrame:
    """Say of each row which tasks are predicted, and of how many asked: its panel."""
    n_asked = pl.col("n_calibration_tasks")
    words = pl.col("set").replace(WORDS)
    asked = pl.when(n_asked == 1).then(pl.lit("1 task asked")).otherwise(pl.format("{} tasks asked", n_asked))
    return table.with_columns(panel=pl.concat_str(asked, pl.lit(": "), words))


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
    error = (best["mae_se"].fill_nan(0.0) ** 2 + _known(first["mae_se"]) ** 2).sqrt()
    near = best.filter(gap <= TWO_ERRORS * error)["assessor"].to_list()[1:]
    tied = f"; {plural(len(near), 'other')} within two standard errors of it" if near else ""
    return (
        f"With {plural(first['budget'], 'item')} of {plural(first['n_calibration_tasks'], 'task')}, "
        f"{first['assessor']} predicts {WORDS[first['set']]} best: {first['mae']:.1f} points off on average{tied}."
    )


def _known(value: float) -> float:
    return value if np.isfinite(value) else 0.0


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
    kind : {'items', 'cost', 'tasks', 'models', 'choices', 'dims'}
        Error against the number of items or the cost (WILD Figures 2, 3, 6, 10); two assessors compared task by task or
        model by model (WILD Figures 12 to 15); items chosen of each task (WILD Figure 11); error against the number of
        abilities, in percent of that with one (WILD Figure 8).
    sets, n_tasks, assessors : sequences
        Which to draw; all if empty. 'tasks' and 'models' take one set (extrapolation), one number of calibration tasks
        (the largest) and two assessors (the first and the last that adapt). 'dims' takes assessors that differ in
        nothing but the number of abilities: by default item model 'mirt' with random items.
    budget : int or None
        Of 'tasks', 'models' and 'choices'; the middle one if None.

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
        result = _part(result, {"set": sets, "n_calibration_tasks": n_tasks, "assessor": assessors})
        drawn = AssessorCurves.of(result)
        return errors_by_items_chart(drawn) if kind == "items" else errors_by_cost_chart(result, drawn)
    if kind == "dims":
        return _dims(result, sets or SETS, n_tasks or counts, assessors)
    budgets = result.curves["budget"].unique().sort().to_list()
    if budget is None:
        budget = budgets[len(budgets) // 2]
    _check("budget", [budget], budgets)
    most = (n_tasks or counts)[-1]
    if kind == "choices":
        return _choices(result, most, budget, assessors or _adaptive(result))
    pair = tuple(assessors) if assessors else _two_adaptive(result)
    if len(pair) != 2:
        raise ParameterError(f"two assessors are compared, got {len(pair)}: {shown(pair)}. Name two.")
    return _pair(result, kind, pair, n_tasks=most, which=(sets or SETS)[-1], budget=budget)


def _part(result: PredictionResult, wanted: dict[str, Sequence[object]]) -> PredictionResult:
    """Keep the curves and costs of some sets, numbers of tasks and assessors; all where none is named."""
    tables = {"curves": result.curves, "costs": result.costs}
    for column, names in wanted.items():
        if names:
            tables = {
                name: table.filter(pl.col(column).is_in(list(names))) if column in table.columns else table
                for name, table in tables.items()
            }
    return replace(result, curves=tables["curves"], costs=tables["costs"])


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
    legend = {"title": "Errs less", "orient": "top", "labelLimit": 220}
    scale = {"domain": [second, first], "range": ["@main", "@other"]}
    shade = {"field": "better", "type": "nominal", "scale": scale, "legend": legend}
    row, bare = in_order("name", "place", labelLimit=170, grid=False), in_order("name", "place", labels=False)
    x, error = across("difference", "Difference (points)"), across("first", "Mean error (points)")
    left = [
        marked("bar", {"y": row, "x": x, "color": shade}),
        marked("rule", {"y": row, **ends(x, along="x")}, color="@ink"),
        ruled("x", 0.0, strokeDash=[1, 0]),
    ]
    right = [
        marked("rule", {"y": bare, **ends(error, "first", "second", along="x")}, color="@soft"),
        marked("point", {"y": bare, "x": error}, color="@other", opacity=1),
        marked("point", {"y": bare, "x": {**error, "field": "second"}}, color="@main", opacity=1),
    ]
    height = 16 * table.height
    of = "task" if kind == "tasks" else "model"
    words = (
        f"{second} errs less on {n_better} of {plural(n_all, of)}; the mean difference is {gain} "
        f"({which}, {_tasks(n_tasks)}, {plural(budget, 'item')})"
    )
    return Chart(
        words,
        beside(panel(230, height, *left), panel(230, height, *right)),
        (data,),
        f"{words}.",
        note=f"Left: error of {first} less that of {second}, with one standard error to each side. Right: both errors.",
    )


def _choices(result: PredictionResult, n_tasks: int, budget: int, assessors: Sequence[str]) -> Chart:
    """Draw how many items each assessor takes of a task that it may take from, for the tasks it takes most of."""
    name, task = pl.col("assessor").cast(pl.String), pl.col("task").cast(pl.String)
    asked = pl.col("n_calibration_tasks") == n_tasks
    part = (
        result.choices.filter(asked, pl.col("budget") == budget, name.is_in(list(assessors)))
        .with_columns(name, task)
        .collect()
    )
    times = (
        result.predictions.filter(asked, pl.col("is_interpolation"))
        .select("partition", task)
        .unique()
        .group_by("task")
        .len("times")
        .collect()
    )
    means = (
        part.group_by("assessor", "task")
        .agg(total=pl.col("n_items").sum())
        .join(times, on="task")
        .with_columns(mean=pl.col("total") / pl.col("times"))
        .sort("mean", "task", descending=[True, False])
    )
    top = pl.concat([means.filter(assessor=one).head(MOST_CHOICES) for one in assessors])
    columns = {
        "panel": top["assessor"],
        "place": [list(assessors).index(one) for one in top["assessor"]],
        "task": top["task"],
        "mean": top["mean"],
    }
    row = {**in_order("task", "mean", labelLimit=150, grid=False), "sort": "-x"}
    bars = marked("bar", {"y": row, "x": across("mean", f"Items of {budget}")})
    most = means.row(0, named=True)
    taken = f"{most['mean']:.1f} of {plural(budget, 'item')}"
    words = f"{most['assessor']} takes {taken} of {most['task']}, where it may be asked"
    apart = {"resolve": {"scale": {"y": "independent"}}}
    return Chart(
        words,
        panels("panel", "place", bars, height=17 * min(MOST_CHOICES, top.height), most=2, labels=170, **apart),
        (Data("choices", columns),),
        f"{words}.",
        note=f"Mean over partitions in which a task is among {_tasks(n_tasks)}: how many items are taken of it.",
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
    legend = {"title": None, "orient": "top"}
    scale = colours([plural(budget, "item") for budget in budgets])
    shade = {"field": "asked", "type": "nominal", "scale": scale, "legend": legend}
    x = across(
        "n_dims",
        "Abilities",
        scale={"zero": False},
        axis={"tickMinStep": 1, "values": rows["n_dims"].unique().to_list()},
    )
    y = across("percent", "Change of error (%)")
    parts = [
        ruled("y", 0.0, strokeDash=[1, 0]),
        marked("rule", {"x": x, **ends(y), "color": shade}),
        marked("line", {"x": x, "y": y, "color": shade}),
        marked("point", {"x": x, "y": y, "color": shade}),
    ]
    words = _least_words(table, sets[-1], n_tasks[-1])
    return Chart(
        words,
        panels("panel", "place", *parts, height=190),
        (data,),
        f"{words}.",
        note="Error with so many abilities against that with one, from the same items; items of so many tasks "
        "calibrated. Bars: one standard error over partitions to each side.",
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


def _tasks(count: int) -> str:
    return plural(count, "calibration task")


def _adaptive(result: PredictionResult) -> list[str]:
    known = result.assessors
    return [one.name for one in known if one.paradigm == "adaptation"] or [known[-1].name]


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
