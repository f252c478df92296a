"""Errors of the item model's scenario scores for unseen models, and spread of responses (tinyBenchmarks 4.2)."""

import numpy as np

from itembank.bank.banks import Calibration
from itembank.bank.known_scores import KnownScores
from itembank.calibration.calibration_specs import CalibrationSpec, loosened
from itembank.calibration.families import with_family, without_repeated_warnings
from itembank.calibration.fit_item_model import MINIMUM_MODELS, fit_item_model
from itembank.errors import DataError
from itembank.irt.bernoulli import probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.splits import Split, first_of_each
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import content_order
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import one_of_each, order_by_answers, sibling_groups
from itembank.responses.targets import ScoreTargets

MINIMUM_FOR_BIAS = 8
"""Fewest models: half of fewer are too few to calibrate on."""


@one_blas_thread()
def item_model_bias(
    responses: ResponseMatrix,
    spec: CalibrationSpec,
    targets: ScoreTargets,
    *,
    rng: np.random.Generator,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Mean absolute error of the predicted score of unseen items, by scenario: gp-IRT's b (tinyBenchmarks 4.2, i-vii).

    Split the models with a known score (`KnownScores`) in two, since of others the mean response to hidden items is
    hardly known; these take part in the fit. Models that answer alike (`sibling_groups`) stay together. Fit the item
    model on one half; find the ability of the other half's models from half of the items of every scenario; predict
    their other items; compare the mean prediction with the mean response of each model, both with the target weights
    and over the same cells; average the absolute differences over models.

    Parameters
    ----------
    responses : ResponseMatrix
    spec : CalibrationSpec
        How the item model is fitted; a variational fit stops at a tolerance of 1e-4, unless the spec's is larger.
    targets : ScoreTargets
    rng : Generator
        Splits models and items.
    progress : ProgressCallback

    Returns
    -------
    (n_scenarios,)
        NaN with fewer than eight such models, where half of them have nothing to calibrate on, and in scenarios
        without an item left to predict.
    """
    unmeasured = np.full(targets.n_scenarios, np.nan)
    known, group = KnownScores.of(responses, targets).models, sibling_groups(responses)
    by_content = content_order(responses)
    distinct = one_of_each(group, known[order_by_answers(responses, known, by_content)])
    if distinct.size < MINIMUM_FOR_BIAS:
        return unmeasured
    order = distinct[rng.permutation(distinct.size)]
    halves = Split.of(np.isin(group, group[order[distinct.size // 2 :]]))
    # a random half of the items of each scenario, the smaller one where their number is odd
    items = by_content.items[rng.permutation(responses.n_items)]
    is_shown = np.zeros(items.shape[0], dtype=bool)
    is_shown[first_of_each(items, targets.scenario_index, np.bincount(targets.scenario_index) // 2)] = True
    train = responses.take(models=halves.train)
    seen = train.observed
    usable, answered = np.flatnonzero(seen.any(axis=0)), np.flatnonzero(seen.any(axis=1))
    if answered.shape[0] < MINIMUM_MODELS:
        return unmeasured
    # Tolerance of a variational fit, a hundred times the default. On three leaderboards it changed b by 5 % at most,
    # about what that many errors leave open, and estimates by 0.05 points at most.
    tolerance = 1e-4
    try:
        chosen = with_family(loosened(spec, tolerance), responses)
        with without_repeated_warnings():
            fitted = fit_item_model(train.take(models=answered, items=usable), chosen, progress=progress)
    except DataError:  # half of the models may leave no item that separates them
        return unmeasured
    errors = []
    for new in responses.take(models=halves.test, items=usable).parts():
        predicted = predict_hidden(fitted, new.responses, is_shown[usable], targets, usable, n_trials=new.n_trials)
        errors.append(score_errors(new.responses, predicted, ~is_shown[usable], targets, usable))
    return mean_absolute_error(np.concatenate(errors))


def response_variance(responses: ResponseMatrix, targets: ScoreTargets) -> FloatArray:
    """Mean over models of the variance of responses within each scenario, (n_scenarios,): tinyBenchmarks 4.2, sigma^2.

    With target weights ``omega`` rescaled over a model's observed items,
    ``sum omega_i (Y_i - Ybar)^2 / (1 - sum omega_i^2)``: the sample variance when all weights are equal.

    0 where no model has two responses.
    """
    of_models = np.concatenate([variance_of_models(part.responses, targets) for part in responses.parts()])
    variance = np.zeros(targets.n_scenarios)
    for scenario, values in enumerate(of_models.T):
        known = values[~np.isnan(values)]
        if known.size:
            variance[scenario] = np.mean(known)
    return variance


def variance_of_models(
    responses: FloatArray,  # (n_models, n_items): Raw; NaN where missing
    targets: ScoreTargets,
) -> FloatArray:
    """Variance of each model's responses within each scenario, (n_models, n_scenarios); NaN with fewer than two."""
    variance = np.full((responses.shape[0], targets.n_scenarios), np.nan)
    for scenario in range(targets.n_scenarios):
        items = np.flatnonzero(targets.scenario_index == scenario)
        values = responses[:, items]
        seen = ~np.isnan(values)
        weights = seen * targets.weights[items]
        weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        filled = np.where(seen, values, 0.0)
        mean = np.sum(weights * filled, axis=1, keepdims=True)
        spread = np.sum(weights * (filled - mean) ** 2, axis=1)
        # The weighted spread of equal variances sigma^2 has the expectation sigma^2 (1 - sum omega^2).
        freedom = 1.0 - np.sum(weights**2, axis=1)
        is_known = (freedom > 1e-9) & seen.any(axis=1)  # one response has no spread: 0 / 0
        variance[is_known, scenario] = spread[is_known] / freedom[is_known]
    return variance


def mean_absolute_error(errors: FloatArray) -> FloatArray:
    """Mean of ``|error|`` over models, (n_scenarios,), of errors (n_models, n_scenarios) by `score_errors`."""
    has_any = ~np.isnan(errors).all(axis=0)
    bias = np.full(errors.shape[1], np.nan)
    bias[has_any] = np.nanmean(np.abs(errors)[:, has_any], axis=0)
    return bias


def score_errors(
    responses: FloatArray,  # (n_models, n_columns): Raw; NaN where missing
    predicted: FloatArray,  # (n_models, n_columns): Probabilities
    is_hidden: BoolArray,  # (n_columns,)
    targets: ScoreTargets,
    items: IntArray,  # (n_columns,): Which item of the targets each column is
) -> FloatArray:
    """Weighted mean prediction minus weighted mean response of each model's hidden cells, (n_models, n_scenarios).

    NaN where a model has no hidden response of a scenario.
    """
    weights, scenario_index = targets.weights[items], targets.scenario_index[items]
    weight = (~np.isnan(responses)) * is_hidden * weights  # (n_models, n_columns)
    difference = np.where(np.isnan(responses), 0.0, predicted - responses) * weight
    inside = (scenario_index[:, None] == np.arange(targets.n_scenarios)).astype(np.float64)
    mass = weight @ inside
    with np.errstate(invalid="ignore", divide="ignore"):
        errors: FloatArray = np.where(mass > 0.0, (difference @ inside) / mass, np.nan)
    return errors


def predict_hidden(
    fitted: Calibration,  # Of the items of the columns
    responses: FloatArray,  # (n_models, n_columns): Raw; NaN where missing
    is_shown: BoolArray,  # (n_columns,)
    targets: ScoreTargets,  # Of all items: they say which threshold makes an item's responses binary
    items: IntArray,  # (n_columns,): Which item of the targets each column is
    *,
    n_trials: IntArray | None = None,  # (n_models, n_columns): Behind each response, for families of counts
) -> FloatArray:
    """Probability of every cell, given ability from the shown items, (n_models, n_columns)."""
    by_scenario = item_thresholds(fitted.thresholds, targets.scenarios)
    binary = apply_thresholds(responses, by_scenario[targets.scenario_index[items]])
    shown_items = np.flatnonzero(is_shown)
    trials = None if n_trials is None else n_trials[:, shown_items].astype(np.float64)
    parameters = fitted.parameters.take(shown_items)
    abilities = map_abilities(parameters, binary[:, shown_items], fitted.prior, n_trials=trials)
    return probability(fitted.parameters, abilities.theta)
