"""Whether what was made for one bank goes with another: selections, sessions, answers."""

from collections.abc import Sequence
from dataclasses import replace

from itembank.bank.bank_views import whole_bank, with_target
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, DataWarning, remedy, shown, warn


def check_made_for(bank: Bank, selection: Selection) -> None:
    """Warn of a selection that was made for a stranger's bank.

    One of the same score goes with every bank that estimates it, however that was calibrated, and one of an ancestor
    goes with its descendants, as long as all its items still count.

    Raises
    ------
    DataError
        When an item of the selection was retired.
    """
    aside = aside_items(bank, selection.item_ids)
    if aside:
        raise DataError(
            f"the items of a selection must count in the score of bank {bank.bank_id}, and {len(aside)} of "
            f"{selection.n_items} do not any more: {shown(aside)}. Choose again from this bank, or estimate the score "
            f"that it was made for{_in_words(selection.target)}."
        )
    is_related = selection.bank in (*bank.ids, *_ancestors(bank))
    if selection.bank and not is_related and selection.target_digest != bank.target_digest:
        warn(
            f"this selection was made for bank {selection.bank}, not {bank.bank_id}: its weights may not fit. "
            "Choose again from this bank, or estimate with the bank it was made for.",
            DataWarning,
        )


def repeatable(bank: Bank, selection: Selection) -> Selection:
    """Return a selection whose recipe this bank can follow: items that it had to leave out may have been retired."""
    recipe = selection.recipe or {}
    excluded = recipe.get("excluded")
    if not isinstance(excluded, list | tuple):  # a file may hold anything
        return selection
    aside = set(aside_items(bank, list(map(str, excluded))))
    kept = [one for one in excluded if str(one) not in aside]
    return replace(selection, recipe={**recipe, "excluded": kept}) if aside else selection


def aside_items(bank: Bank, item_ids: Sequence[str]) -> list[str]:
    """Return those of some items that the bank keeps aside: they count in its score no more."""
    if not bank.n_aside:
        return []
    aside = set(whole_bank(bank).item_ids) - set(bank.item_ids)
    return [item for item in item_ids if item in aside]


def bank_for(bank: Bank, made_for: str, target_digest: str) -> Bank | None:
    """Return the bank with which what was made for another goes on; None where neither it nor a descendant is given.

    Parameters
    ----------
    bank : Bank
        That is given: of the same id, or a descendant that can still give the score.
    made_for, target_digest : str
        Id of the bank and digest of the score that it was made for; the digest is empty where it is not known.
    """
    if bank.bank_id == made_for:
        return bank
    if not target_digest or bank.history is None or made_for not in _ancestors(bank):
        return None
    if target_digest not in {one.digest for one in bank.history.targets}:
        return None
    return with_target(bank, target_digest)


def _in_words(target: str) -> str:
    """Say how to ask for the score of a selection."""
    if not target:
        return ""
    return f": {remedy(f'with_target(bank, {target!r})', f'--target {target}')}"


def _ancestors(bank: Bank) -> tuple[str, ...]:
    return () if bank.history is None else bank.history.ancestors
