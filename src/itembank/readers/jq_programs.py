"""Programs of jq that messages advise: one walk finds the records in JSON, and what is told on the way to them."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from itembank.errors import remedy, shell_word, shown
from itembank.readers.chosen_rows import is_row_number
from itembank.readers.columns import MEANS, NAMES_IN_TURN, SUMMARIES, is_id, plain_name, response_of
from itembank.readers.reading_specs import LONG_COLUMNS
from itembank.readers.telling_apart import kind_of
from itembank.responses.error_kinds import is_called
from itembank.responses.how_read import CONTENT

NUMBERED = ("id", "index", "idx", "uid", "uuid", "qid")
"""Keys that may name an item where nothing else does."""
BY_COLUMNS = " | . as {$columns, $data} | $data | map([$columns, .] | transpose | map({(.[0]): .[1]}) | add)"
"""The path to the rows of a table of pandas, or of Weights & Biases."""
DEEPEST, MOST_PARTS, MOST_ROWS = 6, 200, 10_000
"""How deep, and in how many parts of one value, rows are looked for; of how many rows the program is written."""
Found: TypeAlias = tuple[list[str], list[tuple[Any, ...]]]
"""The path to the parts of each level, and rows: what is told around a record, outermost first, and the record.

What is told is by its path, the key of a part by "". A record is an object, or an answer.
"""


def program_for(values: Sequence[Any]) -> tuple[str, list[str]]:
    """Write the program of jq that makes rows of the values of a file; return it, and the keys of a record.

    Records that tell a response go before others, then those that name their items, then many before few. What is told
    around them is $model, $item and $task; '...' is what is not known. Nothing is written for what can hold no answers,
    such as ids alone; the keys are then those that name metrics over many items, if those are all that it has.
    """
    value = values[0] if len(values) == 1 else [*values]
    steps, rows = _found(value, MOST_ROWS, DEEPEST)
    rows = rows or [({}, value if isinstance(value, dict) else {})]
    record, told = rows[0][-1], _told(rows)
    means = [name for name, own in told.items() if is_called(name.partition(",")[0], MEANS) and not own <= {None, 0, 1}]
    metrics = [name for name in told if name in means or SUMMARIES.search(name)]
    has_items = isinstance(record, dict) and _item_of([dict(_places(record))], record)
    if not told or (means and 2 * len(metrics) > len(told) and not has_items):
        return "", metrics
    program = _written(steps, rows).removeprefix(".[] | " * (len(values) > 1))
    return program, [*record] if isinstance(record, dict) else []


def _told(rows: Sequence[tuple[Any, ...]]) -> dict[str, set[Any]]:
    """Return what may be responses: values of records by the last keys of their paths, or answers by their ids."""
    told: dict[str, set[Any]] = {}
    for row in rows[:100]:
        pairs = _places(row[-1]) if isinstance(row[-1], dict) else [(str(row[-2].get("", ".")), row[-1])]
        for at, own in pairs:
            if not (isinstance(own, list) or is_id(_last(at)) or _is_named(at, "model_id")):
                told.setdefault(_last(at), set()).add(own)
    return told


def summary_of(metrics: Sequence[str]) -> str:
    """Say that a file has metrics over many items, if it has any."""
    return f", but metrics over many ({shown(metrics)}): bring the results of each item" * bool(metrics)


def row_program(columns: Sequence[str]) -> str:
    """Write the program of jq that makes a response of each row of a table with these columns."""
    return _written([], [({}, dict.fromkeys(columns, ""))])


def _found(value: Any, most: int, depth: int) -> Found:
    """Find the rows in a value: its parts, what they hold, or what is at one of its keys."""
    if not depth or not isinstance(value, dict | list):
        return [], []
    is_list = isinstance(value, list)
    entries = enumerate(value) if isinstance(value, list) else value.items()
    parts: dict[Any, Any] = dict(islice(entries, most if is_list else max(most, MOST_PARTS)))
    held = {key: one for key, one in parts.items() if isinstance(one, dict | list) and (one or is_list)}
    are_parts = len(held) == len(parts) > 1 - is_list
    told = {key: {} if is_list else {"": key} for key in held}
    best: Found = [], []
    if are_parts and (
        _are_alike([*held.values()]) or (is_list and all(isinstance(one, dict) for one in held.values()))
    ):
        best = [""], [({}, told[key], one) for key, one in held.items()]
    if _rank(best)[:2] == (2, True):
        return best
    some = [*held][:MOST_PARTS]
    inside = {key: _found(held[key], -(-most // len(some)), depth - 1) for key in some}
    firsts = [rows[0][-1] for _, rows in inside.values() if rows]
    if are_parts and len(firsts) == len(some) and (_are_alike(firsts) or all(map(_is_response, firsts))):
        paths = inside[some[0]][0]
        rows = [({}, told[key] | row[0], *row[1:]) for key in some for row in inside[key][1]]
        kind, has_items, _ = _rank((paths, rows))
        is_known = kind == 2 or (kind == 1 and (not is_list or _model_of(rows[0][1]) or "$model" in paths[0]))
        if is_known and all(own == paths for own, _ in inside.values()) and (kind, has_items) >= _rank(best)[:2]:
            best = ["", *paths], rows
    return best if is_list or _rank(best)[0] == 2 else _at_keys(parts, inside, max(best, _answers(parts), key=_rank))


def _at_keys(value: Mapping[str, Any], inside: Mapping[str, Found], best: Found) -> Found:
    """Return the best of the rows found in an object and those that are at one of its keys."""
    names, split = (own if isinstance(own := value.get(key), list) else [] for key in ("columns", "data"))
    if {*map(type, names)} == {str} and {*map(type, split)} == {list}:
        return [BY_COLUMNS], [({}, {}, dict(zip(names, one, strict=False))) for one in split[:MOST_ROWS]]
    for key, inner in inside.items():
        if _rank(inner) <= _rank(best):
            continue
        (path, *paths), rows = inner
        beside = dict(_places({other: own for other, own in value.items() if other != key}))
        are_numbers = all(_is_response(own) for at, own in beside.items() if at != _model_of(beside))
        are_settings = path or (_rank(inner)[0] == 1 and "" in rows[0][1] and not are_numbers)
        if _rank(inner)[0] == 2 or not are_settings:
            at = jq_key(key)
            rows = [(beside | {f"{at}{place}": own for place, own in row[0].items()}, *row[1:]) for row in rows]
            best = [f"{at}{path}", *paths], rows
    return best


def _answers(value: Mapping[str, Any]) -> Found:
    """Find the answers by their ids that an object is, but for the model beside them."""
    beside = {key: own for key, own in value.items() if not _is_response(own)}
    if len(value) < 2 + len(beside) or len(beside) > 1 or _tells(value):
        return [], []
    models = [_model_of(dict(_places(beside))) or (jq_key(key) if is_row_number(key) else "") for key in beside]
    if not all(models):
        return [], []
    path = "".join(f" | {model} as $model | del({jq_key(key)})" for key, model in zip(beside, models, strict=True))
    return [path], [({}, {"": key}, own) for key, own in value.items() if key not in beside]


def _rank(found: Found) -> tuple[int, bool, int]:
    """Say whether rows tell a response (2), or are answers (1), whether they name items, and how many there are."""
    record = found[1][0][-1] if found[1] else None
    if not isinstance(record, dict):
        return (1 if found[1] else -1), False, len(found[1])
    return 2 * _tells(record), bool(_item_of([dict(_places(record))], record)), len(found[1])


def _tells(record: Mapping[str, Any]) -> bool:
    return bool(_place_of("response", [dict(_places(record))]))


def _are_alike(records: Sequence[Any]) -> bool:
    """Whether these are objects that each have most keys of the first."""
    are_objects = all(isinstance(one, dict) for one in records)
    return are_objects and all(2 * len({*records[0]} & {*one}) > len(records[0]) for one in records)


def _model_of(told: Mapping[str, Any]) -> str:
    """Return the path of the one model that is told: a judge's is deeper."""
    names = {at: at.removesuffix(".name") for at, own in told.items() if isinstance(own, str | int)}
    depths = {at: name.count(".") for at, name in names.items() if _is_named(name, "model_id")}
    models = [at for at, depth in depths.items() if depth == min(depths.values())]
    return models[0] if len(models) == 1 else ""


def _item_of(places: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> str:
    """Return the path of what names the items of records: an item, the only id, or a number."""
    ids = [at for key in record if is_id(key) and not _is_named(at := jq_key(key), "model_id")]
    numbered = [jq_key(key) for key in NUMBERED if key in record]
    return _place_of("item_id", places) or next(iter(ids if len(ids) == 1 else numbered), "")


def _roles(rows: Sequence[tuple[Any, ...]], model: str, item: str) -> dict[str, tuple[int, str]]:
    """Return the level, and the path there, of what names the model, the item and the task of rows; -1 is the record.

    What is told nearer to a record goes before. Of ids that nothing names, the innermost are the items, and those are
    models below which the same items come again; others that items and models have several of are tasks.
    """
    roles: dict[str, tuple[int, str]] = {}
    unknown: list[tuple[int, str]] = []
    tasks: list[tuple[int, str]] = []
    for level, one in enumerate(rows[0][:-1]):
        named = {"model": _model_of(one), "item": _place_of("item_id", [one])}
        roles |= {name: (level, at) for name, at in named.items() if at}
        ids = [at for at in ("", *map(jq_key, ("name", *NUMBERED))) if isinstance(one.get(at), str | int)][:1]
        unknown += [(level, at) for at in ids if level and not (at and any(named.values()))]
        tasks += [(level, at) for at in one if kind_of(_last(at)) == "task" and isinstance(one[at], str)]
    roles |= {name: (-1, at) for name, at in (("model", model), ("item", item)) if at}

    def values(at: tuple[int, str]) -> list[str]:
        return [str(row[at[0]].get(at[1])) for row in rows]

    if "item" not in roles and unknown:
        if "." in rows[0][-1] and not roles and "" in rows[0][-3]:  # of answers the fewer ids are the models
            roles["model"] = min(reversed(unknown), key=lambda at: len({*values(at)}))
            unknown.remove(roles["model"])
        numbered = [at for at in unknown if at[1] not in {"", ".name"}]
        roles.update(("item", at) for at in numbered or unknown if at[1] != ".name")
        unknown = [at for at in unknown if at not in roles.values()]

    items = values(roles.get("item", (-1, "")))
    for at in sorted(unknown, key=lambda at: at[0] - len(rows[0]) if at[1] else -at[0]):  # names go before keys
        pairs = {*zip(values(at), items, *(values(one) for one in unknown if one != at), strict=True)}
        n_times = Counter(pair[1:] for pair in pairs).values()
        if len({*values(at)}) == 1 or 2 * sum(n > 1 for n in n_times) >= len(n_times):
            roles.setdefault("model", at)
    models = values(roles.get("model", (-1, "")))
    for at in (*unknown, *tasks):
        n_models, n_items = (len({*zip(values(at), own, strict=True)}) for own in (models, items))
        if at not in roles.values() and n_models > len({*models}) and n_items > len({*values(at)}):
            roles.setdefault("task", at)
    return roles


def _written(paths: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    """Write the program to rows from the paths to them, and from what is told there and in them."""
    records, places = [row[-1] for row in rows if isinstance(row[-1], dict)], [dict(_places(row[-1])) for row in rows]
    response = _place_of("response", places) if records else "."
    own = [one for one in places if response in one] or places
    model = "$model" if "$model" in "".join(paths) else _place_of("model_id", own)
    item = _place_of("item_id", own) if "" in rows[0][-2] or not records else _item_of(own, records[0])
    roles = _roles([(*row[:-1], one) for row, one in zip(rows, places, strict=True)], model, item)
    program = ""
    for level, path in enumerate([None, *paths]):
        names = {at: name for name, (own_level, at) in roles.items() if own_level == level}
        if path is not None:
            way = f"{path} | to_entries[] | .key as ${names['']} | .value" if "" in names else f"{path or '.'}[]"
            program += f"{way} | ".removeprefix(" | ")
        program += "".join(f"{at} as ${name} | " for at, name in names.items() if at)
    known = {name: f"${name}" if level >= 0 else at for name, (level, at) in roles.items()}
    item = known.get("item", "...")
    item = f'"\\($task)/\\({item})", scenario: $task' if "task" in known else item
    row = f"{{model_id: {known.get('model', '$stem')}, item_id: {item}, response: {response or '...'}}}"
    chosen = [at for at in own[0] if kind_of(_last(at)) == "choice" and {type(one.get(at)) for one in own} == {bool}]
    if response and chosen:
        program += f"select({chosen[0]}) | "
    elif len(own) < len(rows):
        program += f"select({response}? != null) | "
    # what else a row tells may tell rows of one model and item apart; not where it would be taken for a column of ours
    held = {key for one in records for key, own in one.items() if key == CONTENT or isinstance(own, dict | list)}
    has_ours = {*LONG_COLUMNS, CONTENT} & held - {"model_id", "item_id", "response"}
    return f"{program}{row}" if has_ours or not records else f"{program}. + {row}"


def how_to_run(program: str, path: Path) -> str:
    """Say how a file is read by a program."""
    python = f"read_responses({str(path)!r}, spec=ReadingSpec(jq={program!r}))"
    return remedy(python, f"itembank import {shell_word(path)} --jq {shell_word(program)} -o responses.parquet")


def _last(place: str) -> str:
    """Return the last key of a path, or of a key that has dots itself."""
    return place.rpartition(".")[2].strip('[]"')


def _is_named(place: str, ours: str, turns: Sequence[Mapping[str, Sequence[str]]] = NAMES_IN_TURN) -> bool:
    """Whether the last key of a path is usual for a column of ours."""
    return any(plain_name(_last(place)) in names.get(ours, ()) for names in turns)


def _is_response(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


@lru_cache(4096)
def jq_key(name: str) -> str:
    """Write a key of an object as jq does."""
    return f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f".[{json.dumps(name)}]"


def _places(record: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Give the paths of a record's values as jq writes them, and the values; rows by their ids are no values."""
    if not isinstance(record, dict):
        yield ".", record
        return
    for key, value in islice(record.items(), MOST_ROWS):
        at = f"{before}{jq_key(key)}"
        if not isinstance(value, dict):
            yield at, value
        elif len(value) < 2 or not _are_alike([*value.values()]):
            yield from _places(value, at)


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
