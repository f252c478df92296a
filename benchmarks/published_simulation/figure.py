"""RMSE of difficulties against the number of models (after IRSL Figure 2), and against the samples a cell."""

from pathlib import Path
from typing import Any

import polars as pl

from itembank.pages.figures.canvas import (
    LINE_STYLES,
    MAIN,
    MUTED,
    OTHER,
    PALETTE,
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

WAYS = {"published": (MUTED, "published objective"), "variational": (MAIN, "variational"), "map": (OTHER, "joint MAP")}
LINES = {"beta": LINE_STYLES[0], "bernoulli": LINE_STYLES[2], "binomial": LINE_STYLES[1]}
NAMES = {"beta": "probabilities", "bernoulli": "single answers"}
BUDGETS = {"beta": (PALETTE[3], "rates as probabilities"), "binomial": (PALETTE[2], "counts")}


def draw(recovery: pl.DataFrame, budgets: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    figure = new_figure(WIDTH, 6.4)
    axes = panels(figure, 6, 3, share_y=False)
    handles: dict[str, Any] = {}
    for line, item_model in enumerate(("1pl", "2pl")):
        of_model = axes[3 * line : 3 * line + 3]
        handles |= _recovery_panel(of_model[0], recovery.filter(pl.col("item_model") == item_model))
        put_title(of_model[0], f"{item_model.upper()}: by models")
        part = budgets.filter((pl.col("item_model") == item_model) & (pl.col("way") == "variational"))
        for one, n_models in zip(of_model[1:], (8, 32), strict=True):
            handles |= _budget_panel(one, part.filter(pl.col("n_models") == n_models))
            put_title(one, f"{item_model.upper()}: {n_models} models")
        for place, one in enumerate(of_model):
            one.set_yscale("log")
            one.set_ylim(0.004, 20.0)
            put_counts(one, [0.01, 0.1, 1.0, 10.0], along="y")
            along = "models" if place == 0 else "samples of a cell"
            put_labels(one, along if line == 1 else "", "RMSE of difficulty" if place == 0 else "")
    put_message(figure, _message(recovery))
    put_foot(
        figure,
        "Means over trials, bars of two standard errors to each side. Left: IRSL's simulation, where solid lines saw "
        "probabilities, dotted ones single answers. Others: variational, from the samples of a cell.",
        list(handles.values()),
        list(handles),
    )
    save_figure(figure, path)


def _message(recovery: pl.DataFrame) -> str:
    """Compare the published objective with ours at the fewest models both have."""
    single = recovery.filter(pl.col("item_model") == "1pl", pl.col("family") == "bernoulli")
    wide = single.pivot("way", index="n_models", values="rmse").drop_nulls().sort("n_models")
    first = wide.row(0, named=True)
    return (
        f"From single answers of {first['n_models']} models the variational method misses difficulties by "
        f"{first['variational']:.2f} (1PL), the published objective by {first['published']:.2f}"
    )


def _recovery_panel(axes: Any, found: pl.DataFrame) -> dict[str, Any]:
    """Draw one line a way and kind of response; return what the legend shows."""
    handles: dict[str, Any] = {}
    for way, (colour, name) in WAYS.items():
        for family in ("bernoulli", "beta"):
            line = found.filter((pl.col("way") == way) & (pl.col("family") == family)).sort("n_models")
            if line.height:
                handles[f"{NAMES[family]}, {name}"] = _draw_line(axes, line, "n_models", family, colour)
    axes.set_xscale("log", base=2)
    put_counts(axes, found["n_models"].unique().sort().to_list()[::2])
    return handles


def _budget_panel(axes: Any, found: pl.DataFrame) -> dict[str, Any]:
    """Draw one line a way to give counts; return what the legend shows."""
    handles: dict[str, Any] = {}
    for family, (colour, name) in BUDGETS.items():
        line = found.filter(pl.col("family") == family).sort("n_samples")
        handles[name] = _draw_line(axes, line, "n_samples", family, colour)
    axes.set_xscale("log")
    put_counts(axes, [1, 10, 100, 1000])
    return handles


def _draw_line(axes: Any, line: pl.DataFrame, along: str, family: str, colour: str) -> Any:
    """Draw the means over trials with two standard errors to each side."""
    doubt = 2.0 * (line["rmse_sd"] / line["n_trials"].sqrt()).fill_null(0.0)
    return axes.errorbar(
        line[along], line["rmse"], yerr=doubt.fill_nan(0.0), linestyle=LINES[family], marker="o", markersize=3,
        color=colour, elinewidth=0.8,
    )  # fmt: skip
