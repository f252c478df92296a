"""Charts of a study: errors by method and size, coverage and width, errors of models, scenarios."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.charts import Spec, layers, tips
from itembank.pages.panels import across, in_order, panels, ruled
from itembank.pages.study_numbers import METHOD, OTHERS, BestMethod, StudyNumbers
from itembank.pages.theme import interval_words, level_words, percent
from itembank.responses.score_names import OVERALL
from itembank.studies.results import StudyResult

KINDS = ("error", "rank", "coverage", "width", "spread")
MOST_SPREAD = 400
"""Models of a split whose errors are drawn."""
MOST_WRITTEN = 12
"""Columns up to which each cell of a heat map states its number."""
WIDE_RANGE = 8.0
"""Of sizes, from which their axis is logarithmic."""
MOST_ABOVE = 1.6
"""How far above the largest error of the methods in colour a picture of errors reaches."""
SPLIT = {"split": "Split"}
LABELS = 175
"""Pixels that names of methods take at the left of a picture."""


def size_words(numbers: StudyNumbers, size: float) -> str:
    """Write a size: '100 items', '20000 output_tokens'."""
    return f"{size:g} {numbers.unit}"


def dots_chart(numbers: StudyNumbers, data: Data, best: Sequence[BestMethod]) -> Chart:
    """Draw every method's error at one size, the best on top, a panel a split."""
    at = [size == numbers.size for size in data.columns["size"]]
    chosen = _rows(data, at, "methods-at-size")
    y = in_order("method", "method_place", labelLimit=LABELS - 10)
    shown = tips(
        method="Method",
        split="Split",
        error=("Mean error (points)", ".2f"),
        p95=("Of 20 models, one errs by more than", ".1f"),
    )
    title = f"Mean error with {size_words(numbers, numbers.size)} (points)"
    parts = [
        {
            "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.5},
            "encoding": {"y": y, "x": across("error_low", title), "x2": {"field": "error_high"}, "tooltip": shown},
        },
        {
            "mark": {"type": "point", "size": 60, "opacity": 1, "color": "@main"},
            "encoding": {"y": y, "x": across("error", title), "tooltip": shown},
        },
    ]
    height = 18 * len(numbers.methods)
    words = " ".join(f"On split {one.split}: {_listed(chosen, one.split)}." for one in best)
    return Chart(
        f"Mean errors with {size_words(numbers, numbers.size)}, best methods on top",
        _by_split(numbers, parts, height=height, most=2, labels=LABELS),
        (chosen,),
        words,
        note="A point is the mean distance between estimated and true score over models left out; bars are a standard "
        "error up and down over repeats of the study. Fewer points are better.",
    )


def _listed(data: Data, split: str) -> str:
    rows = [k for k in range(len(data)) if data.columns["split"][k] == split]
    rows.sort(key=lambda k: data.columns["error"][k])
    return "; ".join(f"{data.columns['method'][k]} {data.columns['error'][k]:.2f}" for k in rows)


def _rows(data: Data, keep: Sequence[bool], name: str) -> Data:
    """Return some rows under another name."""
    return Data(
        name,
        {
            one: [value for value, kept in zip(list(values), keep, strict=True) if kept]
            for one, values in data.columns.items()
        },
    )


def _by_split(numbers: StudyNumbers, parts: Sequence[Spec], *, height: int, most: int = 3, labels: int = 56) -> Spec:
    if len(numbers.splits) == 1:
        return layers(*parts, height=height)
    n_columns = min(most, len(numbers.splits))
    return panels("split", "split_place", *parts, height=height, most=n_columns, labels=labels)


def size_axis(sizes: Sequence[float], title: str) -> Spec:
    """Return the axis of sizes, with a tick at each."""
    is_wide = len(sizes) > 1 and sizes[-1] >= WIDE_RANGE * sizes[0]
    scale = {"type": "log"} if is_wide else {"zero": False, "padding": 12}
    return across("size", title, form="~s", scale=scale, axis={"values": list(sizes), "labelOverlap": True})


def shades(coloured: Sequence[str], *, is_cut: bool) -> Spec:
    """Return the colours of methods by the column `shade`: their own for some, grey for the others."""
    tones = [f"@c{k}" for k in range(len(coloured))] + ["@soft"]
    names = [*coloured, *([OTHERS] if is_cut else [])]
    legend = {"title": None, "orient": "top", "columns": 3, "labelLimit": 210, "symbolType": "stroke"}
    scale = {"domain": names, "range": tones[: len(names)]}
    return {"field": "shade", "type": "nominal", "scale": scale, "legend": {**legend, "symbolStrokeWidth": 3}}


def curves(
    x: Spec,
    y: tuple[str, str, str],
    shade: Spec,
    *,
    band: tuple[str, str] | None = None,
    scale: Spec | None = None,
    panel: Mapping[str, str] = SPLIT,
) -> list[Spec]:
    """Return a line a method, with standard errors from `band`; `y` is (field, title, format)."""
    field, title, form = y
    scale = scale or {"zero": True}
    faint = {"condition": {"test": f"datum.shade === '{OTHERS}'", "value": 0.45}, "value": 1}
    shown = tips(method="Method", **panel, size=("Size", "~s"), **{field: (title, form or ".2f")})
    common = {"x": x, "color": shade, "detail": {"field": "method"}, "opacity": faint}
    height = across(field, title, form=form, scale=scale)
    parts: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2, "clip": True}, "encoding": {**common, "y": height}},
        {"mark": {"type": "point", "size": 32, "clip": True}, "encoding": {**common, "y": height, "tooltip": shown}},
    ]
    if band is not None:
        ends = {**common, "y": across(band[0], title, form=form, scale=scale), "y2": {"field": band[1]}}
        parts.insert(0, {"mark": {"type": "rule", "strokeWidth": 1.2, "clip": True}, "encoding": ends})
    return parts


def errors_up_to(errors: Data) -> tuple[Spec, str]:
    """Return the scale of errors, cut where methods in grey would squeeze the others, and words on that."""
    values = [value for value in errors.columns["error"] if np.isfinite(value)]
    shown = [
        value
        for value, shade in zip(errors.columns["error"], errors.columns["shade"], strict=True)
        if shade != OTHERS and np.isfinite(value)
    ]
    top = MOST_ABOVE * max(shown, default=0.0)
    if not top or max(values) <= top:
        return {"zero": True}, ""
    return {"domain": [0.0, top]}, f" Errors above {top:.0f} points are not drawn; the table has them."


def _curves(
    numbers: StudyNumbers, field: str, title: str, form: str = "", band: tuple[str, str] | None = None, **scale: object
) -> list[Spec]:
    words = "Items asked" if numbers.unit == "items" else f"Spent ({numbers.unit})"
    sizes = numbers.summary["budget"].unique().sort().to_list()
    shade = shades(numbers.coloured, is_cut=numbers.is_cut)
    return curves(size_axis(sizes, words), (field, title, form), shade, band=band, scale=scale)


def grey_note(n_coloured: int, n_methods: int) -> str:
    """Say which methods stand in grey; '' where none does."""
    if n_coloured == n_methods:
        return ""
    return (
        f" The {n_coloured} methods with the smallest errors are in colour, {n_methods - n_coloured} others in grey; "
        "point at one for its name."
    )


def _grey_note(numbers: StudyNumbers) -> str:
    return grey_note(len(numbers.coloured), len(numbers.methods))


def error_chart(numbers: StudyNumbers, data: Data, best: Sequence[BestMethod]) -> Chart:
    """Draw errors against the number of items."""
    scale, cut = errors_up_to(data)
    parts = _curves(numbers, "error", "Mean error (points)", band=("error_low", "error_high"), **scale)
    first = best[0]
    own = numbers.summary.filter(split=first.split, method=first.method).sort("budget")
    steps = ", ".join(
        f"{error:.2f} with {size_words(numbers, size)}" for error, size in own.select("mae", "budget").rows()
    )
    return Chart(
        _falls(numbers, first, own),
        _by_split(numbers, parts, height=280),
        (data,),
        f"Mean error of {first.method} on {first.split}, in points: {steps}.",
        note=f"Bars are a standard error up and down over repeats.{_grey_note(numbers)}{cut}",
    )


def _falls(numbers: StudyNumbers, best: BestMethod, own: pl.DataFrame) -> str:
    errors, sizes = own["mae"].to_list(), own["budget"].to_list()
    if len(sizes) < 2:
        return f"{best.method} errs by {errors[0]:.1f} points with {size_words(numbers, sizes[0])}"
    return (
        f"From {sizes[0]:g} to {size_words(numbers, sizes[-1])}, the error of {best.method} goes from {errors[0]:.1f} "
        f"to {errors[-1]:.1f} points on split {best.split}"
    )


def coverage_chart(numbers: StudyNumbers, data: Data, best: Sequence[BestMethod]) -> Chart:
    """Draw the share of intervals that held the truth against the level they claim."""
    known = numbers.summary["coverage"].to_numpy()
    lowest = min(float(np.nanmin(known)), numbers.level)
    floor = max(0.0, np.floor(20.0 * (lowest - 0.03)) / 20.0)
    band = ("coverage_low", "coverage_high")
    parts = _curves(numbers, "coverage", "Intervals that held the truth", ".0%", band, domain=[floor, 1.0], zero=False)
    level = level_words(numbers.level)
    words = "; ".join(
        f"{one.method} on split {one.split}: {percent(one.coverage)}" for one in best if np.isfinite(one.coverage)
    )
    return Chart(
        f"{level} intervals held the truth in {interval_words(np.nanmin(known), np.nanmax(known), 0)} of the cases",
        _by_split(numbers, [ruled("y", numbers.level), *parts], height=230),
        (data,),
        f"Claimed: {level}. Held with {size_words(numbers, numbers.size)}: {words}.",
        note=f"The dashed line is what intervals claim, {level}. Below it, they are too narrow.{_grey_note(numbers)}",
    )


def width_chart(numbers: StudyNumbers, data: Data, best: Sequence[BestMethod]) -> Chart:
    """Draw half the width of the intervals."""
    parts = _curves(numbers, "half_width", "Half-width (points)", zero=True)
    own = numbers.summary.filter(split=best[0].split, method=best[0].method).sort("budget")
    words = ", ".join(
        f"{width:.1f} with {size_words(numbers, size)}" for width, size in own.select("half_width", "budget").rows()
    )
    return Chart(
        f"Intervals of {best[0].method} reach {_at_size(own, numbers.size):.1f} points to either side with "
        f"{size_words(numbers, numbers.size)}",
        _by_split(numbers, parts, height=230),
        (data,),
        f"Median half-width of intervals of {best[0].method} on {best[0].split}, in points: {words}.",
        note=f"The median over models.{_grey_note(numbers)}",
    )


def _at_size(own: pl.DataFrame, size: float) -> float:
    return float(own.filter(budget=size)["half_width"][0])


def ranks_chart(numbers: StudyNumbers, data: Data, best: Sequence[BestMethod]) -> Chart:
    """Draw how well the order of models is kept."""
    parts = _curves(numbers, "spearman", "Rank correlation", ".2f", zero=False)
    first = best[0]
    own = numbers.summary.filter(split=first.split, method=first.method, budget=numbers.size)
    words = f"{first.method} on {first.split} with {size_words(numbers, numbers.size)}: {own['spearman'][0]:.3f}"
    return Chart(
        "How well estimates keep the order of models (1 is the same order)",
        _by_split(numbers, parts, height=210),
        (data,),
        f"Spearman's rank correlation of estimated and true scores. {words}.",
        note=f"Spearman's rank correlation over the models left out.{_grey_note(numbers)}",
    )


def spread_chart(numbers: StudyNumbers, best: Sequence[BestMethod]) -> Chart:
    """Draw the error of every model against its score, by the best method of each split."""
    parts = [_spread(numbers, place, one) for place, one in enumerate(best)]
    frame = pl.concat(parts)
    data = Data("model-errors", {name: frame[name].to_list() for name in frame.columns})
    shown = tips(
        model_id="Model",
        truth=("True score", ".1%"),
        error=("Mean error (points)", "+.1f"),
        low=("5 % of errors below", "+.1f"),
        high=("5 % above", "+.1f"),
    )
    x = across("truth", "True score", form=".0%", scale={"zero": False})
    marks = [
        ruled("y", 0.0, strokeDash=[1, 0]),
        {
            "mark": {"type": "rule", "color": "@soft", "opacity": 0.7},
            "encoding": {"x": x, "y": across("low", "Error (points)"), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "size": 26, "color": "@main", "opacity": 0.85},
            "encoding": {"x": x, "y": across("error", "Error (points)"), "tooltip": shown},
        },
    ]
    worst = frame.sort(pl.col("error").abs(), descending=True).head(3)
    named = "; ".join(
        f"{name} {error:+.1f} ({split})" for name, error, split in worst.select("model_id", "error", "split").rows()
    )
    columns = (
        Column("split", "Split", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("model_id", "Model", "id"),
        Column("truth", "True score", "percent"),
        Column("error", "Mean error (points)", "number", digits=2),
        Column("low", "5 % of errors below", "number"),
        Column("high", "5 % above", "number"),
    )
    cut = frame.height < sum(one.n_models for one in best)
    return Chart(
        f"Errors of single models with {size_words(numbers, numbers.size)}, by the best method of each split",
        _by_split(numbers, marks, height=240),
        (data,),
        f"The models with the largest mean errors, in points: {named}.",
        table=Table("Errors of models", data, columns),
        note="Above the line the estimate was too high. Bars hold nine of ten estimates of a model, where a study "
        "repeats."
        + (
            f" At most {MOST_SPREAD} models of a split are drawn, evenly from the lowest to the highest score."
            if cut
            else ""
        ),
    )


def _spread(numbers: StudyNumbers, place: int, best: BestMethod) -> pl.DataFrame:
    error = 100.0 * (pl.col("estimate") - pl.col("truth"))
    chosen = numbers.estimates.filter(split=best.split, budget=numbers.size, method=best.method).with_columns(
        error=error
    )
    by_model = (
        chosen.filter(pl.col("error").is_not_nan())
        .group_by("model_id", maintain_order=True)
        .agg(
            truth=pl.col("truth").mean(),
            low=pl.col("error").quantile(0.05, "linear"),
            high=pl.col("error").quantile(0.95, "linear"),
            error=pl.col("error").mean(),
        )
        .sort("truth")
    )
    rows = np.unique(np.linspace(0, by_model.height - 1, min(MOST_SPREAD, by_model.height)).round().astype(int))
    drawn: pl.DataFrame = by_model[rows.tolist()]
    return drawn.with_columns(split=pl.lit(best.split), split_place=pl.lit(place), method=pl.lit(best.method))


def scenario_chart(result: StudyResult, numbers: StudyNumbers, split: str) -> Chart:
    """Draw the errors of every method on every score, at one size, on one split."""
    rows = result.summary.filter(split=split, budget=numbers.size).with_columns(
        method=METHOD, error=100.0 * pl.col("mae")
    )
    targets = rows["target"].unique(maintain_order=True).to_list()
    data = Data(
        "scenario-errors",
        {
            "target": rows["target"],
            "target_place": [targets.index(name) for name in rows["target"]],
            "method": rows["method"],
            "method_place": [numbers.methods.index(name) for name in rows["method"]],
            "error": rows["error"],
            "coverage": rows["coverage"],
        },
    )
    shown = tips(
        method="Method",
        target="Score",
        error=("Mean error (points)", ".2f"),
        coverage=("Intervals held", ".1%"),
    )
    top = float(np.nanquantile(rows["error"].to_numpy(), 0.95))
    colour = {
        "field": "error",
        "type": "quantitative",
        "scale": {"domain": [0, top], "clamp": True, "range": "ramp"},
        "legend": {"title": "Mean error (points)", "titleLimit": 320, "orient": "bottom", "gradientLength": 200},
    }
    parts: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "@paper"}, "encoding": {"color": colour, "tooltip": shown}}
    ]
    if len(targets) <= MOST_WRITTEN:
        ink = {"condition": {"test": f"datum.error > {0.55 * top}", "value": "@paper"}, "value": "@ink"}
        text = {"field": "error", "type": "quantitative", "format": ".1f"}
        parts.append({"mark": {"type": "text", "fontSize": 10.5}, "encoding": {"text": text, "color": ink}})
    spec = {
        "autosize": "pad",
        "width": {"step": int(np.clip(680 // len(targets), 18, 62))},
        "height": {"step": 19},
        "encoding": {
            "x": in_order(
                "target", "target_place", labelAngle=-45, orient="top", grid=False, domain=False, labelLimit=130
            ),
            "y": in_order("method", "method_place", grid=False, domain=False, labelLimit=180),
        },
        "layer": parts,
    }
    best = rows.sort("error").group_by("target", maintain_order=True).first()
    words = "; ".join(
        f"{target}: {method} {error:.1f}" for target, method, error in best.select("target", "method", "error").rows()
    )
    columns = (
        Column("target", "Score", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("error", "Mean error (points)", "number", digits=2),
        Column("coverage", "Intervals held", "percent"),
    )
    return Chart(
        f"Mean errors by scenario, on split {split} with {size_words(numbers, numbers.size)}",
        spec,
        (data,),
        f"The smallest mean error of each score, in points: {words}.",
        table=Table("Errors by scenario", data, columns),
        note=f"Mean errors in points; the strongest colour stands for {top:.1f} and more.",
    )


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
    numbers = StudyNumbers.of(result, target)
    if size is not None:
        numbers = replace(numbers, size=size)
    best = [one for one in map(numbers.best, numbers.splits) if one is not None]
    if not best:
        raise ParameterError(f"a figure of a study needs estimates of {target!r}; every one of them failed.")
    if kind == "spread":
        return spread_chart(numbers, best)
    draw = {"error": error_chart, "rank": ranks_chart, "coverage": coverage_chart, "width": width_chart}[kind]
    return draw(numbers, numbers.data(), best)
