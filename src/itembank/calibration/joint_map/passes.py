"""Passes over all responses for joint MAP: the log-likelihood and its derivatives, block of items by block."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from itembank.calibration.fits import FitData
from itembank.irt.logistic import Asymptotes, asymptotes_of, information_weights, log_likelihood_terms, score_terms
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.stable import sigmoid_terms
from itembank.numerics.symmetric import packed_products, unpack

BLOCK_CELLS = 1 << 18
"""Cells of a block of models times items: what stays in a processor's cache."""

Weights: TypeAlias = FloatArray | BoolArray | None
"""How often each response of a block counts, 0 where it was not observed; None for once each."""


class Derivatives(NamedTuple):
    """Log-likelihood of all responses, with derivatives in one set of parameters.

    Attributes
    ----------
    log_likelihood : float
    gradient : (n_models, n_dims) or (n_items, n_dims + 1)
    precision : (n_models, n_dims, n_dims) or (n_items, n_dims + 1, n_dims + 1)
        Fisher information; minus the second derivatives unless there is guessing.
    """

    log_likelihood: float
    gradient: FloatArray
    precision: FloatArray


class Terms(NamedTuple):
    """Of one block: log-likelihood, and its slope and curvature in each logit, (n_models, n_items)."""

    log_likelihood: float
    slope: FloatArray
    curvature: FloatArray


def item_derivatives(data: FitData, items: FloatArray, abilities: FloatArray) -> Derivatives:
    """Differentiate in every item's (loadings, intercept), abilities given."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(design)
    gradient, packed, total = np.empty_like(items), np.empty((len(items), squares.shape[1])), 0.0
    for block, terms in _blocks(data, items, design):
        gradient[block] = terms.slope.T @ design
        packed[block] = terms.curvature.T @ squares
        total += terms.log_likelihood
    return Derivatives(total, gradient, unpack(packed, design.shape[1]))


def ability_derivatives(data: FitData, items: FloatArray, abilities: FloatArray) -> Derivatives:
    """Differentiate in every model's ability, items given."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(items[:, :-1])
    gradient, packed, total = np.zeros_like(abilities), np.zeros((len(abilities), squares.shape[1])), 0.0
    for block, terms in _blocks(data, items, design):
        gradient += terms.slope @ items[block, :-1]
        packed += terms.curvature @ squares[block]
        total += terms.log_likelihood
    return Derivatives(total, gradient, unpack(packed, abilities.shape[1]))


def _blocks(data: FitData, items: FloatArray, design: FloatArray) -> Iterator[tuple[slice, Terms]]:
    """Give the terms of each block of items."""
    n_models, n_items = data.responses.shape
    has_guessing = bool(np.any(data.lower_asymptote))
    size = max(BLOCK_CELLS // n_models, 16)
    for first in range(0, n_items, size):
        block = slice(first, min(first + size, n_items))
        x = design @ items[block].T  # (n_models, n_items)
        responses = data.responses[:, block].astype(np.float64, copy=False)
        weights = None if data.weights is None else data.weights[:, block]
        if has_guessing:
            lower = data.lower_asymptote[block]
            yield block, guessing_terms(x, responses, weights, asymptotes_of(lower, np.ones_like(lower)))
        else:
            yield block, logistic_terms(x, responses, weights)


def logistic_terms(x: FloatArray, responses: FloatArray, weights: Weights) -> Terms:
    """Terms without guessing; responses are shares of right answers, weights how many answers each is of."""
    softplus, share, curvature = sigmoid_terms(x)
    if weights is None:
        return Terms(float(np.vdot(responses, x) - softplus.sum()), responses - share, curvature)
    total = float(np.sum((responses * x - softplus) * weights))
    return Terms(total, (responses - share) * weights, curvature * weights)


def guessing_terms(x: FloatArray, responses: FloatArray, weights: Weights, asymptotes: Asymptotes | None) -> Terms:
    """Terms with lower asymptotes."""
    log_likelihood = log_likelihood_terms(x, responses, asymptotes)
    slope, curvature = score_terms(x, responses, asymptotes), information_weights(x, asymptotes)
    if weights is None:
        return Terms(float(log_likelihood.sum()), slope, curvature)
    return Terms(float(np.sum(log_likelihood * weights)), slope * weights, curvature * weights)
