"""How far models do otherwise on some items than their answers to other items say: on the bank's own models."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.living.ability_nodes import ability_nodes
from itembank.living.linking_answers import binary, trials_of
from itembank.numerics.arrays import FloatArray

N_SPLITS = 4
"""Draws of items that the error is measured on."""


def predicted_means(
    old: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    new: ItemParameters,
    n_trials: FloatArray | None,
) -> FloatArray:
    """Mean of new items' curves over each model's posterior of ability, (n_models,).

    Parameters
    ----------
    old, new : ItemParameters
    responses : (n_models, n_old)
        To the old items, NaN where missing.
    prior : AbilityPrior
    n_trials : (n_models, n_old) or None
    """
    nodes = ability_nodes(old, responses, prior, n_trials=n_trials)
    result = np.zeros(len(responses))
    for point in range(nodes.theta.shape[1]):
        result += nodes.weights[:, point] * probability(new, nodes.theta[:, point]).mean(axis=1)
    return result


def prediction_error(bank: Bank, n_answered: int, n_new: int, rng: np.random.Generator) -> float:
    """Root mean square error of the predicted mean of n_new items from n_answered others, both drawn at random.

    Over the bank's models. What one ability does not explain is in it, and so is the chance in n_new answers. Half of
    the items at least are left to predict, however many were answered.
    """
    items, prior = bank.parameters, bank.calibration.prior
    values = binary(bank, bank.responses.responses, bank.responses.items["scenario"].to_list())
    trials = trials_of(bank, bank.responses)
    errors = []
    for _ in range(N_SPLITS):
        order = rng.permutation(bank.n_items)
        shown, hidden = np.split(order, [min(n_answered, bank.n_items // 2)])
        hidden = hidden[:n_new]
        present = ~np.isnan(values[:, hidden])
        rows = np.flatnonzero(present.all(axis=1))
        counts = None if trials is None else trials[np.ix_(rows, shown)]
        found = predicted_means(items.take(shown), values[np.ix_(rows, shown)], prior, items.take(hidden), counts)
        errors.append(found - values[np.ix_(rows, hidden)].mean(axis=1))
    known = np.concatenate(errors)
    return float(np.sqrt(np.mean(known**2))) if known.size else 0.0
