"""How well answers fit: overall, by group of items and in the order they came, by the factor model of past answers."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from itembank.estimation.regression.factor import predict_factor
from itembank.irt.linear_gaussian import FactorModel, group_residuals, successive_residuals
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

LEAST_GROUP, LEAST_REFERENCE = 5, 10
"""Answers that a group, and those that it is compared with, must have to be examined."""
SLACK = 0.25
"""Of the CUSUM, in standard deviations of an answer: half the shift that it finds soonest, 0.5. A model that fails four
in ten of what it could do shifts by 0.4 to 0.6."""


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
    # (n_models, n_groups): Mean answer to a group's items less what the answers to its reference let expect; NaN where
    # too few were answered.
    difference: FloatArray
    deviation: FloatArray  # (n_models, n_groups): The same in standard deviations by the factor model
    # (n_models,): Largest excursion of the cumulative sums; NaN where the order of answers is not known.
    cusum: FloatArray

    @classmethod
    def unknown(cls, n_models: int, n_groups: int) -> Self:
        """Return those of models of which nothing is known."""
        shapes = (n_models, n_models, (n_models, n_groups), (n_models, n_groups), n_models)
        return cls(*(np.full(shape, np.nan) for shape in shapes))

    @classmethod
    def of_columns(cls, columns: FloatArray) -> Self:
        """Take them apart again, given `columns`."""
        n_groups = (columns.shape[1] - 3) // 2
        difference, deviation = columns[:, 3 : 3 + n_groups], columns[:, 3 + n_groups :]
        return cls(columns[:, 0], columns[:, 1], difference, deviation, columns[:, 2])

    @property
    def columns(self) -> FloatArray:
        """All of them in one array, (n_models, 3 + 2 n_groups)."""
        return np.column_stack([self.misfit, self.outfit, self.cusum, self.difference, self.deviation])

    def set_rows(self, rows: IntArray, other: "FitStatistics") -> None:
        """Write those of some of the models in place."""
        for ours, theirs in zip(self, other, strict=True):
            ours[rows] = theirs


def fit_statistics(
    model: FactorModel,
    items: IntArray,
    responses: FloatArray,
    groups: tuple[ItemGroup, ...],
    *,
    is_ordered: bool,
) -> FitStatistics:
    """Measure the fit of models that answered these items, all but the outfit, by the factor model.

    Parameters
    ----------
    model : FactorModel
    items : (n_observed,)
        Positions of the items, in the order of answering where `is_ordered`.
    responses : (n_models, n_observed)
        Complete.
    groups : tuple of n_groups ItemGroup
    is_ordered : bool
    """
    found = FitStatistics.unknown(responses.shape[0], len(groups))
    found.misfit[:] = predict_factor(model, items, np.zeros((model.n_items, 0)), responses).misfit
    for column, group in enumerate(groups):
        inside, reference = np.flatnonzero(group.is_member[items]), np.flatnonzero(group.is_reference[items])
        if inside.size >= LEAST_GROUP and reference.size >= LEAST_REFERENCE:
            difference, variance = group_residuals(model, items, responses, inside, reference)
            found.difference[:, column] = difference
            found.deviation[:, column] = difference / np.sqrt(variance)
    if is_ordered:
        sums = cumulative_sums(successive_residuals(model, items, responses))
        found.cusum[:] = np.abs(sums).max(axis=(0, 2))
    return found


def cumulative_sums(residuals: FloatArray) -> FloatArray:
    """Upper and lower cumulative sums of residuals, (2, n_models, n_answers).

    ``C+_t = max(0, C+_(t-1) + u_t - k)`` and ``C-_t = min(0, C-_(t-1) + u_t + k)`` with k = `SLACK` (Page 1954; for
    answers of one examinee van Krimpen-Stoop & Meijer 2000).

    Parameters
    ----------
    residuals : (n_models, n_answers)
        u, in standard deviations, in the order of answering.
    """
    sums = np.zeros((2, *residuals.shape))
    upper, lower = np.zeros(residuals.shape[0]), np.zeros(residuals.shape[0])
    for t, residual in enumerate(residuals.T):
        upper = np.maximum(0.0, upper + residual - SLACK)
        lower = np.minimum(0.0, lower + residual + SLACK)
        sums[0, :, t], sums[1, :, t] = upper, lower
    return sums


def onset(sums: FloatArray) -> tuple[int, bool]:
    """Find where one model's sums left zero for their largest excursion, and which way.

    Parameters
    ----------
    sums : (2, n_answers)

    Returns
    -------
    int
        Number of the first answer of the excursion, from 1.
    bool
        Whether answers got better.
    """
    side, peak = np.unravel_index(int(np.argmax(np.abs(sums))), sums.shape)
    at_zero = np.flatnonzero(sums[side, : peak + 1] == 0.0)
    return (int(at_zero[-1]) + 2 if at_zero.size else 1), bool(side == 0)
