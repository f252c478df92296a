"""pass^k as the response to an item: the probability that k trials of it all succeed, in place of the mean of trials.

Of c right ones among n trials it is estimated by ``C(c, k) / C(n, k)``, without bias (Yao et al. 2024, arXiv
2406.12045, the headline score of tau-bench). Such a response is a share without a number of trials.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray, Numbers
from itembank.readers.reading_specs import ReadingSpec, choices_for, power_of
from itembank.responses.error_kinds import NO_ANSWER, Errors
from itembank.responses.how_read import PASS_K, HowRead
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import DEFAULT_SCENARIO, ResponseMatrix
from itembank.tables import plural


def pass_power(n_trials: Numbers, n_correct: Numbers, k: Numbers) -> FloatArray:
    """``C(c, k) / C(n, k)`` of c right ones among n trials, arrays that broadcast; NaN where k > n."""
    n, c, k = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in (n_trials, n_correct, k)))
    result = np.where(k > n, np.nan, 1.0)
    for drawn in range(int(k.max(initial=0.0))):
        with np.errstate(invalid="ignore", divide="ignore"):
            result = np.where(drawn < k, result * np.maximum(c - drawn, 0.0) / (n - drawn), result)
    return result


def wanted_powers(items: pl.DataFrame, spec: ReadingSpec, source: str) -> IntArray:
    """Return the k that counted trials of each item are to be turned into, (n_items,); 0 for none."""
    if spec == spec.of_trials():
        return np.zeros(items.height, dtype=np.int64)
    name = next((name for name in ("task", "scenario") if name in items.columns), None)
    tasks = [DEFAULT_SCENARIO] * items.height if name is None else items[name].fill_null(DEFAULT_SCENARIO).to_list()
    asked = {task: next(filter(None, map(power_of, choices_for(task, spec.metric))), 0) for task in set(tasks)}
    known, wanted = HowRead(items).powers, np.array([asked[task] for task in tasks], dtype=np.int64)
    other = np.flatnonzero((known > 0) & (wanted > 0) & (known != wanted))
    if other.size:
        first = int(other[0])
        raise DataError(
            f"{source}: responses must be counted trials to become pass^{wanted[first]}, and those to {other.size} "
            f"items are pass^{known[first]}: {shown(items['item_id'].gather(other).to_list())}. Import them again from "
            "their trials."
        )
    return np.where(known > 0, 0, wanted)


def with_powers(matrix: ResponseMatrix, k: IntArray, errors: Errors | None, source: str) -> ResponseMatrix:
    """Turn counted trials of the items with a k, (n_items,), into pass^k.

    Fewer than k trials are a lost answer, named in a `DataWarning`. Trials that were lost beside others are wrong ones
    where lost answers count so; where they are to be bounded, the whole answer is lost.
    """
    is_power, policy = k > 0, errors or "missing"
    n = np.zeros(matrix.responses.shape, dtype=np.int64) if matrix.n_trials is None else matrix.n_trials
    lost, kind = (np.zeros_like(n), np.zeros_like(n)) if matrix.lost is None else (matrix.lost.n, matrix.lost.kind)
    is_short = is_power & (n < k) & ((n > 0) | (lost > 0))
    of_k = f"{k.max()} trials" if (k[is_power] == k.max()).all() else "as many trials as k"
    if not (n[:, is_power] >= k[is_power]).any():
        raise DataError(
            f"{source}: pass^k needs {of_k} of an item, counted by n_trials, got {n[:, is_power].max()} at most. Run "
            "more trials, or take a smaller k."
        )
    if is_short.any():
        items = np.flatnonzero(is_short.any(axis=0))
        names = shown([matrix.item_ids[place] for place in items.tolist()])
        count = "missing" if policy == "wrong" else "lost"
        warn(
            f"{source}: {plural(int(is_short.sum()), 'answer')} to {plural(items.size, 'item')} with fewer "
            f"than {of_k} count{'s' * (int(is_short.sum()) == 1)} as {count}: {names}.",
            DataWarning,
        )
    right = np.rint(np.nan_to_num(matrix.responses) * n)
    is_gone = is_short | (is_power & (lost > 0) & (policy == "bounds"))
    responses = np.where(is_power, np.where(is_gone, np.nan, pass_power(n, right, k)), matrix.responses)
    trials = np.where(is_power, ~np.isnan(responses), n)
    lost = np.where(is_power, is_gone & (policy != "wrong"), lost)
    kind = np.where(lost > 0, np.where(kind > 0, kind, NO_ANSWER), 0)
    column = pl.Series(PASS_K, np.where(is_power, k, HowRead(matrix.items).powers))
    return replace(
        matrix,
        responses=responses,
        items=matrix.items.with_columns(column.replace(0, None)),
        n_trials=None if is_power.all() else trials,
        lost=LostAnswers(lost, kind, policy) if lost.any() else None,
    )
