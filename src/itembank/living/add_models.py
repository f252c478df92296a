"""The verb `add_models`: what new models answered joins a bank, whose items keep their parameters."""

import numpy as np

from itembank.bank.answered_how import with_ways
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.errors import DataError, shown
from itembank.living.descendants import descendant
from itembank.living.grown_parts import grown_part, growth, marked_as_added
from itembank.living.merging import overlaid
from itembank.responses.prompts import with_prompts
from itembank.responses.responses import ResponseMatrix


def add_models(bank: GivenBank, responses: GivenResponses, *, how: str | None = None, note: str = "") -> Bank:
    """Add models and their answers to a bank; its items keep their parameters, its scores what they mean.

    Abilities of the new models are found on the bank's scale. What rests on the bank's models (the choice of methods,
    intervals, typicality) is learnt anew when it is next needed, from all of them.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of new models to the bank's items, complete or not.
    how : {'complete', 'random', 'fixed', 'adaptive'}, optional
        How their items were chosen, where the model table has no column `answered_how` that says it: answers exported
        from a session do. `recalibrate` learns from no model of which it is not known.
    note : str
        Kept in the history, beside the prompts, versions and harnesses that the tables of the results tell.

    Returns
    -------
    Bank
        The next version, with another minor number.

    Raises
    ------
    DataError
        When a model is in the bank already, has no answers, or answered items that are not in the bank.

    Examples
    --------
    >>> grown = add_models(bank, responses, how="random")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    bank.check_responses("Adding models needs")
    whole = whole_bank(bank)
    given = with_ways(as_new_responses(bank, responses), whole.n_items, how)
    _check(whole, given)
    places = whole.responses.item_indices(given.item_ids)
    part = grown_part(
        whole,
        _with_items_of(whole, marked_as_added(bank, given), places),
        whole.parameters.take(places),
        whole.calibration.item_covariance[places],
        is_degenerate=whole.calibration.is_degenerate[places],
    )
    return descendant(bank, overlaid(whole, part), growth("add-models", note, given, how=how))


def _check(whole: Bank, given: ResponseMatrix) -> None:
    known = set(whole.responses.model_ids)
    again = [name for name in given.model_ids if name in known]
    if again:
        raise DataError(
            f"models must be new to the bank, and {len(again)} of {given.n_models} are in it already: {shown(again)}. "
            "Leave them out, or give another run of a model an id of its own."
        )
    new = sorted(set(given.item_ids) - set(whole.item_ids))
    if new:
        raise DataError(
            f"every item must be in the bank, and {len(new)} of {given.n_items} are not: {shown(new)}. "
            "To add items to it, use add_items (itembank bank add-items)."
        )
    empty = [given.model_ids[row] for row in np.flatnonzero(~given.observed.any(axis=1))]
    if empty:
        raise DataError(f"every model must have answers, and {len(empty)} have none: {shown(empty)}. Leave them out.")


def _with_items_of(whole: Bank, given: ResponseMatrix, places: np.ndarray) -> ResponseMatrix:
    """Return the responses with what the bank knows of their items."""
    items = whole.responses.items[places]
    return given.with_tables(items=with_prompts(items, [items, given.items]))
