"""Long tables: one row a response."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.data.readers.checks import row_problems
from itembank.data.readers.columns import examples, id_labels, numbers, optional_labels
from itembank.data.readers.labels import Labels, first_in_group
from itembank.data.readers.opening import Table
from itembank.data.readers.rows import ResponseRows
from itembank.data.readers.specs import COST_COLUMNS, LONG_COLUMNS, ReadingSpec
from itembank.data.readers.wording import first_few
from itembank.errors import N_SHOWN, DataError, DataWarning, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray

AGREEMENT = 0.005
"""How far a response may stand from n_correct / n_trials: responses are often written with two decimals."""


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
        raise DataError(
            f"{source}: a long table must have the columns model_id, item_id and response (or n_correct and "
            f"n_trials), got none called {shown(absent)}; there are {shown(columns, 12)}. Say what the file calls "
            "them: response_column='...' (--response-column), columns={'model_id': '...'} (--column model_id=...); "
            "a table of one model may get its id from model_id='...' (--model-id)."
        )


def text_columns(spec: ReadingSpec) -> list[str]:
    """Columns that hold names, as the file calls them."""
    return [spec.column(name) for name in ("model_id", "item_id", "scenario", "subscenario", "seed")]


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
    ids = _Ids(models, items)
    values = {name: _numbers(table, spec, name, ids, problems) for name in _NUMBER_COLUMNS}
    trials = _trials(values["n_trials"])
    response = _response(values, trials, spec, ids, problems)
    if trials is not None:
        # A response of unknown trials counts as one observation.
        trials = np.where(np.isnan(response), 0, np.where(trials == 0, 1, trials))
    items, item_table = _item_table(table, spec, items, problems)
    costs = {unit: cost for unit in COST_COLUMNS if (cost := values[unit]) is not None and not np.isnan(cost).all()}
    seeds = optional_labels(table, spec.column("seed"))
    rows = ResponseRows(table.source, models, items, response, trials, costs, seeds, item_table=item_table)
    problems.extend(row_problems(rows, max_response=spec.max_response))
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    n_missing = int(np.isnan(response).sum())
    if n_missing:
        message = f"{table.source}: {n_missing} of {rows.n_rows} rows have no response and count as missing."
        warn(message, DataWarning)
    return rows


_NUMBER_COLUMNS = ("response", "n_trials", "n_correct", *COST_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Ids:
    """Model and item of each row, for messages."""

    models: Labels
    items: Labels

    def pairs(self, rows: IntArray) -> list[str]:
        """Name the first few of these rows."""
        first = rows[:N_SHOWN]
        names = zip(self.models.at(first), self.items.at(first), strict=True)
        return [f"{model!r} item {item!r}" for model, item in names]


def _model_labels(table: Table, spec: ReadingSpec, problems: list[str]) -> Labels | None:
    """Return the models of the rows; the one the spec names where no column does."""
    column = spec.column("model_id")
    if column in table.frame.columns:
        return id_labels(table, column, problems, name="model_id")
    name = pl.Series("name", [spec.model_id], dtype=pl.String)
    return Labels(name, np.zeros(table.frame.height, dtype=np.int64))


def _numbers(table: Table, spec: ReadingSpec, name: str, ids: "_Ids", problems: list[str]) -> FloatArray | None:
    """Return one column as numbers, None when absent."""
    column = spec.column(name)
    if column not in table.frame.columns:
        return None
    values, bad = numbers(table.frame.select(column))
    if bad:
        rows = bad[column].arg_true().to_numpy().astype(np.int64)
        found = examples(table.frame[column], rows)
        named = zip(ids.pairs(rows), found, strict=True)
        where = first_few([f"{pair} = {value!r}" for pair, value in named], rows.size)
        problems.append(f"{column} must be a number, got {rows.size} values that are none: {where}.")
    return values[:, 0]


def _trials(values: FloatArray | None) -> IntArray | None:
    """Trials as whole numbers: 0 unknown, -1 not a whole number of at least 1; None when none is known."""
    if values is None or np.isnan(values).all():
        return None
    with np.errstate(invalid="ignore"):
        is_count = (values >= 1.0) & (values == np.floor(values)) & (values < 2.0**53)
    result: IntArray = np.where(np.isnan(values), 0, np.where(is_count, np.where(is_count, values, 0.0), -1.0)).astype(
        np.int64
    )
    return result


def _response(
    values: dict[str, FloatArray | None], trials: IntArray | None, spec: ReadingSpec, ids: "_Ids", problems: list[str]
) -> FloatArray:
    """Responses, from the counts where they are known and the response column is the usual one."""
    given, correct = values["response"], values["n_correct"]
    response: FloatArray = np.full(ids.models.index.shape, np.nan) if given is None else given / spec.max_response
    if correct is None or trials is None or spec.response_column != "response":
        return response
    has_counts = ~np.isnan(correct) & (trials > 0)
    with np.errstate(invalid="ignore"):
        bad = has_counts & ((correct < 0) | (correct > trials) | (correct != np.floor(correct)))
        ratio = np.divide(correct, trials, out=np.full(correct.shape, np.nan), where=has_counts)
        unequal = has_counts & ~bad & (np.abs(response - ratio) > AGREEMENT)
    for mask, what in (
        (bad, "n_correct must be a whole number from 0 to n_trials"),
        (unequal, "response must be n_correct / n_trials where all three are given"),
    ):
        rows = np.flatnonzero(mask)
        if rows.size:
            first = rows[:N_SHOWN]
            counts = zip(ids.pairs(first), correct[first], trials[first], response[first], strict=True)
            where = [f"{pair} ({n:g} of {n_trials}, response {value:g})" for pair, n, n_trials, value in counts]
            problems.append(f"{what}, got {rows.size} rows with something else: {first_few(where, rows.size)}.")
    result: FloatArray = np.where(has_counts, ratio, response)
    return result


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
        "Make item_id unique, for instance by putting the scenario before it (prefix_scenario=True, itembank import "
        "table --prefix-scenario)."
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
