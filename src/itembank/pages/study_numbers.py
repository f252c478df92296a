"""What the page of a study draws: one row a split, method and size, in points, and which methods stand out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Data
from itembank.studies.results import StudyResult

USUAL_SIZE = 100.0
"""Items that the answer is given for, where the study has them, or the size nearest to them."""
IN_COLOUR = 6
"""Methods that pictures of many show in colours of their own."""
OTHERS = "other methods"
TWO_ERRORS = 2.0
METHOD = pl.concat_str("selector", pl.lit(" × "), "estimator")
SCALED = {"mae": 100.0, "mae_se": 100.0, "bias": 100.0, "p95": 100.0, "worst": 100.0, "half_width": 100.0}
"""Metrics that are written in points."""


@dataclass(frozen=True, slots=True)
class BestMethod:
    """Which method erred least on one split at one size, and which others cannot be told from it."""

    split: str
    method: str
    error: float  # Mean absolute error over models in points, and its standard error over models
    error_se: float
    # Methods whose errors, model by model, differ by less than two standard errors on average; nearest first.
    tied: tuple[str, ...]
    next_method: str  # The first that is worse clearly; '' for none
    next_error: float
    coverage: float  # Share of its intervals that held the truth; NaN without intervals
    n_models: int


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
    def of(cls, result: StudyResult, target: str) -> "StudyNumbers":
        """Take one target of a study."""
        summary = result.summary.filter(target=target).with_columns(
            method=METHOD, **{name: scale * pl.col(name) for name, scale in SCALED.items()}
        )
        estimates = result.estimates.filter(target=target).with_columns(method=METHOD)
        # relative to the mean of a split and size, so that hard ones do not count for more
        relative = pl.col("mae") / pl.col("mae").mean().over("split", "budget")
        order = (
            summary.with_columns(relative=relative)
            .group_by("method", maintain_order=True)
            .agg(pl.col("relative").mean())
        )
        sizes = summary["budget"].unique().sort().to_numpy()
        is_items = not result.budget_unit
        size = sizes[np.argmin(np.abs(np.log(sizes / USUAL_SIZE)))] if is_items else sizes[sizes.size // 2]
        return cls(
            summary,
            estimates,
            tuple(summary["split"].unique(maintain_order=True).to_list()),
            tuple(order.sort("relative", maintain_order=True, nulls_last=True)["method"].to_list()),
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

    def data(self) -> Data:
        """Return the rows that charts share."""
        rows = self.summary.sort("budget", maintain_order=True)
        spread = rows["mae_se"].fill_nan(0.0)
        cover = rows["coverage_se"].fill_nan(0.0)
        of_method = {name: place for place, name in enumerate(self.methods)}
        columns: dict[str, Any] = {
            "split": rows["split"],
            "split_place": [self.splits.index(name) for name in rows["split"]],
            "method": rows["method"],
            "method_place": [of_method[name] for name in rows["method"]],
            "shade": [name if name in self.coloured else OTHERS for name in rows["method"]],
            "size": rows["budget"],
            "error": rows["mae"],
            "error_low": (rows["mae"] - spread),
            "error_high": (rows["mae"] + spread),
            "p95": rows["p95"],
            "coverage": rows["coverage"],
            "coverage_low": (rows["coverage"] - cover).clip(0.0, 1.0),
            "coverage_high": (rows["coverage"] + cover).clip(0.0, 1.0),
            "half_width": rows["half_width"],
            "spearman": rows["spearman"],
            "n_items": rows["n_items"],
        }
        return Data("methods", columns)

    def best(self, split: str) -> BestMethod | None:
        """Return the best method of a split at the size that counts; None where nothing was estimated."""
        part = self.estimates.filter(split=split, budget=self.size)
        by_model = (
            part.with_columns(error=100.0 * (pl.col("estimate") - pl.col("truth")).abs())
            .filter(pl.col("error").is_not_nan())
            .group_by("method", "model_id", maintain_order=True)
            .agg(pl.col("error").mean())
            .pivot(on="method", index="model_id", values="error")
        )
        errors = {name: by_model[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in by_model.columns[1:]}
        order = sorted(errors, key=lambda name: float(np.nanmean(errors[name])))
        if not order:
            return None
        first, *others = order
        tied = [name for name in others if not _is_clear(errors[name] - errors[first])]
        worse = next((name for name in others if name not in tied), "")
        rows = self.summary.filter(split=split, budget=self.size)
        error, coverage = dict(zip(rows["method"], rows["mae"], strict=True)), rows.filter(method=first)["coverage"]
        known = errors[first][np.isfinite(errors[first])]
        spread = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")
        return BestMethod(
            split=split,
            method=first,
            error=error[first],
            error_se=spread,
            tied=tuple(tied),
            next_method=worse,
            next_error=error.get(worse, float("nan")),
            coverage=float(coverage[0]),
            n_models=known.size,
        )


def _is_clear(difference: FloatArray) -> bool:
    """Whether a mean difference over models is more than two standard errors from nothing."""
    known = difference[np.isfinite(difference)]
    return known.size > 1 and bool(known.mean() > TWO_ERRORS * known.std(ddof=1) / np.sqrt(known.size))
