"""Long tables: one row a response."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.chosen_rows import chosen_rows, is_row_number, parts_of
from itembank.readers.columns import (
    ResponseNumbers,
    as_text,
    error_codes,
    examples,
    id_labels,
    numbers,
    optional_labels,
    response_numbers,
)
from itembank.readers.reading_specs import COST_COLUMNS, LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import (
    CONTENT,
    UNCHANGING,
    OtherColumns,
    ResponseRows,
    how_to_prefix,
    rename_model,
    row_problems,
)
from itembank.readers.table_files import NAME, NUMBER, Type
from itembank.responses.error_kinds import ERROR, NO_ANSWER, is_called
from itembank.responses.labels import Labels, first_in_group, named_pairs, number_of_pair
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.opening import Table
from itembank.responses.prompts import DIFFERS, JUDGE, PROMPT_SETTINGS, how_to_mix, settings_text
from itembank.responses.responses import MOST_TRIALS

AGREEMENT = 0.005
"""How far a response may be from n_correct / n_trials: responses are often written with two decimals."""


def settle_counts(
    values: Mapping[str, FloatArray | None],  # `response`, `n_trials`, `n_correct`, each (n_rows,); NaN where missing
    spec: ReadingSpec,  # `n_correct` counts only where the response column is the usual one
    source: str,
    pairs: Callable[[IntArray], list[str]],  # Names the first few of some rows
    problems: list[str],  # What is wrong is added to it
) -> tuple[FloatArray, IntArray | None]:
    """Find responses and trials of the rows, and say what cannot be.

    Responses, (n_rows,), are n_correct / n_trials where both are known, else as given, divided by the maximum; NaN
    where missing. Trials, (n_rows,), are 1 for a response of unknown trials, 0 where the response is missing; None when
    none are known.
    """
    given, trials = values["response"], values["n_trials"]
    correct = values["n_correct"] if spec.response_column == "response" else None
    known = next(one for one in values.values() if one is not None)
    nothing = np.full(known.shape, np.nan)
    given = nothing if given is None else given if spec.max_response == 1.0 else given / spec.max_response
    if trials is None and correct is None:
        return given, None
    trials, correct = nothing if trials is None else trials, nothing if correct is None else correct
    with np.errstate(invalid="ignore"):
        has_correct, has_trials, is_zero = ~np.isnan(correct), ~np.isnan(trials), trials == 0.0
        is_possible = (correct >= 0.0) & (correct <= trials)
        has_counts = has_correct & (trials >= 1.0) & is_possible
        ratio = np.divide(correct, trials, out=np.full(correct.shape, np.nan), where=has_counts)
        response = np.where(has_counts, ratio, given)
        is_count = (trials >= 0.0) & (trials == np.floor(trials)) & (trials < MOST_TRIALS)
        rules: tuple[tuple[str, BoolArray, Callable[[int], str]], ...] = (
            (
                "n_correct must come with n_trials",
                has_correct & ~has_trials,
                lambda row: f"{correct[row]:g} of unknown",
            ),
            (
                "n_correct must be a whole number from 0 to n_trials",
                has_correct & (trials >= 0.0) & (~is_possible | (correct != np.floor(correct))),
                lambda row: f"{correct[row]:g} of {trials[row]:g}",
            ),
            (
                "response must be n_correct / n_trials where all three are given",
                has_counts & (np.abs(given - ratio) > AGREEMENT),
                lambda row: f"{correct[row]:g} of {trials[row]:g}, response {given[row]:g}",
            ),
            (
                f"n_trials must be a whole number below {MOST_TRIALS:,}, and at least 1 where there is a response",
                # successes among zero trials are told by another rule
                (has_trials & ~is_count) | (is_zero & ~np.isnan(response) & ~(correct > 0.0)),
                lambda row: f"{trials[row]:g}",
            ),
        )
    for what, is_broken, text in rules:
        rows = np.flatnonzero(is_broken)
        if rows.size:
            where = [f"{pair} ({text(row)})" for pair, row in zip(pairs(rows), rows[:N_SHOWN].tolist(), strict=True)]
            problems.append(f"{what}, got {rows.size} rows with something else: {first_few(where, rows.size)}.")
    empty = np.flatnonzero(is_zero & np.isnan(response) & ~(correct > 0.0))
    if empty.size:
        names = first_few(pairs(empty), empty.size)
        warn(f"{source}: {empty.size} rows have zero trials and count as missing: {names}.", DataWarning)
    if not has_trials.any():
        return response, None
    shares = np.flatnonzero(~has_trials & (response > 0.0) & (response < 1.0))
    if shares.size:
        warn(
            f"{source}: {shares.size} responses between 0 and 1 have no n_trials, though others have, and count as "
            f"one trial each: {first_few(pairs(shares), shares.size)}. Give theirs, or read them apart.",
            DataWarning,
        )
    is_known = has_trials & (trials >= 1.0) & (trials < MOST_TRIALS)
    counted = np.where(is_known, trials, 1.0).astype(np.int64)
    return response, np.where(np.isnan(response), 0, counted)


def wanted_columns(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Those of a long table's columns that are read, and by which they are made and rows are chosen."""
    wanted = {spec.column(name) for name in LONG_COLUMNS} | {*spec.where}
    wanted |= {part for theirs in wanted for part in parts_of(theirs, columns)}
    return [name for name in columns if name in wanted]


def check_columns(source: str, columns: Sequence[str], spec: ReadingSpec) -> None:
    """Raise `DataError` when a long table has not the columns it needs."""
    needed = [name for name in ("model_id", "item_id") if not (name == "model_id" and spec.model_id)]
    absent = [spec.column(name) for name in needed if spec.column(name) not in columns]
    has_counts = {spec.column("n_correct"), spec.column("n_trials")} <= set(columns)
    response = spec.column("response")
    if response not in columns and (not has_counts or spec.response_column != "response"):
        absent.append(response)
    if absent:
        ours = [name for name in ("model_id", "item_id", "response") if spec.column(name) in absent]
        options = " ".join(f"--column {name}=..." for name in ours)
        how = remedy(f"columns={dict.fromkeys(ours, '...')}", options)
        one = remedy("model_id='...'", "--model-id NAME")
        raise DataError(
            f"{source}: a long table must have the columns model_id, item_id and response (or n_correct and "
            f"n_trials), got none called {shown(absent)}; there are {shown(columns, 12)}. If the file has "
            f"other names for them, add: {how}. A table of one model may get its id from {one}."
        )


def types_of_columns(spec: ReadingSpec) -> dict[str, Type]:
    """Say how columns of a long table, as the file calls them, are read; numbers as text where marks are asked for."""
    names = {spec.column(name): NAME for name in NAMES if name != "error"}  # messages come once each
    if spec.true_value is not None or spec.missing_values:
        return names
    return {spec.column(name): NUMBER for name in _NUMBER_COLUMNS if spec.column(name) not in spec.where} | names


def text_columns(spec: ReadingSpec) -> list[str]:
    """Columns that hold names, as the file calls them."""
    return [spec.column(name) for name in NAMES]


def rows_of_long(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a long table; `DataError` names every problem."""
    check_columns(table.source, table.frame.columns, spec)
    table = chosen_rows(table, spec)
    problems: list[str] = []
    column = spec.column("model_id")
    if column in table.frame.columns:
        models = id_labels(table, column, problems, name="model_id")
    else:
        name = pl.Series("name", [spec.model_id], dtype=pl.String)
        models = Labels(name, np.zeros(table.frame.height, dtype=np.int64))
    items = id_labels(table, spec.column("item_id"), problems, name="item_id")
    if models is None or items is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    pairs = partial(named_pairs, models, items)
    read = {name: _numbers(table, spec, name, pairs, problems) for name in _NUMBER_COLUMNS}
    values = {name: None if found is None else found.values[:, 0] for name, found in read.items()}
    response, trials = settle_counts(values, spec, table.source, pairs, problems)
    words = None if read["response"] is None else read["response"].errors
    values["words"] = None if words is None else words[:, 0].astype(np.float64)
    lost = _lost(table, spec, response, values, problems)
    if lost is not None:
        is_gone = (lost.n > 0) if values["n_errors"] is None or trials is None else (lost.n > 0) & (trials == 0)
        n_scored = int(np.count_nonzero(is_gone & (response > 0.0)))
        if n_scored:
            how = remedy("columns={'error': ''}", "--column error=")
            warn(
                f"{table.source}: {n_scored} rows have an error and a response above 0 all the same. Their answers are "
                f"lost; if such responses count, leave the errors out ({how}).",
                DataWarning,
            )
        response = np.where(is_gone, np.nan, response)
        trials = None if trials is None else np.where(is_gone, 0, trials)
    items, item_table = _item_table(table, spec, items, problems)
    judged = _judged(table, spec, (models, items), ~np.isnan(response), problems)
    item_table = item_table.with_columns(judged) if judged else item_table
    costs = {unit: cost for unit in COST_COLUMNS if (cost := values[unit]) is not None and not np.isnan(cost).all()}
    others = other_columns(table.frame, spec)
    rows = ResponseRows(
        *(table.source, models, items, response, trials, costs, _attempts(table, spec), lost),
        item_table=item_table,
        others=others,
    )
    problems.extend(row_problems(rows, max_response=spec.max_response, has_marks=True))
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    return rows


def _attempts(table: Table, spec: ReadingSpec) -> Labels | None:
    """Return labels of the attempts of one model at one item: seed, epoch, or both; None when neither is told."""
    seeds, epochs = (optional_labels(table, spec.column(name)) for name in ("seed", "epoch"))
    if seeds is None or epochs is None:
        return seeds or epochs
    pair = (seeds.index.astype(np.int64) + 1) * (epochs.n_names + 1) + epochs.index
    pair = np.where((seeds.index < 0) & (epochs.index < 0), -1, pair)
    return Labels.of(pl.Series("name", pair, dtype=pl.Int64).replace(-1, None).cast(pl.String))


def _lost(
    table: Table,
    spec: ReadingSpec,
    response: FloatArray,
    values: Mapping[str, FloatArray | None],  # as of `settle_counts`; `words`: kinds of errors in place of responses
    problems: list[str],
) -> LostAnswers | None:
    """Tell the lost attempts of each row, None where none was lost.

    A row tells them by its columns `error` and `n_errors`, or by a word in place of its response. A row that has no
    response and tells nothing lost it for no reason that is known, unless it has zero trials.
    """
    words, column = values["words"], spec.column("error")
    is_told = words is not None or values["n_errors"] is not None or column in table.frame.columns
    if not is_told and not np.isnan(response).any():
        return None
    kind = np.zeros(response.shape, dtype=np.int64) if words is None else words.astype(np.int64)
    told = error_codes(table.frame[column]) if column and column in table.frame.columns else kind
    if told is None:
        what = f"{column} must hold texts of errors, or true and false, got numbers"
        if "error" in spec.columns and not is_called(column, ("error",)):
            problems.append(f"{what}. Name the column that tells whether an answer was lost, or none.")
        else:
            warn(f"{table.source}: {what}; the column is left out.", DataWarning)
        told = kind
    kind = np.maximum(kind, told)
    trials, counted = values["n_trials"], values["n_errors"]
    each = np.ones(response.shape) if trials is None else np.clip(np.nan_to_num(trials, nan=1.0), 1.0, MOST_TRIALS)
    n = np.where(kind > 0, each, 0.0).astype(np.int64)
    if counted is not None:
        bad = ~(np.isnan(counted) | ((counted >= 0.0) & (counted == np.floor(counted)) & (counted < MOST_TRIALS)))
        if bad.any():
            problems.append(f"n_errors must be a whole number of at least 0, got {int(bad.sum())} rows with another.")
            return None
        n = np.nan_to_num(counted).astype(np.int64)
        kind = np.where(n == 0, 0, np.where(kind == 0, ERROR, kind))
    else:
        is_silent = np.isnan(response) & (kind == 0) & (True if trials is None else trials != 0.0)
        n, kind = np.where(is_silent, each, n).astype(np.int64), np.where(is_silent, NO_ANSWER, kind)
    return LostAnswers(n, kind) if n.any() else None


_NUMBER_COLUMNS = ("response", "n_trials", "n_correct", "n_errors", *COST_COLUMNS)


def _numbers(
    table: Table, spec: ReadingSpec, name: str, pairs: Callable[[IntArray], list[str]], problems: list[str]
) -> ResponseNumbers | None:
    """Return one column as numbers, None when absent."""
    column = spec.column(name)
    if column not in table.frame.columns:
        return None
    chosen = table.frame[[column]]
    is_response = name == "response"
    found = response_numbers(chosen, spec, table.source) if is_response else ResponseNumbers(*numbers(chosen))
    if found.bad:
        rows = found.bad[column].arg_true().to_numpy().astype(np.int64)
        named = zip(pairs(rows), examples(table.frame[column].gather(rows)), strict=True)
        where = first_few([f"{pair} = {value!r}" for pair, value in named], rows.size)
        problems.append(f"{column} must be a number, got {rows.size} values that are none: {where}.{found.advice}")
    return found


def _item_table(table: Table, spec: ReadingSpec, items: Labels, problems: list[str]) -> tuple[Labels, pl.DataFrame]:
    """Return scenario and subscenario of each item, and the items (renamed when scenarios are put before them)."""
    scenario = optional_labels(table, spec.column("scenario"))
    if spec.prefix_scenario:
        items = _prefixed(items, scenario, spec)
    columns = {"item_id": items.names}
    for name in UNCHANGING:
        labels = scenario if name == "scenario" else optional_labels(table, spec.column(name))
        if labels is None:
            continue
        first, differing = first_in_group(items.index, items.n_names, labels.index)
        if differing.size:
            problems.append(_two_scenarios(name, items, labels, first, differing))
        lookup = pl.concat([labels.names, pl.Series("name", [None], dtype=pl.String)])
        columns[name] = lookup.gather(np.where(first < 0, labels.n_names, first))
    return items, pl.DataFrame(columns)


def _judged(
    table: Table, spec: ReadingSpec, ids: tuple[Labels, Labels], is_answered: BoolArray, problems: list[str]
) -> list[pl.Series]:
    """Return metric and judge of each item as columns of the item table, as far as they are told.

    Several for one item are a problem, but where they part rows of one model and item: then all columns that do so are
    named together (`itembank.readers.telling_apart`).
    """
    (models, items), found = ids, []
    for name in ("metric", "judge"):
        labels = optional_labels(table, spec.column(name))
        if labels is None:
            continue
        index = np.where(is_answered, labels.index, -1)
        first, differing = first_in_group(items.index, items.n_names, index)
        pair = np.unique(number_of_pair(models, items), return_inverse=True)[1]
        in_pairs = first_in_group(pair, int(pair.max(initial=-1)) + 1, index)[1]
        lookup = pl.concat([labels.names, pl.Series("name", [None], dtype=pl.String)])
        values: list[str | None] = lookup.gather(np.where(first < 0, labels.n_names, first)).to_list()
        if differing.size and not (in_pairs.size or (name == "judge" and spec.allow_mixed_prompts)):
            number = int(items.index[differing[0]])
            several = f"{items.names[number]!r} has {values[number]!r} and {labels.at(differing[:1])[0]!r}"
            n_items = np.unique(items.index[differing]).size
            one, column = str(values[number]), spec.column(name)
            if name == "metric":
                how = remedy(f"metric=({one!r},)", f"--metric {shlex.quote(one)}")
            else:
                only = remedy(f"where={{{column!r}: {one!r}}}", f"--where {shlex.quote(f'{column}={one}')}")
                how = f"{only}\n{how_to_mix()}"
            problems.append(
                f"an item must have one {name} for all models, got more for {n_items} items: {several}. "
                f"To take one, add: {how}"
            )
        for number in np.unique(items.index[differing]).tolist():
            values[number] = DIFFERS
        values = [settings_text({JUDGE: value}) for value in values] if name == "judge" else values
        found.append(pl.Series(PROMPT_SETTINGS if name == "judge" else name, values, dtype=pl.String))
    return found


def other_columns(frame: pl.DataFrame, spec: ReadingSpec) -> OtherColumns | None:
    """Return the columns of a long table that tell neither ids, responses, attempts nor costs; None where none do."""
    names = other_names(frame.columns, spec)
    names = [name for name in names if not frame.schema[name].is_nested()]
    if not names:
        return None
    table = frame.select(pl.nth(*(frame.columns.index(name) for name in names)))
    return OtherColumns(tuple(names), our_names(frame.columns, spec), lambda some: as_texts(table, some))


def as_texts(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return some columns as text without blanks around it, null where they say nothing."""
    return pl.DataFrame({name: as_text(frame[name]).str.strip_chars().replace("", None) for name in names})


def other_names(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Columns of a long table, by their names, that tell neither ids, responses, attempts nor costs."""
    taken = {spec.column(name) for name in LONG_COLUMNS if name not in {"metric", "judge"}}
    taken |= {part for theirs in taken for part in parts_of(theirs, columns)}
    return [name for name in columns if name not in taken and not (is_row_number(name) or spec.drops(name))]


def our_names(columns: Sequence[str], spec: ReadingSpec) -> dict[str, str]:
    """Return what a table calls our columns, as far as it has them."""
    return {name: theirs for name in LONG_COLUMNS if (theirs := spec.column(name)) in columns}


def _two_scenarios(name: str, items: Labels, labels: Labels, first: IntArray, differing: IntArray) -> str:
    index, rows = np.unique(items.index[differing], return_index=True)
    order = np.argsort(rows)
    shown_items = index[order[:N_SHOWN]]
    others = labels.at(differing[rows[order[:N_SHOWN]]])
    named = zip(items.names.gather(shown_items), labels.names.gather(first[shown_items]), others, strict=True)
    if name == CONTENT:
        names = shown(items.names.gather(shown_items).to_list())
        return f"an item must ask the same in all rows, got another content for {index.size} items: {names}."
    found = [f"{item!r} in {one!r} and {other!r}" for item, one, other in named]
    return (
        f"an item must belong to one {name}, got more for {index.size} items: {first_few(found, index.size)}. "
        f"{how_to_prefix()}"
    )


def _prefixed(items: Labels, scenario: Labels | None, spec: ReadingSpec) -> Labels:
    """Items named 'scenario/item_id'."""
    if scenario is None:
        if spec.scenario is None:
            raise DataError("prefix_scenario needs a column scenario, or scenario='...' (--scenario).")
        return Labels(pl.Series("name", spec.scenario + "/" + items.names), items.index, "text")
    pair = (scenario.index.astype(np.int64) + 1) * items.n_names + items.index
    unique, first, index = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    prefixes = [spec.scenario or "", *scenario.names.to_list()]
    names = [
        f"{prefixes[code // items.n_names]}/{items.names[int(code % items.n_names)]}".removeprefix("/")
        for code in unique[order].tolist()
    ]
    return Labels(pl.Series("name", names, dtype=pl.String), place[index], "text")


NAMES = ("model_id", "item_id", "scenario", "subscenario", "seed", "epoch", "error", "metric", "judge")
"""Columns of a long table that are text whatever they hold."""


def rows_of_records(
    source: str,
    records: Sequence[Mapping[str, Any]],
    spec: ReadingSpec,
    *,
    models: Sequence[Mapping[str, Any]] = (),
    about_items: Sequence[str] = (),
) -> ResponseRows:
    """Make rows of records whose keys are columns of a long table, all the same; a value of None is missing.

    The choices of `spec` for tables have no say: the reader has made responses of [0, 1] already. The keys
    `about_items` tell of items, and the records `models` of models.
    """
    spec = replace(spec, columns={}, response_column="response", true_value=None, max_response=1.0)
    spec = replace(spec, where={}, metric=(), missing_values=())
    columns = []
    keys = [*records[0]] if records else ["model_id", "item_id", "response"]
    for name in (name for name in LONG_COLUMNS if name in keys):
        values = [one[name] for one in records]
        if name in NAMES:
            text = [None if value is None else str(value) for value in values]
            columns.append(pl.Series(name, text, dtype=pl.String))
        else:
            columns.append(pl.Series(name, values, dtype=pl.Float64))
    rows = rows_of_long(Table(source, pl.DataFrame(columns)), spec)
    items = [{name: one[name] for name in ("item_id", *about_items)} for one in records] if about_items else []
    rows = replace(
        rows,
        model_table=_with_known(rows.models.names.to_frame("model_id"), models),
        item_table=_with_known(rows.item_table, items),
    )
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _with_known(table: pl.DataFrame, records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Add what records tell to a table whose first column is the id; the first record of an id counts."""
    if not records:
        return table
    key = table.columns[0]
    known = pl.DataFrame(list(records), infer_schema_length=None, strict=False).unique(
        key, keep="first", maintain_order=True
    )
    new = [name for name in known.columns if name == key or name not in table.columns]
    return table.join(known.select(new), on=key, how="left", maintain_order="left")
