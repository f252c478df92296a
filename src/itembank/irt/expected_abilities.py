"""Expected a posteriori ability: quadrature in one or two dimensions."""

from typing import Literal

import numpy as np

from itembank.errors import ParameterError
from itembank.irt.abilities import Abilities, join
from itembank.irt.answers import Answers, gather_blocks, log_likelihood_at, logits, only_answered
from itembank.irt.newton import map_of_answers
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.quadrature import normal_grid
from itembank.numerics.symmetric import packed_products, unpack

AUTO_NODES = {1: 121, 2: 61}
"""Nodes per dimension of the common grid: a tenth, and a fifth, of the prior's standard deviation apart."""

OWN_NODES = {1: 25, 2: 15}
"""Gauss-Hermite nodes per dimension of a model whose posterior is too narrow for the common grid. With 3 to 60 items
they find means to 1e-5 standard deviations (9 nodes to 1e-4, 5 to 3e-3)."""


def eap_abilities(
    parameters: ItemParameters,
    responses: FloatArray,  # (n_models, n_items)
    prior: AbilityPrior,
    *,
    n_quadrature: int | Literal["auto"] = "auto",  # Nodes per dimension
    bounds: tuple[float, float] = (-6.0, 6.0),  # Range of the grid in standard deviations of the prior around its mean
    n_trials: FloatArray | None = None,  # (n_models, n_items)
) -> Abilities:
    """Find the mean and covariance of the posterior of ability.

    A grid common to all models is equally spaced over `bounds`. Models whose posterior is narrower than the spacing
    get Gauss-Hermite nodes of their own around their mode. A number of nodes that is given is kept to for every model,
    and a model whose posterior it cannot resolve is then not `converged`. Responses and trials are as for
    `map_abilities`. Raises `ParameterError` in three dimensions or more.
    """
    # Three would need 227,000 nodes at the spacing of two.
    most_grid_dims = 2
    if prior.n_dims > most_grid_dims:
        raise ParameterError(
            f"eap takes a bank of one or two abilities, got {prior.n_dims}. Use 'map': a grid of more is too large."
        )
    is_auto = n_quadrature == "auto"
    n_nodes = AUTO_NODES[prior.n_dims] if n_quadrature == "auto" else n_quadrature
    units, _ = normal_grid(n_nodes, bounds=bounds, n_dims=prior.n_dims)
    deviations = np.sqrt(np.diagonal(prior.covariance))
    offsets = units * deviations
    quadratic = np.einsum("qd,de,qe->q", offsets, np.linalg.inv(prior.covariance), offsets)
    is_edge = np.any((units == bounds[0]) | (units == bounds[1]), axis=1)
    spacing = deviations * (bounds[1] - bounds[0]) / (n_nodes - 1)
    grid = prior.mean + offsets, -0.5 * quadratic, is_edge, spacing
    width = max(responses.shape[1], len(offsets))
    return join(
        [
            _quadrature(answers, prior, grid, has_own_nodes=is_auto)
            for answers in gather_blocks(parameters, responses, n_trials, width)
        ]
    )


def _quadrature(
    answers: Answers,
    prior: AbilityPrior,
    # Nodes (n_quadrature, n_dims), the log prior at each, whether it is on the edge, and the spacing (n_dims,)
    grid: tuple[FloatArray, FloatArray, BoolArray, FloatArray],
    *,
    has_own_nodes: bool,
) -> Abilities:
    """Posterior moments on the common grid, and on nodes of their own for the models it does not resolve."""
    nodes, log_prior, is_edge, spacing = grid
    # Answers of every model from which own nodes are used at once for over-dispersed counts. Their likelihood is slow,
    # and own nodes are far fewer than those of the common grid.
    many_answers = 100
    if has_own_nodes and answers.model.is_slow and np.all(answers.counts >= many_answers):
        return _own_nodes(answers, prior)
    weights = _normalised(log_likelihood_at(answers, nodes) + log_prior)  # (n_models, n_quadrature)
    theta = weights @ nodes
    moments = unpack(weights @ packed_products(nodes - prior.mean), prior.n_dims)
    covariance = moments - _outer(theta - prior.mean)
    # In units of the spacing, the variance along the narrowest direction.
    narrowest = np.linalg.eigvalsh(covariance / np.multiply.outer(spacing, spacing))[:, 0]
    # Posterior weight on the edge of the common grid from which it counts as cut off. The prior itself has 1e-9 there.
    edge_weight = 1e-5
    # At 0.75 spacings the error 2 exp(-2 pi^2 (s / h)^2) of `normal_grid` is 3e-5.
    is_resolved = (narrowest >= 0.75**2) & (weights @ is_edge < edge_weight)
    rows = np.flatnonzero(~is_resolved)
    if has_own_nodes and len(rows):
        own = _own_nodes(answers.take(rows), prior)
        theta[rows], covariance[rows], is_resolved[rows] = own.theta, own.covariance, own.converged
    is_empty = answers.counts == 0
    # Without answers the posterior is the prior, which the grid would only approximate.
    theta[is_empty], covariance[is_empty] = prior.mean, prior.covariance
    never = np.zeros(answers.n_models, dtype=bool)
    return Abilities(theta, covariance, never, is_resolved | is_empty, "eap")


def _own_nodes(answers: Answers, prior: AbilityPrior) -> Abilities:
    """Posterior moments on Gauss-Hermite nodes around each model's mode (Naylor and Smith 1982)."""
    mode = map_of_answers(answers, prior)
    roots = np.linalg.cholesky(mode.covariance)
    line, line_weights = np.polynomial.hermite_e.hermegauss(OWN_NODES[prior.n_dims])
    units = np.stack(np.meshgrid(*[line] * prior.n_dims, indexing="ij"), axis=-1).reshape(-1, prior.n_dims)
    logs = np.stack(np.meshgrid(*[np.log(line_weights)] * prior.n_dims, indexing="ij"), axis=-1)
    offsets = np.matmul(roots[:, None], units[..., None])[..., 0]  # (n_models, n_quadrature, n_dims)
    points = mode.theta[:, None, :] + offsets
    precision = np.linalg.inv(prior.covariance)
    values = np.stack([_log_posterior(answers, points[:, q], prior.mean, precision) for q in range(len(units))], axis=1)
    # Gauss-Hermite nodes integrate against exp(-u^2 / 2), which the last term divides out of the posterior.
    weights = _normalised(values + logs.reshape(-1, prior.n_dims).sum(axis=1) + 0.5 * np.sum(units**2, axis=1))
    shift = np.einsum("mq,mqd->md", weights, offsets)
    covariance = np.einsum("mq,mqd,mqe->mde", weights, offsets, offsets) - _outer(shift)
    return Abilities(mode.theta + shift, covariance, mode.at_bound, mode.converged, "eap")


def _log_posterior(answers: Answers, theta: FloatArray, mean: FloatArray, precision: FloatArray) -> FloatArray:
    terms = answers.model.log_likelihood_terms(logits(answers, theta), answers.responses, answers.n_trials)
    distance = theta - mean
    log_prior = -0.5 * np.einsum("md,md->m", distance @ precision, distance)
    result: FloatArray = only_answered(answers, terms).sum(axis=1) + log_prior
    return result


def _normalised(log_weights: FloatArray) -> FloatArray:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    result: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return result


def _outer(vectors: FloatArray) -> FloatArray:
    return vectors[:, :, None] * vectors[:, None, :]
