"""Fixed-parameter calibration: new items on the scale of old ones, whose parameters stay as they are (Kim 2006).

EM. The posterior of each linking model's ability comes from its answers to old items; then each new item's posterior,
and then the normal population that the new items are drawn from, which is fitted to them. A population centred at zero,
the usual default, costs twice the error where models are few. Maximum likelihood (mirt's) lets answers to new items
tell of abilities, too. With few old and many new items that costs half as much again: models do differently on new
items, and nothing but the old ones holds the scale.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.living.ability_nodes import MOST_GAUSS_DIMS, AbilityNodes, ability_nodes
from itembank.living.item_posterior import (
    ItemPosterior,
    item_modes,
    item_moments,
    lost_information,
    places_of,
    posterior_points,
    standard_points,
)
from itembank.living.linking_data import LinkingData
from itembank.numerics.arrays import FloatArray
from itembank.numerics.quadrature import normal_grid

FLAT = 1e12
"""Variance of a prior that says nothing."""
PSEUDO_ITEMS = 4.0
"""The spread of the old items counts as that of so many new ones, so that two or three new items have a population."""
LONGEST_JUMP = 16.0
"""Of SQUAREM, in steps."""


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


class _Step(NamedTuple):
    """An EM step: where it led, and what it found on the way."""

    following: _State
    posterior: ItemPosterior
    nodes: AbilityNodes

    def length_from(self, before: _State) -> float:
        """Root mean square change of an item, in its standard errors."""
        moved = self.posterior.mode - before.mode
        squares = np.einsum("ia,iab,ib->i", moved, self.posterior.precision, moved)
        return float(np.sqrt(np.maximum(squares, 0.0).mean()))


def calibrate_fixed(data: LinkingData, spec: FixedParameters, *, start: FixedFit | None = None) -> FixedFit:
    """Find the new items' parameters, with the old ones' held fixed.

    EM, with SQUAREM jumps (Varadhan and Roland 2008, scheme S3): where new items are many, their shift against the old
    ones and the abilities' would follow each other in small steps.

    Parameters
    ----------
    data : LinkingData
    spec : FixedParameters
    start : FixedFit, optional
        Where to begin: the fit of nearly the same data.
    """
    base = item_population(data.old)
    state = (
        _start(data, base, spec) if start is None else _State(start.posterior.mode, start.population, start.abilities)
    )
    best: _Step | None = None
    converged, n_steps, shortest, safe = False, 0, np.inf, state
    while best is None or not (converged or n_steps >= spec.max_steps):
        first = _em_step(data, base, state, spec)
        second = _em_step(data, base, first.following, spec)
        n_steps += 2
        length = second.length_from(first.following)
        if length > shortest and state is not safe:  # a jump that led away: go on from where it began
            state = safe
            continue
        best, safe, shortest, converged = second, second.following, length, length < spec.tolerance
        state = _jump(state, first.following, second.following)
    found, posterior = best.following, best.posterior
    covariance = _with_unknown_abilities(posterior.covariance, lost_information(data, best.nodes, found.mode))
    return FixedFit(posterior, covariance, found.population, found.abilities, best.nodes, converged)


def _start(data: LinkingData, base: AbilityPrior, spec: FixedParameters) -> _State:
    """Begin with items alike, found from the abilities that the old items tell."""
    population = base if spec.has_population else AbilityPrior(base.mean, FLAT * np.eye(base.n_dims))
    places = places_of(_nodes(data, None, data.prior, spec))
    mode, _ = item_modes(data, places, population, np.tile(base.mean, (data.n_new, 1)))
    return _State(mode, population, data.prior)


def _em_step(data: LinkingData, base: AbilityPrior, state: _State, spec: FixedParameters) -> _Step:
    """Abilities given items, then items given abilities, then both populations."""
    nodes = _nodes(data, state.mode, state.abilities, spec)
    places, population = places_of(nodes), state.population
    mode, precision = item_modes(data, places, population, state.mode)
    posterior = ItemPosterior(mode, precision, mode, np.linalg.inv(precision))
    if spec.has_population:
        posterior = item_moments(data, places, population, mode, precision)
        population = _population(posterior, base)
    abilities = _ability_population(nodes, data.prior, spec.pseudo_models)
    return _Step(_State(mode, population, abilities), posterior, nodes)


def _jump(start: _State, middle: _State, end: _State) -> _State:
    """Extrapolate two steps: ``x0 + 2 s r + s^2 v`` with r the first step, v its change, and ``s = |r| / |v|``."""
    x0, x1, x2 = (_packed(state) for state in (start, middle, end))
    first, change = x1 - x0, (x2 - x1) - (x1 - x0)
    size = float(np.linalg.norm(change))
    stretch = float(np.clip(np.linalg.norm(first) / size, 1.0, LONGEST_JUMP)) if size > 0.0 else 1.0
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
    """Undo `_packed`."""
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
        curves = _mean_curves(items, weights, design.loadings)
        counts = np.broadcast_to(point_weights, curves.shape)
        result[block] = map_abilities(design, curves, flat, weights=counts, start=fit.posterior.mean[block]).theta
    return result


def _mean_curves(items: FloatArray, weights: FloatArray, design: FloatArray) -> FloatArray:
    """Mean of the logistic curves of each item's points (n_items, n_points, n_dims + 1) at each row of the design."""
    result = np.zeros((len(items), len(design)))
    for point in range(items.shape[1]):
        result += weights[:, point, None] * expit(items[:, point] @ design.T)
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
    if mode is None or not spec.uses_new_answers or prior.n_dims > MOST_GAUSS_DIMS:
        return ability_nodes(
            data.old, data.old_responses, prior, n_trials=data.old_trials, n_quadrature=spec.n_quadrature
        )
    items = ItemParameters.create(
        np.concatenate([data.old.loadings, mode[:, :-1]]),
        np.concatenate([data.old.intercept, mode[:, -1]]),
        np.concatenate([data.old.lower_asymptote, data.new_lower]),
        np.concatenate([data.old.upper_asymptote, np.ones(data.n_new)]),
        family=data.family,
    )
    return ability_nodes(items, data.responses, prior, n_trials=data.trials, n_quadrature=spec.n_quadrature)


def _population(posterior: ItemPosterior, base: AbilityPrior) -> AbilityPrior:
    """Fit the population of the new items to their posteriors."""
    n_items = len(posterior.mean)
    mean = (base.mean + posterior.mean.sum(axis=0)) / (1.0 + n_items)
    away = posterior.mean - mean
    spread = posterior.covariance.sum(axis=0) + away.T @ away
    return AbilityPrior(mean, (PSEUDO_ITEMS * base.covariance + spread) / (PSEUDO_ITEMS + n_items))


def _ability_population(nodes: AbilityNodes, prior: AbilityPrior, pseudo: float) -> AbilityPrior:
    """Fit the distribution of the linking models' abilities, the bank's counting as `pseudo` models."""
    n_models = len(nodes.mean)
    mean = (pseudo * prior.mean + nodes.mean.sum(axis=0)) / (pseudo + n_models)
    away = nodes.mean - mean
    spread = nodes.covariance.sum(axis=0) + away.T @ away
    return AbilityPrior(mean, (pseudo * prior.covariance + spread) / (pseudo + n_models))


def _with_unknown_abilities(covariance: FloatArray, lost: FloatArray) -> FloatArray:
    """Take lost information out of the precision; where all would be lost, leave a hundredth."""
    roots = np.linalg.cholesky(covariance)
    # in units of the precision the information kept is I - R' lost R
    values, vectors = np.linalg.eigh(roots.transpose(0, 2, 1) @ lost @ roots)
    kept = np.maximum(1.0 - values, 0.01)
    whole = roots @ vectors
    result: FloatArray = np.einsum("iab,ib,icb->iac", whole, 1.0 / kept, whole)
    return result
