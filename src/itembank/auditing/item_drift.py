"""Items that new models answer unlike what their other answers suggest: the verb `item_drift` and its result."""

import datetime
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.auditing.drift_statistics import PastResiduals, find_drift, marked_by_chance, surest_variance
from itembank.auditing.past_fit import LEAST_ANSWERED, check_folds, factor_model_of, patterns
from itembank.auditing.run_conditions import check_marked_alike
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_factors import fitted_factor_model
from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.estimation.folds import folds
from itembank.estimation.observations import found_items, known_items
from itembank.irt.linear_gaussian import item_residuals
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.responses.model_features import model_dates
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular

N_DRAWS = 10
"""Of past models, for the number of items that chance marks."""


@dataclass(frozen=True, slots=True)
class DriftedItem:
    """An item beside what other answers of the same models suggest.

    Attributes
    ----------
    item_id, scenario : str
    n_models : int
        New models that answered it.
    difference : float
        Mean answer less expectation, from 0 to 1.
    z : float
        The same in standard errors, by cross-validation on past models.
    is_drifted : bool
        Whether it was taken out of the scale.
    """

    item_id: str
    scenario: str
    n_models: int
    difference: float
    z: float
    is_drifted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the record; differences run from -1 to 1."""
        record = {name: getattr(self, name) for name in ("item_id", "scenario", "n_models", "difference", "z")}
        verdict = "as expected" if not self.is_drifted else "easier" if self.difference > 0.0 else "harder"
        return {**record, "verdict": verdict}


@dataclass(frozen=True, slots=True, repr=False)
class ItemDrift(Tabular):
    """Items that new models answer differently than the bank predicts.

    Attributes
    ----------
    bank_id : str
    n_models : int
        New models.
    since : str
        The date since which models count; empty if all do.
    items : tuple of DriftedItem
        Every item that enough new models answered, the z furthest from 0 first.
    by_chance : float
        Items that as many past models, cross-validated, would mark.
    is_limited : bool
        Whether more items would have been marked than a fifth: then it is the models that differ, or the run.
    """

    bank_id: str
    n_models: int
    since: str
    items: tuple[DriftedItem, ...]
    by_chance: float
    is_limited: bool

    @property
    def drifted(self) -> tuple[DriftedItem, ...]:
        """Items that were marked."""
        return tuple(one for one in self.items if one.is_drifted)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences on what was found, and what to do."""
        who = f"{self.n_models} models" + (f" since {self.since}" if self.since else "")
        if not self.items:
            return (f"item drift: no item was answered by enough of the {who} to be examined.",)
        found = (
            f"item drift over {who}: {len(self.drifted)} of {len(self.items)} items are answered differently "
            f"than expected (about {math.ceil(self.by_chance)} by chance)."
        )
        if self.is_limited:
            return (
                f"{found} Marking stops at a fifth, and there are more: the run or the models changed, not the items.",
            )
        if len(self.drifted) > 2.0 * self.by_chance:
            return (
                f"{found} Look at them (itembank check BANK), and take them out of the score if they are at fault "
                "(itembank bank retire).",
            )
        return (found,)

    def rows(self) -> list[dict[str, Any]]:
        """One record an item that was examined."""
        return [one.to_dict() for one in self.items]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "n_models": self.n_models,
            "since": self.since or None,
            "n_items": len(self.items),
            "n_drifted": len(self.drifted),
            "by_chance": self.by_chance,
            "is_limited": self.is_limited,
            "verdicts": list(self.verdicts),
        }


def item_drift(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    since: str | datetime.date | None = None,
    date_column: str | None = None,
    ignore_unknown: bool = False,
    progress: ProgressCallback = silent,
) -> ItemDrift:
    """Find items that new models answer differently than the bank predicts for models like them.

    What is expected of an item follows from each model's other answers, so that models which are all better or worse
    than past ones move no item. Items whose z is beyond 2.5 either way are taken out of the scale one at a time,
    the worst first, and never more than a fifth.

    Parameters
    ----------
    bank : Bank or path
        With its responses and ten models or more.
    responses : ResponseMatrix, path or paths
        Of new models. From three answers on an item is examined.
    since : date or text, optional
        Only models of this day or later ('2025-01-31').
    date_column : str, optional
        Column of the model table with the dates; by default the one whose name says most clearly that it has.
    ignore_unknown : bool
        Leave out items that the bank does not hold.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When the bank has no responses or fewer than ten models, an item is not in it, answers are graded where those
        of the bank are right or wrong, or no model is left.
    ParameterError
        When `since` is no date, or no column holds dates.

    Examples
    --------
    >>> item_drift(bank, "this-year.parquet", since="2025-01-01").drifted  # doctest: +SKIP
    """
    bank = as_bank(bank)
    check_folds(bank, progress)
    matrix = known_items(bank, as_new_responses(bank, responses), None, ignore_unknown=ignore_unknown)
    check_marked_alike(bank, matrix)
    try:
        first_day = since if since is None or isinstance(since, datetime.date) else datetime.date.fromisoformat(since)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"since must be a day as YYYY-MM-DD, got {since!r}.") from error
    if first_day is not None:
        matrix = _newer(matrix, first_day, date_column)
    observed = found_items(bank, matrix, None)
    items = observed.positions
    past_difference, past_deviation, least_spread = _past_residuals(bank, items)
    past = PastResiduals.of(past_deviation, least_spread)
    n_learnt = fitted_factor_model(bank).n_factors
    found = find_drift(factor_model_of(bank), items, observed.responses, past, n_learnt=n_learnt)
    rows = bank.content_order.models
    by_chance = marked_by_chance(
        past_difference[rows], past_deviation[rows], ~np.isnan(observed.responses), past, n_draws=N_DRAWS
    )
    table = bank.responses.items
    ids, scenarios = table["item_id"].to_list(), table["scenario"].to_list()
    order = np.argsort(-np.abs(found.z), kind="stable")  # NaN comes last
    n_models, marked = found.n_models.tolist(), found.is_marked.tolist()
    drifted = [
        DriftedItem(
            ids[items[i]], scenarios[items[i]], n_models[i], float(found.difference[i]), float(found.z[i]), marked[i]
        )
        for i in order.tolist()
        if not np.isnan(found.z[i])
    ]
    day = "" if first_day is None else first_day.isoformat()
    return ItemDrift(bank.bank_id, matrix.n_models, day, tuple(drifted), by_chance, found.is_cut)


def _past_residuals(bank: Bank, items: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cross-validated residuals of past models, as they are and in standard deviations, (n_models, n_columns).

    Also the smallest spread of the latter that past models can vouch for, (n_columns,).
    """
    raw, scaled, used = (np.full((bank.n_models, items.size), np.nan) for _ in range(3))
    surest = surest_variance(np.sum(~np.isnan(bank.responses.of_items(items)), axis=0))
    for fold in folds(bank):
        responses = bank.responses.of_items(items, models=fold.held_out)
        for rows, columns in patterns(responses, least=LEAST_ANSWERED):
            answers = responses[np.ix_(rows, columns)]
            residual, variance = item_residuals(factor_model_of(fold.bank), items[columns], answers)
            variance = np.maximum(variance, surest[columns])
            cells = np.ix_(fold.held_out[rows], columns)
            raw[cells], scaled[cells], used[cells] = residual, residual / np.sqrt(variance), variance
    return raw, scaled, np.sqrt(surest / mean_where_known(used))


def _newer(matrix: ResponseMatrix, first_day: datetime.date, column: str | None) -> ResponseMatrix:
    """Return the models of this day or later."""
    days = model_dates(matrix.models, column)
    if days is None:
        raise ParameterError(
            f"a column of the model table must hold the dates of models, got {column or 'none'} among "
            f"{shown(matrix.models.columns)}. Name it ({remedy('date_column=', '--since COLUMN=DATE')}), or add one."
        )
    rows = np.flatnonzero((days >= first_day).fill_null(value=False).to_numpy())
    if rows.size == 0:
        raise DataError(
            f"at least one model must be of {first_day.isoformat()} or later, got none of {matrix.n_models}; the "
            f"newest is of {days.max()!s}."
        )
    return matrix.take(models=rows)
