"""How often one of a bank's own models, left out, is as unusual as a new one: no table of a distribution enters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from itembank.auditing.fit_groups import NAMED
from itembank.auditing.fit_statistics import FitStatistics, ItemGroup
from itembank.numerics.arrays import BoolArray, FloatArray

POWER_TAIL, POWER_DEVIATIONS = 0.95, 1.2816
"""A rise is found nine times in ten where it exceeds the 95th percentile of chance by 1.28 standard deviations."""


class FitPValues(NamedTuple):
    """Of n_models models; NaN where unknown."""

    overall: FloatArray  # (n_models,): Of the misfit, the outfit or the most unusual group, whichever is rarest
    # (n_models, n_groups): For named groups of answers that are better than expected, each group by itself; for others
    # of a difference either way, in any of them.
    groups: FloatArray
    order: FloatArray  # (n_models,): Of the cumulative sums


def fit_p_values(found: FitStatistics, past: FitStatistics, groups: tuple[ItemGroup, ...]) -> FitPValues:
    """Compare statistics of new models with those of the bank's own models left out, on the same items.

    Groups of the bank are compared by ``max_g |z_g| / rms(past z_g)``, so that many groups alarm no oftener than one.
    The smallest of three p-values is no p-value: it is compared with that of the past models in turn.
    """
    is_named = np.array([group.kind == NAMED for group in groups], dtype=bool)
    sizes, past_sizes = (
        np.abs(one.deviation[:, ~is_named]) / _spread(past.deviation[:, ~is_named]) for one in (found, past)
    )
    largest = _largest(past_sizes)
    p_groups = np.full(found.deviation.shape, np.nan)
    p_groups[:, ~is_named] = upper_p_values(sizes, largest)
    for column in np.flatnonzero(is_named).tolist():
        p_groups[:, column] = upper_p_values(found.deviation[:, column], past.deviation[:, column])
    views = ((found.misfit, past.misfit), (found.outfit, past.outfit), (_largest(sizes), largest))
    smallest = np.fmin.reduce([upper_p_values(new, old) for new, old in views])
    of_past = np.fmin.reduce([_own_p_values(old) for _, old in views])
    return FitPValues(upper_p_values(-smallest, -of_past), p_groups, upper_p_values(found.cusum, past.cusum))


def detectable_rises(past: FitStatistics) -> FloatArray:
    """Rise of each group's mean answer that is found nine times in ten at the level of 5 %, (n_groups,).

    By the differences of the bank's own models, left out: their 95th percentile and 1.28 standard deviations more.
    """
    result = np.full(past.difference.shape[1], np.nan)
    known = ~np.isnan(past.difference).all(axis=0)
    differences = past.difference[:, known]
    spread = np.nanstd(differences, axis=0)
    result[known] = np.nanquantile(differences, POWER_TAIL, axis=0) + POWER_DEVIATIONS * spread
    return result


def upper_p_values(values: FloatArray, past: FloatArray) -> FloatArray:
    """Probability that a model like past ones has at least such a value: ``(1 + number of past >= value) / (n + 1)``.

    Parameters
    ----------
    values : any shape
        Of new models.
    past : (n_past,)
        Of the bank's models left out; NaN where unknown.

    Returns
    -------
    same shape
        NaN where the value is, and everywhere without past values.
    """
    known = np.sort(past[~np.isnan(past)])
    is_known: BoolArray = ~np.isnan(values) & (known.size > 0)
    n_above = known.size - np.searchsorted(known, values, side="left")
    return np.where(is_known, (1.0 + n_above) / (known.size + 1.0), np.nan)


def joint_p_value(p_values: Sequence[float]) -> float:
    """Probability that chance alone makes so many p-values so small: ``min_k n p_(k) / k`` (Simes 1986).

    1 where none is known.
    """
    known = np.sort([one for one in p_values if not np.isnan(one)])
    ranks = np.arange(1, known.size + 1)
    return float(np.min(known * known.size / ranks, initial=1.0))


def _own_p_values(past: FloatArray) -> FloatArray:
    """Those of the past models among each other: ``number of past >= value / n``, the model itself among them."""
    n_known = max(int(np.sum(~np.isnan(past))), 1)
    return (upper_p_values(past, past) * (n_known + 1.0) - 1.0) / n_known


def _spread(past: FloatArray) -> FloatArray:
    """Root mean square of each column; 1 where nothing is known, or nothing varies."""
    n_known = np.maximum(np.sum(~np.isnan(past), axis=0), 1)
    result = np.sqrt(np.nansum(past**2, axis=0) / n_known)
    return np.where(result > 0.0, result, 1.0)


def _largest(sizes: FloatArray) -> FloatArray:
    """Largest of each row where any is known, else NaN, (n_models,)."""
    filled = np.where(np.isnan(sizes), -np.inf, sizes).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(filled), filled, np.nan)
