"""From rows to a `ResponseMatrix`: one response a cell, tables joined, emptiness judged."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, ModelWarning, first_few, quoted, remedy, shown, warn
from itembank.files.memory import check_matrix_fits
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.columns import id_labels
from itembank.readers.long_table import AGREEMENT
from itembank.readers.reading_specs import ReadingSpec, Repeats
from itembank.readers.rows import ResponseRows, can_be_counted
from itembank.readers.table_files import read_table_file
from itembank.readers.telling_apart import told_apart
from itembank.responses.labels import Labels, come_again, number_of_pair
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.opening import Table
from itembank.responses.responses import (
    DEFAULT_SCENARIO,
    ResponseMatrix,
    check_complete,
    check_have_responses,
)


def read_known(path: Path, key: str) -> tuple[pl.DataFrame, Labels]:
    """Read a file of one row a model (key `model_id`) or item (key `item_id`), with its ids as text."""
    return known_table(read_table_file(path, text=(key, "scenario", "subscenario"), infer=True), key)


def known_table(table: Table, key: str) -> tuple[pl.DataFrame, Labels]:
    """Check a table of one row a model or item, and make its ids text."""
    columns = table.frame.columns
    if key not in columns:
        raise DataError(f"{table.source}: there must be a column {key!r}; there are {shown(columns, 10)}.")
    problems: list[str] = []
    labels = id_labels(table, key, problems)
    if labels is not None and labels.n_names < table.frame.height:
        repeated = table.frame[key].filter(table.frame[key].is_duplicated()).unique(maintain_order=True).to_list()
        problems.append(f"{key} must be unique, got {len(repeated)} ids more than once: {shown(repeated)}.")
    if problems or labels is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    frame = table.frame.with_columns(labels.names.rename(key))
    empty_is_unknown = [
        pl.col(name).cast(pl.String).replace("", None) for name in ("scenario", "subscenario") if name in columns
    ]
    return frame.with_columns(empty_is_unknown), labels


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


@dataclass(frozen=True, slots=True)
class Cells:
    """At most one response a cell."""

    index: IntArray  # (n_cells,): model index * n_items + item index, each once
    response: FloatArray  # (n_cells,)
    n_trials: IntArray | None  # (n_cells,)
    costs: dict[str, FloatArray]  # mapping of unit to (n_cells,)


def settle_repeats(rows: ResponseRows, cell: IntArray, n_cells: int, repeats: Repeats) -> Cells:
    """Leave one response a cell.

    Copies (equal responses, of the same seed where seeds are known) count once, with a `DataWarning`. Repeated
    attempts (other seeds; or, with 'count' and 'mean', any rows without seeds) are counted, averaged, or the last is
    taken, when `repeats` says so. Counting makes every response a number of successes among trials.
    """
    if repeats == "count":
        rows = _as_counts(rows)
    is_present = ~np.isnan(rows.response)
    is_repeated = come_again(cell, n_cells, is_present)
    if is_present.all() and not is_repeated.any():
        return Cells(cell, rows.response, rows.n_trials, dict(rows.costs))
    is_answered = np.zeros(n_cells, dtype=bool)
    is_answered[cell[is_present]] = True
    # rows with a response stand alone, and rows that tell a cost of a cell without one
    tells_more = np.zeros(rows.n_rows, dtype=bool) if rows.n_trials is None else rows.n_trials != 0
    for cost in rows.costs.values():
        tells_more |= ~np.isnan(cost)
    alone = np.flatnonzero(~is_repeated & (is_present | (tells_more & ~is_answered[cell])))
    repeated = np.flatnonzero(is_repeated)
    if not repeated.size:
        return _of_rows(rows, cell, alone)
    if repeats == "last":
        _, position = np.unique(cell[repeated][::-1], return_index=True)
        return _of_rows(rows, cell, np.concatenate([alone, np.sort(repeated[::-1][position])]))
    single = _without_copies(rows, cell, repeated, keep_seedless=repeats in POOLED)
    again = single[np.bincount(cell[single], minlength=n_cells)[cell[single]] > 1]
    if again.size == 0:
        return _of_rows(rows, cell, np.concatenate([alone, single]))
    _refuse(rows, cell, again, repeats)
    done = np.setdiff1d(single, again, assume_unique=True)
    return _with_means(rows, cell, np.concatenate([alone, done]), again)


def _as_counts(rows: ResponseRows) -> ResponseRows:
    """Make every response successes / trials; `DataError` names those that are no such ratio."""
    present = ~np.isnan(rows.response)
    trials = present.astype(np.int64) if rows.n_trials is None else rows.n_trials
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
            f"add: {_option('mean')}"
        )
    counted = np.where(present, whole / at_least_one, np.nan)
    return replace(rows, response=counted, n_trials=np.where(present, at_least_one, trials))


def _of_rows(rows: ResponseRows, cell: IntArray, chosen: IntArray) -> Cells:
    """Take these rows as they are; of several for one cell the last stays."""
    n_trials = None if rows.n_trials is None else rows.n_trials[chosen]
    costs = {unit: cost[chosen] for unit, cost in rows.costs.items()}
    return Cells(cell[chosen], rows.response[chosen], n_trials, costs)


def _seed(rows: ResponseRows, of: IntArray) -> IntArray:
    return np.full(of.shape, -1, dtype=np.int64) if rows.seeds is None else rows.seeds.index[of]


def _without_copies(rows: ResponseRows, cell: IntArray, repeated: IntArray, *, keep_seedless: bool) -> IntArray:
    """Leave the first of equal rows of one cell and seed; a row unlike the first stays, to be refused later."""
    table = pl.DataFrame(
        {
            "row": repeated,
            "cell": cell[repeated],
            "seed": _seed(rows, repeated),
            "response": rows.response[repeated],
            "n_trials": np.zeros_like(repeated) if rows.n_trials is None else rows.n_trials[repeated],
        }
    )
    group = ("cell", "seed")
    same = 1e-6  # files of the same results in float32 and as text differ by 6e-8
    is_copy = (
        ((pl.col("response") - pl.col("response").first().over(*group)).abs() <= same)
        & (pl.col("n_trials") == pl.col("n_trials").first().over(*group))
        & (pl.col("row") != pl.col("row").first().over(*group))
    )
    if keep_seedless:
        is_copy &= pl.col("seed") >= 0
    kept = table.filter(~is_copy)["row"].to_numpy()
    tell_of_copies(rows.source, repeated.size - kept.size, are_counted=can_be_counted(rows.response[repeated]))
    return kept


def _advice(responses: FloatArray) -> str:
    count = f"to count them add: {_option('count')}, or " if can_be_counted(responses) else ""
    return f"{count}for their mean add: {_option('mean')}, or for the last one add: {_option('last')}"


def _option(repeats: Repeats) -> str:
    return remedy(f"repeats={repeats!r}", f"--repeats {repeats}")


def tell_of_copies(source: str, n_copies: int, *, are_counted: bool) -> None:
    """Warn of rows that are copies of others, where there are any."""
    if n_copies:
        message = (
            f"{source}: {n_copies} rows repeat an earlier row of the same model and item with the same response; "
            f"they count once. If they are repeated attempts, add: {_option('count' if are_counted else 'mean')}"
        )
        warn(message, DataWarning)


def _refuse(rows: ResponseRows, cell: IntArray, again: IntArray, repeats: Repeats) -> None:
    """Raise `DataError` for contradictions, and for repeated attempts that nobody asked to average."""
    table = pl.DataFrame({"row": again, "cell": cell[again], "seed": _seed(rows, again)})
    is_attempt = (pl.col("seed").min().over("cell") >= 0) & (
        pl.col("seed").n_unique().over("cell") == pl.len().over("cell")
    )
    # Averaging may be asked for where seeds are unknown, but never of two answers with one seed.
    attempts = table.filter(is_attempt)
    others = table.filter(~is_attempt)
    if repeats in POOLED:
        attempts, others = attempts.clear(), others.filter((pl.col("seed") >= 0).any().over("cell"))
    problems = []
    if others.height:
        problems.append(
            f"one model must have one response to an item, got different ones for {_cells(rows, others)}. "
            + (
                "They even have the same seed, or only some have a seed; correct the table."
                if repeats in POOLED
                else f"Correct the table; or, if they are repeated attempts, {_advice(rows.response[again])}."
            )
        )
    if attempts.height:
        problems.append(
            f"one model must have one response to an item, got repeated attempts (several seeds) for "
            f"{_cells(rows, attempts)}. They are never averaged unasked; {_advice(rows.response[again])}."
        )
    if problems:
        raise DataError(f"{rows.source}: " + " ".join(problems))


def _cells(rows: ResponseRows, table: pl.DataFrame) -> str:
    """Name the first few cells with all their responses."""
    n_cells = table["cell"].n_unique()
    groups = table.group_by("cell", maintain_order=True).agg("row").head(N_SHOWN)["row"].to_list()
    parts = []
    for group in groups:
        members = np.array(group, dtype=np.int64)
        values = " and ".join(f"{value:g}" for value in rows.response[members[:3]])
        more = f" and {members.size - 3} more" if members.size > 3 else ""
        (model,), (item,) = rows.models.at(members[:1]), rows.items.at(members[:1])
        parts.append(f"{model!r} item {item!r} = {values}{more}")
    return f"{n_cells} pairs: {first_few(parts, n_cells)}"


def _with_means(rows: ResponseRows, cell: IntArray, single: IntArray, again: IntArray) -> Cells:
    """Average the repeated rows: responses over all trials, costs over rows (the cost of one attempt)."""
    base = _of_rows(rows, cell, single)
    trials = np.ones(again.size) if rows.n_trials is None else np.maximum(rows.n_trials[again], 1).astype(np.float64)
    unique, group = np.unique(cell[again], return_inverse=True)
    n_groups = unique.size
    total = np.bincount(group, weights=trials, minlength=n_groups)
    mean = np.bincount(group, weights=trials * rows.response[again], minlength=n_groups) / total
    single_trials = np.where(np.isnan(base.response), 0, 1) if base.n_trials is None else base.n_trials
    costs = {
        unit: np.concatenate([base.costs[unit], _mean_known(cost[again], group, n_groups)])
        for unit, cost in rows.costs.items()
    }
    return Cells(
        np.concatenate([base.index, unique]),
        np.concatenate([base.response, mean]),
        np.concatenate([single_trials, total.astype(np.int64)]),
        costs,
    )


def _mean_known(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Mean of the known values of each group, NaN where none is known."""
    known = ~np.isnan(values)
    count = np.bincount(group[known], minlength=n_groups)
    total = np.bincount(group[known], weights=values[known], minlength=n_groups)
    result: FloatArray = np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0)
    return result


def lost_of_cells(rows: ResponseRows, cell: IntArray, n_cells: int, repeats: Repeats) -> LostAnswers | None:
    """Count the lost attempts of each cell, (n_cells,); None where there are none.

    Where attempts are counted or averaged, each that was lost counts, unless the same one (by its seed) was answered in
    another row. Else a cell is one attempt: what a later or an earlier row answered was not lost.
    """
    if rows.lost is None or not rows.lost.n.any():
        return None
    is_attempt = repeats in POOLED
    table = pl.DataFrame(
        {
            "cell": cell,
            "seed": _seed(rows, np.arange(rows.n_rows)) if is_attempt else np.zeros(rows.n_rows, dtype=np.int64),
            "n": rows.lost.n,
            "kind": rows.lost.kind,
            "is_answered": ~np.isnan(rows.response),
        }
    )
    one = ["cell", "seed"]
    if is_attempt:  # without a seed each row is an attempt
        table = table.with_columns(
            seed=pl.when(pl.col("seed") < 0).then(-1 - pl.int_range(pl.len())).otherwise("seed"),
        )
    table = table.filter(pl.col("is_answered") | ~pl.col("is_answered").any().over(one))
    attempts = table.group_by(one, maintain_order=True).agg(pl.col("n").max(), pl.col("kind").max())
    found = attempts.group_by("cell").agg(pl.col("n").sum(), pl.col("kind").max()).filter(pl.col("n") > 0)
    if not found.height:
        return None
    n, kind = np.zeros(n_cells, dtype=np.int64), np.zeros(n_cells, dtype=np.int64)
    places = found["cell"].to_numpy()
    n[places], kind[places] = found["n"].to_numpy(), found["kind"].to_numpy()
    return LostAnswers(n, kind)


_DROP = "empty='drop'"
_DROP_IN_FILE = "empty = 'drop' in the file of itembank import --spec"


def to_matrix(
    rows: ResponseRows, spec: ReadingSpec, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None
) -> ResponseMatrix:
    """Make the response matrix of these rows."""
    shape = (rows.models.n_names, rows.items.n_names)
    if 0 in shape:
        raise DataError(f"{rows.source}: there must be at least one response, got none.")
    n_arrays = 1 + (rows.n_trials is not None) + len(rows.costs) + 2 * (rows.lost is not None)
    check_matrix_fits(rows.source, *shape, n_responses=rows.n_rows, n_arrays=n_arrays)
    cell = number_of_pair(rows.models, rows.items)
    rows = told_apart(rows, cell, spec)
    cells = settle_repeats(rows, cell, shape[0] * shape[1], spec.repeats)
    lost = lost_of_cells(rows, cell, shape[0] * shape[1], spec.repeats)
    matrix = ResponseMatrix.create(
        _scatter(cells.index, cells.response, shape),
        models=table_of_models(rows, models),
        items=table_of_items(rows, items, spec),
        n_trials=None if cells.n_trials is None else _scatter(cells.index, cells.n_trials, shape, 0),
        costs={unit: _scatter(cells.index, cost, shape) for unit, cost in cells.costs.items()},
        lost=None if lost is None else LostAnswers(lost.n.reshape(shape), lost.kind.reshape(shape)),
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
    flat = np.full(shape[0] * shape[1], empty)
    flat[cell] = values
    return flat.reshape(shape)


def table_of_models(rows: ResponseRows, known: pl.DataFrame | None) -> pl.DataFrame:
    """Everything known of the models, in order of the matrix."""
    table = pl.DataFrame({"model_id": rows.models.names})
    table = table.join(rows.model_table, on="model_id", how="left", maintain_order="left")
    return table if known is None else add_known(table, known, "model_id", rows.source)


def table_of_items(rows: ResponseRows, known: pl.DataFrame | None, spec: ReadingSpec) -> pl.DataFrame:
    """Everything known of the items, in order of the matrix; every item gets a scenario."""
    table = pl.DataFrame({"item_id": rows.items.names})
    table = table.join(rows.item_table, on="item_id", how="left", maintain_order="left")
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
