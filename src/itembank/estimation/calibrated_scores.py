"""Estimates with intervals from past errors, or from the item model alone."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from itembank.data.targets import ScoreTargets
from itembank.estimation.intervals import ROUNDING, calibrated_half_widths, cut_to_possible
from itembank.estimation.out_of_fold import OutOfFold
from itembank.estimation.posterior import standard_error
from itembank.estimation.response_summary import ResponseSummary, posterior_moments
from itembank.estimation.scores import Scores
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class EstimatedScores:
    """Scores of n_models models on n_targets targets (scenarios, then overall), and the inflation of their errors.

    Attributes
    ----------
    scores : Scores
    inflation : (n_targets,)
        Root mean square of past errors over what the item model expected of them.
    """

    scores: Scores
    inflation: FloatArray


def calibrated(
    targets: ScoreTargets,
    summary: ResponseSummary,
    value: FloatArray,
    past: OutOfFold,
    *,
    scale: FloatArray,
    level: float,
) -> EstimatedScores:
    """Give estimates (n_models, n_targets) intervals as wide as past errors ask for (`calibrated_half_widths`).

    Parameters
    ----------
    targets, summary, value
    past : OutOfFold
        A score of which no error is known gets the interval of the item model.
    scale : (n_models, n_targets)
        Expected size of each error up to a factor, as `past` has it for the calibration models.
    level : float
    """
    scale = np.where(_unseen(targets, summary) > 0.0, scale, 0.0)
    measured = calibrated_half_widths(past.error, past.scale, scale, level=level)
    model_error = _model_error(targets, summary, value)
    is_unknown = np.isnan(measured)
    half = np.where(is_unknown, ndtri(0.5 + level / 2.0) * model_error, measured)
    size = np.where(is_unknown, model_error, scale * error_inflation(past.error, past.scale))
    scores = _within_bounds(targets, summary, value, error=size, half=half)
    return EstimatedScores(scores, error_inflation(past.error, past.standard_error))


def model_based(targets: ScoreTargets, summary: ResponseSummary, value: FloatArray, *, level: float) -> EstimatedScores:
    """Give estimates (n_models, n_targets) the intervals of the item model: ``value +- z`` standard errors."""
    model_error = _model_error(targets, summary, value)
    half = ndtri(0.5 + level / 2.0) * model_error
    scores = _within_bounds(targets, summary, value, error=model_error, half=half)
    return EstimatedScores(scores, np.ones(value.shape[1]))


def _model_error(targets: ScoreTargets, summary: ResponseSummary, value: FloatArray) -> FloatArray:
    """Find standard errors by the item model alone, (n_models, n_targets)."""
    means, variances = posterior_moments(targets, summary)
    return standard_error(value, means, variances)


def _within_bounds(
    targets: ScoreTargets, summary: ResponseSummary, value: FloatArray, *, error: FloatArray, half: FloatArray
) -> Scores:
    """Cut estimates and intervals to what is possible."""
    known, unseen = targets.with_overall(summary.known), _unseen(targets, summary)
    low, high = cut_to_possible(value - half, value + half, known, unseen)
    value, _ = cut_to_possible(value, value, known, unseen)
    return Scores(value, error, low, high)


def _unseen(targets: ScoreTargets, summary: ResponseSummary) -> FloatArray:
    """Weight of the items that were not observed in each target, (n_models, n_targets)."""
    return targets.with_overall(summary.open_weight)


def error_inflation(error: FloatArray, expected: FloatArray) -> FloatArray:
    """Root mean square of errors over their expected size, (n_targets,); 1 where none are known."""
    known = expected > ROUNDING  # a model that answered everything has no error to speak of
    known &= ~np.isnan(error)
    ratios = np.divide(error, expected, out=np.zeros(known.shape), where=known)
    count = known.sum(axis=0)
    mean_square = np.divide((ratios**2).sum(axis=0), count, out=np.ones(count.shape), where=count > 0)
    result: FloatArray = np.sqrt(mean_square)
    return result
