"""What the links of a bank's items add to the variance of estimates."""

import numpy as np
import polars as pl

from itembank.bank.marks import batches
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.responses.targets import ScoreTargets


def linking_variance(items: pl.DataFrame, targets: ScoreTargets, answered: BoolArray) -> FloatArray | None:
    """Variance of every scenario's score and the overall one that links add, (n_models, n_scenarios + 1).

    ``sum_b (e_b w_b)^2`` over the batches of items that were linked to the bank, with e the error of the mean score on
    a batch and w the weight in the score of those of its items that the model did not answer. None where the bank has
    no linked items.

    Parameters
    ----------
    items : table of n_items rows
        The bank's.
    targets : ScoreTargets
        Of these items.
    answered : (n_models, n_items)
    """
    found = list(batches(items))
    if not found:
        return None
    result = np.zeros((len(answered), targets.n_scenarios + 1))
    for members, error in found:
        unseen = targets.scenario_means((~answered & members).astype(np.float64))
        result += (error * targets.with_overall(unseen)) ** 2
    return result
