"""Distribution of the gap between the traditional law's error and the default's (the data of IRSL Figure 8)."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.pages import theme
from itembank.pages.figures.canvas import (
    INK,
    MAIN,
    OTHER,
    WIDTH,
    new_figure,
    panels,
    put_foot,
    put_labels,
    put_message,
    save_figure,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def draw(gaps: pl.DataFrame, path: Path) -> None:
    """Write the spread of the gap for every set, the largest above."""
    spreads = {name: 100.0 * rows["gap"].to_numpy() for (name,), rows in gaps.group_by("set", maintain_order=True)}
    names = sorted(spreads, key=lambda name: float(np.median(spreads[name])))
    figure = new_figure(WIDTH, 0.3 * len(names) + 1.7)
    axes = panels(figure, 1, 1)[0]
    axes.grid(visible=False, axis="y")
    axes.axvline(0.0, color=INK, linewidth=1.0)
    for place, name in enumerate(names):
        low, lower, middle, upper, high = np.quantile(spreads[name], QUANTILES)
        color = MAIN if middle > 0.0 else OTHER
        axes.plot([low, high], [place, place], color=color, linewidth=1.2)
        axes.plot([lower, upper], [place, place], color=color, linewidth=6.0, solid_capstyle="butt")
        axes.plot([middle], [place], "o", color="white", markeredgecolor=color, markersize=5.0)
    shares = {name: float(np.mean(spreads[name] > 0.0)) for name in names}
    labels = [f"{name} ({theme.percent(shares[name], 0)})" for name in names]
    axes.set_yticks(range(len(names)), labels, fontsize=theme.TICK_SIZE, parse_math=False)
    put_labels(axes, "traditional error of pass@k less that of item response (points)", "")
    n_better = sum(float(np.median(values)) > 0.0 for values in spreads.values())
    put_message(
        figure,
        f"In {n_better} of {len(names)} sets item response errs less for most models and splits, in the worst one for "
        f"{theme.percent(min(shares.values()), 0)} of them",
    )
    put_foot(
        figure,
        "Each row: models x splits of a set. Circle: the median; thick: the middle half; thin: 5 % to 95 %. In "
        "brackets: how many lie right of 0, where item response errs less.",
    )
    save_figure(figure, path)
