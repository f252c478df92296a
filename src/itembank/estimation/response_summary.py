"""Summary of responses by the item model and by sample means, which several methods of estimation share."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.basis import ScoreBasis, score_basis
from itembank.estimation.observations import Observations
from itembank.estimation.posterior import score_posterior
from itembank.estimation.predictions import PredictedSums, predicted_sums, sums_at
from itembank.estimation.sample_means import sample_mean, weighted_mean
from itembank.estimation.scenario_sums import scenario_sums
from itembank.irt.abilities import Abilities
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.targets import ScoreTargets

CELLS_AT_ONCE = 2**22
"""Models are worked on in blocks of about this many (model, item) cells, to bound memory."""


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """Scenario scores of n_models models by the item model and by the sample."""

    # (n_models, n_scenarios): Plain and weighted mean of what was observed; NaN where nothing was.
    sample_mean: FloatArray
    weighted: FloatArray  # (n_models, n_scenarios)
    known: FloatArray  # (n_models, n_scenarios): ``sum_S omega_i Y_i``: the part of the score that is certain
    open_weight: FloatArray  # (n_models, n_scenarios): ``sum_U omega_i``: the part that is not
    # (n_models, n_scenarios): The p-IRT estimate ``sum_S omega_i Y_i + sum_U omega_i p_i(theta)`` (tinyBenchmarks eq.
    # 4.3; where subscenarios weigh the same, that of its App. A). It needs no clipping: both sums are means of numbers
    # in [0, 1] whose weights add up to one.
    posterior_mean: FloatArray
    posterior_covariance: FloatArray  # (n_models, n_scenarios, n_scenarios)
    # (n_models, n_scenarios): Variance of the score that the unseen answers have whatever is known of the model, see
    # `_noise`.
    noise: FloatArray
    n_observed: IntArray  # (n_models, n_scenarios)
    n_effective: FloatArray  # (n_models, n_scenarios): As a random sample with unequal weights counts
    abilities: FloatArray  # (n_models, n_dims)
    ability_covariance: FloatArray  # (n_models, n_dims, n_dims)

    def take(self, models: IntArray) -> "ResponseSummary":
        """Return the summary of some of the models."""
        return ResponseSummary(*(getattr(self, name)[models] for name in ResponseSummary.__slots__))

    @property
    def is_complete(self) -> BoolArray:
        """Where every item that counts in a scenario's score was observed, (n_models, n_scenarios)."""
        result: BoolArray = self.open_weight == 0.0
        return result

    @property
    def is_silent(self) -> BoolArray:
        """Models without any response, (n_models,)."""
        result: BoolArray = self.n_observed.sum(axis=1) == 0
        return result


def summarise_responses(bank: Bank, observations: Observations) -> ResponseSummary:
    """Find ability, its predictions of the unseen items, and the means of the observed responses.

    Ability comes from all observed items of all scenarios (MAP, the bank's prior, responses made binary as in the
    calibration); scores are made of the raw responses.
    """
    basis = score_basis(bank)
    blocks = blocks_of_models(observations.responses.shape[0], bank.n_items)
    return _joined([_of_block(basis, observations, block) for block in blocks])


def posterior_moments(targets: ScoreTargets, summary: ResponseSummary) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of every target by the item model, each (n_models, n_targets).

    The overall score has its own variance ``w' V w``: scenario scores share the uncertain ability.
    """
    weights, covariance = targets.scenario_weights, summary.posterior_covariance
    overall = np.einsum("j,mjk,k->m", weights, covariance, weights)
    variances = np.column_stack([np.einsum("mjj->mj", covariance), overall])
    return targets.with_overall(summary.posterior_mean), variances


def blocks_of_models(n_models: int, n_items: int) -> list[slice]:
    """Divide models so that a block has about `CELLS_AT_ONCE` cells."""
    n_block = max(1, CELLS_AT_ONCE // n_items)
    return [slice(start, start + n_block) for start in range(0, n_models, n_block)]


def summary_at(basis: ScoreBasis, observations: Observations, abilities: Abilities) -> ResponseSummary:
    """Summarise the responses of a few models whose abilities are known already."""
    return _of_abilities(basis, observations, observations.responses, abilities)


def _of_block(basis: ScoreBasis, observations: Observations, block: slice) -> ResponseSummary:
    """Summarise the responses of a block of models."""
    positions, responses = observations.positions, observations.responses[block]
    answers = basis.answers(responses, positions)
    n_trials = None if observations.n_trials is None else observations.n_trials[block]
    abilities = map_abilities(basis.parameters.take(positions), answers, basis.prior, n_trials=n_trials)
    return _of_abilities(basis, observations, responses, abilities)


def _of_abilities(
    basis: ScoreBasis, observations: Observations, responses: FloatArray, abilities: Abilities
) -> ResponseSummary:
    """Summarise raw responses (n_models, n_columns) and abilities."""
    targets, positions = basis.targets, observations.positions
    n_scenarios, scenario_index = targets.n_scenarios, targets.scenario_index[positions]
    observed = ~np.isnan(responses)
    n_observed = scenario_sums(observed.astype(np.float64), scenario_index, n_scenarios).astype(np.int64)
    omega = targets.weights[positions]
    known = scenario_sums(np.where(observed, responses, 0.0) * omega, scenario_index, n_scenarios)
    open_weight = _open_weight(basis, observed, omega, scenario_index)
    unseen = _without(_unseen(basis, positions, abilities.theta, observed), open_weight == 0.0)
    posterior = score_posterior(known, unseen, abilities.covariance, basis.noise_ratio)
    weights = observations.weights
    return ResponseSummary(
        sample_mean=sample_mean(responses, scenario_index, n_scenarios),
        weighted=weighted_mean(responses, weights, scenario_index, n_scenarios),
        known=known,
        open_weight=open_weight,
        posterior_mean=known + unseen.mean,
        posterior_covariance=posterior.covariance,
        noise=_noise(basis, unseen, observed, omega, scenario_index),
        n_observed=n_observed,
        n_effective=_n_effective(observed * weights, scenario_index, n_scenarios),
        abilities=abilities.theta,
        ability_covariance=abilities.covariance,
    )


def _joined(blocks: list[ResponseSummary]) -> ResponseSummary:
    """Put the summaries of several blocks of models together."""
    return ResponseSummary(
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in ResponseSummary.__slots__)
    )


def _n_effective(weights: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Effective number of observed items of a weighted random sample, ``(sum w)^2 / sum w^2``."""
    total = scenario_sums(weights, scenario_index, n_scenarios)
    squares = scenario_sums(weights**2, scenario_index, n_scenarios)
    return np.divide(total**2, squares, out=np.zeros(total.shape), where=squares > 0.0)


def _open_weight(basis: ScoreBasis, observed: BoolArray, omega: FloatArray, scenario_index: IntArray) -> FloatArray:
    """Weight of the items not observed, (n_models, n_scenarios); exactly zero where all that count were observed."""
    targets = basis.targets
    seen = scenario_sums((observed & (omega > 0.0)).astype(np.float64), scenario_index, targets.n_scenarios)
    mass = scenario_sums(observed * omega, scenario_index, targets.n_scenarios)
    # whether a scenario is complete is decided by counting: 1 - mass may be rounding, and must then be zero; for an
    # incomplete scenario it must stay positive
    return np.where(seen == basis.n_counting, 0.0, np.maximum(1.0 - mass, np.finfo(np.float64).tiny))


def _unseen(basis: ScoreBasis, positions: IntArray, theta: FloatArray, observed: BoolArray) -> PredictedSums:
    """Predict the items that were not observed, as all items less the observed ones."""
    targets = basis.targets
    everything = sums_at(basis.weighted, theta)
    seen = predicted_sums(
        basis.parameters.take(positions),
        targets.weights[positions],
        targets.scenario_index[positions],
        targets.n_scenarios,
        theta,
        mask=observed,
    )
    return everything - seen


def _noise(
    basis: ScoreBasis, unseen: PredictedSums, observed: BoolArray, omega: FloatArray, scenario_index: IntArray
) -> FloatArray:
    """Variance of the unseen part of the scores if every unseen answer is drawn by itself, (n_models, n_scenarios).

    ``r sum_U omega_i^2 p_i (1 - p_i)``, and no less than with ``p = 1 - 1 / (2 (n + 1))`` for all items: after n right
    answers and none wrong that is the posterior mean under Jeffreys' prior.
    """
    targets = basis.targets
    squares = np.bincount(targets.scenario_index, weights=targets.weights**2, minlength=targets.n_scenarios)
    unseen_squares = squares - scenario_sums(observed * omega**2, scenario_index, targets.n_scenarios)
    rest = 0.5 / (observed.sum(axis=1, keepdims=True) + 1.0)
    least = np.where(unseen.noise > 0.0, np.maximum(unseen_squares, 0.0) * rest * (1.0 - rest), 0.0)
    result: FloatArray = basis.noise_ratio * np.maximum(unseen.noise, least)
    return result


def _without(sums: PredictedSums, is_complete: BoolArray) -> PredictedSums:
    """Set the sums of a scenario without unseen items to exactly zero; subtraction leaves rounding."""
    return PredictedSums(
        np.where(is_complete, 0.0, sums.mean),
        np.where(is_complete, 0.0, sums.noise),
        np.where(is_complete[:, :, None], 0.0, sums.gradient),
    )
