"""Programs of jq that messages advise: written from the keys of JSON that is no table."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from itembank.errors import remedy, shell_word
from itembank.readers.chosen_rows import is_row_number
from itembank.readers.columns import NAMES_IN_TURN, is_id, plain_name, response_of
from itembank.readers.reading_specs import LONG_COLUMNS
from itembank.responses.how_read import CONTENT

NUMBERED = ("id", "index", "idx", "uid", "uuid", "qid")
"""Keys that may name an item where nothing else does."""
Rows = list[dict[str, Any]]
LIST, BY_KEY = "[] | ", "to_entries[] | .key"
BY_COLUMNS = ".columns as $columns | .data[] | [$columns, .] | transpose | map({(.[0]): .[1]}) | add | "
"""A table of pandas, or of Weights & Biases, and the program to its rows."""
DEEPEST, MOST_ROWS, MOST_RECORDS = 4, 200, 10_000
"""How deep, and in how many values, rows are looked for; of how many rows the program is written."""


def rows_within(value: Any, id_of: str = "", depth: int = DEEPEST) -> tuple[str, Rows]:
    """Return the rows, objects in a list or by their ids, in a value of JSON, and the program of jq to them.

    Those that tell a response go before others, then those that name their items, then many before few. The program
    knows a model that is told beside the rows as $model, and an item, or the id of each row, as $item. What an id, or a
    name, beside the rows is of, is `id_of`.
    """
    inside = value if isinstance(value, dict) else {"": value}
    names, split = (inside[key] if isinstance(inside.get(key), list) else [] for key in ("columns", "data"))
    if {*map(type, names)} == {str} and {*map(type, split)} == {list}:
        return BY_COLUMNS, [dict(zip(names, one, strict=False)) for one in split]
    best = _by_ids(inside, depth)
    for key, one in inside.items() if depth and not best[1] else ():
        before, rows = _rows_of(one, depth - 1)
        if rows and _rank(rows) > _rank(best[1]):
            beside = {other: own for other, own in inside.items() if other != key}
            at = jq_key(key) if isinstance(value, dict) else "."
            best = _with_told(beside, f"{at}{before}", rows, id_of), rows
    return best


def rows_below(records: Sequence[dict[str, Any]]) -> tuple[str, Rows]:
    """Return the rows in each of some records, and the program to them; the records where they are rows."""
    if len(records) == 1:
        before, rows = rows_within(records[0])
        return before, rows or [*records]
    before, rows = _rows_of([*records], DEEPEST)
    return before.removeprefix(LIST), rows


def _rows_of(value: Any, depth: int) -> tuple[str, Rows]:
    """Return the rows that a list, or objects by their ids, are or hold, and the program to them behind a path."""
    if isinstance(value, dict):
        before, rows = _by_ids(value, depth)
        return f" | {before}", rows
    if not (isinstance(value, list) and value and all(isinstance(row, dict) for row in value)):
        return "", []
    some = value[:MOST_ROWS]
    deeper = [] if _tells(some) and _item_of(some[0]) else [rows_within(row, depth=depth)[1] for row in some]
    if deeper and all(map(_tells, deeper)):
        ids = [_item_of(row) for rows in deeper for row in rows]
        is_model = all(ids) and len({*ids}) < len(ids)  # the same items come again
        found = [rows_within(row, "model_id" if is_model else "item_id", depth) for row in some]
        if len({before for before, _ in found}) == 1:
            return f"{LIST}{found[0][0]}", [row for _, rows in found for row in rows]
    return LIST, value


def _by_ids(inside: Mapping[str, Any], depth: int = 1) -> tuple[str, Rows]:
    """Return the rows that are the values of an object, or are in each of them, and the program; else nothing."""
    keys, values = [*inside][:MOST_ROWS], [*inside.values()][:MOST_ROWS]
    if not depth or len(values) < 2 or not all(isinstance(one, dict | list) and one for one in values):
        return "", []
    are_records = _are_records(values)
    parts = [rows_within(one, depth=depth - 1) for one in values]
    first, rows = parts[0]
    is_below = _tells(rows) or not (are_records and _tells(values))
    if first and is_below and all(before == first and _are_alike([rows[0], own[0]]) for before, own in parts):
        is_model = " as $item" in first or _are_models(keys, [own[0] for _, own in parts])
        outer = "model" if is_model and " as $model" not in first else "item"
        if " as $model" in first and all(ids := [_item_of(row) for row in rows]):
            outer, n_of_items = "task" if ".key as $model" in first else "run", {*Counter(ids).values()}
            if outer == "task" and (1 in n_of_items or len(n_of_items) > 1):  # models answer the same items
                outer, first = "model", first.replace(".key as $model", ".key as $task")
        return f"{BY_KEY} as ${outer} | .value | {first}", [row for _, own in parts for row in own]
    return (f"{BY_KEY} as $item | .value | ", values) if are_records else ("", [])


def _with_told(beside: Mapping[str, Any], before: str, rows: Rows, id_of: str) -> str:
    """Put before a program the model and the item that are told beside the rows, where these do not tell them."""
    places = {at: own for at, own in _places(beside) if isinstance(own, str | int)}
    named = {at: at.removesuffix(".name") for at in places}
    depths = {at: name.count(".") for at, name in named.items() if _is_named(name, "model_id")}
    models = [at for at, depth in depths.items() if depth == min(depths.values())]  # a judge's is deeper
    ids = [jq_key(key) for key in NUMBERED if key in beside]
    item = "" if _item_of(rows[0]) else _place_of("item_id", [places]) or (ids[0] if ids and id_of == "item_id" else "")
    if item:
        before = f"{item} as $item | {before.replace('.key as $item', '.key as $model')}"
    if id_of == "model_id" and not models:
        models = ([".name"] if "name" in beside else ids)[:1]
    if len(models) == 1 and not any(_is_named(at, "model_id") for at, _ in _places(rows[0])):
        guessed = "|".join(map(re.escape, (".key", ".name", *map(jq_key, NUMBERED))))
        before = f"{models[0]} as $model | " + re.sub(rf"(?<=\| )({guessed}) as \$model", r"\1 as $task", before)
    return before


def _item_of(row: Mapping[str, Any]) -> str:
    """Return what names the item of a row; nothing where nothing does."""
    places = dict(_places(row))
    at = _item_at(tuple(places), tuple(row))
    return str(places.get(at)) if at else ""


@lru_cache
def _item_at(places: tuple[str, ...], keys: tuple[str, ...]) -> str:
    """Return the path of what names the item, by the paths and keys of a row: those of a million rows are alike."""
    ids = [jq_key(key) for key in keys if is_id(key) or key in NUMBERED]
    return _place_of("item_id", [dict.fromkeys(places)]) or (ids[0] if len(ids) == 1 else "")


def _rank(rows: Rows) -> tuple[bool, bool, int]:
    return _tells(rows), bool(rows and _item_of(rows[0])), len(rows)


def _tells(rows: Sequence[Any]) -> bool:
    """Whether the first of some records tells a response, but in rows by their ids."""
    if not rows or _by_ids(rows[0])[1]:
        return False
    own = {key: one for key, one in rows[0].items() if not (isinstance(one, dict) and _by_ids(one)[1])}
    return bool(_place_of("response", [dict(_places(own))]))


def _are_alike(records: Sequence[Any]) -> bool:
    """Whether most keys of the first record are those of each."""
    return all(2 * len({*records[0]} & {*one}) > len(records[0]) for one in records)


def _are_records(values: Sequence[Any]) -> bool:
    """Whether objects by their ids are records that tell a response, or texts, and not answers by other ids."""
    if not all(isinstance(one, dict) for one in values) or not _are_alike(values):
        return False
    return _tells(values) or not all(map(_is_response, values[0].values()))


def _are_models(keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows that are grouped by these keys tell of items by other names, so that the keys are models."""
    own = [_item_of(row) for row in rows]
    return all(own) and own != [*keys] and not any(_is_named(at, "model_id") for at, _ in _places(rows[0]))


def _is_named(place: str, ours: str, turns: Sequence[Mapping[str, Sequence[str]]] = NAMES_IN_TURN) -> bool:
    """Whether the last key of a path is usual for a column of ours."""
    last = place.rpartition(".")[2].strip('[]"')  # also of a key that has dots itself
    return any(plain_name(last) in names.get(ours, ()) for names in turns)


def row_program(records: Sequence[Mapping[str, Any]], before: str = "") -> str:
    """Write the program of jq that makes a row of each response in some records; '...' stands for what is not known.

    What goes through the records comes before. Of many records some are looked at, evenly many.
    """
    records = records[:: -(-len(records) // MOST_RECORDS) or 1]
    inner = [own for one in records for own in one.values()]
    if inner and all(isinstance(own, dict) and all(map(_is_response, own.values())) for own in inner):
        if len(inner) == 1:
            row = "{model_id: $stem, item_id: .key, response: .value}"
            return f"{before}{jq_key(next(iter(records[0])))} | to_entries[] | {row}"
        row = "{model_id: .key, item_id: $item, response: .value}"
        return f"{before}{BY_KEY} as $item | .value | to_entries[] | {row}"
    places = [dict(_places(one)) for one in records]
    response = _place_of("response", places)
    own = [one for one in places if response in one] or places
    model = _place_of("model_id", own) or next((at for at in own[0] if is_row_number(at.removeprefix("."))), "")
    others = [value for one in places for at, value in one.items() if at != model]
    if model and not response and len(others) > 1 and all(map(_is_response, others)):
        row = "to_entries[] | {model_id: $model, item_id: .key, response: .value}"
        keys = [jq_key(key) for key, value in records[0].items() if isinstance(value, dict)]
        answers = keys[0] if len(keys) == 1 and not model.startswith(keys[0]) else f"del({model})"
        return f"{before}{model} as $model | {answers} | {row}"
    name = _place_of("model_id", own) or ("$model" if " as $model" in before else "$stem")
    ids = [jq_key(key) for key in records[0] if is_id(key) and jq_key(key) != model]
    told = next((jq_key(key) for key in NUMBERED if key in records[0]), "...")
    told = "$item" if " as $item" in before else ids[0] if len(ids) == 1 else told
    item = _place_of("item_id", own) or told
    if " as $task" in before:
        item = f'"\\($task)/\\({item})", scenario: $task'
    program = f"{{model_id: {name}, item_id: {item}, response: {response or '...'}}}"
    # what else a row tells may tell rows of one model and item apart; not where it would be taken for a column of ours
    optional = {*LONG_COLUMNS, CONTENT} - {"model_id", "item_id", "response"}
    has_ours = any(
        key in optional and (key == CONTENT or isinstance(value, dict | list))
        for one in records
        for key, value in one.items()
    )
    program = program if has_ours else f". + {program}"
    return before + (f"select({response}? != null) | " if len(own) < len(places) else "") + program


def how_to_run(program: str, path: Path) -> str:
    """Say how a file is read by a program."""
    python = f"read_responses({str(path)!r}, spec=ReadingSpec(jq={program!r}))"
    return remedy(python, f"itembank import {shell_word(path)} --jq {shell_word(program)} -o responses.parquet")


def _is_response(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


@lru_cache(4096)
def jq_key(name: str) -> str:
    """Write a key of an object as jq does."""
    return f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f".[{json.dumps(name)}]"


def _places(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Give the paths of a record's values as jq writes them, and the values."""
    for key, value in record.items():
        at = f"{before}{jq_key(key)}"
        if isinstance(value, dict):
            yield from _places(value, at)
        else:
            yield at, value


def _place_of(ours: str, places: Sequence[Mapping[str, Any]]) -> str:
    """Return the first path whose last key is usual for a column of ours; else nothing.

    An id goes before the text of a question; of responses numbers do, then words for right and wrong, and a text that
    is called a response is none.
    """
    every = dict.fromkeys(at for one in places for at in one)
    usual = [at for names in NAMES_IN_TURN for at in every if _is_named(at, ours, [names])]
    if ours != "response":
        return next(iter(sorted(usual, key=lambda at: not is_id(at))), "")
    values = {at: [one[at] for one in places if at in one] for at in usual}
    found = [at for at in usual if all(map(_is_response, values[at]))]
    found += [at for at in usual if all(response_of(str(own)) is not None for own in values[at])]
    return next(iter([*found, *(at for at in usual if not at.endswith("response"))]), "")
