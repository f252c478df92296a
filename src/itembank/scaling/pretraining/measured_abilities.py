"""Scores and abilities of every model, scenario by scenario; items from a bank or from responses."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError, warned_once
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.item_budget import choose_within_budget
from itembank.scaling.pretraining.method_specs import ItemResponseLaw
from itembank.scaling.pretraining.scenario_abilities import (
    ScenarioAbilities,
    ScenarioScores,
    score_gap,
    without_prior,
)
from itembank.scaling.scenario_fits import fit_items

FEWEST_ITEMS = 2
"""With one item any ability fits, and a curve of its score in compute says all there is."""


def scenario_scores(
    responses: ResponseMatrix, *, n_items: int | None, rng: np.random.Generator
) -> list[ScenarioScores]:
    """Observe every model's score in each scenario, on all its items or on `n_items` drawn at random for all models."""
    index = responses.items["scenario"].to_numpy()
    scores = []
    for scenario in dict.fromkeys(index.tolist()):
        columns = np.flatnonzero(index == scenario)
        sampled = columns if n_items is None else np.sort(rng.permutation(columns)[:n_items])
        observed = mean_where_known(responses.responses[:, sampled], axis=1)
        n_answered = responses.observed[:, columns].sum(axis=1)
        scores.append(ScenarioScores(scenario, sampled, observed, n_answered > 0))
    return scores


def measured_abilities(
    responses: ResponseMatrix,
    law: ItemResponseLaw,
    *,
    bank: Bank | None = None,
    calibration: ResponseMatrix | None = None,
    n_items: int | None = None,
    progress: ProgressCallback = silent,
) -> tuple[list[ScenarioAbilities | None], str]:
    """Measure every model in each scenario by itself, as IRSL does: one ability a scenario.

    Parameters
    ----------
    responses : ResponseMatrix
    law : ItemResponseLaw
    bank : Bank, optional
        Item parameters of other models' calibration.
    calibration : ResponseMatrix, optional
        Responses of other models to the same items, which calibrate them; without these and a bank the responses
        calibrate their own items.
    n_items : int, optional
        Items a scenario each model is tested on, chosen adaptively from those it answered.
    progress : ProgressCallback

    Returns
    -------
    abilities, note
        None for a scenario whose items cannot be calibrated: one item alone, or all answered alike by all models; the
        note tells why.

    Raises
    ------
    DataError
        When an item is not in the bank.
    ParameterError
        When the bank has more than one dimension.
    """
    index = responses.items["scenario"].to_numpy()
    scenarios = list(dict.fromkeys(index.tolist()))
    measured: list[ScenarioAbilities | None] = []
    notes = []
    with warned_once():
        for number, scenario in enumerate(scenarios):
            progress(f"abilities in {scenario}", number / len(scenarios))
            columns = np.flatnonzero(index == scenario)
            if bank is not None:
                calibrated = _bank_items(responses, columns, bank)
            else:
                try:
                    calibrated = _fitted_items(scenario, responses, calibration, columns, law)
                except DataError as error:
                    notes.append(f"Scenario {scenario!r} has no item response law: {error}")
                    measured.append(None)
                    continue
            measured.append(_measured(scenario, responses, calibrated, n_items))
    progress("abilities", 1.0)
    return measured, " ".join(notes)


def response_family(responses: ResponseMatrix, law: ItemResponseLaw) -> str:
    """Likelihood for these responses: that of the law, or the choice of 'auto'."""
    if law.family != "auto":
        return law.family
    if responses.n_trials is not None and int(responses.n_trials.max()) > 1:
        return "binomial"
    return "bernoulli" if responses.is_binary else "beta"


class _Calibrated(NamedTuple):
    """Items of one scenario; posterior mean and variance of every model's ability, where the calibration has them."""

    columns: IntArray
    parameters: ItemParameters
    item_covariance: FloatArray
    prior: AbilityPrior
    thresholds: Mapping[str, float]
    abilities: tuple[FloatArray, FloatArray] | None


def _fitted_items(
    scenario: str, responses: ResponseMatrix, others: ResponseMatrix | None, columns: IntArray, law: ItemResponseLaw
) -> _Calibrated:
    """Calibrate the items of a scenario on other models' responses, or on the responses themselves."""
    if columns.size < FEWEST_ITEMS:
        raise DataError(f"items that tell an ability from the items' own errors are {FEWEST_ITEMS} at least, got one.")
    source = responses if others is None else others
    fit = fit_items(scenario, source, columns, _calibration_spec(source.take(items=columns), law))
    calibration = fit.calibration
    abilities = (fit.theta, fit.standard_errors**2) if others is None else None
    return _Calibrated(
        fit.columns,
        calibration.parameters,
        calibration.item_covariance,
        calibration.prior,
        calibration.thresholds,
        abilities,
    )


def _bank_items(responses: ResponseMatrix, columns: IntArray, bank: Bank) -> _Calibrated:
    """Find the items of a scenario in a bank."""
    if bank.parameters.n_dims != 1:
        raise ParameterError(
            f"a scaling law needs a bank of one dimension, got {bank.parameters.n_dims}: calibrate it with "
            "'itembank calibrate --item-model 2pl'."
        )
    where = bank.responses.item_indices([responses.item_ids[column] for column in columns.tolist()])
    calibration = bank.calibration
    parameters, covariance = bank.parameters.take(where), calibration.item_covariance[where]
    return _Calibrated(columns, parameters, covariance, calibration.prior, calibration.thresholds, None)


def _measured(
    scenario: str, responses: ResponseMatrix, calibrated: _Calibrated, n_items: int | None
) -> ScenarioAbilities:
    """Abilities in one scenario."""
    columns, parameters, covariance, prior, thresholds, known = calibrated
    part = responses.take(items=columns)
    given = part.responses
    if thresholds:
        given = apply_thresholds(given, item_thresholds(thresholds, [scenario] * part.n_items))
    if n_items is not None:
        given = choose_within_budget(parameters, given, prior, n_items, n_trials=part.n_trials)
    if known is None or n_items is not None:
        trials = None if part.n_trials is None else part.n_trials.astype(np.float64)
        abilities = map_abilities(parameters, given, prior, weights=trials)
        known = abilities.theta[:, 0], abilities.covariance[:, 0, 0]
    is_measured = ~np.isnan(given).all(axis=1)
    theta, variance = (np.where(is_measured, values, np.nan) for values in without_prior(*known, prior))
    return ScenarioAbilities(
        items=columns,
        parameters=parameters,
        item_covariance=covariance,
        theta=theta,
        variance=variance,
        gap=score_gap(parameters, np.where(np.isnan(given), np.nan, part.responses), theta),
    )


def _calibration_spec(part: ResponseMatrix, law: ItemResponseLaw) -> Variational:
    """Return the spec that a scenario's items are calibrated by."""
    family: dict[str, Any] = {"family": response_family(part, law)}
    if family["family"] == "bernoulli":
        family = {}
    return Variational(
        law.item_model,
        known_guessing=law.known_guessing,
        positive_discrimination=law.positive_discrimination,
        **family,
    )
