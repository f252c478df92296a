"""Mean win rates of uncertain scenario scores, in closed form."""

import numpy as np
from scipy.special import ndtr

from itembank.numerics.arrays import FloatArray, IntArray

CELLS_AT_ONCE = 2**22
"""Models are worked on in blocks of about this many (model, reference) cells, to bound memory."""
EXACT = 1e-9
"""A smaller error of a scenario score is none: sums of the same responses differ by less."""


def expected_win_rates(
    scenario_scores: FloatArray, sizes: FloatArray, reference_scores: FloatArray, own: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the mean win rate of models whose scenario scores are known up to an error, (n_models,).

    With scores ``X_j ~ N(x_j, s_j^2)``, independent between scenarios, and references ``r_1 <= ... <= r_n``, the rate
    of scenario j is ``F_j = (1/n) sum_k [X_j > r_k]``, so that with ``P_k = Phi((x_j - r_k) / s_j)``

    ``E[F_j] = (1/n) sum_k P_k`` and ``E[F_j^2] = (1/n^2) sum_k (2k - 1) P_k``,

    for the indicators are nested: the square of a sum of k of them is the sum of the first k odd numbers.

    Parameters
    ----------
    scenario_scores, sizes : (n_models, n_scenarios)
        x and s.
    reference_scores : (n_reference, n_scenarios)
        Rows of NaN are no references.
    own : (n_models,)
        Row of each model among the references, against which it is not ranked; -1 for none.
    """
    n_models, n_scenarios = scenario_scores.shape
    moments = np.zeros((2, n_models))
    is_reference = np.asarray(~np.isnan(reference_scores).any(axis=1))
    for j in range(n_scenarios):
        order = np.argsort(reference_scores[:, j], kind="stable")
        order = order[is_reference[order]]
        for block in range(0, n_models, n_block := max(1, CELLS_AT_ONCE // max(order.size, 1))):
            rows = slice(block, block + n_block)
            counts = order != own[rows, None]
            distance = scenario_scores[rows, j, None] - reference_scores[order, j]
            below = counts * ndtr(distance / np.maximum(sizes[rows, j, None], EXACT))
            n = counts.sum(axis=1)
            mean = below.sum(axis=1) / n
            square = ((2.0 * np.cumsum(counts, axis=1) - 1.0) * below).sum(axis=1) / n**2
            moments[:, rows] += mean / n_scenarios, np.maximum(square - mean**2, 0.0) / n_scenarios**2
    return moments[0], moments[1]
