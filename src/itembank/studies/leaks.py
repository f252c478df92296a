"""What may be known of whom: the guard between calibration models and new models."""

from collections.abc import Sequence

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataError, shown
from itembank.numerics.arrays import IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import EXTERNAL
from itembank.studies.splits import Fold

ITEM_COLUMNS = ("item_id", "scenario", "subscenario", "weight", "chance", "n_options")
"""What of the item table a method may see: other columns often hold means over all models, new ones too."""


def calibration_part(responses: ResponseMatrix, fold: Fold) -> ResponseMatrix:
    """Return the calibration models' responses, to the items one of them answered, and their external scores alone."""
    answered = np.flatnonzero(responses.observed[fold.train].any(axis=0))
    external = [name for name in responses.models.columns if name.startswith(EXTERNAL)]
    return _bare(responses.take(models=fold.train, items=answered), external)


def answers_of(new: ResponseMatrix, chosen: IntArray) -> ResponseMatrix:
    """Return the new models' responses to the chosen items, and nothing else of them."""
    return _bare(new.take(items=chosen))


def check_no_leak(bank: Bank, new: ResponseMatrix) -> None:
    """Refuse a bank that was calibrated on a model it is to be tested with.

    Raises
    ------
    DataError
        Naming those models.
    """
    both = sorted(set(bank.responses.model_ids) & set(new.model_ids))
    if both:
        raise DataError(
            f"no model may be both tested and calibrated on, got {len(both)}: {shown(both)}. "
            "This is a mistake in the split, not in the data."
        )


def _bare(responses: ResponseMatrix, of_models: Sequence[str] = ()) -> ResponseMatrix:
    """Leave out what tables say of models (their scores, often) beyond these, and of items beyond `ITEM_COLUMNS`."""
    columns = [name for name in ITEM_COLUMNS if name in responses.items.columns]
    return ResponseMatrix(
        responses.responses,
        responses.models.select("model_id", *of_models),
        responses.items.select(columns),
        responses.n_trials,
        responses.costs,
    )
