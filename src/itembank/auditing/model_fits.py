"""The fit of models that answered the same items, with what is unusual about each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from itembank.auditing.fit_groups import NAMED
from itembank.auditing.fit_p_values import FitPValues, detectable_rises, fit_p_values
from itembank.auditing.fit_statistics import FitStatistics, ItemGroup, cumulative_sums, onset
from itembank.auditing.past_fit import factor_model_of, past_session_statistics, past_statistics, statistics_by
from itembank.auditing.person_fit_results import GroupFit, ModelFit, OrderFit, SurprisingAnswer
from itembank.bank.banks import Bank
from itembank.estimation.typicality import PastMisfit
from itembank.irt.linear_gaussian import item_residuals, successive_residuals
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback
from itembank.sessions.session_spec import SessionSpec

N_WORST = 3
"""Surprising answers that are listed, each way."""
LEAST_SURPRISING = 1.0
"""Standard deviations from what is expected below which an answer is no surprise."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Models that answered the same items."""

    model_ids: tuple[str, ...]
    items: IntArray  # (n_observed,): Positions in the bank, in the order of answering where that is known
    responses: FloatArray  # (n_models, n_observed): Complete
    is_ordered: bool
    session: SessionSpec | None = None  # Of the adaptive session that chose the items


def model_fits(
    bank: Bank, answered: Answered, groups: tuple[ItemGroup, ...], *, progress: ProgressCallback
) -> Iterator[ModelFit]:
    """Compare models that answered the same items with the bank's own, left out."""
    factors, items, is_ordered = factor_model_of(bank), answered.items, answered.is_ordered
    found = statistics_by(bank, items, answered.responses, groups, is_ordered=is_ordered)
    if answered.session is None:
        past = past_statistics(bank, items, groups, is_ordered=is_ordered, progress=progress)
    else:
        past = past_session_statistics(bank, answered.session, items.size, groups, progress=progress)
    p_values = fit_p_values(found, past, groups)
    typicality = PastMisfit.of(past.misfit, past.misfit).typicality_of(found.misfit).typicality
    residual, variance = item_residuals(factors, items, answered.responses)
    detectable = detectable_rises(past)
    n_past = int(np.sum(~np.isnan(past.misfit)))
    ids = bank.responses.item_ids
    for row, name in enumerate(answered.model_ids):
        right, wrong = (
            tuple(
                SurprisingAnswer(ids[items[i]], *_seen_and_expected(answered.responses[row, i], residual[row, i]))
                for i in _most_surprising(sign * residual[row] / np.sqrt(variance))
            )
            for sign in (1.0, -1.0)
        )
        yield ModelFit(
            model_id=name,
            n_items=int(items.size),
            n_past=n_past,
            misfit=float(found.misfit[row]),
            outfit=float(found.outfit[row]),
            typicality=float(typicality[row]),
            p_value=float(p_values.overall[row]),
            groups=tuple(_group_fits(answered, row, groups, found=found, p_values=p_values, detectable=detectable)),
            right=right,
            wrong=wrong,
            order=_order_fit(successive_residuals(factors, items, answered.responses[[row]]), p_values.order[row])
            if is_ordered
            else None,
        )


def _most_surprising(deviation: FloatArray) -> list[int]:
    """Columns of the largest deviations, the largest first."""
    first = np.argsort(-deviation, kind="stable")[:N_WORST]
    return [int(i) for i in first if deviation[i] > LEAST_SURPRISING]


def _seen_and_expected(response: float, residual: float) -> tuple[float, float]:
    return float(response), float(np.clip(response - residual, 0.0, 1.0))


def _group_fits(
    answered: Answered,
    row: int,
    groups: tuple[ItemGroup, ...],
    *,
    found: FitStatistics,
    p_values: FitPValues,
    detectable: FloatArray,
) -> Iterator[GroupFit]:
    """Yield the groups of which enough was answered, and every named one."""
    for column, group in enumerate(groups):
        inside = group.is_member[answered.items]
        is_named, difference = group.kind == NAMED, float(found.difference[row, column])
        if not is_named and np.isnan(difference):
            continue
        mean = float(answered.responses[row, inside].mean()) if inside.any() else np.nan
        yield GroupFit(
            name=group.name,
            kind=group.kind,
            n_items=int(inside.sum()),
            n_reference=int(group.is_reference[answered.items].sum()),
            mean=mean,
            expected=mean - difference,
            p_value=float(p_values.groups[row, column]),
            detectable=float(detectable[column]) if is_named else np.nan,
        )


def _order_fit(successive: FloatArray, p_value: float) -> OrderFit:
    """Say where the answers of one model changed, from its residuals (1, n_observed)."""
    sums = cumulative_sums(successive)[:, 0]
    first_answer, got_better = onset(sums)
    return OrderFit(float(np.abs(sums).max()), float(p_value), first_answer, got_better)
