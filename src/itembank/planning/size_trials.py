"""Errors on calibration models that neither the choice of n items nor the estimates have seen."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.bank.selections import Selection
from itembank.errors import DataError
from itembank.estimation.estimator_specs import Auto, EstimationSpec, PointSpec, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.members_out_of_fold import MembersOutOfFold, members_out_of_fold
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.estimation.out_of_fold import OutOfFold
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.auto import FALLBACK, choose_selection
from itembank.selection.select import select
from itembank.selection.selector_specs import SelectionSpec

Selector = SelectionSpec | str
"""A method of selection, or 'auto'."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Results with one number of items."""

    n_items: int
    errors: FloatArray  # (n_models,): Estimate less truth of every calibration model whose truth is known
    scale: FloatArray  # (n_models,): Expected size of each error up to a factor, which the widths of intervals follow
    costs: dict[str, float]  # Expected cost of the chosen items, where the bank knows it

    @classmethod
    def of(cls, n_items: int, found: OutOfFold, target: int, costs: dict[str, float]) -> Self:
        """Take one target of what was found.

        Raises
        ------
        DataError
            Where fewer than two calibration models have an estimate and a full score.
        """
        errors = found.error[:, target]
        known = ~np.isnan(errors)
        if known.sum() < 2:
            raise DataError("a plan needs calibration models whose full score is known, got fewer than two.")
        return cls(n_items, errors[known], found.scale[known, target], costs)


@one_blas_thread()
def try_size(
    bank: Bank, n_items: int, *, selector: Selector, estimator: EstimationSpec, target: int, seed: int
) -> Trial:
    """Choose n items in every fold anew and estimate the models it left out; raises as `Trial.of`."""
    spec = Stacked() if isinstance(estimator, Auto) else estimator
    chosen, members = estimates_of_size(bank, n_items, selector=selector, spec=spec, seed=seed)
    return Trial.of(n_items, members.past(spec).estimates, target, costs_of(bank, chosen))


def estimates_of_size(
    bank: Bank, n_items: int, *, selector: Selector, spec: PointSpec | Stacked, seed: int
) -> tuple[list[Selection], MembersOutOfFold]:
    """Choose n items in every fold anew, and estimate the models it left out; return both.

    'auto' takes what `select` takes for as many items, and its trial is the one that `estimate` rests on; where it
    draws at random, each fold draws its own.
    """
    if isinstance(selector, str):
        taken = choose_selection(bank, n_items, per_scenario=False, excluded=(), seed=seed)
        if not taken.is_random:
            return [taken], try_methods(bank, sample_of(bank, taken), taken, spec.members)
        selector = FALLBACK
    chosen = [
        select(fold.bank, n_items, method=selector, rng=np.random.default_rng([seed, n_items, fold.number]))
        for fold in folds(bank)
    ]
    samples = [sample_of(fold.bank, selection) for fold, selection in zip(folds(bank), chosen, strict=True)]
    how = ("plan", repr(selector), str(seed))
    return chosen, members_out_of_fold(bank, spec.members, lambda fold: samples[fold.number], samples[0], *how)


def costs_of(bank: Bank, chosen: list[Selection]) -> dict[str, float]:
    """Return the expected cost of a selection by unit, the mean over folds, without units that no item has."""
    positions = [bank.responses.item_indices(selection.item_ids) for selection in chosen]
    expected = costs_of_items(bank.responses)
    return {unit: float(np.mean([cost[items].sum() for items in positions])) for unit, cost in expected.items()}
