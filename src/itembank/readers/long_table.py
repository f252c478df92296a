"""Long tables: one row a response."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.checks import row_problems
from itembank.readers.columns import examples, id_labels, numbers, optional_labels
from itembank.readers.counts import RowIds, settle_counts
from itembank.readers.reading_specs import COST_COLUMNS, LONG_COLUMNS, ReadingSpec
from itembank.readers.rows import ResponseRows
from itembank.readers.truth_words import ResponseNumbers, response_numbers
from itembank.responses.labels import Labels, first_in_group
from itembank.responses.opening import Table


def wanted_columns(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Those of a long table's columns that are read."""
    wanted = {spec.column(name) for name in LONG_COLUMNS}
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
            f"n_trials), got none called {shown(absent)}; there are {shown(columns, 12)}. Say what the file calls "
            f"them: {how}; a table of one model may get its id from "
            f"{one}."
        )


def text_columns(spec: ReadingSpec) -> list[str]:
    """Columns that hold names, as the file calls them."""
    return [spec.column(name) for name in ("model_id", "item_id", "scenario", "subscenario", "seed", "epoch")]


def rows_of_long(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a long table.

    Raises
    ------
    DataError
        With every problem of the table: ids, numbers, ranges, items in two scenarios.
    """
    check_columns(table.source, table.frame.columns, spec)
    problems: list[str] = []
    models = _model_labels(table, spec, problems)
    items = id_labels(table, spec.column("item_id"), problems, name="item_id")
    if models is None or items is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    ids = RowIds(table.source, models, items)
    values = {name: _numbers(table, spec, name, ids, problems) for name in _NUMBER_COLUMNS}
    response, trials = settle_counts(values, spec, ids, problems)
    items, item_table = _item_table(table, spec, items, problems)
    costs = {unit: cost for unit in COST_COLUMNS if (cost := values[unit]) is not None and not np.isnan(cost).all()}
    seeds = _attempts(table, spec)
    rows = ResponseRows(table.source, models, items, response, trials, costs, seeds, item_table=item_table)
    problems.extend(row_problems(rows, max_response=spec.max_response))
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    given = values["n_trials"]
    is_told = np.zeros(response.shape, dtype=bool) if given is None else given == 0.0  # zero trials
    n_missing = int(np.count_nonzero(np.isnan(response) & ~is_told))
    tell_of_missing(table.source, n_missing, rows.n_rows)
    return rows


def tell_of_missing(source: str, n_missing: int, n_rows: int) -> None:
    """Warn of rows without a response, where there are any."""
    if n_missing:
        warn(f"{source}: {n_missing} of {n_rows} rows have no response and count as missing.", DataWarning)


def _attempts(table: Table, spec: ReadingSpec) -> Labels | None:
    """Return labels of the attempts of one model at one item: seed, epoch, or both; None when neither is told."""
    seeds, epochs = (optional_labels(table, spec.column(name)) for name in ("seed", "epoch"))
    if seeds is None or epochs is None:
        return seeds or epochs
    pair = np.where((seeds.index < 0) & (epochs.index < 0), -1, (seeds.index + 1) * (epochs.n_names + 1) + epochs.index)
    return Labels.of(pl.Series("name", pair, dtype=pl.Int64).replace(-1, None).cast(pl.String))


_NUMBER_COLUMNS = ("response", "n_trials", "n_correct", *COST_COLUMNS)


def _model_labels(table: Table, spec: ReadingSpec, problems: list[str]) -> Labels | None:
    """Return the models of the rows; the one the spec names where no column does."""
    column = spec.column("model_id")
    if column in table.frame.columns:
        return id_labels(table, column, problems, name="model_id")
    name = pl.Series("name", [spec.model_id], dtype=pl.String)
    return Labels(name, np.zeros(table.frame.height, dtype=np.int64))


def _numbers(table: Table, spec: ReadingSpec, name: str, ids: RowIds, problems: list[str]) -> FloatArray | None:
    """Return one column as numbers, None when absent."""
    column = spec.column(name)
    if column not in table.frame.columns:
        return None
    chosen = table.frame[[column]]
    is_response = name == "response"
    found = response_numbers(chosen, spec, table.source) if is_response else ResponseNumbers(*numbers(chosen))
    if found.bad:
        rows = found.bad[column].arg_true().to_numpy().astype(np.int64)
        named = zip(ids.pairs(rows), examples(table.frame[column], rows), strict=True)
        where = first_few([f"{pair} = {value!r}" for pair, value in named], rows.size)
        problems.append(f"{column} must be a number, got {rows.size} values that are none: {where}.{found.advice}")
    return found.values[:, 0]


def _item_table(table: Table, spec: ReadingSpec, items: Labels, problems: list[str]) -> tuple[Labels, pl.DataFrame]:
    """Return scenario and subscenario of each item, and the items (renamed when scenarios are put before them)."""
    scenario = optional_labels(table, spec.column("scenario"))
    if spec.prefix_scenario:
        items = _prefixed(items, scenario, spec)
    columns = {"item_id": items.names}
    for name, labels in (("scenario", scenario), ("subscenario", optional_labels(table, spec.column("subscenario")))):
        if labels is None:
            continue
        first, differing = first_in_group(items.index, items.n_names, labels.index)
        if differing.size:
            problems.append(_two_scenarios(name, items, labels, first, differing))
        lookup = pl.concat([labels.names, pl.Series("name", [None], dtype=pl.String)])
        columns[name] = lookup.gather(np.where(first < 0, labels.n_names, first))
    return items, pl.DataFrame(columns)


def _two_scenarios(name: str, items: Labels, labels: Labels, first: IntArray, differing: IntArray) -> str:
    """Say which items have two."""
    index, rows = np.unique(items.index[differing], return_index=True)
    order = np.argsort(rows)
    shown_items = index[order[:N_SHOWN]]
    others = labels.at(differing[rows[order[:N_SHOWN]]])
    named = zip(items.names.gather(shown_items), labels.names.gather(first[shown_items]), others, strict=True)
    found = [f"{item!r} in {one!r} and {other!r}" for item, one, other in named]
    return (
        f"an item must belong to one {name}, got more for {index.size} items: {first_few(found, index.size)}. "
        "Make item_id unique, for instance by putting the scenario before it (prefix_scenario=True; "
        "prefix_scenario = true in the file of itembank import --spec)."
    )


def _prefixed(items: Labels, scenario: Labels | None, spec: ReadingSpec) -> Labels:
    """Items named 'scenario/item_id'."""
    if scenario is None:
        if spec.scenario is None:
            raise DataError("prefix_scenario needs a column scenario, or scenario='...' (--scenario).")
        return Labels(pl.Series("name", spec.scenario + "/" + items.names), items.index, "text")
    pair = (scenario.index + 1) * items.n_names + items.index
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
