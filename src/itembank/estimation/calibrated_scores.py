"""Estimates with intervals from past errors, or from the item model alone."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.known_scores import Headline
from itembank.estimation.out_of_fold import OutOfFold
from itembank.estimation.posterior import standard_error
from itembank.estimation.response_summary import ResponseSummary, posterior_moments
from itembank.estimation.scores import Scores
from itembank.numerics.arrays import FloatArray
from itembank.numerics.intervals import ROUNDING, calibrated_half_widths, cut_to_possible, normal_reach
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class Possible:
    """Which scores can be, given what was answered; each (n_models, n_targets)."""

    known: FloatArray  # The least: the score with all unseen items failed
    unseen: FloatArray  # What solving them all adds to it; 0 where the score is exact

    @classmethod
    def of(cls, targets: ScoreTargets, summary: ResponseSummary, headline: Headline | None = None) -> Self:
        """Add up the weights of answered items; a headline score may be anything, unless all answers give it."""
        known, unseen = targets.with_overall(summary.known), targets.with_overall(summary.open_weight)
        if headline is not None:
            is_exact = summary.is_complete.all(axis=1) & headline.follows_answers
            known[:, -1] = np.where(is_exact, headline.win_rates(summary.known), 0.0)
            unseen[:, -1] = np.where(is_exact, 0.0, 1.0)
        return cls(known, unseen)

    def cut(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut intervals to the possible scores."""
        return cut_to_possible(low, high, self.known, self.unseen)


def calibrated(
    targets: ScoreTargets,
    summary: ResponseSummary,
    value: FloatArray,
    past: OutOfFold,
    *,
    scale: FloatArray,
    level: float,
    headline: Headline | None = None,
) -> Scores:
    """Give estimates (n_models, n_targets) intervals as wide as past errors ask for (`calibrated_half_widths`).

    No interval is narrower than the chance in the answers that were not seen, however small past errors were.

    Parameters
    ----------
    targets, summary, value
    past : OutOfFold
        A score of which no error is known gets the interval of the item model.
    scale : (n_models, n_targets)
        Expected size of each error up to a factor, as `past` has it for the calibration models.
    level : float
    headline : Headline or None
        The score that the last column is of, where it is not the overall one.
    """
    possible = Possible.of(targets, summary, headline)
    scale = np.where(possible.unseen > 0.0, scale, 0.0)
    measured = calibrated_half_widths(past.error, past.scale, scale, level=level)
    model_error = _model_error(targets, summary, value)
    is_unknown = np.isnan(measured)
    half = np.where(is_unknown, normal_reach(level) * model_error, measured)
    size = np.where(is_unknown, model_error, scale * error_inflation(past.error, past.scale))
    least = _least_half_widths(targets, summary, level=level, headline=headline)
    return _within_bounds(possible, value, error=size, half=half, least=least)


def model_based(targets: ScoreTargets, summary: ResponseSummary, value: FloatArray, *, level: float) -> Scores:
    """Give estimates (n_models, n_targets) the intervals of the item model: ``value +- z`` standard errors."""
    model_error = _model_error(targets, summary, value)
    half = normal_reach(level) * model_error
    least = _least_half_widths(targets, summary, level=level)
    return _within_bounds(Possible.of(targets, summary), value, error=model_error, half=half, least=least)


def _model_error(targets: ScoreTargets, summary: ResponseSummary, value: FloatArray) -> FloatArray:
    """Find standard errors by the item model alone, (n_models, n_targets)."""
    means, variances = posterior_moments(targets, summary)
    return standard_error(value, means, variances)


def _least_half_widths(
    targets: ScoreTargets, summary: ResponseSummary, *, level: float, headline: Headline | None = None
) -> FloatArray:
    """Half-widths by the noise of unseen answers alone, (n_models, n_targets); none is known of a headline score."""
    of_overall = summary.noise @ targets.scenario_weights**2
    noise = np.column_stack([summary.noise, of_overall if headline is None else np.zeros(of_overall.shape)])
    result: FloatArray = normal_reach(level) * np.sqrt(noise)
    return result


def _within_bounds(
    possible: Possible, value: FloatArray, *, error: FloatArray, half: FloatArray, least: FloatArray
) -> Scores:
    """Cut estimates and intervals to what is possible; an interval reaches at least so far from what is left."""
    inside, _ = possible.cut(value, value)
    low, high = possible.cut(np.fmin(value - half, inside - least), np.fmax(value + half, inside + least))
    return Scores(inside, error, low, high)


def error_inflation(error: FloatArray, expected: FloatArray) -> FloatArray:
    """Root mean square of errors over their expected size, (n_targets,); 1 where none are known."""
    known = expected > ROUNDING  # a model that answered everything has no error to speak of
    known &= ~np.isnan(error)
    ratios = np.divide(error, expected, out=np.zeros(known.shape), where=known)
    count = known.sum(axis=0)
    mean_square = np.divide((ratios**2).sum(axis=0), count, out=np.ones(count.shape), where=count > 0)
    result: FloatArray = np.sqrt(mean_square)
    return result
