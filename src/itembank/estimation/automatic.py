"""The method that `auto` takes, and its errors on calibration models that it has not seen."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.estimation.estimator_specs import GPIRT, IN_STAGES, METHODS, EstimationSpec, Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import Observations
from itembank.estimation.published_errors import published_subset
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent
from itembank.responses.targets import ScoreTargets
from itembank.selection.recipes import read_recipe

FALLBACK = GPIRT()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method and why it was taken."""

    spec: EstimationSpec
    explanation: str


def choose_method(
    bank: Bank, observations: Observations, selection: Selection | None, *, progress: ProgressCallback = silent
) -> Chosen:
    """Take 'stacked', weighted by the errors on calibration models left out, or gp-IRT where there are too few models.

    After several stages it is the stack without members that take means of the answers (`IN_STAGES`).

    The single best method is never taken: with few models it is the best by luck, and its errors are then too small for
    new models (with 27 models 95 % intervals of differences held for 0.92).
    """
    kept = published_subset(bank, selection, Stacked())
    if kept is not None:
        return Chosen(Stacked(), kept.explanation)
    if bank.published is not None:
        return Chosen(
            FALLBACK, "gp-irt, since the bank was published without past models' responses to compare methods on."
        )
    if not folds(bank, progress=progress):
        return Chosen(
            FALLBACK,
            f"gp-irt, since {too_few(bank)}. Intervals of the item model alone are too narrow with so few: draw items "
            "at random and leave method and interval as they are.",
        )
    recipe = None if selection is None else read_recipe(selection)
    stacked = IN_STAGES if recipe is not None and recipe.stages else Stacked()
    trials = try_methods(bank, observations, selection, stacked.members, progress=progress)
    errors = np.stack([trials.single(number).error for number in range(len(stacked.members))])
    together = np.abs(trials.stacked(stacked).error[:, -1])
    return Chosen(stacked, _why(stacked, bank.targets, np.abs(errors[:, :, -1]), together))


def has_too_few(bank: Bank) -> bool:
    """Whether the models are too few, or too unlike in what they answered, to leave some out in turn.

    A bank that was published without responses has none to leave out, but may have been made from many.
    """
    if bank.published is not None:
        return bank.n_compared_models < MINIMUM_FOR_FOLDS
    return not folds(bank)


def too_few(bank: Bank) -> str:
    """Say why the bank's models cannot be left out in turn."""
    known, why = bank.n_compared_models, "to leave some out and compare methods"
    if known >= MINIMUM_FOR_FOLDS:
        return f"{known} calibration models are too unlike in what they answered {why}"
    if known == bank.n_calibration_models:
        return f"{known} calibration models are too few {why}"
    return (
        f"{known} of {bank.n_models} calibration models answered enough items for their full scores to be known, too "
        f"few {why}"
    )


def _why(stacked: Stacked, targets: ScoreTargets, errors: FloatArray, together: FloatArray) -> str:
    """State the errors of the methods on calibration models left out."""
    points = 100.0 * np.array([_mean(member) for member in errors])
    order = np.argsort(points)[: int(np.sum(~np.isnan(points)))]  # those with nothing to go by are left out
    if order.size == 0:
        return "stacked: no calibration model left out has a score and an estimate to compare methods by."
    singles = ", ".join(f"{METHODS.label(stacked.members[index])} {points[index]:.2f}" for index in order)
    return (
        f"stacked. Mean errors of {targets.last_in_words} of {int(np.sum(~np.isnan(together)))} calibration models "
        f"left out in turn, in points: stacked {100.0 * _mean(together):.2f}, {singles}."
    )


def _mean(errors: FloatArray) -> float:
    known = errors[~np.isnan(errors)]
    return float(known.mean()) if known.size else np.nan
