"""What differs between a bank and what came of it."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ChangedParts:
    """What differs, for the items that the old bank has."""

    parameters: BoolArray  # (n_old_items,): Items with other parameters
    responses: BoolArray  # (n_old_items,): Items that models of both banks answered otherwise
    models_added: list[str]
    models_dropped: list[str]
    n_new_items: int
    has_new_scale: bool  # Whether the prior of ability is another

    @classmethod
    def of(cls, old: Bank, new: Bank) -> Self:
        """Compare two banks; the items of the new one begin with those of the old one."""
        old_models, new_models = old.responses.model_ids, new.responses.model_ids
        same = np.arange(old.n_items)
        return cls(
            other_parameters(old, new, same, same),
            other_responses(old, new, same, same),
            sorted(set(new_models) - set(old_models)),
            sorted(set(old_models) - set(new_models)),
            new.n_items - old.n_items,
            not is_same_prior(old, new),
        )

    @property
    def items(self) -> BoolArray:
        """Items with other parameters or answers, (n_old_items,)."""
        result: BoolArray = self.parameters | self.responses
        return result

    @property
    def has_other_numbers(self) -> bool:
        """Whether anything of the old items changed: their parameters, who answered them and how, the scale."""
        return bool(self.items.any() or self.models_added or self.models_dropped) or self.has_new_scale

    def part(self, *, is_new_score: bool, is_linked: bool) -> str:
        """Which number of the version rises: 'major', 'minor' or 'patch'."""
        has_new_parameters = bool(self.parameters.any())
        if is_new_score or ((has_new_parameters or self.has_new_scale) and not is_linked):
            return "major"
        return "minor" if self.n_new_items or self.has_other_numbers else "patch"


def is_same_prior(one: Bank, other: Bank) -> bool:
    """Whether two banks have the same prior of ability."""
    ours, theirs = one.calibration.prior, other.calibration.prior
    return np.array_equal(ours.mean, theirs.mean) and np.array_equal(ours.covariance, theirs.covariance)


def other_parameters(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether items of one bank have other parameters in another, (n_common,); by their positions in both."""
    a, b = _coefficients(one)[ours], _coefficients(other)[theirs]
    if a.shape != b.shape:
        return np.ones(ours.size, dtype=bool)
    result: BoolArray = (a != b).any(axis=1)
    return result


def other_responses(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether a model of both banks answered items otherwise, (n_common,); by their positions in both."""
    place = {model: row for row, model in enumerate(other.responses.model_ids)}
    rows = [(row, place[model]) for row, model in enumerate(one.responses.model_ids) if model in place]
    result = np.zeros(ours.size, dtype=bool)
    for row, same in rows:  # a row at a time: whole copies of the matrix would fill the memory
        a, b = one.responses.responses[row, ours], other.responses.responses[same, theirs]
        result |= (a != b) & ~(np.isnan(a) & np.isnan(b))
    return result


def _coefficients(bank: Bank) -> FloatArray:
    """Every parameter of each item, (n_items, n_parameters)."""
    parameters = bank.parameters
    columns = [parameters.intercept, parameters.lower_asymptote, parameters.upper_asymptote]
    if parameters.precision is not None:
        columns.append(parameters.precision)
    return np.column_stack([parameters.loadings, *columns])
