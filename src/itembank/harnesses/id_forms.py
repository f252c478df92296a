"""Chosen ids in the form in which a harness or tool takes the items that it is to run.

Ids are strangers' text: each form escapes what would mean something else there, and refuses what it cannot carry.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from glob import escape
from typing import Any, Final

import polars as pl

from itembank.errors import DataError, shown
from itembank.readers.matching import native_ids
from itembank.tables import plural

REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "list": (r"[\r\n]", "line break"),
    "swe-bench": (r"[\x00-\x1f\x7f-\x9f]|^-|^$", "line break or other control character, and no dash at its beginning"),
    "mini-swe-agent": (r"[\x00\r\n]", "line break"),
}
"""What an id must not hold in a form, and what that is called."""
Chosen = Sequence[Mapping[str, Any]]
"""Rows of the item table, with `native`: what an item is called where it comes from."""


def id_text(form: str, item_ids: Sequence[str], items: pl.DataFrame) -> str:
    """Return chosen items of a bank as text in one of `FORMS`.

    Forms but ``list`` and ``lm-eval`` have the ids that items have where they come from (`native_ids`).

    Raises `DataError` when the form cannot carry an id, or an item is not in the bank.
    """
    rows = items.with_columns(pl.Series("native", native_ids(items), dtype=pl.String)).to_dicts()
    known = {row["item_id"]: row for row in rows}
    foreign = [item for item in item_ids if item not in known]
    if foreign:
        raise DataError(f"every chosen item must be in the bank, got {len(foreign)} that are not: {shown(foreign)}.")
    chosen = [known[item] for item in item_ids]
    pattern, what = REFUSED.get(form, ("(?!)", ""))
    bad = [one for row in chosen if re.search(pattern, one := row["item_id" if form == "list" else "native"])]
    if bad:
        raise DataError(
            f"an item's id must hold no {what} in the form {form}, got {len(bad)} that do: {shown(bad)}. Take "
            "them from JSON: the selection (itembank select -o FILE), or what a gate prints with --format json."
        )
    return f"{FORMS[form](chosen)}\n" if chosen else ""


def chosen_documents(item_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return ``{task: [doc ids]}`` of item ids, sorted and unique.

    Item ids must be ``task/doc_id``, as the reader of the harness's logs makes them.
    """
    samples: dict[str, set[int]] = {}
    foreign = []
    for chosen_id in item_ids:
        place = document_place(chosen_id)
        if place is None:
            foreign.append(chosen_id)
        else:
            samples.setdefault(place[0], set()).add(place[1])
    if foreign:
        raise DataError(
            f"item ids must be 'task/doc_id' to be taken by lm-evaluation-harness as they are, got "
            f"{plural(len(foreign), 'other')}: {shown(foreign)}. Calibrate on logs of it, or take itembank run "
            "lm-eval, which finds items by other ids."
        )
    return {task: sorted(documents) for task, documents in sorted(samples.items())}


def document_place(item: str) -> tuple[str, int] | None:
    """Task and number of an id that is ``task/doc_id``."""
    task, _, number = item.rpartition("/")
    return (task, int(number)) if task and number.isascii() and number.isdigit() else None


def _by_category(chosen: Chosen) -> str:
    found: dict[str, list[str]] = {}
    for one in chosen:
        found.setdefault(one["subscenario"] or one["scenario"], []).append(one["native"])
    return json.dumps(found, ensure_ascii=False, indent=1)


def _as_patterns(chosen: Chosen) -> str:
    """Write patterns of a shell, as Harbor takes them; folders of tasks have names without the organisation's."""
    names = [one["native"] for one in chosen]
    both = dict.fromkeys((*names, *(name.rpartition("/")[2] for name in names)))
    return json.dumps({"task_names": [escape(name) for name in both]}, ensure_ascii=False)


FORMS: Final[Mapping[str, Callable[[Chosen], str]]] = {
    "list": lambda chosen: "\n".join(one["item_id"] for one in chosen),
    "lm-eval": lambda chosen: json.dumps(chosen_documents(one["item_id"] for one in chosen), ensure_ascii=False),
    "swe-bench": lambda chosen: shlex.join(one["native"] for one in chosen),
    # its --filter is matched at the beginning of an id
    "mini-swe-agent": lambda chosen: f"^(?:{'|'.join(re.escape(one['native']) for one in chosen)})$",
    "harbor": _as_patterns,
    "bfcl": _by_category,
}
