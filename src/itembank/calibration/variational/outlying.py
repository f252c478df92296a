"""Probabilities far outside what their Beta expects, drawn in to the edge of it (Winsor's way with outliers).

The log-likelihood of a probability y is linear in its logit L, so the gradient of a y near zero has no limit: clipped
at 1e-6 one such cell weighs as much as thousands of others where the precision is high, though all it says is "too
small to distinguish from zero". The item model expects L to have mean ``m = psi(a) - psi(b)`` and variance
``psi1(a) + psi1(b)``, with ``a = p phi`` and ``b = (1 - p) phi``; beyond five standard deviations L counts as if it
were there. True draws of a Beta go that far once in 400 at worst (p phi near 0, where -L is nearly exponential).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, polygamma

from itembank.calibration.variational.beta_cells import LARGEST_LOGIT, BetaRule, Table
from itembank.calibration.variational.blocks import Blocks
from itembank.calibration.variational.passes import logit_moments
from itembank.calibration.variational.state import Posterior
from itembank.numerics.arrays import FloatArray
from itembank.numerics.stable import softplus

MOST_SDS = 5.0
"""Distance from its expectation at which a logit counts as outlying."""
NODES_PER_UNIT = 32
"""The nearest of them is near enough: limits may be off by 1 % of a standard deviation."""


class DrawnIn(NamedTuple):
    """Responses with the outlying ones at the edge of what is expected, and how many these are."""

    blocks: Blocks
    n_cells: int


class _Expected(NamedTuple):
    """Mean of L, its derivative in the logit, and its variance, at nodes of the logit, each (n_nodes,)."""

    mean: FloatArray
    slope: FloatArray
    variance: FloatArray


def draw_in(blocks: Blocks, posterior: Posterior, rule: BetaRule) -> DrawnIn:
    """Move outlying logits of probabilities; the uncertainty of the item model's own logits counts as spread."""
    expected = [_expected(table, blocks.values.dtype) if isinstance(table, Table) else None for table in rule.tables]
    values, sums, n_cells = blocks.values, blocks.sums, 0
    for part, mean, variance in logit_moments(blocks, posterior):
        group, within = blocks.group_at(part), np.clip(mean, -LARGEST_LOGIT, LARGEST_LOGIT)
        tabulated = expected[group] if isinstance(group, int) else None
        if tabulated is None:
            of_item = np.broadcast_to(group, mean.shape[:1])
            precision, lower = (array[of_item][:, None] for array in (rule.precision, rule.lower_asymptote))
            of_cells = _expected_at(within.astype(np.float64), precision, lower)
        else:
            index = np.rint((within + LARGEST_LOGIT) * NODES_PER_UNIT).astype(np.intp)
            of_cells = _Expected(*(column.take(index) for column in tabulated))
        distance = blocks.values[part] - of_cells.mean
        # Variance of L given the logit, and that of its mean because the logit is uncertain (delta method).
        spread = of_cells.variance + variance * of_cells.slope**2
        is_far = distance**2 > MOST_SDS**2 * spread
        if blocks.weights is not None:
            is_far &= blocks.weights[part] > 0.0
        if not is_far.any():
            continue
        if n_cells == 0:  # what was given stays as it is
            values, sums = values.copy(), None if sums is None else sums.copy()
        n_cells += int(is_far.sum())
        rows, columns = np.nonzero(is_far)
        before = blocks.values[part][is_far]
        excess = np.sign(distance) * (np.abs(distance) - MOST_SDS * np.sqrt(spread))
        after = before - excess[is_far]
        values[part][rows, columns] = after
        if sums is not None:
            np.add.at(sums, rows + part.start, _constants(after) - _constants(before))
    return DrawnIn(blocks if n_cells == 0 else replace(blocks, values=values, sums=sums), n_cells)


def _expected(table: Table, dtype: np.dtype[np.floating]) -> _Expected:
    """Tabulate for one precision and lower asymptote."""
    half = round(LARGEST_LOGIT * NODES_PER_UNIT)
    columns = _expected_at(np.arange(-half, half + 1) / NODES_PER_UNIT, table.precision, table.lower_asymptote)
    return _Expected(*(column.astype(dtype) for column in columns))


def _expected_at(logits: FloatArray, precision: FloatArray | float, lower: FloatArray | float) -> _Expected:
    """Give mean of L, its slope and its variance at logits, by the special functions."""
    height = 1.0 - lower
    sigmoid, complement = expit(logits), expit(-logits)
    a = precision * (lower + height * sigmoid)
    b = precision * height * complement
    variance = polygamma(1, a) + polygamma(1, b)
    slope = precision * height * sigmoid * complement * variance
    return _Expected(digamma(a) - digamma(b), slope, variance)


def _constants(log_odds: FloatArray) -> FloatArray:
    """``log(1 - y)`` and ``-log(y (1 - y))``, (n, 2), as `Blocks.sums` has them."""
    log_odds = log_odds.astype(np.float64)
    below, above = softplus(-log_odds), softplus(log_odds)
    return np.column_stack([-above, above + below])
