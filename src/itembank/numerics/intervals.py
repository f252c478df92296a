"""How far intervals reach: quantiles of the normal and of Student's t, and of cross-validated errors on past models."""

import math
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from itembank.numerics.arrays import FloatArray

FEWEST_FOR_QUANTILE = 19
"""Below this many errors no 95 % interval follows from their order: ceil((n + 1) 0.95) <= n needs n >= 19.

The same limit holds for every level: with fewer errors an interval of a lower level, taken from their order, could be
wider than the 95 % interval by Student's t."""
ROUNDING = 1e-12
"""Errors and scales below this are rounding: sums of the same numbers in another order differ by as much."""

NORMAL = NormalDist()
_FEW = 50
"""Quantiles that take less time than to load SciPy."""
_EXPONENTS = np.arange(-38, 39) / 10.0
_STEPS = np.exp(_EXPONENTS - np.exp(-_EXPONENTS))
_WEIGHTS = 0.1 * _STEPS * (1.0 + np.exp(-_EXPONENTS))
"""Nodes and weights of an integral over all positive numbers."""

Number = TypeVar("Number", float, FloatArray)


def normal_reach(level: float) -> float:
    """Return how many standard errors a normal interval of this level reaches to either side."""
    return normal_quantile(0.5 + level / 2.0)


def t_reach(level: float | FloatArray, degrees: Number) -> Number:
    """Return the same of Student's t with so many degrees of freedom; infinitely many make it normal."""
    return t_quantile(0.5 + level / 2.0, degrees)


def normal_quantile(probability: float) -> float:
    """Return what a standard normal stays below with this probability."""
    return NORMAL.inv_cdf(probability) if 0.0 < probability < 1.0 else math.copysign(math.inf, probability - 0.5)


def normal_probability(value: float) -> float:
    """Return the probability that a standard normal stays below this."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def t_quantile(probability: float | FloatArray, degrees: Number) -> Number:
    """Return what Student's t stays below with this probability; a few numbers without loading SciPy."""
    is_few = 0 < np.size(degrees) <= _FEW and np.min(degrees) >= 0.5
    if is_few and isinstance(probability, float) and 1e-50 < probability < 1.0:
        result = np.reshape(
            [_student_quantile(probability, one) for one in np.ravel(degrees).tolist()], np.shape(degrees)
        )
    else:
        from scipy.special import ndtri, stdtrit  # noqa: PLC0415 (to load it takes longer than showing a bank)

        result = np.where(np.isinf(degrees), ndtri(probability), stdtrit(degrees, probability))
    return float(result) if result.ndim == 0 else result  # type: ignore[return-value]


def _student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t, to 14 digits, by Newton's method on the logarithm of its tail.

    With ``t = sqrt(d) sinh(u)`` the tail is an integral of ``cosh(u)^-d``, whose logarithm is concave: Newton's method
    finds the place from anywhere, and begins near it. The integral is by the trapezoidal rule after ``v = exp(s -
    exp(-s))`` (Takahasi and Mori 1974, Publ. RIMS 9, 721-741).
    """
    if math.isinf(degrees):
        return normal_quantile(probability)

    def curve(u: FloatArray) -> FloatArray:
        result: FloatArray = np.exp(-0.5 * degrees * np.log1p(np.sinh(u) ** 2))
        return result

    size, tail = 1.0 / min(degrees, math.sqrt(degrees)), min(probability, 1.0 - probability)
    wanted = 2.0 * tail * float(_WEIGHTS @ curve(size * _STEPS))
    u = math.asinh(math.sqrt(math.expm1(NORMAL.inv_cdf(tail) ** 2 / degrees)))
    for _ in range(7):
        found = float(_WEIGHTS @ curve(u + size * _STEPS))
        u += size * math.log(found / wanted) * found / float(curve(np.array(u)))
    return math.copysign(math.sqrt(degrees) * math.sinh(u), probability - 0.5)


def probability_above(
    limit: FloatArray,  # (n,)
    value: FloatArray | float,  # (n,) or one
    low: FloatArray | float,
    high: FloatArray | float,
    *,
    level: float,
    degrees: float = np.inf,
) -> FloatArray:
    """Probability that what an interval is of lies above a limit, (n,): that of 2.5 % at the end of a 95 % interval.

    A normal, or Student's t with so many degrees of freedom, around the value has the end on the limit's side as its
    quantile. Where both ends are the value, it is known: 1 above the limit, 0 below, a half on it.
    """
    reach = normal_reach(level) if np.isinf(degrees) else t_reach(level, degrees)
    limit, value, low, high = np.broadcast_arrays(limit, value, low, high)
    distance = value - limit
    side = np.where(distance > 0.0, value - low, high - value)
    certain = 0.5 + 0.5 * np.sign(distance)
    place = np.divide(reach * distance, side, out=np.zeros(distance.shape), where=side > 0.0)
    from scipy.special import ndtr, stdtr  # noqa: PLC0415 (as above)

    found = ndtr(place) if np.isinf(degrees) else stdtr(degrees, place)
    result: FloatArray = np.where(side > 0.0, found, certain)
    return np.where(np.isnan(distance + side), np.nan, result)


def binary_variance(mean: FloatArray, n_answers: FloatArray | int) -> FloatArray:
    """Variance of one right or wrong answer of this mean, two more of each kind seen: never zero (Agresti, Coull 1998).

    Arrays of one shape, or that broadcast.
    """
    chance = (n_answers * np.clip(mean, 0.0, 1.0) + 2.0) / (n_answers + 4.0)
    return chance * (1.0 - chance)


def wilson_ends(mean: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends x of Wilson's interval, ``(T - x)^2 = t^2 x (1 - x) / n*``, for means T and ``ratio = t^2 / n*``.

    n* is the number of answers of a simple random sample whose mean has the same variance (Kott and Carr 1997, Korn and
    Graubard 1998). Arrays of one shape.
    """
    mean = np.clip(mean, 0.0, 1.0)
    centre = (mean + ratio / 2.0) / (1.0 + ratio)
    half = np.sqrt(ratio * mean * (1.0 - mean) + ratio**2 / 4.0) / (1.0 + ratio)
    return centre - half, centre + half


def calibrated_half_widths(
    errors: FloatArray,  # (n_models, n_targets): Out of fold; NaN rows are left out
    scale: FloatArray,  # (n_models, n_targets): Expected size of each error, as far as the item model knows
    new_scale: FloatArray,  # (n_new, n_targets): The same for the new models
    *,
    level: float,
) -> FloatArray:
    """Half-widths that would have covered the fraction `level` of the past models, had they been new.

    Errors are divided by the size that the item model expects. The half-width is the expected size for the new model
    times the ``ceil((n + 1) level)``-th smallest ratio: split conformal prediction (Lei et al. 2018) with scaled
    residuals, here cross-fitted. With fewer errors than that needs, or than 19, it is Student's t quantile times the
    root mean square of the ratios, with the next one's own uncertainty: ``t_{n-1} rms sqrt(1 + 1/n)``; from 19 on no
    less than the largest.

    Returns (n_new, n_targets), NaN for a target without two known errors.
    """
    result = np.full(new_scale.shape, np.nan)
    # a model that answered everything has error and scale zero; the typical scale keeps its ratio finite
    floor = np.array([_typical(column) for column in scale.T])
    ratios = np.abs(errors) / np.maximum(scale, floor)
    for target in range(errors.shape[1]):
        known = ratios[~np.isnan(ratios[:, target]), target]
        if known.size >= 2:
            quantile = _quantile(np.sort(known), level)
            result[:, target] = quantile * np.maximum(new_scale[:, target], floor[target])
    return result


def interval_scores(errors: FloatArray, scale: FloatArray, *, level: float = 0.95) -> FloatArray:
    """Winkler's score of each calibrated interval, ``width + 2 / (1 - level) (what a miss lacks)``, (n_models,).

    The smaller, the better (Gneiting & Raftery 2007, eq. 43). NaN where an error is. Arguments are as for
    `calibrated_half_widths`, of one target.
    """
    half = calibrated_half_widths(errors[:, None], scale[:, None], scale[:, None], level=level)[:, 0]
    return 2.0 * half + 2.0 / (1.0 - level) * np.maximum(np.abs(errors) - half, 0.0)


def _typical(scale: FloatArray) -> float:
    """Return a thousandth of the median scale, and at least `ROUNDING`, for models that answered everything."""
    known = scale[~np.isnan(scale)]
    return max(1e-3 * float(np.median(known)), ROUNDING) if known.size else ROUNDING


def _quantile(ratios: FloatArray, level: float) -> float:
    """Ratio that the next ratio stays below with probability `level`, from sorted ratios."""
    n = ratios.size
    rank = int(np.ceil((n + 1) * level))
    if rank <= n and n >= FEWEST_FOR_QUANTILE:
        return float(ratios[rank - 1])
    # the next ratio and the rms are both uncertain, hence 1 + 1 / n, as in a prediction interval of a normal sample
    rms = float(np.sqrt(np.mean(ratios**2) * (1.0 + 1.0 / n)))
    by_t = t_reach(level, n - 1.0) * rms
    # the level asks for a rank beyond the largest ratio: the quantile is at least that ratio
    return max(by_t, float(ratios[-1])) if n >= FEWEST_FOR_QUANTILE else by_t


def cut_to_possible(
    low: FloatArray, high: FloatArray, known: FloatArray, open_weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Cut intervals to the possible scores, from all unseen items failed to all solved, each (n_models, n_targets)."""
    least, most = np.clip(known, 0.0, 1.0), np.clip(known + open_weight, 0.0, 1.0)
    return np.clip(low, least, most), np.clip(high, least, most)
