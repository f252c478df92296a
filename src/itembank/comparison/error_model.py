"""Model of the error of a difference of two estimates, learnt from pairs of calibration models."""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.numerics.newton import non_negative_minimum

N_REWEIGHTINGS = 25
"""Of simulated pairs 12 settle both coefficients to ten digits, 5 to four."""
LEAST_VARIANCE_SHARE = 1e-3
"""A pair's expected squared error is at least this fraction of the mean over pairs, as it is divided by."""
NO_ERROR = 1e-9
"""Smaller errors count as none: calibration models that answered everything have exact estimates, from which nothing
is learnt about the errors of others."""


@dataclass(frozen=True, slots=True)
class PairErrorModel:
    """Distribution of the error of a difference, for one target."""

    constant: float  # Of ``E[(r_b - r_a)^2] = constant * independent + slope * disagreement``; both >= 0
    slope: float
    quantile: float  # Standardised errors stay within it with probability `level`, also for models not seen
    # Of the Student distribution that gives p-values and probabilities: its tails are as heavy as those of the
    # calibration models' errors.
    degrees: float
    level: float

    @property
    def scale(self) -> float:
        """Factor of the Student distribution that puts `quantile` at `level`."""
        return self.quantile / t_reach(self.level, self.degrees)


def fit_pair_errors(
    errors: FloatArray,
    disagreement: FloatArray,
    first: IntArray,
    second: IntArray,
    *,
    independent: FloatArray | None = None,
    level: float,
) -> PairErrorModel:
    """Learn how the error of a difference depends on the two models and on how differently they answered.

    Were the errors ``r = estimate - truth`` of two models independent, the expected squared error of their difference
    would be ``u_lm = s_l^2 + s_m^2``. They have in common what the same items do to both, the more so the more alike
    the models answered. All pairs (l, m) of calibration models give ``E[(r_l - r_m)^2] = a u_lm + b x_lm``, with x the
    classical variance of the paired difference: a and b >= 0 by the score equations of a normal likelihood (least
    squares weighted by the inverse square of the fit, repeated). The standardised errors' quantile is then corrected
    for the finite number of models, see `finite_quantile`.

    Parameters
    ----------
    errors : (n_models,)
        Of estimates that did not know the model.
    disagreement : (n_pairs,)
        x, non-negative.
    first, second : (n_pairs,)
        Rows of the models of each pair.
    independent : (n_pairs,), optional
        u, positive; the same for all pairs by default.
    level : float
    """
    squared = (errors[first] - errors[second]) ** 2
    if np.sqrt(squared.mean()) < NO_ERROR:
        degrees = errors.shape[0] - 1.0
        return PairErrorModel(0.0, 1.0, t_reach(level, degrees), degrees, level)
    design = np.column_stack([np.ones_like(squared) if independent is None else independent, disagreement])
    constant, slope = fit_variance(squared, design)
    variance = np.maximum(design @ [constant, slope], LEAST_VARIANCE_SHARE * squared.mean())
    standardised = squared / variance
    quantile = finite_quantile(np.sqrt(standardised), first, second, errors.shape[0], level=level)
    return PairErrorModel(constant, slope, quantile, _degrees(standardised, errors.shape[0]), level)


def fit_variance(squared: FloatArray, design: FloatArray) -> tuple[float, float]:
    """Fit ``E[squared] = design @ (a, b)`` with a, b >= 0, given (n_pairs,) and (n_pairs, 2)."""
    floor = LEAST_VARIANCE_SHARE * squared.mean()
    if floor <= 0.0:
        return 0.0, 0.0
    # columns of mean one, so that the ridge of `_non_negative` treats them alike; one of zeros stays
    unit = design.mean(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    scaled = design / unit
    # The variance of a squared normal error is 2 E^2, hence weights 1 / fitted^2. Their fixed point solves the score
    # equations; unweighted least squares, the start, would follow the few largest errors.
    coefficients = _non_negative(scaled, squared)
    for _ in range(N_REWEIGHTINGS):
        fitted = np.maximum(scaled @ coefficients, floor)
        coefficients = _non_negative(scaled / fitted[:, None], squared / fitted)
    a, b = (coefficients / unit).tolist()
    return a, b * bool(np.any(design[:, 1] > 0.0))


def finite_quantile(
    standardised: FloatArray, first: IntArray, second: IntArray, n_models: int, *, level: float
) -> float:
    """Quantile of pairs' absolute errors that covers a pair of new models at `level`.

    Conformal prediction takes the ``level (n + 1) / n`` quantile of n independent errors. Pairs are not
    independent, models are: n is the number of independent errors that would estimate the fraction inside
    the quantile as precisely as these pairs do. The variance of that fraction is ``4 / M`` times the variance over
    models of the fraction of a model's pairs inside (the first term of a U-statistic's variance, Hoeffding 1948).

    Parameters
    ----------
    standardised : (n_pairs,)
        Absolute errors over their standard errors.
    first, second : (n_pairs,)
    n_models : int
        M.
    level : float
    """
    inside = (standardised <= np.quantile(standardised, level)).astype(np.float64)
    inside_fraction = np.bincount(first, inside, n_models) + np.bincount(second, inside, n_models)
    inside_fraction = inside_fraction / np.maximum(
        np.bincount(first, minlength=n_models) + np.bincount(second, minlength=n_models), 1
    )
    variance = 4.0 / n_models * float(np.var(inside_fraction, ddof=1))
    # n = level (1 - level) / variance, the variance of a fraction of n independent errors solved for n. It is kept from
    # M / 4 to 2 M: a variance of few models is rough, and more than two independent errors a model is chance.
    n_effective = float(np.clip(level * (1.0 - level) / max(variance, 1e-300), n_models / 4.0, 2.0 * n_models))
    return float(np.quantile(standardised, min(level * (n_effective + 1.0) / n_effective, 1.0)))


def _non_negative(design: FloatArray, target: FloatArray) -> FloatArray:
    """Non-negative least squares by the normal equations: their size is two, whatever the number of pairs."""
    gram, right = design.T @ design, design.T @ target
    # G is singular where all pairs disagree alike, since both columns are then equal; the ridge shares between them
    # what they explain.
    return non_negative_minimum(gram + 1e-12 * np.trace(gram) * np.eye(gram.shape[0]), right)


def _degrees(standardised: FloatArray, n_models: int) -> float:
    """Degrees of freedom of a Student distribution with this kurtosis, ``4 + 6 / excess``, at most n_models - 1."""
    # excess kurtosis of a Student distribution is 6 / (degrees - 4); that of the errors is m_4 / m_2^2 - 3, taken about
    # zero because the difference of a pair has either sign
    excess = float(np.mean(standardised**2) / np.mean(standardised) ** 2 - 3.0)
    return min(4.0 + 6.0 / max(excess, 1e-9), n_models - 1.0)
