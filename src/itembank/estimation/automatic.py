"""Which method of estimation to take: the one that serves calibration models best whom it has not seen."""

from dataclasses import dataclass

import numpy as np

from itembank.data.banks import Bank
from itembank.data.selections import Selection
from itembank.estimation.observations import Observations
from itembank.estimation.specs import GPIRT, METHODS, EstimationSpec, Stacked
from itembank.estimation.trial import has_trial, trial
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent

FALLBACK = GPIRT()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method and why it was taken.

    Attributes
    ----------
    spec : EstimationSpec
    explanation : str
    """

    spec: EstimationSpec
    explanation: str


def choose_method(
    bank: Bank, observations: Observations, selection: Selection | None, *, progress: ProgressCallback = silent
) -> Chosen:
    """Take 'stacked', unless one method alone is better on the overall score by more than a standard error.

    With too few calibration models to leave some out, gp-IRT: it needs none but those it was fitted on.
    """
    if not has_trial(bank, progress=progress):
        return Chosen(
            FALLBACK,
            f"gp-irt, since {bank.n_models} calibration models are too few to leave some out and compare methods.",
        )
    stacked = Stacked()
    found = trial(bank, observations, selection, stacked.members, progress=progress)
    errors = np.abs(found.errors[:, :, -1])
    together = np.abs(found.stacked(stacked).error[:, -1])
    best = int(np.argmin(np.nanmean(errors, axis=1)))
    saving = together - errors[best]
    known = saving[~np.isnan(saving)]
    doubt = float(np.std(known, ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.inf
    is_single = known.size > 1 and float(known.mean()) > doubt
    return Chosen(stacked.members[best] if is_single else stacked, _why(errors, together, is_single=is_single))


def _why(errors: FloatArray, together: FloatArray, *, is_single: bool) -> str:
    """Say what was chosen, and the errors it was chosen by."""
    stacked = Stacked()
    points = 100.0 * np.nanmean(errors, axis=1)
    order = np.argsort(points)
    singles = ", ".join(f"{METHODS.label(stacked.members[index])} {points[index]:.2f}" for index in order)
    name = METHODS.label(stacked.members[order[0]]) if is_single else "stacked"
    return (
        f"{name}: mean absolute error of the overall score of {int(np.sum(~np.isnan(together)))} calibration models "
        f"left out in turn, in points: stacked {100.0 * np.nanmean(together):.2f}, {singles}."
    )
