"""What the links of a bank's items add to the variance of estimates."""

import numpy as np

from itembank.data.banks import Bank
from itembank.data.linked_batches import batches
from itembank.estimation.observations import Observations
from itembank.numerics.arrays import FloatArray


def linking_variance(bank: Bank, observations: Observations) -> FloatArray | None:
    """Variance of every scenario's score and the overall one that links add, (n_models, n_scenarios + 1).

    ``sum_b (e_b w_b)^2`` over the batches of items that were linked to the bank, with e the error of the mean score on
    a batch and w the weight in the score of those of its items that the model did not answer. None where the bank has
    no linked items.
    """
    found = list(batches(bank.responses.items))
    if not found:
        return None
    targets = bank.targets
    answered = np.zeros((len(observations.responses), bank.n_items), dtype=bool)
    answered[:, observations.positions] = ~np.isnan(observations.responses)
    result = np.zeros((len(answered), targets.n_scenarios + 1))
    for members, error in found:
        unseen = targets.scenario_means((~answered & members).astype(np.float64))
        result += (error * targets.with_overall(unseen)) ** 2
    return result
