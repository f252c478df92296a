"""AIPW, for items drawn at random: "How Benchmark Prediction from Fewer Data Misses the Mark" (arXiv 2506.07673).

The paper finds that it alone beats the mean of random items for models beyond the past ones.
"""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.point_methods import Known, target_weights
from itembank.methods import Method
from itembank.numerics.arrays import FloatArray, IntArray

RIDGE_PENALTY = 10.0
"""Of the authors' implementation (github.com/socialfoundations/benchmark-prediction)."""


@dataclass(frozen=True, slots=True)
class AIPWSpec(PointSpec):
    """Ridge regression of a model's responses on those of past models, corrected by the sample's residuals."""

    penalty: float = RIDGE_PENALTY


def by_aipw(known: Known, spec: AIPWSpec) -> FloatArray:
    """Sum up predictions of all items, and add what the asked ones differ from theirs."""
    targets, observations = known.bank.targets, known.observations
    past = filled(known.bank.responses.responses)
    scenario = targets.scenario_index[observations.positions]
    omega = target_weights(known.bank)[:, : targets.n_scenarios]
    scores = np.empty((observations.responses.shape[0], targets.n_scenarios))
    for row, answers in enumerate(observations.responses):
        is_known = ~np.isnan(answers)
        positions, observed = observations.positions[is_known], answers[is_known]
        predicted = ridge_predictions(past, positions, observed, spec.penalty)
        weights = observations.weights[is_known]
        residual = np.bincount(scenario[is_known], weights * (observed - predicted[positions]), targets.n_scenarios)
        mass = np.bincount(scenario[is_known], weights, targets.n_scenarios)
        scores[row] = predicted @ omega + np.divide(residual, mass, out=np.zeros(mass.size), where=mass > 0.0)
    return np.clip(targets.with_overall(scores), 0.0, 1.0)


def ridge_predictions(past: FloatArray, positions: IntArray, observed: FloatArray, penalty: float) -> FloatArray:
    """Predict a model's responses to all items from its own to some, (n_items,).

    Items are the observations: ``g(i) = mean(y_S) + (x_i - mean(x_S))' b`` with ``b`` of least ``|y - g|^2 + penalty
    |b|^2``, where x_i holds the past models' responses to item i and the intercept is free.

    Parameters
    ----------
    past : (n_models, n_items)
    positions, observed : (n_observed,)
        Items that were asked, and the responses to them.
    penalty : float
    """
    if not observed.size:
        return past.mean(axis=0)
    features = past[:, positions] - past[:, positions].mean(axis=1, keepdims=True)
    gram = features.T @ features + penalty * np.eye(observed.size)
    coefficients = features @ np.linalg.solve(gram, observed - observed.mean())
    result: FloatArray = observed.mean() + (past.T - past[:, positions].mean(axis=1)) @ coefficients
    return result


def filled(past: FloatArray) -> FloatArray:
    """Put the mean of an item where a past model has no response to it."""
    if not np.isnan(past).any():
        return past
    return np.where(np.isnan(past), np.nanmean(past, axis=0), past)


AIPW = Method(AIPWSpec, by_aipw)
