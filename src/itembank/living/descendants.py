"""How a changed bank becomes a new one: its target, version, history and marks on items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from itembank.bank.bank_history import (
    ACTIVE,
    MOST_CHANGES,
    MOST_TEXT,
    STATUSES,
    BankHistory,
    Change,
    Ids,
    KnownTarget,
    Link,
    bumped,
    check_name,
    now,
    target_digest,
    writer,
)
from itembank.bank.bank_views import view_of, whole_bank
from itembank.bank.banks import Bank, bank_fingerprint
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, ParameterError, did_you_mean, remedy, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.targets import ScoreTargets


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


@dataclass(frozen=True, slots=True)
class ChangedParts:
    """What differs, for the items that the old bank has."""

    parameters: BoolArray  # (n_old_items,): Items with other parameters
    responses: BoolArray  # (n_old_items,): Items that models of both banks answered otherwise
    models_added: list[str]
    models_dropped: list[str]
    n_new_items: int
    has_new_scale: bool  # Whether the prior of ability is another

    @classmethod
    def of(cls, old: Bank, new: Bank) -> Self:
        """Compare two banks; the items of the new one begin with those of the old one."""
        old_models, new_models = old.responses.model_ids, new.responses.model_ids
        same = np.arange(old.n_items)
        return cls(
            other_parameters(old, new, same, same),
            other_responses(old, new, same, same),
            sorted(set(new_models) - set(old_models)),
            sorted(set(old_models) - set(new_models)),
            new.n_items - old.n_items,
            not is_same_prior(old, new),
        )

    @property
    def items(self) -> BoolArray:
        """Items with other parameters or answers, (n_old_items,)."""
        result: BoolArray = self.parameters | self.responses
        return result

    @property
    def has_other_numbers(self) -> bool:
        """Whether anything of the old items changed: their parameters, who answered them and how, the scale."""
        return bool(self.items.any() or self.models_added or self.models_dropped) or self.has_new_scale

    def part(self, *, is_new_score: bool, is_linked: bool) -> str:
        """Which number of the version rises: 'major', 'minor' or 'patch'."""
        has_new_parameters = bool(self.parameters.any())
        if is_new_score or ((has_new_parameters or self.has_new_scale) and not is_linked):
            return "major"
        return "minor" if self.n_new_items or self.has_other_numbers else "patch"


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


def is_same_prior(one: Bank, other: Bank) -> bool:
    """Whether two banks have the same prior of ability."""
    ours, theirs = one.calibration.prior, other.calibration.prior
    return np.array_equal(ours.mean, theirs.mean) and np.array_equal(ours.covariance, theirs.covariance)


def other_parameters(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether items of one bank have other parameters in another, (n_common,); by their positions in both."""
    a, b = _coefficients(one)[ours], _coefficients(other)[theirs]
    if a.shape != b.shape:
        return np.ones(ours.size, dtype=bool)
    result: BoolArray = (a != b).any(axis=1)
    return result


def other_responses(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether a model of both banks answered items otherwise, (n_common,); by their positions in both."""
    place = {model: row for row, model in enumerate(other.responses.model_ids)}
    rows = [(row, place[model]) for row, model in enumerate(one.responses.model_ids) if model in place]
    result = np.zeros(ours.size, dtype=bool)
    for row, same in rows:  # a row at a time: whole copies of the matrix would fill the memory
        a, b = one.responses.responses[row, ours], other.responses.responses[same, theirs]
        result |= (a != b) & ~(np.isnan(a) & np.isnan(b))
    return result


def _coefficients(bank: Bank) -> FloatArray:
    """Every parameter of each item, (n_items, n_parameters)."""
    parameters = bank.parameters
    columns = [parameters.intercept, parameters.lower_asymptote, parameters.upper_asymptote]
    if parameters.precision is not None:
        columns.append(parameters.precision)
    return np.column_stack([parameters.loadings, *columns])


def known_targets_of(bank: Bank) -> tuple[KnownTarget, ...]:
    """Return the one target of a bank without history."""
    targets = bank.targets
    return (
        KnownTarget(
            name="",
            digest=bank.target_digest,
            bank_id=bank.bank_id,
            within=targets.within,
            across=targets.across,
            scenarios=targets.scenarios,
            scenario_weights=targets.scenario_weights,
            weights=targets.weights,
            item_model_bias=bank.item_model_bias,
            response_variance=bank.response_variance,
        ),
    )


def named(history: BankHistory) -> list[KnownTarget]:
    """Give targets without a name one, where the bank has a name: that of the first version that gave them."""
    if not history.name:
        return list(history.targets)
    majors = {change.target_id: change.version.split(".")[0] for change in reversed(history.changes)}
    return [
        one if one.name else replace(one, name=f"{history.name}@{majors.get(one.digest, '1')}")
        for one in history.targets
    ]


def score_targets_of(
    whole: Bank, counted: IntArray, known: Sequence[KnownTarget], scheme: ScoreTargets
) -> tuple[str, ScoreTargets]:
    """Return the digest and the score targets of the items that count.

    Where a known target has these very items its weights stay; else they are made anew by the same rule.
    """
    items = whole.responses.items[counted]
    for one in known:
        if np.array_equal(one.items, counted):
            return one.digest, one.score_targets(items["scenario"].to_list())
    targets = _in_order(ScoreTargets.create(items, within=scheme.within, across=scheme.across), scheme.scenarios)
    return target_digest(items["item_id"].to_list(), targets), targets


def _in_order(targets: ScoreTargets, wanted: Sequence[str]) -> ScoreTargets:
    """Put scenarios into the order of the bank before; new ones last."""
    names = [
        *(name for name in wanted if name in targets.scenarios),
        *(n for n in targets.scenarios if n not in wanted),
    ]
    order = np.array([targets.scenarios.index(name) for name in names])
    return replace(
        targets,
        scenarios=tuple(names),
        scenario_index=np.argsort(order)[targets.scenario_index],
        scenario_weights=targets.scenario_weights[order],
    )


def measured(known: KnownTarget, whole: Bank, *, is_other: bool) -> KnownTarget:
    """Carry a target over to a changed bank; with `is_other`, models, answers or parameters of its items changed."""
    weights = np.concatenate([known.weights, np.full(whole.n_items - known.weights.size, np.nan)])
    known = replace(known, weights=weights)
    if not is_other:
        return known
    targets = known.score_targets(whole.responses.items["scenario"].gather(known.items).to_list())
    variance = response_variance(whole.responses.take(items=known.items), targets)
    return _with_id(replace(known, response_variance=variance), targets, whole)


def new_target(
    whole: Bank,
    counted: IntArray,
    score: tuple[str, ScoreTargets],
    known: Sequence[KnownTarget],
    before: BankHistory,
    *,
    version: str,
    label: str,
) -> KnownTarget:
    """Name a score that the bank did not give before, and say what is known of its scenarios.

    The item model's bias stays what was measured of the scenario before: few items make little difference to it.
    """
    digest, targets = score
    last = known[before.current]
    bias = dict(zip(whole.targets.scenarios, whole.item_model_bias.tolist(), strict=True))
    bias |= dict(zip(last.scenarios, last.item_model_bias.tolist(), strict=True))
    weights = np.full(whole.n_items, np.nan)
    weights[counted] = targets.weights
    made = KnownTarget(
        name=_name(before.name, last, known, version=version, label=label),
        digest=digest,
        bank_id="",
        within=targets.within,
        across=targets.across,
        scenarios=targets.scenarios,
        scenario_weights=targets.scenario_weights,
        weights=weights,
        item_model_bias=np.array([bias.get(name, np.nan) for name in targets.scenarios]),
        response_variance=response_variance(whole.responses.take(items=counted), targets),
    )
    return _with_id(made, targets, whole)


def _name(bank: str, last: KnownTarget, known: Sequence[KnownTarget], *, version: str, label: str) -> str:
    """Name a new target: by the version's major number, or by the last target's name and a label."""
    if not bank:
        if label:
            raise ParameterError(f"a target is labelled after the bank's name, and this bank has none, got {label!r}.")
        return ""
    name = f"{bank}@{version.partition('.')[0]}"
    if label:
        of, _, rest = last.name.rpartition("@")
        name = f"{of}@{rest.partition('-')[0]}-{check_name(label)}"
    if any(one.name == name for one in known):
        raise ParameterError(f"a target's name must be new, got {name!r}, which is another one. Choose another label.")
    return name


def _with_id(known: KnownTarget, targets: ScoreTargets, whole: Bank) -> KnownTarget:
    """Give the bank of this target its id."""
    prior = whole.calibration.prior
    numbers = (prior.mean, prior.covariance, known.item_model_bias, known.response_variance)
    responses, parameters = whole.responses, whole.parameters
    if known.items.size < whole.n_items:
        responses, parameters = responses.take(items=known.items), parameters.take(known.items)
    return replace(known, bank_id=bank_fingerprint(responses, parameters, targets, *numbers))
