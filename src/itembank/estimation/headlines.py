"""Headline scores from scenario scores: a win rate by its formula, an external score by regression on past models.

Both rest on estimates of past models by methods that had not seen them, and so are learnt after these were made: what
a method does to scenario scores (it draws them to the mean, errs more in one than in another) is in what is learnt, and
the errors of the headline score follow in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy

from itembank.bank.known_scores import Headline
from itembank.estimation.calibrated_scores import PastEstimates, Reader, error_inflation
from itembank.estimation.estimator_specs import PointSpec, Ridge
from itembank.estimation.regressions import combined, ridge_line, stack_weights
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.responses.targets import mean_win_rate

EXACT = 1e-9
"""A smaller error of a scenario score is none: sums of the same responses differ by less."""


def expected_win_rates(
    scenario_scores: FloatArray,  # (n_models, n_scenarios): x and s
    sizes: FloatArray,  # (n_models, n_scenarios)
    own: IntArray,  # (n_models,): Row of each model among the references, against which it is not ranked; -1 for none
    *,
    reference_scores: FloatArray,  # (n_reference, n_scenarios): Rows of NaN are no references
    inflation: FloatArray | float = 1.0,  # (n_scenarios,): Of the sizes, as past errors ask for
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the mean win rate of models whose scenario scores are known up to an error, (n_models,).

    With scores ``X_j ~ N(x_j, s_j^2)``, independent between scenarios, and references ``r_1 <= ... <= r_n``, the rate
    of scenario j is ``F_j = (1/n) sum_k [X_j > r_k]``, so that with ``P_k = Phi((x_j - r_k) / s_j)``

    ``E[F_j] = (1/n) sum_k P_k`` and ``E[F_j^2] = (1/n^2) sum_k (2k - 1) P_k``,

    for the indicators are nested: the square of a sum of k of them is the sum of the first k odd numbers.
    """
    n_models, n_scenarios = scenario_scores.shape
    sizes = sizes * inflation
    moments = np.zeros((2, n_models))
    is_reference = np.asarray(~np.isnan(reference_scores).any(axis=1))
    for j in range(n_scenarios):
        order = np.argsort(reference_scores[:, j], kind="stable")
        order = order[is_reference[order]]
        for rows in row_blocks(n_models, order.size, times=4):
            counts = order != own[rows, None]
            distance = scenario_scores[rows, j, None] - reference_scores[order, j]
            below = counts * scipy.special.ndtr(distance / np.maximum(sizes[rows, j, None], EXACT))
            n = counts.sum(axis=1)
            mean = below.sum(axis=1) / n
            square = ((2.0 * np.cumsum(counts, axis=1) - 1.0) * below).sum(axis=1) / n**2
            moments[:, rows] += mean / n_scenarios, np.maximum(square - mean**2, 0.0) / n_scenarios**2
    return moments[0], moments[1]


Rule: TypeAlias = Callable[[FloatArray, FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""Value and variance of a headline score, each (n_models,), from scenario scores and the sizes of their errors, each
(n_models, n_scenarios), and from the models' rows among the references, -1 for none."""

PRIOR_MODELS = 20.0
"""As of `Stacked`."""


def learnt_by(headline: Headline | None, specs: Sequence[PointSpec]) -> PointSpec | None:
    """Return the method that learns a headline score from the answers themselves; None where none does.

    A win rate follows from scenario scores. An external score may follow the answers beyond these: a method that
    learns scores learns it alone, and several together ('stacked') are weighed with ridge regression.
    """
    if headline is None or headline.follows_answers:
        return None
    if len(specs) > 1:
        return Ridge()
    return specs[0] if specs[0].learns_scores else None


@dataclass(frozen=True, slots=True)
class HeadlineTrial:
    """What estimates of past models' headline score are made of, besides their scenario scores."""

    headline: Headline
    # (n_models,): Estimates by the method that learns the score from the answers, out of fold (`learnt_by`).
    learnt: FloatArray | None = None
    # Whether these are the estimates; else they are weighed with those from scenario scores.
    is_learnt_alone: bool = False

    def read(
        self,
        plain: PastEstimates,  # Of the scenario scores; its last column does not matter
        fold: IntArray,  # (n_models,): Number of each model's fold, -1 for none
    ) -> PastEstimates:
        """Put the headline score into the last column of estimates of past models.

        Each fold's headline score is read as the other folds teach it, that of new models as all of them do.
        """
        past, is_tried = self.headline.past, fold >= 0
        value, variance = np.full((2, past.size), np.nan)
        for number in np.unique(fold[is_tried]):
            inside = fold == number
            rule = _rule(self.headline, past, plain, is_tried & ~inside)
            own = np.flatnonzero(inside)
            value[inside], variance[inside] = rule(plain.value[inside, :-1], plain.scale[inside, :-1], own)
        members = np.stack([value] if self.learnt is None else [value, self.learnt])
        weights = self._weights(members - past, is_tried)
        combined_value = np.full(past.size, np.nan)
        for number in np.unique(fold[is_tried]):
            inside = fold == number
            combined_value[inside] = _combined(members[:, inside], self._weights(members - past, is_tried & ~inside))
        rest = _rest(combined_value - past, variance)
        reader = partial(with_headline, rule=_rule(self.headline, past, plain, is_tried), weights=weights, rest=rest)
        return replace(_with_last(plain, past, combined_value, np.sqrt(variance + rest)), reader=reader)

    def _weights(self, errors: FloatArray, rows: BoolArray) -> FloatArray:
        """Weights of the estimate from scenario scores and of the learnt one, from errors (n_members, n_models)."""
        if self.is_learnt_alone:
            return np.array([0.0, 1.0])
        return stack_weights(errors[:, rows].T, prior_models=PRIOR_MODELS)


def with_headline(
    value: FloatArray,  # (n_models, n_targets): Estimates, and the expected sizes of their errors up to a factor
    scale: FloatArray,  # (n_models, n_targets)
    learnt: FloatArray | None,  # (n_models,)
    *,
    rule: Rule,
    weights: FloatArray,  # (1,) or (2,): Of the rule and of the learnt estimate, where past models had one
    rest: float,  # Variance of past models' errors beyond what the errors of their scenario scores explain
) -> tuple[FloatArray, FloatArray]:
    """Put the headline score and the expected size of its error into the last columns, (n_models, n_targets)."""
    own = np.full(value.shape[0], -1, dtype=np.int64)  # new ones have no rows among the past models
    read, variance = rule(value[:, :-1], scale[:, :-1], own)
    members = np.stack([read] if learnt is None or weights.size == 1 else [read, learnt])
    size = np.sqrt(variance + rest)
    return np.column_stack([value[:, :-1], _combined(members, weights)]), np.column_stack([scale[:, :-1], size])


def by_line(
    scores: FloatArray,
    scale: FloatArray,
    own: IntArray,  # noqa: ARG001 (the signature of a rule)
    *,
    intercept: float,
    slopes: FloatArray,  # (n_scenarios,)
    inflation: FloatArray,  # (n_scenarios,): Of the expected sizes of errors, as past errors ask for
) -> tuple[FloatArray, FloatArray]:
    """Rule of a score that is a line in scenario scores; their errors count as independent."""
    return np.clip(intercept + scores @ slopes, 0.0, 1.0), (scale * inflation) ** 2 @ slopes**2


def headline_slopes(
    headline: Headline,
    scenario_scores: FloatArray,  # (n_models, n_scenarios): Of the past models; rows with NaN do not count
) -> FloatArray:
    """How much the headline score rises with each scenario's score among past models, (n_scenarios,).

    Of a win rate, the line of least squares of each scenario's share of models beaten in its score, over the number of
    scenarios: ``1 / (2 sqrt(pi) sd)`` where scores are normal, so that scenarios in which models are close together
    count more. Of an external score, ridge regression on all scenarios' scores.
    """
    is_known = ~np.isnan(scenario_scores).any(axis=1) & ~np.isnan(headline.past)
    scores = scenario_scores[is_known]
    if not headline.follows_answers:
        return ridge_line(scores, headline.past[is_known])[1]
    centred = scores - scores.mean(axis=0)
    beaten = np.column_stack([mean_win_rate(one[:, None], one[:, None]) for one in scores.T])
    squares = (centred**2).sum(axis=0)
    rise = np.divide((centred * beaten).sum(axis=0), squares, out=np.zeros_like(squares), where=squares > 0.0)
    result: FloatArray = rise / scores.shape[1]
    return result


def reader_of(headline: Headline, estimates: PastEstimates) -> Reader:
    """Return how a headline score is read, from estimates of all past models that have it in their last column."""
    known = np.asarray(~np.isnan(estimates.value).any(axis=1))
    rule = _rule(headline, headline.past, estimates, known)
    _, variance = rule(estimates.value[known, :-1], estimates.scale[known, :-1], np.flatnonzero(known))
    return partial(with_headline, rule=rule, weights=np.ones(1), rest=_rest(estimates.error[known, -1], variance))


def _rule(headline: Headline, past: FloatArray, plain: PastEstimates, rows: BoolArray) -> Rule:
    """Learn how the headline score follows from scenario scores, from the past models in `rows`, (n_models,)."""
    inflation = error_inflation(plain.error[rows, :-1], plain.scale[rows, :-1])
    if headline.reference is not None:
        return partial(expected_win_rates, reference_scores=headline.reference, inflation=inflation)
    scores = plain.value[:, :-1]
    known = rows & ~np.isnan(past) & ~np.isnan(scores).any(axis=1)
    if known.sum() < 2:
        return partial(by_line, intercept=np.nan, slopes=np.zeros(scores.shape[1]), inflation=inflation)
    intercept, slopes = ridge_line(scores[known], past[known])
    return partial(by_line, intercept=intercept, slopes=slopes, inflation=inflation)


def _with_last(plain: PastEstimates, truth: FloatArray, value: FloatArray, scale: FloatArray) -> PastEstimates:
    """Put a score, which past models have without error, its estimates and their sizes into the last columns."""

    def joined(array: FloatArray, last: FloatArray) -> FloatArray:
        return np.column_stack([array[:, :-1], last])

    variance, exact = plain.truth_variance, np.where(np.isnan(truth), np.nan, 0.0)
    return replace(
        plain,
        truth=joined(plain.truth, truth),
        value=joined(plain.value, value),
        standard_error=joined(plain.standard_error, scale),
        scale=joined(plain.scale, scale),
        truth_variance=None if variance is None else joined(variance, exact),
    )


def _combined(members: FloatArray, weights: FloatArray) -> FloatArray:
    """Weigh estimates (n_members, n_models)."""
    return combined(members[:, :, None], weights[:, None])[:, 0]


def _rest(error: FloatArray, variance: FloatArray) -> float:
    """Mean squared error beyond the variances; at least a quarter, for these know their own size badly."""
    known = ~(np.isnan(error) | np.isnan(variance))
    if not known.any():
        return 0.0
    square = float(np.mean(error[known] ** 2))
    return max(square - float(variance[known].mean()), 0.25 * square)
