"""Variance of raw responses around the item model."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import ResponseModel
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray


def noise_ratio(bank: Bank) -> FloatArray:
    """Squared distance of raw calibration responses from p over ``p (1 - p)``, (n_scenarios,).

    Responses that were made binary, pass rates and probabilities vary less around the item model than zeros and ones
    would: ``p (1 - p)`` is the largest variance a number in [0, 1] with mean p can have. One for binary scenarios. Of
    levels it is their own variance in the place of ``p (1 - p)``.
    """
    if bank.published is not None:
        return bank.published.noise_ratio
    ratio = np.ones(bank.targets.n_scenarios)
    for scenario, name in enumerate(bank.targets.scenarios):
        if name not in bank.calibration.thresholds and bank.parameters.family == "bernoulli":
            continue
        items = np.flatnonzero(bank.targets.scenario_index == scenario)
        responses = bank.responses.of_items(items)
        p, variance = response_moments(bank.parameters.take(items), bank.calibration.abilities)
        expected = np.where(np.isnan(responses), 0.0, variance).sum()
        if expected > 0.0:
            ratio[scenario] = np.nansum((responses - p) ** 2) / expected
    return ratio


def response_moments(parameters: ItemParameters, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of every response, and the variance about it that `noise_ratio` is in units of, (n_models, n_items) each."""
    if parameters.steps is not None:
        mean, _, variance = ResponseModel.of(parameters).mean(logit(parameters, theta))
        return mean, variance
    p = probability(parameters, theta)
    return p, p * (1.0 - p)
