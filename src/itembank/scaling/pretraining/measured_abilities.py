"""Abilities of every model, scenario by scenario, from a bank or from the responses themselves."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from itembank.calibration.calibrate import calibrate
from itembank.calibration.specs import Variational
from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.errors import ParameterError
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.progress import ProgressCallback, silent
from itembank.scaling.pretraining.item_budget import choose_within_budget
from itembank.scaling.pretraining.pretraining_specs import ItemResponseLaw
from itembank.scaling.pretraining.scenario_abilities import (
    ScenarioAbilities,
    mean_where_present,
    score_gap,
    without_prior,
)
from itembank.scoring.newton import map_abilities


def measured_abilities(
    responses: ResponseMatrix,
    law: ItemResponseLaw,
    *,
    bank: Bank | None = None,
    calibration: ResponseMatrix | None = None,
    n_items: int | None = None,
    rng: np.random.Generator,
    progress: ProgressCallback = silent,
) -> list[ScenarioAbilities]:
    """Measure every model in each scenario by itself, as P3 does: one ability a scenario.

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
    rng : Generator
        Draws as many items, the same for all models, whose mean is the score that laws without items are fitted to.
    progress : ProgressCallback

    Raises
    ------
    DataError
        As `calibrate`, and when an item is not in the bank.
    ParameterError
        When the bank has more than one dimension.
    """
    scenarios = list(dict.fromkeys(responses.items["scenario"].to_list()))
    index = responses.items["scenario"].to_numpy()
    measured = []
    for number, scenario in enumerate(scenarios):
        progress(f"abilities in {scenario}", number / len(scenarios))
        columns = np.flatnonzero(index == scenario)
        part = responses.take(items=columns)
        if bank is not None:
            calibrated = _bank_items(part, bank)
        elif calibration is not None:
            calibrated = _own_items(calibration.take(items=columns), law)._replace(abilities=None)
        else:
            calibrated = _own_items(part, law)
        measured.append(_measured(scenario, columns, part, calibrated, (n_items, rng)))
    progress("abilities", 1.0)
    return measured


def response_family(responses: ResponseMatrix, law: ItemResponseLaw) -> str:
    """Likelihood for these responses: what the law says, or what 'auto' comes to."""
    if law.family != "auto":
        return law.family
    if responses.n_trials is not None and int(responses.n_trials.max()) > 1:
        return "binomial"
    return "bernoulli" if responses.is_binary else "beta"


class _Calibrated(NamedTuple):
    """Items of one scenario; posterior mean and variance of every model's ability, where the calibration has them."""

    parameters: ItemParameters
    item_covariance: FloatArray
    prior: AbilityPrior
    thresholds: Mapping[str, float]
    abilities: tuple[FloatArray, FloatArray] | None


def _own_items(part: ResponseMatrix, law: ItemResponseLaw) -> _Calibrated:
    """Calibrate the items of a scenario on the responses themselves."""
    calibration = calibrate(part, _calibration_spec(part, law))
    abilities = calibration.abilities[:, 0], calibration.ability_covariance[:, 0, 0]
    return _Calibrated(
        calibration.parameters, calibration.item_covariance, calibration.prior, calibration.thresholds, abilities
    )


def _bank_items(part: ResponseMatrix, bank: Bank) -> _Calibrated:
    """Find the items of a scenario in a bank."""
    if bank.parameters.n_dims != 1:
        raise ParameterError(
            f"a scaling law needs a bank of one dimension, got {bank.parameters.n_dims}: calibrate it with "
            "'itembank calibrate --model 2pl'."
        )
    columns = bank.responses.item_indices(part.item_ids)
    parameters, covariance = bank.parameters.take(columns), bank.calibration.item_covariance[columns]
    return _Calibrated(parameters, covariance, bank.calibration.prior, bank.calibration.thresholds, None)


def _measured(
    scenario: str,
    columns: IntArray,
    part: ResponseMatrix,
    calibrated: _Calibrated,
    budget: tuple[int | None, np.random.Generator],
) -> ScenarioAbilities:
    """Abilities in one scenario."""
    n_items, rng = budget
    parameters, covariance, prior, thresholds, known = calibrated
    given = part.responses
    if thresholds:
        given = apply_thresholds(given, item_thresholds(thresholds, [scenario] * part.n_items))
    values = given
    if n_items is not None:
        values = choose_within_budget(parameters, given, prior, n_items, n_trials=part.n_trials)
    if known is None or n_items is not None:
        trials = None if part.n_trials is None else part.n_trials.astype(np.float64)
        found = map_abilities(parameters, values, prior, weights=trials)
        known = found.theta[:, 0], found.covariance[:, 0, 0]
    theta, variance = without_prior(*known, prior)
    sampled = columns if n_items is None else np.sort(rng.permutation(columns)[:n_items])
    return ScenarioAbilities(
        scenario=scenario,
        items=columns,
        parameters=parameters,
        item_covariance=covariance,
        theta=theta,
        variance=variance,
        sampled=sampled,
        observed=mean_where_present(given[:, np.isin(columns, sampled)]),
        gap=score_gap(parameters, values, theta),
    )


def _calibration_spec(part: ResponseMatrix, law: ItemResponseLaw) -> Variational:
    """Say how a scenario's items are calibrated."""
    family: dict[str, Any] = {"family": response_family(part, law)}
    if family["family"] == "bernoulli":
        family = {}
    return Variational(
        law.item_model,
        known_guessing=law.known_guessing,
        positive_discrimination=law.positive_discrimination,
        **family,
    )
