"""The verb `add_items`: new items join a bank, on its scale."""

from dataclasses import replace

import numpy as np

from itembank.bank.answered_how import with_ways
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_history import ACTIVE, Link
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.bank.linked_batches import with_batch
from itembank.irt.parameters import ItemParameters
from itembank.living.descendants import descendant, history_of
from itembank.living.grown_parts import answered_alike, grown_part, growth, marked_as_added
from itembank.living.link_items import link
from itembank.living.linked_items import LinkedItems, LinkMethod
from itembank.living.merging import overlaid
from itembank.progress import ProgressCallback, silent
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
    operation = replace(asked, link=_link(bank, part, linked))
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
    a, b = whole.parameters.take(places), linked.parameters
    parameters = ItemParameters.create(
        np.concatenate([a.loadings, b.loadings]),
        np.concatenate([a.intercept, b.intercept]),
        np.concatenate([a.lower_asymptote, b.lower_asymptote]),
        np.concatenate([a.upper_asymptote, b.upper_asymptote]),
        family=a.family,
    )
    alike = answered_alike(given) & is_new
    alike[~is_new] = whole.calibration.is_degenerate[places]
    covariance = np.concatenate([whole.calibration.item_covariance[places], linked.item_covariance])
    given = with_batch(marked_as_added(bank, given), is_new, history_of(bank).version, linked.linking_error)
    return grown_part(whole, given, parameters, covariance, is_degenerate=alike)


def _link(bank: Bank, part: Bank, linked: LinkedItems) -> Link:
    """Write down the link, with its error as the part of the new score that it touches."""
    items = part.responses.items.filter(part.responses.items["item_id"].is_in(list(linked.item_ids)))
    both = bank.responses.items.select("item_id", "scenario", "subscenario").extend(
        items.select("item_id", "scenario", "subscenario")
    )
    across = bank.targets.across
    weights = ScoreTargets.create(both, within="micro", across=across).overall_weights
    of_new = float(weights[bank.n_items :].sum())
    line = linked.other if linked.method == "stocking-lord" else None
    return Link(
        method=linked.method,
        n_models=linked.n_models,
        n_items=int((~linked.anchors.is_unlinked).sum()),
        slope=None if line is None else line.slope,
        intercept=None if line is None else line.intercept,
        linking_error=linked.linking_error * of_new,
    )
