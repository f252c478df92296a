"""Figures of the default's intervals: coverage cell by cell, and width against error estimate by estimate."""

from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.panel.goals import COVERAGE
from benchmarks.panel.table import NAMES
from itembank.estimation.typicality import FLAGGED

LEVEL = 0.95
BLUE, ORANGE, GREY = "#1b6ca8", "#d95f02", "#555555"
FEWEST_IN_WINDOW = 60
"""Estimates from which the 95th percentile of their errors tells anything."""


def draw_coverage(records: list[dict[str, object]], path: Path) -> None:
    """Write a figure as a PNG file: coverage, and median half-width over the 95th percentile of the errors."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    rows = sorted(records, key=lambda row: (row["study"], row["split"], row["budget"]))
    labels = [f"{row['study']}, {row['split']}, n = {row['budget']:.0f}" for row in rows]
    heights = list(range(len(rows), 0, -1))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 0.27 * len(rows) + 1.3), sharey=True)
    left.axvspan(*COVERAGE, color=BLUE, alpha=0.15)
    left.axvline(LEVEL, color=BLUE, linewidth=1)
    for row, height in zip(rows, heights, strict=True):
        doubt = (row["coverage"] * (1.0 - row["coverage"]) / row["n_models"]) ** 0.5
        left.errorbar(row["coverage"], height, xerr=doubt, fmt="o", color=ORANGE, markersize=4)
        right.plot(row["half_width_over_p95"], height, "o", color=GREY, markersize=4)
    left.set_yticks(heights, labels, fontsize=8)
    left.set_xlabel("share of 95 % intervals that hold the score")
    right.axvline(1.3, color=BLUE, linewidth=1, linestyle=":")
    right.set_xlim(0, None)
    right.set_xlabel("median half-width over the errors' 95th percentile")
    for axis in (left, right):
        axis.grid(axis="x", alpha=0.25)
        axis.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


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
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    studies = [name for name in NAMES if name in set(default["study"])]
    n_columns = min(len(studies), 3)
    n_rows = -(-len(studies) // n_columns)
    legend_columns = 1 if n_columns == 1 else 2
    legend_height = 0.25 * (4 / legend_columns) + 0.1  # inches
    size = (max(3.6 * n_columns, 4.6), 3.4 * n_rows + legend_height)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False)
    for axis, name in zip(axes.flat, studies, strict=False):
        _panel(axis, default.filter(study=name), NAMES[name])
    for axis in axes.flat[len(studies) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("absolute error (points)", fontsize=9)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=legend_columns, fontsize=8.5, frameon=False)
    figure.tight_layout(rect=(0, legend_height / size[1], 1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _panel(axis, rows: pl.DataFrame, title: str) -> None:
    """Draw the estimates of one set."""
    width = 50.0 * (rows["high"] - rows["low"]).to_numpy()
    error = 100.0 * (rows["estimate"] - rows["truth"]).abs().to_numpy()
    flagged = rows["typicality"].to_numpy() < FLAGGED
    axis.scatter(width[~flagged], error[~flagged], s=9, color=GREY, alpha=0.4, linewidths=0, label="an estimate")
    axis.scatter(
        width[flagged],
        error[flagged],
        s=18,
        facecolors="none",
        edgecolors=ORANGE,
        linewidths=0.8,
        label="an estimate of a model that answered unlike past ones",
    )
    limit = 1.05 * max(width.max(), error.max())
    axis.plot(
        [0, limit], [0, limit], color="black", linewidth=0.8, label="above this line the interval missed the score"
    )
    middle, percentile = running_percentile(width, error)
    axis.plot(middle, percentile, color=BLUE, linewidth=1.6, label="95th percentile of the errors at such widths")
    axis.set_xlim(0, 1.05 * width.max())
    axis.set_ylim(0, 1.05 * max(error.max(), np.quantile(width, 0.5)))
    axis.set_title(f"{title} ({error.size} estimates)", fontsize=9)
    axis.set_xlabel("half-width of the 95 % interval (points)", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.2)


def running_percentile(width: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median width and 95th percentile of the errors in windows of estimates ordered by width, half overlapping."""
    if width.size < FEWEST_IN_WINDOW:
        return np.zeros(0), np.zeros(0)
    order, size = np.argsort(width, kind="stable"), max(FEWEST_IN_WINDOW, width.size // 8)
    starts = np.unique([*range(0, width.size - size, size // 2), width.size - size])
    windows = [order[start : start + size] for start in starts]
    middle = np.array([np.median(width[window]) for window in windows])
    return middle, np.array([np.quantile(error[window], LEVEL) for window in windows])
