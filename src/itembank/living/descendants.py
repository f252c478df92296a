"""How a changed bank becomes a new one: its target, version, history and marks on items."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from itembank.bank.bank_history import (
    ACTIVE,
    MOST_CHANGES,
    MOST_TEXT,
    STATUSES,
    BankHistory,
    Change,
    Ids,
    Link,
    bumped,
    check_name,
    now,
    writer,
)
from itembank.bank.bank_views import view_of, whole_bank
from itembank.bank.banks import Bank
from itembank.bank.known_targets import KnownTarget
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shown
from itembank.living.changed_parts import ChangedParts
from itembank.living.new_targets import known_targets_of, measured, named, new_target, score_targets_of
from itembank.numerics.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done to a bank, as its history keeps it.

    Attributes
    ----------
    name : str
        'retire', 'add-items', ...
    note : str
        Why, in the user's words.
    arguments : mapping
        What was asked for, as JSON can hold it.
    link : Link or None
        How changed or new parameters were brought onto the old scale. Without one, changed parameters of old items
        begin another scale, and the version gets another major number.
    other_parents : tuple of str
        Ids of banks it was made from besides the one it goes on from.
    """

    name: str
    note: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    link: Link | None = None
    other_parents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no history can hold."""
        for what, text in (("a note", self.note), ("arguments", str(self.arguments))):
            if len(text) > MOST_TEXT:
                raise ParameterError(
                    f"{what} of a change must have at most {MOST_TEXT:,} characters, got {len(text):,}."
                )


def descendant(
    parent: Bank,
    whole: Bank,
    operation: Operation,
    *,
    statuses: Mapping[str, str] | None = None,
    name: str = "",
    label: str = "",
) -> Bank:
    """Make the next version of a bank.

    Parameters
    ----------
    parent : Bank
    whole : Bank
        The bank of all items (`whole_bank(parent)`) with what has changed: other models, other parameters, new items
        after the old ones, which stay in their order. Its id and history are not looked at.
    operation : Operation
    statuses : mapping of item id to status, optional
        Of items whose status changes; new items are 'active' unless it says otherwise. Items that are 'retired' or
        'field-test' are kept aside and count in no score from here on.
    name : str
        Of the benchmark; by default the parent's.
    label : str
        Ends the id of a new target: ``mmlu_pro@1-clean`` instead of ``mmlu_pro@2``.

    Returns
    -------
    Bank
        With the parent's history and one change more. The major number of its version rises where the score's items
        or weights change, or the scale of ability; the minor number for other models, new items or linked parameters;
        else the patch number. A target that the bank gave before keeps its id.

    Raises
    ------
    DataError
        When old items are missing or stand in another order, or a status is given for an unknown item.
    ParameterError
        For another status or name, or where no item would count.
    """
    before, old = history_of(parent), whole_bank(parent)
    if whole.item_ids[: old.n_items] != old.item_ids:
        raise DataError("the items of a changed bank must begin with those of its parent, in their order.")
    if len(before.changes) >= MOST_CHANGES:
        raise DataError(f"a history holds at most {MOST_CHANGES:,} changes. Calibrate the bank again.")
    if name:
        before = replace(before, name=check_name(name))
    status, since = _marks(before, whole, statuses or {})
    counted = np.flatnonzero(replace(before, status=status).counted)
    if counted.size == 0:
        raise ParameterError("a bank must keep items that count in its score, got none. Retire fewer.")
    changed = ChangedParts.of(old, whole)
    known = [measured(one, whole, is_other=changed.has_other_numbers) for one in named(before)]
    score = score_targets_of(whole, counted, known, parent.targets)
    is_new_score = score[0] != known[before.current].digest
    version = bumped(before.version, changed.part(is_new_score=is_new_score, is_linked=operation.link is not None))
    current = next((number for number, one in enumerate(known) if one.digest == score[0]), len(known))
    if label and current < len(known):
        raise ParameterError(
            f"a label is for a new score, got {label!r} where the score is {known[current].target_id!r}, which the "
            "bank gave before. Leave the label out."
        )
    if current == len(known):
        known.append(new_target(whole, counted, score, known, before, version=version, label=label))
    history = replace(before, targets=tuple(known), current=current, status=status, since=since)
    change = _change(parent, whole, operation, histories=(before, history), changed=changed, version=version)
    return view_of(replace(whole, history=None, whole=None), replace(history, changes=(*before.changes, change)))


def history_of(bank: Bank) -> BankHistory:
    """Return the history of a bank; of one that has none, the history that begins with it."""
    if bank.history is not None:
        return bank.history
    nothing = np.zeros(bank.n_items, dtype=np.int64)
    return BankHistory("", (), known_targets_of(bank), 0, nothing, nothing)


def _marks(before: BankHistory, whole: Bank, statuses: Mapping[str, str]) -> tuple[IntArray, IntArray]:
    """Return status and first change of all items."""
    wrong = sorted(set(statuses.values()) - set(STATUSES))
    if wrong:
        raise ParameterError(f"a status must be one of {', '.join(STATUSES)}, got {shown(wrong)}.")
    place = {item: position for position, item in enumerate(whole.item_ids)}
    unknown = [item for item in statuses if item not in place]
    if unknown:
        way_out = remedy("Give ids of its items", "Give ids, or files of ids that are there")
        raise DataError(
            f"every item must be in the bank, and {len(unknown)} of {len(statuses)} are not: {shown(unknown)}."
            f"{did_you_mean(unknown, place)} {way_out}."
        )
    n_new = whole.n_items - before.status.size
    status = np.concatenate([before.status, np.full(n_new, STATUSES.index(ACTIVE), dtype=np.int64)])
    for item, one in statuses.items():
        status[place[item]] = STATUSES.index(one)
    since = np.concatenate([before.since, np.full(n_new, len(before.changes) + 1, dtype=np.int64)])
    return status, since


def _change(
    parent: Bank,
    whole: Bank,
    operation: Operation,
    *,
    histories: tuple[BankHistory, BankHistory],
    changed: ChangedParts,
    version: str,
) -> Change:
    """Write down what was done."""
    before, after = histories
    ids, n_old = whole.item_ids, before.status.size
    target: KnownTarget = after.targets[after.current]
    was, counts = np.pad(before.counted, (0, len(ids) - n_old)), after.counted
    is_new = np.arange(len(ids)) >= n_old
    has_moved = np.pad((before.status != after.status[:n_old]) | changed.items, (0, len(ids) - n_old))
    added, dropped = is_new | (counts & ~was), was & ~counts
    return Change(
        operation=operation.name,
        version=version,
        bank=target.bank_id,
        target_id=target.target_id,
        parents=(parent.bank_id, *operation.other_parents),
        by=writer(),
        at=now(),
        note=operation.note,
        arguments=dict(operation.arguments),
        items_added=Ids.of([ids[k] for k in np.flatnonzero(added)]),
        items_dropped=Ids.of([ids[k] for k in np.flatnonzero(dropped)]),
        items_changed=Ids.of([ids[k] for k in np.flatnonzero(has_moved & ~added & ~dropped)]),
        models_added=Ids.of(changed.models_added),
        models_dropped=Ids.of(changed.models_dropped),
        link=operation.link,
    )
