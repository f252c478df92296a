"""Intervals of estimates from cross-validated errors of past models (`PastEstimates`), or from the item model alone."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from itembank.bank.known_scores import Headline
from itembank.estimation.estimands import widened
from itembank.estimation.estimates import Scores, Typicality, typicality_among
from itembank.estimation.predictions import standard_error
from itembank.estimation.response_summary import ResponseSummary, posterior_moments
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import (
    FEWEST_FOR_QUANTILE,
    ROUNDING,
    calibrated_half_widths,
    cut_to_possible,
    interval_scores,
    normal_reach,
)
from itembank.responses.targets import ScoreTargets

LEAST_ERRORS = 2
"""Errors of which a width follows (`calibrated_half_widths`)."""


Reader: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[FloatArray, FloatArray]]
"""Reads a score that is no mean of items off scenario scores (`itembank.estimation.headlines.with_headline`)."""


@dataclass(frozen=True, slots=True)
class PastEstimates:
    """Estimates of past models by a method that had not seen them: all that calibrated intervals rest on."""

    # (n_models, n_targets): Full scores of the past models; NaN where unknown. Targets are `ScoreTargets.names`.
    truth: FloatArray
    # (n_models, n_targets): Estimates from fits, and for 'stacked' weights, that the model took no part in; NaN where
    # there is none.
    value: FloatArray
    standard_error: FloatArray  # (n_models, n_targets): By the item model alone, not calibrated
    # (n_models, n_targets): Expected size of each error up to a factor, which the widths of intervals follow.
    scale: FloatArray
    # (n_models, n_targets): Sampling variance of the truths (`KnownScores`); None where these are exact.
    truth_variance: FloatArray | None = None
    # (n_models,): How far answers lay from what was expected of them; empty where that was not asked.
    misfit: FloatArray = field(default_factory=lambda: np.empty(0))
    weights: FloatArray | None = None  # (n_members, n_targets): Of the members of 'stacked', from all past models
    reader: Reader | None = None  # How a headline score is read off new models' scenario scores
    follows_item_model: bool = False  # Whether the scale is what the item model alone expects

    @property
    def error(self) -> FloatArray:
        """Estimate less truth, as large as against a full score, (n_models, n_targets)."""
        error: FloatArray = self.value - self.truth
        if self.truth_variance is None:
            return error
        return with_sampling_error(error, self.truth_variance, self.scale)

    @property
    def is_measured(self) -> BoolArray:
        """Targets of which two errors or more are known, so that half-widths follow from them, (n_targets,)."""
        result: BoolArray = np.sum(~np.isnan(self.error), axis=0) >= LEAST_ERRORS
        return result

    def half_widths(self, new_scale: FloatArray, *, level: float) -> FloatArray:
        """Half-widths of new estimates, (n_new, n_targets), from the errors that estimates of past models had."""
        return calibrated_half_widths(self.error, self.scale, new_scale, level=level)

    def half_widths_out_of_fold(self, fold: IntArray, *, level: float) -> FloatArray:
        """Half-widths of each fold's models by the errors of the other folds' models, (n_models, n_targets).

        `fold` holds the number of each model's fold, -1 for none.
        """
        result = np.full(self.error.shape, np.nan)
        for number in np.unique(fold):
            inside = fold == number
            result[inside] = self.take(~inside).half_widths(self.scale[inside], level=level)
        return result

    def typical_half_width(self, *, level: float) -> float:
        """Half-width of the interval that a typical model gets, for the last target; NaN where nothing is known."""
        known = self.scale[~np.isnan(self.error[:, -1])]
        return float(np.median(self.half_widths(known, level=level)[:, -1])) if known.size else np.nan

    def by_item_model(self) -> "PastEstimates":
        """Return the same with the item model's own standard errors as the scale."""
        return replace(self, scale=self.standard_error, follows_item_model=True)

    def on(self, target: int) -> "PastEstimates":
        """Return the estimates of one target."""
        return self._each(lambda one: one[:, [target]])

    def take(self, models: BoolArray | IntArray) -> "PastEstimates":
        """Return the estimates of some models."""
        return self._each(lambda one: one[models])

    def _each(self, change: Callable[[FloatArray], FloatArray]) -> "PastEstimates":
        parts = (self.truth, self.value, self.standard_error, self.scale, self.truth_variance)
        return PastEstimates(*(None if one is None else change(one) for one in parts))  # type: ignore[arg-type]

    @property
    def interval_scores(self) -> FloatArray:
        """Winkler's scores of the overall score's 95 % intervals, if they rested on these errors, (n_models,)."""
        return interval_scores(self.error[:, -1], self.scale[:, -1])

    def read(
        self,
        value: FloatArray,  # (n_models, n_targets)
        # Expected sizes of their errors, by the item model and up to a factor, each (n_models, n_targets).
        sizes: tuple[FloatArray, FloatArray],
        learnt: FloatArray | None = None,  # (n_models,): A headline score by the method that learns it from the answers
    ) -> tuple[FloatArray, FloatArray]:
        """Return new estimates and the sizes of their errors up to a factor, a headline score read off the others."""
        scale = sizes[0] if self.follows_item_model else sizes[1]
        return (value, scale) if self.reader is None else self.reader(value, scale, learnt)

    @property
    def is_stacked(self) -> bool:
        """Whether more methods than the first have a weight."""
        return self.weights is not None and bool(self.weights[1:].any())

    def typicality_of(self, misfit: FloatArray) -> Typicality:
        """How typical answers of this misfit are, (n_models,)."""
        return Typicality(misfit, typicality_among(self.misfit, misfit), np.full(misfit.shape, np.nan))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the last score's intervals (`calibrated_half_widths`); infinite with enough errors."""
        n_errors = int(np.sum(~np.isnan(self.error[:, -1])))
        return n_errors - 1.0 if n_errors < FEWEST_FOR_QUANTILE else np.inf


def with_sampling_error(
    error: FloatArray,  # (n_models, n_targets): NaN where unknown
    variance: FloatArray,  # (n_models, n_targets)
    scale: FloatArray,  # (n_models, n_targets)
) -> FloatArray:
    """Enlarge errors against truths that are known up to a sampling variance to those against full scores.

    An estimate rests on some of the very answers that make the known score, so it errs against these less than against
    the full score: what it lacks is independent of how they differ, ``E[(T - Z)^2] = E[(T - Z_obs)^2] + v``, exactly so
    for means of random items. With ``E[(T - Z_obs)^2] = k^2 s^2``, k from all models, each error is multiplied by
    ``sqrt(1 + v / (k^2 s^2))``. Where all of v is zero the errors stay as they are.
    """
    is_known = ~(np.isnan(error) | np.isnan(variance) | np.isnan(scale))
    squares, expected = (np.where(is_known, part, 0.0).sum(axis=0) for part in (error**2, scale**2))
    # sums, not means of ratios: a model that answered everything has no scale
    own = scale**2 * np.divide(squares, expected, out=np.zeros(squares.shape), where=expected > 0.0)
    more = np.divide(variance, own, out=np.zeros(own.shape), where=is_known & (own > 0.0))
    result: FloatArray = error * np.sqrt(1.0 + more)
    return result


def with_intervals(
    targets: ScoreTargets,
    summary: ResponseSummary,
    value: FloatArray,  # (n_models, n_targets)
    *,
    level: float,
    past: PastEstimates | None = None,  # A score of which no error is known gets the interval of the item model
    # (n_models, n_targets): Expected size of each error up to a factor, as `past` has it for the past models
    scale: FloatArray | None = None,
    headline: Headline | None = None,  # The score that the last column is of, where it is not the overall one
) -> Scores:
    """Give estimates intervals as wide as past errors ask for (`calibrated_half_widths`), or the item model's.

    Those of the item model are ``value +- z`` standard errors. No interval is narrower than the chance in the answers
    that were not seen, however small past errors were, and all lie between what the score would be with all unseen
    items failed and all solved.
    """
    reach = normal_reach(level)
    known, unseen = targets.with_overall(summary.known), targets.with_overall(summary.open_weight)
    noise = np.column_stack([summary.noise, summary.noise @ targets.scenario_weights**2])
    if headline is not None:  # it may be anything, unless all answers give it, and nothing is known of its noise
        is_exact = summary.is_complete.all(axis=1) & headline.follows_answers
        known[:, -1] = np.where(is_exact, headline.win_rates(summary.known), 0.0)
        unseen[:, -1] = np.where(is_exact, 0.0, 1.0)
        noise[:, -1] = 0.0
    error = standard_error(value, *posterior_moments(targets, summary))
    half = reach * error
    if past is not None and scale is not None:
        scale = np.where(unseen > 0.0, scale, 0.0)
        measured = past.half_widths(scale, level=level)
        is_unknown = np.isnan(measured)
        half = np.where(is_unknown, half, measured)
        error = np.where(is_unknown, error, scale * error_inflation(past.error, past.scale))
    least = reach * np.sqrt(noise)
    inside, _ = cut_to_possible(value, value, known, unseen)
    low, high = np.fmin(value - half, inside - least), np.fmax(value + half, inside + least)
    scores = Scores(inside, error, *cut_to_possible(low, high, known, unseen))
    if headline is None:
        return scores
    of_rivals = np.zeros(value.shape)
    of_rivals[:, -1] = headline.variance_by_rivals(inside[:, :-1])
    return widened(scores, of_rivals, level=level)


def error_inflation(error: FloatArray, expected: FloatArray) -> FloatArray:
    """Root mean square of errors over their expected size, (n_targets,); 1 where none are known."""
    known = expected > ROUNDING  # a model that answered everything has no error to speak of
    known &= ~np.isnan(error)
    ratios = np.divide(error, expected, out=np.zeros(known.shape), where=known)
    count = known.sum(axis=0)
    mean_square = np.divide((ratios**2).sum(axis=0), count, out=np.ones(count.shape), where=count > 0)
    result: FloatArray = np.sqrt(mean_square)
    return result
