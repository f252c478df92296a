"""The verb `item_predictions`: predicted against observed responses to single items, of models left out."""

from collections.abc import Iterator, Mapping

import numpy as np

from itembank.auditing.past_fit import why_not_examined
from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.banks import Bank
from itembank.errors import DataError
from itembank.estimation.folds import Fold, folds
from itembank.estimation.model_abilities import answered_responses, estimate_abilities
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import IntArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.studies.papers.item_predictions_results import Cells, ItemPredictions, ScenarioPredictions

N_PARTS = 2
"""Parts of the items: the ability that predicts the responses to one comes from the others."""

ALL_ITEMS = "all items"
"""Stands in the place of a scenario's name for all of them together."""


@one_blas_thread()
def item_predictions(
    bank: GivenBank,
    *,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> ItemPredictions:
    """Compare the probability that the item model gives every response with the response, for models left out.

    The items are calibrated anew without each fold of the models (`estimation.folds`). The ability of a model left out
    comes from a random half of the items and predicts its responses to the other half, and the other way round. No
    response has a part in its own prediction. (IRSL's Figures 4, 9, 16 and 24 take the ability from all items; on sets
    of a hundred items and more that changes the third digit of a correlation.)

    Parameters
    ----------
    bank : Bank or path
        With its responses, of at least ten models.
    rng : Generator, int or None
        Draws the halves.
    progress : ProgressCallback

    Returns
    -------
    ItemPredictions
        A part for each scenario, and one for all items where there are several.

    Raises
    ------
    DataError
        When models cannot be left out.

    Examples
    --------
    >>> item_predictions("bank").rows()  # doctest: +SKIP
    """
    bank = as_bank(bank)
    reason = why_not_examined(bank, progress)
    if reason:
        raise DataError(
            f"predictions are compared with responses of models that a fit has not seen: {reason}. Take a bank of more "
            "models, with their responses."
        )
    part = as_generator(rng).permutation(bank.n_items) % N_PARTS
    found = [cells for fold in folds(bank, progress=progress) for cells in _of_fold(bank, fold, part)]
    cells = Cells(*(np.concatenate(column) for column in zip(*found, strict=True)))
    scenario = bank.targets.scenario_index[cells.item]
    parts = {
        name: Cells(*(column[scenario == number] for column in cells))
        for number, name in enumerate(bank.targets.scenarios)
        if np.any(scenario == number)
    }
    return ItemPredictions(by_scenario(parts), bank.parameters.family, bank.bank_id)


def _of_fold(bank: Bank, fold: Fold, part: IntArray) -> Iterator[Cells]:
    """Predict each part of the items for the models that the fold left out."""
    responses = bank.responses.take(models=fold.held_out)
    known, past = answered_responses(fold.bank, fold.bank.responses)
    item_mean = np.full(bank.n_items, np.nan)
    item_mean[known] = mean_where_known(past)
    for number in range(N_PARTS):
        asked, others = np.flatnonzero(part == number), np.flatnonzero(part != number)
        theta = estimate_abilities(fold.bank, responses.take(items=others)).theta
        expected = probability(fold.bank.parameters.take(asked), theta)
        columns, observed = answered_responses(fold.bank, responses.take(items=asked))
        expected = expected[:, np.searchsorted(asked, columns)]
        rows, places = np.nonzero(~np.isnan(observed) & ~np.isnan(item_mean[columns]))
        yield Cells(
            expected[rows, places],
            observed[rows, places],
            item_mean[columns[places]],
            fold.held_out[rows],
            columns[places],
        )


def by_scenario(cells: Mapping[str, Cells]) -> tuple[ScenarioPredictions, ...]:
    """Summarise the cells of each scenario, then all of them where there are several scenarios."""
    parts = [ScenarioPredictions.of(name, own) for name, own in cells.items()]
    if len(parts) > 1:
        every = (np.concatenate(column) for column in zip(*cells.values(), strict=True))
        parts.append(ScenarioPredictions.of(ALL_ITEMS, Cells(*every)))
    return tuple(parts)
