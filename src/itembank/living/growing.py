"""The verb `add_items`: new items join a bank, on its scale."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.run_conditions import told_conditions
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_history import ACTIVE, Link
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.bank.marks import ADDED, with_batch, with_ways
from itembank.calibration.degenerate import find_degenerate
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, shown
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.living.descendants import Operation, descendant, history_of
from itembank.living.link_items import LinkedItems, LinkMethod, link
from itembank.living.linking_answers import binary, trials_of
from itembank.living.merging import joined_parameters, overlaid
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.progress import ProgressCallback, silent
from itembank.responses.prompts import with_prompts
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


def add_items(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    method: LinkMethod = "fixed",
    status: str = ACTIVE,
    how: str | None = None,
    note: str = "",
    progress: ProgressCallback = silent,
) -> Bank:
    """Add items to a bank, on its scale, with the models that answered them.

    The new items are linked by `link_items`; the old ones keep their parameters to the last bit. The score then is
    one of old and new items, with an id of its own; the score before stays known (`with_target`).

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        As for `link_items`.
    method : {'fixed', 'stocking-lord'}
        As for `link_items`.
    status : {'active', 'suspect', 'field-test'}
        'field-test' items do not count in the score yet, which stays the one it was.
    how : {'complete', 'random', 'fixed', 'adaptive'}, optional
        As for `add_models`.
    note : str
        Kept in the history.
    progress : ProgressCallback

    Returns
    -------
    Bank
        The next version; its history states the link with the linking error.

    Raises
    ------
    DataError, ParameterError
        As `link_items`; for another status.

    Examples
    --------
    >>> grown = add_items(bank, responses, note="questions of May")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    whole = whole_bank(bank)
    given = as_new_responses(bank, responses)
    linked = link(whole, given, method=method, progress=progress)
    given = given.take(models=given.model_indices(linked.model_ids))
    part = _part(bank, whole, with_ways(given, whole.n_items + len(linked.item_ids), how), linked)
    asked = growth("add-items", note, given, how=how, method=method, status=status)
    items = part.responses.items.filter(part.responses.items["item_id"].is_in(list(linked.item_ids)))
    both = bank.responses.items.select("item_id", "scenario", "subscenario").extend(
        items.select("item_id", "scenario", "subscenario")
    )
    across = bank.targets.across
    weights = ScoreTargets.create(both, within="micro", across=across).overall_weights
    of_new = float(weights[bank.n_items :].sum())
    line = linked.other if linked.method == "stocking-lord" else None
    operation = replace(
        asked,
        link=(
            Link(
                method=linked.method,
                n_models=linked.n_models,
                n_items=int((~linked.anchors.is_unlinked).sum()),
                slope=None if line is None else line.slope,
                intercept=None if line is None else line.intercept,
                linking_error=linked.linking_error * of_new,
            )
        ),
    )
    statuses = {} if status == ACTIVE else dict.fromkeys(linked.item_ids, status)
    return descendant(bank, overlaid(whole, part), operation, statuses=statuses)


def _part(bank: Bank, whole: Bank, given: ResponseMatrix, linked: LinkedItems) -> Bank:
    """Make the bank of the linking models and all items that they answered, in the order old, new."""
    known = set(whole.item_ids)
    old = [name for name in given.item_ids if name in known]
    places = whole.responses.item_indices(old)
    order = given.item_indices([*old, *linked.item_ids])
    given = given.take(items=order)
    is_new = np.arange(given.n_items) >= len(old)
    parameters = joined_parameters(whole.parameters.take(places), linked.parameters)
    alike = find_degenerate(given.responses) & is_new
    alike[~is_new] = whole.calibration.is_degenerate[places]
    covariance = np.concatenate([whole.calibration.item_covariance[places], linked.item_covariance])
    given = with_batch(marked_as_added(bank, given), is_new, history_of(bank).version, linked.linking_error)
    return grown_part(whole, given, parameters, covariance, is_degenerate=alike)


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
    places = whole.responses.item_indices(given.item_ids)
    part = grown_part(
        whole,
        _with_items_of(whole, marked_as_added(bank, given), places),
        whole.parameters.take(places),
        whole.calibration.item_covariance[places],
        is_degenerate=whole.calibration.is_degenerate[places],
    )
    return descendant(bank, overlaid(whole, part), growth("add-models", note, given, how=how))


def _with_items_of(whole: Bank, given: ResponseMatrix, places: np.ndarray) -> ResponseMatrix:
    """Return the responses with what the bank knows of their items."""
    items = whole.responses.items[places]
    return given.with_tables(items=with_prompts(items, [items, given.items]))


def grown_part(
    bank: Bank,
    responses: ResponseMatrix,
    parameters: ItemParameters,
    item_covariance: FloatArray,
    *,
    is_degenerate: BoolArray,
) -> Bank:
    """Make the bank of some responses: parameters are given, abilities found from all of them."""
    values = binary(bank, responses.responses, responses.items["scenario"].to_list())
    found = map_abilities(parameters, values, bank.calibration.prior, n_trials=trials_of(bank, responses))
    calibration = replace(
        bank.calibration,
        parameters=parameters,
        item_covariance=item_covariance,
        abilities=found.theta,
        ability_covariance=found.covariance,
        is_degenerate=is_degenerate,
    )
    targets = ScoreTargets.create(responses.items, within=bank.targets.within, across=bank.targets.across)
    known = dict(zip(bank.targets.scenarios, bank.item_model_bias.tolist(), strict=True))
    others = bank.item_model_bias[~np.isnan(bank.item_model_bias)]
    typical = float(others.mean()) if others.size else float("nan")
    return replace(
        bank,
        responses=responses,
        calibration=calibration,
        targets=targets,
        item_model_bias=np.array([known.get(name, typical) for name in targets.scenarios]),
        response_variance=response_variance(responses, targets),
        history=None,
        whole=None,
    )


def growth(name: str, note: str, given: ResponseMatrix, *, how: str | None, **asked: Any) -> Operation:
    """Write down what was added: what was asked for, and which prompts, versions and harnesses the results tell."""
    arguments = {**asked, **({} if how is None else {"how": how})}
    conditions = told_conditions(given)
    return Operation(name, note.strip(), {**arguments, "run_with": conditions} if conditions else arguments)


def marked_as_added(bank: Bank, responses: ResponseMatrix) -> ResponseMatrix:
    """Say in the model table that no parameter of the bank rests on these models' answers."""
    models = responses.models.with_columns(pl.lit(history_of(bank).version).alias(ADDED))
    return responses.with_tables(models=models)
