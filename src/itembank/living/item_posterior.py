"""Posteriors of new items' (loadings, intercept), given points of ability and a normal population of items.

Items and models change places: with ``x = (theta, 1)`` the logit ``x . (a, c)`` is that of a "model" whose "ability" is
``(a, c)`` on an "item" with loadings x, so that the kernel of abilities finds each item's mode.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from itembank.irt.logistic import asymptotes_of, likelihood_terms, log_probabilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.living.ability_nodes import AbilityNodes
from itembank.living.linking_data import LinkingData
from itembank.numerics.arrays import FloatArray, IntArray

WIDENING = 0.6
"""Points lie farther out than the normal approximation says, by this over the number of parameters: posteriors of few
answers have longer tails. In many dimensions a wide density would leave little weight on most points."""
LINE_NODES = 7
"""Gauss-Hermite nodes for each parameter of items in one dimension."""
MANY_DIMS_POINTS = 256
"""Half of them of an additive sequence, the others opposite, for items in more dimensions."""
BLOCK_CELLS = 1 << 21
"""Numbers worked on at once: 16 MiB an array."""


class ItemPosterior(NamedTuple):
    """Of n_new items."""

    mode: FloatArray  # (n_new, n_dims + 1)
    # (n_new, n_dims + 1, n_dims + 1): Minus the second derivatives of the log posterior at the mode.
    precision: FloatArray
    mean: FloatArray  # (n_new, n_dims + 1)
    covariance: FloatArray  # (n_new, n_dims + 1, n_dims + 1)


class Places(NamedTuple):
    """Points of ability at which items were answered, model after model."""

    design: FloatArray  # (n_places, n_dims + 1): Ability and a one
    weights: FloatArray  # (n_places,): Of the points of each model, summing to one
    owner: IntArray  # (n_places,): The model of each point


def places_of(nodes: AbilityNodes) -> Places:
    """Lay the points of all models out one after the other."""
    n_models, n_quadrature, n_dims = nodes.theta.shape
    theta = nodes.theta.reshape(-1, n_dims)
    owner = np.repeat(np.arange(n_models), n_quadrature)
    return Places(np.column_stack([theta, np.ones(len(theta))]), nodes.weights.ravel(), owner)


def item_modes(
    data: LinkingData, places: Places, population: AbilityPrior, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find the mode of each new item's posterior, (n_new, n_dims + 1), and the precision there.

    Parameters
    ----------
    population : AbilityPrior
        Normal prior of (loadings, intercept).
    start : (n_new, n_dims + 1)
    """
    mode, precision = np.empty_like(start), np.empty((*start.shape, start.shape[1]))
    for block, lower in _alike(data, len(places.owner)):
        points = ItemParameters.create(places.design, np.zeros(len(places.design)), lower)
        responses, weights = _answers(data, places, block)
        found = map_abilities(points, responses, population, weights=weights, start=start[block])
        mode[block], precision[block] = found.theta, np.linalg.inv(found.covariance)
    return mode, precision


def item_moments(
    data: LinkingData, places: Places, population: AbilityPrior, mode: FloatArray, precision: FloatArray
) -> ItemPosterior:
    """Integrate each new item's posterior by points around its mode."""
    mean, covariance = np.empty_like(mode), np.empty_like(precision)
    for block, points, weights in posterior_points(data, places, population, mode, precision):
        mean[block] = np.einsum("iq,iqa->ia", weights, points)
        away = points - mean[block][:, None, :]
        covariance[block] = np.einsum("iq,iqa,iqb->iab", weights, away, away)
    return ItemPosterior(mode, precision, mean, covariance)


def posterior_points(
    data: LinkingData, places: Places, population: AbilityPrior, mode: FloatArray, precision: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Give, block of items by block, points (n_block, n_points, n_dims + 1) and posterior weights (n_block, n_points).

    Importance weights: the posterior over the wider normal density that the points integrate.
    """
    units, log_unit_weights = standard_points(mode.shape[1])
    inverse = np.linalg.inv(population.covariance)
    for block, lower in _alike(data, len(places.owner) * len(units)):
        roots = np.linalg.cholesky(np.linalg.inv(precision[block]))
        wider = 1.0 + WIDENING / mode.shape[1]
        points = mode[block][:, None, :] + wider * np.einsum("iab,qb->iqa", roots, units)
        away = points - population.mean
        values = -0.5 * np.einsum("iqa,ab,iqb->iq", away, inverse, away) + log_unit_weights
        values += _log_likelihood(data, places, block, points, lower)
        weights = np.exp(values - values.max(axis=1, keepdims=True))
        yield block, points, weights / weights.sum(axis=1, keepdims=True)


@lru_cache
def standard_points(size: int) -> tuple[FloatArray, FloatArray]:
    """Points (n_points, size) and log weights, over the density ``exp(-z^2 / 2)`` that they integrate."""
    if size <= 2:
        line, line_weights = np.polynomial.hermite_e.hermegauss(LINE_NODES)
        units = np.stack(np.meshgrid(*[line] * size, indexing="ij"), axis=-1).reshape(-1, size)
        logs = np.stack(np.meshgrid(*[np.log(line_weights)] * size, indexing="ij"), axis=-1).reshape(-1, size)
        return units, logs.sum(axis=1) + 0.5 * np.sum(units**2, axis=1)
    # Roberts' sequence: multiples of g^-1, ..., g^-size modulo 1, with g^(size + 1) = g + 1, fill the cube evenly
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (size + 1.0))
    steps = root ** -np.arange(1.0, size + 1.0)
    half = ndtri((0.5 + np.outer(np.arange(1, MANY_DIMS_POINTS // 2 + 1), steps)) % 1.0)
    units = np.concatenate([half, -half])
    units = np.linalg.solve(np.linalg.cholesky(units.T @ units / len(units)), units.T).T  # of unit covariance
    return units, 0.5 * np.sum(units**2, axis=1)


def lost_information(data: LinkingData, nodes: AbilityNodes, items: FloatArray) -> FloatArray:
    """Information about each item that is lost because abilities are not known, (n_new, n_dims + 1, n_dims + 1).

    Louis (1982): ``sum_l Cov(S_l)`` over the posterior of ability, with S_l the score of the item by model l, here by
    the delta method: ``J V J'`` with V the covariance of the ability and
    ``J = dS / dtheta = n (s (I, 0)' - h (theta, 1) a')``, s the slope of the log-likelihood in the logit and h its
    curvature.
    """
    n_models, n_dims = nodes.mean.shape
    design = np.column_stack([nodes.mean, np.ones(n_models)])
    result = np.zeros((len(items), n_dims + 1, n_dims + 1))
    flat = np.vstack([np.eye(n_dims), np.zeros(n_dims)])
    for block, lower in _alike(data, n_models * (n_dims + 1) ** 2):
        responses = data.new_responses[:, block]
        answered = ~np.isnan(responses)
        trials = answered.astype(np.float64) if data.new_trials is None else data.new_trials[:, block] * answered
        x = design @ items[block].T  # (n_models, n_block)
        asymptotes = asymptotes_of(np.full(x.shape, lower), np.ones(x.shape))
        terms = likelihood_terms(x, np.where(answered, responses, 0.0), asymptotes)
        change = (trials * terms.slope)[..., None, None] * flat - np.einsum(
            "li,la,id->liad", trials * terms.curvature, design, items[block][:, :-1]
        )
        result[block] = np.einsum("liad,lde,libe->iab", change, nodes.covariance, change)
    return result


def _alike(data: LinkingData, n_places: int) -> Iterator[tuple[IntArray, float]]:
    """Blocks of new items with the same lower asymptote, small enough to work on."""
    size = max(1, BLOCK_CELLS // max(1, n_places))
    for lower in np.unique(data.new_lower):
        alike = np.flatnonzero(data.new_lower == lower)
        for first in range(0, len(alike), size):
            yield alike[first : first + size], float(lower)


def _answers(data: LinkingData, places: Places, block: IntArray) -> tuple[FloatArray, FloatArray]:
    """Responses to some items at every point, and how often each counts, (n_block, n_places)."""
    responses = data.new_responses[:, block].T[:, places.owner]
    weights = np.broadcast_to(places.weights, responses.shape)
    if data.new_trials is not None:
        weights = weights * data.new_trials[:, block].T[:, places.owner]
    return responses, weights


def _log_likelihood(data: LinkingData, places: Places, block: IntArray, points: FloatArray, lower: float) -> FloatArray:
    """Give the expected log-likelihood at points (n_block, n_points, n_dims + 1), (n_block, n_points)."""
    responses, weights = _answers(data, places, block)
    weights = np.where(np.isnan(responses), 0.0, weights)
    right = weights * np.where(np.isnan(responses), 0.0, responses)
    x = points @ places.design.T
    log_p, log_q = log_probabilities(x, asymptotes_of(np.array(lower), np.ones(())))
    result: FloatArray = np.matmul(log_p, right[..., None])[..., 0]
    result += np.matmul(log_q, (weights - right)[..., None])[..., 0]
    return result
