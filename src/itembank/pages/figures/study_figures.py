"""Figures of a study: error, ranks and coverage against the number of items, and the spread of errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    LINE_STYLES,
    MARKERS,
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("error", "rank", "spread", "coverage")
MOST_PANELS = 12
MOST_LABELLED = 2
"""Panels in a row beside which there is room for the names of curves."""
BARS = "Bars: one standard error over repeats to each side."
ITEMS = ("n =", "items in all")
CURVES = {
    "error": ("mae", "mae_se", 100.0, "mean absolute error (points)"),
    "rank": ("spearman", "spearman_se", 1.0, "Spearman rank correlation"),
    "coverage": ("coverage", "coverage_se", 100.0, "scores inside (%)"),
    "width": ("half_width", "", 100.0, "median half-width (points)"),
}


def draw_study(
    summary: pl.DataFrame,
    estimates: pl.DataFrame,
    kind: str,
    *,
    size: float | None = None,
    level: float = 0.95,
    size_words: tuple[str, str] = ITEMS,
) -> "Figure":
    """Draw one of the figures of a study.

    Parameters
    ----------
    summary, estimates : tables
        Of one target; see `StudyResult`.
    kind : {'error', 'rank', 'spread', 'coverage'}
    size : float or None
        Spread: the budget to draw; the largest if None.
    level : float
        Coverage: the nominal one.
    size_words : (str, str)
        What sizes are called before a number, and along an axis.

    Raises
    ------
    ParameterError
        For another kind, or more panels than can be read.
    MissingDependencyError
        Without matplotlib.
    """
    if kind == "spread":
        return figure_error_spread(estimates, size=size, size_words=size_words)
    if kind == "coverage":
        return figure_coverage(summary, level=level, size_words=size_words)
    if kind in {"error", "rank"}:
        return figure_by_size(summary, kind, size_words=size_words)
    raise ParameterError(f"kind of a figure must be one of {shown(KINDS)}, got {kind!r}.")


def figure_by_size(summary: pl.DataFrame, kind: str, *, size_words: tuple[str, str] = ITEMS) -> "Figure":
    """Draw error or rank correlation against the number of items, one panel a split.

    As in tinyBenchmarks, Figures 3, 5, 11, 12 and 14.

    Parameters
    ----------
    summary : table
        Of one target.
    kind : {'error', 'rank'}
    size_words : (str, str)
        As for `draw_study`.
    """
    splits = _names(summary, "split")
    _check_panels(len(splits))
    figure, drawn, n_columns = _split_panels(summary, len(splits))
    for k, (axes, split) in enumerate(zip(drawn, splits, strict=True)):
        _curves(axes, summary.filter(split=split), kind, styles(summary))
        put_title(axes, split)
        is_last = k + n_columns >= len(splits)
        put_labels(axes, size_words[1] if is_last else "", CURVES[kind][3] if k % n_columns == 0 else "")
    if kind == "error":
        drawn[0].set_ylim(bottom=0.0)  # of all panels, now that every curve is there
    put_message(figure, _message(summary, kind, size_words))
    _name_curves(figure, drawn, summary, kind, (splits, n_columns), note=BARS)
    return figure


def figure_coverage(summary: pl.DataFrame, *, level: float, size_words: tuple[str, str] = ITEMS) -> "Figure":
    """Draw coverage, with the nominal line, above the half-width of the intervals, one column a split.

    Parameters
    ----------
    summary : table
        Of one target.
    level : float
    size_words : (str, str)
        As for `draw_study`.
    """
    splits = _names(summary, "split")
    _check_panels(2 * len(splits))
    n_columns = len(splits)
    figure = new_figure(WIDTH, 5.6 + _legend_height(summary, n_columns))
    drawn = panels(figure, 2 * n_columns, n_columns, share_y=False)
    for k, split in enumerate(splits):
        above, below = drawn[k], drawn[k + n_columns]
        part = summary.filter(split=split)
        _curves(above, part, "coverage", styles(summary))
        above.axhline(100.0 * level, color=INK, linewidth=0.9, linestyle=(0, (6, 3)))
        lowest = 100.0 * float(np.nanmin((summary["coverage"] - summary["coverage_se"].fill_nan(0.0)).to_numpy()))
        above.set_ylim(min(lowest - 1.0, 88.0), 102.0)
        put_title(above, split)
        _curves(below, part, "width", styles(summary))
        below.set_ylim(bottom=0.0)
        put_labels(above, "", CURVES["coverage"][3] if k == 0 else "")
        put_labels(below, size_words[1], CURVES["width"][3] if k == 0 else "")
    known = summary["coverage"].to_numpy()
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    nominal = theme.level_words(level)
    put_message(figure, f"{nominal} intervals hold {theme.interval_words(low, high, 0)} of the true scores")
    note = f"Dashed: the nominal {nominal}. {BARS}"
    _name_curves(figure, drawn[n_columns:], summary, "width", (splits, n_columns), note=note)
    return figure


def figure_error_spread(
    estimates: pl.DataFrame, *, size: float | None = None, size_words: tuple[str, str] = ITEMS
) -> "Figure":
    """Draw the error of every model against its true score, one panel a split and method (tinyBenchmarks Figure 6).

    A point is the mean error of a model over repeats and draws, its bar reaches from the 5th to the 95th percentile.

    Parameters
    ----------
    estimates : table
        Of one target.
    size : float or None
        The budget to draw; the largest if None.
    size_words : (str, str)
        As for `draw_study`.
    """
    size = float(estimates["budget"].to_numpy().max()) if size is None else size
    chosen = estimates.filter(pl.col("budget") == size).with_columns(
        error=100.0 * (pl.col("estimate") - pl.col("truth"))
    )
    chosen = chosen.filter(pl.col("error").is_not_nan())
    key = ["split", "selector", "estimator"]
    groups = chosen.group_by(key, maintain_order=True).agg(pl.col("error").abs().mean()).rows()
    _check_panels(len(groups))
    methods = list(dict.fromkeys(group[1:3] for group in groups))
    n_columns = len(methods) if len(methods) <= 3 else 3  # one row a split where they fit
    figure = new_figure(WIDTH, 2.3 * -(-len(groups) // n_columns) + 1.2)
    for k, (axes, group) in enumerate(zip(panels(figure, len(groups), n_columns), groups, strict=True)):
        part = chosen.filter(pl.col(name) == value for name, value in zip(key, group[:3], strict=True))
        _draw_spread(axes, part, PALETTE[methods.index(group[1:3]) % len(PALETTE)])
        words = (
            theme.shortened(group[0], 26),
            theme.shortened(f"{group[1]} × {group[2]}", 26),
            theme.points(0.01 * group[3]),
        )
        put_title(axes, "\n".join(words))
        is_last = k + n_columns >= len(groups)
        put_labels(axes, "true score (%)" if is_last else "", "error (points)" if k % n_columns == 0 else "")
    best = min(groups, key=lambda group: group[3])
    put_message(
        figure,
        f"{size_words[0]} {size:g}: {best[1]} × {best[2]} errs least, by {theme.points(0.01 * best[3])} on average"
        + (f" ({best[0]})" if len({group[0] for group in groups}) > 1 else ""),
    )
    put_foot(
        figure,
        "Points: mean error of a model over repeats and draws; bars: from the 5th to the 95th percentile. Titles: "
        "mean absolute error.",
    )
    return figure


def _message(summary: pl.DataFrame, kind: str, size_words: tuple[str, str]) -> str:
    """Say which method is best with the most items, on the mean over splits, and which worst."""
    metric = CURVES[kind][0]
    size = float(summary["budget"].to_numpy().max())
    known = summary.filter(pl.col("budget") == size, pl.col(metric).is_not_nan())
    means = known.group_by("selector", "estimator", maintain_order=True).agg(pl.col(metric).mean()).rows()
    head = f"{size_words[0]} {size:g}: "
    if not means:
        return f"{head}no method gives an estimate"
    ordered = sorted(means, key=lambda row: row[2] if kind == "error" else -row[2])
    best, worst = ("errs least", "most") if kind == "error" else ("ranks best", "worst")
    said = [
        f"{one} × {other} {word} ({theme.points(value) if kind == 'error' else f'{value:.3f}'})"
        for (one, other, value), word in zip((ordered[0], ordered[-1]), (best, worst), strict=True)
    ]
    return head + ", ".join(said[: len(means)])


def _split_panels(summary: pl.DataFrame, n_splits: int) -> "tuple[Figure, list[Axes], int]":
    """One panel a split, in rows of up to three."""
    n_columns = min(3, n_splits)
    height = 2.4 * -(-n_splits // n_columns) + 1.1 + (0.9 if n_columns == 1 else 0.0)
    figure = new_figure(WIDTH, height + _legend_height(summary, n_columns))
    return figure, panels(figure, n_splits, n_columns, share_y=True), n_columns


def _name_curves(
    figure: "Figure",
    drawn: "Sequence[Axes]",
    summary: pl.DataFrame,
    kind: str,
    layout: tuple[list[str], int],
    *,
    note: str,
) -> None:
    """Name every method: at the ends of the curves where there is room, otherwise in a legend."""
    style, (splits, n_columns) = styles(summary), layout
    names = {pair: f"{pair[0]} × {pair[1]}" for pair in style}
    if n_columns > MOST_LABELLED:
        handles = {str(line.get_label()): line for line in drawn[0].containers}
        put_foot(figure, note, list(handles.values()), list(handles))
        return
    metric, _, scale, _ = CURVES[kind]
    for k, (axes, split) in enumerate(zip(drawn, splits, strict=False)):
        if k % n_columns == n_columns - 1 or k == len(splits) - 1:
            ends = {
                (row["selector"], row["estimator"]): scale * row[metric]
                for row in summary.filter(split=split).sort("budget").to_dicts()
            }
            label_lines(axes, [LineLabel(names[pair], ends.get(pair, float("nan")), style[pair][0]) for pair in style])
    put_foot(figure, note)


def styles(summary: pl.DataFrame) -> dict[tuple[str, str], tuple[str, object, str]]:
    """Colour a selector, line and marker an estimator; the other way round where there is one selector.

    Where there are more selectors than colours, or estimators than lines, those that would look the same as others take
    the next line and marker that is free.
    """
    selectors, estimators = _names(summary, "selector"), _names(summary, "estimator")
    pairs = summary.select("selector", "estimator").unique(maintain_order=True).rows()
    result: dict[tuple[str, str], tuple[str, object, str]] = {}
    for selector, estimator in pairs:
        colour, line = selectors.index(selector), estimators.index(estimator)
        if len(selectors) == 1:
            colour, line = line, 0
        looks = (_look(colour, line + shift) for shift in range(len(LINE_STYLES) * len(MARKERS)))
        taken = set(result.values())
        result[selector, estimator] = next((look for look in looks if look not in taken), _look(colour, line))
    return result


def _look(colour: int, line: int) -> tuple[str, object, str]:
    """Colour, line and marker by number: every line meets every marker before they come again."""
    marker = line + line // len(LINE_STYLES)
    return PALETTE[colour % len(PALETTE)], LINE_STYLES[line % len(LINE_STYLES)], MARKERS[marker % len(MARKERS)]


def _curves(axes: "Axes", part: pl.DataFrame, kind: str, style: dict[tuple[str, str], tuple[str, object, str]]) -> None:
    """Draw one curve a method."""
    metric, error, scale, _ = CURVES[kind]
    for (selector, estimator), (colour, line, marker) in style.items():
        rows = part.filter(selector=selector, estimator=estimator).sort("budget")
        bars = scale * rows[error].fill_nan(0.0).to_numpy() if error else None
        axes.errorbar(
            rows["budget"].to_numpy(),
            scale * rows[metric].to_numpy(),
            yerr=bars,
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=3.5,
            linewidth=1.3,
            elinewidth=0.7,
            markerfacecolor=colour if line == "-" else "white",
            label=f"{selector} × {estimator}",
        )
    sizes = part["budget"].unique().sort().to_list()
    if len(sizes) > 1 and sizes[-1] >= 8.0 * sizes[0]:
        axes.set_xscale("log")
        axes.minorticks_off()
    put_counts(axes, sizes)


def _draw_spread(axes: "Axes", part: pl.DataFrame, colour: str) -> None:
    by_model = part.group_by("model_id", maintain_order=True).agg(
        truth=pl.col("truth").mean(),
        mean=pl.col("error").mean(),
        low=pl.col("error").quantile(0.05, "linear"),
        high=pl.col("error").quantile(0.95, "linear"),
    )
    truth, mean, low, high = (by_model[name].to_numpy() for name in ("truth", "mean", "low", "high"))
    axes.vlines(100.0 * truth, low, high, color=colour, linewidth=0.8, alpha=0.45)
    axes.plot(100.0 * truth, mean, "o", color=colour, markersize=3.0, markeredgewidth=0.0, alpha=0.8)
    axes.axhline(0.0, color=INK, linewidth=0.9)


def _names(table: pl.DataFrame, column: str) -> list[str]:
    names: list[str] = table[column].unique(maintain_order=True).to_list()
    return names


def _legend_height(summary: pl.DataFrame, n_columns: int) -> float:
    """Inches of a legend below panels that have no room for names."""
    return 0.22 * -(-len(styles(summary)) // 2) if n_columns > MOST_LABELLED else 0.0


def _check_panels(n_panels: int) -> None:
    if not 1 <= n_panels <= MOST_PANELS:
        raise ParameterError(
            f"a figure must have from 1 to {MOST_PANELS} panels, got {n_panels}. "
            "Draw fewer splits, selectors or estimators (--split, --selector, --estimator)."
        )
