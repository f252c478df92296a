"""Figures of transfer: predicted against actual, curves (IRSL Figs 5, 10), errors by scenario (Figs 6, 11, 19)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import BoolArray
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title
from itembank.scaling.transfers.transfer_results import Transfer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 5
SMALLEST = 1e-12
"""Pass rates below this are drawn as this."""


def figure_transfer(found: Transfer) -> "Figure":
    """Draw predicted against actual scores; beside it curves, over compute or over k where there are any.

    Curves over compute are those of up to five groups (recipes); curves of -log pass@k those of up to five models, the
    best, the worst and some between.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    curves = _members(found)
    n_panels = 1 + len(curves)
    n_columns = min(n_panels, 3)
    figure = new_figure(3.4 * n_columns, 3.2 * -(-n_panels // n_columns))
    axes = panels(figure, n_panels, n_columns, share_y=False)
    _draw_agreement(axes[0], found)
    draw = _draw_pass_curve if len(found.k) > 1 else _draw_compute_curve
    handles: list[Any] = []
    for one, (name, inside) in zip(axes[1:], curves, strict=True):
        handles = draw(one, found, inside)
        put_title(one, name)
    if handles:
        put_legend(figure, handles, ["actual", f"predicted from {found.source}", f"{found.level:.0%} interval"])
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
    figure = new_figure(6.4, 1.0 + 0.34 * len(transfers))
    axes = panels(figure, 1, 1)[0]
    errors = [list(one.group_errors().values()) for one in transfers]
    axes.boxplot(
        errors[::-1], orientation="horizontal", widths=0.6, showfliers=True,
        flierprops={"markersize": 2}, medianprops={"color": PALETTE[1]},
    )  # fmt: skip
    names = [f"{one.source} to {one.target} (r {one.correlation:.2f})" for one in transfers[::-1]]
    axes.set_yticks(range(1, len(names) + 1), names, fontsize=8, parse_math=False)
    axes.set_xlim(left=0.0)
    put_labels(axes, "mean absolute error of a curve", "")
    return figure


def _members(found: Transfer) -> list[tuple[str, BoolArray]]:
    """Names and models of the panels with curves; none where there is neither compute nor more than one k."""
    if len(found.k) > 1:
        known = np.flatnonzero(np.isfinite(found.actual[:, 0]) & np.isfinite(found.prediction.value[:, 0]))
        ordered = known[np.argsort(-found.actual[known, 0], kind="stable")]
        steps = np.unique(np.linspace(0, ordered.size - 1, min(MOST_PANELS, ordered.size)).astype(int))
        rows = ordered[steps]
        return [(found.model_ids[row], np.arange(len(found.model_ids)) == row) for row in rows.tolist()]
    if found.flops is None:
        return []
    groups = np.asarray(found.groups if found.groups is not None else ["all"] * len(found.model_ids))
    names = list(dict.fromkeys(groups.tolist()))[:MOST_PANELS]
    return [(name, groups == name) for name in names]


def _draw_agreement(axes: "Axes", found: Transfer) -> None:
    """One dot for each model: predicted over actual score, with its interval."""
    actual, one = found.actual[:, 0], found.prediction
    inside = np.isfinite(actual) & np.isfinite(one.value[:, 0])
    below = np.maximum(one.value[inside, 0] - one.lower[inside, 0], 0.0)
    above = np.maximum(one.upper[inside, 0] - one.value[inside, 0], 0.0)
    axes.errorbar(
        actual[inside], one.value[inside, 0], yerr=np.stack([below, above]), fmt="o", markersize=2.5,
        color=PALETTE[0], ecolor="#BBBBBB", elinewidth=0.6,
    )  # fmt: skip
    if inside.any():
        ends = [float(actual[inside].min()), float(actual[inside].max())]
        axes.plot(ends, ends, color=INK, linewidth=1.0, linestyle="--")
    what = "score" if found.k[0] == 1 else f"pass@{found.k[0]}"
    put_labels(axes, f"actual {what} on {found.target}", "predicted")
    put_title(axes, f"convergent validity {found.correlation:.2f}")


def _draw_compute_curve(axes: "Axes", found: Transfer, inside: BoolArray) -> list[Any]:
    flops = np.asarray(found.flops)
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(flops[rows], kind="stable")]
    one = found.prediction
    (actual,) = axes.plot(flops[rows], found.actual[rows, 0], "o", color=INK, markersize=3)
    (predicted,) = axes.plot(flops[rows], one.value[rows, 0], color=PALETTE[0], linewidth=1.4)
    band = axes.fill_between(
        flops[rows], one.lower[rows, 0], one.upper[rows, 0], color=PALETTE[0], alpha=0.2, linewidth=0.0
    )
    axes.set_xscale("log")
    put_labels(axes, "training FLOP", f"score on {found.target}")
    return [actual, predicted, band]


def _draw_pass_curve(axes: "Axes", found: Transfer, inside: BoolArray) -> list[Any]:
    row = int(np.flatnonzero(inside)[0])
    one = found.prediction
    curves = [-np.log(np.maximum(values[row], SMALLEST)) for values in (found.actual, one.value, one.upper, one.lower)]
    top = 1.2 * max(float(np.nanmax(curves[1])), float(np.nanmax(curves[2])), float(np.nanmax(curves[0])))
    curves[3] = np.minimum(curves[3], top)  # an interval down to 0 has no end
    (actual,) = axes.plot(found.k, curves[0], "o", color=INK, markersize=3)
    (predicted,) = axes.plot(found.k, curves[1], color=PALETTE[0], linewidth=1.4)
    band = axes.fill_between(found.k, curves[2], curves[3], color=PALETTE[0], alpha=0.2, linewidth=0.0)
    axes.set_xscale("log")
    put_labels(axes, "k", f"-log pass@k on {found.target}")
    return [actual, predicted, band]
