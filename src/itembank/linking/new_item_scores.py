"""The verb `new_item_scores`: what models would score on linked items, from their answers to a bank's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from itembank.checks import check_fraction
from itembank.data.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.data.bank_views import whole_bank
from itembank.data.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.linking.ability_nodes import ability_nodes
from itembank.linking.linked_items import LinkedItems
from itembank.linking.linking_answers import binary, trials_of
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.numerics.threads import one_blas_thread
from itembank.tabular import Tabular

N_SPLITS = 4
"""Draws of items that the error of prediction is measured on."""


@dataclass(frozen=True, slots=True, repr=False)
class NewItemScores(Tabular):
    """Mean scores on linked items.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    estimate : (n_models,)
        On the scale of scores, 0 to 1.
    standard_error : (n_models,)
        With the linking error.
    low, high : (n_models,)
    level : float
    """

    model_ids: tuple[str, ...]
    estimate: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    level: float

    def rows(self) -> list[dict[str, Any]]:
        """One record a model."""
        numbers = (self.estimate, self.low, self.high, self.standard_error)
        names = ("model_id", "estimate", "low", "high", "standard_error")
        columns = (self.model_ids, *(one.tolist() for one in numbers))
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@one_blas_thread()
def new_item_scores(
    bank: GivenBank,
    linked: LinkedItems,
    responses: GivenResponses,
    *,
    level: float = 0.95,
    rng: np.random.Generator | int | None = 0,
) -> NewItemScores:
    """Predict the mean score on linked items of models that answered only the bank's.

    The estimate is the mean of the new items' curves over the posterior of the model's ability. Its error is that which
    the same prediction makes for the bank's own models, from as many of their answers to as many other items, and the
    linking error: ``sqrt(e^2 + linking_error^2)``.

    Parameters
    ----------
    bank : Bank or path
    linked : LinkedItems
        From `link_items` with this bank.
    responses : ResponseMatrix, path or paths
        Of models to some of the bank's items.
    level : float
        Of the intervals.
    rng : Generator, int or None
        Draws the items that the error is measured on.

    Examples
    --------
    >>> new_item_scores(bank, link_items(bank, linking), answers).rows()  # doctest: +SKIP
    """
    check_fraction("level", level)
    bank = whole_bank(as_bank(bank))
    given = as_new_responses(bank, responses)
    places = bank.responses.item_indices(given.item_ids)
    values = binary(bank, given.responses, given.items["scenario"].to_list())
    old, prior = bank.parameters.take(places), bank.calibration.prior
    estimate = _predicted(old, values, prior, linked.parameters, trials_of(bank, given))
    n_answered = np.sum(~np.isnan(values), axis=1)
    error_of = _errors_by_number(bank, np.unique(n_answered), linked.parameters.n_items, as_generator(rng))
    error = np.hypot([error_of[n] for n in n_answered.tolist()], linked.linking_error)

    reach = float(ndtri(0.5 + level / 2.0)) * error
    low, high = np.clip(estimate - reach, 0.0, 1.0), np.clip(estimate + reach, 0.0, 1.0)
    return NewItemScores(tuple(given.model_ids), estimate, error, low, high, level)


def _predicted(
    old: ItemParameters,
    responses: FloatArray,
    prior: AbilityPrior,
    new: ItemParameters,
    n_trials: FloatArray | None,
) -> FloatArray:
    """Mean of the new items' curves over each model's posterior of ability, (n_models,)."""
    nodes = ability_nodes(old, responses, prior, n_trials=n_trials)
    result = np.zeros(len(responses))
    for point in range(nodes.theta.shape[1]):
        result += nodes.weights[:, point] * probability(new, nodes.theta[:, point]).mean(axis=1)
    return result


def _errors_by_number(bank: Bank, numbers: np.ndarray, n_new: int, rng: np.random.Generator) -> dict[int, float]:
    """Root mean square errors of predicting n_new items from each number of others, for the bank's own models."""
    items = bank.parameters
    values = binary(bank, bank.responses.responses, bank.responses.items["scenario"].to_list())
    trials = trials_of(bank, bank.responses)
    found = {}
    for number in numbers.tolist():
        errors = []
        for _ in range(N_SPLITS):
            order = rng.permutation(bank.n_items)
            # half of the items at least are left to predict, however many were answered
            shown, hidden = np.split(order, [min(number, bank.n_items // 2)])
            hidden = hidden[:n_new]
            counts = None if trials is None else trials[:, shown]
            predicted = _predicted(
                items.take(shown), values[:, shown], bank.calibration.prior, items.take(hidden), counts
            )
            errors.append(predicted - np.nanmean(values[:, hidden], axis=1))
        found[number] = float(np.sqrt(np.nanmean(np.square(errors))))
    return found
