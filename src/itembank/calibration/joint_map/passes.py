"""Passes over all responses for joint MAP: the log-likelihood and its derivatives, block of items by block."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from itembank.calibration.fits import FitData
from itembank.irt.families import ResponseModel
from itembank.irt.logistic import Asymptotes, asymptotes_of, information_weights, log_likelihood_terms, score_terms
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.stable import sigmoid_terms
from itembank.numerics.symmetric import packed_products, unpack

BLOCK_CELLS = 1 << 18
"""Cells of a block of models times items: what stays in a processor's cache."""

Weights: TypeAlias = FloatArray | BoolArray | None
"""How often each response of a block counts, 0 where it was not observed; None for once each."""


class Derivatives(NamedTuple):
    """Log-likelihood of all responses, with derivatives in one set of parameters."""

    log_likelihood: float
    gradient: FloatArray  # (n_models, n_dims) or (n_items, n_dims + 1)
    # (n_models, n_dims, n_dims) or (n_items, n_dims + 1, n_dims + 1): Fisher information; minus the second derivatives
    # unless there is guessing.
    precision: FloatArray


class Terms(NamedTuple):
    """Of one block: log-likelihood, and its slope and curvature in each logit, (n_models, n_items)."""

    log_likelihood: float
    slope: FloatArray
    curvature: FloatArray


def item_derivatives(
    data: FitData, items: FloatArray, abilities: FloatArray, model: ResponseModel | None = None
) -> Derivatives:
    """Differentiate in every item's (loadings, intercept), abilities given; `model` for families with a precision."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(design)
    gradient, packed, total = np.empty_like(items), np.empty((len(items), squares.shape[1])), 0.0
    for block, terms in _blocks(data, items, design, model):
        gradient[block] = terms.slope.T @ design
        packed[block] = terms.curvature.T @ squares
        total += terms.log_likelihood
    return Derivatives(total, gradient, unpack(packed, design.shape[1]))


def ability_derivatives(
    data: FitData, items: FloatArray, abilities: FloatArray, model: ResponseModel | None = None
) -> Derivatives:
    """Differentiate in every model's ability, items given; `model` for families with a precision."""
    design = np.column_stack([abilities, np.ones(len(abilities))])
    squares = packed_products(items[:, :-1])
    gradient, packed, total = np.zeros_like(abilities), np.zeros((len(abilities), squares.shape[1])), 0.0
    for block, terms in _blocks(data, items, design, model):
        gradient += terms.slope @ items[block, :-1]
        packed += terms.curvature @ squares[block]
        total += terms.log_likelihood
    return Derivatives(total, gradient, unpack(packed, abilities.shape[1]))


def logit_blocks(
    data: FitData, items: FloatArray, design: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Give each block of items, its logits and its responses (n_models, n_block)."""
    n_models, n_items = data.responses.shape
    size = max(BLOCK_CELLS // n_models, 16)
    for first in range(0, n_items, size):
        block = slice(first, min(first + size, n_items))
        yield block, design @ items[block].T, data.responses[:, block].astype(np.float64, copy=False)


def _blocks(
    data: FitData, items: FloatArray, design: FloatArray, model: ResponseModel | None
) -> Iterator[tuple[slice, Terms]]:
    """Give the terms of each block of items."""
    has_guessing = bool(np.any(data.lower_asymptote))
    for block, x, responses in logit_blocks(data, items, design):
        if model is not None:
            yield block, _family_terms(data, block, x, responses, model)
            continue
        weights = None if data.weights is None else data.weights[:, block]
        if has_guessing:
            lower = data.lower_asymptote[block]
            yield block, guessing_terms(x, responses, weights, asymptotes_of(lower, np.ones_like(lower)))
        else:
            yield block, logistic_terms(x, responses, weights)


def logistic_terms(x: FloatArray, responses: FloatArray, weights: Weights) -> Terms:
    """Terms without guessing; responses are fractions of right answers, weights the numbers of answers."""
    softplus, sigmoid, curvature = sigmoid_terms(x)
    if weights is None:
        return Terms(float(np.vdot(responses, x) - softplus.sum()), responses - sigmoid, curvature)
    total = float(np.sum((responses * x - softplus) * weights))
    return Terms(total, (responses - sigmoid) * weights, curvature * weights)


def guessing_terms(x: FloatArray, responses: FloatArray, weights: Weights, asymptotes: Asymptotes | None) -> Terms:
    """Terms with lower asymptotes."""
    log_likelihood = log_likelihood_terms(x, responses, asymptotes)
    slope, curvature = score_terms(x, responses, asymptotes), information_weights(x, asymptotes)
    if weights is None:
        return Terms(float(log_likelihood.sum()), slope, curvature)
    return Terms(float(np.sum(log_likelihood * weights)), slope * weights, curvature * weights)


def _family_terms(data: FitData, block: slice, x: FloatArray, responses: FloatArray, model: ResponseModel) -> Terms:
    """Terms of a family with a precision, with the Fisher information for the curvature."""
    inside, n_trials = model.take(np.arange(block.start, block.stop)), trials_at(data, block)
    terms, curvature = inside.likelihood_terms(x, responses, n_trials), inside.information_weights(x, n_trials)
    if data.observed is None:
        return Terms(float(terms.log_likelihood.sum()), terms.slope, curvature)
    observed = data.observed[:, block]
    total = float(np.sum(terms.log_likelihood * observed))
    return Terms(total, terms.slope * observed, curvature * observed)


def trials_at(data: FitData, block: slice) -> FloatArray | None:
    """Trials of a block of cells, one where not observed; None where there is one behind each response."""
    return None if data.n_trials is None else np.maximum(data.n_trials[:, block], 1.0)
