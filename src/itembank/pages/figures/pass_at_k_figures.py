"""Figure of pass@k from 0 to 100 % against k, a panel a model and scenario (the data of IRSL Figure 7)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    FAINT,
    INK,
    MAIN,
    PALETTE,
    WIDTH,
    new_figure,
    panels,
    put_counts,
    put_foot,
    put_labels,
    put_message,
    put_title,
)
from itembank.pages.figures.labels import LineLabel, label_lines
from itembank.scaling.sampling.pass_at_k_results import PassAtKLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS: dict[str, tuple[str, Any, str]] = {
    "irsl": (MAIN, "-", "item response"),
    "irsl-plug-in": (PALETTE[6], (0, (4, 2)), "ability plugged in"),
    "beta-binomial": (PALETTE[3], (0, (5, 1, 1, 1)), "items alike"),
    "jeffreys": (PALETTE[4], (0, (1, 1.5)), "Jeffreys"),
    "plug-in": (PALETTE[1], (0, (4, 2)), "plug-in"),
    "unbiased": (PALETTE[2], "-", "unbiased"),
}
"""Colour, line and name of each method."""

MOST_PANELS = 12
N_COLUMNS = 3
LONGEST_LINE = 23
"""Letters of a title that fit above one panel."""
MANY_DECADES = 5
"""From so many on every other one is labelled: the numbers below narrow panels would touch."""
OBSERVED = "all samples"


def figure_pass_at_k(law: PassAtKLaw, *, curves: tuple[int, ...] | None = None, title: str = "") -> "Figure":
    """Draw pass@k of each model and scenario by all methods, with the interval and what all samples say.

    Parameters
    ----------
    law : PassAtKLaw
    curves : tuple of int or None
        Which; None for twelve of them, spread from the lowest to the highest pass@k.
    title : str
        Name of the data, before each panel's.

    Raises
    ------
    ParameterError
        With no curve to draw.
    MissingDependencyError
        Without matplotlib.
    """
    chosen = _spread(law) if curves is None else curves
    if not chosen:
        raise ParameterError("a figure needs at least one curve, got none.")
    n_columns = min(len(chosen), 2 if len(chosen) in {2, 4} else N_COLUMNS)
    n_rows = -(-len(chosen) // n_columns)
    figure = new_figure(WIDTH if n_columns > 1 else 0.8 * WIDTH, 2.1 * n_rows + 1.3 + (0.6 if n_columns == 1 else 0.0))
    axes = panels(figure, len(chosen), n_columns)
    handles: dict[str, Any] = {}
    for number, (one, curve) in enumerate(zip(axes, chosen, strict=True)):
        handles |= _draw(one, law, curve)
        separator = ", " if len(law.model_ids[curve]) + len(law.scenarios[curve]) <= LONGEST_LINE else ",\n"
        name = f"{law.model_ids[curve]}{separator}{law.scenarios[curve]}"
        put_title(one, f"{title}: {name}" if title else name)
        is_left, is_bottom = number % n_columns == 0, number + n_columns >= len(axes)
        put_labels(one, "samples k" if is_bottom else "", "pass@k (%)" if is_left else "")
    axes[0].set_ylim(0.0, 102.0)
    put_message(figure, _message(law, chosen))
    if len(chosen) == 1:
        label_lines(axes[0], _ends(law, chosen[0]))
        handles = {}
    put_foot(figure, _note(law, chosen), list(handles.values()), list(handles))
    return figure


def _spread(law: PassAtKLaw) -> tuple[int, ...]:
    """Curves of pass rates from the lowest to the highest, at most as many as there are panels."""
    first = law.all_items.values[0, :, 0]
    order = np.argsort(np.where(np.isnan(first), -1.0, first), kind="stable")
    at = np.unique(np.linspace(0, order.size - 1, min(order.size, MOST_PANELS)).round().astype(int))
    return tuple(order[at].tolist())


def _draw(axes: "Axes", law: PassAtKLaw, curve: int) -> dict[str, Any]:
    """Draw one panel; return what stands in the legend by name."""
    curves = law.all_items
    handles: dict[str, Any] = {}
    axes.set_xscale("log")
    fewest = int(law.fewest_samples[curve])
    if law.k[0] <= fewest < law.k[-1]:
        axes.axvspan(fewest, law.k[-1], color=FAINT, alpha=0.6, linewidth=0.0)
    if "irsl" in law.methods:
        low, high = 100.0 * curves.low[curve], 100.0 * curves.high[curve]
        axes.fill_between(law.k, low, high, color=MAIN, alpha=0.18, linewidth=0.0)
    for m, method in enumerate(law.methods):
        color, style, name = LOOKS[method]
        is_main = method == "irsl"
        (handles[name],) = axes.plot(
            law.k, 100.0 * curves.values[m, curve], color=color, linestyle=style, linewidth=2.0 if is_main else 1.2,
            zorder=3 if is_main else 2, clip_on=False,
        )  # fmt: skip
    if curves.truth is not None:
        (handles[OBSERVED],) = axes.plot(
            law.k, 100.0 * curves.truth[curve], "o", color=INK, markersize=3.0, zorder=4, clip_on=False
        )
    axes.set_xlim(law.k[0], law.k[-1])
    decades = np.arange(np.ceil(np.log10(law.k[0])), np.floor(np.log10(law.k[-1])) + 0.5)
    put_counts(axes, (10.0 ** decades[:: 1 if decades.size < MANY_DECADES else 2]).tolist())
    return handles


def _ends(law: PassAtKLaw, curve: int) -> list[LineLabel]:
    """Names of the lines of one panel at their last known values; a line that ends earlier says so."""
    lines = [
        (LOOKS[method][2], law.all_items.values[m, curve], LOOKS[method][0]) for m, method in enumerate(law.methods)
    ]
    if law.all_items.truth is not None:
        lines.append((OBSERVED, law.all_items.truth[curve], INK))
    return [_end(name, values, law.k, color) for name, values, color in lines]


def _end(name: str, values: FloatArray, k: FloatArray, color: str) -> LineLabel:
    known = np.flatnonzero(np.isfinite(values))
    if known.size == 0:
        return LineLabel(name, float("nan"), color)
    last = int(known[-1])
    until = "" if last == k.size - 1 else f" (to {theme.count(k[last])})"
    return LineLabel(name + until, 100.0 * float(values[last]), color)


def _message(law: PassAtKLaw, chosen: tuple[int, ...]) -> str:
    """Say how far the forecast at the largest k was off where the truth is known, or what it is."""
    at = f"pass@{theme.count(law.k[-1])}"
    values, truth = law.all_items.values[0, list(chosen), -1], law.all_items.truth
    name = LOOKS[law.methods[0]][2]
    samples = f"{theme.count(law.fewest_samples[list(chosen)].min())} samples"
    if truth is not None and np.isfinite(errors := np.abs(values - truth[list(chosen), -1])).any():
        return f"From {samples} the {name} law tells {at} to {theme.points(float(np.nanmean(errors)))} on average"
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    words = (
        theme.percent(low, 0) if theme.percent(low, 0) == theme.percent(high, 0) else theme.interval_words(low, high, 0)
    )
    return f"From {samples} the {name} law expects a {at} of {words}"


def _note(law: PassAtKLaw, chosen: tuple[int, ...]) -> str:
    """Say what the band, the dots and the grey range are."""
    texts = []
    if "irsl" in law.methods:
        texts.append(f"Band: {theme.level_words(law.level)} interval of the item response law.")
    if law.all_items.truth is not None:
        texts.append("Dots: pass@k by all samples there are.")
    if (law.fewest_samples[list(chosen)] < law.k[-1]).any():
        texts.append("Grey: more samples than were used, so that values are forecasts.")
    return " ".join(texts)
