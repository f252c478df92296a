"""Trials of methods on calibration models left out, as they will be applied to new models."""

from collections.abc import Callable

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.folds import Fold, folds
from itembank.numerics.arrays import FloatArray
from itembank.numerics.parallel import parts_with_progress
from itembank.progress import ProgressCallback, part_of, silent

FRACTION_OF_FITS = 0.5
"""Part of the progress bar for fitting without some models, where that was not done before."""


def run_trial(
    bank: Bank,
    name: str,
    try_fold: Callable[[Fold, ProgressCallback], FloatArray],
    shape: tuple[int, ...],
    *,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Apply a method to the models that each fold leaves out, as the whole bank will apply it to new models.

    Parameters
    ----------
    bank : Bank
    name : str
        The bank's cache keeps the result under it: made by `cache_name` of all that the result depends on.
    try_fold : function
        Given a fold, and a callback for its progress, returns an array (..., n_held_out, n_targets).
    shape : tuple of int
        Of the result: (..., n_models, n_targets).
    progress : ProgressCallback

    Returns
    -------
    (..., n_models, n_targets)
        The result for each model from the fold that left it out.
    """

    def try_all() -> dict[str, FloatArray]:
        result = np.full(shape, np.nan)
        parts = folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS))
        own_progress = part_of(progress, FRACTION_OF_FITS, 1.0)
        for number, found in parts_with_progress(
            try_fold, [(fold,) for fold in parts], own_progress, elsewhere="trying on models left out"
        ):
            result[..., parts[number].held_out, :] = found
        return {"found": result}

    def fits(arrays: dict[str, FloatArray]) -> bool:
        return "found" in arrays and arrays["found"].shape == shape

    return bank.cache.arrays(name, try_all, fits=fits)["found"]
