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

from itembank.auditing.fit_statistics import check_folds, factor_model_of, patterns
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
LEAST_ANSWERED = 0.1
"""Fraction of the items that a past model must have answered to count: fits of the factor model ask for it, too."""
FEWEST_PAST = 10
"""Past models that must have answered an item to examine it."""
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
            return (
                f"item drift: no item can be examined. None was answered by three of the {who} and by {FEWEST_PAST} "
                "past models whose scores are known.",
            )
        found = (
            f"item drift over {who}: {self.n_drifted} of {self.n_items} items are answered differently "
            f"than expected (about {self.by_chance:.0f} by chance for models like past ones)."
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
    than past ones move no item; of much weaker ones, or another kind, up to twice as many are marked as by chance.
    Items whose z is beyond 2.5 either way are taken out of the scale one at a time,
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
    past_difference, past_deviation, least_spread, grain = _past_residuals(bank, items)
    n_learnt = fitted_factor_model(bank).n_factors
    factors = _past_factors(bank, items, n_learnt)
    past = PastResiduals.of(past_deviation, factors, least_spread, grain)
    found = find_drift(factor_model_of(bank), items, observed.responses, past, n_learnt=n_learnt)
    rows = bank.content_order.models
    by_chance = marked_by_chance(
        *(past_difference[rows], past_deviation[rows], factors[rows], least_spread, grain),
        observed=~np.isnan(observed.responses),
        scatter=found.scatter,
        n_draws=min(max(10, -(-N_DRAWN_ITEMS // items.size)), 2000),
    )
    order = np.argsort(-np.abs(found.z), kind="stable")  # NaN comes last
    known = order[~np.isnan(found.z[order])]
    way = np.where(found.z > 0.0, "easier", "harder")
    table = bank.responses.items[items[known]].select("item_id", "scenario")
    table = table.with_columns(
        n_models=found.n_models[known],
        difference=np.clip(found.difference[known], -1.0, 1.0),  # what is expected is linear, and may leave 0 to 1
        z=found.z[known],
        verdict=pl.Series(np.where(found.is_marked, way, EXPECTED)[known], dtype=pl.String),
    )
    day = "" if first_day is None else first_day.isoformat()
    return ItemDrift(bank.bank_id, matrix.n_models, day, table, by_chance, found.is_cut)


def _past_residuals(bank: Bank, items: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Cross-validated residuals of past models, as they are and in standard deviations, (n_models, n_columns).

    Also the smallest spread of the latter that past models can vouch for, and `grains`, both (n_columns,).
    """
    answers = bank.responses.of_items(items)
    raw, variance = (np.full(answers.shape, np.nan) for _ in range(2))
    for fold in folds(bank):
        held_out = answers[fold.held_out]
        for rows, columns in patterns(held_out, least=LEAST_ANSWERED):
            cells = np.ix_(fold.held_out[rows], columns)
            raw[cells], variance[cells] = item_residuals(factor_model_of(fold.bank), items[columns], answers[cells])
    grain = grains(raw, answers, bank.targets.scenario_index[items])
    surest = surest_variance(np.sum(~np.isnan(answers), axis=0), grain)
    variance = np.maximum(variance, surest)
    return raw, raw / np.sqrt(variance), np.sqrt(surest / mean_where_known(variance)), grain


def grains(residual: FloatArray, answers: FloatArray, groups: IntArray) -> FloatArray:
    """Variance of answers (n_models, n_items) over that of right or wrong ones, in the group of each item, (n_items,).

    ``sum r^2 / sum e (1 - e)`` with residuals r about what is expected, e: Pearson's dispersion. It is 1 at most, for
    right or wrong answers; that of the mean of ten independent ones is 1 / 10.
    """
    expected = np.clip(answers - residual, 0.0, 1.0)
    squares, most = (np.bincount(groups, np.nansum(one, axis=0)) for one in (residual**2, expected * (1.0 - expected)))
    ratio = np.divide(squares, most, out=np.ones(most.size), where=most > 0.0)
    return np.minimum(ratio, 1.0)[groups]


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
    """Cross-validated residuals of each item over past models, in standard deviations by the factor model.

    They are regressed on `terms` of each model: what is expected is linear in its factors and leans towards the mean
    model, so that of much better or worse models all easy items, or all, would seem to have moved.
    """

    coefficients: FloatArray  # (n_items, n_terms): NaN where too few models answered
    inverse: FloatArray  # (n_items, n_terms, n_terms): (X'X)^-1
    spread: FloatArray  # (n_items,): About the regression
    n_models: IntArray  # (n_items,)
    grain: FloatArray  # (n_items,): `grains`

    @classmethod
    def of(
        cls,
        residuals: FloatArray,  # (n_past, n_items): NaN where unknown
        factors: FloatArray,  # (n_past, n_factors)
        least_spread: FloatArray,  # (n_items,): The root of `surest_variance` in the same units
        grain: FloatArray,
        *,
        is_drawn: bool = False,  # Whether these are some of the past models
    ) -> "PastResiduals":
        """Sum up residuals; their spread is `least_spread` at least.

        An item that all past models solved has next to none, which says that they were few and not that all solve it.
        """
        known, x = ~np.isnan(residuals), terms(factors)
        n_models, n_terms = known.sum(axis=0), x.shape[1]
        products = known.T.astype(np.float64) @ (x[:, :, None] * x[:, None, :]).reshape(-1, n_terms**2)
        inverse = np.linalg.inv(products.reshape(-1, n_terms, n_terms) + 1e-9 * np.eye(n_terms))
        coefficients = np.einsum("iab,ib->ia", inverse, np.where(known, residuals, 0.0).T @ x)
        squares = np.nansum((residuals - x @ coefficients.T) ** 2, axis=0)
        fewest = n_terms + 1 if is_drawn else FEWEST_PAST
        is_enough = (n_models >= fewest) & (squares > 1e-12 * np.nansum(residuals**2, axis=0))
        # mean and slope of all models left out are next to none: the regression takes one degree of freedom away
        lost = n_terms if is_drawn else 1
        spread = np.maximum(np.sqrt(squares / np.maximum(n_models - lost, 1)), least_spread)
        coefficients = np.where(is_enough[:, None], coefficients, np.nan)
        return cls(coefficients, inverse, np.where(is_enough, spread, np.nan), n_models, grain)


def terms(factors: FloatArray) -> FloatArray:
    """Return 1, the first factor and its square, (n_models, 3); 1 alone without factors."""
    return factors[:, :1] ** np.arange(3.0) if factors.shape[1] else np.ones((factors.shape[0], 1))


def surest_variance(n_models: IntArray, grain: FloatArray) -> FloatArray:
    """Return the smallest variance of an answer that so many past models can vouch for, of the shape of `n_models`.

    ``p (1 - p)`` with ``p = 1 / (n + 2)``, Laplace's chance of the answer that none of n models gave, times the grain.
    """
    p = 1.0 / (n_models + 2.0)
    return p * (1.0 - p) * grain


class Drift(NamedTuple):
    """What new models show of each item."""

    difference: FloatArray  # (n_items,): Mean answer less expectation, on the scale of responses
    z: FloatArray  # (n_items,)
    n_models: IntArray  # (n_items,)
    is_marked: BoolArray  # (n_items,)
    is_cut: bool  # Whether more items are beyond the bound than may be marked
    scatter: FloatArray  # (n_items,): Standard deviation of z for new models that scatter as these do


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
                surest = surest_variance(past.n_models[columns[own]], past.grain[columns[own]])
                difference[cells], deviation[cells] = residual, residual / np.sqrt(np.maximum(variance, surest))
        z, n_models, learnt = standardised_sums(deviation, past, factors)
        open_z = np.where(is_marked, 0.0, _counted_z(z, difference, past.grain))
        worst = int(np.argmax(open_z))
        # with fewer than four fifths left nobody can say which items moved
        is_limited = bool(is_marked.sum() + 1 > 0.2 * np.sum(~np.isnan(z)))
        if open_z[worst] <= LARGEST_Z or is_limited:
            is_cut = is_limited and bool(open_z[worst] > LARGEST_Z)
            scatter = np.sqrt((_scatter(deviation, past) ** 2 + learnt) / (1.0 + learnt))
            return Drift(mean_where_known(difference), z, n_models, is_marked, is_cut, scatter)
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
    factors: FloatArray,  # (n_models, n_factors): f, expected ones
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Z of each item, the number of models K_i, and K_i h_i.

    ``t = (sum_l u_li - K_i x_i . b_i) / (s_i sqrt(K_i (1 + K_i h_i)))`` with the mean terms x_i of the models, and past
    models' regression b_i and spread s_i. ``h_i = x_i' (X'X)^-1 x_i + sum_(q > 1) f_iq^2 / n_i`` is the variance of
    what n_i of them taught, as for any regression line, here also of the slopes of the other factors, of mean f_iq.
    s_i rests on n_i models, so that t has Student's distribution; z is the normal deviate that is as rare.
    """
    known = ~np.isnan(deviation)
    n_models, x = known.sum(axis=0), terms(factors)
    sums = known.T.astype(np.float64) @ np.column_stack([x, factors[:, 1:]])
    mean_terms, others = np.split(sums / np.maximum(n_models, 1)[:, None], [x.shape[1]], axis=1)
    variance = np.einsum("ia,iab,ib->i", mean_terms, past.inverse, mean_terms)
    learnt = n_models * (variance + np.sum(others**2, axis=1) / np.maximum(past.n_models, 1))
    error = past.spread * np.sqrt(n_models * (1.0 + learnt))
    is_known = (n_models >= 3) & ~np.isnan(past.spread)
    total = np.nansum(deviation, axis=0) - n_models * np.sum(mean_terms * past.coefficients, axis=1)
    t = np.divide(total, error, out=np.full(n_models.shape, np.nan), where=is_known)
    degrees = np.maximum(past.n_models - x.shape[1], 1)
    tail = np.maximum(stdtr(degrees, -np.abs(t)), 1e-300)  # z stays finite, at 37
    return -np.sign(t) * ndtri(tail), n_models, learnt


def marked_by_chance(
    past_difference: FloatArray,  # (n_past, n_items): Residuals as they are, and in standard deviations
    past_deviation: FloatArray,  # (n_past, n_items)
    factors: FloatArray,  # (n_past, n_factors)
    least_spread: FloatArray,  # (n_items,): Of `PastResiduals`
    grain: FloatArray,  # (n_items,)
    *,
    observed: BoolArray,  # (n_models, n_items): What the new models answered
    n_draws: int,
    scatter: FloatArray | float = 1.0,  # Of `Drift`
) -> float:
    """Items beyond the bound if new models were like past ones: a mean over draws.

    As many past models as new ones answered an item, a third at most, are set against the others. Against a mean that
    they made themselves they would be nearer to it than any new models are, in units of answers, too: of answers with
    little spread half as many items were then expected as clean new models show.
    """
    rng = np.random.default_rng(0)
    n_past, counts = past_deviation.shape[0], []
    n_known = np.sum(~np.isnan(past_deviation), axis=0)
    wanted = np.where(n_known >= FEWEST_PAST, np.minimum(observed.sum(axis=0), n_known // 3), 0)
    for _ in range(n_draws):
        order = rng.permutation(n_past)
        difference, deviation = past_difference[order], past_deviation[order]
        known = ~np.isnan(deviation)
        is_new = known & (np.cumsum(known, axis=0) <= wanted)
        others = np.where(is_new, np.nan, deviation)
        past = PastResiduals.of(others, factors[order], least_spread, grain, is_drawn=True)
        off = np.where(is_new, difference, np.nan) - mean_where_known(np.where(is_new, np.nan, difference))
        z, _, _ = standardised_sums(np.where(is_new, deviation, np.nan), past, factors[order])
        counts.append(np.sum(_counted_z(scatter * z, scatter * off, grain) > LARGEST_Z))
    return float(np.mean(counts))


def _counted_z(z: FloatArray, difference: FloatArray, grain: FloatArray) -> FloatArray:
    """Size of the z of each item; 0 where it is not known, or one odd answer may have made it, (n_items,)."""
    # one odd answer to an item that all others solve has a large z, and shows nothing: more than one must differ
    is_counted = ~np.isnan(z) & (np.abs(np.nansum(difference, axis=0)) >= 1.5 * grain)
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
