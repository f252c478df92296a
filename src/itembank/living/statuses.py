"""The verbs `retire` and `restore`: items that count in the score no more, and count again."""

from collections.abc import Sequence

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_history import ACTIVE, RETIRED, STATUSES
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.errors import ParameterError, shown
from itembank.living.descendants import Operation, descendant, history_of


def retire(bank: GivenBank, item_ids: Sequence[str], *, reason: str, status: str = RETIRED, label: str = "") -> Bank:
    """Take items out of a bank's score; their parameters and responses stay, so that `restore` is exact.

    Retired items are not chosen and count in no score from here on: the score is another one, with an id of its own.
    The score before stays known: `with_target(bank, "mmlu_pro@1")` gives it.

    Parameters
    ----------
    bank : Bank or path
    item_ids : sequence of item ids
    reason : str
        Kept in the history.
    status : {'retired', 'suspect', 'field-test'}
        'suspect' items still count and may be chosen: a mark for whoever examines them. 'field-test' items count in
        no score, like retired ones.
    label : str
        Ends the id of the new target: ``mmlu_pro@1-clean`` instead of ``mmlu_pro@2``.

    Raises
    ------
    DataError
        When an item is not in the bank, or the bank was published without responses.
    ParameterError
        When the items have that status already, or no item would be left.

    Examples
    --------
    >>> clean = retire(bank, ["law/17"], reason="wrong key", label="clean")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    if status not in STATUSES or status == ACTIVE:
        raise ParameterError(
            f"status must be one of {', '.join(one for one in STATUSES if one != ACTIVE)}, got {status!r}."
        )
    return _marked(bank, item_ids, Operation("retire", reason.strip(), {"status": status, "label": label}), status)


def restore(bank: GivenBank, item_ids: Sequence[str], *, reason: str) -> Bank:
    """Let items count again that were retired, suspected or on trial.

    A bank whose retired items are all restored gives the estimates of the bank before, to the last bit.

    Parameters
    ----------
    bank : Bank or path
    item_ids : sequence of item ids
    reason : str

    Raises
    ------
    DataError, ParameterError
        As `retire`.
    """
    return _marked(as_bank(bank), item_ids, Operation("restore", reason.strip()), ACTIVE)


def _marked(bank: Bank, item_ids: Sequence[str], operation: Operation, status: str) -> Bank:
    """Give items another status."""
    bank.check_responses("Another status of items needs")
    if isinstance(item_ids, str) or not item_ids:
        raise ParameterError(f"item_ids must be a sequence of at least one item id, got {item_ids!r}.")
    if not operation.note:
        raise ParameterError("reason must say why, for those who read the bank's history; got an empty text.")
    is_now = dict(zip(whole_bank(bank).item_ids, history_of(bank).status.tolist(), strict=True))
    idle = [item for item in item_ids if is_now.get(item) == STATUSES.index(status)]
    if idle:
        raise ParameterError(
            f"items must have another status than {status!r}, got {len(idle)} that have it already: {shown(idle)}."
        )
    label = str(operation.arguments.get("label", ""))
    return descendant(bank, whole_bank(bank), operation, statuses=dict.fromkeys(item_ids, status), label=label)
