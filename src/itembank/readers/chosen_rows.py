"""Rows of a long table as its reader takes them: columns joined, lists unfolded, some rows chosen."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, did_you_mean, quoted, remedy, shown, warn
from itembank.readers.columns import as_text
from itembank.readers.reading_specs import LONG_COLUMNS, ReadingSpec, choices_for, how
from itembank.readers.refusals import is_wanted
from itembank.readers.telling_apart import kind_of
from itembank.responses.error_kinds import is_called
from itembank.responses.opening import Table
from itembank.responses.responses import DEFAULT_SCENARIO

PLUS = "+"
ROW_NAMES = ("", "...1", "X", "rownames", "row.names", "index", "__index_level_0__")
TIMES = (
    *("timestamp", "tstamp", "datetime", "date", "rundate", "created", "createdat", "started", "startedat"),
    *("starttime", "finished", "finishedat", "completedat", "ended", "endedat", "endtime", "updated", "updatedat"),
)
"""What columns of a point in time are called, without case, blanks and underscores; `time` is often how long."""
PAIR = ("model_id", "item_id", "scenario", "metric", "judge")
"""Columns that tell of which response a row is an attempt."""
UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)?")
SEPARATORS = {"item_id": "/", "scenario": "/", "subscenario": "/"}
"""What stands between the values of columns that make one; elsewhere " + "."""


def parts_of(theirs: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that 'agent+model' names, where no column has that very name; none for another text."""
    if PLUS not in theirs or theirs in columns:
        return []
    parts = [one.strip() for one in theirs.split(PLUS)]
    return parts if set(parts) <= set(columns) else []


def with_joined_names(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Return the names of columns, with those that the spec makes of several."""
    made = [theirs for theirs in spec.columns.values() if parts_of(theirs, columns)]
    return [*columns, *dict.fromkeys(made)]


def is_row_number(column: str) -> bool:
    """Whether a column has a name that a program gives to the numbers, or names, of rows which have no column."""
    return column in ROW_NAMES or bool(UNNAMED.fullmatch(column))


def with_joined(table: Table, spec: ReadingSpec) -> Table:
    """Add the columns that the spec makes of several; a value is missing where one of its parts is."""
    frame, found = table.frame, dict(table.found)
    for ours, theirs in spec.columns.items():
        parts = parts_of(theirs, table.frame.columns)
        if parts:
            values = [as_text(table.frame[part]) for part in parts]
            joined = pl.concat_str(values, separator=SEPARATORS.get(ours, f" {PLUS} "))
            frame = frame.with_columns(pl.select(joined).to_series().alias(theirs))
            found.pop(theirs, None)
    return replace(table, frame=frame, found=found)


def chosen_rows(table: Table, spec: ReadingSpec) -> Table:
    """Return the rows that the spec chooses of a long table, those with a list of responses once for each of them.

    If of repeated rows the last counts, those of a model and item are in the order of their attempts, or times.
    """
    chosen = _unfolded(_of_metric(_of_tasks(chosen_where(table, spec), spec), spec), spec)
    return _in_order(chosen, spec) if spec.repeats == "last" else chosen


def chosen_where(table: Table, spec: ReadingSpec) -> Table:
    """Keep the rows that have all values of `spec.where`; an empty one is that of rows which leave it empty."""
    frame = table.frame
    option = remedy("where", "--where")
    for column, value in spec.where.items():
        if column not in frame.columns:
            near = did_you_mean(column, frame.columns)
            raise DataError(
                f"{table.source}: {option} must name a column of the table, got {column!r}; there are "
                f"{shown(frame.columns, 12)}.{near}"
            )
        text = as_text(frame[column]).str.strip_chars()
        chosen = frame.filter(text.fill_null("") == value.strip())
        if not chosen.height:
            known = text.drop_nulls().unique(maintain_order=True).to_list()
            raise DataError(
                f"{table.source}: {option} must leave a row, but none has {value!r} as {column!r}; there are "
                f"{shown(known)}.{did_you_mean(value, known)}"
            )
        frame = chosen
    return replace(table, frame=frame)


def _of_tasks(table: Table, spec: ReadingSpec) -> Table:
    """Leave out rows of tasks that are not asked for, so that nothing is said of them; `only_wanted` does the rest.

    All rows stay where none would, or where the table names no scenario.
    """
    column = spec.column("scenario")
    if not (spec.tasks or spec.exclude_tasks) or column not in table.frame.columns:
        return table
    task = as_text(table.frame[column]).str.strip_chars()
    left_out = [name for name in task.unique().drop_nulls().to_list() if name and not is_wanted(name, spec)]
    kept = table.frame.filter(~task.is_in(left_out).fill_null(value=False))
    return replace(table, frame=kept) if kept.height else table


def _of_metric(table: Table, spec: ReadingSpec) -> Table:
    """Keep, of each scenario, the rows of the metric that comes first in `spec.metric`; all where it names none."""
    column = spec.column("metric")
    if not spec.metric or column not in table.frame.columns:
        return table
    scenario, default = spec.column("scenario"), spec.scenario or DEFAULT_SCENARIO
    rows = pl.DataFrame({"metric": as_text(table.frame[column]).str.strip_chars()})
    task = as_text(table.frame[scenario]).fill_null(default) if scenario in table.frame.columns else pl.lit(default)
    rows = rows.with_columns(task=task)
    logged = rows.unique(maintain_order=True).drop_nulls().group_by("task", maintain_order=True).agg("metric")
    pairs = []
    for name, found in logged.iter_rows():
        others = choices_for(name, [one for one in spec.metric if one not in found])  # a metric's own name may have a =
        pairs.append((name, next((one for one in (*others, *spec.metric) if one in found), None)))
    without = [name for name, one in pairs if one is None]
    if without:
        known = logged.filter(pl.col("task").is_in(without))["metric"].explode().unique(maintain_order=True).to_list()
        where = f" in {shown(without)}" if scenario in table.frame.columns else ""
        raise DataError(
            f"{table.source}: a metric must be chosen of those that there are, got {shown(spec.metric)}; there are "
            f"{shown(known)}{where}.{did_you_mean(spec.metric, known)}"
        )
    taken = pl.DataFrame(pairs, schema={"task": pl.String, "metric": pl.String}, orient="row").with_columns(taken=True)
    is_taken = rows.join(taken, on=["task", "metric"], how="left", maintain_order="left")["taken"]
    return replace(table, frame=table.frame.filter(is_taken.fill_null(value=False)))


def _unfolded(table: Table, spec: ReadingSpec) -> Table:
    """Make a row of each value where the responses are lists, numbered as attempts."""
    column = spec.column("response")
    if column not in table.frame.columns:
        return table
    lists = _lists(table.frame[column])
    if lists is None:
        return table
    place = next((name for name in map(spec.column, ("epoch", "seed")) if name not in table.frame.columns), None)
    if place is None or spec.column("n_trials") in table.frame.columns:
        told = "n_trials" if place is not None else "seed and epoch"
        raise DataError(f"{table.source}: a response must be one number beside {told}, got lists in {column!r}.")
    warn(f"{table.source}: read each value of the lists in {column!r} as the response of one attempt.", DataWarning)
    # releases differ in what becomes of an empty list, and older ones do not set lists
    lists = pl.select(pl.when(lists.list.len() > 0).then(lists)).to_series()
    numbers = pl.Series([None if one is None else [*range(len(one))] for one in lists], dtype=pl.List(pl.Int64))
    frame = table.frame.with_columns(lists.alias(column), numbers.alias(place))
    frame = frame.explode(pl.selectors.by_index(*map(frame.columns.index, (column, place))))  # a column may be called *
    frame = frame.with_columns(frame[place].cast(pl.String))
    return replace(table, frame=frame, found={**table.found, place: frozenset({str})})


def _lists(series: pl.Series) -> pl.Series | None:
    """Return a column as lists; None where a value is none."""
    if isinstance(series.dtype, pl.Array):
        return series.arr.to_list()
    if isinstance(series.dtype, pl.List):
        return None if series.dtype.inner.is_nested() else series
    if series.dtype != pl.String:
        return None
    known = series.drop_nulls().str.strip_chars()
    if not known.len() or not (known.str.starts_with("[") & known.str.ends_with("]")).all():
        return None
    lists = [None if text is None else _list(text) for text in series.to_list()]
    if any(text is not None and one is None for text, one in zip(series.to_list(), lists, strict=True)):
        return None
    return pl.Series(series.name, lists, strict=False, dtype=pl.List(pl.String))


def _list(text: str) -> list[str | None] | None:
    """Read a list of numbers or words as JSON, or Python, writes it; None where it is none."""
    try:
        values: Any = json.loads(text.replace("True", "true").replace("False", "false").replace("None", "null"))
    except ValueError:
        return None
    if not isinstance(values, list) or any(isinstance(one, list | dict) for one in values):
        return None
    return [None if one is None else str(one) for one in values]


def ordering_columns(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Columns of a long table that may tell which of repeated rows is the last, where that counts; no seed does."""
    if spec.repeats != "last":
        return []
    told = [name for name in columns if kind_of(name) == "attempt" and not name.casefold().startswith("seed")]
    told = [spec.column("epoch"), *told, *(name for name in columns if is_called(name, TIMES))]
    taken = {spec.column(name) for name in LONG_COLUMNS if name != "epoch"}
    return [name for name in dict.fromkeys(told) if name in columns and name not in taken]


def _in_order(table: Table, spec: ReadingSpec) -> Table:
    """Put the rows of a model and item in the order of the first column that numbers them all; else leave them so."""
    frame = table.frame
    ids = [as_text(frame[one]) for name in PAIR if (one := spec.column(name)) in frame.columns]
    joined = pl.select(pl.concat_str(ids, separator="\0", ignore_nulls=True)).to_series()
    repeated = joined.is_duplicated().arg_true()
    pair = joined.gather(repeated).rank("dense")
    names = ordering_columns(frame.columns, spec) if repeated.len() else []
    for name in names:
        place = _places(frame[name].gather(repeated))
        if place is not None and pl.DataFrame({"pair": pair, "place": place}).is_unique().all():
            order, rows, groups = np.arange(frame.height), repeated.to_numpy(), pair.to_numpy()
            order[rows[np.argsort(groups, kind="stable")]] = rows[np.lexsort((place.to_numpy(), groups))]
            return replace(table, frame=frame[order])
    for name in (one for one in names if is_called(one, TIMES) and _places(frame[one].gather(repeated)) is None):
        if unread := [one for one in as_text(frame[name].gather(repeated)).drop_nulls() if _time(one) is None]:
            raise DataError(
                f"{table.source}: the last of repeated rows is told by times such as 2026-03-01T10:00Z, got "
                f"{quoted(unread[0])} as {name!r}. Write them so; or, if the row that comes last counts, add: "
                f"{how(drop_columns=(name,))}"
            )
    if names:
        warn(
            f"{table.source}: numbers, or times such as 2026-03-01T10:00Z, must tell repeated rows apart, and those in "
            f"{shown(names)} do not: the row that comes last counts.",
            DataWarning,
        )
    return table


def _places(column: pl.Series) -> pl.Series | None:
    """Return numbers in the order of the numbers, numbered words or times of a column; None where it holds others."""
    if column.dtype.is_temporal():
        column = column.to_physical()
    text = as_text(column).str.strip_chars()
    return next((place for kind, place in _ways(text) if kind.n_unique() == 1 and not place.null_count()), None)


def _ways(text: pl.Series) -> Iterator[tuple[pl.Series, pl.Series]]:
    """Yield kinds of the values, and their places: of numbers, of numbered words, and of times, which are slow."""
    yield pl.Series([""]), text.cast(pl.Float64, strict=False)
    words = text.str.extract_groups(r"^(\D*)(\d+)$")
    yield words.struct.field("1"), words.struct.field("2").cast(pl.Float64)
    times = [_time(one) for one in text.to_list()]
    seconds = [None if one is None else one.replace(tzinfo=one.tzinfo or UTC).timestamp() for one in times]
    yield pl.Series([one is not None and one.tzinfo is None for one in times]), pl.Series(seconds, dtype=pl.Float64)


def _time(text: str | None) -> datetime | None:
    """Read a time as ISO 8601 writes it; None where it is none."""
    try:
        return datetime.fromisoformat(re.sub(" ?UTC$", "Z", text or ""))
    except ValueError:
        return None
