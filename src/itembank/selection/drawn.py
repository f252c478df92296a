"""Items drawn at random with known probabilities, high where a bank is unsure: a draw is fair whatever a model is.

An item comes in proportion to what it weighs in the overall score times how far its answer may be from what the bank
predicts. That spends a sample best (Sarndal, Swensson and Wretman 1992, section 12.2: probabilities proportional to
the standard deviation of residuals), and costs nothing where the bank is wrong but width.
"""

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.norms import fitted_factor_model
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.responses.siblings import order_by_answers
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.random_items import expected_counts
from itembank.selection.selector_specs import Drawn


def choose_drawn(pools: ItemPools, spec: Drawn) -> list[Choice]:
    """Draw items of the whole benchmark, spread over scenarios and over difficulty."""
    scenarios = pools.scenarios
    items = np.concatenate([pool.items for pool in scenarios])
    group = np.repeat(np.arange(len(scenarios)), [pool.items.size for pool in scenarios])
    is_candidate = np.concatenate([pool.is_candidate for pool in scenarios])
    must_come = np.isin(items, np.concatenate([pool.items[pool.included] for pool in scenarios]))
    shares, mean = shares_of_draw(pools.bank, spec)[items], expected_answers(pools.bank)[0]
    counts = pools.counts if pools.is_per_scenario else None
    probabilities = inclusion_probabilities(
        np.where(is_candidate, shares, 0.0), group, pools.n_items, certain=must_come, counts=counts
    )
    # an item that counts and cannot come, beside items that must: no probability says how the sample was drawn
    is_known = bool(np.all(probabilities[shares > 0.0] > 0.0))
    # scenarios in any order, each from easy to hard or back: the more samples are possible, the better is the variance
    # known. Of equals the first by what past models answered
    place, direction = pools.rng.permutation(len(scenarios)), pools.rng.choice([-1.0, 1.0], len(scenarios))
    order = np.lexsort((direction[group] * rounded(mean[items]), place[group]))
    chosen = systematic_sample(probabilities, order, pools.rng)
    starts = np.cumsum([0, *(pool.items.size for pool in scenarios)])
    result = []
    for pool, start, end in zip(scenarios, starts[:-1], starts[1:], strict=True):
        ours = chosen[(chosen >= start) & (chosen < end)]
        expanded = pool.weights[ours - start] / probabilities[ours]  # (Hajek 1971)
        total = max(float(expanded.sum()), np.finfo(float).tiny)
        result.append(Choice(ours - start, expanded / total, probabilities[ours] if is_known else None))
    return result


def shares_of_draw(bank: Bank, spec: Drawn) -> FloatArray:
    """Return what probabilities are in proportion to, (n_items,), summing to one; 0 of items that do not count."""
    weights = bank.targets.overall_weights
    aimed = weights * expected_answers(bank)[1]
    result: FloatArray = spec.flat * weights / weights.sum() + (1.0 - spec.flat) * aimed / aimed.sum()
    return result


def expected_answers(bank: Bank) -> tuple[FloatArray, FloatArray]:
    """Mean answer to each item, and how far an answer may be from what is predicted, both (n_items,).

    The latter's square is the mean of two variances: what the factors leave of past models' answers, and that of a
    right or wrong answer of weak, of strong and of all models, by which an item that past models hardly differ in keeps
    a chance to come. Without past models' answers, or with few, the item model says both.
    """
    if bank.calibration.is_fitted and bank.n_models >= 3:
        right = _right_of_thirds(bank)
        mean, residual = fitted_factor_model(bank).mean, fitted_factor_model(bank).noise
    else:
        prior = bank.calibration.prior
        along = np.linalg.cholesky(prior.covariance).sum(axis=1) / np.sqrt(prior.mean.size)
        right = probability(bank.parameters, prior.mean + np.outer([-1.5, 1.5, 0.0], along))
        mean, residual = right[-1], right[-1] * (1.0 - right[-1])
    spread = np.mean(right * (1.0 - right), axis=0)
    return mean, np.sqrt((residual + spread) / 2.0)


def _right_of_thirds(bank: Bank) -> FloatArray:
    """Mean answers of the weakest third of past models, of the strongest and of all, (3, n_items).

    With one right and one wrong answer added, so that an item that all of them solved, or none, keeps some variance.
    """
    order = order_by_answers(bank.responses, np.arange(bank.n_models), bank.content_order)
    n_each, belongs = bank.n_models // 3, np.ones((3, bank.n_models))
    belongs[0, order[n_each:]] = belongs[1, order[:-n_each]] = 0.0
    total, n_answers, first = np.ones((3, bank.n_items)), np.full((3, bank.n_items), 2.0), 0
    for part in bank.responses.parts():
        rows, known = slice(first, first + part.n_models), part.observed
        total += belongs[:, rows] @ np.where(known, part.responses, 0.0)
        n_answers += belongs[:, rows] @ known.astype(np.float64)
        first += part.n_models
    result: FloatArray = total / n_answers
    return result


def inclusion_probabilities(
    shares: FloatArray,  # (n_items,): What probabilities are in proportion to; 0 where an item may not come
    group: IntArray,  # (n_items,): Scenario of each item
    n_items: int,  # To draw in all, those that are certain among them
    *,
    certain: BoolArray,  # (n_items,): Items that must come
    counts: IntArray | None = None,  # (n_groups,): Items to draw from each scenario; else as the shares are
) -> FloatArray:
    """Probability of each item to be drawn, (n_items,), in proportion to its share, at most one.

    They sum to `n_items`, and in each scenario to one at least, where there are so many items to draw: then
    `systematic_sample` draws one.
    """
    n_groups = int(group.max()) + 1
    is_free = ~certain & (shares > 0.0)
    capacity, n_certain = (np.bincount(group[one], minlength=n_groups) for one in (is_free, certain))
    if counts is None:
        total = np.bincount(group, weights=shares * is_free, minlength=n_groups).astype(np.float64)
        left = n_items - int(certain.sum())
        least = ((capacity > 0) & (n_certain == 0)).astype(np.float64)
        least *= least.sum() <= left
        expected = np.zeros(n_groups)
        is_least = np.zeros(n_groups, dtype=bool)
        while True:  # a scenario that would get less than one gets one, and the others share the rest
            others = ~is_least & (capacity > 0)
            expected[others] = expected_counts(float(left - least[is_least].sum()), total[others], capacity[others])
            expected[is_least] = least[is_least]
            below = others & (expected < least)
            if not below.any():
                break
            is_least |= below
    else:
        expected = (counts - n_certain).astype(np.float64)
    result = certain.astype(np.float64)
    for scenario in np.flatnonzero(expected > 0.0).tolist():
        ours = np.flatnonzero(is_free & (group == scenario))
        result[ours] = expected_counts(expected[scenario], shares[ours], np.ones(ours.size, dtype=np.int64))
    return np.minimum(result, 1.0)


def systematic_sample(probabilities: FloatArray, order: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw items with these probabilities, (n_drawn,): positions, rising.

    Along the order, each step of one in the sum of probabilities draws one item (Madow 1949): neighbours hardly come
    together, so that a sample is balanced over what the order follows.
    """
    certain = order[probabilities[order] >= 1.0 - 1e-9]
    order = order[(probabilities[order] > 0.0) & (probabilities[order] < 1.0 - 1e-9)]
    along = np.cumsum(probabilities[order])
    n_drawn = round(float(along[-1])) if along.size else 0
    if n_drawn == 0:
        return np.sort(certain)
    marks = rng.random() + np.arange(n_drawn)
    along *= n_drawn / along[-1]
    drawn = order[np.minimum(np.searchsorted(along, marks, side="right"), along.size - 1)]
    return np.sort(np.concatenate([certain, drawn]))
