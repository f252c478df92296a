"""Items that new models answer unlike what their other answers suggest: the verb `item_drift`, its result, kernels.

Residuals of items over several new models are set against those of past models, and drifted items taken out one at a
time.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtri, pdtrc, stdtr

from itembank.auditing.fit_statistics import LEAST_ANSWERED, check_folds, factor_model_of, patterns
from itembank.auditing.run_conditions import check_marked_alike
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.banks import Bank
from itembank.bank.norms import fitted_factor_model
from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.estimation.asked import known_items
from itembank.estimation.folds import folds
from itembank.estimation.observations import found_items
from itembank.irt.linear_gaussian import FactorModel, factor_posterior, item_residuals
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.responses.model_features import model_dates
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular, records

EXPECTED = "as expected"
LARGEST_Z = 2.5
"""An item beyond it is marked: the usual bound for the displacement of anchors (Wright & Douglas 1976, with z)."""
N_DRAWN_ITEMS = 20_000
"""Items that draws of past models judge, all draws together: with ten draws of 100 items what chance alone marks was
off by half of it."""
RARE = 0.05
"""Chance of so many marked items below which they are more than chance."""


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
    table : table of every item that enough new models answered, the z furthest from 0 first
        `item_id`, `scenario`; `n_models` that answered it; `difference`: mean answer less what other answers of the
        same models suggest, from -1 to 1; `z`: the same in standard errors, by cross-validation on past models;
        `verdict`: easier or harder for items that were taken out of the scale, else as expected.
    by_chance : float
        Items that as many past models, cross-validated, would mark.
    is_limited : bool
        Whether more items would have been marked than a fifth: then it is the models that differ, or the run.
    """

    header = ("n_models", "since", "n_items", "n_drifted", "by_chance", "is_limited", "verdicts")

    bank_id: str
    n_models: int
    since: str
    table: pl.DataFrame
    by_chance: float
    is_limited: bool

    @property
    def items(self) -> tuple[SimpleNamespace, ...]:
        """The rows of the table, whose columns are their attributes."""
        return records(self.table)

    @property
    def drifted(self) -> tuple[SimpleNamespace, ...]:
        """Items that were marked."""
        return records(self.table.filter(pl.col("verdict") != EXPECTED))

    @property
    def n_items(self) -> int:
        """Number of items that were examined."""
        return self.table.height

    @property
    def n_drifted(self) -> int:
        """Number of those that were marked."""
        return len(self.drifted)

    @property
    def is_beyond_chance(self) -> bool:
        """Whether clearly more items are marked than by chance: twice as many, and more than one time in twenty."""
        is_rare = bool(pdtrc(self.n_drifted - 1, self.by_chance) < RARE)  # one is no rarity where a half is expected
        return self.is_limited or (is_rare and self.n_drifted > 2.0 * self.by_chance)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts: all but the rows."""
        return Tabular.to_dict(self) | {"since": self.since or None}

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences on what was found, and what to do."""
        who = f"{self.n_models} models" + (f" since {self.since}" if self.since else "")
        if not self.n_items:
            share = f"{100.0 * LEAST_ANSWERED:.0f} %"
            return (
                f"item drift: no item can be examined. None was answered by enough of the {who}, and of those past "
                f"models that answered {share} of these items.",
            )
        found = (
            f"item drift over {who}: {self.n_drifted} of {self.n_items} items are answered differently "
            f"than expected (about {self.by_chance:.0f} by chance)."
        )
        if self.is_limited:
            return (
                f"{found} Marking stops at a fifth, and there are more: the run or the models changed, not the items.",
            )
        if self.is_beyond_chance:
            return (
                f"{found} Look at them (itembank check BANK), and take them out of the score if they are at fault "
                "(itembank bank retire).",
            )
        return (found,)


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
    seen, n_draws = ~np.isnan(observed.responses), min(max(10, -(-N_DRAWN_ITEMS // items.size)), 2000)
    by_chance = marked_by_chance(
        *(past_difference[rows], past_deviation[rows], least_spread, seen),
        factors=_past_factors(bank, items, n_learnt)[rows],
        scatter=found.scatter,
        n_draws=n_draws,
    )
    order = np.argsort(-np.abs(found.z), kind="stable")  # NaN comes last
    known = order[~np.isnan(found.z[order])]
    way = np.where(found.difference > 0.0, "easier", "harder")
    table = bank.responses.items[items[known]].select("item_id", "scenario")
    table = table.with_columns(
        n_models=found.n_models[known],
        difference=np.clip(found.difference[known], -1.0, 1.0),  # what is expected is linear, and may leave 0 to 1
        z=found.z[known],
        verdict=pl.Series(np.where(found.is_marked, way, EXPECTED)[known], dtype=pl.String),
    )
    day = "" if first_day is None else first_day.isoformat()
    return ItemDrift(bank.bank_id, matrix.n_models, day, table, by_chance, found.is_cut)


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


def _past_factors(bank: Bank, items: IntArray, n_learnt: int) -> FloatArray:
    """Return the expected factors of past models, those that they taught, (n_models, n_learnt); 0 by few answers."""
    result, responses = np.zeros((bank.n_models, n_learnt)), bank.responses.of_items(items)
    for rows, columns in patterns(responses, least=LEAST_ANSWERED):
        found, _ = factor_posterior(factor_model_of(bank), items[columns], responses[np.ix_(rows, columns)])
        result[rows] = found[:, :n_learnt]
    return result


def _newer(matrix: ResponseMatrix, first_day: datetime.date, column: str | None) -> ResponseMatrix:
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


class PastResiduals(NamedTuple):
    """Cross-validated residuals of each item over past models, in standard deviations by the factor model."""

    mean: FloatArray  # (n_items,): NaN where too few models answered
    spread: FloatArray  # (n_items,)
    n_models: IntArray  # (n_items,)

    @classmethod
    def of(cls, residuals: FloatArray, least_spread: FloatArray, *, fewest: int = 10) -> "PastResiduals":
        """Sum up residuals (n_past, n_items), NaN where unknown; of items that at least `fewest` models answered.

        Their spread is at least `least_spread`, (n_items,), the root of `surest_variance` in the same units: an item
        that all past models solved has next to none, which says that they were few and not that all models solve it.
        """
        known = ~np.isnan(residuals)
        n_models = known.sum(axis=0)
        mean = mean_where_known(residuals)
        squares = mean_where_known((residuals - mean) ** 2)
        variance = squares * n_models / np.maximum(n_models - 1, 1)
        is_enough = (n_models >= fewest) & (squares > 0.0)
        spread = np.maximum(np.sqrt(variance), least_spread)
        return cls(np.where(is_enough, mean, np.nan), np.where(is_enough, spread, np.nan), n_models)


def surest_variance(n_models: IntArray) -> FloatArray:
    """Return the smallest variance of an answer that so many past models can vouch for, of the shape of `n_models`.

    ``p (1 - p)`` with ``p = 1 / (n + 2)``, Laplace's chance of the answer that none of n models gave.
    """
    p = 1.0 / (n_models + 2.0)
    return p * (1.0 - p)


class Drift(NamedTuple):
    """What new models show of each item."""

    difference: FloatArray  # (n_items,): Mean answer less expectation, on the scale of responses
    z: FloatArray  # (n_items,)
    n_models: IntArray  # (n_items,)
    is_marked: BoolArray  # (n_items,)
    is_cut: bool  # Whether more items are beyond the bound than may be marked
    scatter: float  # Standard deviation of new models' residuals about each item's mean, over that of past models


def find_drift(
    model: FactorModel,
    items: IntArray,  # (n_columns,): Positions of the items
    responses: FloatArray,  # (n_models, n_columns): Of new models; NaN where missing
    past: PastResiduals,  # Of these items
    *,
    n_learnt: int,  # Factors whose loadings past models taught, the first; those of discrepancies are what they are
) -> Drift:
    """Mark the item with the z furthest from 0, leave it out of what answers are expected from, and begin anew.

    Until none is beyond 2.5, or a fifth is marked. Marked items are judged by the others to the end, so that one bad
    item does not make good ones look bad.
    """
    is_marked = np.zeros(items.size, dtype=bool)
    difference, deviation = (np.full(responses.shape, np.nan) for _ in range(2))
    factors = np.zeros((responses.shape[0], n_learnt))
    alike = list(patterns(responses))
    changed = alike
    while True:
        for rows, columns in changed:
            answers, linked = responses[np.ix_(rows, columns)], ~is_marked[columns]
            posterior = factor_posterior(model, items[columns[linked]], answers[:, linked])
            factors[rows] = posterior[0][:, :n_learnt]
            for own, residual, variance in _residuals(model, items[columns], answers, ~linked, posterior):
                cells = np.ix_(rows, columns[own])
                surest = surest_variance(past.n_models[columns[own]])
                difference[cells], deviation[cells] = residual, residual / np.sqrt(np.maximum(variance, surest))
        z, n_models = standardised_sums(deviation, past, leverages(factors, ~np.isnan(responses)))
        open_z = np.where(is_marked, 0.0, _counted_z(z, difference))
        worst = int(np.argmax(open_z))
        # with fewer than four fifths left nobody can say which items moved
        is_limited = bool(is_marked.sum() + 1 > 0.2 * np.sum(~np.isnan(z)))
        if open_z[worst] <= LARGEST_Z or is_limited:
            is_cut = is_limited and bool(open_z[worst] > LARGEST_Z)
            return Drift(mean_where_known(difference), z, n_models, is_marked, is_cut, _scatter(deviation, past))
        is_marked[worst] = True
        changed = [one for one in alike if worst in one[1]]


def _scatter(deviation: FloatArray, past: PastResiduals) -> float:
    """Divide the standard deviation of residuals (n_models, n_items) about their items' means by that of past models.

    Fits without some past models may have fewer factors than the bank's, and so larger residuals than new models have.
    """
    degrees = np.sum(~np.isnan(deviation), axis=0) - 1.0
    known = (degrees > 0.0) & ~np.isnan(past.spread)
    squares = np.nansum((deviation - mean_where_known(deviation)) ** 2, axis=0)
    expected = float(np.sum((degrees * past.spread**2)[known]))
    return float(np.sqrt(np.sum(squares[known]) / expected)) if expected > 0.0 else 1.0


def standardised_sums(
    deviation: FloatArray,  # (n_models, n_items): u, NaN where missing
    past: PastResiduals,
    leverage: FloatArray,  # (n_items,): h: 1 for new models that are like past ones on average (`leverages`)
) -> tuple[FloatArray, IntArray]:
    """Z of each item, and the number of models K_i.

    ``t = sum_l (u_li - m_i) / (s_i sqrt(K_i (1 + K_i h_i / n_i)))``: m_i, s_i and n_i are of past models, the second
    root takes in that what is expected was learnt from so many. s_i too rests on n_i models, so that t has Student's
    distribution with n_i - 1 degrees of freedom; z is the normal deviate that is as rare.
    """
    n_models = np.sum(~np.isnan(deviation), axis=0)
    error = past.spread * np.sqrt(n_models * (1.0 + leverage * n_models / np.maximum(past.n_models, 1)))
    is_known = (n_models >= 3) & ~np.isnan(past.spread)
    total = np.nansum(deviation - past.mean, axis=0)
    t = np.divide(total, error, out=np.full(n_models.shape, np.nan), where=is_known)
    tail = np.maximum(stdtr(np.maximum(past.n_models - 1, 1), -np.abs(t)), 1e-300)  # z stays finite, at 37
    return -np.sign(t) * ndtri(tail), n_models


def leverages(
    factors: FloatArray,  # (n_models, n_factors): Expected ones of new models
    observed: BoolArray,  # (n_models, n_items): What they answered
) -> FloatArray:
    """How much less is known of what new models answer than of past ones: ``1 + |f|^2``, (n_items,).

    As for any regression line: its slope, learnt from n models with factors of mean 0 and variance 1, is off by
    ``s / sqrt(n)``, and models whose mean factor is f find f times that in every item.
    """
    n_models = np.maximum(observed.sum(axis=0), 1)
    means = observed.T.astype(np.float64) @ factors / n_models[:, None]
    result: FloatArray = 1.0 + np.sum(means**2, axis=1)
    return result


def marked_by_chance(
    past_difference: FloatArray,  # (n_past, n_items): Residuals as they are, and in standard deviations
    past_deviation: FloatArray,  # (n_past, n_items)
    least_spread: FloatArray,  # (n_items,): Of `PastResiduals`
    observed: BoolArray,  # (n_models, n_items): What the new models answered
    *,
    n_draws: int,
    factors: FloatArray | None = None,  # (n_past, n_factors): Of past models, by which they are more or less certain
    scatter: float = 1.0,  # Of `Drift`
) -> float:
    """Items beyond the bound if new models were like past ones: a mean over draws.

    As many past models as there are new ones, half of them at most, are set against the others. Against a mean that
    they made themselves they would be nearer to it than any new models are, in units of answers, too: of answers with
    little spread half as many items were then expected as clean new models show.
    """
    rng = np.random.default_rng(0)
    n_past, counts = past_deviation.shape[0], []
    n_new = min(observed.shape[0], n_past // 2)
    for _ in range(n_draws):
        new, others = np.split(rng.permutation(n_past), [n_new])
        past = PastResiduals.of(past_deviation[others], least_spread, fewest=2)
        off = past_difference[new] - mean_where_known(past_difference[others])
        difference, deviation = (np.where(observed[:n_new], one, np.nan) for one in (off, past_deviation[new]))
        leverage = np.ones(deviation.shape[1])
        if factors is not None:  # slopes were learnt from all past models, the others among them
            leverage += (leverages(factors[new], observed[:n_new]) - 1.0) * others.size / n_past
        z, _ = standardised_sums(deviation, past, leverage)
        counts.append(np.sum(_counted_z(scatter * z, scatter * difference) > LARGEST_Z))
    return float(np.mean(counts))


def _counted_z(z: FloatArray, difference: FloatArray) -> FloatArray:
    """Size of the z of each item; 0 where it is not known, or one odd answer may have made it, (n_items,)."""
    # one odd answer to an item that all others solve has a large z, and shows nothing: more than one must differ
    is_counted = ~np.isnan(z) & (np.abs(np.nansum(difference, axis=0)) >= 1.5)
    return np.where(is_counted, np.abs(z), 0.0)


def _residuals(
    model: FactorModel,
    items: IntArray,
    answers: FloatArray,
    is_marked: BoolArray,
    posterior: tuple[FloatArray, FloatArray],
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Columns, residuals given the other answers to items that are not marked, and their variances.

    First of the items that are not marked, then of those that are; `posterior` is that of the factors by the former.
    """
    linked, marked = np.flatnonzero(~is_marked), np.flatnonzero(is_marked)
    if linked.size:
        yield linked, *item_residuals(model, items[linked], answers[:, linked])
    if marked.size:
        loadings = model.loadings[items[marked]]
        residual = answers[:, marked] - model.mean[items[marked]] - posterior[0] @ loadings.T
        spread = np.einsum("iq,iq->i", loadings @ posterior[1], loadings)
        yield marked, residual, spread + model.noise[items[marked]]
