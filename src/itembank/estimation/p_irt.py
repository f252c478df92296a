"""p-IRT: what was observed as it is, the rest as the item model predicts (P1 eq. 4.3)."""

from itembank.estimation.predictions import PredictedSums
from itembank.numerics.arrays import FloatArray


def p_irt(known: FloatArray, unseen: PredictedSums) -> FloatArray:
    """Return ``sum_S omega_i Y_i + sum_U omega_i p_i(theta)`` for each scenario, (n_models, n_scenarios).

    Written with the target weights omega this is P1 eq. 4.3, and its App. A where subscenarios weigh the same.
    Clipping is not needed: both sums are means of numbers in [0, 1] whose weights add up to one.
    """
    result: FloatArray = known + unseen.mean
    return result
