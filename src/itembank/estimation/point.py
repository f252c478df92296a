"""Estimates of the full scores by one method: from new models' responses and the bank, without intervals."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import METHODS, PointSpec
from itembank.estimation.forecast import Forecast
from itembank.estimation.observations import Observations
from itembank.estimation.response_summary import ResponseSummary, posterior_moments, summarise_responses
from itembank.estimation.stacking import combined, reconciled
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class Known:
    """Data that every method of estimation may use."""

    bank: Bank
    observations: Observations  # Responses of the new models to some items of the bank
    summary: ResponseSummary  # What the item model and the sample say of these models
    forecast: Forecast | None = None  # Scores by what is known of the models besides their answers
    # (n_models, n_targets): Scores of the calibration models that regressions are to learn instead of the bank's own.
    past_scores: FloatArray | None = None

    @classmethod
    def of(cls, bank: Bank, observations: Observations, forecast: Forecast | None = None) -> Self:
        """Summarise the responses."""
        return cls(bank, observations, summarise_responses(bank, observations), forecast)

    def take(self, *, models: IntArray, columns: IntArray) -> "Known":
        """Return the data of some models on some of the items; their summary stays that of all items."""
        forecast = None if self.forecast is None else self.forecast.take(models)
        observations = self.observations.take(models=models, columns=columns)
        return Known(self.bank, observations, self.summary.take(models), forecast, self.past_scores)

    def for_regression(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Calibration models' responses to the observed items, their scores, and the new models' responses."""
        self.bank.check_responses("This method of estimation needs")
        scores = self.bank.best_known_scores if self.past_scores is None else self.past_scores
        return self.bank.responses.of_items(self.observations.positions), scores, self.observations.responses


def point_scores(known: Known, spec: PointSpec) -> FloatArray:
    """Estimate every scenario's score and the overall one, (n_models, n_scenarios + 1).

    A scenario that was answered in full has its exact score by every method. NaN where the method has nothing to
    go by, and for models without any response.

    Raises
    ------
    ParameterError
        When a method, of another package perhaps, returns scores of another shape.
    """
    scores = METHODS.kernel(spec)(known, spec)
    shape = (known.observations.responses.shape[0], len(known.bank.targets.names))
    if scores.shape != shape:
        raise ParameterError(
            f"the kernel of method {METHODS.name_of(spec)!r} must return scores of shape {shape} (models; scenarios "
            f"and overall), got {scores.shape}."
        )
    return with_certain(known.bank.targets, known.summary, scores)


def learnt_score(known: Known, spec: PointSpec, past: FloatArray) -> FloatArray:
    """Estimate a score that is known of past models alone, (n_models,), by a method that `learns_scores`.

    Parameters
    ----------
    known : Known
    spec : PointSpec
    past : (n_calibration_models,)
        NaN where not known.
    """
    scores = np.column_stack([known.bank.best_known_scores[:, :-1], past])
    result: FloatArray = METHODS.kernel(spec)(replace(known, past_scores=scores), spec)[:, -1]
    return result


def stacked_scores(
    targets: ScoreTargets, summary: ResponseSummary, values: FloatArray, weights: FloatArray
) -> FloatArray:
    """Weigh the estimates of several methods and let scenarios add up to the overall score, (n_models, n_targets).

    Parameters
    ----------
    targets, summary
    values : (n_members, n_models, n_targets)
    weights : (n_members, n_targets)
    """
    _, variances = posterior_moments(targets, summary)
    return with_exact(targets, summary, reconciled(combined(values, weights), variances, targets.scenario_weights))


def with_certain(targets: ScoreTargets, summary: ResponseSummary, scores: FloatArray) -> FloatArray:
    """Put exact scores where everything was observed, and NaN where nothing was."""
    result = with_exact(targets, summary, scores)
    result[summary.is_silent] = np.nan
    return result


def with_exact(targets: ScoreTargets, summary: ResponseSummary, scores: FloatArray) -> FloatArray:
    """Put exact scores where everything was observed, (n_models, n_scenarios + 1)."""
    is_complete = summary.is_complete
    whole = np.column_stack([is_complete, is_complete.all(axis=1)])
    return np.where(whole, targets.with_overall(summary.known), scores)


def weighted_means(responses: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean response of each model over the items it answered, (n_models,); NaN without one that weighs.

    Parameters
    ----------
    responses : (n_models, n_items)
        NaN where missing.
    weights : (n_items,)
    """
    mass: FloatArray = ~np.isnan(responses) @ weights
    total = np.nan_to_num(responses) @ weights
    result: FloatArray = np.divide(total, mass, out=np.full(mass.shape, np.nan), where=mass > 0.0)
    return result


def calibration_scores(bank: Bank) -> FloatArray:
    """Full scores of the calibration models, (n_models, n_scenarios + 1); NaN where they are not known."""
    return bank.known_scores.value


def target_weights(bank: Bank) -> FloatArray:
    """Weight of every item in each target, (n_items, n_scenarios + 1)."""
    return bank.cache.remember(
        "target weights", lambda: np.column_stack([bank.targets.target(name).weights for name in bank.targets.names])
    )
