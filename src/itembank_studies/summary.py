"""How good estimates are: one row for each split, selector, estimator, size and target, and ratios to one method."""

from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import spearman

TIE_DIGITS = 12
"""Two sums of the same responses may differ by rounding, which must not break a tie."""


def clustered_mean(
    values: FloatArray,  # (n_values,)
    cluster: IntArray,  # (n_values,): Whole numbers from 0
) -> tuple[float, float]:
    """Mean of values (n_values,) and its standard error when they depend on each other within clusters.

    The ratio of sum to number, see `clustered_ratio`; where clusters are of one size, the error is that of the mean of
    the cluster means.
    """
    return clustered_ratio(values, np.ones(values.shape), cluster)


def clustered_ratio(
    first: FloatArray,  # (n_values,)
    second: FloatArray,  # (n_values,)
    cluster: IntArray,  # (n_values,): Whole numbers from 0
) -> tuple[float, float]:
    """Ratio of the means of paired values (n_values,), and its standard error when clusters depend within.

    ``r = sum_c A_c / sum_c B_c`` with A_c, B_c the sums of a cluster;
    ``SE^2 = C / (C - 1) sum_c (A_c - r B_c)^2 / (sum_c B_c)^2``, the error of a ratio estimate from C clusters of a
    large population (Cochran 1977, chapter 6). NaN with a single cluster, or where `second` sums to nothing.
    """
    total = float(np.sum(second))
    if total <= 0.0:
        return float("nan"), float("nan")
    ratio = float(np.sum(first)) / total
    _, index = np.unique(cluster, return_inverse=True)
    residual = np.bincount(index, weights=first - ratio * second)
    n_clusters = residual.size
    if n_clusters < 2:
        return ratio, float("nan")
    return ratio, float(np.sqrt(n_clusters / (n_clusters - 1) * np.sum(residual**2))) / total


def ratio_of_sums(first: str, second: str, name: str) -> tuple[pl.Expr, pl.Expr]:
    """`clustered_ratio` of two columns to aggregate groups by, `name` and `name`_se, where every row is a cluster."""
    total, n = pl.col(second).sum().cast(pl.Float64), pl.len().cast(pl.Float64)
    ratio = pl.when(total > 0.0).then(pl.col(first).sum() / total).otherwise(float("nan"))
    squares = ((pl.col(first) - ratio * pl.col(second)) ** 2).sum()
    error = pl.when(n > 1.0).then((n / (n - 1.0) * squares).sqrt() / total).otherwise(float("nan"))
    return ratio.alias(name), error.alias(f"{name}_se")


def pair_agreement(
    truth: FloatArray,  # (n_models,)
    estimates: FloatArray,  # (n_models,)
) -> tuple[float, float]:
    """Kendall's tau-b of estimates with the truth, and the share of pairs of models put in the right order.

    ``tau_b = sum_pairs s_t s_e / sqrt(n_t n_e)`` with s the sign of a difference and n the pairs without a tie.
    Of the pairs whose true scores differ, one that is tied in the estimates counts as half right.

    Returns tau_b, share_right : float: NaN where all models are tied.
    """
    first, second = np.round(truth, TIE_DIGITS), np.round(estimates, TIE_DIGITS)
    row, column = np.triu_indices(truth.shape[0], k=1)
    s_truth = np.sign(first[row] - first[column])
    s_estimate = np.sign(second[row] - second[column])
    agreement = float(np.sum(s_truth * s_estimate))
    n_truth, n_estimate = int(np.count_nonzero(s_truth)), int(np.count_nonzero(s_estimate))
    tau = agreement / float(np.sqrt(float(n_truth) * n_estimate)) if n_truth and n_estimate else float("nan")
    right = 0.5 + 0.5 * agreement / n_truth if n_truth else float("nan")
    return tau, right


def is_covered(truth: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether intervals (n_values,) cover the truth; their ends may differ from it by rounding."""
    tolerance = 10.0**-TIE_DIGITS
    return (low - tolerance <= truth) & (truth <= high + tolerance)


PAIR = ("split", "repeat", "fold", "draw", "budget", "target", "model_id")


def error_ratios(
    estimates: pl.DataFrame,  # As `run_study` makes it
    selector: str,  # Of the reference, by their names in the results
    estimator: str,
) -> pl.DataFrame:
    """Return the ratio of each method's mean absolute error to that of a reference, with its standard error.

    Both errors of a pair are of the same model in the same repeat, fold and draw, so that what made models hard for
    both cancels: the standard error (over repeats) is smaller than those of the two means suggest.

    Returns table: One row for each split, selector, estimator, budget and target: `ratio`, `ratio_se`, `n_pairs`.
    """
    known = estimates.with_columns(error=(pl.col("estimate") - pl.col("truth")).abs()).filter(
        pl.col("error").is_not_nan()
    )
    reference = known.filter(selector=selector, estimator=estimator).select(*PAIR, reference="error")
    if reference.height == 0:
        methods = [
            f"{one} {other}" for one, other in known.select("selector", "estimator").unique(maintain_order=True).rows()
        ]
        raise ParameterError(
            f"the reference must be a selector and estimator of the study: {shown(methods, len(methods))}; "
            f"got '{selector} {estimator}'."
        )
    pairs = known.join(reference, on=PAIR, how="inner", maintain_order="left")
    sums = pairs.group_by(*CELL, "repeat", maintain_order=True).agg(
        pl.col("error").sum(), pl.col("reference").sum(), n_pairs=pl.len()
    )
    ratios = sums.group_by(CELL, maintain_order=True).agg(
        *ratio_of_sums("error", "reference", "ratio"), pl.col("n_pairs").sum()
    )
    return ratios.sort("target", "budget", maintain_order=True)


def geometric_mean(ratios: pl.DataFrame) -> pl.DataFrame:
    """Return the geometric mean of the ratios of each selector and estimator over splits and budgets, by target."""
    return ratios.group_by("target", "selector", "estimator", maintain_order=True).agg(
        ratio=pl.col("ratio").log().mean().exp(), n_cells=pl.len()
    )


CELL = ("split", "selector", "estimator", "budget", "target")
POOL_BELOW = 20
"""With fewer new models a fold, on average, models are ranked together over the folds of a repeat."""

METRICS = {
    "mae": "mean absolute error",
    "p95": "95th percentile of the absolute errors",
    "worst": "largest absolute error",
    "bias": "mean of estimate less truth",
    "rmse": "root mean squared error",
    "spearman": "rank correlation of estimates and truth over the new models",
    "kendall": "Kendall's tau-b of the same",
    "pair_accuracy": "share of pairs of models put in the right order",
    "coverage": "share of intervals that cover the truth",
    "half_width": "median half-width of the intervals",
    "half_width_over_p95": "half_width over p95",
    "effective_items": "Kish's effective number of items",
    "n_items": "items chosen, on average",
    "cost": "expected cost of the selection, on average",
    "n_calibration": "past models, on average",
    "seconds_calibrate": "CPU seconds of a calibration",
    "seconds_select": "CPU seconds of a selection",
    "seconds_estimate": "CPU seconds of estimating the new models of a fold",
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
    sizes = estimates.group_by("split", "repeat", "fold").agg(n=pl.col("model_id").n_unique())
    small = sizes.group_by("split").agg(pooled=pl.col("n").mean() < POOL_BELOW)
    ranked_by = {name: ["repeat", "draw"] if pooled else ["repeat", "fold", "draw"] for name, pooled in small.rows()}
    rows = [
        dict(zip(CELL, key, strict=True)) | _metrics(cell, ranked_by[key[0]])
        for key, cell in estimates.group_by(CELL, maintain_order=True)
    ]
    return pl.DataFrame(rows, infer_schema_length=None).sort("target", "budget", maintain_order=True)


def _metrics(cell: pl.DataFrame, ranked_by: list[str]) -> dict[str, Any]:
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
    has_interval = ~(np.isnan(known["low"]) | np.isnan(known["high"]))
    truth, low, high, repeat = (known[name][has_interval] for name in ("truth", "low", "high", "repeat"))
    result["coverage"], result["coverage_se"] = clustered_mean(is_covered(truth, low, high).astype(np.float64), repeat)
    result["half_width"] = _or_nan(0.5 * (high - low), np.median)
    result["half_width_over_p95"] = result["half_width"] / result["p95"] if result["p95"] else float("nan")
    return result | {name: cell[name].mean() for name in (*MEANS, *SECONDS)}


def _or_nan(values: FloatArray, function: Any) -> float:
    return float(function(values)) if values.size else float("nan")


def _rankings(known: Columns, ranked_by: list[str]) -> dict[str, float]:
    """Mean over rankings of two models or more of how well they agree with the truth, with errors over repeats."""
    order = np.lexsort([known[name] for name in reversed(ranked_by)])
    keys = np.array([known[name][order] for name in ranked_by])  # (n_keys, n_estimates)
    starts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    found = []
    for rows in np.split(order, starts):
        if rows.size > 1:
            truth, estimates = known["truth"][rows], known["estimate"][rows]
            (rho,) = spearman(truth[None, :], estimates[None, :])
            found.append((float(known["repeat"][rows[0]]), float(rho), *pair_agreement(truth, estimates)))
    repeat, *agreements = np.array(found).reshape(-1, 4).T
    result: dict[str, float] = {}
    for name, agreement in zip(("spearman", "kendall", "pair_accuracy"), agreements, strict=True):
        is_known = ~np.isnan(agreement)
        mean, error = clustered_mean(agreement[is_known], repeat[is_known].astype(np.int64))
        result |= {name: mean, f"{name}_se": error}
    return result
