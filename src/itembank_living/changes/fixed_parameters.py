"""Fixed-parameter calibration: new items on the scale of old ones, whose parameters stay as they are (Kim 2006).

EM. The posterior of each linking model's ability comes from its answers to old items; then each new item's posterior,
with one or two abilities from its marginal likelihood given those (Bock and Aitkin 1981); and then the normal
population that the new items are drawn from, which is fitted to them. A population centred at zero, the usual default,
costs twice the error where models are few. Maximum likelihood (mirt's) lets answers to new items tell of abilities,
too. With few old and many new items that costs half as much again: models do differently on new items, and nothing but
the old ones holds the scale.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri, softmax

from itembank.irt.answers import gather
from itembank.irt.likelihood_abilities import Posterior
from itembank.irt.logistic import asymptotes_of, likelihood_terms, log_probabilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.quadrature import normal_grid
from itembank_living.changes.linking import LinkingData
from itembank_living.changes.overlay import joined_parameters

MOST_GAUSS_DIMS = 2
"""Beyond two dimensions products of Gauss-Hermite nodes are too many: 2 n_dims points of equal weight stand for them,
which have the mean and the covariance of the normal approximation of the posterior."""


class AbilityNodes(NamedTuple):
    """Posteriors of n_models abilities."""

    theta: FloatArray  # (n_models, n_quadrature, n_dims)
    weights: FloatArray  # (n_models, n_quadrature): Summing to one for each model
    # (n_models,): Log marginal likelihood; NaN where the points only stand for a normal posterior.
    log_likelihood: FloatArray
    knows_new: bool = False  # Whether they follow from the answers to new items, too

    @property
    def mean(self) -> FloatArray:
        """Posterior means, (n_models, n_dims)."""
        result: FloatArray = np.einsum("mq,mqd->md", self.weights, self.theta)
        return result

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariances, (n_models, n_dims, n_dims)."""
        away = self.theta - self.mean[:, None, :]
        result: FloatArray = np.einsum("mq,mqd,mqe->mde", self.weights, away, away)
        return result


def ability_nodes(
    items: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    *,
    n_trials: FloatArray | None = None,
    n_quadrature: int = 5,
) -> AbilityNodes:
    """Find points around each model's posterior mode with the weights of its posterior.

    Adaptive Gauss-Hermite quadrature (Naylor and Smith 1982) in one and two dimensions, with `n_quadrature` points in
    each; 2 n_dims points of equal weight, ``mode +- sqrt(n_dims)`` times the columns of a root of the posterior
    covariance, in more.
    """
    mode = map_abilities(items, responses, prior, n_trials=n_trials)
    roots = np.linalg.cholesky(mode.covariance)
    if prior.n_dims > MOST_GAUSS_DIMS:
        offsets = np.sqrt(prior.n_dims) * np.concatenate([roots, -roots], axis=2).transpose(0, 2, 1)
        weights = np.full(offsets.shape[:2], 1.0 / offsets.shape[1])
        return AbilityNodes(mode.theta[:, None, :] + offsets, weights, np.full(len(roots), np.nan))
    line, line_weights = np.polynomial.hermite_e.hermegauss(n_quadrature)
    units = np.stack(np.meshgrid(*[line] * prior.n_dims, indexing="ij"), axis=-1).reshape(-1, prior.n_dims)
    logs = np.stack(np.meshgrid(*[np.log(line_weights)] * prior.n_dims, indexing="ij"), axis=-1)
    theta = mode.theta[:, None, :] + np.einsum("mde,qe->mqd", roots, units)
    objective = Posterior(gather(items, responses, None, n_trials), prior.mean, np.linalg.inv(prior.covariance))
    values = np.stack([objective.evaluate(theta[:, q]).objective for q in range(len(units))], axis=1)
    # nodes integrate against exp(-u^2 / 2), by which the posterior is divided
    values += logs.reshape(-1, prior.n_dims).sum(axis=1) + 0.5 * np.sum(units**2, axis=1)
    highest = values.max(axis=1, keepdims=True)
    weights = np.exp(values - highest)
    total = weights.sum(axis=1, keepdims=True)
    _, log_det_roots = np.linalg.slogdet(roots)
    _, log_det_prior = np.linalg.slogdet(prior.covariance)
    constant = -0.5 * log_det_prior - 0.5 * prior.n_dims * np.log(2.0 * np.pi)
    return AbilityNodes(theta, weights / total, (highest + np.log(total))[:, 0] + log_det_roots + constant)


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
    n_quadrature: int  # Points of each model
    is_marginal: bool  # Whether an item's own answers weigh the points anew


def places_of(nodes: AbilityNodes) -> Places:
    """Lay the points of all models out one after the other."""
    n_models, n_quadrature, n_dims = nodes.theta.shape
    theta = nodes.theta.reshape(-1, n_dims)
    owner = np.repeat(np.arange(n_models), n_quadrature)
    design = np.column_stack([theta, np.ones(len(theta))])
    is_marginal = n_dims <= MOST_GAUSS_DIMS and not nodes.knows_new
    return Places(design, nodes.weights.ravel(), owner, n_quadrature, is_marginal)


def item_modes(
    data: LinkingData, places: Places, population: AbilityPrior, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take an EM step to the mode of each new item's posterior, (n_new, n_dims + 1), and find the precision there.

    The population is the normal prior of (loadings, intercept); the precision is that of known abilities. With one or
    two the likelihood of an item is ``prod_l sum_q w_lq p(y_l | theta_q)``: its own answers weigh the points anew.
    Weighed by old answers alone, abler models seem to gain too little: slopes are 25 % too small by 20 old items,
    however many models link. With more abilities they are weighed so all the same: the points that stand for a normal
    posterior are too few to be weighed anew.
    """
    mode, precision = np.empty_like(start), np.empty((*start.shape, start.shape[1]))
    for block, lower in _alike(data, len(places.owner)):
        points = ItemParameters.create(places.design, np.zeros(len(places.design)), lower)
        responses, counts = _answers(data, places, block)
        weights = _weighed(places, _log_likelihood(places, responses, counts, start[block][:, None], lower)[:, 0])
        found = map_abilities(points, responses, population, weights=counts * weights, start=start[block])
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
        # posteriors of few answers have longer tails than the normal approximation; in many dimensions a wide density
        # would leave little weight on most points
        wider = 1.0 + 0.6 / mode.shape[1]
        points = mode[block][:, None, :] + wider * np.einsum("iab,qb->iqa", roots, units)
        away = points - population.mean
        values = -0.5 * np.einsum("iqa,ab,iqb->iq", away, inverse, away) + log_unit_weights
        logs = _log_likelihood(places, *_answers(data, places, block), points, lower)
        if not places.is_marginal:  # expected log-likelihood
            values += logs @ places.weights
        else:
            by_weights = places.weights.reshape(-1, places.n_quadrature)
            by_model = logs.reshape(*points.shape[:2], -1, places.n_quadrature)
            highest = by_model.max(axis=3)
            chance = np.einsum("ikmq,mq->ikm", np.exp(by_model - highest[..., None]), by_weights)
            values += (highest + np.log(chance)).sum(axis=2)
        weights = np.exp(values - values.max(axis=1, keepdims=True))
        yield block, points, weights / weights.sum(axis=1, keepdims=True)


@lru_cache
def standard_points(size: int) -> tuple[FloatArray, FloatArray]:
    """Points (n_points, size) and log weights, over the density ``exp(-z^2 / 2)`` that they integrate.

    Items in one dimension get 7 Gauss-Hermite nodes for each parameter; those in more 256 points.
    """
    if size <= 2:
        line, line_weights = np.polynomial.hermite_e.hermegauss(7)
        units = np.stack(np.meshgrid(*[line] * size, indexing="ij"), axis=-1).reshape(-1, size)
        logs = np.stack(np.meshgrid(*[np.log(line_weights)] * size, indexing="ij"), axis=-1).reshape(-1, size)
        return units, logs.sum(axis=1) + 0.5 * np.sum(units**2, axis=1)
    # half of an additive sequence, the others opposite. Roberts' sequence: multiples of g^-1, ..., g^-size modulo 1,
    # with g^(size + 1) = g + 1, fill the cube evenly
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (size + 1.0))
    steps = root ** -np.arange(1.0, size + 1.0)
    half = ndtri((0.5 + np.outer(np.arange(1, 129), steps)) % 1.0)
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
    for lower in np.unique(data.new_lower):
        alike = np.flatnonzero(data.new_lower == lower)
        for run in row_blocks(len(alike), n_places, times=2):
            yield alike[run], float(lower)


def _answers(data: LinkingData, places: Places, block: IntArray) -> tuple[FloatArray, FloatArray]:
    """Responses to some items at every point, and their trials, 0 where missing; (n_block, n_places) each."""
    responses = data.new_responses[:, block].T[:, places.owner]
    trials = 1.0 if data.new_trials is None else data.new_trials[:, block].T[:, places.owner]
    return responses, trials * ~np.isnan(responses)


def _log_likelihood(
    places: Places, responses: FloatArray, counts: FloatArray, items: FloatArray, lower: float
) -> FloatArray:
    """Of the answers (n_block, n_places) at some parameters of each item, (n_block, n_points, n_places)."""
    log_p, log_q = log_probabilities(items @ places.design.T, asymptotes_of(np.array(lower), np.ones(())))
    right = counts * np.nan_to_num(responses)
    result: FloatArray = right[:, None] * log_p + (counts - right)[:, None] * log_q
    return result


def _weighed(places: Places, logs: FloatArray) -> FloatArray:
    """Weights of the points once each item's own answers, of such log-likelihood, are known; (n_block, n_places)."""
    if not places.is_marginal:
        return np.broadcast_to(places.weights, logs.shape)
    by_model = (logs + np.log(places.weights)).reshape(len(logs), -1, places.n_quadrature)
    result: FloatArray = softmax(by_model, axis=2).reshape(logs.shape)
    return result


FLAT = 1e12
"""Variance of a prior that says nothing."""


@dataclass(frozen=True, slots=True)
class FixedParameters:
    """Choices of a fixed-parameter calibration."""

    # New items share a normal population that is fitted to them. Without it each item has the mode of its own
    # likelihood.
    has_population: bool = True
    # Abilities follow from answers to new items, too, as in maximum likelihood; in one and two dimensions.
    uses_new_answers: bool = False
    # The bank's prior of ability counts as so many linking models; 0 leaves its mean and variance free.
    pseudo_models: float = 4.0
    n_quadrature: int = 5  # Points of each ability
    tolerance: float = 1e-3  # Root mean square change of the items in a step, in standard errors, at which it stops
    max_steps: int = 200


class FixedFit(NamedTuple):
    """Result of `calibrate_fixed`."""

    posterior: ItemPosterior
    # (n_new, n_dims + 1, n_dims + 1): Of (loadings, intercept), the uncertainty of abilities included.
    covariance: FloatArray
    population: AbilityPrior  # Of the new items' (loadings, intercept)
    abilities: AbilityPrior  # The normal distribution of the linking models' abilities
    nodes: AbilityNodes
    converged: bool


class _State(NamedTuple):
    """What an EM step begins with: items (n_new, n_dims + 1) and both populations."""

    mode: FloatArray
    population: AbilityPrior
    abilities: AbilityPrior


def calibrate_fixed(data: LinkingData, spec: FixedParameters, *, start: FixedFit | None = None) -> FixedFit:
    """Find the new items' parameters, with the old ones' held fixed.

    EM, with SQUAREM jumps (Varadhan and Roland 2008, scheme S3): where new items are many, their shift against the old
    ones and the abilities' would follow each other in small steps.
    """
    base = item_population(data.old)
    if start is None:  # items alike, found from the abilities that the old items tell
        population = base if spec.has_population else AbilityPrior(base.mean, FLAT * np.eye(base.n_dims))
        places = places_of(_nodes(data, None, data.prior, spec))
        mode, _ = item_modes(data, places, population, np.tile(base.mean, (data.n_new, 1)))
        state = _State(mode, population, data.prior)
    else:
        state = _State(start.posterior.mode, start.population, start.abilities)
    best: tuple[_State, ItemPosterior, AbilityNodes] | None = None
    converged, n_steps, shortest, safe = False, 0, np.inf, state
    while best is None or not (converged or n_steps >= spec.max_steps):
        first, _, _ = _em_step(data, base, state, spec)
        second, posterior, nodes = _em_step(data, base, first, spec)
        n_steps += 2
        # root mean square change of an item, in its standard errors
        moved = posterior.mode - first.mode
        squares = np.einsum("ia,iab,ib->i", moved, posterior.precision, moved)
        length = float(np.sqrt(np.maximum(squares, 0.0).mean()))
        if length > shortest and state is not safe:  # a jump that led away: go on from where it began
            state = safe
            continue
        best, safe, shortest, converged = (second, posterior, nodes), second, length, length < spec.tolerance
        state = _jump(state, first, second)
    found, posterior, nodes = best
    covariance = posterior.covariance
    if not (spec.has_population and places_of(nodes).is_marginal):
        roots = np.linalg.cholesky(covariance)
        # what is lost comes out of the precision, in whose units what is kept is I - R' lost R; a hundredth stays
        values, vectors = np.linalg.eigh(roots.transpose(0, 2, 1) @ lost_information(data, nodes, found.mode) @ roots)
        kept = np.maximum(1.0 - values, 0.01)
        whole = roots @ vectors
        covariance = np.einsum("iab,ib,icb->iac", whole, 1.0 / kept, whole)
    return FixedFit(posterior, covariance, found.population, found.abilities, nodes, converged)


def _em_step(
    data: LinkingData, base: AbilityPrior, state: _State, spec: FixedParameters
) -> tuple[_State, ItemPosterior, AbilityNodes]:
    """Abilities given items, then items given abilities, then both populations: where it led, and what it found."""
    nodes = _nodes(data, state.mode, state.abilities, spec)
    places, population = places_of(nodes), state.population
    mode, precision = item_modes(data, places, population, state.mode)
    posterior = ItemPosterior(mode, precision, mode, np.linalg.inv(precision))
    if spec.has_population:
        posterior = item_moments(data, places, population, mode, precision)
        # the spread of the old items counts as that of four new ones, so that two or three new items have a population
        population = _fitted(posterior, base, 1.0, 4.0)
    abilities = _fitted(nodes, data.prior, spec.pseudo_models, spec.pseudo_models)
    return _State(mode, population, abilities), posterior, nodes


def _jump(start: _State, middle: _State, end: _State) -> _State:
    """Extrapolate two steps: ``x0 + 2 s r + s^2 v`` with r the first step, v its change, and ``s = |r| / |v|``."""
    x0, x1, x2 = (_packed(state) for state in (start, middle, end))
    first, change = x1 - x0, (x2 - x1) - (x1 - x0)
    size = float(np.linalg.norm(change))
    stretch = float(np.clip(np.linalg.norm(first) / size, 1.0, 16.0)) if size > 0.0 else 1.0
    return _unpacked(x0 + 2.0 * stretch * first + stretch**2 * change, end)


def _packed(state: _State) -> FloatArray:
    """One vector; covariances as Cholesky factors with logarithms on the diagonal, so that any vector is a state."""
    parts = [state.mode.ravel()]
    for one in (state.population, state.abilities):
        root = np.linalg.cholesky(one.covariance)
        lower = root[np.tril_indices(one.n_dims, -1)]
        parts += [one.mean, np.log(np.diag(root)), lower]
    return np.concatenate(parts)


def _unpacked(vector: FloatArray, like: _State) -> _State:
    place, priors = like.mode.size, []
    for one in (like.population, like.abilities):
        n, n_lower = one.n_dims, one.n_dims * (one.n_dims - 1) // 2
        mean, logs, lower = np.split(vector[place : place + 2 * n + n_lower], [n, 2 * n])
        root = np.diag(np.exp(logs))
        root[np.tril_indices(n, -1)] = lower
        priors.append(AbilityPrior(mean, root @ root.T))
        place += 2 * n + n_lower
    return _State(vector[: like.mode.size].reshape(like.mode.shape), *priors)


def item_population(items: ItemParameters) -> AbilityPrior:
    """Return the normal distribution of items' (loadings, intercept)."""
    coefficients = np.column_stack([items.loadings, items.intercept])
    spread = np.cov(coefficients.T) if len(coefficients) > 1 else np.zeros((coefficients.shape[1],) * 2)
    # a hundredth of a unit matrix: items with a common slope, or only a few of them, have a spread all the same
    return AbilityPrior(coefficients.mean(axis=0), spread + 0.01 * np.eye(coefficients.shape[1]))


def expected_curves(data: LinkingData, fit: FixedFit) -> FloatArray:
    """Find the (loadings, intercept) whose curve is nearest to each item's expected one, (n_new, n_dims + 1).

    The chance that a model answers an item right is the mean of the item's curve over the posterior of its parameters,
    flatter than the curve of their mean or mode. A mean over many new items keeps that difference: with 5 linking
    models it is 1 point of the score. The nearest logistic curve maximises the expected log-likelihood of an answer by
    a model drawn from the bank's distribution of ability.
    """
    points, point_weights = ability_grid(data.prior)
    design = ItemParameters.create(np.column_stack([points, np.ones(len(points))]), np.zeros(len(points)))
    result = np.empty_like(fit.posterior.mode)
    flat = AbilityPrior(fit.population.mean, FLAT * np.eye(fit.population.n_dims))
    for block, items, weights in posterior_points(
        data, places_of(fit.nodes), fit.population, fit.posterior.mode, fit.posterior.precision
    ):
        curves = np.zeros((len(items), len(points)))
        for point in range(items.shape[1]):
            curves += weights[:, point, None] * expit(items[:, point] @ design.loadings.T)
        counts = np.broadcast_to(point_weights, curves.shape)
        result[block] = map_abilities(design, curves, flat, weights=counts, start=fit.posterior.mean[block]).theta
    return result


def ability_grid(prior: AbilityPrior) -> tuple[FloatArray, FloatArray]:
    """Points of the bank's distribution of ability, (n_points, n_dims), and their weights, summing to one."""
    if prior.n_dims <= MOST_GAUSS_DIMS:
        units, log_weights = normal_grid(41, n_dims=prior.n_dims)
    else:
        units, _ = standard_points(prior.n_dims)
        log_weights = np.full(len(units), -np.log(len(units)))
    return prior.mean + units @ np.linalg.cholesky(prior.covariance).T, np.exp(log_weights)


def _nodes(data: LinkingData, mode: FloatArray | None, prior: AbilityPrior, spec: FixedParameters) -> AbilityNodes:
    """Posteriors of ability, from the old items or from all; points that stand for a normal posterior take the old."""
    items, responses, trials = data.old, data.old_responses, data.old_trials
    knows_new = mode is not None and spec.uses_new_answers and prior.n_dims <= MOST_GAUSS_DIMS
    if knows_new and mode is not None:
        new = ItemParameters.create(mode[:, :-1], mode[:, -1], data.new_lower, family=data.family)
        items, responses, trials = joined_parameters(data.old, new), data.responses, data.trials
    found = ability_nodes(items, responses, prior, n_trials=trials, n_quadrature=spec.n_quadrature)
    return found._replace(knows_new=knows_new)


def _fitted(
    found: ItemPosterior | AbilityNodes, base: AbilityPrior, n_of_mean: float, n_of_spread: float
) -> AbilityPrior:
    """Fit a normal population to posteriors; the base counts as so many of them in its mean, and in its spread."""
    n_found = len(found.mean)
    mean = (n_of_mean * base.mean + found.mean.sum(axis=0)) / (n_of_mean + n_found)
    away = found.mean - mean
    spread = found.covariance.sum(axis=0) + away.T @ away
    return AbilityPrior(mean, (n_of_spread * base.covariance + spread) / (n_of_spread + n_found))
