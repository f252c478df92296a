"""From rows to a `ResponseMatrix`: one response a cell, tables joined, emptiness judged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, ModelWarning, first_few, quoted, remedy, shown, warn
from itembank.files.memory import check_matrix_fits
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.columns import id_column
from itembank.readers.long_table import AGREEMENT
from itembank.readers.reading_specs import ReadingSpec, Repeats, how
from itembank.readers.rows import ResponseRows, can_be_counted
from itembank.readers.table_files import read_table_file
from itembank.readers.telling_apart import told_apart
from itembank.responses.labels import IdKind, come_again, number_of_pair, numbered
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.opening import Table
from itembank.responses.responses import (
    DEFAULT_SCENARIO,
    ResponseMatrix,
    check_complete,
    check_have_responses,
)


def read_known(path: Path, key: str) -> tuple[pl.DataFrame, IdKind | None]:
    """Read a file of one row a model (key `model_id`) or item (key `item_id`); return it, and the kind of its ids."""
    return known_table(read_table_file(path, text=(key, "scenario", "subscenario"), infer=True), key)


def known_table(table: Table, key: str) -> tuple[pl.DataFrame, IdKind | None]:
    """Check a table of one row a model or item, and make its ids text; return it, and the kind that they were of."""
    columns = table.frame.columns
    if key not in columns:
        raise DataError(f"{table.source}: there must be a column {key!r}; there are {shown(columns, 10)}.")
    problems: list[str] = []
    found = id_column(table, key, problems)
    if found is not None and found[0].n_unique() < table.frame.height:
        repeated = table.frame[key].filter(table.frame[key].is_duplicated()).unique(maintain_order=True).to_list()
        problems.append(f"{key} must be unique, got {len(repeated)} ids more than once: {shown(repeated)}.")
    if problems or found is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    names = [pl.col(name).cast(pl.String).replace("", None) for name in ("scenario", "subscenario") if name in columns]
    return table.frame.with_columns(found[0].cast(pl.String).alias(key), *names), found[1]


def add_known(table: pl.DataFrame, known: pl.DataFrame, key: str, source: str) -> pl.DataFrame:
    """Add the columns of `known`; what the responses say themselves stays, with a warning where they differ."""
    ids = table[key]
    absent = ids.filter(~ids.is_in(known[key].implode())).to_list()
    word = key.removesuffix("_id")
    if len(absent) == len(ids):
        raise DataError(
            f"none of the {len(ids)} {word}s of {source} is in the table of {word}s, which has "
            f"{shown(known[key].to_list())}. Check that both use the same ids."
        )
    if absent:
        warn(
            f"{len(absent)} of {len(ids)} {word}s are not in the table of {word}s and have empty columns: "
            f"{shown(absent)}.",
            DataWarning,
        )
    joined = table.join(known, on=key, how="left", maintain_order="left", suffix=_SUFFIX)
    both = [name for name in known.columns if name != key and name in table.columns]
    for name in both:
        other = _cast(joined[name + _SUFFIX], table.schema[name])
        unequal = joined.filter(pl.col(name) != other)
        if unequal.height:
            first = unequal.row(0, named=True)
            warn(
                f"{name} of {unequal.height} {word}s differs between the responses ({first[name]!r} for {first[key]!r})"
                f" and the table of {word}s ({first[name + _SUFFIX]!r}); those with the responses are used.",
                DataWarning,
            )
        joined = joined.with_columns(pl.coalesce(name, other))
    return joined.drop(name + _SUFFIX for name in both)


def _cast(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Values as another type; none of those that are none of it."""
    try:
        return values.cast(dtype, strict=False)
    except pl.exceptions.InvalidOperationError:  # text is never true or false to Polars
        return pl.Series(values.name, [None] * len(values), dtype)


_SUFFIX = "\0known"
POOLED: tuple[Repeats, ...] = ("count", "mean")


def settle_repeats(rows: ResponseRows, cell: IntArray, n_cells: int, repeats: Repeats) -> pl.DataFrame:
    """Leave one response a cell; return the rows that stay, with their `cell`.

    Copies (equal responses, of the same attempt where attempts are known) count once, with a `DataWarning`. Repeated
    attempts (several named ones; or, with 'count' and 'mean', any rows without a name) are counted, averaged, or the
    last is taken, when `repeats` says so. Counting makes every response a number of successes among trials.
    """
    if repeats == "count":
        rows = _as_counts(rows)
    frame = rows.frame.with_columns(cell=pl.Series(cell))
    is_present = ~np.isnan(rows.response)
    is_repeated = come_again(cell, n_cells, is_present)
    if is_present.all() and not is_repeated.any():
        return frame
    is_answered = np.zeros(n_cells, dtype=bool)
    is_answered[cell[is_present]] = True
    # rows with a response stand alone, and rows that tell a cost of a cell without one
    told = [pl.col(unit).is_not_nan() for unit in rows.costs]
    told += [pl.col("n_trials") != 0] if "n_trials" in frame.columns else []
    tells_more = frame.select(pl.any_horizontal(pl.lit(value=False), *told)).to_series().to_numpy()
    alone = frame[np.flatnonzero(~is_repeated & (is_present | (tells_more & ~is_answered[cell])))]
    if not is_repeated.any():
        return alone
    repeated = frame[np.flatnonzero(is_repeated)]
    if repeats == "last":
        return pl.concat([alone, repeated.unique("cell", keep="last", maintain_order=True)])
    single = _without_copies(rows.source, repeated, keep_nameless=repeats in POOLED)
    is_again = single["cell"].is_duplicated()
    again, done = single.filter(is_again), single.filter(~is_again)
    if again.height:
        _refuse(rows.source, again, repeats)
        done = pl.concat([done, _means(again, rows.costs)], how="diagonal")
    settled = pl.concat([alone, done], how="diagonal")
    if "n_trials" not in settled.columns:
        return settled
    return settled.with_columns(pl.col("n_trials").fill_null(pl.col("response").is_not_nan().cast(pl.Int64)))


def _as_counts(rows: ResponseRows) -> ResponseRows:
    """Make every response successes / trials; `DataError` names those that are no such ratio."""
    present = ~np.isnan(rows.response)
    trials = rows.frame["n_trials"].to_numpy() if "n_trials" in rows.frame.columns else present.astype(np.int64)
    at_least_one = np.maximum(trials, 1)
    successes = np.where(present, rows.response, 0.0) * at_least_one
    whole = np.rint(successes)
    # how far successes may be from a whole number by rounding of the response
    rounding = np.where(at_least_one > 1, np.maximum(AGREEMENT * at_least_one, 1e-3), 1e-3)
    bad = np.abs(successes - whole) > rounding
    if bad.any():
        where = np.flatnonzero(bad)
        raise DataError(
            f"{rows.source}: responses that are counted must be right or wrong (1 or 0), or n_correct of n_trials, got "
            f"{where.size} others: {rows.describe(where)}. Scores between 0 and 1 are no counts: for their mean "
            f"add: {how(repeats='mean')}"
        )
    response = pl.Series(np.where(present, whole / at_least_one, np.nan))
    n_trials = pl.Series(np.where(present, at_least_one, trials))
    return replace(rows, frame=rows.frame.with_columns(response=response, n_trials=n_trials))


def _without_copies(source: str, repeated: pl.DataFrame, *, keep_nameless: bool) -> pl.DataFrame:
    """Leave the first of equal rows of one cell and attempt; a row unlike the first stays, to be refused later."""
    same = 1e-6  # files of the same results in float32 and as text differ by 6e-8
    group = [name for name in ("cell", "attempt") if name in repeated.columns]
    is_copy = (pl.col("response") - pl.col("response").first().over(group)).abs() <= same
    is_copy &= pl.int_range(pl.len()).over(group) > 0
    if "n_trials" in repeated.columns:
        is_copy &= pl.col("n_trials") == pl.col("n_trials").first().over(group)
    if keep_nameless:
        is_copy &= pl.col("attempt").is_not_null() if "attempt" in repeated.columns else pl.lit(value=False)
    kept = repeated.filter(~is_copy)
    tell_of_copies(source, repeated.height - kept.height, are_counted=can_be_counted(repeated["response"].to_numpy()))
    return kept


def _advice(responses: FloatArray) -> str:
    count = f"to count them add: {how(repeats='count')}, or " if can_be_counted(responses) else ""
    return f"{count}for their mean add: {how(repeats='mean')}, or for the last one add: {how(repeats='last')}"


def tell_of_copies(source: str, n_copies: int, *, are_counted: bool) -> None:
    """Warn of rows that are copies of others, where there are any."""
    if n_copies:
        message = (
            f"{source}: {n_copies} rows repeat an earlier row of the same model and item with the same response; "
            f"they count once. If they are repeated attempts, add: {how(repeats='count' if are_counted else 'mean')}"
        )
        warn(message, DataWarning)


def _refuse(source: str, again: pl.DataFrame, repeats: Repeats) -> None:
    """Raise `DataError` for contradictions, and for repeated attempts that nobody asked to average."""
    attempt = pl.col("attempt") if "attempt" in again.columns else pl.lit(None, dtype=pl.String)
    table = again.with_columns(attempt=attempt.cast(pl.String))
    is_attempt = (pl.col("attempt").null_count() == 0) & (pl.col("attempt").n_unique() == pl.len())
    # Averaging may be asked for where attempts have no names, but never of two answers of one attempt.
    is_attempt = is_attempt.over("cell")
    attempts, others = table.filter(is_attempt), table.filter(~is_attempt)
    if repeats in POOLED:
        attempts, others = attempts.clear(), others.filter(pl.col("attempt").is_not_null().any().over("cell"))
    advice = _advice(again["response"].to_numpy())
    problems = []
    if others.height:
        problems.append(
            f"one model must have one response to an item, got different ones for {_cells(others)}. "
            + (
                "They even have the same seed, or only some have a seed; correct the table."
                if repeats in POOLED
                else f"Correct the table; or, if they are repeated attempts, {advice}."
            )
        )
    if attempts.height:
        problems.append(
            f"one model must have one response to an item, got repeated attempts (several seeds) for "
            f"{_cells(attempts)}. They are never averaged unasked; {advice}."
        )
    if problems:
        raise DataError(f"{source}: " + " ".join(problems))


def _cells(rows: pl.DataFrame) -> str:
    """Name the first few cells with all their responses."""
    groups = rows.group_by("cell", maintain_order=True).agg(pl.col("model_id", "item_id").first(), "response")
    parts = []
    for model, item, responses in groups.head(N_SHOWN).select("model_id", "item_id", "response").iter_rows():
        values = " and ".join(f"{value:g}" for value in responses[:3])
        more = f" and {len(responses) - 3} more" if len(responses) > 3 else ""
        parts.append(f"{model!r} item {item!r} = {values}{more}")
    return f"{groups.height} pairs: {first_few(parts, groups.height)}"


def _means(again: pl.DataFrame, costs: Sequence[str]) -> pl.DataFrame:
    """Average the rows of each cell: responses over all trials, costs over rows (the cost of one attempt)."""
    trials = again["n_trials"].clip(1).to_numpy() if "n_trials" in again.columns else np.ones(again.height)
    cells, group = np.unique(again["cell"].to_numpy(), return_inverse=True)

    def total(values: FloatArray) -> FloatArray:
        result: FloatArray = np.bincount(group, weights=values, minlength=cells.size).astype(np.float64)
        return result

    n_trials = total(trials)
    means = {"response": total(trials * again["response"].to_numpy()) / n_trials}
    for unit in costs:
        cost = again[unit].to_numpy()
        known = ~np.isnan(cost)
        count, none = total(known.astype(np.float64)), np.full(cells.size, np.nan)
        means[unit] = np.divide(total(np.where(known, cost, 0.0)), count, out=none, where=count > 0)
    return pl.DataFrame({"cell": cells, "n_trials": n_trials.astype(np.int64), **means})


def lost_of_cells(rows: ResponseRows, cell: IntArray, shape: tuple[int, int], repeats: Repeats) -> LostAnswers | None:
    """Count the lost attempts of each cell, (n_models, n_items); None where there are none.

    Where attempts are counted or averaged, each that was lost counts, unless the same one (by its name) was answered in
    another row. Else a cell is one attempt: what a later or an earlier row answered was not lost.
    """
    if "n_errors" not in rows.frame.columns or not (rows.frame["n_errors"] > 0).any():
        return None
    attempt, is_named = pl.lit(0, dtype=pl.Int64), "attempt" in rows.frame.columns
    if repeats in POOLED:  # without a name each row is an attempt
        own = -1 - pl.int_range(pl.len(), dtype=pl.Int64)
        attempt = pl.coalesce(pl.col("attempt").to_physical().cast(pl.Int64), own) if is_named else own
    is_answered = pl.col("response").is_not_nan()
    table = rows.frame.select("n_errors", "error", cell=pl.Series(cell), attempt=attempt, is_answered=is_answered)
    one = ["cell", "attempt"]
    table = table.filter(pl.col("is_answered") | ~pl.col("is_answered").any().over(one))
    attempts = table.group_by(one, maintain_order=True).agg(pl.col("n_errors", "error").max())
    found = attempts.group_by("cell").agg(pl.col("n_errors").sum(), pl.col("error").max())
    found = found.filter(pl.col("n_errors") > 0)
    if not found.height:
        return None
    places = found["cell"].to_numpy()
    n, kind = (_scatter(places, found[name].to_numpy(), shape, 0) for name in ("n_errors", "error"))
    return LostAnswers(n, kind)


_DROP = "empty='drop'"
_DROP_IN_FILE = "empty = 'drop' in the file of itembank import --spec"


def to_matrix(
    rows: ResponseRows, spec: ReadingSpec, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None
) -> ResponseMatrix:
    """Make the response matrix of these rows."""
    shape = (rows.models.height, rows.items.height)
    if 0 in shape:
        raise DataError(f"{rows.source}: there must be at least one response, got none.")
    n_arrays = 1 + ("n_trials" in rows.frame.columns) + len(rows.costs) + 2 * ("n_errors" in rows.frame.columns)
    check_matrix_fits(rows.source, *shape, n_responses=rows.n_rows, n_arrays=n_arrays)
    model = numbered(rows.frame["model_id"], rows.models["model_id"])
    cell = number_of_pair(model, numbered(rows.frame["item_id"], rows.items["item_id"]), shape[1])
    rows = told_apart(rows, cell, spec)
    settled = settle_repeats(rows, cell, shape[0] * shape[1], spec.repeats)
    arrays = {
        name: _scatter(settled["cell"].to_numpy(), settled[name].to_numpy(), shape, 0 if name == "n_trials" else np.nan)
        for name in ("response", "n_trials", *rows.costs)
        if name in settled.columns
    }
    matrix = ResponseMatrix.create(
        arrays.pop("response"),
        models=table_of_models(rows, models),
        items=table_of_items(rows, items, spec),
        n_trials=arrays.pop("n_trials", None),
        costs=arrays,
        lost=lost_of_cells(rows, cell, shape, spec.repeats),
    ).with_errors(spec.errors or rows.errors)
    source = rows.source
    try:
        if spec.missing == "forbid":
            check_complete(matrix.responses, matrix.model_ids, matrix.item_ids)
        if spec.empty == "error":
            check_have_responses(*_asked(matrix), matrix.model_ids, matrix.item_ids)
    except DataError as error:
        advice = "" if spec.missing == "forbid" else f" {remedy(_DROP, _DROP_IN_FILE)} does so."
        raise DataError(f"{source}: {error}{advice}") from error
    return _without_empty(matrix, source) if spec.empty == "drop" else matrix


def _scatter(
    cell: IntArray, values: FloatArray | IntArray, shape: tuple[int, int], empty: float = np.nan
) -> np.ndarray[Any, Any]:
    """Put the values of some cells into a matrix, of float64 where the others are NaN."""
    flat = np.full(shape[0] * shape[1], empty)
    flat[cell] = values
    return flat.reshape(shape)


def table_of_models(rows: ResponseRows, known: pl.DataFrame | None) -> pl.DataFrame:
    """Everything known of the models, in order of the matrix."""
    table = rows.models.select("model_id", pl.exclude("model_id"))
    return table if known is None else add_known(table, known, "model_id", rows.source)


def table_of_items(rows: ResponseRows, known: pl.DataFrame | None, spec: ReadingSpec) -> pl.DataFrame:
    """Everything known of the items, in order of the matrix; every item gets a scenario."""
    table = rows.items
    if known is not None:
        table = add_known(table, known, "item_id", rows.source)
    if "scenario" not in table.columns:
        return table.with_columns(pl.lit(spec.scenario or DEFAULT_SCENARIO).alias("scenario"))
    unnamed = table.filter(pl.col("scenario").is_null())["item_id"].to_list()
    name = spec.scenario or DEFAULT_SCENARIO
    if unnamed and (table["scenario"] != name).any() and spec.scenario is None:
        warn(
            f"{len(unnamed)} of {table.height} items have no scenario and are put into {name!r}: {shown(unnamed)}.",
            DataWarning,
        )
    return table.with_columns(pl.col("scenario").fill_null(name))


def _asked(matrix: ResponseMatrix) -> tuple[BoolArray, BoolArray]:
    """Which models have a response, (n_models,), and which items one or an attempt that was lost, (n_items,)."""
    return np.asarray(matrix.observed.any(axis=1)), np.asarray(matrix.asked.any(axis=0))


def warn_of_lost(matrix: ResponseMatrix) -> None:
    """Warn of lost answers that count as missing; `estimate`, `compare` and `gate` say what that does to scores."""
    if matrix.lost is None or matrix.lost.errors != "missing":
        return
    by_model = matrix.lost.n.sum(axis=1)
    order = [row for row in np.argsort(-by_model, kind="stable").tolist() if by_model[row]]
    names = [f"{by_model[row]} of {quoted(matrix.model_ids[row])}" for row in order]
    ways = remedy("errors='wrong' or 'bounds' in ReadingSpec", "--errors wrong or bounds")
    warn(
        f"lost answers count as missing, not wrong: {first_few(names)} ({matrix.lost.in_words}). To count them "
        f"otherwise: {ways}.",
        ModelWarning,
    )


def _without_empty(matrix: ResponseMatrix, source: str) -> ResponseMatrix:
    """Leave out models and items that nobody asked; only models are worth a warning."""
    has_model, has_item = _asked(matrix)
    if has_model.all() and has_item.all():
        return matrix
    if not has_model.any():
        raise DataError(f"{source}: there must be at least one response, got none.")
    names = [matrix.model_ids[row] for row in np.flatnonzero(~has_model).tolist()]
    if names:
        message = f"{source}: {len(names)} models without any response are left out: {shown(names)}."
        warn(message, DataWarning)
    return matrix.take(models=np.flatnonzero(has_model), items=np.flatnonzero(has_item))


def warn_of_partial_runs(models: pl.DataFrame) -> None:
    """Warn of models that were run on a part of their tasks, as their table says; of new models that is no fault.

    The harness's ``--limit`` takes the first items of a task, not random ones.
    """
    columns = ("model_id", "n_items_run", "n_items_full", "is_partial")
    if not {*columns} <= {*models.columns} or models.schema["is_partial"] != pl.Boolean:
        return
    partial = models.filter("is_partial").select(columns[:3]).rows()
    if partial:
        names = [f"{model!r} ({n_run} of {n_full or 'unknown'} items)" for model, n_run, n_full in partial]
        message = (
            f"{len(names)} models were run on a part of their tasks only: {first_few(names)}. Calibrated on them, a "
            "full score is the score over the items that were run."
        )
        warn(message, DataWarning)
