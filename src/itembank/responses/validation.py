"""Checks of a response matrix: every problem is collected, then raised once."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, quoted, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


def check_response_matrix(
    responses: FloatArray,
    model_ids: Sequence[str],
    item_ids: Sequence[str],
    n_trials: IntArray | None,
    costs: Mapping[str, FloatArray],
) -> None:
    """Raise one `DataError` with all that is wrong with a response matrix (n_models, n_items)."""
    shape = (len(model_ids), len(item_ids))
    problems = _shape_problems(responses, shape, n_trials, costs)
    if not problems:
        problems = [
            *_id_problems(model_ids, "model_id"),
            *_id_problems(item_ids, "item_id"),
            *_range_problems(responses, model_ids, item_ids),
            *_trial_problems(responses, n_trials, model_ids, item_ids),
        ]
    if problems:
        raise DataError(" ".join(problems))


def check_ids(model_ids: Sequence[str], item_ids: Sequence[str]) -> None:
    """Raise `DataError` when an id is empty, or there twice."""
    problems = [*_id_problems(model_ids, "model_id"), *_id_problems(item_ids, "item_id")]
    if problems:
        raise DataError(" ".join(problems))


def check_counts(n_correct: IntArray, n_trials: IntArray) -> None:
    """Raise `DataError` when counts (n_models, n_items) are of two shapes, or are no successes among trials."""
    if n_correct.shape != n_trials.shape:
        raise DataError(f"n_correct and n_trials must have one shape, got {n_correct.shape} and {n_trials.shape}.")
    for name, counts in (("n_correct", n_correct), ("n_trials", n_trials)):
        with np.errstate(invalid="ignore"):
            n_bad = int(np.count_nonzero(~((counts >= 0) & (counts == np.floor(counts)))))
        if n_bad:
            raise DataError(f"{name} must be whole numbers of at least 0, got {n_bad} others. Missing is zero trials.")
    above = np.argwhere(n_correct > n_trials)
    if above.size:
        cells = [f"{n_correct[tuple(at)]} of {n_trials[tuple(at)]} at {tuple(at.tolist())}" for at in above[:N_SHOWN]]
        raise DataError(
            f"n_correct must be at most n_trials, got {len(above)} cells above: {', '.join(cells)}{_more(len(above))}."
        )


def check_models_and_items_have_responses(
    responses: FloatArray, model_ids: Sequence[str], item_ids: Sequence[str]
) -> None:
    """Raise `DataError` when a model or an item has no response at all."""
    present: BoolArray = ~np.isnan(responses)
    check_have_responses(np.asarray(present.any(axis=1)), np.asarray(present.any(axis=0)), model_ids, item_ids)


def check_have_responses(
    has_model: BoolArray, has_item: BoolArray, model_ids: Sequence[str], item_ids: Sequence[str]
) -> None:
    """Raise `DataError` when a model or an item has no response, told by (n_models,) and (n_items,)."""
    problems = []
    for word, has_any, names in (("model", has_model, model_ids), ("item", has_item, item_ids)):
        empty = [names[index] for index in np.flatnonzero(~has_any).tolist()]
        if empty:
            problems.append(
                f"every {word} must have at least one response, got none for {len(empty)} of {len(names)} {word}s: "
                f"{shown(empty)}. Leave them out."
            )
    if problems:
        raise DataError(" ".join(problems))


def check_complete(responses: FloatArray, model_ids: Sequence[str], item_ids: Sequence[str]) -> None:
    """Raise `DataError` when a response is missing."""
    missing = np.isnan(responses)
    if not missing.any():
        return
    rows, columns = np.nonzero(missing)
    first = zip(rows[:N_SHOWN].tolist(), columns[:N_SHOWN].tolist(), strict=True)
    cells = ", ".join(f"{quoted(model_ids[row])} item {quoted(item_ids[column])}" for row, column in first)
    raise DataError(
        f"every model must have a response to every item, got {len(rows)} missing of {missing.size}: {cells}"
        f"{_more(len(rows))}. Run them, leave the models or items out, or allow missing ones."
    )


def check_enough_models(n_models: int, needed: int, purpose: str) -> None:
    """Raise `DataError` when there are fewer models than `purpose` needs."""
    if n_models < needed:
        raise DataError(
            f"{purpose} needs at least {needed} models, got {n_models}. "
            "Add per-item results of more models, or use an estimate that needs no item model (method 'mean')."
        )


def describe_cells(
    mask: BoolArray, values: FloatArray | IntArray, model_ids: Sequence[str], item_ids: Sequence[str]
) -> str:
    """Name the first few marked cells with their values."""
    rows, columns = np.nonzero(mask)
    cells = [
        f"{quoted(model_ids[row])} item {quoted(item_ids[column])} = {values[row, column]:g}"
        for row, column in zip(rows[:N_SHOWN], columns[:N_SHOWN], strict=True)
    ]
    return ", ".join(cells) + _more(len(rows))


def _more(total: int) -> str:
    """Say how many more there are than are shown."""
    return f" and {total - N_SHOWN} more" if total > N_SHOWN else ""


def _shape_problems(
    responses: FloatArray, shape: tuple[int, int], n_trials: IntArray | None, costs: Mapping[str, FloatArray]
) -> list[str]:
    problems = []
    if 0 in shape:
        problems.append(f"responses must hold at least one model and one item, got {shape[0]} and {shape[1]}.")
    arrays: dict[str, FloatArray | IntArray] = {"responses": responses, **dict(costs)}
    if n_trials is not None:
        arrays["n_trials"] = n_trials
    problems.extend(
        f"{name} must have shape (n_models, n_items) = {shape}, got {array.shape}."
        for name, array in arrays.items()
        if array.shape != shape
    )
    return problems


def _id_problems(names: Sequence[str], column: str) -> list[str]:
    problems = []
    if any(name is None or name == "" for name in names):
        problems.append(f"{column} must not be empty.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        problems.append(f"{column} must be unique, got {len(repeated)} ids more than once: {shown(repeated)}.")
    return problems


def _range_problems(responses: FloatArray, model_ids: Sequence[str], item_ids: Sequence[str]) -> list[str]:
    with np.errstate(invalid="ignore"):
        outside = (responses < 0.0) | (responses > 1.0)  # (n_models, n_items); False for NaN
    if not outside.any():
        return []
    n_rows = int(outside.any(axis=1).sum())
    return [
        f"response must lie in [0, 1], got {int(outside.sum())} values outside for {n_rows} of {len(model_ids)} "
        f"models: {describe_cells(outside, responses, model_ids, item_ids)}. Rescale or drop them."
    ]


def _trial_problems(
    responses: FloatArray, n_trials: IntArray | None, model_ids: Sequence[str], item_ids: Sequence[str]
) -> list[str]:
    if n_trials is None:
        return []
    if not np.issubdtype(n_trials.dtype, np.integer):
        return [f"n_trials must be whole numbers, got an array of {n_trials.dtype}."]
    wrong = (n_trials < 0) | ((n_trials == 0) & ~np.isnan(responses))
    if not wrong.any():
        return []
    return [
        f"n_trials must be at least 1 where there is a response, got {int(wrong.sum())} cells with less: "
        f"{describe_cells(wrong, n_trials, model_ids, item_ids)}. Give their counts, or make the responses missing."
    ]


def column_of(table: pl.DataFrame, column: str, purpose: str) -> pl.Series:
    """Return a column of the model or item table; `DataError` names those there are."""
    if column not in table.columns:
        raise DataError(
            f"{purpose} needs the column {column!r}, which is not there; there are "
            f"{shown(table.columns, len(table.columns))}. Name another, or give a table that has it."
        )
    return table[column]
