"""Target curves by ability: what the items say, the line that puts it right, and what the curves turn out to be."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.blocks import row_blocks
from itembank.numerics.intervals import t_reach
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k.kernels import beta_pass_at_k, plug_in_pass_at_k, unbiased_pass_at_k
from itembank_scaling.transfers.correlations import WithInterval

MINIMUM_MODELS = 4
"""A line and its residual spread need two degrees of freedom at least."""

NO_BOUNDS = (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Link:
    """The line ``target = intercept + slope * source`` over n_models past models."""

    slope: float
    intercept: float
    residual_sd: float  # Around the line at the centre, with the degrees of freedom that the line leaves
    # Change of the log variance around the line with the source: near the floor of a benchmark logits vary more.
    log_variance_slope: float
    lowest: float  # Range of the sources; the variance is not carried beyond it
    highest: float
    centre: float  # Mean of the sources
    spread: float  # Sum of their squared distances from the mean
    source_noise: float  # Mean squared standard error of the sources: it is part of the residual spread
    n_models: int
    degrees_of_freedom: int


def fit_line(
    source: FloatArray, target: FloatArray, source_errors: FloatArray, *, bounds: tuple[float, float] = NO_BOUNDS
) -> Link:
    """Least-squares line of targets on sources, each (n_models,), over the models that have both.

    With 20 models or more the variance around it may change with the source, ``log s^2 = a + b x`` (Harvey 1976), and
    the line is fitted with weights ``1 / s^2``; fewer say too little of b, which is 0.

    A target at one of the bounds is known to lie there or beyond, where a benchmark's floor or ceiling hides it: it
    counts only where the line says that it should not.
    """
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    low, high = y <= bounds[0], y >= bounds[1]
    counts = ~(low | high)
    if counts.sum() < MINIMUM_MODELS:
        counts = np.ones_like(low)
    log_variance_slope = 0.0
    models_for_variance = 20  # with at least this many models the variance around a line may change along it
    n_rounds = 5  # alternations settle a simulated line to seven digits; three do to five
    # which censored targets count and how the variance changes both depend on the line: alternate a few times
    for _ in range(n_rounds):
        weights = counts * np.exp(-log_variance_slope * (x - x.mean()))
        slope, intercept = _weighted_line(x, y, weights)
        fitted = intercept + slope * x
        counts = ~((low & (fitted <= bounds[0])) | (high & (fitted >= bounds[1])))
        if counts.sum() < MINIMUM_MODELS:
            counts = np.ones_like(low)
        if counts.sum() >= models_for_variance:
            log_variance_slope = _log_variance_slope(x[counts], (y - fitted)[counts])
    weights = counts * np.exp(-log_variance_slope * (x - x.mean()))
    slope, intercept = _weighted_line(x, y, weights)
    n_counted = int((weights > 0.0).sum())
    free = n_counted - 2
    centre = float((weights * x).sum() / weights.sum())
    at_centre = float(np.exp(log_variance_slope * (centre - x.mean())))
    residual = y - intercept - slope * x
    return Link(
        slope=slope,
        intercept=intercept,
        residual_sd=float(np.sqrt(at_centre * (weights * residual**2).sum() / free)),
        log_variance_slope=log_variance_slope,
        lowest=float(x[weights > 0.0].min()),
        highest=float(x[weights > 0.0].max()),
        centre=centre,
        spread=float((weights * (x - centre) ** 2).sum() * at_centre),
        source_noise=float((errors**2).mean()),
        n_models=n_counted,
        degrees_of_freedom=free,
    )


def _weighted_line(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Slope and intercept of a weighted least-squares line; slope 0 where the sources do not differ."""
    total = weights.sum()
    centre, height = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * (x - centre) ** 2).sum()
    slope = float((weights * (x - centre) * (y - height)).sum() / spread) if spread > 0.0 else 0.0
    return slope, float(height - slope * centre)


def _log_variance_slope(x: FloatArray, residual: FloatArray) -> float:
    """Slope of log squared residuals on x, shrunk towards 0 and bounded."""
    spread = ((x - x.mean()) ** 2).sum()
    if spread == 0.0 or not residual.any():
        return 0.0
    # the log of a residual that is zero by chance is minus infinity and would decide the slope alone
    # E log chi^2 is the same constant at every x, so it does not bias the slope (Harvey 1976)
    squares = np.log(np.maximum(residual**2, 1e-4 * (residual**2).mean()))
    # models that the belief in an even variance counts for. With 25 models of even variance the slopes of its
    # logarithm scatter by 0.38 with it and by 0.54 without
    prior_models = 10.0
    slope = ((x - x.mean()) * (squares - squares.mean())).sum() / (spread * (1.0 + prior_models / x.size))
    most_ratio = 100.0  # largest ratio of the variances at both ends of a line
    most = np.log(most_ratio) / (x.max() - x.min())
    return float(np.clip(slope, -most, most))


def same_scale(source: FloatArray, target: FloatArray, source_errors: FloatArray) -> Link:
    """Take the target to be the source itself, as far off as past models' targets are from their sources."""
    known = np.isfinite(source) & np.isfinite(target)
    x, y, errors = source[known], target[known], source_errors[known]
    residual = float(np.sqrt(((y - x) ** 2).mean()))
    return Link(
        slope=1.0,
        intercept=0.0,
        residual_sd=residual,
        log_variance_slope=0.0,
        lowest=float(x.min()),
        highest=float(x.max()),
        centre=float(x.mean()),
        spread=np.inf,
        source_noise=float((errors**2).mean()),
        n_models=x.size,
        degrees_of_freedom=x.size,
    )


def predict(link: Link, source: FloatArray, source_errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of Student's t distribution of the targets of new models, from their sources (n_models,).

    ``scale^2 = s(x)^2 + s^2 (1/n + (x - mean)^2 / S) + slope^2 (SE^2 - mean SE^2 of calibration)+``: a source known
    worse than those of the past models, from fewer items, adds what it is worse by. On a common scale, where
    nothing was fitted, the terms of the line fall away.
    """
    line_error = 0.0 if np.isinf(link.spread) else 1.0 / link.n_models
    reach = (source - link.centre) ** 2 / link.spread if link.spread > 0.0 else 0.0
    worse = np.maximum(source_errors**2 - link.source_noise, 0.0)
    within = np.clip(source, link.lowest, link.highest)
    change = np.exp(link.log_variance_slope * (within - link.centre))
    scale = np.sqrt(link.residual_sd**2 * (change + line_error + reach) + link.slope**2 * worse)
    return link.intercept + link.slope * source, scale


def quantiles(
    link: Link, source: FloatArray, source_errors: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Median and the ends of the central interval of each model's target, each (n_models,)."""
    centre, scale = predict(link, source, source_errors)
    reach = t_reach(level, link.degrees_of_freedom) * scale
    return centre, centre - reach, centre + reach


def item_curves(parameters: ItemParameters, theta: FloatArray, k: int) -> FloatArray:
    """Chance that at least one of k samples is right, (n_models, n_items), at abilities theta (n_models,).

    Where the family has a precision phi, the p of a cell is Beta(p phi, (1 - p) phi) and pass@k is the mean over it;
    without one p is what the curve says (IRSL eq. 4).
    """
    p = probability(parameters, theta[:, None])
    if k == 1:
        return p
    if parameters.precision is None:
        return plug_in_pass_at_k(p, np.float64(k))
    tiny = 1e-12  # means of a Beta distribution are kept this far from 0 and 1, where it has no density
    inside = np.clip(p, tiny, 1.0 - tiny)
    return beta_pass_at_k(inside * parameters.precision, (1.0 - inside) * parameters.precision, np.float64(k))


def mean_curves(
    parameters: ItemParameters,
    theta: FloatArray,  # (n_models,)
    k: tuple[int, ...],
    counted: BoolArray,  # (n_models, n_items): At least one item of each model
) -> FloatArray:
    """Mean of `item_curves` over the items that count for each model, (n_models, n_k); NaN at an unknown ability."""
    result = np.empty((theta.size, len(k)))
    for rows in row_blocks(theta.size, parameters.n_items, times=2):
        for j, n_samples in enumerate(k):
            curves = item_curves(parameters, theta[rows], n_samples)
            result[rows, j] = (curves * counted[rows]).sum(axis=1) / counted[rows].sum(axis=1)
    return result


def logit_curves(
    parameters: ItemParameters, theta: FloatArray, k: tuple[int, ...], counted: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Logit of `mean_curves`, and its slope in the ability, each (n_models, n_k)."""
    step = 1e-3  # of central differences, whose error is of order step^2
    means = np.stack([mean_curves(parameters, theta + away, k, counted) for away in (-step, 0.0, step)])
    # log(p) and log(1 - p) stay finite; 1 - 1e-16 is the largest double below one
    inside = np.clip(means, 1e-300, 1.0 - 1e-16)
    below, at, above = np.log(inside) - np.log1p(-inside)
    return at, (above - below) / (2.0 * step)


def actual_curves(responses: ResponseMatrix, columns: IntArray, k: tuple[int, ...]) -> FloatArray:
    """Mean score (k = 1) or mean unbiased pass@k of the items each model answered, (n_models, n_k).

    NaN for a model that answered none, and for k above the fewest samples of its items.
    """
    values = responses.responses[:, columns]
    curves = np.full((values.shape[0], len(k)), np.nan)
    curves[:, np.equal(k, 1)] = mean_where_known(values, axis=1)[:, None]
    if responses.n_trials is None:
        return curves
    known = ~np.isnan(values)
    n_trials = np.where(known, responses.n_trials[:, columns], 0).astype(np.float64)
    n_correct = np.rint(np.where(known, values, 0.0) * n_trials)
    n_answered = known.sum(axis=1)
    for place, n_samples in enumerate(k):
        if n_samples > 1:
            enough = ~known | (n_trials >= n_samples)
            passed = unbiased_pass_at_k(np.maximum(n_trials, n_samples), n_correct, np.float64(n_samples))
            mean = np.where(known, passed, 0.0).sum(axis=1) / np.maximum(n_answered, 1)
            curves[:, place] = np.where(enough.all(axis=1) & (n_answered > 0), mean, np.nan)
    return curves


def counted_items(responses: ResponseMatrix, columns: IntArray) -> BoolArray:
    """Which items' curves make a model's target, (n_models, n_target): those it answered, or all for none.

    Both sides of a comparison are then of the same items.
    """
    answered = responses.observed[:, columns]
    return answered | ~answered.any(axis=1, keepdims=True)


def by_line(
    source: FloatArray,  # (n_calibration, n_k): Logits, and their standard errors
    # (n_calibration, n_k): Mean scores or pass@k. NaN leaves a model out; a k with fewer than four models left is not
    # predicted
    target: FloatArray,
    asked: FloatArray,  # (n_models, n_k): Of the models asked about
    *,
    source_errors: FloatArray,  # (n_calibration, n_k)
    asked_errors: FloatArray,  # (n_models, n_k)
    # (n_k,): Targets this near to 0 or 1 are at the floor or the ceiling: they cannot be told from 0 and 1
    smallest: FloatArray,
    level: float,
) -> WithInterval:
    """Predict the logit of each target from a logit known of the source, by a line over the past models."""
    value, lower, upper = (np.full(asked.shape, np.nan) for _ in range(3))
    outcome = clipped_logit(target, smallest)
    for j in range(asked.shape[1]):
        if (np.isfinite(outcome[:, j]) & np.isfinite(source[:, j])).sum() < MINIMUM_MODELS:
            continue
        # clipped targets lie exactly there, which tells `fit_line` that they are censored
        end = float(logit(smallest[j]))
        link = fit_line(source[:, j], outcome[:, j], source_errors[:, j], bounds=(end, -end))
        bounds = quantiles(link, asked[:, j], asked_errors[:, j], level)
        value[:, j], lower[:, j], upper[:, j] = (expit(bound) for bound in bounds)
    lower, upper = np.where(lower <= smallest, 0.0, lower), np.where(upper >= 1.0 - smallest, 1.0, upper)
    return WithInterval(value, lower, upper)


def clipped_logit(score: FloatArray, smallest: FloatArray) -> FloatArray:
    """Logit of scores moved to at least `smallest` from 0 and 1; NaN stays NaN."""
    result: FloatArray = logit(np.clip(score, smallest, 1.0 - smallest))
    return result
