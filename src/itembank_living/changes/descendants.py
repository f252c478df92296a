"""How a changed bank becomes a new one: its target, version, history and marks on items."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from itembank.bank.bank_diff import is_same_prior, other_parameters, other_responses
from itembank.bank.bank_history import (
    ACTIVE,
    MOST_CHANGES,
    MOST_TEXT,
    RETIRED,
    STATUSES,
    BankHistory,
    Change,
    Ids,
    KnownTarget,
    Link,
    bumped,
    check_name,
    target_digest,
)
from itembank.bank.bank_views import history_of, known_target, view_of, whole_bank
from itembank.bank.banks import Bank, bank_fingerprint
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shown
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.responses.targets import ScoreTargets


def descendant(
    parent: Bank,
    whole: Bank,
    operation: str,
    *,
    note: str = "",
    arguments: Mapping[str, Any] | None = None,
    link: Link | None = None,
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
    operation : str
        What was done, as the history keeps it: 'retire', 'add-items', ...
    note : str
        Why, in the user's words.
    arguments : mapping
        What was asked for, as JSON can hold it.
    link : Link or None
        How changed or new parameters were brought onto the old scale. Without one, changed parameters of old items
        begin another scale, and the version gets another major number.
    statuses : mapping of item id to status, optional
        Of items whose status changes; new items are 'active' unless given here. Items that are 'retired' or
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
        When old items are missing or in another order, or a status is given for an unknown item.
    ParameterError
        For another status or name, a note or arguments too long for a history, or if no item would count.
    """
    check_told(note, arguments)
    before, old = history_of(parent), whole_bank(parent)
    ids, n_old = whole.item_ids, old.n_items
    if ids[:n_old] != old.item_ids:
        raise DataError("the items of a changed bank must begin with those of its parent, in their order.")
    if len(before.changes) >= MOST_CHANGES:
        raise DataError(f"a history holds at most {MOST_CHANGES:,} changes. Calibrate the bank again.")
    if name:
        before = replace(before, name=check_name(name))
    history = _with_marks(before, whole, statuses or {})
    counted = np.flatnonzero(history.counted)
    if counted.size == 0:
        raise ParameterError("a bank must keep items that count in its score, got none. Retire fewer.")

    same = np.arange(n_old)
    has_new_parameters = other_parameters(old, whole, same, same)
    has_changed = has_new_parameters | other_responses(old, whole, same, same)
    models, old_models = set(whole.responses.model_ids), set(old.responses.model_ids)
    has_new_scale = not is_same_prior(old, whole)
    has_other_numbers = bool(has_changed.any()) or models != old_models or has_new_scale

    known = _carried_over(before, whole, has_other_numbers=has_other_numbers)
    digest, score = _score_of(whole, counted, known, parent.targets)
    is_major = digest != known[before.current].digest
    is_major |= (bool(has_new_parameters.any()) or has_new_scale) and link is None
    is_minor = len(ids) > n_old or has_other_numbers
    version = bumped(before.version, "major" if is_major else "minor" if is_minor else "patch")
    current = next((number for number, one in enumerate(known) if one.digest == digest), len(known))
    if label and current < len(known):
        raise ParameterError(
            f"a label is for a new score, got {label!r} where the score is {known[current].target_id!r}, which the "
            "bank gave before. Leave the label out."
        )
    if current == len(known):
        new_name = _new_name(before.name, known[before.current], known, version=version, label=label)
        known.append(_new_target(whole, counted, score, known[before.current], name=new_name, digest=digest))

    was = np.pad(before.counted, (0, len(ids) - n_old))
    added, dropped = (np.arange(len(ids)) >= n_old) | (history.counted & ~was), was & ~history.counted
    has_moved = np.pad((before.status != history.status[:n_old]) | has_changed, (0, len(ids) - n_old))

    def listed(flags: BoolArray) -> Ids:
        return Ids.of([ids[place] for place in np.flatnonzero(flags)])

    change = Change(
        operation=operation,
        version=version,
        bank=known[current].bank_id,
        target_id=known[current].target_id,
        parents=(parent.bank_id,),
        by=f"itembank {importlib.metadata.version('itembank')}",
        at=now(),
        note=note,
        arguments=dict(arguments or {}),
        items_added=listed(added),
        items_dropped=listed(dropped),
        items_changed=listed(has_moved & ~added & ~dropped),
        models_added=Ids.of(list(models - old_models)),
        models_dropped=Ids.of(list(old_models - models)),
        link=link,
    )
    history = replace(history, targets=tuple(known), current=current, changes=(*before.changes, change))
    return view_of(replace(whole, history=None, whole=None), history)


def check_told(note: str, arguments: Mapping[str, Any] | None = None) -> None:
    """Refuse what no history can hold."""
    for what, text in (("a note", note), ("arguments", str(arguments or {}))):
        if len(text) > MOST_TEXT:
            raise ParameterError(f"{what} of a change must have at most {MOST_TEXT:,} characters, got {len(text):,}.")


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_retired(bank: Bank) -> BoolArray:
    """Items of the whole bank that are retired, (n_whole_items,): their keys may be wrong, or the items known."""
    result: BoolArray = history_of(bank).status == STATUSES.index(RETIRED)
    return result


def _with_marks(before: BankHistory, whole: Bank, statuses: Mapping[str, str]) -> BankHistory:
    """Return the history with the status and the first change of all items."""
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
    return replace(before, status=status, since=since)


def _carried_over(history: BankHistory, whole: Bank, *, has_other_numbers: bool) -> list[KnownTarget]:
    """Carry targets over to a changed bank, where models, answers or parameters of its items may have changed.

    Targets without a name get one where the bank has a name: that of the first version that gave them.
    """
    majors = {change.target_id: change.version.split(".")[0] for change in reversed(history.changes)}
    carried = []
    for one in history.targets:
        name = one.name or (history.name and f"{history.name}@{majors.get(one.digest, '1')}")
        weights = np.concatenate([one.weights, np.full(whole.n_items - one.weights.size, np.nan)])
        known = replace(one, name=name, weights=weights)
        if has_other_numbers:
            scenarios = whole.responses.items["scenario"].gather(known.items).to_list()
            known = _measured(known, known.score_targets(scenarios), whole)
        carried.append(known)
    return carried


def _score_of(
    whole: Bank, counted: IntArray, known: Sequence[KnownTarget], scheme: ScoreTargets
) -> tuple[str, ScoreTargets]:
    """Return the digest and the score targets of the items that count.

    Where a known target has these very items its weights stay; else they are made anew by the same rule.
    """
    items = whole.responses.items[counted]
    for one in known:
        if np.array_equal(one.items, counted):
            return one.digest, one.score_targets(items["scenario"].to_list())
    targets = ScoreTargets.create(items, within=scheme.within, across=scheme.across)
    # scenarios stay in the order of the bank before; new ones come last
    names = [name for name in scheme.scenarios if name in targets.scenarios]
    names += [name for name in targets.scenarios if name not in scheme.scenarios]
    order = np.array([targets.scenarios.index(name) for name in names])
    targets = replace(
        targets,
        scenarios=tuple(names),
        scenario_index=np.argsort(order)[targets.scenario_index],
        scenario_weights=targets.scenario_weights[order],
    )
    return target_digest(items["item_id"].to_list(), targets), targets


def _new_target(
    whole: Bank, counted: IntArray, targets: ScoreTargets, last: KnownTarget, *, name: str, digest: str
) -> KnownTarget:
    """Say what is known of a score that the bank did not give before.

    The item model's bias stays what was measured of the scenario before: few items make little difference to it.
    """
    bias = dict(zip(whole.targets.scenarios, whole.item_model_bias.tolist(), strict=True))
    bias |= dict(zip(last.scenarios, last.item_model_bias.tolist(), strict=True))
    weights = np.full(whole.n_items, np.nan)
    weights[counted] = targets.weights
    biases = np.array([bias.get(scenario, np.nan) for scenario in targets.scenarios])
    return _measured(replace(known_target(targets, digest, weights, biases), name=name), targets, whole)


def _measured(known: KnownTarget, targets: ScoreTargets, whole: Bank) -> KnownTarget:
    """Measure the variance of a target's responses, and give its bank an id."""
    prior, responses, parameters = whole.calibration.prior, whole.responses, whole.parameters
    if known.items.size < whole.n_items:
        responses, parameters = responses.take(items=known.items), parameters.take(known.items)
    variance = response_variance(responses, targets)
    numbers = (prior.mean, prior.covariance, known.item_model_bias, variance)
    bank_id = bank_fingerprint(responses, parameters, targets, *numbers)
    return replace(known, response_variance=variance, bank_id=bank_id)


def _new_name(bank: str, last: KnownTarget, known: Sequence[KnownTarget], *, version: str, label: str) -> str:
    """Name a new target: by the version's major number, or by the last target's name and a label."""
    if not bank:
        if label:
            how = remedy("note(bank, text, name=...)", "itembank bank note BANK TEXT --name NAME")
            raise ParameterError(
                f"a target is labelled after the bank's name, and this bank has none, got {label!r}. Name it: {how}."
            )
        return ""
    name = f"{bank}@{version.partition('.')[0]}"
    if label:
        of, _, rest = last.name.rpartition("@")
        name = f"{of}@{rest.partition('-')[0]}-{check_name(label)}"
    if any(one.name == name for one in known):
        raise ParameterError(f"a target's name must be new, got {name!r}, which is another one. Choose another label.")
    return name
