"""Distribution of the gap between the traditional law's error and the default's (after IRSL Figure 8)."""

from pathlib import Path

import polars as pl

from itembank.data.atomic import replacing_file
from itembank.reports.canvas import INK, PALETTE, new_figure, panels, put_title


def draw(gaps: pl.DataFrame, path: Path) -> None:
    """Write a histogram of the gap for every set."""
    names = gaps["set"].unique(maintain_order=True).to_list()
    n_columns = min(len(names), 3)
    figure = new_figure(3.2 * n_columns, 2.4 * -(-len(names) // n_columns))
    for axes, name in zip(panels(figure, len(names), n_columns, share_y=False), names, strict=True):
        values = gaps.filter(pl.col("set") == name)["gap"].to_numpy() * 100.0
        axes.hist(values, bins=40, color=PALETTE[0])
        axes.axvline(0.0, color=PALETTE[1], linewidth=1.2)
        put_title(axes, f"{name}\n{(values > 0.0).mean():.0%} right of zero")
        axes.set_xlabel("traditional error − IRSL error of pass@k (points)", fontsize=8, color=INK)
        axes.set_ylabel("models × splits", fontsize=8, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path) as place:
        figure.savefig(place, format="png")
