"""Figures of a prediction study: error against items and cost, two assessors task by task, items chosen by task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title
from itembank.reports.figures import MARKERS
from itembank.studies.prediction.error_curves import SETS, errors_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from itembank.studies.prediction.assessors import Assessor
    from itembank.studies.results import PredictionResult

KINDS = ("items", "cost", "tasks", "models", "choices")
LINES = {"prediction": ":", "selection": "--", "adaptation": "-"}
"""Random items, items chosen at once, items chosen one at a time."""
MOST_BARS = 80
MOST_CHOICES = 10


def draw_prediction(
    result: "PredictionResult",
    kind: str,
    *,
    sets: Sequence[str] = (),
    n_tasks: Sequence[int] = (),
    assessors: Sequence[str] = (),
    budget: int | None = None,
) -> "Figure":
    """Draw one of the figures of a prediction study.

    Parameters
    ----------
    result : PredictionResult
    kind : {'items', 'cost', 'tasks', 'models', 'choices'}
        Error against the number of items or the cost (WILD Figures 2, 3, 6, 10); two assessors compared task by task or
        model by model (WILD Figures 12 to 15); items chosen of each task (WILD Figure 11).
    sets, n_tasks, assessors : sequences
        Which to draw; all if empty. 'tasks' and 'models' take one set (extrapolation), one number of calibration tasks
        (the largest) and two assessors (the first and the last that adapt).
    budget : int or None
        Of 'tasks', 'models' and 'choices'; the middle one if None.

    Raises
    ------
    ParameterError
        For something that the study does not have, or a cost that it does not know.
    MissingDependencyError
        Without matplotlib.
    """
    if kind not in KINDS:
        raise ParameterError(f"kind of a figure must be one of {shown(KINDS)}, got {kind!r}.")
    names = [assessor.name for assessor in result.assessors]
    _check("assessors", assessors, names)
    _check("sets", sets, SETS)
    counts = result.curves["n_calibration_tasks"].unique().sort().to_list()
    _check("n_tasks", n_tasks, counts)
    if kind in {"items", "cost"}:
        return figure_curves(result, kind, sets or SETS, n_tasks or counts, assessors or names)
    budgets = result.curves["budget"].unique().sort().to_list()
    if budget is None:
        budget = budgets[len(budgets) // 2]
    _check("budget", [budget], budgets)
    if kind == "choices":
        return figure_choices(result, (n_tasks or counts)[-1], budget, assessors or _adaptive(result))
    pair = tuple(assessors) if assessors else _two_adaptive(result)
    if len(pair) != 2:
        raise ParameterError(f"two assessors are compared, got {len(pair)}: {shown(pair)}. Name two.")
    return figure_pair(result, kind, pair, n_tasks=(n_tasks or counts)[-1], which=(sets or SETS)[-1], budget=budget)


def figure_curves(
    result: "PredictionResult", kind: str, sets: Sequence[str], n_tasks: Sequence[int], assessors: Sequence[str]
) -> "Figure":
    """Draw error against items or cost: a row of panels a set, a column a number of calibration tasks."""
    if kind == "cost" and not result.unit:
        raise ParameterError("the study names no cost to draw errors against. Draw them against items.")
    style = styles(result, assessors)
    n_columns = len(n_tasks)
    height = 2.9 * len(sets) + 0.3 + 0.18 * -(-len(style) // 3)
    figure = new_figure(max(3.3 * n_columns + 0.4, 6.0), height)
    drawn = panels(figure, n_columns * len(sets), n_columns, share_y=True)
    legend: dict[str, object] = {}
    for row, which in enumerate(sets):
        for column, count in enumerate(n_tasks):
            axes = drawn[row * n_columns + column]
            part = result.curves.filter(pl.col("set") == which, pl.col("n_calibration_tasks") == count)
            legend |= _draw_curves(axes, part, kind, style)
            plural = "tasks" if count > 1 else "task"
            put_title(axes, f"{which}, {count} calibration {plural}")
            along = "items" if kind == "items" else f"cost of a test model ({result.unit})"
            put_labels(
                axes, along if row == len(sets) - 1 else "", "mean absolute error (points)" if column == 0 else ""
            )
    drawn[0].set_ylim(bottom=0.0)
    put_legend(figure, list(legend.values()), list(legend), n_columns=3)
    return figure


def figure_pair(
    result: "PredictionResult", kind: str, pair: tuple[str, ...], *, n_tasks: int, which: str, budget: int
) -> "Figure":
    """Draw the differences of two assessors by task or model, and the errors of both beside them."""
    column = "task" if kind == "tasks" else "model_id"
    first, second = pair
    table = errors_by(result.predictions, column, (first, second), n_tasks=n_tasks, which=which, budget=budget)
    if table.height > MOST_BARS:  # the ends tell most
        table = pl.concat([table.head(MOST_BARS // 2), table.tail(MOST_BARS // 2)])
    place = np.arange(table.height)
    figure = new_figure(9.0, 1.6 + 0.17 * table.height)
    left, right = panels(figure, 2, 2, share_y=False)
    difference, error = (100.0 * table[name].to_numpy() for name in ("difference", "difference_se"))
    colours = [PALETTE[1] if one > 0.0 else PALETTE[0] for one in difference]
    left.barh(place, difference, color=colours, height=0.75)
    left.errorbar(difference, place, xerr=np.nan_to_num(error), fmt="none", ecolor=INK, elinewidth=0.7)
    left.axvline(0.0, color=INK, linewidth=0.9)
    left.set_yticks(place, table["name"].to_list(), parse_math=False)
    right.set_yticks(place, [])
    for name, field, colour in ((first, "first", PALETTE[0]), (second, "second", PALETTE[1])):
        right.plot(100.0 * table[field].to_numpy(), place, "o", color=colour, markersize=4.0, label=name)
    right.set_xlim(left=0.0)
    for axes in (left, right):
        axes.set_ylim(-0.8, table.height - 0.2)
    plural = "tasks" if n_tasks > 1 else "task"
    put_title(left, f"{which}, {n_tasks} calibration {plural}, {budget} items\n(right: {second} errs less)")
    put_labels(left, f"error of {first}\nless that of {second} (points)", "")
    put_labels(right, "mean absolute error (points)", "")
    handles, labels = right.get_legend_handles_labels()
    put_legend(figure, handles, labels)
    return figure


def figure_choices(result: "PredictionResult", n_tasks: int, budget: int, assessors: Sequence[str]) -> "Figure":
    """Draw how many items each assessor takes of a task that it may take from, for the tasks it takes most of."""
    part = (
        result.choices.filter(
            pl.col("n_calibration_tasks") == n_tasks,
            pl.col("budget") == budget,
            pl.col("assessor").cast(pl.String).is_in(list(assessors)),
        )
        .with_columns(pl.col("assessor").cast(pl.String), pl.col("task").cast(pl.String))
        .collect()
    )
    times = (
        result.predictions.filter(pl.col("n_calibration_tasks") == n_tasks, pl.col("is_interpolation"))
        .select("partition", pl.col("task").cast(pl.String))
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
    )
    n_columns, plural = min(2, len(assessors)), "tasks" if n_tasks > 1 else "task"
    figure = new_figure(4.6 * n_columns, 2.8 * -(-len(assessors) // n_columns))
    for axes, name in zip(panels(figure, len(assessors), n_columns, share_y=False), assessors, strict=True):
        top = means.filter(pl.col("assessor") == name).sort("mean", "task", descending=[True, False])
        top = top.head(MOST_CHOICES).reverse()
        axes.barh(np.arange(top.height), top["mean"].to_numpy(), color=PALETTE[0], height=0.75)
        axes.set_yticks(np.arange(top.height), top["task"].to_list(), parse_math=False)
        put_title(axes, name)
        put_labels(
            axes, f"items of {budget} taken of a task\n(mean where it may be asked: {n_tasks} calibration {plural})", ""
        )
    return figure


def styles(result: "PredictionResult", assessors: Sequence[str]) -> dict[str, tuple[str, str, str, bool]]:
    """Colour and marker of what chooses and predicts, line of the paradigm, and whether markers are filled.

    Markers are open where a criterion is divided by cost.
    """
    known = {assessor.name: assessor for assessor in result.assessors}
    looks = list(dict.fromkeys(_look(known[name]) for name in assessors))
    found = {}
    for name in assessors:
        number = looks.index(_look(known[name]))
        marker = MARKERS[(number // len(PALETTE)) % len(MARKERS)]
        found[name] = (
            PALETTE[number % len(PALETTE)],
            marker,
            LINES[known[name].paradigm],
            not known[name].per_cost,
        )
    return found


def _look(assessor: "Assessor") -> tuple[object, ...]:
    return assessor.predictor, assessor.selector, assessor.design, repr(assessor.options)


def _draw_curves(
    axes: "Axes", part: pl.DataFrame, kind: str, style: dict[str, tuple[str, str, str, bool]]
) -> dict[str, object]:
    """Draw one curve an assessor; return what the legend shows of each."""
    legend: dict[str, object] = {}
    for name, (colour, marker, line, is_filled) in style.items():
        rows = part.filter(pl.col("assessor").cast(pl.String) == name).sort("budget")
        x = rows["budget" if kind == "items" else "cost"].to_numpy()
        legend[name] = axes.errorbar(
            x,
            100.0 * rows["mae"].to_numpy(),
            yerr=100.0 * rows["mae_se"].fill_nan(0.0).to_numpy(),
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=3.5,
            linewidth=1.3,
            elinewidth=0.7,
            markerfacecolor=colour if is_filled else "white",
        )
    if kind == "items":
        budgets = part["budget"].unique().sort().to_list()
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets[:: max(1, -(-len(budgets) // 6))])
        axes.set_xticklabels([f"{one:g}" for one in axes.get_xticks()])
    else:
        axes.set_xscale("log")
    axes.minorticks_off()
    return legend


def _adaptive(result: "PredictionResult") -> list[str]:
    known = result.assessors
    return [one.name for one in known if one.paradigm == "adaptation"] or [known[-1].name]


def _two_adaptive(result: "PredictionResult") -> tuple[str, ...]:
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
