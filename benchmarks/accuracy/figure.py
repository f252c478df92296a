"""Error against number of items, one panel for each data set and split (after tinyBenchmarks Figure 3)."""

from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.accuracy.study import P1_SELECTIONS, SIZES
from benchmarks.accuracy.summary import STRATEGIES
from itembank.pages import theme
from itembank.pages.figures.canvas import (
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
    save_figure,
)

COLOURS = dict(zip(P1_SELECTIONS, (MUTED, OTHER, MAIN), strict=True))
SPLITS = {"random": "new at random", "folds": "new at random", "date": "newest"}
TITLES = {
    "openllm1_core": "Open LLM v1",
    "mmlu-pro": "MMLU-Pro",
    "alpacaeval2": "AlpacaEval 2.0",
    "swebench_verified": "SWE-bench Verified",
    "leaderboard2_factors": "Leaderboard v2, simulated",
}
N_COLUMNS = 3
STATED = 100
"""Items for which the message says who errs least."""


def draw(summary: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    shown = [
        (name, split, part)
        for split in SPLITS
        for name in TITLES
        if (part := summary.filter(pl.col("data_set") == name, pl.col("split") == split)).height
    ]
    figure = new_figure(WIDTH, 2.0 * -(-len(shown) // N_COLUMNS) + 1.7)
    handles: dict[str, Any] = {}
    drawn = panels(figure, len(shown), N_COLUMNS, share_y=False)
    for place, (axes, (name, split, part)) in enumerate(zip(drawn, shown, strict=True)):
        handles |= _panel(axes, part)
        put_title(axes, f"{TITLES[name]}\n{SPLITS[split]}")
        is_lowest = place + N_COLUMNS >= len(shown)
        put_labels(axes, "items" if is_lowest else "", "mean error (points)" if place % N_COLUMNS == 0 else "")
    put_message(figure, _message(pl.concat([part for *_, part in shown])))
    put_foot(
        figure,
        "Bars: one standard error over repeats to each side. Solid (++): read by gp-IRT; dotted: by the weighted mean.",
        list(handles.values()),
        list(handles),
    )
    save_figure(figure, path)


def _message(summary: pl.DataFrame) -> str:
    """Say who errs least with 100 items, on the mean over panels, beside a random sample."""
    means = {
        name_of(*strategy): summary.filter(
            pl.col("selection") == strategy[0], pl.col("estimator") == strategy[1], pl.col("n_items") == STATED
        )["error"].mean()
        for strategy in STRATEGIES
    }
    best = min(means, key=means.__getitem__)
    plain = name_of(P1_SELECTIONS[0], "weighted")
    return (
        f"{STATED} items, on the mean over the panels: {best} errs by {theme.points(0.01 * means[best])}, a {plain} "
        f"sample by {theme.points(0.01 * means[plain])}"
    )


def name_of(selection: str, estimator: str) -> str:
    """Name a strategy as tinyBenchmarks does."""
    return f"{selection}{'++' if estimator == '++' else ''}"


def _panel(axes: Any, part: pl.DataFrame) -> dict[str, Any]:
    """Draw one line a strategy; return what the legend shows."""
    handles: dict[str, Any] = {}
    for selection, estimator in STRATEGIES:
        line = part.filter((pl.col("selection") == selection) & (pl.col("estimator") == estimator)).sort("n_items")
        handles[name_of(selection, estimator)] = axes.errorbar(
            line["n_items"].to_numpy(),
            line["error"].to_numpy(),
            yerr=line["standard_error"].fill_null(0.0).to_numpy(),
            color=COLOURS[selection],
            linestyle="-" if estimator == "++" else ":",
            marker="o" if estimator == "++" else "s",
            markersize=3,
            linewidth=1.4,
        )
    put_counts(axes, SIZES)
    axes.set_ylim(bottom=0.0)
    return handles
