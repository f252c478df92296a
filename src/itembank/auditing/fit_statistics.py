"""How well answers fit, overall, by group of items and in the order they came, and how often past models fit as badly.

Kernels on arrays. Statistics are by the factor model of past answers; p-values by past models, cross-validated: no
table of a distribution enters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.errors import DataError
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, Fold, folds, run_trial
from itembank.estimation.regressions import predict_factor
from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel, group_residuals, successive_residuals
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.sessions.preparation import past_orders
from itembank.sessions.session_spec import SessionSpec

NAMED = "named"
"""Kind of a group that the user names; others are the bank's own."""


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items that are compared with others."""

    name: str
    kind: str  # 'scenario', 'subscenario' or 'named'
    is_member: BoolArray  # (n_items,): Over all items of the bank; none is both
    is_reference: BoolArray  # (n_items,)


class FitStatistics(NamedTuple):
    """Statistics of n_models models that answered the same items."""

    misfit: FloatArray  # (n_models,): Mean squared distance from what is expected (`FactorPrediction.misfit`)
    outfit: FloatArray  # (n_models,): `outfits`; NaN where responses are not right or wrong
    # (n_models, n_groups): Mean answer to a group's items less what the answers to its reference suggest; NaN where
    # too few were answered.
    difference: FloatArray
    deviation: FloatArray  # (n_models, n_groups): The same in standard deviations by the factor model
    # (n_models,): Largest excursion of the cumulative sums; NaN where the order of answers is not known.
    cusum: FloatArray

    @classmethod
    def of_columns(cls, columns: FloatArray) -> Self:
        """Take them apart again, given `columns`, in which NaN stands for what is not known."""
        n_groups = (columns.shape[1] - 3) // 2
        difference, deviation = columns[:, 3 : 3 + n_groups], columns[:, 3 + n_groups :]
        return cls(columns[:, 0], columns[:, 1], difference, deviation, columns[:, 2])

    @property
    def columns(self) -> FloatArray:
        """All of them in one array, (n_models, 3 + 2 n_groups)."""
        return np.column_stack([self.misfit, self.outfit, self.cusum, self.difference, self.deviation])


def fit_statistics(
    model: FactorModel,
    items: IntArray,  # (n_observed,): Positions of the items, in the order of answering where `is_ordered`
    responses: FloatArray,  # (n_models, n_observed): Complete
    groups: tuple[ItemGroup, ...],
    *,
    is_ordered: bool,
) -> FitStatistics:
    """Measure the fit of models that answered these items, all but the outfit, by the factor model."""
    n_models = responses.shape[0]
    misfit = predict_factor(model, items, np.zeros((model.n_items, 0)), responses).misfit
    difference, deviation = np.full((2, n_models, len(groups)), np.nan)
    for column, group in enumerate(groups):
        inside, reference = np.flatnonzero(group.is_member[items]), np.flatnonzero(group.is_reference[items])
        if inside.size >= 5 and reference.size >= 10:  # fewer answers are not examined
            difference[:, column], variance = group_residuals(model, items, responses, inside, reference)
            deviation[:, column] = difference[:, column] / np.sqrt(variance)
    outfit, cusum = np.full((2, n_models), np.nan)
    if is_ordered:
        cusum = np.abs(cumulative_sums(successive_residuals(model, items, responses))).max(axis=(0, 2))
    return FitStatistics(misfit, outfit, difference, deviation, cusum)


def cumulative_sums(
    residuals: FloatArray,  # (n_models, n_answers): u, in standard deviations, in the order of answering
) -> FloatArray:
    """Upper and lower cumulative sums of residuals, (2, n_models, n_answers).

    ``C+_t = max(0, C+_(t-1) + u_t - k)`` and ``C-_t = min(0, C-_(t-1) + u_t + k)`` with k = 0.25 (Page 1954; for
    answers of one examinee van Krimpen-Stoop & Meijer 2000).
    """
    # half the shift that is found soonest, 0.5: a model that fails four in ten of what it could do shifts by 0.4 to 0.6
    slack = 0.25
    sums = np.zeros((2, *residuals.shape))
    upper, lower = np.zeros(residuals.shape[0]), np.zeros(residuals.shape[0])
    for t, residual in enumerate(residuals.T):
        upper = np.maximum(0.0, upper + residual - slack)
        lower = np.minimum(0.0, lower + residual + slack)
        sums[0, :, t], sums[1, :, t] = upper, lower
    return sums


def onset(
    sums: FloatArray,  # (2, n_answers)
) -> tuple[int, bool]:  # First answer of the excursion, from 1, and whether answers got better
    """Find where one model's sums left zero for their largest excursion, and which way."""
    side, peak = np.unravel_index(int(np.argmax(np.abs(sums))), sums.shape)
    at_zero = np.flatnonzero(sums[side, : peak + 1] == 0.0)
    return (int(at_zero[-1]) + 2 if at_zero.size else 1), bool(side == 0)


def fit_p_values(
    found: FitStatistics, past: FitStatistics, groups: tuple[ItemGroup, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compare statistics of new models with the cross-validated ones of past models, on the same items.

    Returns p-values, NaN where unknown: overall (n_models,), of the misfit, the outfit or the most unusual group,
    whichever is rarest; of groups (n_models, n_groups), for named ones of answers that are better than expected, each
    by itself, for others of a difference either way, in any of them; of the order (n_models,), by cumulative sums.

    Groups of the bank are compared by ``max_g |z_g| / rms(past z_g)``, so that many groups alarm no oftener than one.
    The smallest of three p-values is no p-value: it is compared with those of the past models.
    """
    is_named = np.array([group.kind == NAMED for group in groups], dtype=bool)
    of_past = past.deviation[:, ~is_named]
    n_known = np.maximum(np.sum(~np.isnan(of_past), axis=0), 1)
    spread = np.sqrt(np.nansum(of_past**2, axis=0) / n_known)
    spread[~(spread > 0.0)] = 1.0  # nothing is known, or nothing varies
    sizes, past_sizes = np.abs(found.deviation[:, ~is_named]) / spread, np.abs(of_past) / spread
    largest = _largest(past_sizes)
    p_groups = np.full(found.deviation.shape, np.nan)
    p_groups[:, ~is_named] = upper_p_values(sizes, largest)
    for column in np.flatnonzero(is_named).tolist():
        p_groups[:, column] = upper_p_values(found.deviation[:, column], past.deviation[:, column])
    views = ((found.misfit, past.misfit), (found.outfit, past.outfit), (_largest(sizes), largest))
    smallest = np.fmin.reduce([upper_p_values(new, old) for new, old in views])
    past_smallest = np.fmin.reduce([_own_p_values(old) for _, old in views])
    return upper_p_values(-smallest, -past_smallest), p_groups, upper_p_values(found.cusum, past.cusum)


def detectable_rises(past: FitStatistics) -> FloatArray:
    """Rise of each group's mean answer that is found nine times in ten at the level of 5 %, (n_groups,).

    By the differences of past models, cross-validated: their 95th percentile and 1.28 standard deviations more.
    """
    result = np.full(past.difference.shape[1], np.nan)
    known = ~np.isnan(past.difference).all(axis=0)
    differences = past.difference[:, known]
    spread = np.nanstd(differences, axis=0)
    result[known] = np.nanquantile(differences, 0.95, axis=0) + 1.2816 * spread
    return result


def upper_p_values(
    values: FloatArray,  # Of new models
    past: FloatArray,  # (n_past,): Of past models, cross-validated; NaN where unknown
) -> FloatArray:  # Same shape; NaN where the value is, and everywhere without past values
    """How probable at least such a value is of a model like past ones: ``(1 + number of past >= value) / (n + 1)``."""
    known = np.sort(past[~np.isnan(past)])
    is_known: BoolArray = ~np.isnan(values) & (known.size > 0)
    n_above = known.size - np.searchsorted(known, values, side="left")
    return np.where(is_known, (1.0 + n_above) / (known.size + 1.0), np.nan)


def joint_p_value(p_values: Sequence[float]) -> float:
    """Probability that chance alone makes so many p-values so small: ``min_k n p_(k) / k`` (Simes 1986).

    1 where none is known.
    """
    known = np.sort([one for one in p_values if not np.isnan(one)])
    ranks = np.arange(1, known.size + 1)
    return float(np.min(known * known.size / ranks, initial=1.0))


def _own_p_values(past: FloatArray) -> FloatArray:
    """Those of the past models among each other: ``number of past >= value / n``, the model itself among them."""
    n_known = max(int(np.sum(~np.isnan(past))), 1)
    return (upper_p_values(past, past) * (n_known + 1.0) - 1.0) / n_known


def _largest(sizes: FloatArray) -> FloatArray:
    """Largest of each row where any is known, else NaN, (n_models,)."""
    filled = np.where(np.isnan(sizes), -np.inf, sizes).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(filled), filled, np.nan)


LEAST_ANSWERED = 0.8
"""Fraction of the items that a past model must have answered to count; the rest would be other items."""


def factor_model_of(bank: Bank) -> FactorModel:
    """Return the factor model whose misfit typicality is made of (`Expectations`)."""
    return bank_factor_model(bank, discrepancy="auto")


def why_not_examined(bank: Bank, progress: ProgressCallback) -> str:
    """Say why the fit of new models cannot be compared with that of past models; nothing where it can."""
    if bank.published is not None:
        return f"bank {bank.bank_id} was published without responses"
    if folds(bank, progress=progress):
        return ""
    if bank.n_models < MINIMUM_FOR_FOLDS:
        return f"that takes at least {MINIMUM_FOR_FOLDS}, and bank {bank.bank_id} has {bank.n_models}"
    return f"without some of its models bank {bank.bank_id} cannot be fitted"


def check_folds(bank: Bank, progress: ProgressCallback) -> None:
    """Refuse a bank whose past models cannot be cross-validated."""
    reason = why_not_examined(bank, progress)
    if reason:
        raise DataError(
            f"the fit of new models is compared with the cross-validated fit of past models: {reason}. Take a bank of "
            "more models, with their responses."
        )


def statistics_by(
    bank: Bank, items: IntArray, responses: FloatArray, groups: tuple[ItemGroup, ...], *, is_ordered: bool
) -> FitStatistics:
    """Measure the fit of models that answered these items by a bank that has not seen them (`fit_statistics`)."""
    found = fit_statistics(factor_model_of(bank), items, responses, groups, is_ordered=is_ordered)
    return found._replace(outfit=outfits(bank, items, responses))


def past_statistics(
    bank: Bank, items: IntArray, groups: tuple[ItemGroup, ...], *, is_ordered: bool, progress: ProgressCallback = silent
) -> FitStatistics:  # Of all models of the bank; NaN for those that answered too few of the items
    """Measure the fit of past models to these items, each by the factor model of other models.

    Kept in the bank's cache.
    """

    def try_fold(fold: Fold, _: ProgressCallback) -> FloatArray:
        result = np.full((fold.held_out.size, n_columns), np.nan)
        responses = bank.responses.of_items(items, models=fold.held_out)
        for rows, columns in patterns(responses, least=LEAST_ANSWERED):
            answers = responses[np.ix_(rows, columns)]
            found = statistics_by(fold.bank, items[columns], answers, groups, is_ordered=is_ordered)
            result[rows] = found.columns
        return result

    n_columns = 3 + 2 * len(groups)
    masks = (mask for group in groups for mask in (group.is_member, group.is_reference))
    name = cache_name("past-fit", is_ordered, items, *masks)
    return FitStatistics.of_columns(run_trial(bank, name, try_fold, (bank.n_models, n_columns), progress=progress))


def past_session_statistics(
    bank: Bank, spec: SessionSpec, n_answers: int, groups: tuple[ItemGroup, ...], *, progress: ProgressCallback
) -> FitStatistics:
    """Measure the fit of past models, cross-validated, to the items that sessions of this spec ask each of them.

    A session asks what its model may get right or wrong. On the same items other models answer with less doubt, and the
    session's model would seem unusual for that alone. NaN for models that were not tried, or whose sessions ended
    before so many answers.
    """
    result = np.full((bank.n_models, 3 + 2 * len(groups)), np.nan)
    orders = past_orders(bank, spec, n_answers, progress=progress)
    for fold in folds(bank):
        for row in fold.held_out[~np.isnan(orders[fold.held_out]).any(axis=1)].tolist():
            items = orders[row].astype(np.int64)
            answers = bank.responses.block(row, row + 1).of_items(items)
            result[row] = statistics_by(fold.bank, items, answers, groups, is_ordered=True).columns[0]
    return FitStatistics.of_columns(result)


def patterns(
    responses: FloatArray,  # (n_models, n_columns): NaN where missing
    *,
    least: float = 0.0,  # Fraction of the columns that must be answered
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows that answered the same columns, and those columns; not those that answered few or none."""
    observed = ~np.isnan(responses)
    kinds, kind_of = np.unique(observed, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds):
        if kind.any() and kind.mean() >= least:
            yield np.flatnonzero(kind_of.ravel() == number), np.flatnonzero(kind)


def outfits(
    bank: Bank,  # One that has not seen the models
    items: IntArray,  # (n_observed,)
    responses: FloatArray,  # (n_models, n_observed): Complete
) -> FloatArray:
    """Outfit of models that answered these items, (n_models,); NaN where responses are not right or wrong.

    The misfit counts all answers alike; this counts failed easy and solved hard items most, which a few leaked or
    broken items make.
    """
    if bank.parameters.family != "bernoulli":
        return np.full(responses.shape[0], np.nan)
    basis = score_basis(bank)
    parameters, answers = basis.parameters.take(items), basis.answers(responses, items)
    return mean_square(answers, probability(parameters, map_abilities(parameters, answers, basis.prior).theta))


def mean_square(
    answers: FloatArray,  # (n_models, n_items): y and p
    expected: FloatArray,  # (n_models, n_items)
) -> FloatArray:
    """``mean_i (y_i - p_i)^2 / (p_i (1 - p_i))`` (Wright & Stone 1979), (n_models,)."""
    p = np.clip(expected, 0.02, 0.98)  # one answer against a certainty would outweigh all others
    result: FloatArray = np.mean((answers - p) ** 2 / (p * (1.0 - p)), axis=1)
    return result
