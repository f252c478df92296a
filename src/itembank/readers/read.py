"""`read_responses`: the one way into the package for per-item results."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from itembank.errors import (
    DataError,
    DataWarning,
    ParameterError,
    did_you_mean,
    quoted,
    remedy,
    says_instead,
    shown,
    warn,
)
from itembank.files.memory import allowing
from itembank.progress import ProgressCallback, silent
from itembank.readers.chosen_rows import parts_of
from itembank.readers.collecting import UNUSABLE, Found, find_sources, read_each, rows_of_source
from itembank.readers.columns import USUAL_NAMES, plain_name, tell_of_look_alikes
from itembank.readers.jq_rows import JqReader
from itembank.readers.matrix import (
    known_table,
    read_known,
    refuse_means,
    tell_of_no_models,
    to_matrix,
    warn_of_lost,
    warn_of_odd,
    warn_of_partial_runs,
    without_empty,
)
from itembank.readers.reading_specs import Format, ReadingSpec, how
from itembank.readers.refusals import NoTaskLeftError, combined, only_wanted, problems_of, say_left_out
from itembank.readers.response_rows import response_file_rows
from itembank.readers.rows import ResponseRows, join_rows, joined_source, rename_model, rename_models, with_highest
from itembank.readers.settling import warn_of_scales, warn_of_shares
from itembank.readers.sources import TABLES, no_readers, source_called
from itembank.readers.table import named_by_files, rows_in_memory, table_rows
from itembank.responses.labels import IdKind, named, names_of
from itembank.responses.opening import Table
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import of_pandas

Paths = str | Path | Sequence[str | Path]

IN_SPEC = ("columns", "repeats", "max_response", "errors", "where", "missing_values", "true_value")


@says_instead(**{name: f"spec=ReadingSpec({name}=...)" for name in IN_SPEC})
def read_responses(
    results: Any,
    *,
    models: Any = None,
    items: Any = None,
    response_column: str | None = None,
    metric: str | Sequence[str] | None = None,
    filter_name: str | Sequence[str] | None = None,
    scenario: str | None = None,
    spec: ReadingSpec | None = None,
    progress: ProgressCallback = silent,
) -> ResponseMatrix:
    """Read per-item results, whatever wrote them, or a table in memory into one response matrix.

    Response files, long and wide tables (Parquet, CSV, JSON Lines), py-irt's JSON Lines and the logs of
    lm-evaluation-harness and of Inspect are told apart by their content. Several sources are joined.

    Parameters
    ----------
    results : path or paths, or table
        Files, or folders of harness logs. Or a pandas, polars or pyarrow table, anything that speaks the Arrow
        interface, or a list of dicts, one a row: long (`model_id`, `item_id`, `response`, ...), or wide. A named pandas
        index is a column like any other.
    models, items : table or path, or None
        What else is known of each model (column `model_id`) and item (`item_id`).
    response_column, metric, filter_name, scenario
        Shorthand for the fields of `spec` of the same name.
    spec : ReadingSpec, or None
        Every other choice.
    progress : function
        Called with what is being read.

    Raises
    ------
    DataError
        With every problem of every source.
    ParameterError
        When what is given is neither, or a choice of `spec` is for files and this is a table.

    Examples
    --------
    >>> responses = read_responses("results.csv", items="items.csv")  # doctest: +SKIP
    >>> responses = read_responses(["runs/model-a", "runs/model-b"], metric="acc_norm")  # doctest: +SKIP
    >>> import polars as pl
    >>> table = pl.DataFrame({"model_id": ["a", "a"], "item_id": ["x", "y"], "response": [1, 0]})
    >>> read_responses(table).responses
    array([[1., 0.]])
    """
    given: dict[str, Any] = {
        "response_column": response_column,
        "metric": _several(metric),
        "filter_name": _several(filter_name),
        "scenario": scenario,
    }
    spec = replace(spec or ReadingSpec(), **{name: value for name, value in given.items() if value is not None})
    if is_table(results):
        matrix = _of_table(results, spec, models, items)
    else:
        matrix = read_matrix(paths_of(results), spec, models=models, items=items, progress=progress)
        warn_of_partial_runs(matrix.models)
    warn_of_lost(matrix)
    return matrix


def read_matrix(
    paths: Sequence[Path],
    spec: ReadingSpec,
    *,
    models: str | Path | None = None,
    items: str | Path | None = None,
    progress: ProgressCallback = silent,
) -> ResponseMatrix:
    """Read sources into one matrix, whether or not their models were run on all items; see `read_responses`."""
    with allowing(spec.max_memory):
        found = find_sources(paths, spec, (models, items))
    return read_found(found, spec, models=models, items=items, progress=progress)


def read_found(
    found: Found,
    spec: ReadingSpec,
    *,
    models: str | Path | None = None,
    items: str | Path | None = None,
    progress: ProgressCallback = silent,
    told: Callable[[ResponseRows], None] | None = None,
) -> ResponseMatrix:
    """Read what `find_sources` found as `read_matrix` does; `told` is given the rows of each format before joining."""

    def read(item_ids: Sequence[str] | None) -> list[ResponseRows]:
        parts = read_rows(found, spec.of_trials(), item_ids=item_ids, progress=progress)
        if told is not None:
            for part in parts:
                told(part)
        return parts

    return matrix_of_rows(read, spec, models=models, items=items)


def matrix_of_rows(
    read: Callable[[Sequence[str] | None], Sequence[ResponseRows]],
    spec: ReadingSpec,
    *,
    models: Any = None,
    items: Any = None,
) -> ResponseMatrix:
    """Join the rows that `read` returns, and what tables tell of models and items, into one matrix.

    `read` is given the ids of the table of items, None where there is none.
    """
    with allowing(spec.max_memory):
        pairs = (("model_id", models), ("item_id", items))
        known = {key: known_things(given, key) for key, given in pairs if given is not None}
        ids = known["item_id"][0]["item_id"].to_list() if "item_id" in known else None
        rows = join_rows(read(ids), allow_mixed_prompts=spec.allow_mixed_prompts)
        for key, table in (("model_id", rows.models), ("item_id", rows.items)):
            tell_of_look_alikes(rows.source, table[key], key)
        for key, (_, kind) in known.items():
            own = rows.kinds.get(key)
            if own is not None and kind is not None and own != kind:
                raise DataError(
                    f"{key} must have one type, got {own} in {rows.source} and {kind} in the table of "
                    f"{key.removesuffix('_id')}s. Write the ids as text."
                )
        tables = {key: frame for key, (frame, _) in known.items()}
        matrix = to_matrix(rows, spec, models=tables.get("model_id"), items=tables.get("item_id"))
        for name in ("scenario", "subscenario"):
            if name in matrix.items.columns:
                tell_of_look_alikes(rows.source, matrix.items[name].drop_nulls().unique(maintain_order=True), name)
        refuse_means(matrix, rows.source)
        warn_of_scales(
            *(matrix.responses, spec.max_response),
            (matrix.models["model_id"], matrix.items["scenario"], matrix.items["item_id"]),
            rows.source,
        )
        warn_of_odd(matrix, rows.source)
        return without_empty(matrix, rows.source)


def paths_of(results: Any) -> list[Path]:
    """Return one path, or several, as a list; `ParameterError` when it is something else."""
    is_one = isinstance(results, str | bytes | os.PathLike | Mapping) or not isinstance(results, Iterable)
    given = ([] if is_one or is_table(results) else [*results]) or [results]
    other = next((one for one in given if not isinstance(one, str | os.PathLike)), None)
    if other is None and None not in given:
        return [Path(path) for path in given]
    is_list, is_plain = other is not results and is_table(other), isinstance(other, int | float | None)
    advice = "Join the tables to one." if is_list else "Read files with read_responses('results.csv')."
    if hasattr(other, "shape") and not is_list:
        advice = "Turn an array into responses with ResponseMatrix.create(array)."
    raise ParameterError(
        "responses must be a ResponseMatrix, paths of results, or one table in memory (pandas, polars, pyarrow), got "
        f"{type(other).__name__}{f' {other!r}' * is_plain}{' in a list' * is_list}. {advice}"
    )


def read_table(paths: Paths, *, columns: Mapping[str, str] | None = None, **arguments: Any) -> ResponseMatrix:
    """Read long or wide tables; `columns` says what they call ours, the rest goes to `read_responses`."""
    spec = arguments.pop("spec", None) or ReadingSpec()
    return read_responses(paths, spec=replace(spec, columns={**spec.columns, **(columns or {})}), **arguments)


def read_rows(
    found: Found, spec: ReadingSpec, *, item_ids: Sequence[str] | None = None, progress: ProgressCallback = silent
) -> list[ResponseRows]:
    """Read each source; every source that cannot be read is named in one error.

    `item_ids` are those of the caller's table of items, for results that do not name all items themselves.
    """
    errors: list[Exception] = [DataError(problem) for problem in found.problems]
    if found.links:
        warn(
            f"links to folders are not followed, and what is there is not read: {shown(found.links)}. If it has "
            "results, name it, too.",
            DataWarning,
        )
    seen = _Seen()
    unwanted: list[NoTaskLeftError] = []
    parts: list[ResponseRows] = []
    for source_format, own in found.paths.items():
        try:
            parts.append(_read_source(source_format, own, spec, seen, item_ids=item_ids, progress=progress))
        except NoTaskLeftError as error:
            unwanted.append(error)
        except UNUSABLE as error:
            errors.append(error)
    if unwanted and not parts:
        errors = [*errors, *unwanted]
    if len(errors) == 1 and not parts:
        raise errors[0]
    if errors and not (spec.skip_unusable and parts):
        raise combined(errors, spec, has_rest=bool(parts))
    say_left_out(problems_of([*errors, *(unwanted if parts else ())]))
    _check_task_names(parts, spec)
    seen.check(spec)
    return parts


@dataclass
class _Seen:
    """What tables and response files have that choices may name."""

    sources: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    models: dict[str, None] = field(default_factory=dict)

    def renamed(self, part: ResponseRows, spec: ReadingSpec) -> ResponseRows:
        """Note what a part has, and call its models as was asked for."""
        self.sources.append(part.source)
        self.columns.update(part.columns)
        self.models.update(dict.fromkeys(part.models["model_id"]))
        return rename_models(part, spec.model_names) if spec.model_names else part

    def check(self, spec: ReadingSpec) -> None:
        """Raise `DataError` where a choice names a column, or a model, that nothing has which was read."""
        each = [replace(spec, drop_columns=(one,)) for one in spec.drop_columns]
        unused = [one.drop_columns[0] for one in each if not any(map(one.drops, self.columns))]
        absent = [one for one in spec.model_names if one not in self.models]
        given = [one for one in spec.columns.values() if one and not parts_of(one, [*self.columns])]
        unread = [one for one in given if self.columns and one not in self.columns]
        for what, names, known in (
            (f"column that is named ({remedy('columns', '--column')})", unread, sorted(self.columns)),
            (f"column that is left out ({remedy('drop_columns', '--drop-column')})", unused, sorted(self.columns)),
            ("model that is renamed (model_names)", absent, [*self.models]),
        ):
            if names:
                where = f"{joined_source(self.sources)}: " if self.sources else ""
                raise DataError(
                    f"{where}a {what} must be in a table that is read, got {shown(names)}; there are "
                    f"{shown(known, 12) or 'none'}.{did_you_mean(names, known)}"
                )


def _read_source(
    source_format: Format,
    paths: Sequence[Path],
    spec: ReadingSpec,
    seen: _Seen,
    *,
    item_ids: Sequence[str] | None,
    progress: ProgressCallback,
) -> ResponseRows:
    """Read all that one format has: logs together, so that one metric a task is taken, whoever was run."""
    source = source_called(source_format)
    if source is not None:
        if spec.errors is not None and "errors" not in source.takes:
            raise ParameterError(
                f"{source.title} do not tell lost answers from others: leave {remedy('errors', '--errors')} out."
            )
        rows = rows_of_source(source_format, paths, spec, item_ids=item_ids, progress=progress)
        return rows if "tasks" in source.takes else only_wanted(rows, spec)
    if spec.jq is not None:
        program = JqReader(spec)
        read_by_jq = [rows for rows in read_each(paths, program.rows, progress, spec) if rows is not None]
        program.check()
        parts = [_named(rows, spec) for rows in read_by_jq]
    else:
        read = response_file_rows if source_format == "responses" else partial(table_rows, spec=spec)
        try:
            parts = read_each(paths, lambda path: _named(read(path), spec), progress, spec)
        except DataError as error:
            if told := no_readers():
                raise DataError(f"{error}\n{told.strip()}") from error
            raise
        parts = named_by_files(parts)
    parts = [seen.renamed(part, spec) for part in parts]
    if source_format != "responses":
        parts = [with_highest(part, spec.max_response) for part in parts]
        _check_metric(parts, spec)
    if spec.repeats == "last":
        _tell_last(parts)
    joined = join_rows(parts, allow_mixed_prompts=spec.allow_mixed_prompts)
    joined = joined if source_format == "responses" else tell_of_no_models(joined)
    return _with_own_trials(only_wanted(joined, spec), parts)


def _tell_last(parts: Sequence[ResponseRows]) -> None:
    """Say which file is the last where several have rows of one model and item."""
    pairs = pl.concat([part.frame.select("model_id", "item_id").unique().cast(pl.String) for part in parts])
    if pairs.is_duplicated().any():
        warn(
            f"of rows in several files those of the last one count: {quoted(parts[-1].source)} comes last. If another "
            "does, name the files in their order.",
            DataWarning,
        )


def _check_metric(parts: Sequence[ResponseRows], spec: ReadingSpec) -> None:
    asked = [name for name in spec.metric if "=" not in name]  # what a bank asks for is told by scenario
    if asked and not any("metric" in part.items.columns for part in parts):
        raise DataError(
            f"{parts[0].source}: a metric must be named by a column of a long table, got metric {shown(asked)} and no "
            f"column metric. If another column names it, add: {how(columns={'metric': '...'})}"
        )


def _check_task_names(parts: Sequence[ResponseRows], spec: ReadingSpec) -> None:
    tables = [part.items["task"] for part in parts if "task" in part.items.columns]
    known = sorted({task for tasks in tables for task in tasks.unique()})
    absent = [old for old, new in spec.task_names.items() if new not in known]
    if absent:
        raise DataError(
            f"a task that is renamed must be in the logs, got {shown(absent)}; there are {shown(known, 20) or 'none'}."
            f"{did_you_mean(absent, known)}"
        )


def _with_own_trials(rows: ResponseRows, parts: Sequence[ResponseRows]) -> ResponseRows:
    """Warn of shares in parts without trials beside parts with some; leave trials out that only tasks unread had."""
    if "n_trials" not in rows.frame.columns or all("n_trials" in part.frame.columns for part in parts):
        return rows
    items = names_of(rows.frame["item_id"]).implode()
    found = [(part, part.frame.filter(pl.col("item_id").cast(pl.String).is_in(items))) for part in parts]
    if not any("n_trials" in frame.columns for _, frame in found if frame.height):
        return replace(rows, frame=rows.frame.drop("n_trials"))
    for part, frame in found:
        shares = frame.filter(
            pl.col("response").is_between(0.0, 1.0, closed="none") & pl.lit("n_trials" not in frame.columns)
        )
        warn_of_shares(part.source, named(shares, np.arange(shares.height)), shares.height)
    return rows


def _named(rows: ResponseRows, spec: ReadingSpec) -> ResponseRows:
    """Give the one model the name, and lost answers the meaning, that were asked for."""
    rows = rows if spec.model_id is None else rename_model(rows, spec.model_id)
    return rows if spec.errors is None else replace(rows, errors=spec.errors)


def source_kinds(found: Found) -> set[str]:
    """Kinds of these sources: 'responses' (our own files), 'table', or a source's name; none if one is unreadable.

    Reading says what is wrong with a source; here it is only asked which choices of a `ReadingSpec` can matter.
    """
    if found.problems:
        return set()
    return {"table" if one != "responses" and one in TABLES else one for one in found.paths}


def _several(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if not names:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


NAME = "the table"
INDEX = "__index_level_0__"
"""The column of an index without a name, as in Parquet that pandas writes."""


def is_table(value: object) -> bool:
    """Whether something is a table of another library, or rows as mappings."""
    if isinstance(value, list | tuple) and value:
        return all(isinstance(one, Mapping) for one in value)
    is_polars = isinstance(value, pl.LazyFrame) or hasattr(value, "__arrow_c_stream__")
    return is_polars or type(value).__module__.partition(".")[0] == "pandas"


def _of_table(table: Any, spec: ReadingSpec, models: Any, items: Any) -> ResponseMatrix:
    """Make a response matrix of a table in memory, long or wide."""
    if spec.format not in {"auto", "long", "wide-models", "wide-items"}:
        raise ParameterError(
            f"format of a table in memory must be auto, long, wide-models or wide-items: {spec.format!r}."
        )
    frame = to_polars(table)
    levels = {INDEX, *map(str, getattr(getattr(table, "index", None), "names", ()))}
    if frame.height == 0:
        raise DataError(f"{NAME} is empty: it has no rows.")

    def read(_item_ids: Sequence[str] | None) -> list[ResponseRows]:
        seen, own = _Seen(), spec.of_trials()
        if own.jq is None:
            rows = rows_in_memory(Table(NAME, frame), own, levels)
        else:
            program = JqReader(own)
            made = program.rows(Path(NAME), frame)
            program.check()
            rows = cast("ResponseRows", made)  # without rows it is refused
        rows = seen.renamed(_named(with_highest(rows, spec.max_response), spec), spec)
        _check_metric([rows], spec.of_trials())
        _check_task_names([rows], spec)
        seen.check(spec)
        return [only_wanted(tell_of_no_models(rows), spec)]

    return matrix_of_rows(read, spec, models=models, items=items)


def to_polars(table: Any) -> pl.DataFrame:
    """Turn a table of another library into a polars one; that library is never imported here."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    try:
        if type(table).__module__.partition(".")[0] == "pandas":
            return of_pandas(_with_index(table))
        if hasattr(table, "__arrow_c_stream__"):
            return pl.DataFrame(table)
        if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
            return pl.DataFrame(list(table), infer_schema_length=None)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        is_twice = isinstance(error, pl.exceptions.DuplicateError)
        why = "" if is_twice else ", a column probably holds values of several types (numbers and text)"
        raise DataError(f"{NAME} cannot be read{why}: {error}") from error
    raise ParameterError(
        f"table must be a pandas, polars or pyarrow table, or a list of dicts, got {type(table).__name__}."
    )


def _with_index(table: Any) -> Any:
    """Make columns of the named indexes of a pandas table, or of a series, as files have them that pandas writes.

    Texts without a name are names of the rows, if no column has ids.
    """
    if not hasattr(table, "columns"):
        table = table.to_frame("response" if table.name is None else table.name)
    names = [*table.index.names]  # of two levels of one name neither can be a column
    ids = {*USUAL_NAMES["model_id"], *USUAL_NAMES["item_id"]}
    if names == [None] and table.index.dtype.kind not in "iufbmM" and ids.isdisjoint(map(plain_name, map(str, table))):
        return table.rename_axis(INDEX).reset_index()
    named = [one for one in names if one is not None and one not in table.columns and names.count(one) == 1]
    return table.reset_index(level=named) if named else table


def known_things(given: Any, key: str) -> tuple[pl.DataFrame, IdKind | None]:
    """Return a table of models (key `model_id`) or items (`item_id`), from a file or from memory, checked."""
    if isinstance(given, str | Path):
        return read_known(Path(given), key)
    return known_table(Table(f"the table of {key.removesuffix('_id')}s", to_polars(given)), key)
