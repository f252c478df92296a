"""How far linking models span the abilities of a bank, and which further ones would."""

from collections.abc import Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import first_largest

OUTER = (0.025, 0.975)
"""Quantiles between which a bank's scores range: one odd model should not set it."""


def covered_range(strength: FloatArray, known: FloatArray) -> float:
    """Part of the range of known scores (n_known,) that those of linking models (n_models,) span, 0 to 1."""
    low, high = np.quantile(known, OUTER)
    if high <= low:
        return 1.0
    span = np.clip([strength.min(), strength.max()], low, high)
    return float((span[1] - span[0]) / (high - low))


def spread_over(
    known: FloatArray, strength: FloatArray, known_ids: Sequence[str], taken: Sequence[str], n_models: int
) -> tuple[str, ...]:
    """Choose models of the bank that fill the widest gaps, one after the other, by their scores.

    Parameters
    ----------
    known : (n_known,)
        Scores of the bank's models.
    strength : (n_models,)
        Scores of the linking models.
    known_ids, taken : ids
        Of the bank's models, and those that link already.
    n_models : int
        How many to choose.
    """
    low, high = np.quantile(known, OUTER)
    is_free = np.array([name not in set(taken) for name in known_ids]) & (known >= low) & (known <= high)
    chosen: list[int] = []
    reached = strength
    while len(chosen) < n_models and is_free.any():
        gap = np.where(is_free, np.abs(known[:, None] - reached).min(axis=1), -np.inf)
        best = int(first_largest(gap))
        chosen.append(best)
        is_free[best] = False
        reached = np.append(reached, known[best])
    return tuple(known_ids[k] for k in chosen)
