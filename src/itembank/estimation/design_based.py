"""Scores and intervals that rest on how the items were drawn, not on the item model."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from itembank.checks import check_fraction
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.data.selections import Selection
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.estimation.difference_estimator import (
    Drawn,
    difference_values,
    difference_variances,
    drawn,
    guarded_variances,
    score_intervals,
    tuned_slopes,
)
from itembank.estimation.noise import noise_ratio
from itembank.estimation.observations import bank_positions, counted_trials
from itembank.estimation.predictions import predicted_sums
from itembank.estimation.scores import Scores
from itembank.irt.bernoulli import probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.threads import one_blas_thread
from itembank.scoring.newton import map_abilities
from itembank.selection.recipes import n_items_asked

N_FOLDS = 10
"""Parts of the sample, each of which is predicted from the others."""

CELLS_AT_ONCE = 2**22
"""Models are worked on in blocks of about this many (model, item) cells, to bound memory."""

HOW = "Choose the items with --method random, stratified or uncertainty, and exclude none"


@one_blas_thread()
def design_based_estimates(
    bank: Bank, responses: ResponseMatrix, selection: Selection, *, level: float = 0.95
) -> Scores:
    """Estimate full-benchmark scores with intervals that hold whether or not the item model does.

    The item model predicts every response; the drawn items, whose inclusion probabilities are known, say how far
    it is off on the rest. Only the width of the intervals depends on how good the predictions are.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, in any order. Responses missing among the chosen items count as missing at random within
        their scenario, with a `DataWarning`: for them the guarantee rests on that.
    selection : Selection
        Drawn from this bank by chance, with its inclusion probabilities.
    level : float
        Of the intervals.

    Returns
    -------
    Scores
        On the scenarios, then overall, cut to what the observed responses leave possible. The overall score adds up
        scenario estimates before they are cut, and their variances, since scenarios are sampled independently; its
        degrees of freedom are Satterthwaite's.

    Raises
    ------
    DataError
        When the selection has no inclusion probabilities, was cut since it was drawn, or is of another bank, an item
        is not in the bank, a scenario has no chosen item, or a model answered fewer than two chosen items of a scenario
        of more.
    ParameterError
        When the level is outside (0, 1).

    Examples
    --------
    >>> selection = select(bank, 100, method="uncertainty", rng=0)  # doctest: +SKIP
    >>> value, standard_error, low, high = design_based_estimates(bank, responses, selection)  # doctest: +SKIP
    """
    check_fraction("level", level)
    sample = _sample(bank, responses, selection)
    n_block = max(1, CELLS_AT_ONCE // bank.n_items)
    starts = range(0, responses.n_models, n_block)
    blocks = [_block(sample, slice(start, start + n_block), level) for start in starts]
    return Scores.joined(blocks)


@dataclass(frozen=True, slots=True)
class _Sample:
    """What every block of models needs: the benchmark and the drawn items (`positions`, one a column)."""

    parameters: ItemParameters
    prior: AbilityPrior
    weights: FloatArray
    scenario_index: IntArray
    scenario_weights: FloatArray
    thresholds: FloatArray
    noise_ratio: FloatArray
    positions: IntArray
    probabilities: FloatArray
    responses: FloatArray
    n_trials: FloatArray | None

    @property
    def n_scenarios(self) -> int:
        return int(self.scenario_weights.shape[0])


def _sample(bank: Bank, responses: ResponseMatrix, selection: Selection) -> _Sample:
    """Lay the responses against the drawn items, after all checks."""
    probabilities = selection.inclusion_probabilities
    if probabilities is None:
        raise DataError(
            "design-based intervals need the probability with which each item was drawn, and this selection "
            f"(method {selection.method!r}) does not know it. {HOW}."
        )
    if selection.bank and selection.bank != bank.bank_id:
        raise DataError(
            f"inclusion probabilities hold for the bank the items were drawn from, {selection.bank}, not "
            f"{bank.bank_id}. Choose again from this bank, or estimate with that one."
        )
    n_asked = n_items_asked(selection)
    if n_asked is not None and n_asked != selection.n_items:
        raise DataError(
            f"inclusion probabilities hold for the {n_asked} items that were drawn, and this selection has "
            f"{selection.n_items}. Give the selection as it was made: items that were not run count as missing."
        )
    positions = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    order = np.argsort(positions)
    positions = positions[order]
    columns, trials = _columns(bank, responses, positions), counted_trials(bank, responses)
    targets = bank.targets
    sample = _Sample(
        bank.parameters,
        bank.calibration.prior,
        targets.weights,
        targets.scenario_index,
        targets.scenario_weights,
        item_thresholds(bank.calibration.thresholds, targets.scenarios)[targets.scenario_index[positions]],
        np.minimum(noise_ratio(bank), 1.0),
        positions,
        probabilities[order],
        _aligned(responses.responses, columns),
        None if trials is None else _aligned(trials, columns),
    )
    _check_answered(bank, responses, sample)
    return sample


def _columns(bank: Bank, responses: ResponseMatrix, positions: IntArray) -> IntArray:
    """Column of the responses in which the items at these positions of the bank stand; -1 where there is none."""
    column_of = np.full(bank.n_items, -1)
    column_of[bank_positions(bank, responses.items["item_id"], "responses")] = np.arange(responses.n_items)
    result: IntArray = column_of[positions]
    return result


def _aligned(values: FloatArray, columns: IntArray) -> FloatArray:
    """Take these columns, (n_models, n_columns), NaN where there is none."""
    return np.where(columns >= 0, values[:, columns], np.nan)


def _check_answered(bank: Bank, responses: ResponseMatrix, sample: _Sample) -> None:
    """Refuse too few answers, and say what missing ones count as."""
    names = bank.targets.scenarios
    own = bank.targets.scenario_index[sample.positions]
    n_drawn = np.bincount(own, minlength=sample.n_scenarios)
    absent = [names[j] for j in np.flatnonzero(n_drawn == 0)]
    if absent:
        raise DataError(f"every scenario needs chosen items, got none in {shown(absent)}. {HOW}.")
    observed = ~np.isnan(sample.responses)
    answered = np.column_stack([observed[:, own == j].sum(axis=1) for j in range(sample.n_scenarios)])
    n_counting = np.bincount(bank.targets.scenario_index[bank.targets.weights > 0.0], minlength=sample.n_scenarios)
    lacking = np.argwhere((answered < 2) & (answered < n_counting))
    if lacking.shape[0]:
        where = [f"{responses.model_ids[model]} in {names[j]} ({answered[model, j]})" for model, j in lacking]
        raise DataError(
            "design-based intervals need responses to at least 2 of the chosen items of every scenario, got fewer "
            f"from {shown(where)}. Choose more items, run the missing ones, or leave these models out."
        )
    missing = np.flatnonzero(~observed.all(axis=1))
    if missing.shape[0]:
        models = [f"{responses.model_ids[model]} ({np.sum(~observed[model])})" for model in missing]
        warn(
            f"responses to some of the {sample.positions.shape[0]} chosen items are missing: {shown(models)}. They "
            "count as missing at random within their scenario; if hard items are missing, scores come out too high.",
            DataWarning,
        )


def _block(sample: _Sample, rows: slice, level: float) -> Scores:
    """Estimate the targets of some models."""
    responses = sample.responses[rows]
    own = sample.scenario_index[sample.positions]
    chosen = drawn(responses, sample.weights[sample.positions], sample.probabilities, own, sample.n_scenarios)
    n_trials = None if sample.n_trials is None else sample.n_trials[rows]
    predictions = _predict(sample, responses, n_trials, chosen.observed)
    slopes = tuned_slopes(chosen, predictions.cross_fitted)
    values = difference_values(chosen, predictions.fitted, predictions.unseen, slopes)
    fitted, freedom = difference_variances(chosen, predictions.fitted, slopes)
    cross_fitted, _ = difference_variances(chosen, predictions.cross_fitted, slopes)
    variances = guarded_variances(chosen, values, np.sqrt(fitted * cross_fitted), freedom, sample.noise_ratio)
    return _with_overall(chosen, values, variances, freedom, scenario_weights=sample.scenario_weights, level=level)


def _with_overall(
    chosen: Drawn,
    values: FloatArray,
    variances: FloatArray,
    freedom: FloatArray,
    *,
    scenario_weights: FloatArray,
    level: float,
) -> Scores:
    """Append the overall score to arrays (n_models, n_scenarios) and give every target its interval."""
    parts = scenario_weights**2 * variances
    overall = parts.sum(axis=1)
    inverse = np.sum(parts**2 / np.maximum(freedom, 1.0), axis=1)  # Satterthwaite (1946)
    overall_freedom = np.divide(overall**2, inverse, out=np.full(overall.shape, np.inf), where=inverse > 0.0)
    value, least, left = (
        _appended(scores, scenario_weights) for scores in (values, chosen.known, chosen.unseen_weight)
    )
    variance = np.column_stack([variances, overall])
    estimates = (value, variance, np.column_stack([freedom, overall_freedom]))
    n_right, n_observed = (np.column_stack([n, n.sum(axis=1)]) for n in (chosen.n_right, chosen.n_observed))
    low, high = score_intervals(estimates, n_right, n_observed, level)
    value, low, high = (np.clip(scores, least, np.minimum(least + left, 1.0)) for scores in (value, low, high))
    return Scores(value, np.sqrt(variance), low, high)


def _appended(scenario_scores: FloatArray, scenario_weights: FloatArray) -> FloatArray:
    return np.column_stack([scenario_scores, scenario_scores @ scenario_weights])


class _Predictions(NamedTuple):
    """What the item model says of each drawn item, with and without its own response, and of the unseen items."""

    fitted: FloatArray
    cross_fitted: FloatArray
    unseen: FloatArray


def _predict(sample: _Sample, responses: FloatArray, n_trials: FloatArray | None, observed: BoolArray) -> _Predictions:
    """Predict drawn and unseen items from the ability each model shows on the drawn ones.

    Folds take every tenth of the drawn items of each scenario, in the order of the bank.
    """
    parameters = sample.parameters.take(sample.positions)
    binary = apply_thresholds(responses, sample.thresholds)
    theta = map_abilities(parameters, binary, sample.prior, n_trials=n_trials).theta
    cross_fitted = np.empty(responses.shape)
    fold_of = np.empty(responses.shape[1], dtype=np.int64)
    own = sample.scenario_index[sample.positions]
    fold_of[np.argsort(own, kind="stable")] = np.arange(responses.shape[1]) % N_FOLDS
    for fold in range(min(N_FOLDS, responses.shape[1])):
        inside = np.flatnonzero(fold_of == fold)
        without = np.where(fold_of == fold, np.nan, binary)
        others = map_abilities(parameters, without, sample.prior, start=theta, n_trials=n_trials).theta
        cross_fitted[:, inside] = probability(parameters.take(inside), others)
    return _Predictions(probability(parameters, theta), cross_fitted, _unseen(sample, parameters, theta, observed))


def _unseen(sample: _Sample, parameters: ItemParameters, theta: FloatArray, observed: BoolArray) -> FloatArray:
    """``sum_U omega_i p_i`` over the items each model did not answer, (n_models, n_scenarios)."""
    n_scenarios, index = sample.n_scenarios, sample.scenario_index
    everything = predicted_sums(sample.parameters, sample.weights, index, n_scenarios, theta)
    seen = predicted_sums(
        parameters, sample.weights[sample.positions], index[sample.positions], n_scenarios, theta, mask=observed
    )
    result: FloatArray = (everything - seen).mean
    return result
