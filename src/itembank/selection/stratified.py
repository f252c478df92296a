"""Stratified random sampling of the items of a scenario (tinyBenchmarks 3.1)."""

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import first_of_each
from itembank.selection.allocation import expected_counts, random_counts
from itembank.selection.pools import Choice, ScenarioPool
from itembank.selection.selector_specs import Allocation


def choose_stratified(
    pool: ScenarioPool,
    strata: IntArray,
    n_items: int,
    rng: np.random.Generator,
    *,
    allocation: Allocation = "equal",
) -> Choice:
    """Draw a fixed number of candidates from each stratum, uniformly within it.

    With the expected count ``c_k`` of stratum k and its ``N_k`` candidates, an item is drawn with
    probability ``c_k / N_k``, so its weight is ``omega_i N_k / c_k``, rescaled to sum to one (Hajek 1971).
    For a macro target that is tinyBenchmarks's ``1 / n``, also where a random remainder makes the counts differ by one;
    where a stratum is too small, or equal counts meet a micro target, the weights make up for it.

    Parameters
    ----------
    pool : ScenarioPool
    strata : (n_pool,)
        Stratum of each item, numbered from 0.
    n_items : int
    rng : Generator
    allocation : {'equal', 'proportional'}
        As in `Stratified`.
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
