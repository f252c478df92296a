"""RMSE of difficulties against the number of models (after IRSL Figure 2), and against the samples a cell."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import Spec, below, beside, equals, marks, number, panel, shade, span

WAYS = {
    "published": ("@muted", "published objective"),
    "variational": ("@main", "variational"),
    "map": ("@other", "joint MAP"),
}
DASHES = {"beta": [1, 0], "bernoulli": [2, 3], "binomial": [5, 3]}
NAMES = {"beta": "probabilities", "bernoulli": "single answers"}
BUDGETS = {"beta": ("@c3", "rates as probabilities"), "binomial": ("@c2", "counts")}
COLUMNS = ("panel", "line", "along", "rmse", "low", "high")
Lines = dict[str, tuple[str, list[int]]]
"""Colour and dashes of each line by its name."""


def draw(recovery: pl.DataFrame, budgets: pl.DataFrame, path: Path) -> None:
    """Write the figure as a PNG file."""
    looks: Lines = {}
    rows: list[tuple[object, ...]] = []
    pictures: list[tuple[str, str]] = []
    for item_model in ("1pl", "2pl"):
        title = f"{item_model.upper()}: by models"
        pictures.append((title, "Models"))
        rows += _recovery(recovery.filter(pl.col("item_model") == item_model), title, looks)
        part = budgets.filter((pl.col("item_model") == item_model) & (pl.col("way") == "variational"))
        for n_models in (8, 32):
            title = f"{item_model.upper()}: {n_models} models"
            pictures.append((title, "Samples of a cell"))
            rows += _budgets(part.filter(pl.col("n_models") == n_models), title, looks)
    data = Data("errors", dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))
    legend = {"orient": "bottom", "columns": 2, "symbolType": "stroke", "labelLimit": 300}
    colour, dash = (shade("line", {name: one[k] for name, one in looks.items()}, **legend) for k in (0, 1))
    parts = [_panel(*one, colour, dash) for one in pictures]
    words = _message(recovery)
    chart = Chart(
        words,
        below(beside(*parts[:3]), beside(*parts[3:]), spacing=18),
        (data,),
        f"{words}.",
        note="Means over trials, bars of two standard errors to each side. Left: IRSL's simulation, where solid lines "
        "saw probabilities, dotted ones single answers. Others: variational, from the samples of a cell.",
    )
    chart.save(path)


def _panel(title: str, along: str, colour: Spec, dash: Spec) -> Spec:
    """Draw the lines of one panel."""
    own = equals("panel", title)
    scale = {"domain": [0.004, 20.0], "nice": False}
    x = number("along", along, "~s", log=True, scale={"nice": False}, tickCount=4)
    y = number("rmse", "RMSE of difficulty", "~g", log=True, scale=scale, values=[0.01, 0.1, 1.0, 10.0])
    return panel(
        165,
        170,
        marks("rule", x, span(y), where=own, color=colour, clip=True),
        marks("line", x, y, where=own, color=colour, strokeDash=dash, clip=True),
        marks("point", x, y, where=own, color=colour, clip=True, size=22),
        title=title,
    )


def _recovery(found: pl.DataFrame, title: str, looks: Lines) -> Iterator[tuple[object, ...]]:
    """Yield one line a way and kind of response."""
    for way, (colour, name) in WAYS.items():
        for family in ("bernoulli", "beta"):
            line = found.filter((pl.col("way") == way) & (pl.col("family") == family))
            label = f"{NAMES[family]}, {name}"
            if line.height:
                looks[label] = (colour, DASHES[family])
            yield from _line(line, "n_models", title, label)


def _budgets(found: pl.DataFrame, title: str, looks: Lines) -> Iterator[tuple[object, ...]]:
    """Yield one line a way to give counts."""
    for family, (colour, name) in BUDGETS.items():
        looks[name] = (colour, DASHES[family])
        yield from _line(found.filter(pl.col("family") == family), "n_samples", title, name)


def _line(line: pl.DataFrame, along: str, title: str, label: str) -> Iterator[tuple[object, ...]]:
    """Yield the means over trials with two standard errors to each side."""
    doubt = (2.0 * (pl.col("rmse_sd") / pl.col("n_trials").sqrt())).fill_null(0.0).fill_nan(0.0)
    for place, rmse, half in line.sort(along).select(along, "rmse", doubt.alias("doubt")).rows():
        yield title, label, place, rmse, max(rmse - half, 1e-6), rmse + half


def _message(recovery: pl.DataFrame) -> str:
    """Compare the published objective with ours at the fewest models both have."""
    single = recovery.filter(pl.col("item_model") == "1pl", pl.col("family") == "bernoulli")
    wide = single.pivot("way", index="n_models", values="rmse").drop_nulls().sort("n_models")
    first = wide.row(0, named=True)
    return (
        f"From single answers of {first['n_models']} models the variational method misses difficulties by "
        f"{first['variational']:.2f} (1PL), the published objective by {first['published']:.2f}"
    )
