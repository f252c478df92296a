"""Several responses of one model to one item: copies, repeated attempts, or a contradiction."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, remedy, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.counts import AGREEMENT
from itembank.readers.reading_specs import Repeats
from itembank.readers.rows import ResponseRows

SAME = 1e-6
"""Responses that differ by less are equal: files of the same results in float32 and as text differ by 6e-8."""

WHOLE = 1e-3
"""How far successes may stand from a whole number, by rounding of the response; for many trials see `AGREEMENT`."""
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

    Parameters
    ----------
    rows : ResponseRows
    cell : (n_rows,)
        Cell of each row.
    n_cells : int
        Number of cells of the matrix.

    Raises
    ------
    DataError
        For unequal responses of one model to one item, for repeated attempts with `repeats='error'`, and for
        responses that are no counts with `repeats='count'`.
    """
    if repeats == "count":
        rows = _as_counts(rows)
    present = np.flatnonzero(~np.isnan(rows.response))
    counts = np.bincount(cell[present], minlength=n_cells)
    is_repeated = counts[cell] > 1
    if not is_repeated.any():
        return _of_rows(rows, cell, np.flatnonzero(_stands_alone(rows, counts[cell] > 0)))
    alone = np.flatnonzero(~is_repeated & _stands_alone(rows, counts[cell] > 0))
    repeated = np.flatnonzero(is_repeated & ~np.isnan(rows.response))
    if repeats == "last":
        return _of_rows(rows, cell, np.concatenate([alone, _last(cell, repeated)]))
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
    bad = np.abs(successes - whole) > np.where(at_least_one > 1, np.maximum(AGREEMENT * at_least_one, WHOLE), WHOLE)
    if bad.any():
        where = np.flatnonzero(bad)
        raise DataError(
            f"{rows.source}: responses that are counted must be right or wrong (1 or 0), or n_correct of n_trials, got "
            f"{where.size} others: {rows.describe(where)}. Scores between 0 and 1 are no counts: ask for their mean "
            f"({_option('mean')})."
        )
    counted = np.where(present, whole / at_least_one, np.nan)
    return replace(rows, response=counted, n_trials=np.where(present, at_least_one, trials))


def _stands_alone(rows: ResponseRows, is_answered: BoolArray) -> BoolArray:
    """Rows with a response, and rows that tell a cost of a cell without one."""
    is_present = ~np.isnan(rows.response)
    tells_more = np.zeros(rows.n_rows, dtype=bool)
    for cost in rows.costs.values():
        tells_more |= ~np.isnan(cost)
    if rows.n_trials is not None:
        tells_more |= rows.n_trials != 0
    result: BoolArray = is_present | (tells_more & ~is_answered)
    return result


def _of_rows(rows: ResponseRows, cell: IntArray, chosen: IntArray) -> Cells:
    """Take these rows as they are; of several for one cell the last stays."""
    n_trials = None if rows.n_trials is None else rows.n_trials[chosen]
    costs = {unit: cost[chosen] for unit, cost in rows.costs.items()}
    return Cells(cell[chosen], rows.response[chosen], n_trials, costs)


def _last(cell: IntArray, repeated: IntArray) -> IntArray:
    """Last row of each cell."""
    _, position = np.unique(cell[repeated][::-1], return_index=True)
    return np.sort(repeated[::-1][position])


def _seed(rows: ResponseRows, of: IntArray) -> IntArray:
    """Seed of each of these rows, -1 where unknown."""
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
    is_copy = (
        ((pl.col("response") - pl.col("response").first().over(*group)).abs() <= SAME)
        & (pl.col("n_trials") == pl.col("n_trials").first().over(*group))
        & (pl.col("row") != pl.col("row").first().over(*group))
    )
    if keep_seedless:
        is_copy &= pl.col("seed") >= 0
    kept = table.filter(~is_copy)["row"].to_numpy()
    tell_of_copies(rows.source, repeated.size - kept.size)
    return kept


def _advice() -> str:
    return (
        f"count them ({_option('count')}), ask for their mean ({_option('mean')}) or for the last one "
        f"({_option('last')})"
    )


def _option(repeats: Repeats) -> str:
    return remedy(f"repeats={repeats!r}", f"--repeats {repeats}")


def tell_of_copies(source: str, n_copies: int) -> None:
    """Warn of rows that are copies of others, where there are any."""
    if n_copies:
        message = (
            f"{source}: {n_copies} rows repeat an earlier row of the same model and item with the same response; "
            f"they count once. If they are repeated attempts, count them ({_option('count')})."
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
                else f"Correct the table, or if they are repeated attempts, {_advice()}."
            )
        )
    if attempts.height:
        problems.append(
            f"one model must have one response to an item, got repeated attempts (several seeds) for "
            f"{_cells(rows, attempts)}. They are never averaged unasked: {_advice()}."
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
