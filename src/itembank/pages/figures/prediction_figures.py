"""Figures of a prediction study: error against items and cost, two assessors task by task, items chosen by task."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    MARKERS,
    OTHER,
    PALETTE,
    SOFT,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.pages.figures.labels import LineLabel, label_lines
from itembank.pages.figures.prediction_dims import figure_dims
from itembank.studies.prediction.error_curves import SETS, errors_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from itembank.studies.prediction.assessors import Assessor
    from itembank.studies.results import PredictionResult

KINDS = ("items", "cost", "tasks", "models", "choices", "dims")
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
    if kind == "dims":
        return figure_dims(result, sets or SETS, n_tasks or counts, assessors)
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
    legend_height = 0.25 * -(-len(style) // 2) if n_columns > 1 else 0.0
    figure = new_figure(WIDTH, 2.5 * len(sets) + 1.2 + legend_height)
    drawn = panels(figure, n_columns * len(sets), n_columns, share_y=True)
    legend: dict[str, Any] = {}
    along = "items" if kind == "items" else f"cost of a test model ({result.unit})"
    for place, (which, count) in enumerate(product(sets, n_tasks)):
        axes = drawn[place]
        legend |= _draw_curves(axes, _part(result, which, count), kind, style)
        put_title(axes, f"{which}, {_tasks(count)}")
        is_left, is_last = place % n_columns == 0, place >= n_columns * (len(sets) - 1)
        put_labels(axes, along if is_last else "", "mean error (points)" if is_left else "")
    drawn[0].set_ylim(bottom=0.0)
    if n_columns == 1:
        for axes, which in zip(drawn, sets, strict=True):
            label_lines(axes, _ends(_part(result, which, n_tasks[0]), style))
        legend = {}
    put_message(figure, _message(_part(result, sets[-1], n_tasks[-1]), sets[-1], list(style)))
    put_foot(
        figure,
        "Bars: one standard error over partitions to each side. Lines: items chosen one at a time (solid), at once "
        "(dashed), at random (dotted); hollow: divided by cost.",
        list(legend.values()),
        list(legend),
    )
    return figure


def _part(result: "PredictionResult", which: str, n_tasks: int) -> pl.DataFrame:
    return result.curves.filter(pl.col("set") == which, pl.col("n_calibration_tasks") == n_tasks)


def _tasks(count: int) -> str:
    return f"{count} calibration {'tasks' if count > 1 else 'task'}"


def _ends(part: pl.DataFrame, style: dict[str, tuple[str, str, Any, bool]]) -> list[LineLabel]:
    """Name every assessor at its error with the most items."""
    labels = []
    for name, (colour, *_) in style.items():
        rows = part.filter(pl.col("assessor").cast(pl.String) == name).sort("budget")
        labels.append(LineLabel(name, 100.0 * rows["mae"].to_list()[-1] if rows.height else float("nan"), colour))
    return labels


def _message(part: pl.DataFrame, which: str, assessors: Sequence[str]) -> str:
    """Say who errs least and who most with a middling number of items."""
    budgets = part["budget"].unique().sort().to_list()
    budget = budgets[len(budgets) // 2]
    rows = part.filter(pl.col("budget") == budget, pl.col("assessor").cast(pl.String).is_in(list(assessors)))
    ordered = rows.sort("mae").select(pl.col("assessor").cast(pl.String), "mae").rows()
    (best, least), (worst, most) = ordered[0], ordered[-1]
    text = f"{best} errs by {theme.points(least)} with {budget:g} {'item' if budget == 1 else 'items'} ({which})"
    return text if len(ordered) == 1 else f"{text}, {worst} by {theme.points(most)}"


def figure_pair(
    result: "PredictionResult", kind: str, pair: tuple[str, ...], *, n_tasks: int, which: str, budget: int
) -> "Figure":
    """Draw the differences of two assessors by task or model, and the errors of both beside them."""
    column = "task" if kind == "tasks" else "model_id"
    first, second = pair
    table = errors_by(result.predictions, column, (first, second), n_tasks=n_tasks, which=which, budget=budget)
    n_better, n_all = int((table["difference"] > 0.0).sum()), table.height
    gain = theme.points(float(table["difference"].mean()), is_signed=True)  # type: ignore[arg-type]
    if table.height > MOST_BARS:  # the ends tell most
        table = pl.concat([table.head(MOST_BARS // 2), table.tail(MOST_BARS // 2)])
    place = np.arange(table.height)
    figure = new_figure(WIDTH, 1.9 + 0.17 * table.height)
    left, right = panels(figure, 2, 2, share_y=False)
    difference, error = (100.0 * table[name].to_numpy() for name in ("difference", "difference_se"))
    colours = [MAIN if one > 0.0 else OTHER for one in difference]
    left.barh(place, difference, color=colours, height=0.75)
    left.errorbar(difference, place, xerr=np.nan_to_num(error), fmt="none", ecolor=INK, elinewidth=0.8)
    left.axvline(0.0, color=INK, linewidth=0.9)
    names = [theme.shortened(name, 28) for name in table["name"].to_list()]
    left.set_yticks(place, names, fontsize=theme.TICK_SIZE, parse_math=False)
    right.set_yticks(place, [])
    ends = [100.0 * table[field].to_numpy() for field in ("first", "second")]
    right.hlines(place, ends[0], ends[1], color=SOFT, linewidth=1.2, zorder=1)
    handles = [
        right.plot(values, place, "o", color=colour, markersize=4.0)[0]
        for values, colour in zip(ends, (OTHER, MAIN), strict=True)
    ]
    right.set_xlim(left=0.0)
    for axes in (left, right):
        axes.set_ylim(-0.8, table.height - 0.2)
        axes.grid(visible=False, axis="y")
    put_labels(left, "difference (points)", "")
    put_labels(right, "mean error (points)", "")
    put_message(
        figure,
        f"{second} errs less on {n_better} of {n_all} {kind}; the mean difference is {gain} "
        f"({which}, {_tasks(n_tasks)}, {budget} items)",
    )
    put_foot(
        figure,
        "Left: error of the first less that of the second, with one standard error to each side. Right: both errors.",
        handles,
        pair,
    )
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
    n_columns = min(2, len(assessors))
    figure = new_figure(WIDTH, 2.6 * -(-len(assessors) // n_columns) + 1.0)
    for axes, name in zip(panels(figure, len(assessors), n_columns, share_y=False), assessors, strict=True):
        top = means.filter(pl.col("assessor") == name).sort("mean", "task", descending=[True, False])
        top = top.head(MOST_CHOICES).reverse()
        axes.barh(np.arange(top.height), top["mean"].to_numpy(), color=MAIN, height=0.75)
        tasks = [theme.shortened(task, 20) for task in top["task"].to_list()]
        axes.set_yticks(np.arange(top.height), tasks, fontsize=theme.TICK_SIZE, parse_math=False)
        axes.grid(visible=False, axis="y")
        put_title(axes, theme.shortened(name))
        put_labels(axes, f"items of {budget}", "")
    most = means.sort("mean", "task", descending=[True, False]).row(0, named=True)
    put_message(
        figure,
        f"{most['assessor']} takes {most['mean']:.1f} of {budget} items of {most['task']}, where it may be asked",
    )
    put_foot(
        figure, f"Mean over partitions in which a task is among {_tasks(n_tasks)}: how many items are taken of it."
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
) -> dict[str, Any]:
    """Draw one curve an assessor; return what the legend shows of each."""
    legend: dict[str, Any] = {}
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
