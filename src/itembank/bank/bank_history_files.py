"""A bank's history in its files: text in `bank.json`, marks on items in `items.parquet`, weights beside the arrays."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np

from itembank.bank.bank_history import (
    MOST_ARGUMENTS,
    MOST_CHANGES,
    MOST_TEXT,
    STATUSES,
    BankHistory,
    Change,
    Ids,
    KnownTarget,
    Link,
    check_name,
)
from itembank.bank.banks import Bank
from itembank.errors import quoted
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.score_names import Across, Within


def check_history(history: BankHistory, whole: Bank) -> None:
    """Raise `ValueError` where a history's marks and targets are not those of the items of its bank."""
    for name, marks, most in (
        ("status", history.status, len(STATUSES) - 1),
        ("since", history.since, len(history.changes)),
    ):
        if marks.shape != (whole.n_items,) or marks.min(initial=0) < 0 or marks.max(initial=0) > most:
            raise ValueError(f"{name} must be a number from 0 to {most} for each of {whole.n_items} items")
    if history.current >= len(history.targets):
        raise ValueError(f"the current target must be one of {len(history.targets)}, got {history.current}")
    names = [one.name for one in history.targets if one.name]
    digests = [one.digest for one in history.targets]
    if len(set(names)) < len(names) or len(set(digests)) < len(digests):
        raise ValueError("names and digests of targets must be unique")
    for one in history.targets:
        _check_target(one, whole)
    if not gives_what_counts(history):
        raise ValueError("the items of the current target must be those whose status counts")


def gives_what_counts(history: BankHistory) -> bool:
    """Whether the current target is that of the items that count; else it is an earlier one, asked for by its name."""
    return np.array_equal(history.targets[history.current].items, np.flatnonzero(history.counted))


def _check_target(known: KnownTarget, whole: Bank) -> None:
    """Raise `ValueError` where a target's arrays are not those of its scenarios and the bank's items."""
    n_scenarios = len(known.scenarios)
    shapes = {
        "weights": (known.weights.shape, (whole.n_items,)),
        "scenario_weights": (known.scenario_weights.shape, (n_scenarios,)),
        "item_model_bias": (known.item_model_bias.shape, (n_scenarios,)),
        "response_variance": (known.response_variance.shape, (n_scenarios,)),
    }
    for name, (shape, wanted) in shapes.items():
        if shape != wanted:
            raise ValueError(f"{name} of target {quoted(known.target_id)} must have shape {wanted}, got {shape}")
    scenarios = set(whole.responses.items["scenario"].gather(known.items).to_list())
    if not scenarios or scenarios != set(known.scenarios) or len(scenarios) < n_scenarios:
        raise ValueError(f"target {quoted(known.target_id)} must have items, and their scenarios, each once")


PART = "target."
"""Begins the names of arrays of targets."""
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_TARGET = re.compile(r"[A-Za-z0-9._@-]{0,200}")
_DIGEST = re.compile(r"[0-9a-f]{12}")
_TEXTS = ("name", "digest", "bank_id", "within", "across")
_ARRAYS = ("weights", "scenario_weights", "item_model_bias", "response_variance")


def history_record(history: BankHistory) -> dict[str, Any]:
    """Return the part of a history that `bank.json` holds."""
    return {
        "name": history.name,
        "version": history.version,
        "parent": history.changes[-1].parents[0] if history.changes and history.changes[-1].parents else None,
        "created": history.changes[-1].at if history.changes else None,
        "target_id": history.targets[history.current].target_id,
        "changes": [asdict(change) for change in history.changes],
        "current": history.current,
        "targets": [
            {**{name: getattr(one, name) for name in _TEXTS}, "scenarios": list(one.scenarios)}
            for one in history.targets
        ],
    }


def history_columns(history: BankHistory) -> dict[str, IntArray]:
    """Return the columns that `items.parquet` gets, by name without 'bank.'."""
    return {"status": history.status.astype(np.int64), "since": history.since.astype(np.int64)}


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
    changes = _list(record["changes"])
    if len(changes) > MOST_CHANGES:
        raise ValueError(f"a history must have at most {MOST_CHANGES:,} changes, got {len(changes):,}")
    name = _text(record["name"])
    return BankHistory(
        check_name(name) if name else "",
        tuple(map(_change, changes)),
        tuple(_target(one, arrays, number) for number, one in enumerate(_list(record["targets"]))),
        _whole(record["current"]),
        np.asarray(columns["status"]).astype(np.int64, casting="same_kind"),
        np.asarray(columns["since"]).astype(np.int64, casting="same_kind"),
    )


def _change(about: Any) -> Change:
    arguments = about["arguments"]
    if not isinstance(arguments, dict) or len(arguments) > MOST_ARGUMENTS or len(str(arguments)) > MOST_TEXT:
        raise ValueError(f"arguments must be an object of at most {MOST_TEXT:,} characters, got {quoted(arguments)}")
    return Change(
        operation=_text(about["operation"]),
        version=_matching(_VERSION, about["version"], "a version"),
        bank=_text(about["bank"]),
        target_id=_text(about["target_id"]),
        parents=tuple(map(_text, _list(about["parents"]))),
        by=_text(about["by"]),
        at=_text(about["at"]),
        note=_text(about["note"]),
        arguments=arguments,
        items_added=_ids(about["items_added"]),
        items_dropped=_ids(about["items_dropped"]),
        items_changed=_ids(about["items_changed"]),
        models_added=_ids(about["models_added"]),
        models_dropped=_ids(about["models_dropped"]),
        link=None if about["link"] is None else _link(about["link"]),
    )


def _ids(about: Any) -> Ids:
    return Ids(_whole(about["n"]), _text(about["digest"]), tuple(map(_text, _list(about["first"]))))


def _link(about: Any) -> Link:
    numbers = {name: about[name] for name in ("slope", "intercept", "linking_error")}
    for name, value in numbers.items():
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise ValueError(f"{name} of a link must be a finite number or null, got {quoted(value)}")
    return Link(_text(about["method"]), _whole(about["n_models"]), _whole(about["n_items"]), **numbers)


def _target(about: Any, arrays: Mapping[str, FloatArray], number: int) -> KnownTarget:
    for word, allowed in (("within", get_args(Within)), ("across", get_args(Across))):
        if about[word] not in allowed:
            raise ValueError(f"{word} of a target must be one of {', '.join(allowed)}, got {quoted(about[word])}")
    own = {name: arrays[f"{PART}{number}.{name}"] for name in _ARRAYS}
    return KnownTarget(
        name=_matching(_TARGET, about["name"], "a target's name"),
        digest=_matching(_DIGEST, about["digest"], "a target's digest"),
        bank_id=_text(about["bank_id"]),
        within=about["within"],
        across=about["across"],
        scenarios=tuple(map(str, _list(about["scenarios"]))),
        weights=own["weights"],
        scenario_weights=own["scenario_weights"],
        item_model_bias=own["item_model_bias"],
        response_variance=own["response_variance"],
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise ValueError(f"there must be a text of at most {MOST_TEXT:,} characters, got {quoted(value)}")
    return value


def _matching(pattern: re.Pattern[str], value: Any, what: str) -> str:
    if not pattern.fullmatch(_text(value)):
        raise ValueError(f"{what} must match {pattern.pattern}, got {quoted(value)}")
    return str(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"there must be a list, got {quoted(value)}")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"there must be a whole number >= 0, got {quoted(value)}")
    return value
