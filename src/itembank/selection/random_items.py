"""Items drawn by chance, from scenarios or their strata, and how many each of these gets."""

import numpy as np
import polars as pl

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import first_of_each
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.selector_specs import Allocation, Random, Stratified


def at_random(pools: ItemPools, spec: Random) -> list[Choice]:  # noqa: ARG001 (the signature of all)
    """Draw items uniformly within each scenario."""
    return pools.each(lambda pool, n_items: choose_random(pool, n_items, pools.rng))


def from_strata(pools: ItemPools, spec: Stratified) -> list[Choice]:
    """Draw items within each scenario so that every subscenario is represented."""
    groups = pools.bank.responses.items.select(
        group=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense")
    )
    strata = groups["group"].to_numpy().astype(np.int64)
    return pools.each(
        lambda pool, n_items: choose_stratified(
            pool, strata[pool.items], n_items, pools.rng, allocation=spec.allocation
        )
    )


def choose_random(pool: ScenarioPool, n_items: int, rng: np.random.Generator) -> Choice:
    """Draw candidates uniformly without replacement.

    Every item has the same chance of being drawn, so the sample estimates ``sum_i omega_i Y_i`` by its
    own omega-weighted mean (the ratio estimator of Hajek 1971): the weights are the target's, rescaled to
    sum to one. With equal target weights they are ``1 / n``. A plain mean would estimate the micro score
    where the target is macro.
    """
    candidates = np.flatnonzero(pool.is_candidate)
    chosen = rng.choice(candidates, size=n_items, replace=False)
    weights = pool.weights[chosen]
    return Choice(chosen, weights / weights.sum(), np.full(n_items, n_items / candidates.shape[0]))


def choose_stratified(
    pool: ScenarioPool,
    strata: IntArray,  # (n_pool,): Stratum of each item, by any numbers
    n_items: int,
    rng: np.random.Generator,
    *,
    allocation: Allocation = "equal",  # As in `Stratified`
) -> Choice:
    """Draw a fixed number of candidates from each stratum, uniformly within it.

    With the expected count ``c_k`` of stratum k and its ``N_k`` candidates, an item is drawn with
    probability ``c_k / N_k``, so its weight is ``omega_i N_k / c_k``, rescaled to sum to one (Hajek 1971).
    For a macro target that is tinyBenchmarks's ``1 / n``, also where a random remainder makes the counts differ by one;
    where a stratum is too small, or equal counts meet a micro target, the weights make up for it.
    """
    candidates = np.flatnonzero(pool.is_candidate)
    _, stratum = np.unique(strata[candidates], return_inverse=True)  # strata without a candidate drop out
    sizes = np.bincount(stratum)
    proportions: FloatArray = np.ones(sizes.shape[0])
    if allocation == "proportional":
        proportions = np.bincount(stratum, weights=pool.weights[candidates]).astype(np.float64)
    expected = expected_counts(n_items, proportions, sizes)
    counts = random_counts(expected, rng)
    selected = first_of_each(rng.permutation(stratum.shape[0]), stratum, counts)
    # expected counts, not the rounded ones: probabilities are over the random rounding as well
    probabilities = (expected / sizes)[stratum[selected]]
    weights = pool.weights[candidates[selected]] / probabilities
    # a stratum that is taken whole may come out at a probability a little above one
    return Choice(candidates[selected], weights / weights.sum(), np.minimum(probabilities, 1.0))


def expected_counts(
    n_items: float,  # At most the sum of the capacities
    shares: FloatArray,  # (n_parts,): Positive
    capacities: IntArray,  # (n_parts,)
) -> FloatArray:
    """Divide `n_items` in proportion to `shares`, no part above its capacity, as real numbers, (n_parts,).

    ``c_k = min(capacity_k, t share_k)`` with the one ``t`` that makes the sum `n_items`: parts that are too
    small give what they cannot take to the others.

    Expected counts, summing to `n_items`; a part that is full has exactly its capacity.
    """
    # Each part that t would overfill is set to its capacity, and t is solved again for the others. Filling a part
    # only raises t for the others, so that a full part stays full and the loop ends after at most n_parts rounds.
    counts = np.zeros(shares.shape[0])
    is_full = capacities == 0
    while not is_full.all():  # each round fills at least one more part, or ends
        left = n_items - capacities[is_full].sum()
        counts = np.where(is_full, capacities, left * shares / shares[~is_full].sum())
        newly_full = ~is_full & (counts >= capacities)
        if not newly_full.any():
            break
        is_full |= newly_full
        counts = np.where(is_full, capacities, counts)
    return counts.astype(np.float64)


def rounded_counts(expected: FloatArray, capacities: IntArray) -> IntArray:
    """Round expected counts to integers of the same sum: the remainder goes to the largest parts first."""
    counts: IntArray = np.floor(expected).astype(np.int64)
    remainder = round(float(expected.sum())) - int(counts.sum())
    # rounded to six digits: fractions that are equal in exact arithmetic must tie, and a count a little below a whole
    # one comes first
    # by fraction, then by size: with equal shares all fractions agree and the larger part gets one more
    fraction = np.round(expected - counts, 6)
    order = np.lexsort((-capacities, -fraction))
    counts[order[:remainder]] += 1
    return counts


def equal_counts(
    n_items: int,  # From the sum of `at_least` to that of the capacities
    capacities: IntArray,  # (n_parts,)
    at_least: IntArray,  # (n_parts,)
) -> IntArray:
    """Divide `n_items` equally among parts, none above its capacity or below its least number, as integers."""
    # A part that would get too few is set to its least number, and the others share the rest: their counts only fall.
    is_set = np.zeros(capacities.shape[0], dtype=bool)
    while True:
        counts, others = at_least.copy(), capacities[~is_set]
        expected = expected_counts(n_items - int(at_least[is_set].sum()), np.ones(others.shape[0]), others)
        counts[~is_set] = rounded_counts(expected, others)
        if np.all(counts >= at_least):
            return counts
        is_set |= counts < at_least


def random_counts(expected: FloatArray, rng: np.random.Generator) -> IntArray:
    """Round expected counts to integers of the same sum by chance, with exactly these expectations.

    Systematic sampling over the parts in random order: every count is the expected one rounded up or down.
    """
    total = round(float(expected.sum()))
    # 1e-9: a count that is whole in exact arithmetic may come out a little below it, and could lose one
    floors = np.floor(expected + 1e-9)
    fractions = np.clip(expected - floors, 0.0, 1.0)
    order = rng.permutation(expected.shape[0])
    cumulative = np.cumsum(fractions[order])
    cumulative[-1] = total - floors.sum()  # exactly an integer, whatever the rounding of the sum
    # one random start r for all parts: part k gets one more where floor(cumulative_k + r) steps up, which happens with
    # probability fraction_k; independent draws would have the same expectations but not the same sum
    marks = np.floor(np.minimum(cumulative, cumulative[-1]) + rng.random())
    counts: IntArray = floors.astype(np.int64)
    counts[order] += np.diff(marks, prepend=0.0).astype(np.int64)
    return counts
