"""Charts of a study: errors by method and size, coverage and width, errors of models, scenarios."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.blocks import Chart, Column, Data, Table, heads
from itembank.pages.grammar import SOLID, Spec, marks, number, panels, ruled, score, shade, span, tips, when
from itembank.pages.theme import level_words, percent, share_interval_words
from itembank.responses.score_names import OVERALL
from itembank_studies.results import StudyResult

IN_COLOUR = 6
"""Methods that pictures of many show in colours of their own."""
OTHERS = "other methods"
METHOD = pl.concat_str("selector", pl.lit(" × "), "estimator")
SCALED = {"mae": 100.0, "mae_se": 100.0, "bias": 100.0, "p95": 100.0, "worst": 100.0, "half_width": 100.0}
"""Metrics that are written in points."""


@dataclass(frozen=True, slots=True)
class StudyNumbers:
    """A study's tables for one target."""

    summary: pl.DataFrame  # As `StudyResult.summary`, with `method`, and errors and widths in points
    estimates: pl.DataFrame  # With `method`
    splits: tuple[str, ...]  # Splits in their order; methods by their mean error over splits and sizes, the best first
    methods: tuple[str, ...]
    size: float  # That the answer is given for
    level: float
    unit: str  # Of sizes: 'items', or a cost

    @classmethod
    def create(cls, result: StudyResult, target: str) -> "StudyNumbers":
        """Take one target of a study."""
        summary = result.summary.filter(target=target).with_columns(
            method=METHOD, **{name: scale * pl.col(name) for name, scale in SCALED.items()}
        )
        estimates = result.estimates.filter(target=target).with_columns(method=METHOD)
        sizes = summary["budget"].unique().sort().to_numpy()
        is_items = not result.budget_unit
        # items that the answer is given for, where the study has them, or the size nearest to them
        usual_size = 100.0
        size = sizes[np.argmin(np.abs(np.log(sizes / usual_size)))] if is_items else sizes[sizes.size // 2]
        return cls(
            summary,
            estimates,
            tuple(summary["split"].unique(maintain_order=True).to_list()),
            by_relative_error(summary, "method", "split"),
            float(size),
            result.level,
            result.budget_unit or "items",
        )

    @property
    def coloured(self) -> tuple[str, ...]:
        """Methods in colours of their own: all where they are few, else the best ones."""
        few = len(self.methods) <= IN_COLOUR + 1
        return self.methods if few else self.methods[:IN_COLOUR]

    @property
    def is_cut(self) -> bool:
        """Whether some methods stand in grey."""
        return len(self.coloured) < len(self.methods)

    @property
    def is_repeated(self) -> bool:
        """Whether repeats tell the standard error of any mean error."""
        return bool((self.summary["mae_se"].fill_nan(0.0) > 0.0).any())

    def data(self) -> Data:
        """Return the rows that charts share."""
        rows = self.summary.sort("budget", maintain_order=True)
        spread = rows["mae_se"].fill_nan(0.0)
        cover = rows["coverage_se"].fill_nan(0.0)
        columns: dict[str, Any] = {
            "split": rows["split"],
            "split_place": [self.splits.index(name) for name in rows["split"]],
            "method": rows["method"],
            "shade": [name if name in self.coloured else OTHERS for name in rows["method"]],
            "size": rows["budget"],
            "error": rows["mae"],
            "error_low": (rows["mae"] - spread),
            "error_high": (rows["mae"] + spread),
            "coverage": rows["coverage"],
            "coverage_low": (rows["coverage"] - cover).clip(0.0, 1.0),
            "coverage_high": (rows["coverage"] + cover).clip(0.0, 1.0),
            "half_width": rows["half_width"],
            "spearman": rows["spearman"],
        }
        return Data("methods", columns)

    def of(self, split: str, method: str) -> pl.DataFrame:
        """Return the summary of a method on a split, by size."""
        return self.summary.filter(split=split, method=method).sort("budget")

    def best(self, split: str) -> str | None:
        """Return the method that erred least on a split at the size that counts; None without any."""
        known = self.summary.filter(pl.col("mae").is_not_nan(), split=split, budget=self.size)
        return known.sort("mae", maintain_order=True)["method"][0] if known.height else None


def by_relative_error(table: pl.DataFrame, column: str, panel: str) -> tuple[str, ...]:
    """Return the names in a column by their error, the best first.

    Errors count against the mean of their panel and budget, so that hard ones do not count for more.
    """
    relative = pl.col("mae") / pl.col("mae").mean().over(panel, "budget")
    means = table.with_columns(relative=relative).group_by(column, maintain_order=True).agg(pl.col("relative").mean())
    return tuple(means.sort("relative", maintain_order=True, nulls_last=True)[column].to_list())


KINDS = ("error", "rank", "coverage", "width", "spread")
Best: TypeAlias = Sequence[tuple[str, str]]
"""Splits, and which method erred least on each at one size."""
MOST_SPREAD = 400
"""Models of a split whose errors are drawn."""


def size_words(numbers: StudyNumbers, size: float) -> str:
    """Write a size: '100 items', '20000 output_tokens'."""
    return f"{size:g} {numbers.unit}"


def _by_split(numbers: StudyNumbers, parts: Sequence[Spec], *, height: int) -> Spec:
    n = len(numbers.splits)
    return panels("split", "split_place", *parts, n=n, height=height, alone=height)


def size_axis(sizes: Sequence[float], title: str) -> Spec:
    """Return the axis of sizes, with a tick at each."""
    wide_range = 8.0  # of sizes, from which their axis is logarithmic
    is_wide = len(sizes) > 1 and sizes[-1] >= wide_range * sizes[0]
    scale = {"type": "log"} if is_wide else {"zero": False, "padding": 12}
    return number("size", title, "~s", scale=scale, values=list(sizes), labelOverlap=True)


def shades(coloured: Sequence[str], *, is_cut: bool) -> Spec:
    """Return the colours of methods by the column `shade`: their own for some, grey for the others."""
    tones = {one: f"@c{k}" for k, one in enumerate(coloured)} | ({OTHERS: "@soft"} if is_cut else {})
    return shade("shade", tones, columns=3, labelLimit=210, symbolType="stroke", symbolStrokeWidth=3)


def curves(x: Spec, y: Spec, color: Spec, bars: str = "", *, panel: str = "") -> list[Spec]:
    """Return a line a method; `bars` is the field whose '_low' and '_high' are standard errors up and down.

    `panel` is what its names are called where pictures stand beside each other, by default 'Split'.
    """
    where = {"panel": panel} if panel else {"split": "Split"}
    of_value = (y["axis"]["title"], y["axis"].get("format", ".2f"))
    tip = tips(method="Method", **where, size=("Size", "~s"), **{y["field"]: of_value})
    faint = when(f"datum.shade === '{OTHERS}'", 0.45, 1)
    look: Spec = {"color": color, "detail": {"field": "method"}, "opacity": faint, "clip": True}
    parts = [marks("line", x, y, strokeWidth=2, **look), marks("point", x, y, tip=tip, size=32, **look)]
    if bars:
        parts.insert(0, marks("rule", x, span(y, f"{bars}_low", f"{bars}_high"), strokeWidth=1.2, **look))
    return parts


def errors_up_to(errors: Data) -> tuple[Spec, str]:
    """Return the scale of errors, cut where methods in grey would squeeze the others, and words on that."""
    known = [row for row in zip(errors.columns["error"], errors.columns["shade"], strict=True) if np.isfinite(row[0])]
    most_above = 1.6  # how far above the largest error of the methods in colour a picture of errors reaches
    top = most_above * max((value for value, tone in known if tone != OTHERS), default=0.0)
    if not top or max(value for value, _ in known) <= top:
        return {"zero": True}, ""
    return {"domain": [0.0, top]}, f" Errors above {top:.0f} points are not drawn; the table has them."


def grey_note(n_coloured: int, n_methods: int) -> str:
    """Say which methods stand in grey; '' where none does."""
    if n_coloured == n_methods:
        return ""
    return (
        f" The {n_coloured} methods with the smallest errors are in colour, {n_methods - n_coloured} others in grey; "
        "point at one for its name."
    )


def _curves(numbers: StudyNumbers, y: Spec, height: int, bars: str = "", *under: Spec) -> tuple[Spec, str]:
    """Return a panel a split of lines over sizes, and what their note says of methods in grey."""
    words = "Items asked" if numbers.unit == "items" else f"Spent ({numbers.unit})"
    x = size_axis(numbers.summary["budget"].unique().sort().to_list(), words)
    parts = curves(x, y, shades(numbers.coloured, is_cut=numbers.is_cut), bars)
    spec = _by_split(numbers, (*under, *parts), height=height)
    return spec, grey_note(len(numbers.coloured), len(numbers.methods))


def error_chart(numbers: StudyNumbers, data: Data, best: Best) -> Chart:
    """Draw errors against the number of items."""
    scale, cut = errors_up_to(data)
    spec, grey = _curves(numbers, number("error", "Mean error (points)", scale=scale), 280, "error")
    bars = "Bars are ± one standard error over repeats." if numbers.is_repeated else ""
    split, method = best[0]
    own = numbers.of(split, method)
    errors, sizes = own["mae"].to_list(), own["budget"].to_list()
    steps = ", ".join(
        f"{error:.2f} with {size_words(numbers, size)}" for error, size in zip(errors, sizes, strict=True)
    )
    title = (
        f"From {sizes[0]:g} to {size_words(numbers, sizes[-1])}, the error of {method} goes from "
        f"{errors[0]:.1f} to {errors[-1]:.1f} points on split {split}"
        if len(sizes) > 1
        else f"{method} errs by {errors[0]:.1f} points with {size_words(numbers, sizes[0])}"
    )
    return Chart(
        title,
        spec,
        (data,),
        f"Mean error of {method} on {split}, in points: {steps}.",
        note=f"{bars}{grey}{cut}".strip(),
    )


def coverage_chart(numbers: StudyNumbers, data: Data, best: Best) -> Chart:
    """Draw the share of intervals that cover the true score against the level they claim."""
    known = numbers.summary["coverage"].to_numpy()
    lowest = min(float(np.nanmin(known)), numbers.level)
    floor = max(0.0, np.floor(20.0 * (lowest - 0.03)) / 20.0)
    y = number("coverage", "Intervals that cover the true score (%)", ".0%", domain=[floor, 1.0], zero=False)
    spec, grey = _curves(numbers, y, 230, "coverage", ruled("y", numbers.level))
    level = level_words(numbers.level)
    covered = [(*one, float(numbers.of(*one).filter(budget=numbers.size)["coverage"][0])) for one in best]
    words = "; ".join(
        f"{method} on split {split}: {percent(share)}" for split, method, share in covered if np.isfinite(share)
    )
    return Chart(
        f"{level} intervals cover {share_interval_words(np.nanmin(known), np.nanmax(known))} of the true scores",
        spec,
        (data,),
        f"Claimed: {level}. Coverage with {size_words(numbers, numbers.size)}: {words}.",
        note=f"The dashed line is what intervals claim, {level}. Below it, they are too narrow.{grey}",
    )


def width_chart(numbers: StudyNumbers, data: Data, best: Best) -> Chart:
    """Draw half the width of the intervals."""
    spec, grey = _curves(numbers, number("half_width", "Half-width (points)", zero=True), 230)
    split, method = best[0]
    own = numbers.of(split, method)
    words = ", ".join(
        f"{width:.1f} with {size_words(numbers, size)}" for width, size in own.select("half_width", "budget").rows()
    )
    at_size = float(own.filter(budget=numbers.size)["half_width"][0])
    return Chart(
        f"Intervals of {method} are ± {at_size:.1f} points with {size_words(numbers, numbers.size)}",
        spec,
        (data,),
        f"Median half-width of intervals of {method} on {split}, in points: {words}.",
        note=f"The median over models.{grey}",
    )


def ranks_chart(numbers: StudyNumbers, data: Data, best: Best) -> Chart:
    """Draw how well the order of models is kept."""
    spec, grey = _curves(numbers, number("spearman", "Rank correlation", ".2f", zero=False), 210)
    split, method = best[0]
    own = numbers.of(split, method).filter(budget=numbers.size)
    words = f"{method} on {split} with {size_words(numbers, numbers.size)}: {own['spearman'][0]:.3f}"
    return Chart(
        "Rank correlation of estimated and true scores (1: the same order)",
        spec,
        (data,),
        f"Spearman's rank correlation of estimated and true scores. {words}.",
        note=f"Spearman's rank correlation over the held-out models.{grey}",
    )


def spread_chart(numbers: StudyNumbers, best: Best) -> Chart:
    """Draw the error of every model against its score, by the best method of each split."""
    every = [_spread(numbers, *one) for one in best]
    drawn = [np.linspace(0, one.height - 1, min(MOST_SPREAD, one.height)).round().astype(int) for one in every]
    frame = pl.concat([one[np.unique(rows).tolist()] for one, rows in zip(every, drawn, strict=True)])
    data = Data("model-errors", {name: frame[name].to_list() for name in frame.columns})
    tip = tips(
        model_id="Model",
        truth=("True score", ".1%"),
        error=("Mean error (points)", "+.1f"),
        low=("5 % of errors below", "+.1f"),
        high=("5 % above", "+.1f"),
    )
    x, y = score("truth", "True score"), number("error", "Error (points)")
    parts = (
        ruled("y", 0.0, strokeDash=SOLID),
        marks("rule", x, span(y), color="@soft", opacity=0.7),
        marks("point", x, y, tip=tip, size=26, color="@main", opacity=0.85),
    )
    worst = frame.sort(pl.col("error").abs(), descending=True).head(3)
    named = "; ".join(
        f"{name} {error:+.1f} ({split})" for name, error, split in worst.select("model_id", "error", "split").rows()
    )
    columns = (
        *heads("split", "method", "model_id", "truth"),
        Column("error", "Mean error (points)", "number", 2),
        Column("low", "5 % of errors below", "number"),
        Column("high", "5 % above", "number"),
    )
    cut = f" At most {MOST_SPREAD} models of a split are drawn, evenly from the lowest to the highest score."
    is_cut = frame.height < sum(one.height for one in every)
    bars = " Bars hold nine of ten estimates of a model." if bool((frame["low"] < frame["high"]).any()) else ""
    return Chart(
        f"Errors of single models with {size_words(numbers, numbers.size)}, by the best method of each split",
        _by_split(numbers, parts, height=240),
        (data,),
        f"The models with the largest mean errors, in points: {named}.",
        table=Table("Errors of models", data, columns),
        note=f"Above the line the estimate was too high.{bars}{cut * is_cut}",
    )


def _spread(numbers: StudyNumbers, split: str, method: str) -> pl.DataFrame:
    """Return the mean error of models by one method with its 5th and 95th percentile, by their true score."""
    chosen = numbers.estimates.filter(split=split, budget=numbers.size, method=method)
    by_model: pl.DataFrame = (
        chosen.with_columns(error=100.0 * (pl.col("estimate") - pl.col("truth")))
        .filter(pl.col("error").is_not_nan())
        .group_by("model_id", maintain_order=True)
        .agg(
            truth=pl.col("truth").mean(),
            low=pl.col("error").quantile(0.05, "linear"),
            high=pl.col("error").quantile(0.95, "linear"),
            error=pl.col("error").mean(),
        )
        .sort("truth")
    )
    place = numbers.splits.index(split)
    return by_model.with_columns(split=pl.lit(split), split_place=pl.lit(place), method=pl.lit(method))


def study_chart(result: StudyResult, kind: str, *, target: str = OVERALL, size: float | None = None) -> Chart:
    """Draw one of the charts of a study.

    Parameters
    ----------
    result : StudyResult
    kind : {'error', 'rank', 'coverage', 'width', 'spread'}
        Error, rank correlation, coverage or width of intervals against the number of items (tinyBenchmarks Figures 3,
        5, 11, 12 and 14); the error of every model against its true score, by the best method of each split (Figure 6).
    target : str
        The score that is estimated.
    size : float or None
        Spread: number of items, or amount of a cost; that nearest to 100 items, or the middle one, if None.

    Raises
    ------
    ParameterError
        For another kind, or a study without any estimate of the target.
    """
    if kind not in KINDS:
        raise ParameterError(f"kind of a figure must be one of {shown(KINDS)}, got {kind!r}.")
    (chart,) = _draw(result, (kind,), target, size)
    return chart


def charts_of_study(result: StudyResult) -> tuple[Chart, ...]:
    """Draw every kind of chart that a study has numbers for."""
    needs = {"coverage": "coverage", "width": "coverage", "rank": "spearman"}
    has = {name: bool(np.isfinite(result.summary[name].to_numpy()).any()) for name in needs.values()}
    return _draw(result, ("error", *(kind for kind, name in needs.items() if has[name]), "spread"), OVERALL, None)


def _draw(result: StudyResult, kinds: Sequence[str], target: str, size: float | None) -> tuple[Chart, ...]:
    numbers = StudyNumbers.create(result, target)
    if size is not None:
        numbers = replace(numbers, size=size)
    best = [(split, method) for split in numbers.splits if (method := numbers.best(split)) is not None]
    if not best:
        raise ParameterError(f"a figure of a study needs estimates of {target!r}; every one of them failed.")
    data = numbers.data()
    curves_of = {"error": error_chart, "rank": ranks_chart, "coverage": coverage_chart, "width": width_chart}
    return tuple(
        spread_chart(numbers, best) if kind == "spread" else curves_of[kind](numbers, data, best) for kind in kinds
    )
