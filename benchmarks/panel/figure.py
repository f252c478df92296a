"""Figures of the default's intervals: coverage cell by cell, and width against error estimate by estimate."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.panel.goals import COVERAGE
from benchmarks.panel.table import NAMES
from itembank.estimation.estimates import FLAGGED
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import SOLID, beside, equals, marks, nominal, number, of, panel, panels, ruled, shade, span
from itembank.pages.theme import count, level_words, percent

LEVEL = 0.95
NORMAL_95 = 1.959964
WIDEST = 1.3
"""Median half-width over the errors' 95th percentile that intervals should stay below."""
WHAT = ("an estimate", "of a model that answered unlike past ones", "95th percentile of the errors")
FEWEST_IN_WINDOW = 60
"""Estimates from which the 95th percentile of their errors tells anything."""


def draw_coverage(records: list[dict[str, Any]], path: Path) -> None:
    """Write a figure as a PNG file: coverage, and median half-width over the 95th percentile of the errors."""
    rows = sorted(records, key=lambda row: (row["study"], row["split"], row["budget"]))
    coverage = np.array([row["coverage"] for row in rows])
    low, high = wilson_interval(coverage, np.array([row["n_models"] for row in rows]))
    is_low = high < COVERAGE[0]
    data = Data(
        "cells",
        {
            "cell": [f"{NAMES[row['study']].split(',')[0]}, {row['split']}, {row['budget']:.0f}" for row in rows],
            "place": np.arange(len(rows)),
            "coverage": coverage,
            "low": low,
            "high": high,
            "width": [row["half_width_over_p95"] for row in rows],
            "goal": ["clearly below" if one else "met" for one in is_low],
        },
    )
    color = shade("goal", {"met": "@main", "clearly below": "@other"}, is_told=False)
    cell, unnamed = nominal("cell", "place", labelLimit=210, grid=False), nominal("cell", "place", labels=False)
    x = number("coverage", "Scores inside (%)", "%", zero=False)
    width = number("width", "Half-width / 95th percentile of errors", zero=True)
    goal = [{"from": COVERAGE[0], "to": COVERAGE[1]}]
    left = (
        marks("rect", span(x, "from", "to"), data=goal, color="@faint"),
        ruled("x", LEVEL, strokeDash=SOLID),
        marks("rule", span(x), cell, color=color),
        marks("point", x, cell, color=color, opacity=1),
    )
    right = (
        ruled("x", 1.0, strokeDash=SOLID),
        ruled("x", WIDEST, strokeDash=[2, 3]),
        marks("point", width, unnamed, color=color, opacity=1),
    )
    words = (
        f"{level_words(LEVEL)} intervals hold {percent(float(coverage.mean()))} of the scores on the mean over "
        f"{len(rows)} cells; in {int(is_low.sum()) or 'none'} they hold clearly fewer than {percent(COVERAGE[0], 0)}"
    )
    height = 19 * len(rows)
    chart = Chart(
        words,
        beside(panel(220, height, *left), panel(220, height, *right)),
        (data,),
        f"{words}.",
        note="A row: benchmark, split, items. Bars: 95 % intervals, each model one trial. Grey: the goal. Right: below "
        "1 intervals are narrower than errors ask for; dotted: the widest they should be.",
    )
    chart.save(path)


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
    rows: list[tuple[object, ...]] = []
    n_inside = 0
    for place, name in enumerate(studies):
        own = default.filter(study=name)
        title = f"{NAMES[name].split(',')[0]} ({count(own.height)})"
        rows += [(title, place, *row) for row in _points(own)]
        n_inside += own.filter(pl.col("truth").is_between(pl.col("low"), pl.col("high"))).height
    names = ("panel", "place", "what", "width", "error")
    data = Data("estimates", dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    color = shade("what", dict(zip(WHAT, ("@soft", "@other", "@main"), strict=True)), columns=3, labelLimit=260)
    x, y = number("width", "Half-width (points)"), number("error", "Error (points)")
    typical, flagged, line = (equals("what", name) for name in WHAT)
    n_all = default.filter(pl.col("study").is_in(studies)).height
    words = (
        f"{percent(n_inside / n_all)} of {count(n_all)} estimates have the score inside their {level_words(LEVEL)} "
        "interval; the rest lie above the diagonal"
    )
    chart = Chart(
        words,
        panels(
            "panel",
            "place",
            marks("point", x, y, where=typical, color=color, size=9, opacity=0.6),
            marks("point", x, y, where=flagged, color=color, size=14, filled=False),
            marks("line", x, of(y, "width"), color="@muted", strokeWidth=1),
            marks("line", x, y, where=line, color=color),
            resolve={"scale": {"x": "independent", "y": "independent"}},
        ),
        (data,),
        f"{words}.",
        note="Intervals are right where the blue line runs along the diagonal, and wider than need be where it runs "
        "below.",
    )
    chart.save(path)


def _points(rows: pl.DataFrame) -> list[tuple[str, float, float]]:
    """Return half-width and error of the estimates of one set, and the line of their 95th percentile."""
    width = 50.0 * (rows["high"] - rows["low"]).to_numpy()
    error = 100.0 * (rows["estimate"] - rows["truth"]).abs().to_numpy()
    flagged = rows["typicality"].to_numpy() < FLAGGED
    points = [(WHAT[int(k)], *one) for k, *one in zip(flagged, width.tolist(), error.tolist(), strict=True)]
    line = zip(*(one.tolist() for one in running_percentile(width, error)), strict=True)
    return [*points, *((WHAT[2], *one) for one in line)]


def running_percentile(width: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median width and 95th percentile of the errors in windows of estimates ordered by width, half overlapping."""
    if width.size < FEWEST_IN_WINDOW:
        return np.zeros(0), np.zeros(0)
    order, size = np.argsort(width, kind="stable"), max(FEWEST_IN_WINDOW, width.size // 8)
    starts = np.unique([*range(0, width.size - size, size // 2), width.size - size])
    windows = [order[start : start + size] for start in starts]
    middle = np.array([np.median(width[window]) for window in windows])
    return middle, np.array([np.quantile(error[window], LEVEL) for window in windows])
