"""Estimates with intervals for models that answered the same items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri

from itembank.data.banks import Bank
from itembank.data.selections import Selection
from itembank.data.targets import ScoreTargets
from itembank.estimation.evidence import Evidence
from itembank.estimation.intervals import ROUNDING, calibrated_half_widths, cut_to_possible
from itembank.estimation.observations import Observations
from itembank.estimation.out_of_fold import OutOfFold, posterior_moments
from itembank.estimation.point import point_scores, with_certain
from itembank.estimation.posterior import standard_error
from itembank.estimation.scores import Scores
from itembank.estimation.specs import PointSpec, Stacked
from itembank.estimation.stacking import combined, reconciled
from itembank.estimation.trial import has_trial, trial
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback

IntervalKind = Literal["calibrated", "model-based", "design"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scores of n_models models on n_targets targets (scenarios, then overall), and how they were judged.

    Attributes
    ----------
    scores : Scores
    inflation : (n_targets,)
        Standard errors over those of the item model.
    """

    scores: Scores
    inflation: FloatArray


def judge(
    bank: Bank,
    observations: Observations,
    evidence: Evidence,
    selection: Selection | None,
    spec: PointSpec | Stacked,
    *,
    level: float,
    is_calibrated: bool,
    progress: ProgressCallback,
) -> Judgement:
    """Estimate by a method and give each estimate its interval.

    Parameters
    ----------
    bank, observations, evidence, selection
    spec : PointSpec or Stacked
    level : float
    is_calibrated : bool
        Whether the calibration models' own errors decide the width; else the item model alone does.
    progress : ProgressCallback
    """
    past = _past(bank, observations, selection, spec, needed=is_calibrated, progress=progress)
    value = _value(bank, observations, evidence, spec, past[1])
    if not is_calibrated or past[0] is None:
        return model_based(bank.targets, evidence, value, level=level)
    return calibrated(bank.targets, evidence, value, [(past[0], 1.0)], level=level)


def calibrated(
    targets: ScoreTargets,
    evidence: Evidence,
    value: FloatArray,
    past: Sequence[tuple[OutOfFold, float]],
    *,
    level: float,
) -> Judgement:
    """Give estimates (n_models, n_targets) intervals as wide as past errors ask for (`calibrated_half_widths`).

    Of several sets of past errors, each with its share, widths and inflations are averaged. A score of which no error
    is known gets the interval of the item model.
    """
    model_error = _model_error(targets, evidence, value)
    by_model = ndtri(0.5 + level / 2.0) * model_error
    half, inflation = np.zeros(value.shape), np.zeros(value.shape[1])
    for errors, share in past:
        found = calibrated_half_widths(errors.error, errors.standard_error, model_error, level=level)
        half += share * np.where(np.isnan(found), by_model, found)
        inflation += share * _inflation(errors)
    return _judgement(targets, evidence, value, model_error=model_error, half=half, inflation=inflation)


def model_based(targets: ScoreTargets, evidence: Evidence, value: FloatArray, *, level: float) -> Judgement:
    """Give estimates (n_models, n_targets) the intervals of the item model: ``value +- z`` standard errors."""
    model_error = _model_error(targets, evidence, value)
    half = ndtri(0.5 + level / 2.0) * model_error
    inflation = np.ones(value.shape[1])
    return _judgement(targets, evidence, value, model_error=model_error, half=half, inflation=inflation)


def _model_error(targets: ScoreTargets, evidence: Evidence, value: FloatArray) -> FloatArray:
    """Find standard errors by the item model alone, (n_models, n_targets)."""
    means, variances = posterior_moments(targets, evidence)
    return standard_error(value, means, variances)


def _judgement(
    targets: ScoreTargets,
    evidence: Evidence,
    value: FloatArray,
    *,
    model_error: FloatArray,
    half: FloatArray,
    inflation: FloatArray,
) -> Judgement:
    """Cut estimates and intervals to what is possible."""
    known = targets.with_overall(evidence.known)
    unseen = targets.with_overall(evidence.open_weight)
    low, high = cut_to_possible(value - half, value + half, known, unseen)
    value, _ = cut_to_possible(value, value, known, unseen)
    return Judgement(Scores(value, model_error * inflation, low, high), inflation)


def _inflation(past: OutOfFold) -> FloatArray:
    """Root mean square of errors over what the item model says of their size, 1 where none are known, (n_targets,)."""
    known = past.standard_error > ROUNDING  # a model that answered everything has no error to speak of
    known &= ~np.isnan(past.error)
    ratios = np.divide(past.error, past.standard_error, out=np.zeros(known.shape), where=known)
    count = known.sum(axis=0)
    mean_square = np.divide((ratios**2).sum(axis=0), count, out=np.ones(count.shape), where=count > 0)
    result: FloatArray = np.sqrt(mean_square)
    return result


def _past(
    bank: Bank,
    observations: Observations,
    selection: Selection | None,
    spec: PointSpec | Stacked,
    *,
    needed: bool,
    progress: ProgressCallback,
) -> tuple[OutOfFold | None, FloatArray | None]:
    """Return what the method did for calibration models left out, and the weights of its members."""
    if not (needed or isinstance(spec, Stacked)) or not has_trial(bank, progress=progress):
        return None, None
    members = spec.members if isinstance(spec, Stacked) else (spec,)
    found = trial(bank, observations, selection, members, progress=progress)
    if isinstance(spec, Stacked):
        return found.stacked(spec), found.weights(spec)
    return found.single(0), None


def _value(
    bank: Bank, observations: Observations, evidence: Evidence, spec: PointSpec | Stacked, weights: FloatArray | None
) -> FloatArray:
    """Estimates of every target, (n_models, n_targets)."""
    if not isinstance(spec, Stacked):
        return point_scores(bank, observations, evidence, spec)
    values = np.stack([point_scores(bank, observations, evidence, member) for member in spec.members])
    if weights is None:  # too few models to learn weights from
        weights = np.full((len(spec.members), values.shape[2]), 1.0 / len(spec.members))
    _, variances = posterior_moments(bank.targets, evidence)
    return with_certain(
        bank.targets, evidence, reconciled(combined(values, weights), variances, bank.targets.scenario_weights)
    )
