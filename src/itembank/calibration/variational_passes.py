"""The passes over all responses: what the updates need of them, block of items by block of items.

The Jaakkola-Jordan (Polya-Gamma) bound replaces ``log sigmoid`` by a quadratic with curvature
``w = tanh(xi / 2) / (2 xi)``, exact at ``xi^2 = E[eta^2]``:
``log p(y | eta) >= (y - 1/2) eta - log(2 cosh(xi / 2)) - w (eta^2 - xi^2) / 2``.
With a known chance of guessing g, a correct answer was known with probability
``r = sigmoid(E[eta] - log g)``; r takes the place of y, and ``log(exp(E[eta]) + g)`` that of ``E[eta]``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.calibration.fits import FitData
from itembank.calibration.variational_state import (
    Posterior,
    extended_ability_moment,
    pack,
    pack_doubled,
    second_moment,
)
from itembank.numerics.arrays import BoolArray, FloatArray

CELLS_PER_BLOCK = 100_000
SMALLEST_SQUARE = 1e-8


@dataclass(frozen=True, slots=True)
class Blocks:
    """Responses laid out for the passes, items first.

    Attributes
    ----------
    centred : (n_items, n_models)
        Response minus one half; zero where not observed.
    observed : (n_items, n_models) or None
        One and zero, in the same precision; None when complete.
    lower_asymptote : (n_items,)
    """

    centred: FloatArray
    observed: FloatArray | None
    lower_asymptote: FloatArray

    def slices(self) -> Iterator[slice]:
        """Cut the items into blocks that stay in the cache."""
        n_items, n_models = self.centred.shape
        step = max(1, CELLS_PER_BLOCK // n_models)
        for first in range(0, n_items, step):
            yield slice(first, min(first + step, n_items))

    def take(self, items: slice | FloatArray) -> "Blocks":
        """Return the blocks of some items only."""
        observed = None if self.observed is None else self.observed[items]
        return Blocks(self.centred[items], observed, self.lower_asymptote[items])


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """What the update of the items needs, and the part of the bound that the responses make.

    Attributes
    ----------
    precision : (n_items, (n_dims + 1)(n_dims + 2) / 2)
        ``sum_l w_il E[x_l x_l']``, packed.
    linear : (n_items, n_dims + 1)
        ``sum_l (y_il - 1/2) E[x_l]``.
    likelihood : float
        Bound on the expected log-likelihood, at its best xi.
    """

    precision: FloatArray
    linear: FloatArray
    likelihood: float


def make_blocks(data: FitData, *, single_precision: bool) -> Blocks:
    """Lay the responses out for the passes."""
    dtype = np.float32 if single_precision else np.float64
    centred: FloatArray = data.responses.T.astype(dtype, order="C")
    centred -= 0.5
    observed: FloatArray | None = None
    if data.observed is not None:
        observed = data.observed.T.astype(dtype, order="C")
        centred *= observed
    return Blocks(centred, observed, data.lower_asymptote)


def item_statistics(blocks: Blocks, posterior: Posterior) -> ItemStatistics:
    """Go over all responses once for the update of the items and for the bound."""
    dtype = blocks.centred.dtype
    moment = pack(extended_ability_moment(posterior)).astype(dtype)  # (n_models, n_packed)
    weights = pack_doubled(second_moment(posterior.item_mean, posterior.item_covariance)).astype(dtype)
    extended = np.column_stack([posterior.ability_mean, np.ones(moment.shape[0])]).astype(dtype)
    n_items = blocks.centred.shape[0]
    precision = np.empty((n_items, moment.shape[1]))
    linear = np.empty((n_items, extended.shape[1]))
    likelihood = 0.0
    for part in blocks.slices():
        size = _size(weights[part], moment)
        centred, gain = _centred(blocks, part, posterior.item_mean[part].astype(dtype), extended)
        likelihood += gain + _log_cosh_sum(size, blocks.observed, part)
        precision[part] = _curvature(size, blocks.observed, part) @ moment
        linear[part] = centred @ extended
    if not blocks.lower_asymptote.any():
        likelihood += float(np.sum(linear * posterior.item_mean))
    return ItemStatistics(precision, linear, likelihood)


def ability_statistics(blocks: Blocks, posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """Go over all responses once for the update of the abilities.

    Returns
    -------
    precision : (n_models, n_dims (n_dims + 1) / 2)
        ``sum_i w_il E[a_i a_i']``, packed.
    linear : (n_models, n_dims)
        ``sum_i (y_il - 1/2) E[a_i] - w_il E[a_i c_i]``.
    """
    dtype = blocks.centred.dtype
    n_models, n_dims = posterior.ability_mean.shape
    moment = pack(extended_ability_moment(posterior)).astype(dtype)
    item_moment = second_moment(posterior.item_mean, posterior.item_covariance)
    weights = pack_doubled(item_moment).astype(dtype)
    item_mean = posterior.item_mean.astype(dtype)
    extended = np.column_stack([posterior.ability_mean, np.ones(n_models)]).astype(dtype)
    features = np.column_stack([pack(item_moment[:, :n_dims, :n_dims]), item_moment[:, :n_dims, n_dims]]).astype(dtype)
    curved = np.zeros((n_models, features.shape[1]))
    linear = np.zeros((n_models, n_dims))
    for part in blocks.slices():
        size = _size(weights[part], moment)
        centred, _ = _centred(blocks, part, item_mean[part], extended)
        curved += _curvature(size, blocks.observed, part).T @ features[part]
        linear += centred.T @ item_mean[part, :n_dims]
    return curved[:, :-n_dims], linear - curved[:, -n_dims:]


def _size(weights: FloatArray, moment: FloatArray) -> FloatArray:
    """Xi, the root mean square of the logit, (n_block, n_models)."""
    square = weights @ moment.T
    np.maximum(square, SMALLEST_SQUARE, out=square)
    return np.sqrt(square, out=square)


def _curvature(size: FloatArray, observed: FloatArray | None, part: slice) -> FloatArray:
    """Weight ``tanh(xi / 2) / (2 xi)``, zero where not observed, (n_block, n_models)."""
    weight: FloatArray = np.tanh(0.5 * size)
    weight /= size
    weight *= 0.5
    return weight if observed is None else weight * observed[part]


def _log_cosh_sum(size: FloatArray, observed: FloatArray | None, part: slice) -> float:
    """Minus the sum of ``log(2 cosh(xi / 2))`` over what was observed."""
    value = np.log1p(np.exp(-size))
    value += 0.5 * size
    if observed is not None:
        value *= observed[part]
    return -float(value.sum(axis=1).sum(dtype=np.float64))


def _centred(blocks: Blocks, part: slice, item_mean: FloatArray, extended: FloatArray) -> tuple[FloatArray, float]:
    """Give expected "knew it" minus one half, and the linear part of the bound (0 without guessing: see the caller)."""
    centred = blocks.centred[part]
    if not blocks.lower_asymptote.any():
        return centred, 0.0
    lower = blocks.lower_asymptote[part].astype(centred.dtype)[:, None]
    with np.errstate(divide="ignore"):
        log_lower, log_rest = np.log(lower), np.log1p(-lower)
    logit = item_mean @ extended.T  # (n_block, n_models)
    is_right: BoolArray = centred > 0.0
    known = np.where(is_right, expit(logit - log_lower), 0.0)
    gain = np.where(is_right, np.logaddexp(logit, log_lower), log_rest) - 0.5 * logit
    centred = known - centred.dtype.type(0.5)
    if blocks.observed is not None:
        centred *= blocks.observed[part]
        gain *= blocks.observed[part]
    return centred, float(gain.sum(dtype=np.float64))
