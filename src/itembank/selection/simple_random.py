"""Simple random sampling of the items of a scenario."""

import numpy as np

from itembank.selection.pools import Choice, ScenarioPool


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
