"""How the error of a prediction study changes with the number of abilities, against that with one (WILD Figure 8)."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.figures.canvas import (
    INK,
    MARKERS,
    PALETTE,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.studies.prediction.error_curves import differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from itembank.studies.results import PredictionResult


def figure_dims(
    result: "PredictionResult", sets: Sequence[str], n_tasks: Sequence[int], assessors: Sequence[str] = ()
) -> "Figure":
    """Draw the change of the error against the number of abilities: a line a budget, a panel a set and task count.

    Parameters
    ----------
    result : PredictionResult
    sets, n_tasks : sequences
        What to draw.
    assessors : sequence of names
        They differ in the number of abilities alone, and one of them has one. By default those of item model 'mirt',
        and the one with one ability, that predict from random items.

    Raises
    ------
    ParameterError
        Where there are no such assessors.
    MissingDependencyError
        Without matplotlib.
    """
    dims = assessors_by_dims(result, assessors)
    table = percent_of_one(result, dims).filter(pl.col("set").is_in(sets), pl.col("n_calibration_tasks").is_in(n_tasks))
    budgets = table["budget"].unique().sort().to_list()
    figure = new_figure(WIDTH, 2.4 * len(sets) + 1.3)
    drawn = panels(figure, len(n_tasks) * len(sets), len(n_tasks), share_y=True)
    handles: list[Any] = []
    for place, (which, count) in enumerate(product(sets, n_tasks)):
        axes = drawn[place]
        part = table.filter(pl.col("set") == which, pl.col("n_calibration_tasks") == count)
        handles = _draw_budgets(axes, part, budgets)
        axes.axhline(0.0, color=INK, linewidth=0.9)
        axes.set_xticks(sorted(dims.values()))
        put_title(axes, f"{which}, {count} {'tasks' if count > 1 else 'task'}")
        is_left, is_last = place % len(n_tasks) == 0, place >= len(n_tasks) * (len(sets) - 1)
        put_labels(axes, "abilities" if is_last else "", "change of error (%)" if is_left else "")
    put_message(figure, _message(table, sets[-1], n_tasks[-1]))
    put_foot(
        figure,
        "Error with so many abilities against that with one, from the same items; items of so many tasks calibrated. "
        "Bars: one standard error over partitions to each side.",
        handles,
        [_items(budget) for budget in budgets],
    )
    return figure


def assessors_by_dims(result: "PredictionResult", names: Sequence[str] = ()) -> dict[str, int]:
    """Return the number of abilities of each assessor that is compared, rising from one.

    Raises
    ------
    ParameterError
        When none has one ability, or two have as many.
    """
    item_models: Mapping[str, Mapping[str, Any]] = result.manifest.study["item_models"]
    found = {}
    for one in result.assessors:
        choice = item_models.get(one.predictor)
        is_plain = choice is not None and (choice["item_model"] in {"mirt", ""} or choice["n_dims"] == 1)
        if one.name in names or (not names and one.paradigm == "prediction" and is_plain):
            found[one.name] = 0 if choice is None else int(choice["n_dims"])
    ordered = dict(sorted(found.items(), key=lambda pair: pair[1]))
    values = list(ordered.values())
    if not values or values[0] != 1 or len(set(values)) < max(len(values), 2):
        raise ParameterError(
            "assessors must have item models of one, and of other numbers of abilities, each its own, got "
            f"{shown([f'{name} ({n})' for name, n in ordered.items()])}. Name them (--assessor), one of each."
        )
    return ordered


def percent_of_one(result: "PredictionResult", dims: Mapping[str, int]) -> pl.DataFrame:
    """Return the change of each assessor's error against that with one ability, in percent.

    Parameters
    ----------
    result : PredictionResult
    dims : mapping of assessor to its number of abilities
        The first has one.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `budget`, `n_dims`, `percent`, `percent_se`.
    """
    reference = next(iter(dims))
    table = differences(result.errors, reference).filter(pl.col("assessor").is_in(list(dims)))
    return table.select(
        "n_calibration_tasks",
        "set",
        "budget",
        n_dims=pl.col("assessor").replace_strict(dict(dims), return_dtype=pl.Int64),
        percent=100.0 * (pl.col("ratio") - 1.0),
        percent_se=100.0 * pl.col("ratio_se"),
    ).sort("n_calibration_tasks", "set", "budget", "n_dims")


def _draw_budgets(axes: "Axes", part: pl.DataFrame, budgets: Sequence[int]) -> list[Any]:
    """Draw one line a budget, from one ability on; return what the legend shows of each."""
    handles = []
    for number, budget in enumerate(budgets):
        rows = part.filter(pl.col("budget") == budget)
        handles.append(
            axes.errorbar(
                np.append(1, rows["n_dims"].to_numpy()),
                np.append(0.0, rows["percent"].to_numpy()),
                yerr=np.append(0.0, rows["percent_se"].fill_nan(0.0).to_numpy()),
                color=PALETTE[number % len(PALETTE)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=3.5,
                linewidth=1.3,
                elinewidth=0.7,
            )
        )
    return handles


def _message(table: pl.DataFrame, which: str, n_tasks: int) -> str:
    """Say which number of abilities errs least with few and with many items."""
    part = table.filter(pl.col("set") == which, pl.col("n_calibration_tasks") == n_tasks)
    budgets = part["budget"].unique().sort().to_list()
    said = []
    for budget in dict.fromkeys((budgets[0], budgets[-1])):
        best = part.filter(pl.col("budget") == budget).sort("percent").row(0, named=True)
        change = f"{best['n_dims']} abilities ({best['percent']:+.0f} %)" if best["percent"] < 0.0 else "one ability"
        said.append(f"{change} from {_items(budget)}")
    return f"On {which} tasks the error is least with {', with '.join(said)}"


def _items(budget: int) -> str:
    return f"{budget} {'item' if budget == 1 else 'items'}"
