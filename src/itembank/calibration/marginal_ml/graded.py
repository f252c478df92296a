"""Marginal maximum likelihood of graded items in one dimension: EM with quadrature.

Items of the same levels are worked on together. With expected numbers r_kq of responses of level k at node q, an item's
slope a and thresholds c_k (``a theta + c_k`` is the logit of reaching level k) take a step of Fisher scoring on
``sum_kq r_kq log P_k(q)`` in every round. Few models leave levels that an item has not shown yet: every item gets, as
its prior, one more response, spread over levels and abilities as those of all items of these levels are.

Probabilities of the levels of graded items on nodes of ability, with derivatives (Samejima 1969).

Items are rows of slope a and falling thresholds c_k; ``a theta + c_k`` is the logit of reaching level k at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import MarginalML
from itembank.calibration.fits import Fit, FitData
from itembank.calibration.marginal_ml.posterior import SPACING_TO_SD, WIDEST_SPACING, nodes_for_spacing
from itembank.irt import graded
from itembank.irt.parameters import AbilityPrior, Steps
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.quadrature import log_sum_exp, normal_grid
from itembank.numerics.stable import sigmoid_pair
from itembank.progress import ProgressCallback, silent

PRIOR_RESPONSES = 1.0
"""Weight of the prior of an item, in responses."""
N_START = 61
"""Nodes to begin with."""
N_WARM_UP = 10
"""Rounds after which the nodes are made fine enough for the sharpest posterior of ability."""
SMALLEST = 1e-300
"""Probabilities of levels are raised to this before their logarithm is taken."""
SMALLEST_GAP = 1e-3
"""Of neighbouring thresholds, in logits: a step that brings them closer is halved."""
LARGEST_SLOPE = 30.0
RIDGE = 1e-9
"""Added to the information of an item, so that a step can always be found."""
SMALLEST_INFORMATION = 0.1
"""Least information on each parameter that standard errors take for granted: a normal prior of sd 3."""
BLOCK_CELLS = 1 << 20
"""Numbers of an array of items, levels, parameters and nodes that is worked on at once."""
MOST_HALVINGS = 30


class Group(NamedTuple):
    """Items that have the same levels."""

    columns: IntArray  # (n_group,)
    has: BoolArray  # (n_levels,): Which of all levels they have
    level: IntArray  # (n_models, n_group): Of each response, numbered among these; -1 where missing

    @property
    def n_levels(self) -> int:
        """Number of levels that the items have."""
        return int(self.has.sum())

    def answers(self, number: int) -> FloatArray:
        """Return 1 where a response has the level of this number, else 0, (n_models, n_group)."""
        result: FloatArray = (self.level == number).astype(np.float64)
        return result


@dataclass(frozen=True, slots=True)
class Round:
    """What a round of EM found: posteriors of ability at the items it began with, and the items it ended with."""

    # tuple of (n_group, n_levels) arrays: Slope and thresholds of the items of each group.
    items: tuple[FloatArray, ...]
    log_likelihood: float
    mean: FloatArray  # (n_models,): Of ability
    variance: FloatArray  # (n_models,)
    change: float  # Largest step of an item, in its standard errors


def fit_graded(data: FitData, spec: MarginalML, *, progress: ProgressCallback = silent) -> Fit:
    """Fit slopes and steps with abilities integrated out over N(0, 1), then score the models.

    Standard errors of an item take the others as known.
    """
    groups = _groups(data)
    items = tuple(_start(group) for group in groups)
    n_nodes, n_rounds = (
        (N_START, N_WARM_UP) if spec.n_quadrature == "auto" else (spec.n_quadrature, spec.max_iterations)
    )
    nodes = normal_grid(n_nodes, bounds=spec.bounds, n_dims=1)
    found, history = _rounds(groups, items, nodes, spec, n_rounds)
    if spec.n_quadrature == "auto":
        nodes = _finer(groups, found, spec.bounds)
        found, more = _rounds(groups, found.items, nodes, spec, spec.max_iterations)
        history += more
    progress("marginal ML", 1.0)
    return _fit(data, groups, found, nodes=nodes, history=history, spec=spec)


def _rounds(
    groups: Sequence[Group],
    items: Sequence[FloatArray],
    nodes: tuple[FloatArray, FloatArray],
    spec: MarginalML,
    most: int,
) -> tuple[Round, list[float]]:
    """Repeat rounds until no item moves any more; also the log-likelihood at the beginning of each."""
    weight = 0.0 if spec.prior is None else PRIOR_RESPONSES
    history: list[float] = []
    while True:
        found = _round(groups, items, nodes, weight)
        items = found.items
        history.append(found.log_likelihood)
        if found.change <= spec.tolerance or len(history) == most:
            return found, history


def _groups(data: FitData) -> tuple[Group, ...]:
    """Put items of the same levels together."""
    if data.levels is None or data.has_level is None:
        raise TypeError("graded data have levels.")
    level = np.searchsorted(data.levels, data.responses.astype(np.float64))
    if data.observed is not None:
        level[~data.observed] = -1
    kinds, kind_of = np.unique(data.has_level, axis=0, return_inverse=True)
    found = []
    for number, has in enumerate(kinds):
        columns = np.flatnonzero(kind_of.ravel() == number)
        rank = np.append(np.cumsum(has) - 1, -1)  # the last is that of a missing response
        found.append(Group(columns, has, rank[level[:, columns]]))
    return tuple(found)


def _start(group: Group) -> FloatArray:
    """Slopes of one, and the thresholds that give the shares of responses at the mean ability."""
    counts = np.stack([group.answers(number).sum(axis=0) for number in range(group.n_levels)], axis=1) + 0.5
    return np.column_stack([np.ones(group.columns.size), start_thresholds(counts)])


def _round(
    groups: Sequence[Group], items: Sequence[FloatArray], nodes: tuple[FloatArray, FloatArray], weight: float
) -> Round:
    """Find the posteriors of ability, move every item a step, and put the abilities' mean and variance right."""
    theta = nodes[0][:, 0]
    log_likelihood, posterior = _posterior(groups, items, nodes)
    mean = posterior @ theta
    variance = posterior @ theta**2 - mean**2
    moved, information = [], []
    for group, own in zip(groups, items, strict=True):
        counts = np.stack([group.answers(number).T @ posterior for number in range(group.n_levels)], axis=1)
        total = counts.sum(axis=0)
        # The prior: one response, spread over levels and nodes as those of all items of the group are.
        following, precision = _in_blocks(own, counts + weight * (total / total.sum()), theta)
        moved.append(following)
        information.append(precision)
    scale = float(np.sqrt(np.var(mean) + variance.mean()))  # PX-EM (Liu, Rubin and Wu 1998)
    ended = tuple(np.column_stack([own[:, 0] * scale, own[:, 1:] + own[:, :1] * float(mean.mean())]) for own in moved)
    lengths = [_lengths(after - before, one) for after, before, one in zip(ended, items, information, strict=True)]
    return Round(ended, float(log_likelihood.sum()), mean, variance, float(max(one.max() for one in lengths)))


def _lengths(step: FloatArray, information: FloatArray) -> FloatArray:
    """Length of each item's step in standard errors, (n_items,)."""
    result: FloatArray = np.sqrt(np.maximum(np.einsum("ip,ipr,ir->i", step, information, step), 0.0))
    return result


def _posterior(
    groups: Sequence[Group], items: Sequence[FloatArray], nodes: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Log marginal likelihood (n_models,), and posterior weights of the nodes, (n_models, n_quadrature)."""
    theta, log_weights = nodes[0][:, 0], nodes[1]
    joint = np.zeros((groups[0].level.shape[0], theta.size)) + log_weights
    for group, own in zip(groups, items, strict=True):
        log_p = np.log(level_probabilities(own, theta))  # (n_group, n_levels, n_quadrature)
        for number in range(group.n_levels):
            joint += group.answers(number) @ log_p[:, number]
    log_likelihood = log_sum_exp(joint)
    posterior: FloatArray = np.exp(joint - log_likelihood[:, None])
    return log_likelihood, posterior


def _in_blocks(items: FloatArray, counts: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move items by a step of Fisher scoring, a block of them at a time; also their information, abilities known."""
    parts = [_scored(items[block], counts[block], theta) for block in _blocks(items, counts[0].size)]
    moved, information = (np.concatenate(part) for part in zip(*parts, strict=True))
    return moved, information


def _blocks(items: FloatArray, n_cells: int) -> list[slice]:
    """Cut items into blocks of so many cells an item and parameter."""
    size = max(1, BLOCK_CELLS // (n_cells * items.shape[1]))
    return [slice(first, first + size) for first in range(0, len(items), size)]


def _scored(items: FloatArray, counts: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move items by a step of Fisher scoring; also their information, abilities known."""
    p, derivatives = level_probabilities(items, theta), level_derivatives(items, theta)
    gradient = np.einsum("ikq,ikpq->ip", counts / p, derivatives, optimize=True)
    total = counts.sum(axis=1)[:, None] / p
    information = np.einsum("ikq,ikpq,ikrq->ipr", total, derivatives, derivatives, optimize=True)
    step = np.linalg.solve(information + RIDGE * np.eye(items.shape[1]), gradient[..., None])[..., 0]
    return _allowed(items, step), information


def _covariance(group: Group, items: FloatArray, theta: FloatArray, posterior: FloatArray) -> FloatArray:
    """Covariance of slope and thresholds of every item by itself, (n_group, n_levels, n_levels).

    The inverse of the sum over models of the outer products of their scores ``E[d log P(y) | responses]``: abilities
    are integrated out (Louis 1982, eq. 3.3), other items taken as known.
    """
    parts = []
    for block in _blocks(items, posterior.shape[0] * group.n_levels + theta.size * group.n_levels):
        p = level_probabilities(items[block], theta)
        slopes = level_derivatives(items[block], theta) / p[:, :, None]
        of_levels = np.einsum("ikpq,mq->mikp", slopes, posterior, optimize=True)
        level = group.level[:, block]
        scores = np.take_along_axis(of_levels, np.maximum(level, 0)[..., None, None], axis=2)[:, :, 0]
        scores = scores * (level >= 0)[..., None]
        parts.append(np.einsum("mip,mir->ipr", scores, scores, optimize=True))
    information = np.concatenate(parts)
    return np.linalg.inv(information + SMALLEST_INFORMATION * np.eye(items.shape[1]))


def _allowed(items: FloatArray, step: FloatArray) -> FloatArray:
    """Add steps, halved where thresholds would meet or a slope would grow beyond all measure."""
    for _ in range(MOST_HALVINGS):
        moved = items + step
        is_wrong = (np.abs(moved[:, 0]) > LARGEST_SLOPE) | np.any(moved[:, 1:-1] - moved[:, 2:] < SMALLEST_GAP, axis=1)
        if not is_wrong.any():
            break
        step = np.where(is_wrong[:, None], 0.5 * step, step)
    return np.where(is_wrong[:, None], items, moved)


def _finer(groups: Sequence[Group], found: Round, bounds: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Make nodes whose distance resolves the sharpest posterior of ability."""
    total = np.zeros(found.mean.size)
    for group, items in zip(groups, found.items, strict=True):
        steps = Steps(np.linspace(0.0, 1.0, group.n_levels), -items[:, 1:])
        weights = graded.information_slopes(found.mean[:, None] * items[:, 0], steps)[0]
        total += ((group.level >= 0) * weights) @ items[:, 0] ** 2
    sharpest = 1.0 / np.sqrt(1.0 + float(total.max()))
    spacing = min(WIDEST_SPACING, SPACING_TO_SD * sharpest)
    return normal_grid(max(N_START, nodes_for_spacing(spacing, bounds)), bounds=bounds, n_dims=1)


def _fit(
    data: FitData,
    groups: Sequence[Group],
    found: Round,
    *,
    nodes: tuple[FloatArray, FloatArray],
    history: list[float],
    spec: MarginalML,
) -> Fit:
    """Put the items of all groups together; the intercept is the mean of the thresholds."""
    n_items, n_levels = data.responses.shape[1], groups[0].has.size
    coefficients, covariance = np.zeros((n_items, 2)), np.zeros((n_items, 2, 2))
    places = np.empty((n_items, n_levels - 1))
    _, posterior = _posterior(groups, found.items, nodes)
    for group, items in zip(groups, found.items, strict=True):
        to_mean = np.zeros((2, items.shape[1]))
        to_mean[0, 0], to_mean[1, 1:] = 1.0, 1.0 / (items.shape[1] - 1)
        coefficients[group.columns] = items @ to_mean.T
        covariance[group.columns] = to_mean @ _covariance(group, items, nodes[0][:, 0], posterior) @ to_mean.T
        own = items[:, 1:].mean(axis=1, keepdims=True) - items[:, 1:]
        # the step to level k is that to the next level at or above k that the items have
        padded = np.column_stack([np.full(len(own), -np.inf), own, np.full(len(own), np.inf)])
        following = np.cumsum(group.has)[:-1]  # how many levels lie below level k
        places[group.columns] = padded[:, following]
    # abilities have mean 0 and variance 1 up to the last step; the sign is that of most slopes
    sign = -1.0 if coefficients[:, 0].sum() < 0.0 else 1.0
    coefficients[:, 0] *= sign
    covariance[:, 0, 1] *= sign
    covariance[:, 1, 0] *= sign
    converged = found.change <= spec.tolerance
    advice = "" if converged else f", above the tolerance {spec.tolerance:g}. Raise max_iterations"
    return Fit(
        loadings=coefficients[:, :1],
        intercept=coefficients[:, 1],
        item_covariance=covariance,
        abilities=sign * found.mean[:, None],
        ability_covariance=found.variance[:, None, None],
        prior=AbilityPrior.standard(1),
        converged=converged,
        n_iterations=len(history),
        message=f"largest change of an item {found.change:.2g} standard errors after {len(history)} steps{advice}.",
        history=np.asarray(history),
        steps=Steps(np.asarray(data.levels), places),
    )


def level_probabilities(items: FloatArray, theta: FloatArray) -> FloatArray:
    """Probability of every level at every node, (n_items, n_levels, n_quadrature), never quite zero."""
    reached, missed = sigmoid_pair(items[:, :1, None] * theta + items[:, 1:, None])
    ends = np.ones((items.shape[0], 1, theta.size))
    # S_k - S_(k+1) as a product: the difference of two numbers near 1 would lose all digits
    result = np.concatenate([ends, reached], axis=1) * np.concatenate([missed, ends], axis=1)
    result[:, 1:-1] *= -np.expm1(np.diff(items[:, 1:], axis=1))[..., None]
    positive: FloatArray = np.maximum(result, SMALLEST)
    return positive


def level_derivatives(items: FloatArray, theta: FloatArray) -> FloatArray:
    """Differentiate level probabilities in slope and thresholds, (n_items, n_levels, n_levels, n_quadrature).

    The second axis is that of levels, the third that of parameters.
    """
    n_items, n_levels = items.shape
    result = np.zeros((n_items, n_levels, n_levels, theta.size))
    reached, missed = sigmoid_pair(items[:, :1, None] * theta + items[:, 1:, None])
    slope = reached * missed
    for step in range(n_levels - 1):  # P_k = S_k - S_(k+1), and threshold k moves S_k alone
        result[:, step + 1, step + 1] = slope[:, step]
        result[:, step, step + 1] = -slope[:, step]
    result[:, :, 0] = result[:, :, 1:].sum(axis=2) * theta
    return result


def start_thresholds(counts: FloatArray) -> FloatArray:
    """Thresholds at which the levels have these shares of the responses, (n_items, n_levels - 1).

    Parameters
    ----------
    counts : (n_items, n_levels)
        Above zero.
    """
    above = np.cumsum(counts[:, ::-1], axis=1)[:, -2::-1] / counts.sum(axis=1, keepdims=True)
    result: FloatArray = np.log(above) - np.log1p(-above)
    return result
