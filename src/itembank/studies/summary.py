"""From every single estimate to one row for each split, selector, estimator, size and target."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray
from itembank.studies.metrics import clustered_mean, is_covered, pair_agreement, spearman

CELL = ("split", "selector", "estimator", "budget", "target")
POOL_BELOW = 20
"""With fewer tested models a fold, on average, models are ranked together over the folds of a repeat."""

METRICS = {
    "mae": "mean absolute error",
    "p95": "95th percentile of the absolute errors",
    "worst": "largest absolute error",
    "bias": "mean of estimate less truth",
    "rmse": "root mean squared error",
    "spearman": "rank correlation of estimates and truth over the tested models",
    "kendall": "Kendall's tau-b of the same",
    "pair_accuracy": "share of pairs of models put in the right order",
    "coverage": "share of intervals that hold the truth",
    "half_width": "median half-width of the intervals",
    "half_width_over_p95": "half_width over p95",
    "effective_items": "Kish's effective number of items",
    "n_items": "items chosen, on average",
    "cost": "expected cost of the selection, on average",
    "n_calibration": "calibration models, on average",
    "seconds_calibrate": "CPU seconds of a calibration",
    "seconds_select": "CPU seconds of a selection",
    "seconds_estimate": "CPU seconds of estimating the tested models of a fold",
}
"""The columns of a summary that are metrics, and what they are."""

MEANS = ("effective_items", "n_items", "cost", "n_calibration")
SECONDS = ("seconds_calibrate", "seconds_select", "seconds_estimate")

Columns: TypeAlias = dict[str, Any]
"""Columns of a table as arrays of one length."""


def summarise(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return one row of metrics for each cell: split, selector, estimator, budget and target, in their order there.

    Standard errors (`mae_se`, `spearman_se`, `coverage_se`, ...) are over repeats: what another seed would change,
    not what other models would. They are NaN with one repeat.

    Parameters
    ----------
    estimates : table
        As `run_study` makes it.
    """
    ranked_by = _ranking_columns(estimates)
    rows = [
        dict(zip(CELL, key, strict=True)) | _metrics(cell, ranked_by[key[0]])
        for key, cell in estimates.group_by(CELL, maintain_order=True)
    ]
    return pl.DataFrame(rows, infer_schema_length=None).sort("target", "budget", maintain_order=True)


def _ranking_columns(estimates: pl.DataFrame) -> dict[Any, list[str]]:
    """Return what tells apart the sets of models that are ranked together, for each split."""
    sizes = estimates.group_by("split", "repeat", "fold").agg(n=pl.col("model_id").n_unique())
    small = sizes.group_by("split").agg(pooled=pl.col("n").mean() < POOL_BELOW)
    return {name: ["repeat", "draw"] if pooled else ["repeat", "fold", "draw"] for name, pooled in small.rows()}


def _metrics(cell: pl.DataFrame, ranked_by: list[str]) -> dict[str, Any]:
    """All metrics of one cell."""
    numbers = ("truth", "estimate", "low", "high", *ranked_by)
    values = {name: cell[name].to_numpy() for name in numbers}
    is_known = ~(np.isnan(values["truth"]) | np.isnan(values["estimate"]))
    known = {name: column[is_known] for name, column in values.items()}
    error, repeat = known["estimate"] - known["truth"], known["repeat"]
    size = np.abs(error)
    result: dict[str, Any] = {"n_estimates": size.size, "n_without": cell.height - size.size}
    result["mae"], result["mae_se"] = clustered_mean(size, repeat)
    result["p95"] = _or_nan(size, lambda values: np.percentile(values, 95.0))
    result["worst"] = _or_nan(size, np.max)
    result["bias"], result["bias_se"] = clustered_mean(error, repeat)
    result["rmse"] = _or_nan(error, lambda values: np.sqrt(np.mean(values**2)))
    result |= _rankings(known, ranked_by)
    result |= _intervals(known)
    result["half_width_over_p95"] = result["half_width"] / result["p95"] if result["p95"] else float("nan")
    return result | {name: cell[name].mean() for name in (*MEANS, *SECONDS)}


def _or_nan(values: FloatArray, function: Any) -> float:
    return float(function(values)) if values.size else float("nan")


def _rankings(known: Columns, ranked_by: list[str]) -> dict[str, float]:
    """Mean over rankings of how well they agree with the truth, with standard errors over repeats."""
    agreements = np.array(list(_agreements(known, ranked_by))).reshape(-1, 4)
    result: dict[str, float] = {}
    for column, name in enumerate(("spearman", "kendall", "pair_accuracy"), start=1):
        is_known = ~np.isnan(agreements[:, column])
        mean, error = clustered_mean(agreements[is_known, column], agreements[is_known, 0].astype(np.int64))
        result |= {name: mean, f"{name}_se": error}
    return result


def _agreements(known: Columns, ranked_by: list[str]) -> Iterator[tuple[float, float, float, float]]:
    """Yield repeat, Spearman, Kendall and share of right pairs of each ranking of two models or more."""
    order = np.lexsort([known[name] for name in reversed(ranked_by)])
    keys = np.array([known[name][order] for name in ranked_by])  # (n_keys, n_estimates)
    starts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    for rows in np.split(order, starts):
        if rows.size > 1:
            truth, estimates = known["truth"][rows], known["estimate"][rows]
            (rho,) = spearman(truth[None, :], estimates[None, :])
            yield float(known["repeat"][rows[0]]), float(rho), *pair_agreement(truth, estimates)


def _intervals(known: Columns) -> dict[str, float]:
    """Coverage and width of the intervals there are."""
    is_known = ~(np.isnan(known["low"]) | np.isnan(known["high"]))
    truth, low, high, repeat = (known[name][is_known] for name in ("truth", "low", "high", "repeat"))
    coverage, error = clustered_mean(is_covered(truth, low, high).astype(np.float64), repeat)
    width = float(np.median(0.5 * (high - low))) if low.size else float("nan")
    return {"coverage": coverage, "coverage_se": error, "half_width": width}
