"""Variance of differences when another score is meant than that of one run."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.comparison.pairs import model_pairs
from itembank.estimation.estimand_names import RUN, Estimand
from itembank.estimation.estimands import ExpectedAnswers, least_item_variance, run_variance
from itembank.estimation.observations import Observations, attempts_of
from itembank.estimation.response_summary import summarise_responses
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix


def pair_variance(estimand: Estimand, bank: Bank, observations: Observations, responses: ResponseMatrix) -> FloatArray:
    """Find the variance of each pair's difference in one run around the difference that is meant, (n_pairs, n_targets).

    'expected': runs of two models are independent, so that their variances add up. 'items-like-these': the squared
    standard error of a mean paired difference over the choice of items, ``N / (N - 1) sum_i omega_i^2 E[(d_i - D)^2]``
    with ``d_i = y_bi - y_ai`` (Miller 2024, arXiv:2411.00640, section 4): models that fail the same items differ on
    other items by as little.

    Parameters
    ----------
    estimand : {'run', 'expected', 'items-like-these'}
    bank : Bank
    observations : Observations
    responses : ResponseMatrix
        Of the same models, with the attempts behind each response.
    """
    first, second = model_pairs(responses.n_models)
    if estimand == RUN:
        return np.zeros((first.size, len(bank.targets.names)))
    summary = summarise_responses(bank, observations)
    if estimand == "expected":
        variance = run_variance(bank, responses, summary.abilities)
        return variance[first] + variance[second]
    answers = ExpectedAnswers.of(bank, observations, summary.abilities, attempts_of(responses))
    basis, targets, score = answers.basis, bank.targets, summary.posterior_mean
    mean, variance = answers.moments(slice(None))
    result, least = np.empty((first.size, targets.n_scenarios)), 2.0 * least_item_variance(basis)
    for scenario in range(targets.n_scenarios):
        items = np.flatnonzero(targets.scenario_index == scenario)
        of_pairs = _paired_squares(mean[:, items], variance[:, items], targets.weights[items], score[:, scenario])
        n = basis.n_counting[scenario]
        result[:, scenario] = np.maximum(of_pairs[first, second] * n / max(n - 1.0, 1.0), least[scenario])
    return np.column_stack([result, result @ targets.scenario_weights**2])


def _paired_squares(mean: FloatArray, variance: FloatArray, weights: FloatArray, score: FloatArray) -> FloatArray:
    """Sum ``omega^2 E[(y_b - y_a - (T_b - T_a))^2]`` over items for all pairs at once, (n_models, n_models)."""
    squares = weights**2
    centred = mean - score[:, None]
    own = (centred**2 + variance) @ squares
    return own[:, None] + own[None, :] - 2.0 * (centred * squares) @ centred.T
