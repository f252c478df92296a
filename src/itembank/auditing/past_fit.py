"""The cross-validated fit of past models: what the fit of new models is compared with."""

from collections.abc import Iterator

import numpy as np

from itembank.auditing.fit_statistics import FitStatistics, ItemGroup, fit_statistics
from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.errors import DataError
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, Fold, folds, run_trial
from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.sessions.preparation import past_orders
from itembank.sessions.session_spec import SessionSpec

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
        result = FitStatistics.unknown(fold.held_out.size, len(groups))
        responses = bank.responses.of_items(items, models=fold.held_out)
        for rows, columns in patterns(responses, least=LEAST_ANSWERED):
            answers = responses[np.ix_(rows, columns)]
            result.set_rows(rows, statistics_by(fold.bank, items[columns], answers, groups, is_ordered=is_ordered))
        return result.columns

    masks = (mask for group in groups for mask in (group.is_member, group.is_reference))
    name = cache_name("past-fit", is_ordered, items, *masks)
    shape = FitStatistics.unknown(bank.n_models, len(groups)).columns.shape
    return FitStatistics.of_columns(run_trial(bank, name, try_fold, shape, progress=progress))


def past_session_statistics(
    bank: Bank, spec: SessionSpec, n_answers: int, groups: tuple[ItemGroup, ...], *, progress: ProgressCallback
) -> FitStatistics:
    """Measure the fit of past models, cross-validated, to the items that sessions of this spec ask each of them.

    A session asks what its model may get right or wrong. On the same items other models answer with less doubt, and the
    session's model would seem unusual for that alone. NaN for models that were not tried, or whose sessions ended
    before so many answers.
    """
    result = FitStatistics.unknown(bank.n_models, len(groups))
    orders = past_orders(bank, spec, n_answers, progress=progress)
    for fold in folds(bank):
        for row in fold.held_out[~np.isnan(orders[fold.held_out]).any(axis=1)].tolist():
            items = orders[row].astype(np.int64)
            answers = bank.responses.block(row, row + 1).of_items(items)
            found = statistics_by(fold.bank, items, answers, groups, is_ordered=True)
            result.set_rows(np.array([row]), found)
    return result


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
