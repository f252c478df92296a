"""Distribution of the gap between the traditional law's error and the default's (the data of IRSL Figure 8)."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import SOLID, marks, nominal, number, picture, ruled, span, when
from itembank.pages.theme import percent

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def draw(gaps: pl.DataFrame, path: Path) -> None:
    """Write the spread of the gap for every set, the largest above."""
    spreads = {name: 100.0 * rows["gap"].to_numpy() for (name,), rows in gaps.group_by("set", maintain_order=True)}
    names = sorted(spreads, key=lambda name: -float(np.median(spreads[name])))
    shares = {name: float(np.mean(spreads[name] > 0.0)) for name in names}
    low, lower, middle, upper, high = np.array([np.quantile(spreads[name], QUANTILES) for name in names]).T
    columns = {"low": low, "lower": lower, "middle": middle, "upper": upper, "high": high}
    labels = [f"{name} ({percent(shares[name], 0)})" for name in names]
    data = Data("gaps", {"set": labels, "place": np.arange(len(names)), **columns})
    y = nominal("set", "place", labelLimit=240, grid=False)
    x = number("middle", "Traditional error of pass@k less that of item response (points)")
    colour = when("datum.middle > 0", "@main", "@other")
    n_better = int(np.sum(middle > 0.0))
    words = (
        f"In {n_better} of {len(names)} sets item response errs less for most models and splits, in the worst one for "
        f"{percent(min(shares.values()), 0)} of them"
    )
    chart = Chart(
        words,
        picture(
            ruled("x", 0.0, strokeDash=SOLID),
            marks("rule", span(x), y, color=colour),
            marks("rule", span(x, "lower", "upper"), y, color=colour, strokeWidth=7),
            marks("point", x, y, color="@paper", stroke="@ink", size=45, opacity=1),
            height=24 * len(names),
        ),
        (data,),
        f"{words}.",
        note="Each row: models x splits of a set. Circle: the median; thick: the middle half; thin: 5 % to 95 %. In "
        "brackets: how many lie right of 0, where item response errs less.",
    )
    chart.save(path)
