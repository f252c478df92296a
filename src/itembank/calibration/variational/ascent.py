"""The loop of the variational calibration: sweeps that never lower the bound.

A sweep goes over the responses twice. First come the items, each on its own given the abilities: an item whose
bound fell keeps its old posterior and takes half the step next time. Then come the abilities, then the scale is
fixed, which changes no logit, and last the whole step is extrapolated. Should the bound fall, less is done: no
extrapolation, then a shorter step of the abilities.

A step of the abilities that knows how the items will follow.

Updating abilities and items in turn is slow where they depend on each other: where a group of models separates a group
of items perfectly, both must grow together. With P_l and P_i the precisions of ability and item, and
``C_il = w_il x_l a_i' - r_il [I; 0]`` the cross derivatives of the objective (r the residual, x = (theta, 1)), Newton's
step for both at once, from items that are already at their best, is
``(P_theta - C' P_beta^-1 C) d_theta = g`` and ``d_beta = -P_beta^-1 C d_theta``.
A few conjugate gradient iterations, each six matrix products, get close enough.

Momentum: carrying on in the direction of the last step.

With many dimensions and few models, a sweep closes only a thousandth of the remaining distance in some directions.
Nesterov's extrapolation ``z + (k - 1) / (k + 2) (z - z_before)`` of all posterior means, started anew whenever the
bound would fall (O'Donoghue & Candes 2015), needs about the square root of the number of plain sweeps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from itembank.calibration.fits import LEAST, MOST, Ascent
from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import BetaRule
from itembank.calibration.variational.blocks import CELLS_PER_BLOCK, MOST_COUPLED_CELLS, Blocks, ResponseBlocks
from itembank.calibration.variational.passes import (
    CellRule,
    Statistics,
    ability_statistics,
    constants_of,
    extended,
    item_statistics,
)
from itembank.calibration.variational.precision import learn, log_prior
from itembank.calibration.variational.scale import rescale
from itembank.calibration.variational.state import Covariances, Posterior
from itembank.calibration.variational.updates import (
    divergence,
    item_divergence,
    update_abilities,
    update_items,
    with_positive_slopes,
)
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.symmetric import unpack
from itembank.progress import ProgressCallback

MAX_HALVINGS = 6
"""A step of an item or of the abilities is a 64th at least. With 2 to 10 halvings simulated fits end alike."""


class Reached(NamedTuple):
    """Where an ascent ended."""

    posterior: Posterior
    rule: CellRule  # With the precisions learned on the way


@dataclass(frozen=True, slots=True)
class Coupling:
    """Cross derivatives of the objective in items and abilities at one point."""

    curvature: FloatArray  # (n_items, n_models): w
    residual: FloatArray  # (n_items, n_models): r
    extended: FloatArray  # (n_models, n_dims + 1): Abilities with a one
    loadings: FloatArray  # (n_items, n_dims)
    item_covariance: FloatArray  # (n_items, n_dims + 1, n_dims + 1): Inverse of P_beta

    @classmethod
    def at(cls, posterior: Posterior, cross: tuple[FloatArray, FloatArray]) -> "Coupling":
        """Take them where a pass over the responses has been."""
        dtype = cross[0].dtype
        return cls(
            *cross,
            extended(posterior.ability_mean).astype(dtype),
            posterior.item_mean[:, : posterior.n_dims].astype(dtype),
            posterior.item_covariance,
        )

    def items_follow(self, ability_step: FloatArray) -> FloatArray:
        """``P_beta^-1 C d_theta``, (n_items, n_dims + 1): minus how the items answer a step of the abilities."""
        step = ability_step.astype(self.loadings.dtype)
        return np.concatenate([self._items_of(part, step) for part in self._slices()])

    def abilities_follow_items(self, ability_step: FloatArray) -> FloatArray:
        """``C' P_beta^-1 C d_theta``, (n_models, n_dims): what the items' answer does to the abilities."""
        dtype = self.loadings.dtype
        step, n_dims = ability_step.astype(dtype), self.loadings.shape[1]
        product = np.zeros(ability_step.shape, dtype)
        for part in self._slices():
            items = self._items_of(part, step).astype(dtype)
            weighted = items @ self.extended.T
            weighted *= self.curvature[part]
            product += weighted.T @ self.loadings[part]
            product -= self.residual[part].T @ items[:, :n_dims]
        return product

    def _items_of(self, part: slice, step: FloatArray) -> FloatArray:
        """Find how some of the items follow, (n_part, n_dims + 1)."""
        weighted = self.loadings[part] @ step.T
        weighted *= self.curvature[part]
        product: FloatArray = weighted @ self.extended
        product[:, : step.shape[1]] -= self.residual[part] @ step
        return times(self.item_covariance[part], product)

    def _slices(self) -> Iterator[slice]:
        """Cut the items into blocks that stay in the cache."""
        n_items, n_models = self.curvature.shape
        n_block = max(1, CELLS_PER_BLOCK // n_models)
        return (slice(first, first + n_block) for first in range(0, n_items, n_block))


@dataclass(frozen=True, slots=True)
class Momentum:
    """Where the last sweep led, and how many there were since the momentum was last lost."""

    item_mean: FloatArray | None = None  # (n_items, n_dims + 1)
    ability_mean: FloatArray | None = None  # (n_models, n_dims)
    n_steps: int = 0

    def after(self, posterior: Posterior) -> "Momentum":
        """Return the momentum after a sweep that led to this posterior."""
        return Momentum(posterior.item_mean, posterior.ability_mean, self.n_steps + 1)

    def extrapolate(self, posterior: Posterior) -> Posterior:
        """Carry the means of a posterior on in the direction from the last one; covariances stay."""
        if self.item_mean is None or self.ability_mean is None:
            return posterior
        # (k - 1) / (k + 2) with k = n_steps + 1: none at first, so that a lost momentum begins with a plain step.
        weight = self.n_steps / (self.n_steps + 3.0)
        return replace(
            posterior,
            item_mean=posterior.item_mean + weight * (posterior.item_mean - self.item_mean),
            ability_mean=posterior.ability_mean + weight * (posterior.ability_mean - self.ability_mean),
        )


def ascend(
    blocks: ResponseBlocks,
    posterior: Posterior,
    rule: CellRule,
    *,
    tolerance: float,
    max_sweeps: int,
    progress: ProgressCallback,
    precision_of_group: IntArray | None = None,
    is_rough: bool = False,
) -> Ascent[Reached]:
    """Sweep until the bound rises, twice in turn or on the mean of a few sweeps, by less than `tolerance` of its size.

    The items' parameters must have settled, too (see `has_settled`), unless a rough answer will do, for which the mean
    alone decides.
    With `precision_of_group` (n_groups,), which of the precisions each group of items has, these are learned.
    """
    history: list[float] = []
    item_steps: FloatArray = np.ones(blocks.n_items)
    before = posterior
    candidates: Iterator[tuple[Posterior, Momentum]] = iter([(posterior, Momentum())])
    # Sweeps before the first coupled step: far from the maximum, plain sweeps gain more for their cost.
    plain_sweeps = 5
    # Sweeps whose mean rise decides: a single one can be small just because the momentum overshot.
    window = 5
    # Sweeps that decide, too, if each of them rises by less: fits of many responses are at their end long before five.
    steady = 2
    for sweep in range(max_sweeps + 1):
        for candidate, carried in candidates:
            statistics = item_statistics(blocks, candidate, rule)
            bound = _bound(statistics, candidate, rule)
            if not history or bound >= history[-1]:
                before, posterior, momentum = posterior, candidate, carried
                break
        else:  # nothing rises: the bound is at its maximum, to rounding
            return Ascent(Reached(posterior, rule), history, converged=is_rough or has_settled(before, posterior))
        if precision_of_group is not None:
            rule, statistics = _with_learned_precision(blocks, posterior, rule, statistics, precision_of_group)
            bound = _bound(statistics, posterior, rule)
        history.append(bound)
        if sweep >= steady:
            # Smaller bounds count as 1e4: a thousandth of a nat more says nothing, however few the responses.
            # Densities, whose logarithm can be near zero, count as half of a nat a cell at least.
            smallest = 1e4 if blocks.sums is None else max(1e4, 0.5 * blocks.n_cells)
            rises = np.diff(history[-1 - window :]) / max(abs(bound), smallest)
            # a guess of how far the ascent has come, from the order of magnitude of the last rise
            orders = np.log(max(float(rises.mean()), tolerance)) / np.log(tolerance) if tolerance < 1.0 else 1.0
            progress(f"sweep {sweep}", float(np.clip(orders, 0.0, 1.0)))
            is_slow = sweep >= window and rises.mean() < tolerance
            is_steady = not is_rough and rises[-steady:].max() < tolerance
            if (is_slow or is_steady) and (is_rough or has_settled(before, posterior)):
                return Ascent(Reached(posterior, rule), history, converged=True)
        if sweep == max_sweeps:
            break
        is_coupled = sweep >= plain_sweeps and not posterior.has_common_slope and blocks.n_cells <= MOST_COUPLED_CELLS
        swept, of_abilities, item_steps = improve_items(
            blocks, posterior, statistics, item_steps, rule=rule, with_cross=is_coupled
        )
        bold = update_abilities(swept, of_abilities, 1.0)
        if of_abilities.cross is not None:
            bold = coupled_step(swept, of_abilities, of_abilities.cross, bold.abilities_spread)
        candidates = _candidates(swept, of_abilities, bold, momentum)
    return Ascent(Reached(posterior, rule), history, converged=False)


def has_settled(before: Posterior, after: Posterior) -> bool:
    """Whether a sweep moved no parameter of an item by more than its own posterior standard deviation.

    A bound of many trials is so large that slopes may run on for ever by rises that are nothing beside it.
    """
    variance = np.einsum("ijj->ij", after.item_covariance)
    return bool(np.all((after.item_mean - before.item_mean) ** 2 <= variance))


def _bound(statistics: Statistics, posterior: Posterior, rule: CellRule) -> float:
    """Return the bound on the log evidence, with the log density of the precisions."""
    bound = float(statistics.likelihood.sum()) - divergence(posterior)
    return bound + log_prior(rule.precision) if isinstance(rule, BetaRule | BetaBinomialRule) else bound


def _with_learned_precision(
    blocks: ResponseBlocks, posterior: Posterior, rule: CellRule, statistics: Statistics, precision_of_group: IntArray
) -> tuple[CellRule, Statistics]:
    """Give the rule with better precisions, and the statistics by it; both as they were where none is better."""
    if not isinstance(rule, BetaRule | BetaBinomialRule) or not isinstance(blocks, Blocks):
        return rule, statistics
    learned, doubt, acceleration, _ = learn(blocks, posterior, rule, precision_of_group)[:, precision_of_group]
    old = np.log(rule.precision)
    change = learned - old
    # Of log phi, in a sweep: less is not worth another look at the responses.
    least_change = 1e-4
    change[np.abs(change) < np.maximum(least_change, 0.5 * doubt)] = 0.0
    before = float(statistics.likelihood.sum()) + log_prior(rule.precision)
    for factor in (acceleration, 1.0):
        if not change.any():
            break
        proposed = rule.with_precision(np.exp(np.clip(old + factor * change, np.log(LEAST), np.log(MOST))))
        after = item_statistics(blocks, posterior, proposed)
        if float(after.likelihood.sum()) + log_prior(proposed.precision) > before:
            return proposed, after
    return rule, statistics


def _candidates(
    swept: Posterior, statistics: Statistics, bold: Posterior, momentum: Momentum
) -> Iterator[tuple[Posterior, Momentum]]:
    """Give where to go next, from bold to timid, each with the momentum it leaves."""
    bold = rescale(with_positive_slopes(bold))
    yield with_positive_slopes(momentum.extrapolate(bold)), momentum.after(bold)
    yield bold, Momentum().after(bold)
    for halvings in range(MAX_HALVINGS + 1):
        timid = rescale(update_abilities(swept, statistics, 0.5**halvings))
        yield timid, Momentum().after(timid)


def improve_items(
    blocks: ResponseBlocks,
    posterior: Posterior,
    before: Statistics,
    steps: FloatArray,
    *,
    rule: CellRule,
    with_cross: bool = False,
) -> tuple[Posterior, Statistics, FloatArray]:
    """Update the items and put back those whose bound fell; `with_cross` keeps what a coupled step needs.

    Returns the posterior, what the update of its abilities needs, and each item's next step, (n_items,).
    """
    # A fall by a few of the last digits is rounding, not a worse item.
    noise = 10.0 * float(np.finfo(blocks.dtype).eps)
    proposed = update_items(posterior, before, steps)
    after = ability_statistics(blocks, proposed, rule, with_cross=with_cross)
    change = after.likelihood - item_divergence(proposed) - before.likelihood + item_divergence(posterior)
    size = np.abs(before.likelihood) + np.abs(constants_of(blocks, rule))
    # with the constants: densities sum large numbers that no parameter enters, whose rounding counts, too
    fell: BoolArray = change < -noise * size
    if posterior.has_common_slope:
        fell = np.full(fell.shape, change.sum() < -noise * np.abs(size.sum()))
    # Of an item's step after a sweep that raised its bound: three of them undo one halving.
    step_growth = 1.25
    new_steps = np.where(fell, np.maximum(0.5 * steps, 0.5**MAX_HALVINGS), np.minimum(step_growth * steps, 1.0))
    if not fell.any():
        return proposed, after, new_steps
    # Correct the sums over items by those put back, rather than go over all responses again.
    kept = proposed.with_items_of(posterior, fell)
    responses = blocks.take_items(fell)
    wrong = ability_statistics(responses, proposed.take_items(fell), rule)
    right = ability_statistics(responses, kept.take_items(fell), rule, with_cross=with_cross)
    if after.cross is not None and right.cross is not None:
        for whole, part in zip(after.cross, right.cross, strict=True):
            whole[fell] = part
    corrected = Statistics(
        after.precision - wrong.precision + right.precision,
        after.linear - wrong.linear + right.linear,
        np.where(fell, before.likelihood, after.likelihood),
        after.cross,
    )
    return kept, corrected, new_steps


def coupled_step(
    posterior: Posterior,
    statistics: Statistics,
    cross: tuple[FloatArray, FloatArray],
    spread: Covariances,  # Of the abilities by these statistics, which have a closed form
    *,
    max_iterations: int = 10,  # Two to thirty lead simulated fits to the same end
    # Of the preconditioned residual's norm, at which to stop: a rough step is enough, since the next sweep corrects it.
    relative_residual: float = 0.3,
) -> Posterior:
    """Move the means of abilities and items together, from items just updated given these abilities.

    Conjugate gradients find the step of the abilities, preconditioned by their own precision, and stop where the
    curvature ends.
    """
    coupling = Coupling.at(posterior, cross)
    precision = unpack(statistics.precision, posterior.n_dims) + np.eye(posterior.n_dims)
    gradient = statistics.linear - times(precision, posterior.ability_mean)
    step: FloatArray = np.zeros_like(gradient)
    residual = gradient
    steepest = times(spread.matrices, residual)
    direction, size = steepest, float(np.sum(residual * steepest))
    enough = relative_residual**2 * size
    for iteration in range(max_iterations):
        alone = times(precision, direction)
        curved = alone - coupling.abilities_follow_items(direction)
        curvature = float(np.sum(direction * curved))
        # P_theta - C' P_beta^-1 C need not be positive definite away from a maximum.
        # Below this fraction of that without coupling, the objective is nearly straight, and its quadratic no guide.
        if curvature <= 1e-3 * float(np.sum(direction * alone)):
            step = steepest if iteration == 0 else step
            break
        step = step + size / curvature * direction
        residual = residual - size / curvature * curved
        steepest = times(spread.matrices, residual)
        size, before = float(np.sum(residual * steepest)), size
        if size < enough:
            break
        direction = steepest + size / before * direction
    return replace(
        posterior,
        ability_mean=posterior.ability_mean + step,
        abilities_spread=spread,
        item_mean=posterior.item_mean - coupling.items_follow(step),
    )


def times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Matrix times vector, row by row: (n, j, k) and (n, k) to (n, j)."""
    result: FloatArray = np.einsum("ljk,lk->lj", matrices, vectors)
    return result
