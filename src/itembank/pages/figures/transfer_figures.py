"""Figures of transfer: predicted against actual, curves (IRSL Figs 5, 10), errors by scenario (Figs 6, 11, 19)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    MUTED,
    OTHER,
    WIDTH,
    new_figure,
    panels,
    put_counts,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.scaling.transfers.transfer_results import Transfer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 5
TOPS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 102.0)
"""Where an axis of scores in percent may end: at the first that holds all."""


def figure_transfer(found: Transfer) -> "Figure":
    """Draw predicted against actual scores; beside it curves, over compute or over k where there are any.

    Curves over compute are those of up to five groups (recipes); curves of pass@k those of up to five models, the
    best, the worst and some between by their pass@k at the largest k, which the first panel has, too.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    curves = _members(found)
    n_panels = 1 + len(curves)
    n_columns = {1: 1, 2: 2, 4: 2}.get(n_panels, 3)
    width = WIDTH if n_columns > 1 else 0.62 * WIDTH
    figure = new_figure(width, (width / n_columns + 0.1) * -(-n_panels // n_columns) + 1.1)
    axes = panels(figure, n_panels, n_columns, share_y=False)
    _draw_agreement(axes[0], found)
    draw = _draw_pass_curve if len(found.k) > 1 else _draw_compute_curve
    top = _top(found, [inside for _, inside in curves])
    handles: list[Any] = []
    for place, (one, (name, inside)) in enumerate(zip(axes[1:], curves, strict=True), start=1):
        handles = draw(one, found, inside)
        one.set_ylim(0.0, top)
        put_title(one, theme.shortened(name, 26))
        what = "pass@k (%)" if len(found.k) > 1 else "score (%)"
        along = "samples k" if len(found.k) > 1 else "training FLOP"
        put_labels(one, along if place + n_columns >= n_panels else "", what if place % n_columns in {0, 1} else "")
    put_message(figure, _message(found))
    band = ", bands" if handles else ""
    put_foot(
        figure,
        f"Points: models. Bars{band}: {theme.level_words(found.level)} intervals of the prediction. On the diagonal "
        "it is right.",
        handles,
        ["actual", f"predicted from {theme.shortened(found.source)}"] if handles else [],
    )
    return figure


def figure_transfer_errors(transfers: Sequence[Transfer]) -> "Figure":
    """Draw the errors of several transfers, one box each: of the curves of groups, or of models where there are none.

    Raises
    ------
    ParameterError
        Without any transfer.
    MissingDependencyError
        Without matplotlib.
    """
    if not transfers:
        raise ParameterError("a figure of errors needs at least one transfer, got none.")
    figure = new_figure(WIDTH, 1.6 + 0.3 * len(transfers))
    axes = panels(figure, 1, 1)[0]
    errors = [100.0 * np.array(list(one.group_errors().values())) for one in transfers]
    axes.boxplot(
        errors[::-1], orientation="horizontal", widths=0.6, showfliers=True, patch_artist=True,
        boxprops={"facecolor": (MAIN, 0.25), "edgecolor": MAIN}, whiskerprops={"color": MAIN},
        capprops={"color": MAIN}, flierprops={"markersize": 2.5, "markeredgecolor": MAIN},
        medianprops={"color": INK, "linewidth": 1.6},
    )  # fmt: skip
    pairs = [(theme.shortened(one.source, 20), theme.shortened(one.target, 20)) for one in transfers]
    correlations = [one.correlation for one in transfers]
    names = [f"{source} to {target} (r {r:.2f})" for (source, target), r in zip(pairs, correlations, strict=True)]
    axes.set_yticks(range(1, len(names) + 1), names[::-1], fontsize=theme.TICK_SIZE, parse_math=False)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0.0)
    put_labels(axes, "mean absolute error of a curve (points)", "")
    medians = [float(np.median(one)) for one in errors]
    source, target = pairs[int(np.argmin(medians))]
    put_message(
        figure,
        f"From {source} to {target} half of the predictions err by less than {theme.points(0.01 * min(medians))}"
        + (", the least of all" if len(transfers) > 1 else ""),
    )
    put_foot(
        figure,
        "Boxes: the middle half, with the median; whiskers: up to 1.5 times the box; circles: beyond. "
        "r: correlation of the abilities.",
    )
    return figure


def _message(found: Transfer) -> str:
    """Say how far predictions were off, over models and numbers of samples."""
    score = "scores" if found.k[-1] == 1 else f"pass@{found.k[0]} to pass@{found.k[-1]}"
    error = theme.points(float(np.nanmean(found.errors)))
    return f"{theme.shortened(found.source)} predicts {score} on {theme.shortened(found.target)} to {error} on average"


def _members(found: Transfer) -> list[tuple[str, BoolArray]]:
    """Names and models of the panels with curves; none where there is neither compute nor more than one k."""
    if len(found.k) > 1:
        known = np.flatnonzero(np.isfinite(found.actual[:, -1]) & np.isfinite(found.prediction.value[:, -1]))
        values = found.actual[known, -1]
        steps = np.linspace(values.max(initial=0.0), values.min(initial=1.0), MOST_PANELS).tolist()
        nearest = dict.fromkeys(int(np.abs(values - step).argmin()) for step in steps if known.size)
        rows = known[list(nearest)]
        return [(found.model_ids[row], np.arange(len(found.model_ids)) == row) for row in rows.tolist()]
    if found.flops is None:
        return []
    groups = np.asarray(found.groups if found.groups is not None else ["all"] * len(found.model_ids))
    names = list(dict.fromkeys(groups.tolist()))[:MOST_PANELS]
    return [(name, groups == name) for name in names]


def _top(found: Transfer, members: Sequence[BoolArray]) -> float:
    """Where the axes of the curves end, in percent."""
    inside = np.any(members, axis=0) if members else np.zeros(len(found.model_ids), dtype=bool)
    shown = 100.0 * np.concatenate([values[inside].ravel() for values in (found.actual, found.prediction.upper)])
    highest = float(np.nanmax(shown)) if np.isfinite(shown).any() else 100.0
    return next((top for top in TOPS if highest <= top), TOPS[-1])


def _draw_agreement(axes: "Axes", found: Transfer) -> None:
    """One dot for each model: predicted over actual score, at the largest k, with its interval."""
    actual, one = 100.0 * found.actual[:, -1], found.prediction
    value, lower, upper = (100.0 * values[:, -1] for values in (one.value, one.lower, one.upper))
    inside = np.isfinite(actual) & np.isfinite(value)
    ends = np.nan_to_num(np.maximum(np.stack([value - lower, upper - value])[:, inside], 0.0))
    axes.errorbar(
        actual[inside], value[inside], yerr=ends, fmt="o", markersize=3.0, color=MAIN, ecolor=(MAIN, 0.35),
        markeredgewidth=0.0, elinewidth=0.8,
    )  # fmt: skip
    if inside.any():
        shown = np.concatenate([actual[inside], value[inside], (value[inside] + ends[1]), (value[inside] - ends[0])])
        limits = (min(0.0, float(shown.min())), 1.04 * float(shown.max()))
        axes.plot(limits, limits, color=MUTED, linewidth=0.9, zorder=1)
        axes.set(xlim=limits, ylim=limits)
    what = "score" if found.k[-1] == 1 else f"pass@{found.k[-1]}"
    put_labels(axes, f"actual {what} (%)", f"predicted {what} (%)")
    put_title(axes, f"all models (r {found.correlation:.2f})")


def _draw_compute_curve(axes: "Axes", found: Transfer, inside: BoolArray) -> list[Any]:
    flops = np.asarray(found.flops)
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(flops[rows], kind="stable")]
    one = found.prediction
    curves = [values[rows, 0] for values in (found.actual, one.value, one.lower, one.upper)]
    axes.set_xscale("log")
    handles = _draw_curve(axes, flops[rows], curves)
    axes.minorticks_off()
    return handles


def _draw_pass_curve(axes: "Axes", found: Transfer, inside: BoolArray) -> list[Any]:
    row = int(np.flatnonzero(inside)[0])
    one = found.prediction
    axes.set_xscale("log")
    curves = [values[row] for values in (found.actual, one.value, one.lower, one.upper)]
    handles = _draw_curve(axes, np.asarray(found.k, dtype=np.float64), curves)
    put_counts(axes, found.k if len(found.k) < MOST_PANELS else found.k[::2])
    return handles


def _draw_curve(axes: "Axes", x: FloatArray, curves: Sequence[FloatArray]) -> list[Any]:
    """Draw actual, predicted, lower and upper values between 0 and 1 in percent; return what the legend shows."""
    actual, value, lower, upper = (100.0 * one for one in curves)
    axes.fill_between(x, lower, upper, color=MAIN, alpha=0.18, linewidth=0.0)
    (predicted,) = axes.plot(x, value, color=MAIN, linewidth=1.8)
    (points,) = axes.plot(x, actual, "o", color=OTHER, markersize=3.5, clip_on=False, zorder=3)
    return [points, predicted]
