"""Kernels of item drift: residuals of items over several new models, drifted ones taken out one at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr

from itembank.auditing.past_fit import patterns
from itembank.irt.linear_gaussian import FactorModel, FactorPosterior, factor_posterior, item_residuals
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known

LARGEST_Z = 2.5
"""An item beyond it is marked: the usual bound for the displacement of anchors (Wright & Douglas 1976, with z)."""
MOST_MARKED = 0.2
"""Fraction of the items that may be marked: with fewer others left, nobody can say which items moved."""
LEAST_ANSWERS = 1.5
"""Answers by which new models must differ from what is expected: one odd answer to an item that all others solve has a
large z, and shows nothing."""
SMALLEST_TAIL = 1e-300
"""Of a probability that z is made of: it stays finite, at 37."""
LEAST_MODELS, LEAST_PAST = 3, 10
"""Answers to an item, of new and of past models, that are needed to examine it."""


class PastResiduals(NamedTuple):
    """Cross-validated residuals of each item over past models, in standard deviations by the factor model."""

    mean: FloatArray  # (n_items,): NaN where too few models answered
    spread: FloatArray  # (n_items,)
    n_models: IntArray  # (n_items,)

    @classmethod
    def of(cls, residuals: FloatArray, least_spread: FloatArray) -> "PastResiduals":
        """Sum up residuals (n_past, n_items), NaN where unknown.

        Their spread is at least `least_spread`, (n_items,), the root of `surest_variance` in the same units: an item
        that all past models solved has next to none, which says that they were few and not that all models solve it.
        """
        known = ~np.isnan(residuals)
        n_models = known.sum(axis=0)
        mean = mean_where_known(residuals)
        squares = mean_where_known((residuals - mean) ** 2)
        variance = squares * n_models / np.maximum(n_models - 1, 1)
        is_enough = (n_models >= LEAST_PAST) & (squares > 0.0)
        spread = np.maximum(np.sqrt(variance), least_spread)
        return cls(np.where(is_enough, mean, np.nan), np.where(is_enough, spread, np.nan), n_models)


def surest_variance(n_models: IntArray) -> FloatArray:
    """Return the smallest variance of an answer that so many past models can vouch for, of the shape of `n_models`.

    ``p (1 - p)`` with ``p = 1 / (n + 2)``, Laplace's chance of the answer that none of n models gave.
    """
    p = 1.0 / (n_models + 2.0)
    return p * (1.0 - p)


class Drift(NamedTuple):
    """What new models show of each item."""

    difference: FloatArray  # (n_items,): Mean answer less expectation, on the scale of responses
    z: FloatArray  # (n_items,)
    n_models: IntArray  # (n_items,)
    is_marked: BoolArray  # (n_items,)
    is_cut: bool  # Whether more items are beyond the bound than may be marked


def find_drift(
    model: FactorModel,
    items: IntArray,  # (n_columns,): Positions of the items
    responses: FloatArray,  # (n_models, n_columns): Of new models; NaN where missing
    past: PastResiduals,  # Of these items
    *,
    n_learnt: int,  # Factors whose loadings past models taught, the first; those of discrepancies are what they are
) -> Drift:
    """Mark the item with the z furthest from 0, leave it out of what answers are expected from, and begin anew.

    Until none is beyond 2.5, or a fifth is marked. Marked items are judged by the others to the end, so that one bad
    item does not make good ones look bad.
    """
    is_marked = np.zeros(items.size, dtype=bool)
    difference, deviation = (np.full(responses.shape, np.nan) for _ in range(2))
    factors = np.zeros((responses.shape[0], n_learnt))
    alike = list(patterns(responses))
    changed = alike
    while True:
        for rows, columns in changed:
            answers, linked = responses[np.ix_(rows, columns)], ~is_marked[columns]
            posterior = factor_posterior(model, items[columns[linked]], answers[:, linked])
            factors[rows] = posterior.mean[:, :n_learnt]
            for own, residual, variance in _residuals(model, items[columns], answers, ~linked, posterior):
                cells = np.ix_(rows, columns[own])
                surest = surest_variance(past.n_models[columns[own]])
                difference[cells], deviation[cells] = residual, residual / np.sqrt(np.maximum(variance, surest))
        z, n_models = standardised_sums(deviation, past, leverages(factors, ~np.isnan(responses)))
        open_z = np.where(is_marked, 0.0, _counted_z(z, difference))
        worst = int(np.argmax(open_z))
        is_limited = bool(is_marked.sum() + 1 > MOST_MARKED * np.sum(~np.isnan(z)))
        if open_z[worst] <= LARGEST_Z or is_limited:
            is_cut = is_limited and bool(open_z[worst] > LARGEST_Z)
            return Drift(mean_where_known(difference), z, n_models, is_marked, is_cut)
        is_marked[worst] = True
        changed = [one for one in alike if worst in one[1]]


def standardised_sums(
    deviation: FloatArray,  # (n_models, n_items): u, NaN where missing
    past: PastResiduals,
    leverage: FloatArray,  # (n_items,): h: 1 for new models that are like past ones on average (`leverages`)
) -> tuple[FloatArray, IntArray]:
    """Z of each item, and the number of models K_i.

    ``t = sum_l (u_li - m_i) / (s_i sqrt(K_i (1 + K_i h_i / n_i)))``: m_i, s_i and n_i are of past models, the second
    root takes in that what is expected was learnt from so many. s_i too rests on n_i models, so that t has Student's
    distribution with n_i - 1 degrees of freedom; z is the normal deviate that is as rare.
    """
    n_models = np.sum(~np.isnan(deviation), axis=0)
    error = past.spread * np.sqrt(n_models * (1.0 + leverage * n_models / np.maximum(past.n_models, 1)))
    is_known = (n_models >= LEAST_MODELS) & ~np.isnan(past.spread)
    total = np.nansum(deviation - past.mean, axis=0)
    t = np.divide(total, error, out=np.full(n_models.shape, np.nan), where=is_known)
    tail = np.maximum(stdtr(np.maximum(past.n_models - 1, 1), -np.abs(t)), SMALLEST_TAIL)
    return -np.sign(t) * ndtri(tail), n_models


def leverages(
    factors: FloatArray,  # (n_models, n_factors): Expected ones of new models
    observed: BoolArray,  # (n_models, n_items): What they answered
) -> FloatArray:
    """How much less is known of what new models answer than of past ones: ``1 + |f|^2``, (n_items,).

    As for any regression line: its slope, learnt from n models with factors of mean 0 and variance 1, is off by
    ``s / sqrt(n)``, and models whose mean factor is f find f times that in every item.
    """
    n_models = np.maximum(observed.sum(axis=0), 1)
    means = observed.T.astype(np.float64) @ factors / n_models[:, None]
    result: FloatArray = 1.0 + np.sum(means**2, axis=1)
    return result


def marked_by_chance(
    past_difference: FloatArray,  # (n_past, n_items): Residuals as they are, and in standard deviations
    past_deviation: FloatArray,  # (n_past, n_items)
    observed: BoolArray,  # (n_models, n_items): What the new models answered
    past: PastResiduals,
    *,
    n_draws: int,
) -> float:
    """Items beyond the bound where past models, drawn by chance, answer what the new ones did: a mean over draws."""
    rng = np.random.default_rng(0)
    n_drawn = min(observed.shape[0], past_deviation.shape[0])
    counts = []
    for _ in range(n_draws):
        rows = rng.choice(past_deviation.shape[0], n_drawn, replace=False)
        difference, deviation = (
            np.where(observed[:n_drawn], one[rows], np.nan) for one in (past_difference, past_deviation)
        )
        z, _ = standardised_sums(deviation, past, np.ones(deviation.shape[1]))
        counts.append(np.sum(_counted_z(z, difference) > LARGEST_Z))
    return float(np.mean(counts))


def _counted_z(z: FloatArray, difference: FloatArray) -> FloatArray:
    """Size of the z of each item; 0 where it is not known, or one odd answer may have made it, (n_items,)."""
    is_counted = ~np.isnan(z) & (np.abs(np.nansum(difference, axis=0)) >= LEAST_ANSWERS)
    return np.where(is_counted, np.abs(z), 0.0)


def _residuals(
    model: FactorModel, items: IntArray, answers: FloatArray, is_marked: BoolArray, posterior: FactorPosterior
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Columns, residuals given the other answers to items that are not marked, and their variances.

    First of the items that are not marked, then of those that are; `posterior` is that of the factors by the former.
    """
    linked, marked = np.flatnonzero(~is_marked), np.flatnonzero(is_marked)
    if linked.size:
        yield linked, *item_residuals(model, items[linked], answers[:, linked])
    if marked.size:
        loadings = model.loadings[items[marked]]
        residual = answers[:, marked] - model.mean[items[marked]] - posterior.mean @ loadings.T
        spread = np.einsum("iq,iq->i", loadings @ posterior.covariance, loadings)
        yield marked, residual, spread + model.noise[items[marked]]
