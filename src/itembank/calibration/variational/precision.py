"""Learning the precision phi of families that have one: EM's step, for one phi a group of items.

The expected log-likelihood of a Beta response depends on phi through ``E[A(x; phi)]``, summed over cells, and through
``phi (E[p] L + log(1 - y))``, which is linear. So the cells are gone through once, for a histogram of their
logits, and each phi tried afterwards costs one look at it.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, expit, gammaln

from itembank.calibration.fits import DIFFERENCE, LEAST, MOST, PRIOR_MEAN, PRIOR_SD
from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule, counts_of, log_normaliser, terms
from itembank.calibration.variational.beta_cells import LARGEST_LOGIT, BetaRule, Few, normaliser
from itembank.calibration.variational.blocks import Blocks
from itembank.calibration.variational.cells import node_step
from itembank.calibration.variational.passes import logit_moments
from itembank.calibration.variational.state import Posterior
from itembank.irt.beta import CLIPPED_LOGIT
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.quadrature import THREE_NODES

LONGEST_STEP = 2.0
"""Of log phi: a factor of seven. Items and abilities are those of the old phi, and must follow before it goes on."""
MOST_ACCELERATION = 10.0
"""Reached where parameters take up nine tenths of the spread. With 1 to 100 fits of 6 and of 60 models end alike."""


def log_prior(precision: FloatArray) -> float:
    """Log density of the precisions' prior, up to its constant."""
    return float(-0.5 * np.sum(((np.log(precision) - PRIOR_MEAN) / PRIOR_SD) ** 2))


def learn(
    blocks: Blocks,
    posterior: Posterior,
    rule: BetaRule | BetaBinomialRule,
    of_group: IntArray,  # (n_groups,): Which precision each group of items has, rising
    *,
    # Of each precision that are gone through; of more, items at equal steps are taken
    most_cells: int | None = None,
) -> FloatArray:
    """Find where the expected log-likelihood is highest in each precision, (4, n_precisions).

    Its logarithm; how far that may be off because not all cells were gone through; how many such steps the bound is
    likely to ask for, by what items and abilities take up of the spread they leave; and the standard error of log phi.
    """
    if most_cells is None:
        # they suffice for a group's phi: its relative error is sqrt(2 / cells), 0.14 % and 0.6 %
        most_cells = 1_000_000 if isinstance(rule, BetaRule) else 50_000
    group = np.zeros(blocks.n_items, dtype=np.int64) if blocks.group is None else blocks.group
    before = np.log(rule.precision)[np.searchsorted(of_group, np.arange(int(of_group[-1]) + 1))]
    learned = np.zeros((before.size, 4))
    few = np.zeros(before.size, dtype=bool)
    if isinstance(rule, BetaRule):
        few[of_group] = [isinstance(table, Few) for table in rule.tables]
        if few.any():
            chosen = few[of_group[group]]
            cells = _few_cells(blocks.take_items(chosen), posterior.take_items(chosen), rule, of_group, before.size)
            learned[few] = _of_few_probabilities(cells, before)[few]
    for index in np.flatnonzero(~few).tolist():
        items, start = np.flatnonzero(of_group[group] == index), float(before[index])
        most = max(most_cells // blocks.values.shape[1], 1)
        sample = items if items.size <= most else items[np.linspace(0, items.size - 1, most).astype(np.int64)]
        fraction = sample.size / items.size
        some, posteriors = blocks, posterior
        if sample.size < blocks.n_items:
            some, posteriors = blocks.take_items(sample), posterior.take_items(sample)
        if isinstance(rule, BetaRule):
            best, acceleration, error = _of_probabilities(some, posteriors, rule, start, fraction)
        else:
            best, acceleration, error = _of_counts(some, posteriors, rule, start, fraction)
        # A sample of the fraction f misses the result of all cells by sqrt(1 / f - 1) of its standard error.
        learned[index] = best, error * np.sqrt((1.0 - fraction) / fraction), acceleration, error
    return learned.T


def _of_probabilities(
    blocks: Blocks, posterior: Posterior, rule: BetaRule, start: float, fraction: float
) -> tuple[float, float, float]:
    # Taylor's formula goes from the nearest node to the third order: 16 to 256 find the same phi to four digits.
    nodes_per_unit = 64
    half = round(LARGEST_LOGIT * nodes_per_unit)
    moments = np.zeros((len(rule.tables), 4, 2 * half + 1))
    linear, freedom, n_cells, n_clipped = 0.0, 0.0, 0.0, 0
    for part, mean, variance in logit_moments(blocks, posterior):
        group = int(blocks.group_at(part))
        weights = None if blocks.weights is None else blocks.weights[part]
        freedom += float(
            np.sum(rule.evaluate(blocks.values[part], weights, group, mean, variance).curvature * variance)
        )
        n_clipped += int(np.count_nonzero(np.abs(blocks.values[part]) > CLIPPED_LOGIT))
        n_cells += mean.size if weights is None else float(weights.sum())
        half_step = node_step(variance)
        lower = rule.tables[group].lower_asymptote
        for place, weight in THREE_NODES:
            logits = (mean + place * half_step).ravel().astype(np.float64)
            counts = np.full(logits.shape, weight) if weights is None else weight * weights.ravel()
            index = np.clip(np.rint((logits + LARGEST_LOGIT) * nodes_per_unit), 0, 2 * half).astype(np.int64)
            # Each cell leaves its weight times offset^k / k! at the nearest node, k = 0 to 3: their products with A
            # and its derivatives at the nodes then sum Taylor's formula over all cells, for any phi.
            offset = logits - (index - half) / nodes_per_unit
            for power, factor in enumerate((np.ones_like(offset), offset, offset**2 / 2.0, offset**3 / 6.0)):
                moments[group, power] += np.bincount(index, counts * factor, minlength=2 * half + 1)
            linear += float(counts @ ((lower + (1.0 - lower) * expit(logits)) * blocks.values[part].ravel()))
    if blocks.sums is not None:
        linear += float(blocks.sums[:, 0].sum())
    used = [number for number in range(len(rule.tables)) if moments[number, 0].any()]
    nodes = [np.flatnonzero(moments[number, 0]) for number in used]

    def loss(log_precision: float) -> float:
        precision = float(np.exp(log_precision))
        total = precision * linear - n_clipped * log_precision
        for number, where in zip(used, nodes, strict=True):
            expected = normaliser((where - half) / nodes_per_unit, precision, rule.tables[number].lower_asymptote)
            total += float(np.sum(moments[number][:, where] * np.stack(expected)))
        return -total / fraction - log_prior(np.array([precision]))

    bounds = (max(start - LONGEST_STEP, np.log(LEAST)), min(start + LONGEST_STEP, np.log(MOST)))
    best = float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-5}).x)
    curvature = (loss(best + DIFFERENCE) - 2.0 * loss(best) + loss(best - DIFFERENCE)) / DIFFERENCE**2
    # curvature * variance summed is the effective number of parameters. What remains of each cell is the part of
    # the responses' spread that the parameters did not take up.
    free = max(1.0 - freedom / max(n_cells, 1.0), 1.0 / MOST_ACCELERATION)
    return best, 1.0 / free, 1.0 / np.sqrt(max(curvature * free, 1e-12))


class _FewCells(NamedTuple):
    """What the likelihood of each of many precisions is made of, where each has few cells."""

    of_node: IntArray  # (n_nodes,): Three nodes a cell: which precision it has, how often it counts, p and 1 - p
    counts: FloatArray  # (n_nodes,)
    right: FloatArray  # (n_nodes,)
    wrong: FloatArray  # (n_nodes,)
    # (n_precisions,): Sum of p L and log(1 - y); numbers of cells; and what items and abilities take up of them.
    linear: FloatArray
    n_clipped: FloatArray  # (n_precisions,)
    n_cells: FloatArray  # (n_precisions,)
    freedom: FloatArray  # (n_precisions,)

    def gain(self, log_precision: FloatArray) -> FloatArray:
        """Return the log-likelihood and log prior of each precision, up to a constant."""
        phi = np.exp(log_precision)
        each = phi[self.of_node]
        terms = gammaln(phi)[self.of_node] - gammaln(self.right * each) - gammaln(self.wrong * each)
        prior = -0.5 * ((log_precision - PRIOR_MEAN) / PRIOR_SD) ** 2
        return phi * self.linear - self.n_clipped * log_precision + self._sums(terms) + prior

    def slope(self, log_precision: FloatArray) -> FloatArray:
        """Return the derivative of `gain` in log phi."""
        phi = np.exp(log_precision)
        each = phi[self.of_node]
        within = self.right * digamma(self.right * each) + self.wrong * digamma(self.wrong * each)
        prior = -(log_precision - PRIOR_MEAN) / PRIOR_SD**2
        return phi * (self.linear + self._sums(digamma(phi)[self.of_node] - within)) - self.n_clipped + prior

    def _sums(self, terms: FloatArray) -> FloatArray:
        return np.bincount(self.of_node, self.counts * terms, minlength=self.linear.size).astype(np.float64)


def _of_few_probabilities(few: _FewCells, start: FloatArray) -> FloatArray:
    """Give the rows of `learn` for precisions of few cells, all at once, from log phi to start with, (n_precisions,).

    A is concave in phi, as minus the logarithm of a distribution's normaliser, so the slope changes its sign once.
    """
    low = np.maximum(start - LONGEST_STEP, np.log(LEAST))
    high = np.minimum(start + LONGEST_STEP, np.log(MOST))
    for _ in range(8):
        middle = 0.5 * (low + high)
        rises = few.slope(middle) > 0.0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    # within so short a bracket the slope is a straight line, to 1e-5 of log phi
    at_low, at_high = few.slope(low), few.slope(high)
    steepness = np.maximum(np.abs(at_low - at_high), np.finfo(np.float64).tiny)
    best = low + (high - low) * np.clip(at_low / steepness, 0.0, 1.0)
    curvature = -(few.gain(best + DIFFERENCE) - 2.0 * few.gain(best) + few.gain(best - DIFFERENCE)) / DIFFERENCE**2
    free = np.maximum(1.0 - few.freedom / np.maximum(few.n_cells, 1.0), 1.0 / MOST_ACCELERATION)
    error = 1.0 / np.sqrt(np.maximum(curvature * free, 1e-12))
    return np.column_stack([best, np.zeros(best.size), 1.0 / free, error])


def _few_cells(blocks: Blocks, posterior: Posterior, rule: BetaRule, of_group: IntArray, n: int) -> _FewCells:
    """Go once through items whose n precisions have few cells each."""
    group = np.zeros(blocks.n_items, dtype=np.int64) if blocks.group is None else blocks.group
    linear, freedom, n_cells, n_clipped = (np.zeros(n) for _ in range(4))
    if blocks.sums is not None:
        linear = linear + np.bincount(of_group[group], blocks.sums[:, 0], minlength=n)
    nodes = []
    for part, mean, variance in logit_moments(blocks, posterior):
        weights = np.ones(mean.shape) if blocks.weights is None else blocks.weights[part]
        where = np.nonzero(weights)
        of_cell, counts = of_group[group[part][where[0]]], weights[where]
        values, lower = blocks.values[part][where], rule.lower_asymptote[group[part][where[0]]]
        curvature = rule.evaluate(blocks.values[part], weights, group[part], mean, variance).curvature
        freedom += np.bincount(of_cell, (curvature * variance)[where], minlength=n)
        n_cells += np.bincount(of_cell, counts, minlength=n)
        n_clipped += np.bincount(of_cell, np.abs(values) > CLIPPED_LOGIT, minlength=n)
        half_step = node_step(variance)
        for place, weight in THREE_NODES:
            logits = np.clip((mean + place * half_step)[where].astype(np.float64), -LARGEST_LOGIT, LARGEST_LOGIT)
            right, wrong = lower + (1.0 - lower) * expit(logits), (1.0 - lower) * expit(-logits)
            linear += np.bincount(of_cell, weight * counts * right * values, minlength=n)
            nodes.append((of_cell, weight * counts, right, wrong))
    of_node, counts, right, wrong = (np.concatenate(column) for column in zip(*nodes, strict=True))
    return _FewCells(of_node, counts, right, wrong, linear, n_clipped, n_cells, freedom)


def _of_counts(
    blocks: Blocks, posterior: Posterior, rule: BetaBinomialRule, start: float, fraction: float
) -> tuple[float, float, float]:
    """One Newton step, by differences."""
    steps = np.array([-DIFFERENCE, 0.0, DIFFERENCE])
    totals = np.array([log_prior(np.exp(np.array([start + step]))) for step in steps])
    for part, mean, variance in logit_moments(blocks, posterior):
        right, trials = counts_of(blocks.values[part], None if blocks.weights is None else blocks.weights[part])
        lower = rule.of(blocks.group_at(part))[1]
        half_step = node_step(variance)
        for number, step in enumerate(steps):
            totals[number] += log_normaliser(trials, float(np.exp(start + step))).sum() / fraction
        for place, weight in THREE_NODES:
            logits = mean + place * half_step
            for number, step in enumerate(steps):
                value = terms(logits, right, trials, float(np.exp(start + step)), lower)[0]
                totals[number] += weight * value.sum() / fraction
    slope = (totals[2] - totals[0]) / (2.0 * DIFFERENCE)
    curvature = -(totals[2] - 2.0 * totals[1] + totals[0]) / DIFFERENCE**2
    # Where the objective is not concave, a whole unit uphill.
    step = slope / curvature if curvature > 0.0 else np.sign(slope)
    best = np.clip(start + np.clip(step, -1.0, 1.0), np.log(LEAST), np.log(MOST))
    return float(best), 1.0, 1.0 / np.sqrt(max(curvature, 1e-12))
