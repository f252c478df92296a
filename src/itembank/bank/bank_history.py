"""What a bank was before, and its files: name, version, changes, the scores it can give, marks on items.

Text is in `bank.json`, marks in `items.parquet`, weights of targets beside the other arrays.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar, get_args

import numpy as np

from itembank.errors import ParameterError, quoted
from itembank.files.documents import digest_of
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.score_names import Across, Within
from itembank.responses.targets import ScoreTargets
from itembank.tabular import Compact


@dataclass(frozen=True, slots=True, repr=False)
class KnownTarget(Compact):
    """A set of items with weights, over the items of a whole bank, and what was measured of the bank that gives it."""

    name: str  # 'mmlu_pro@1'; empty where the bank has no name
    digest: str  # Of the items and their weights (`target_digest`)
    bank_id: str  # Of the bank of these items alone
    within: Within
    across: Across
    scenarios: tuple[str, ...]
    scenario_weights: FloatArray  # (n_scenarios,)
    # (n_whole_items,): Weight of each item within its scenario; NaN for items that do not belong to the target.
    weights: FloatArray
    item_model_bias: FloatArray  # (n_scenarios,): Those of `Bank`
    response_variance: FloatArray  # (n_scenarios,)

    @property
    def target_id(self) -> str:
        """The name, or the digest where there is none."""
        return self.name or self.digest

    @property
    def items(self) -> IntArray:
        """Positions of its items in the whole bank."""
        return np.flatnonzero(~np.isnan(self.weights))

    def score_targets(self, scenarios_of_items: Sequence[str]) -> ScoreTargets:
        """Return the score targets over its own items; `scenarios_of_items` are the scenarios of these."""
        place = {name: j for j, name in enumerate(self.scenarios)}
        index = np.array([place[name] for name in scenarios_of_items], dtype=np.int64)
        return ScoreTargets(
            self.scenarios, index, self.weights[self.items], self.scenario_weights, self.within, self.across
        )


def target_digest(item_ids: Sequence[str], targets: ScoreTargets) -> str:
    """First digits of a SHA-256 over items, scenarios and weights, whatever order the items are in.

    Two banks of the same digest estimate the same score, however they were calibrated.
    """
    rows = sorted(
        f"{item!r} {targets.scenarios[scenario]!r} {weight:.12g}"
        for item, scenario, weight in zip(
            item_ids, targets.scenario_index.tolist(), targets.weights.tolist(), strict=True
        )
    )
    shares = sorted(
        f"{name!r} {weight:.12g}"
        for name, weight in zip(targets.scenarios, targets.scenario_weights.tolist(), strict=True)
    )
    return digest_of("\n".join([*shares, *rows]).encode())[:12]


ACTIVE, RETIRED, SUSPECT, FIELD_TEST = "active", "retired", "suspect", "field-test"
STATUSES = (ACTIVE, RETIRED, SUSPECT, FIELD_TEST)
"""Of an item; files keep the number of each in this order."""
COUNTED = (ACTIVE, SUSPECT)
"""Statuses of items that count in the score; the others are kept aside."""
FIRST_VERSION = "1.0.0"
MOST_CHANGES = 1_000
MOST_TEXT = 2_000
"""Characters of any one text of a history, which may be a stranger's."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class Ids:
    """Some ids: the first 20, of 200 characters each; of more, how many there are and their digest."""

    n: int = 0
    digest: str = ""  # First digits of the SHA-256 of all ids in order; empty where there are none
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, ids: Sequence[str]) -> "Ids":
        """Sum up ids in ascending order."""
        if not ids:
            return cls()
        ids = sorted(ids)
        return cls(len(ids), digest_of("\n".join(ids).encode())[:12], tuple(one[:200] for one in ids[:20]))


@dataclass(frozen=True, slots=True)
class Link:
    """How new parameters were brought onto the scale of the old bank.

    Attributes
    ----------
    method : str
    n_models, n_items : int
        That the link rests on.
    linking_error : float or None
        Standard error that the link adds to a score, on the scale of scores (0 to 1); None if it is not known.
    """

    method: str
    n_models: int
    n_items: int
    linking_error: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One step from a bank to the next.

    Attributes
    ----------
    operation : str
        'retire', 'restore', 'merge', 'note', 'add-models', ...
    version, bank, target_id : str
        Version and id of the bank that came of it, and the id of the target that its scores estimate.
    parents : tuple of str
        Ids of the banks it was made from; the first is the one it goes on from.
    by, at : str
        Release of itembank, and the time (UTC, ISO 8601).
    note : str
        Why, in the words of who did it.
    arguments : mapping
        What the operation was asked for, as JSON holds it.
    items_added, items_dropped, items_changed, models_added, models_dropped : Ids
        Items changed have another status, other parameters or other answers than before.
    link : Link or None
    """

    operation: str
    version: str
    bank: str
    target_id: str
    parents: tuple[str, ...]
    by: str
    at: str
    note: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    items_added: Ids = Ids()
    items_dropped: Ids = Ids()
    items_changed: Ids = Ids()
    models_added: Ids = Ids()
    models_dropped: Ids = Ids()
    link: Link | None = None


@dataclass(frozen=True, slots=True, repr=False)
class BankHistory(Compact):
    """What is known of a bank besides its numbers of today.

    Attributes
    ----------
    name : str
        Of the benchmark; empty if it has none.
    changes : tuple of Change
        From the first to the one that made this bank; none of a bank that was only given a name.
    targets : tuple of KnownTarget
        Every score that the bank can give, over all its items (`Bank.whole`).
    current : int
        Which of them the bank gives.
    status : (n_whole_items,)
        Number of each item's status in `STATUSES`, in the order of the whole bank.
    since : (n_whole_items,)
        Number of the change that brought each item, counted from 1; 0 where it was there before the first.
    """

    name: str
    changes: tuple[Change, ...]
    targets: tuple[KnownTarget, ...]
    current: int
    status: IntArray
    since: IntArray

    @property
    def version(self) -> str:
        """Version of the bank."""
        return self.changes[-1].version if self.changes else FIRST_VERSION

    @property
    def counted(self) -> BoolArray:
        """Whether each item counts in the score by its status, (n_whole_items,)."""
        return np.isin(self.status, [STATUSES.index(name) for name in COUNTED])

    @property
    def gives_what_counts(self) -> bool:
        """Whether the current target is that of the items that count; else it is an earlier one, asked for by name."""
        return np.array_equal(self.targets[self.current].items, np.flatnonzero(self.counted))

    @property
    def ancestors(self) -> tuple[str, ...]:
        """Ids of all banks that this one came from, and its own at each change."""
        found = [one for change in self.changes for one in (*change.parents, change.bank)]
        return tuple(dict.fromkeys(found))


def check_name(name: str) -> str:
    """Return a bank's name, or raise `ParameterError`: it is part of the ids of targets."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            "a name must begin with a letter or digit and hold letters, digits, dots, dashes and underscores "
            f"only, at most 80, got {quoted(name)}."
        )
    return name


def bumped(version: str, part: str) -> str:
    """Raise the 'major', 'minor' or 'patch' number of a version.

    Examples
    --------
    >>> bumped("1.2.3", "minor")
    '1.3.0'
    """
    major, minor, patch = map(int, version.split("."))
    if part == "major":
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if part == "minor" else f"{major}.{minor}.{patch + 1}"


Record = TypeVar("Record")

PART = "target."
"""Begins the names of arrays of targets."""
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_TARGET = re.compile(r"[A-Za-z0-9._@-]{0,200}")
_DIGEST = re.compile(r"[0-9a-f]{12}")
_TEXTS = ("name", "digest", "bank_id", "within", "across")
_ARRAYS = ("weights", "scenario_weights", "item_model_bias", "response_variance")


def check_history(history: BankHistory, scenarios: Sequence[str]) -> None:
    """Raise `ValueError` where marks and targets are not those of a bank whose items have these scenarios."""
    n_items = len(scenarios)
    for name, marks, most in (
        ("status", history.status, len(STATUSES) - 1),
        ("since", history.since, len(history.changes)),
    ):
        if marks.shape != (n_items,) or marks.min(initial=0) < 0 or marks.max(initial=0) > most:
            raise ValueError(f"{name} must be a number from 0 to {most} for each of {n_items} items")
    if history.current >= len(history.targets):
        raise ValueError(f"the current target must be one of {len(history.targets)}, got {history.current}")
    names = [one.name for one in history.targets if one.name]
    digests = [one.digest for one in history.targets]
    if len(set(names)) < len(names) or len(set(digests)) < len(digests):
        raise ValueError("names and digests of targets must be unique")
    for known in history.targets:
        n_scenarios = len(known.scenarios)
        for name in _ARRAYS:
            shape, wanted = getattr(known, name).shape, (n_items if name == "weights" else n_scenarios,)
            if shape != wanted:
                raise ValueError(f"{name} of target {quoted(known.target_id)} must have shape {wanted}, got {shape}")
        found = {scenarios[place] for place in known.items.tolist()}
        if not found or found != set(known.scenarios) or len(found) < n_scenarios:
            raise ValueError(f"target {quoted(known.target_id)} must have items, and their scenarios, each once")
    if not history.gives_what_counts:
        raise ValueError("the items of the current target must be those whose status counts")


def history_record(history: BankHistory) -> dict[str, Any]:
    """Return the part of a history that `bank.json` holds."""
    last = history.changes[-1] if history.changes else None
    return {
        "name": history.name,
        "version": history.version,
        "parent": last.parents[0] if last and last.parents else None,
        "created": last.at if last else None,
        "target_id": history.targets[history.current].target_id,
        "changes": [asdict(change) for change in history.changes],
        "current": history.current,
        "targets": [
            {**{name: getattr(one, name) for name in _TEXTS}, "scenarios": list(one.scenarios)}
            for one in history.targets
        ],
    }


def history_arrays(history: BankHistory) -> dict[str, FloatArray]:
    """Return the arrays of its targets, by their names in a bank's files."""
    return {
        f"{PART}{number}.{name}": np.ascontiguousarray(getattr(one, name), dtype=np.float64)
        for number, one in enumerate(history.targets)
        for name in _ARRAYS
    }


def read_history(
    record: Mapping[str, Any], columns: Mapping[str, Any], arrays: Mapping[str, FloatArray]
) -> BankHistory:
    """Read what the three functions above wrote; what cannot be raises as reading a bank does."""
    changes, name = _list(record["changes"]), _text(record["name"])
    if len(changes) > MOST_CHANGES:
        raise ValueError(f"a history must have at most {MOST_CHANGES:,} changes, got {len(changes):,}")
    for change in changes:
        _check_matches(_VERSION, change["version"], "a version")
    targets = []
    for number, about in enumerate(_list(record["targets"])):
        for word, allowed in (("within", get_args(Within)), ("across", get_args(Across))):
            if about[word] not in allowed:
                raise ValueError(f"{word} of a target must be one of {', '.join(allowed)}, got {quoted(about[word])}")
        _check_matches(_TARGET, about["name"], "a target's name")
        _check_matches(_DIGEST, about["digest"], "a target's digest")
        own: dict[str, Any] = {one: arrays[f"{PART}{number}.{one}"] for one in _ARRAYS}
        own |= {one: _text(about[one]) for one in _TEXTS}
        targets.append(KnownTarget(scenarios=tuple(map(str, _list(about["scenarios"]))), **own))
    return BankHistory(
        check_name(name) if name else "",
        tuple(_read(Change, change) for change in changes),
        tuple(targets),
        _whole(record["current"]),
        np.asarray(columns["status"]).astype(np.int64, casting="same_kind"),
        np.asarray(columns["since"]).astype(np.int64, casting="same_kind"),
    )


def _read(kind: type[Record], about: Mapping[str, Any]) -> Record:
    """Make a record of what a file says, each field read by its type."""
    return kind(**{one.name: _READERS[one.type](about[one.name]) for one in fields(kind)})  # type: ignore[arg-type]


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise ValueError(f"there must be a text of at most {MOST_TEXT:,} characters, got {quoted(value)}")
    return value


def _check_matches(pattern: re.Pattern[str], value: Any, what: str) -> None:
    if not pattern.fullmatch(_text(value)):
        raise ValueError(f"{what} must match {pattern.pattern}, got {quoted(value)}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"there must be a list, got {quoted(value)}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"there must be a whole number >= 0, got {quoted(value)}")
    return value


def _number(value: Any) -> float | None:
    if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
        raise ValueError(f"there must be a finite number or null, got {quoted(value)}")
    return value


def _arguments(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > 50 or len(str(value)) > MOST_TEXT:
        raise ValueError(f"arguments must be an object of at most {MOST_TEXT:,} characters, got {quoted(value)}")
    return value


_READERS: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    int: _whole,
    float | None: _number,
    tuple[str, ...]: lambda value: tuple(map(_text, _list(value))),
    Mapping[str, Any]: _arguments,
    Ids: lambda value: _read(Ids, value),
    Link | None: lambda value: None if value is None else _read(Link, value),
}
"""By the type of a field of `Change`, `Ids` or `Link`."""
