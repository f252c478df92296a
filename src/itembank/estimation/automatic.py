"""Which method of estimation to take: the one that serves calibration models best whom it has not seen."""

from dataclasses import dataclass

import numpy as np

from itembank.calibration.folds import MINIMUM_FOR_FOLDS
from itembank.data.banks import Bank
from itembank.data.selections import Selection
from itembank.estimation.observations import Observations
from itembank.estimation.scenario_sums import scenario_sums
from itembank.estimation.specs import GPIRT, METHODS, EstimationSpec, SampleMean, Stacked, Weighted
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

    Nor is a mean taken alone where a scenario has no response to take the mean of: the others can say something of it.
    With too few calibration models to leave some out, gp-IRT: it needs none but those it was fitted on.
    """
    if not has_trial(bank, progress=progress):
        reason = "too few" if bank.n_models < MINIMUM_FOR_FOLDS else "too unlike in what they answered"
        return Chosen(
            FALLBACK,
            f"gp-irt, since {bank.n_models} calibration models are {reason} to leave some out and compare methods.",
        )
    stacked = Stacked()
    found = trial(bank, observations, selection, stacked.members, progress=progress)
    errors = np.abs(found.errors[:, :, -1])
    together = np.abs(found.stacked(stacked).error[:, -1])
    means = _known_means(errors)
    best = int(np.argmin(np.where(np.isnan(means), np.inf, means)))
    saving = together - errors[best]
    known = saving[~np.isnan(saving)]
    doubt = float(np.std(known, ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.inf
    is_single = known.size > 1 and float(known.mean()) > doubt
    if isinstance(stacked.members[best], SampleMean | Weighted):
        is_single = is_single and _sees_every_scenario(bank, observations)
    return Chosen(stacked.members[best] if is_single else stacked, _why(means, together, is_single=is_single))


def _sees_every_scenario(bank: Bank, observations: Observations) -> bool:
    """Whether every model with any response has one that weighs in each scenario."""
    observed = ~np.isnan(observations.responses)
    scenario = bank.targets.scenario_index[observations.positions]
    mass = scenario_sums(observed * observations.weights, scenario, bank.targets.n_scenarios)
    return bool(np.all(mass[observed.any(axis=1)] > 0.0))


def _known_means(errors: FloatArray) -> FloatArray:
    """Mean of each row (n_members, n_models) over what is known of it, NaN where nothing is, (n_members,)."""
    known = ~np.isnan(errors)
    count = known.sum(axis=1)
    total = np.where(known, errors, 0.0).sum(axis=1)
    result: FloatArray = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return result


def _why(means: FloatArray, together: FloatArray, *, is_single: bool) -> str:
    """Say what was chosen, and the errors it was chosen by; methods that had nothing to go by are left out."""
    stacked = Stacked()
    points = 100.0 * means
    order = np.argsort(points)[: int(np.sum(~np.isnan(points)))]
    if order.size == 0:
        return "stacked: no calibration model left out has a score and an estimate to compare methods by."
    singles = ", ".join(f"{METHODS.label(stacked.members[index])} {points[index]:.2f}" for index in order)
    name = METHODS.label(stacked.members[order[0]]) if is_single else "stacked"
    return (
        f"{name}: mean absolute error of the overall score of {int(np.sum(~np.isnan(together)))} calibration models "
        f"left out in turn, in points: stacked {100.0 * np.nanmean(together):.2f}, {singles}."
    )
