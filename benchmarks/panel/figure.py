"""Figures of the default's intervals: coverage cell by cell, and width against error estimate by estimate."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.panel.goals import COVERAGE
from benchmarks.panel.table import NAMES
from itembank.estimation.typicality import FLAGGED
from itembank.pages import theme
from itembank.pages.figures.canvas import (
    FAINT,
    INK,
    MAIN,
    MUTED,
    OTHER,
    SOFT,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    put_title,
    save_figure,
)

LEVEL = 0.95
NORMAL_95 = 1.959964
WIDEST = 1.3
"""Median half-width over the errors' 95th percentile that intervals should stay below."""
FEWEST_IN_WINDOW = 60
"""Estimates from which the 95th percentile of their errors tells anything."""


def draw_coverage(records: list[dict[str, Any]], path: Path) -> None:
    """Write a figure as a PNG file: coverage, and median half-width over the 95th percentile of the errors."""
    rows = sorted(records, key=lambda row: (row["study"], row["split"], row["budget"]))
    heights = np.arange(len(rows), 0, -1)
    coverage = np.array([row["coverage"] for row in rows])
    low, high = wilson_interval(coverage, np.array([row["n_models"] for row in rows]))
    is_low = high < COVERAGE[0]
    figure = new_figure(WIDTH, 0.21 * len(rows) + 2.0)
    left, right = panels(figure, 2, 2, share_y=False)
    left.axvspan(*(100.0 * end for end in COVERAGE), color=FAINT)
    left.axvline(100.0 * LEVEL, color=INK, linewidth=1.0)
    for part, color in ((~is_low, MAIN), (is_low, OTHER)):
        ends = 100.0 * np.array([coverage - low, high - coverage])[:, part]
        left.errorbar(100.0 * coverage[part], heights[part], xerr=ends, fmt="o", color=color, markersize=4.0)
        widths = np.array([row["half_width_over_p95"] for row in rows])
        right.plot(widths[part], heights[part], "o", color=color, markersize=4.0)
    labels = [f"{NAMES[row['study']].split(',')[0]}, {row['split']}, {row['budget']:.0f}" for row in rows]
    left.set_yticks(heights, labels, fontsize=theme.TICK_SIZE)
    right.set_yticks(heights, [])
    right.axvline(1.0, color=INK, linewidth=1.0)
    right.axvline(WIDEST, color=INK, linewidth=1.0, linestyle=(0, (1, 2)))
    right.set_xlim(left=0.0)
    put_labels(left, "scores inside (%)", "")
    put_labels(right, "half-width / 95th percentile of errors", "")
    put_message(
        figure,
        f"{theme.level_words(LEVEL)} intervals hold {theme.percent(float(coverage.mean()))} of the scores on the mean "
        f"over {len(rows)} cells; in {int(is_low.sum()) or 'none'} they hold clearly fewer than "
        f"{theme.percent(COVERAGE[0], 0)}",
    )
    put_foot(
        figure,
        "A row: benchmark, split, items. Bars: 95 % intervals, each model one trial. Grey: the goal. Right: "
        "below 1 intervals are narrower than errors ask for; dotted: the widest they should be.",
    )
    save_figure(figure, path)


def wilson_interval(share: np.ndarray, n_trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval of a share, at 95 %, which stays between 0 and 1 and is never empty."""
    middle = (share + NORMAL_95**2 / (2.0 * n_trials)) / (1.0 + NORMAL_95**2 / n_trials)
    spread = np.sqrt(share * (1.0 - share) / n_trials + (NORMAL_95 / (2.0 * n_trials)) ** 2)
    half = NORMAL_95 * spread / (1.0 + NORMAL_95**2 / n_trials)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)


def draw_widths(default: pl.DataFrame, path: Path) -> None:
    """Write a figure as a PNG file: the error of every estimate against the half-width of its interval.

    Points above the diagonal are scores outside their intervals. Where widths are right, the 95th percentile of the
    errors of estimates of like width runs along the diagonal.

    Parameters
    ----------
    default : table
        Of `bands.default_estimates`.
    path : path
    """
    studies = [name for name in NAMES if name in set(default["study"])]
    n_columns = min(len(studies), 3)
    figure = new_figure(WIDTH, 2.5 * -(-len(studies) // n_columns) + 1.7)
    handles: dict[str, Any] = {}
    n_inside = 0
    drawn = panels(figure, len(studies), n_columns, share_y=False)
    for place, (axes, name) in enumerate(zip(drawn, studies, strict=True)):
        rows = default.filter(study=name)
        handles |= _panel(axes, rows)
        n_inside += rows.filter(pl.col("truth").is_between(pl.col("low"), pl.col("high"))).height
        put_title(axes, f"{NAMES[name].split(',')[0]} ({theme.count(rows.height)})")
        is_lowest = place + n_columns >= len(studies)
        put_labels(axes, "half-width (points)" if is_lowest else "", "error (points)" if place % n_columns == 0 else "")
    n_all = default.filter(pl.col("study").is_in(studies)).height
    put_message(
        figure,
        f"{theme.percent(n_inside / n_all)} of {theme.count(n_all)} estimates have the score inside their "
        f"{theme.level_words(LEVEL)} interval; the rest lie above the diagonal",
    )
    put_foot(
        figure,
        "Intervals are right where the blue line runs along the diagonal, and wider than need be where it runs below.",
        list(handles.values()),
        list(handles),
    )
    save_figure(figure, path)


def _panel(axes: Any, rows: pl.DataFrame) -> dict[str, Any]:
    """Draw the estimates of one set; return what the legend shows."""
    width = 50.0 * (rows["high"] - rows["low"]).to_numpy()
    error = 100.0 * (rows["estimate"] - rows["truth"]).abs().to_numpy()
    flagged = rows["typicality"].to_numpy() < FLAGGED
    handles: dict[str, Any] = {}
    (handles["an estimate"],) = axes.plot(
        width[~flagged], error[~flagged], "o", color=SOFT, markersize=2.6, markeredgewidth=0.0, alpha=0.7
    )
    (handles["of a model that answered unlike past ones"],) = axes.plot(
        width[flagged], error[flagged], "o", color=OTHER, markersize=3.6, markerfacecolor="white"
    )
    limit = 1.05 * max(width.max(), error.max())
    axes.plot([0.0, limit], [0.0, limit], color=MUTED, linewidth=0.9)
    middle, percentile = running_percentile(width, error)
    (handles["95th percentile of the errors"],) = axes.plot(middle, percentile, color=MAIN, linewidth=2.0)
    axes.set(xlim=(0.0, 1.05 * width.max()), ylim=(0.0, 1.05 * max(error.max(), np.quantile(width, 0.5))))
    return handles


def running_percentile(width: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median width and 95th percentile of the errors in windows of estimates ordered by width, half overlapping."""
    if width.size < FEWEST_IN_WINDOW:
        return np.zeros(0), np.zeros(0)
    order, size = np.argsort(width, kind="stable"), max(FEWEST_IN_WINDOW, width.size // 8)
    starts = np.unique([*range(0, width.size - size, size // 2), width.size - size])
    windows = [order[start : start + size] for start in starts]
    middle = np.array([np.median(width[window]) for window in windows])
    return middle, np.array([np.quantile(error[window], LEVEL) for window in windows])
