"""How much smaller errors look on models that helped to choose the items."""

import hashlib

import numpy as np

from itembank.calibration.folds import Fold, folds
from itembank.data.banks import Bank
from itembank.data.selections import Selection
from itembank.errors import ItembankError
from itembank.estimation.observations import Observations
from itembank.estimation.out_of_fold import out_of_fold, run_in_folds
from itembank.estimation.specs import Auto, EstimationSpec, Stacked
from itembank.numerics.arrays import FloatArray
from itembank.selection.select import select
from itembank.selection.specs import METHODS


def error_inflation(bank: Bank, selection: Selection | None, spec: EstimationSpec) -> float:
    """Factor, at least 1, by which calibration models' errors must grow to be those of new models.

    Items that were chosen by what the calibration models answered suit these models better than new ones, though
    every estimate is fitted without them. In each fold as many items are chosen anew by the same method from the
    other models alone; the factor is the root of the ratio of the variances of the errors over models, the
    geometric mean over targets. 1 for items that chance chose, that were chosen from another bank, or without a
    selection. Kept in the bank's cache.
    """
    is_own = selection is not None and selection.bank == bank.bank_id and selection.method in METHODS.kinds
    if selection is None or not is_own or selection.is_random or not folds(bank):
        return 1.0
    chosen: Selection = selection
    kept = bank.cache.arrays(
        f"optimism-{_digest(chosen, spec)}",
        lambda: {"factor": np.array([_measured(bank, chosen, spec)])},
        fits=lambda arrays: arrays.get("factor", np.empty(0)).shape == (1,),
    )
    return float(kept["factor"][0])


def _measured(bank: Bank, selection: Selection, spec: EstimationSpec) -> float:
    positions = bank.responses.item_indices(selection.item_ids)
    spec = Stacked() if isinstance(spec, Auto) else spec
    known = out_of_fold(bank, positions, selection.weights, is_random=False, spec=spec).error
    try:
        samples = [_chosen_anew(fold, selection) for fold in folds(bank)]
    except ItembankError:  # without some models there may not be that many items to choose from
        return 1.0
    found = run_in_folds(bank, samples, spec.members if isinstance(spec, Stacked) else (spec,))
    new = (found.stacked(spec) if isinstance(spec, Stacked) else found.single(0)).error
    ratio = _variances(new) / np.maximum(_variances(known), 1e-300)
    usable = ratio[np.isfinite(ratio) & (ratio > 0.0) & (_variances(known) > 1e-18)]
    return float(max(1.0, np.sqrt(np.exp(np.mean(np.log(usable)))))) if usable.size else 1.0


def _chosen_anew(fold: Fold, selection: Selection) -> Observations:
    """As many items by the same method, from a bank without the fold's models."""
    found = select(fold.bank, selection.n_items, method=selection.method, rng=selection.seed or 0)
    positions = fold.bank.responses.item_indices(found.item_ids)
    nobody = np.empty((0, positions.shape[0]))
    return Observations.of_items(nobody, positions, found.weights, is_random=False)


def _variances(errors: FloatArray) -> FloatArray:
    """Variance over the models whose error is known, (n_targets,)."""
    known = ~np.isnan(errors)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, errors, 0.0).sum(axis=0) / count
    result: FloatArray = np.where(known, (errors - mean) ** 2, 0.0).sum(axis=0) / count
    return result


def _digest(selection: Selection, spec: EstimationSpec) -> str:
    """Short name of the items, their weights, how they were chosen and the estimator."""
    text = repr((selection.item_ids, selection.weights.tolist(), selection.method, selection.seed, spec))
    return hashlib.sha256(text.encode()).hexdigest()[:20]
