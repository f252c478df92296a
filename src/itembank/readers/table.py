"""Tables of results: long or wide, told from their columns."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, quoted, remedy, shown, unsaid, warn
from itembank.readers.chosen_rows import (
    UNNAMED,
    chosen_rows,
    chosen_where,
    is_row_number,
    parts_of,
    with_joined,
    with_joined_names,
)
from itembank.readers.columns import (
    COUNT_NAMES,
    NAMES_IN_TURN,
    USUAL_NAMES,
    as_text,
    counts_of,
    is_id,
    is_measure,
    likely,
    may_name_model,
    numbers,
    plain_name,
)
from itembank.readers.jq_programs import how_to_run, jq_key, program_for, row_program, summary_of
from itembank.readers.json_files import first_record, read_values
from itembank.readers.long_table import (
    VERDICTS,
    as_texts,
    check_columns,
    how_to_turn,
    other_names,
    our_names,
    rows_of_long,
    text_columns,
    types_of_columns,
    verdict_column,
    wanted_columns,
    warn_of_dollars,
)
from itembank.readers.reading_specs import LONG_COLUMNS, Format, ReadingSpec, how, how_to_name_model
from itembank.readers.rows import OtherColumns, ResponseRows, joined_source, rename_model
from itembank.readers.table_files import (
    FIRST_ROWS,
    Type,
    first_rows,
    no_header,
    parquet_columns,
    probable_header,
    read_table_file,
)
from itembank.readers.telling_apart import kind_of
from itembank.readers.wide_table import (
    ANSWERS,
    GIVEN_ANSWERS,
    HIGHEST,
    OF_THINGS,
    RIGHT_ANSWERS,
    WIDE_ITEMS,
    how_to_compare,
    how_to_list,
    rows_of_wide,
    things_of,
)
from itembank.responses.error_kinds import (
    ERROR_COLUMNS,
    FLAG_COLUMNS,
    STATUS_COLUMNS,
    is_called,
    is_error_word,
    is_flag,
    is_of_run,
)
from itembank.responses.opening import Kind, Table, file_kind, kind_by_name, name_without_ending
from itembank.tables import plural

LAYOUTS: tuple[Format, ...] = ("long", "wide-models", "wide-items")
WIDE_COLUMNS = ("model_id", "item_id", "scenario", "subscenario")
"""Columns of ours that a wide table may have."""
JUDGED = {
    "metric": ("metric", "metricname"),
    "judge": tuple(name + end for name in ("judge", "grader") for end in ("", "name", "model", "id")),
    "error": ("error",),
}
"""The same of columns that a long table need not have."""
PERSONS = ("id", "item", "resp")
"""Columns of the Item Response Warehouse, where `id` is a person."""


def table_rows(path: Path, spec: ReadingSpec) -> ResponseRows:
    """Read one table file, long or wide; a long one that names no model is of one, which is called as the file."""
    try:
        return _rows_of_file(path, spec)
    except DataError as error:
        advice = _of_objects(path, spec)
        if not advice:
            raise
        raise DataError(f"{path}: {advice}") from error


def _rows_of_file(path: Path, spec: ReadingSpec) -> ResponseRows:
    seen: dict[str, None] = {}  # all columns, of which JSON may have further ones in each block

    def keep(columns: Sequence[str]) -> Sequence[str]:
        seen.update(dict.fromkeys(columns))
        kept, known, usual, layout = _understood(columns, spec, path)
        if layout != "long":
            return kept
        check_columns(str(path), known, usual)
        return wanted_columns(kept, usual)

    def types(columns: Sequence[str]) -> Mapping[str, Type]:
        _, known, usual, layout = _understood(columns, spec, path)
        return types_of_columns(known, usual) if layout == "long" else {}

    table = read_table_file(path, keep=keep, text=text_columns(spec), types=types)
    _, known, usual, layout = _understood(table.frame.columns, spec, path)
    one = of_one_model(path, known, spec)
    if layout == "long" and not spec.names_response:
        columns = [name for name in seen if not spec.drops(name)]
        _check_beside(table.source, columns, usual, lambda names: first_rows(path, names).frame)
    if usual != one and file_kind(path) == "json":  # ids are to be text, whatever they are called
        table = read_table_file(path, keep=keep, text=text_columns(usual))
    if one is spec:
        return replace(_with_others(rows_of_table(table, spec), path, table, spec), columns=tuple(seen))
    # then it has more models, in a column by another name
    if with_joined(table, usual).frame[usual.column("item_id")].is_duplicated().any():
        check_columns(table.source, columns_of(path), replace(usual, model_id=None))
    if usual.column("response") != "response" and not spec.names_response:
        _check_is_of_one(path, usual)
    rows = rename_model(_with_others(rows_of_table(table, one), path, table, one), str(one.model_id))
    return replace(rows, columns=tuple(seen), file=path)


TOTALS = ("total", "totaltests", "ntests", "numtests", "ntotal", "numtotal", "totalpoints")
"""What may be called so, and else what a right or wrong answer took."""
COUNTING = re.compile(
    r"(?:is)?(?:valid|latest|((?:deleted|excluded|invalid(?:ated)?|superseded|archived|skipped|ignored)(?:at|on)?))"
)
"""What tells whether a row counts, or (in a group) whether or when it was taken back; in plain words."""
VAGUE = ("response", *NAMES_IN_TURN[1]["response"])
"""What others call a response, or what a model answered."""


def rows_in_memory(table: Table, spec: ReadingSpec, levels: AbstractSet[str] = frozenset()) -> ResponseRows:
    """Make rows of a table in memory, and look at the columns beside as in a file.

    `levels` are columns that were its index: they may be ids, but are no responses of a wide table.
    """
    columns, _, usual, layout = _understood(table.frame.columns, spec)
    if layout != "long":
        ids = {part for name in WIDE_COLUMNS for part in parts_of(usual.column(name), columns) or (usual.column(name),)}
        unread = levels - ids - {*spec.where} if layout else ()
        return rows_of_table(replace(table, frame=table.frame[[one for one in columns if one not in unread]]), spec)
    if not spec.names_response:
        _check_beside(table.source, columns, usual, lambda names: table.frame[[*names]].head(FIRST_ROWS))
    rows = rows_of_table(table, spec)
    _warn_of_status(rows, columns, usual)
    return rows


def _check_beside(
    source: str, columns: Sequence[str], spec: ReadingSpec, first: Callable[[AbstractSet[str]], pl.DataFrame]
) -> None:
    """Look at what is beside a response that nobody chose: the highest mark of each row, or the right answers.

    `first` gives the first rows of some columns.

    `DataError` where responses are marks of another number than 1; a `DataWarning` where a vague name may be that of a
    model's own answers, which the right answers have the values of.
    """
    response = spec.column("response")
    has_options = any(kind_of(name) == "option" for name in columns)
    for name in (n for n in columns if n not in {response, *spec.where}):
        told = COUNTING.fullmatch(plain_name(name))
        if told is None and not (has_options and kind_of(name) == "choice"):
            continue
        values = first({name, *columns[:2]})[name]  # alone its empty lines would be none
        found, bad = numbers(values.to_frame())
        is_flag, is_taken_back = not bad and {*found[:, 0].tolist()} == {0.0, 1.0}, told is not None and told[1]
        n_empty = int((as_text(values).fill_null("").str.strip_chars() == "").sum())
        if is_flag or (is_taken_back and 0 < n_empty < values.len()):
            place = found[:, 0].argmin() if is_taken_back else found[:, 0].argmax()
            kept = as_text(values)[int(place)] if is_flag else ""
            warn(
                f"{source}: {name!r} may tell which rows count, such as the answer option that was chosen. If so, add: "
                f"{how(where={name: kept})}",
                DataWarning,
            )
    _warn_of_error_texts(source, columns, first)
    _refuse_numbers(source, columns, response, first)
    tops, keys = ([n for n in columns if is_called(n, names)] for names in ((*HIGHEST, *TOTALS), RIGHT_ANSWERS))
    is_vague = plain_name(response) in VAGUE and verdict_column(columns, spec) is None
    is_score = is_vague or plain_name(response) in {"score", "probability"}
    beside = tops if len(tops) == 1 and spec.max_response == 1.0 else keys if len(keys) == 1 and is_score else []
    if not beside or response not in columns:
        return
    frame = first({response, *beside})
    texts = [as_text(frame[name]).str.to_lowercase() for name in (response, *beside)]
    own, other = (text.cast(pl.Float64, strict=False).fill_nan(None) for text in texts)
    at, at_other = jq_key(response), jq_key(beside[0])
    value = f"({at} | tonumber) / ({at_other} | tonumber)" if beside == tops else f"{at} == {at_other}"
    row = row_program(columns).rpartition("response: ")[0]
    program, alone = how(jq=f"{row}response: ({value})}}"), how(columns={"response": response})
    if beside == tops:
        unlike = frame.filter((other != 1.0) & own.is_not_null())
        are_marks = (own > 1.0).any() or (is_called(beside[0], HIGHEST) and (own % 1.0 == 0.0).all())
        if unlike.height and are_marks and (own <= other).all():
            raise DataError(
                f"{source}: {response!r} must be a share of 1, and {beside[0]!r} beside it may say of how many it is, "
                f"got {unlike[response][0]} and {unlike[beside[0]][0]}. To divide, add: {program}; if {response!r} "
                f"alone is the response, add: {alone}"
            )
    elif {*other.unique()} == {0.0, 1.0} and 2 * ((own > 0.0) & (own < 1.0)).sum() > own.len():
        chance = f"if ({at_other} | tonumber) == 1 then ({at} | tonumber) else 1 - ({at} | tonumber) end"
        warn(
            f"{source}: {beside[0]!r} is called as the right answers, 0 or 1. If {response!r} is the probability of 1, "
            f"add: {how(jq=f'{row}response: ({chance})}}')}; if not, add: {alone}",
            DataWarning,
        )
    elif is_vague and texts[0].n_unique() > 1 and {*texts[0].unique()} == {*texts[1].unique()}:
        warn(
            f"{source}: {beside[0]!r} is called as the right answers, and has the values of {response!r}. If "
            f"{response!r} is what a model answered, add: {program}; if not, add: {alone}",
            DataWarning,
        )


def _warn_of_error_texts(
    source: str, columns: Sequence[str], first: Callable[[AbstractSet[str]], pl.DataFrame]
) -> None:
    """Warn of outputs that are messages of a broken run, in the first rows, beside responses that count."""
    for name in (n for n in columns if is_called(n, (*GIVEN_ANSWERS, "answer", "completion", "modeloutput"))):
        texts = as_text(first({name})[name]).drop_nulls()
        if broken := [text for text in texts if is_error_word(text) and is_of_run(text)]:
            is_message = 'test("^(\\\\S+ )?\\\\S*(error|exception|time.?out)"; "i")'
            told = f'. + {{error: ({jq_key(name)} // "" | if {is_message} then . else null end)}}'
            warn(
                f"{source}: {plural(len(broken), 'row', 'have')} {shown(sorted({*broken}), 2)} as {name!r}, and their "
                f"responses count all the same. If these answers were lost, add: {how(jq=told)}",
                DataWarning,
            )


def _refuse_numbers(
    source: str, columns: Sequence[str], response: str, first: Callable[[AbstractSet[str]], pl.DataFrame]
) -> None:
    """Raise `DataError` where a verdict may be a number of right ones, for a number of wrong ones is beside it."""
    wrong = [n for n in columns if is_called(n, ("failed", "incorrect", "wrong")) and is_called(response, VERDICTS)]
    if len(wrong) == 1:
        counts, bad = numbers(first({response, *wrong}))
        if not bad and (counts > 1.0).any() and (counts.min(axis=1) > 0.0).any():
            at, at_wrong = jq_key(response), jq_key(wrong[0])
            share = f"response: (({at} | tonumber) / (({at} | tonumber) + ({at_wrong} | tonumber)))}}"
            raise DataError(
                f"{source}: {response!r} must be right or wrong, and may be a number beside {wrong[0]!r}. To divide by "
                f"the sum of both, add: {how(jq=row_program(columns).rpartition('response: ')[0] + share)}; if "
                f"{response!r} alone is the response, add: {how(columns={'response': response})}"
            )


def _check_is_of_one(path: Path, usual: ReadingSpec) -> None:
    """Raise `DataError` where several columns are right or wrong as the response is, warn of one: it may be a model."""
    response, columns = usual.column("response"), columns_of(path)
    unread = [name for name in other_names(columns, usual) if not (OF_THINGS.match(name) or is_called(name, ANSWERS))]
    frame = first_rows(path, {*unread, response}).frame
    texts = {one.name: {*as_text(one).drop_nulls().str.to_lowercase().unique()} for one in frame}
    alike = [name for name, own in texts.items() if own and (own <= {"0", "1"} or own <= {"true", "false"})]
    others = [name for name in alike if name != response]
    if not others or response not in alike:
        return
    may = "may be models" if len(others) > 1 else "may be a model, which is not read"
    words = f"{path}: {shown(others)} {may}: right or wrong as {response!r} is"
    advice = f"If columns are models, add: {remedy(*WIDE_ITEMS)}"
    if len(others) > 1:
        own = how(columns={"response": response})
        raise DataError(f"{words}. {advice}; if {response!r} alone is the response, add: {own}")
    warn(f"{words}. {advice}", DataWarning)


def named_by_files(parts: Sequence[ResponseRows]) -> list[ResponseRows]:
    """Call models that no column names as their files; as their folders, where files of several have one name.

    Files of one name may be of one model, too. Folders go before where they tell all such files apart; else whichever
    leaves no model with two answers to an item. `DataError` where neither does.
    """
    own = {part.file: part for part in parts if part.file is not None}
    if not own:
        return [*parts]
    stems = {file: name_without_ending(file) for file in own}
    n_alike = Counter(stems.values())
    alike = [file for file, name in stems.items() if n_alike[name] > 1]
    folders = _folders(alike)
    tells_all = len({*folders.values()}) == len(alike)
    names = next(
        (one for one in ((folders,) if tells_all else ({}, folders)) if _is_apart(alike, stems | one, own)), None
    )
    if names is None:
        raise DataError(
            f"tables of one model that no column names must differ in the name of the file, or of its folder, got "
            f"{len(alike)} that do not: {shown(alike)}. If folders are models, and files tasks, add: "
            f"{how(jq='. + {model_id: $folder, scenario: $stem}', prefix_scenario=True)}\nIf not, rename them, or add "
            f"a column model_id; if all are of one model, add: {how_to_name_model()}"
        )
    stems |= names
    told = shown([*dict.fromkeys(stems.values())])
    by_folder = f" Files of one name are called as their folders; if all are of one, add: {how_to_name_model()}"
    one = "one" if len(own) == 1 else "one in each file"
    columns = dict.fromkeys(name for part in own.values() for name in part.columns if may_name_model(name))
    by_column = "".join(f" If {name!r} does, add: {how(columns={'model_id': name})}" for name in [*columns][:1])
    warn(
        f"{joined_source([*own])}: no column names a model, so that these are the results of {one}: {told}."
        f"{by_folder * bool(names)}{by_column}",
        DataWarning,
    )
    return [part if part.file is None else rename_model(part, stems[part.file]) for part in parts]


def _folders(files: Sequence[Path]) -> dict[Path, str]:
    """Return the names of the nearest folders of files that tell most of them apart; none where they tell nothing."""
    above = [[one.name for one in file.absolute().parents][:-1] for file in files]
    best = max(zip(*above, strict=False), key=lambda names: len({*names}), default=())
    return dict(zip(files, best, strict=True)) if len({*best}) > 1 else {}


def _is_apart(files: Sequence[Path], names: Mapping[Path, str], rows: Mapping[Path, ResponseRows]) -> bool:
    """Whether no two of these files with one name have an item in common."""
    items = [(names[file], item) for file in files for item in rows[file].items["item_id"]]
    return len({*items}) == len(items)


def _with_others(rows: ResponseRows, path: Path, table: Table, spec: ReadingSpec) -> ResponseRows:
    """Add the columns of a long table that were not read, to be read where rows repeat."""
    columns, _, usual, layout = _understood(columns_of(path), spec)
    if layout != "long":
        return rows
    names, read = other_names(columns, usual), table.frame.columns  # without its rows
    warn_of_dollars(table.source, names, columns, usual)

    def load(some: Sequence[str]) -> pl.DataFrame:
        first = first_rows(path, some).frame
        # what has more than a hundred characters on average is a text, and tells no rows apart
        lengths = {one.name: as_text(one).str.len_chars() for one in first if not one.dtype.is_nested()}
        short = [name for name, own in lengths.items() if own.sum() <= 100 * own.count()]
        kept = {*read, *short}
        with unsaid(DataWarning):  # of what was said before
            again = read_table_file(path, keep=lambda every: [name for name in every if name in kept], text=[*kept])
            frame = chosen_rows(with_joined(again, usual), usual).frame
        known = as_texts(frame, short if frame.height == rows.n_rows else [])  # else lines that tell nothing were left
        nothing = pl.Series([None] * rows.n_rows, dtype=pl.String)
        return pl.DataFrame({name: known[name] if name in known.columns else nothing for name in some})

    rows = replace(rows, others=OtherColumns(tuple(names), our_names(read, usual), load))
    _warn_of_status(rows, columns, usual)
    return rows


def _warn_of_status(rows: ResponseRows, columns: Sequence[str], spec: ReadingSpec) -> None:
    """Warn of rows whose response counts, and which another column says have lost their answers."""
    if rows.others is None or spec.column("error") in columns or "error" in spec.columns:
        return
    # words of columns that nobody reads may tell rows that lost their answers; errors of other kinds may be those of a
    # wrong answer
    tests = ((STATUS_COLUMNS, is_error_word), (ERROR_COLUMNS, is_of_run), (FLAG_COLUMNS, is_flag))
    tests_of = {name: is_flag for name in rows.others.names if plain_name(name).endswith("error")}
    tests_of |= {name: test for name in rows.others.names for called, test in tests if is_called(name, called)}
    for column in rows.others.load([*tests_of]) if tests_of else ():
        is_error = tests_of[column.name]
        words = [word for word in column.unique(maintain_order=True).drop_nulls().to_list() if is_error(word)]
        n_rows = int((column.is_in(words) & rows.frame["response"].is_not_nan()).sum())
        if n_rows:
            warn(
                f"{rows.source}: {plural(n_rows, 'row', 'have')} {shown(words)} as {column.name!r}, and their "
                f"responses count all the same. If their answers were lost, add: {how(columns={'error': column.name})}",
                DataWarning,
            )


def scenario_columns(path: Path, spec: ReadingSpec) -> tuple[list[str], list[str]]:
    """Columns of a long table that are not read, and those of them that may be scenarios: each groups the items.

    The first part of the file tells. None where a scenario is told.
    """
    columns, known, usual, layout = _understood(columns_of(path), spec, path)
    told = {*usual.where, *usual.columns.values(), "metric", "judge"}
    about = (*STATUS_COLUMNS, *VERDICTS, *ANSWERS)
    others = [name for name in other_names(columns, usual) if name not in told and not is_called(name, about)]
    if layout != "long" or usual.column("scenario") in known or not others:
        return [], []
    frame = with_joined(first_rows(path, {*wanted_columns(columns, usual), *others}), usual).frame
    items = as_text(frame[usual.column("item_id")])
    model = usual.column("model_id")
    n_models = frame[model].n_unique() if model in frame.columns else 1
    return others, [name for name in others if groups(frame[name], items, is_of_one=n_models == 1)]


def groups(column: pl.Series, items: pl.Series, *, is_of_one: bool) -> bool:
    """Whether a column may say which scenario an item is in.

    Where every item comes once, anything seems to, and the name decides.
    """
    is_told, is_text = kind_of(column.name) == "task", column.dtype == pl.String and not is_of_one
    if column.dtype.is_nested() or column.dtype.is_float() or not (is_told or is_text):
        return False
    of_item = pl.DataFrame({"item": items, "value": as_text(column)}).unique()
    n_values, n_items = of_item["value"].n_unique(), items.n_unique()
    words = of_item["value"].drop_nulls()
    is_word = is_told or bool((words.str.len_chars() > 1).all() and words.str.contains("[A-Za-z]").all())
    return of_item.height == n_items and 2 <= n_values <= min(100, n_items // 2) and is_word


def of_one_model(path: Path, columns: Sequence[str], spec: ReadingSpec) -> ReadingSpec:
    """Return the spec with the file's name for the model, where a table names items, one response and no model."""
    is_told = spec.model_id is not None or "model_id" in {*spec.columns, *_usual(columns, spec)}
    if is_told or any(plain_name(name) in USUAL_NAMES["model_id"] for name in columns):
        return spec
    one = replace(spec, model_id=name_without_ending(path))
    usual = with_usual_names(columns, one)
    return one if layout_of(columns, usual) == "long" and usual.column("item_id") in columns else spec


def rows_of_table(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a table, long or wide; columns with usual names for model, item and response are told."""
    every = tuple(table.frame.columns)
    table = replace(table, frame=table.frame[[name for name in every if not spec.drops(name)]])
    parts = [part for theirs in spec.columns.values() for part in parts_of(theirs, table.frame.columns)]
    table = with_joined(table, spec)
    usual = with_usual_names(table.frame.columns, spec)
    if usual is not spec:
        taken = [f"{theirs!r} as {ours}" for ours, theirs in usual.columns.items() if ours not in spec.columns]
        others = _others_read([name for name in table.frame.columns if name not in parts], usual)
        warn(f"{table.source}: read the column {', '.join(taken)}.{others}", DataWarning)
    spec = _with_row_names(table, usual)
    layout = layout_of(table.frame.columns, spec)
    if layout is None:
        ids = {ours: likely(every, ours) for ours in ("model_id", "item_id")}
        by_model, by_item = (how(columns={ours: theirs}) for ours, theirs in ids.items())
        program = remedy("ReadingSpec(jq='...')", "--jq PROGRAM")
        nested = f" Nested JSON is read by a program of jq: {program}." if ".json" in table.source else ""
        advice = no_header(table.frame.columns)
        if not advice or table.frame.width > 1:  # items may be called by numbers
            is_likely = "..." not in ids.values()
            both = f" If {ids['model_id']!r} is the model of a row, and {ids['item_id']!r} its item, add: "
            advice += (
                _almost_long(table.frame, spec)
                or (is_likely and both + how(columns=ids))
                or (
                    f" Say which column names the model ({by_model}) where rows are models, which names the item "
                    f"({by_item}) where rows are items, and both where a row is one response."
                    f"{how_to_compare(table.frame)}{nested}"
                )
            )
        raise DataError(
            f"{table.source}: there must be a column model_id or item_id (both in a long table), got columns "
            f"{shown(table.frame.columns, 12)}.{advice}"
        )
    if layout == "long":
        return replace(rows_of_long(table, spec), columns=every)
    check_wide(table.source, spec)
    table = chosen_where(_without_row_numbers(table, spec), spec)
    unread = {*parts, *spec.where} - {spec.column(name) for name in WIDE_COLUMNS}
    kept = [name for name in table.frame.columns if name not in unread]  # drop('*') would leave nothing
    return replace(
        rows_of_wide(replace(table, frame=table.frame[kept]), spec, is_of_models=layout == "wide-models"), columns=every
    )


def _others_read(columns: Sequence[str], spec: ReadingSpec) -> str:
    """Say what the columns of a wide table but its ids are read as; empty for a long one."""
    layout = layout_of(columns, spec)
    if layout in {"long", None}:
        return ""
    taken = {*spec.where, *(spec.column(name) for name in WIDE_COLUMNS)}
    others = [name for name in columns if name not in taken and not is_row_number(name)]
    return f" Other columns are read as {'items' if layout == 'wide-models' else 'models'}: {shown(others)}."


def _almost_long(frame: pl.DataFrame, spec: ReadingSpec) -> str:
    """Say which column is lacking of a long table that has the others under usual names; empty where several are."""
    columns = frame.columns
    known = _usual(columns, spec)
    lacking = [ours for ours in USUAL_NAMES if ours not in known]
    if len(lacking) != 1:
        return ""
    taken = {*known.values(), *_judged(columns, spec, {*known.values()}).values()}
    about = (*STATUS_COLUMNS, *ERROR_COLUMNS, *ANSWERS, *LONG_COLUMNS)
    rest = [name for name in columns if name not in {*taken, *LONG_COLUMNS} and not is_called(name, about)]
    rest = [name for name in rest if not is_measure(name) and plain_name(name) not in COUNT_NAMES["n_trials"]]
    ids = [*filter(is_id, rest)] if lacking == ["item_id"] else []
    theirs = (ids or rest)[0] if len(ids) == 1 or len(rest) == 1 else "..."
    is_told = ", ".join(f"{name!r} is {ours}" for ours, name in known.items() if name)
    named = f"and another column {lacking[0]}, add: {how(columns={lacking[0]: theirs})}"
    if lacking == ["model_id"] and not rest:
        named = f"and all are of one model, add: {how_to_name_model()}"
    if lacking == ["response"] and theirs in columns and (turn := how_to_turn(frame, theirs, is_told=False)):
        named = f"and another column {lacking[0]}. {turn}"
    if lacking == ["response"] and (counts := counts_of(columns)):
        named = (
            f"and {counts['n_correct']!r} counts what is right of {counts['n_trials']!r}, add: {how(columns=counts)}"
        )
    more = (how_to_compare(frame) or how_to_list(columns)) if lacking == ["response"] else ""
    if lacking == ["item_id"] and (model := known["model_id"]) and frame[model].is_unique().all():
        more = "Each model has one row: if that is its score on a whole benchmark, bring the results of each item."
    return f" If a row is one response, {is_told}, {named}\n{more.lstrip()}".rstrip()


def _with_row_names(table: Table, spec: ReadingSpec) -> ReadingSpec:
    """Take the first column, which has no name of its own, for the ids of the rows where no other column is."""
    first = table.frame.columns[0]
    ours = "item_id" if spec.format == "wide-items" else "model_id"
    is_told = "model_id" in spec.columns or "item_id" in spec.columns
    if not is_row_number(first) or is_told or layout_of(table.frame.columns, spec) not in {None, spec.format}:
        return spec
    if spec.column(ours) in table.frame.columns or not {"model_id", "item_id"}.isdisjoint(table.frame.columns):
        return spec
    other = "" if spec.format == "wide-items" else f" If a row is an item, add: {remedy(*WIDE_ITEMS)}."
    which = f"the first column, {first!r}" if first else "the first column, which has no name"
    found = replace(spec, columns={**spec.columns, ours: first})
    warn(f"{table.source}: read {which}, as {ours}.{other}{_others_read(table.frame.columns, found)}", DataWarning)
    return found


def _without_row_numbers(table: Table, spec: ReadingSpec) -> Table:
    """Leave out a column without a name of its own that numbers the rows, or is empty, as after a comma too many."""
    told = {spec.column(name) for name in WIDE_COLUMNS}
    nameless = [name for name in table.frame.columns if name not in told and is_row_number(name)]
    filled = [name for name in nameless if not table.frame[name].is_null().all()]
    table = replace(table, frame=table.frame.drop([name for name in nameless if name not in filled]))
    rows = np.arange(table.frame.height)
    found = {name: table.frame[name].cast(pl.Int64, strict=False).fill_null(-1).to_numpy() for name in filled}
    numbering = [name for name, own in found.items() if any(np.array_equal(own, rows + first) for first in (0, 1))]
    if unnamed := [name for name in filled if name not in numbering and UNNAMED.fullmatch(name)]:
        advice = f"Name those that hold something; to leave them out, add: {how(drop_columns=tuple(unnamed))}"
        raise DataError(f"{table.source}: every column must have a name, got {len(unnamed)} without. {advice}")
    if not numbering:
        return table
    warn(f"{table.source}: left out the column {shown(numbering)}, which numbers the rows.", DataWarning)
    return replace(table, frame=table.frame.drop(numbering))


def holds_responses(path: Path, kind: Kind, spec: ReadingSpec) -> bool:
    """Whether a file is a table of responses: a long one by its columns, a wide one by its first rows too."""
    columns = columns_of(path)
    if is_long_table(path, columns, spec):
        return True
    _, known, usual, layout = _understood(columns, spec)
    ids = [usual.column("model_id"), usual.column("item_id")]
    others = [name for name in known if name not in ids]
    if layout in {None, "long"} or things_of(others, "model_id" if ids[0] in known else "item_id") == others:
        return False
    unread = {*spec.where} - {spec.column(name) for name in WIDE_COLUMNS}
    every = replace(spec, where={}, drop_columns=(*spec.drop_columns, *unread))  # the first rows need not be chosen
    try:
        first = first_rows(path, text=text_columns(usual))
    except DataError:
        return True  # its reader says what is wrong with it
    try:
        if kind == "json" and usual is not spec and first.frame.height == 1:  # settings: {"model": "a", "top_p": 1}
            return False
        with unsaid(DataWarning):
            rows_of_table(replace(first, frame=first.frame.head(1000)), every)
    except DataError:
        return _holds_nearly(first.frame.head(1000), replace(usual, drop_columns=every.drop_columns))
    return True


def _holds_nearly(frame: pl.DataFrame, spec: ReadingSpec) -> bool:
    """Whether all columns of a wide table but a few hold responses, so that it is one with a slip."""
    told = {spec.column(name) for name in WIDE_COLUMNS}
    names = [name for name in frame.columns if name not in told and not spec.drops(name)]
    values, bad = numbers(frame[names])
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero(((values < 0.0) | (values > spec.max_response)).any(axis=0))
    n_others = len({*bad, *(names[place] for place in outside.tolist())})
    fewest, most_others = 10, 0.1
    return len(names) >= fewest and n_others <= most_others * len(names)


def is_long_table(path: Path, columns: Sequence[str], spec: ReadingSpec) -> bool:
    """Whether these are the columns of a long table, which may be of one model."""
    _, known, usual, layout = _understood(columns, spec, path)
    if layout != "long":
        return False
    try:
        check_columns(str(path), known, usual)
    except DataError:
        return False
    return True


def columns_of(path: Path) -> list[str]:
    """Names of the columns of a file, or the keys of its first record."""
    kind = kind_by_name(path)
    if kind == "csv":
        return probable_header(path)
    return list(first_record(path)) if kind == "json" else parquet_columns(path)


def check_wide(source: str, spec: ReadingSpec) -> None:
    """Raise `DataError` where choices were made that only long tables are read by."""
    unread = [name for name in spec.columns if name not in WIDE_COLUMNS]
    if unread:
        out = remedy("columns=...", "--column")
        raise DataError(f"{source}: a wide table has no column {shown(unread)} of its own. Leave it out of {out}.")
    if spec.prefix_scenario:
        join = how(columns={"item_id": f"{spec.column('scenario')}+{spec.column('item_id')}"})
        raise DataError(
            f"{source}: prefix_scenario is for long tables, and this one is wide. If a row is an item, give instead: "
            f"{join}"
        )


def with_usual_names(columns: Sequence[str], spec: ReadingSpec) -> ReadingSpec:
    """Return the spec with what a table calls model, item and response, where it has one usual name for what it lacks.

    The spec itself where nothing is to be added: where the columns have our names, or where no layout would follow.
    """
    known = _usual(columns, spec)
    found = {ours: theirs for ours, theirs in known.items() if theirs and theirs != spec.column(ours)}
    if spec.format in {"wide-models", "wide-items"}:
        key = "model_id" if spec.format == "wide-models" else "item_id"
        return replace(spec, columns={**spec.columns, key: found[key]}) if key in found else spec
    is_long = known.keys() == USUAL_NAMES.keys()
    is_wide = [*found] in (["model_id"], ["item_id"]) and layout_of(columns, spec) is None
    if not (is_long or is_wide):
        return spec
    if is_long:
        found |= _judged(columns, spec, {*found.values()})
    return replace(spec, columns={**spec.columns, **found}) if found else spec


def _usual(columns: Sequence[str], spec: ReadingSpec) -> dict[str, str]:
    """Return what a table calls model, item and response: by its own names, or the one usual name that it has.

    Empty for what is told without a column of that name.
    """
    named = {*spec.columns, *(["response"] if spec.names_response else [])}
    has = {ours: ours in named or spec.column(ours) in columns for ours in USUAL_NAMES}
    has["model_id"] |= spec.model_id is not None
    has["response"] |= {spec.column("n_correct"), spec.column("n_trials")} <= set(columns)
    found = {ours: spec.column(ours) if spec.column(ours) in columns else "" for ours in USUAL_NAMES if has[ours]}
    plain = {name: plain_name(name) for name in columns}
    for ours in USUAL_NAMES:
        turns = ([name for name in columns if plain[name] in names.get(ours, ())] for names in NAMES_IN_TURN)
        like = next(filter(None, turns), [])
        ids = [name for name in like if plain[name].endswith("id")]  # question_id goes before question
        if not has[ours] and 1 in {len(like), len(ids)}:
            found[ours] = (like if len(like) == 1 else ids)[0]
    if "model_id" not in found and {*PERSONS} <= {*columns}:
        found["model_id"] = "id"
    return {ours: found[ours] for ours in USUAL_NAMES if ours in found}


def _judged(columns: Sequence[str], spec: ReadingSpec, taken: AbstractSet[str]) -> dict[str, str]:
    """Return what a long table calls metric, judge and error, where a column is called so and none has our name."""
    taken = {*taken, *spec.columns.values(), spec.response_column}
    found = {}
    for ours, usual in JUDGED.items():
        like = [name for name in columns if plain_name(name) in usual and name not in taken]
        if ours not in spec.columns and ours not in columns and len(like) == 1:
            found[ours] = like[0]
    return found


def _of_objects(path: Path, spec: ReadingSpec) -> str:
    """Say by which program of jq rows of JSON that hold objects are read; empty where they hold none, or are long."""
    try:
        values = next(filter(None, read_values(path)), []) if file_kind(path) == "json" else []
    except DataError:
        return ""
    records = (values[0] if len(values) == 1 and isinstance(values[0], list) else values)[:1000]
    if not all(isinstance(one, dict) for one in records):
        return ""
    ours = str(records[0].get("schema_version", "")) if records else ""
    if ours.partition(".")[0] == "itembank":
        return f"is what itembank wrote ({quoted(ours)}), and no results. Give the answers of models to items."
    columns = [*dict.fromkeys(name for one in records for name in one if not spec.drops(name))]
    held = [name for name in columns if any(_has_objects(one.get(name)) for one in records)]
    if not held or layout_of(columns, with_usual_names(columns, spec)) == "long":
        return ""
    program, metrics = program_for(values)
    if not program:
        return f"holds no answers of models to items{summary_of(metrics)}."
    keys = re.search(r"\.key as (\$\w+) \| \.value \| to_entries\[\] \| \.key as (\$\w+)", program)
    others = "models" if keys and keys[2] == "$model" else "items"
    more = f" (if the outer keys are {others}, exchange as {keys[1]} and as {keys[2]})" if keys else ""
    if re.search(r"select\(\S+\)", program):
        more += " Its rows are options of questions, of which it takes those that were chosen."
    return (
        f"rows of a table hold values, and these hold objects: {shown(held)}. A program of jq makes rows of them: "
        f"{how_to_run(program, path)}{more}"
    )


def _has_objects(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict | list))


def _understood(
    columns: Sequence[str], spec: ReadingSpec, path: Path | None = None
) -> tuple[list[str], list[str], ReadingSpec, Format | None]:
    """Return the columns that are not dropped; these and what is made of them; the spec with usual names; the layout.

    The table in a file (`path`) may be of one model.
    """
    kept = [name for name in columns if not spec.drops(name)]
    known = with_joined_names(kept, spec)
    usual = with_usual_names(known, spec if path is None else of_one_model(path, known, spec))
    return kept, known, usual, layout_of(known, usual)


def layout_of(columns: Sequence[str], spec: ReadingSpec) -> Format | None:
    """Which of the layouts a table with these columns has; None when none."""
    if spec.format in LAYOUTS:
        return spec.format
    if spec.response_column != "response":
        return "long"
    has_model, has_item = spec.column("model_id") in columns, spec.column("item_id") in columns
    has_counts = {spec.column("n_correct"), spec.column("n_trials")} <= set(columns)
    if (has_model and has_item) or ((has_model or has_item) and (spec.column("response") in columns or has_counts)):
        return "long"
    if has_item:
        return "wide-items"
    return "wide-models" if has_model else None
