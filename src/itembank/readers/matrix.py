"""From rows to a `ResponseMatrix`: one response a cell, tables joined, emptiness judged."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.checks import check_names
from itembank.errors import DataError, DataWarning, ModelWarning, first_few, quoted, remedy, shown, warn
from itembank.files.memory import check_matrix_fits
from itembank.numerics.arrays import BoolArray
from itembank.numerics.paired import AGREEMENT
from itembank.readers.columns import id_column
from itembank.readers.pass_powers import wanted_powers, with_powers
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.readers.rows import ResponseRows
from itembank.readers.settling import ROUNDING, SPREAD, can_be_counted, lost_of_cells, scattered, settle_repeats
from itembank.readers.table_files import read_table_file
from itembank.readers.telling_apart import told_apart
from itembank.responses.how_read import ATTEMPT_VARIANCE
from itembank.responses.labels import IdKind, number_of_pair, numbered
from itembank.responses.opening import Table
from itembank.responses.responses import DEFAULT_SCENARIO, ResponseMatrix, check_complete, without_silent
from itembank.tables import plural


def read_known(path: Path, key: str) -> tuple[pl.DataFrame, IdKind | None]:
    """Read a file of one row a model (key `model_id`) or item (key `item_id`); return it, and the kind of its ids."""
    return known_table(read_table_file(path, text=(key, "scenario", "subscenario"), infer=True), key)


def known_table(table: Table, key: str) -> tuple[pl.DataFrame, IdKind | None]:
    """Check a table of one row a model or item, and make its ids text; return it, and the kind that they were of."""
    columns = table.frame.columns
    if key not in columns:
        known = shown(columns, 10)
        raise DataError(f"{table.source}: there must be a column {key!r}; there are {known}. Rename that of the ids.")
    check_names(table.source, columns)
    problems: list[str] = []
    found = id_column(table, key, problems)
    if found is not None and found[0].n_unique() < table.frame.height:
        repeated = table.frame[key].filter(table.frame[key].is_duplicated()).unique(maintain_order=True).to_list()
        problems.append(f"{key} must be unique, got {plural(len(repeated), 'id')} more than once: {shown(repeated)}.")
    if problems or found is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    names = [pl.col(name).cast(pl.String).replace("", None) for name in ("scenario", "subscenario") if name in columns]
    return table.frame.with_columns(found[0].cast(pl.String).alias(key), *names), found[1]


def add_known(table: pl.DataFrame, known: pl.DataFrame | None, key: str, source: str) -> pl.DataFrame:
    """Add the columns of `known`; what the responses say themselves stays, with a warning where they differ."""
    if known is None:
        return table
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
        unequal = joined.filter(joined[name] != other)
        if unequal.height:
            first = unequal.row(0, named=True)
            warn(
                f"{name} of {unequal.height} {word}s differs between the responses ({first[name]!r} for {first[key]!r})"
                f" and the table of {word}s ({first[name + _SUFFIX]!r}); those with the responses are used.",
                DataWarning,
            )
        joined = joined.with_columns(pl.coalesce(joined[name], other))
    return joined.drop(name + _SUFFIX for name in both)


def _cast(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Values as another type; none of those that are none of it."""
    try:
        return values.cast(dtype, strict=False)
    except pl.exceptions.InvalidOperationError:  # text is never true or false to Polars
        return pl.Series(values.name, [None] * len(values), dtype)


_SUFFIX = "\0known"


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
    k = wanted_powers(rows.items, spec, rows.source)
    repeats = spec.of_trials().repeats if k.any() else spec.repeats
    settled = settle_repeats(rows, cell, shape[0] * shape[1], repeats)
    arrays = {
        name: scattered(
            settled["cell"].to_numpy(), settled[name].to_numpy(), shape, 0 if name == "n_trials" else np.nan
        )
        for name in ("response", "n_trials", *rows.costs)
        if name in settled.columns
    }
    table = table_of_items(rows, items, spec)
    if SPREAD in settled.columns and not can_be_counted(rows.response[~np.isnan(rows.response)]):
        variance = _pooled(settled, shape[1])
        table = table if variance.is_null().all() else table.with_columns(variance)
    errors = spec.errors or spec.usual_errors or rows.errors
    matrix = ResponseMatrix.create(
        arrays.pop("response"),
        models=add_known(rows.models.select("model_id", pl.exclude("model_id")), models, "model_id", rows.source),
        items=table,
        n_trials=arrays.pop("n_trials", None),
        costs=arrays,
        lost=lost_of_cells(rows, cell, shape, repeats),
    ).with_errors(errors)
    if k.any():
        matrix = with_powers(matrix, k, errors, rows.source)
    if spec.missing == "forbid":
        try:
            check_complete(matrix.responses, matrix.model_ids, matrix.item_ids)
        except DataError as error:
            raise DataError(f"{rows.source}: {error}") from error
    return matrix


def _pooled(settled: pl.DataFrame, n_items: int) -> pl.Series:
    """Variance of one attempt at each item, of all models' attempts, (n_items,), from settled rows; else null."""
    known = settled.filter(pl.col(SPREAD).is_not_nan())
    item, degrees = known["cell"].to_numpy() % n_items, known["n_trials"].to_numpy() - 1.0
    n = np.bincount(item, weights=degrees, minlength=n_items)
    total = np.bincount(item, weights=degrees * known[SPREAD].to_numpy(), minlength=n_items)
    variance = np.divide(total, n, out=np.full(n_items, np.nan), where=n > 0.0)
    return pl.Series(ATTEMPT_VARIANCE, variance).fill_nan(None)


def table_of_items(rows: ResponseRows, known: pl.DataFrame | None, spec: ReadingSpec) -> pl.DataFrame:
    """Everything known of the items, in order of the matrix; every item gets a scenario."""
    table = add_known(rows.items, known, "item_id", rows.source)
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


MEANS = (
    r"^(macro|micro|grand|n|num|mean|average|avg|overall|total)?"
    r"(average|avg|mean|overall|total|sum|all|acc|accuracy|score|correct)$"
    r"|^(std|stdev|stddev|sd|stderr|se|sem|standarddeviation|standarderror|difficulty|errorrate)$"
)
"""What a mean, sum or spread of all columns or rows is called, without case and all that is no letter or digit."""
NO_MODEL = (
    r"^(best|worst|oracle|upperbound|majority|plurality|vot(e|ing)|ensemble|consensus|union|humans?|random|chance"
    r"|average|avg|mean|overall|any|all|delta|diff(erence)?|agree(ment)?)(vot(e|ing)|of(all|any|n|\d)|models?|experts?"
    r"|performance|accuracy|score|baseline|correct|right|passed)*$"
)
"""What is called as the best or a vote of several models, as people, or as chance."""
NO_LETTERS = r"[^\p{L}\p{N}]"


def tell_of_no_models(rows: ResponseRows) -> ResponseRows:
    """Return rows, with a warning of models that are called as no single model is."""
    ids = rows.models["model_id"]
    others = ids.filter(ids.str.to_lowercase().str.replace_all(NO_LETTERS, "").str.contains(NO_MODEL)).to_list()
    if 0 < len(others) < len(ids):
        warn(
            f"{rows.source}: {shown(others)} may be several models, people or chance, and count as models. If they "
            f"shall not, delete their rows; or, if they are columns, add: {how(drop_columns=tuple(others))}",
            DataWarning,
        )
    return rows


def refuse_means(matrix: ResponseMatrix, source: str) -> None:
    """Raise `DataError` where items, or models, are called means or spreads and mostly hold those of the others."""
    problems = []
    for axis, key in enumerate(("model_id", "item_id")):
        ids = (matrix.models, matrix.items)[axis][key]
        called = ids.str.to_lowercase().str.replace_all(NO_LETTERS, "").str.contains(MEANS).to_numpy()
        names = [ids[place] for place in _places_of_means(matrix, called, axis)] if called.any() else []
        if names:
            problems.append(
                f"each {key.removesuffix('_id')} must have responses of its own, got {shown(names)}, which holds "
                "the means or sums of all others, or their spread. Delete it; if it is a column, add: "
                f"{how(drop_columns=tuple(names))}"
            )
    if problems:
        raise DataError(f"{source}: " + "\n".join(problems))


def _places_of_means(matrix: ResponseMatrix, called: BoolArray, axis: int) -> list[int]:
    """Return which models (axis 0) or items (axis 1) that are called so mostly hold means or the like of all others.

    Not each response need be one: rounding, an empty cell, and the corner of a table with both a row and a column of
    means part some. Where everything is right, or wrong, a question may be called so.
    """
    scenario = matrix.items["scenario"].to_numpy() if axis else np.full(called.shape, "")
    groups = [~called, *(~called & (scenario == name) for name in np.unique(scenario[~called]))]
    known = [np.compress(group, matrix.responses, axis) for group in groups]
    n_known = np.stack([np.count_nonzero(~np.isnan(one), axis=axis) for one in known])
    total = np.stack([np.nansum(one, axis=axis) for one in known])
    n_right = np.count_nonzero(known[0] > 0.0, axis=axis)
    means = np.divide(total, n_known, out=np.full(total.shape, np.nan), where=n_known > 0)
    n, n_below = np.maximum(n_known[0], 1), np.maximum(n_known[0] - 1, 1)
    spread = np.sqrt(np.maximum(np.nansum(known[0] ** 2, axis=axis) / n - np.nan_to_num(means[0]) ** 2, 0.0))
    sample = spread * np.sqrt(n / n_below)
    shares = (means[0], 1.0 - means[0], spread, sample, sample / np.sqrt(n))
    n_scenarios = np.count_nonzero(n_known[1:], axis=0)
    of_scenarios = np.nansum(means[1:], axis=0) / np.maximum(n_scenarios, 1)
    found = []
    for place in np.flatnonzero(called).tolist():
        own = np.asarray(matrix.responses.take(place, axis))
        is_known = ~np.isnan(own) & (n_known[0] > 1)
        is_rough = (own[is_known] % 1.0 != 0.0).any() and np.allclose(own[is_known], np.round(own[is_known], 1))  # 0.7
        of_all = total[0] / max(np.count_nonzero(~called), 1)  # empty cells counted as wrong
        for one, is_sum in (*((one, False) for one in (*shares, of_scenarios, of_all)), (total[0], True)):
            tells = is_known & ((one > 0.0) if is_sum else (np.abs(one - 0.5) < 0.49))
            agrees = is_known & (np.abs(own - one) <= (0.05 if is_rough else AGREEMENT) + ROUNDING)
            n_told, n_alike = (
                np.array([one[is_known].sum(), one[tells].sum()]) for one in (np.ones_like(agrees), agrees)
            )
            # sums of one right answer each may be chance
            is_chance = is_sum and not (agrees & (n_right > 1)).any() and ((n_alike < n_told).any() or n_alike[1] < 2)
            if n_alike[1] and (2 * n_alike > n_told).all() and not is_chance:
                found.append(place)
                break
    return found


def warn_of_lost(matrix: ResponseMatrix) -> None:
    """Warn of lost answers that count as missing; `estimate`, `compare` and `gate` say what that does to scores."""
    if matrix.lost is None or matrix.lost.errors != "missing" or not matrix.lost.n.any():
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


def without_empty(matrix: ResponseMatrix, source: str) -> ResponseMatrix:
    """Leave out models that answered nothing, and items that nobody was asked.

    Items whose every answer was lost stay: they count as the responses, or a later verb, say.
    """
    has_model, has_item = (np.asarray(told) for told in (matrix.observed.any(axis=1), matrix.asked.any(axis=0)))
    if not has_model.any():
        way = remedy("errors='wrong'", "--errors wrong")
        lost = "" if matrix.lost is None else f" Answers were lost: {matrix.lost.in_words}. As wrong ones: {way}."
        raise DataError(f"{source}: there must be at least one response, got none.{lost}")
    if has_model.all() and has_item.all():
        return matrix
    if matrix.n_models == 1:  # that it was not asked some items is no news
        return matrix.take(items=np.flatnonzero(has_item))
    return without_silent(matrix, has_model, has_item, f"{source}: ")


FEW = 12
"""So many answers may be alike by chance."""


def warn_of_odd(matrix: ResponseMatrix, source: str) -> None:
    """Warn of many responses of several models that look as if something else was read.

    No item has two models', all models have the same, models are items, too; or all are right, or all wrong, where
    others were not recorded.
    """
    n_of_item = matrix.observed.sum(axis=0)
    highest, lowest = (one.reduce(matrix.responses, axis=0) for one in (np.fmax, np.fmin))
    n_known, is_shared = int(n_of_item.sum()), n_of_item > 1
    shared, is_alike = highest[is_shared], bool((highest == lowest)[is_shared].all())
    both = [*{*matrix.model_ids} & {*matrix.item_ids}]
    own = {str(matrix.responses[matrix.model_ids.index(name), matrix.item_ids.index(name)]) for name in both}
    told = ""
    if 2 * len(both) > max(matrix.n_models, 3) and len(own) == 1:
        told = "models and items have the same ids, as where models are compared with each other: these are no items"
    elif matrix.n_models == 1 or n_known <= FEW:
        return
    elif matrix.n_models > 4 and not is_shared.any():  # of few new models each may have items of its own
        column = how(columns={"item_id": "..."})
        told = f"no item was asked of two models. If another column has ids that all models share, add: {column}"
    elif is_alike and matrix.n_models > 2 and n_of_item[is_shared].sum() > 2 * FEW and np.ptp(shared):
        column = how(columns={"response": "..."})
        told = f"all models have the same responses, as right answers are. If another column has theirs, add: {column}"
    if told:
        warn(f"{source}: {told}", DataWarning)
    one, n_absent = float(np.fmax.reduce(highest, initial=np.nan)), np.count_nonzero(~matrix.asked)
    if n_absent and n_known > FEW and one in {0.0, 1.0} and np.fmin.reduce(lowest, initial=np.nan) == one:
        word, other = ("right", "wrong") if one else ("wrong", "right")
        warn(
            f"{source}: all {n_known} responses are {word}, and {n_absent} pairs of model and item have none. If "
            f"these are the {other} ones, write {1 - one:.0f} for them.",
            DataWarning,
        )


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
            f"{plural(len(names), 'model', 'were')} run on a part of their tasks only: {first_few(names)}. Calibrated "
            "on them, a full score is the score over the items that were run."
        )
        warn(message, DataWarning)
