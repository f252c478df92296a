"""The verb `new_item_scores`: what models would score on linked items, from their answers to a bank's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_views import whole_bank
from itembank.checks import check_fraction
from itembank.living.linked_items import LinkedItems
from itembank.living.linking_answers import binary, trials_of
from itembank.living.prediction_errors import predicted_means, prediction_error
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import normal_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.tabular import Tabular


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
    estimate = predicted_means(old, values, prior, linked.parameters, trials_of(bank, given))
    generator, n_answered = as_generator(rng), np.sum(~np.isnan(values), axis=1)
    numbers, which = np.unique(n_answered, return_inverse=True)
    errors = [prediction_error(bank, n, linked.parameters.n_items, generator) for n in numbers.tolist()]
    error = np.hypot(np.array(errors)[which], linked.linking_error)

    reach = normal_reach(level) * error
    low, high = np.clip(estimate - reach, 0.0, 1.0), np.clip(estimate + reach, 0.0, 1.0)
    return NewItemScores(tuple(given.model_ids), estimate, error, low, high, level)
