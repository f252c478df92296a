"""Figure of pass@k: -log pass@k against k, a panel a model and scenario (IRSL Figure 7)."""

from typing import TYPE_CHECKING

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.reports.canvas import FAINT, INK, PALETTE, new_figure, panels, put_labels, put_legend, put_title
from itembank.scaling.sampling.pass_at_k_results import PassAtKLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {
    "irsl": (PALETTE[0], "-", "IRSL"),
    "irsl-plug-in": (PALETTE[5], "--", "IRSL, plugged in"),
    "beta-binomial": (PALETTE[3], "-.", "beta-binomial, items alike"),
    "jeffreys": (PALETTE[4], "-.", "Jeffreys"),
    "plug-in": (PALETTE[1], "--", "plug-in"),
    "unbiased": (PALETTE[2], ":", "unbiased"),
}
"""Colour, line and name of each method."""

MOST_PANELS = 12
N_COLUMNS = 4
LONGEST_LINE = 36
"""Letters of a title that fit above one panel."""
SMALLEST = 1e-4
"""Of -log pass@k that is drawn: below lies pass@k of one."""


def figure_pass_at_k(law: PassAtKLaw, *, curves: tuple[int, ...] | None = None, title: str = "") -> "Figure":
    """Draw -log pass@k of each model and scenario by all methods, with the interval and the truth.

    Parameters
    ----------
    law : PassAtKLaw
    curves : tuple of int or None
        Which; None for twelve of them, spread from the lowest to the highest pass@k.
    title : str
        Name of the data, before each panel's.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    chosen = _spread(law) if curves is None else curves
    # of three columns and four, those that leave fewer places empty
    n_columns = min(len(chosen), min((N_COLUMNS, N_COLUMNS - 1), key=lambda n: -len(chosen) % n))
    n_rows = -(-len(chosen) // n_columns)
    figure = new_figure(max(4.5, 3.1 * n_columns), 2.7 * n_rows + 0.5)
    axes = panels(figure, len(chosen), n_columns, share_y=len(chosen) > 1)
    handles: dict[str, object] = {}
    for one, curve in zip(axes, chosen, strict=True):
        handles.update(_draw(one, law, curve))
        separator = ", " if len(law.model_ids[curve]) + len(law.scenarios[curve]) <= LONGEST_LINE else ",\n"
        name = f"{law.model_ids[curve]}{separator}{law.scenarios[curve]}"
        put_title(one, f"{title}: {name}" if title else name)
    axes[0].set_ylim(bottom=_lowest(law, chosen))
    for number, one in enumerate(axes):
        is_left, is_bottom = number % n_columns == 0, number + n_columns >= len(axes)
        put_labels(one, "samples k" if is_bottom else "", "-log pass@k" if is_left else "")
    put_legend(figure, list(handles.values()), list(handles), n_columns=min(n_columns + 1, 4))
    return figure


def _spread(law: PassAtKLaw) -> tuple[int, ...]:
    """Curves of pass rates from the lowest to the highest, at most as many as there are panels."""
    first = law.all_items.values[0, :, 0]
    order = np.argsort(np.where(np.isnan(first), -1.0, first), kind="stable")
    at = np.unique(np.linspace(0, order.size - 1, min(order.size, MOST_PANELS)).round().astype(int))
    return tuple(order[at].tolist())


def _lowest(law: PassAtKLaw, chosen: tuple[int, ...]) -> float:
    """Where the panels end: below IRSL and the truth, which the other methods may leave by far."""
    known = [law.all_items.high, law.all_items.truth]
    drawn = np.concatenate([negative_log(one[list(chosen)]).ravel() for one in known if one is not None])
    return float(max(0.3 * np.nanmin(drawn), SMALLEST)) if np.any(~np.isnan(drawn)) else SMALLEST


def _draw(axes: "Axes", law: PassAtKLaw, curve: int) -> dict[str, object]:
    """Draw one panel; return what stands in the legend by name."""
    curves = law.all_items
    handles: dict[str, object] = {}
    axes.set_xscale("log")
    axes.set_yscale("log")
    fewest = int(law.fewest_samples[curve])
    if law.k[0] <= fewest < law.k[-1]:
        axes.axvspan(fewest, law.k[-1], color=FAINT, alpha=0.5, linewidth=0.0)
    if curves.truth is not None:
        (line,) = axes.plot(law.k, negative_log(curves.truth[curve]), color=INK, linewidth=2.4, alpha=0.55)
        handles["all samples"] = line
    for m, method in enumerate(law.methods):
        color, style, name = LOOKS[method]
        y = negative_log(curves.values[m, curve])
        (line,) = axes.plot(law.k, y, color=color, linestyle=style, linewidth=1.5, zorder=3 if method == "irsl" else 2)
        handles[name] = line
    if "irsl" in law.methods:
        band = axes.fill_between(
            law.k,
            negative_log(curves.high[curve]),
            negative_log(curves.low[curve]),
            color=LOOKS["irsl"][0],
            alpha=0.18,
            linewidth=0.0,
        )
        handles[f"{100 * law.level:g} % interval"] = band
    axes.set_xlim(law.k[0], law.k[-1])
    return handles


def negative_log(values: FloatArray) -> FloatArray:
    """``-log`` of pass@k as it is drawn: not below `SMALLEST`, and nothing where pass@k is 0."""
    with np.errstate(divide="ignore"):
        result: FloatArray = -np.log(np.where(values > 0.0, values, np.nan))
    return np.maximum(result, SMALLEST)
