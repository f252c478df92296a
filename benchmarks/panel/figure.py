"""Coverage of the default's intervals, a point for each study, split and number of items."""

from pathlib import Path

import polars as pl

LEVEL = 0.95
WANTED = (0.93, 0.97)


def draw_coverage(table: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file: coverage, and median half-width over the 95th percentile of the errors."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    rows = list(table.sort("study", "split", "n_items").iter_rows(named=True))
    labels = [f"{row['study']}, {row['split']}, n = {row['n_items']}" for row in rows]
    heights = list(range(len(rows), 0, -1))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 0.27 * len(rows) + 1.3), sharey=True)
    left.axvspan(*WANTED, color="#1b6ca8", alpha=0.15)
    left.axvline(LEVEL, color="#1b6ca8", linewidth=1)
    for row, height in zip(rows, heights, strict=True):
        doubt = (row["coverage"] * (1.0 - row["coverage"]) / row["n_estimates"]) ** 0.5
        left.errorbar(row["coverage"], height, xerr=doubt, fmt="o", color="#d95f02", markersize=4)
        right.plot(row["half_width_over_p95"], height, "o", color="#555555", markersize=4)
    left.set_yticks(heights, labels, fontsize=8)
    left.set_xlabel("share of 95 % intervals that hold the score")
    right.axvline(1.3, color="#1b6ca8", linewidth=1, linestyle=":")
    right.set_xlim(0, None)
    right.set_xlabel("median half-width over the errors' 95th percentile")
    for axis in (left, right):
        axis.grid(axis="x", alpha=0.25)
        axis.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
