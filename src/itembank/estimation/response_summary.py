"""What the item model and sample means say of responses, which several methods of estimation share."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.norms import noise_ratio
from itembank.estimation.observations import Observations
from itembank.estimation.predictions import (
    PredictedSums,
    WeightedItems,
    predicted_sums,
    scenario_sums,
    score_posterior,
    sums_at,
)
from itembank.irt.abilities import Abilities
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class ScoreBasis:
    """Item model and score targets of n_items items; make one with `of_bank`."""

    parameters: ItemParameters
    prior: AbilityPrior
    targets: ScoreTargets
    # (n_scenarios,): From which response on an answer counts as right for ability; NaN where responses are taken as
    # they are.
    thresholds: FloatArray
    noise_ratio: FloatArray  # (n_scenarios,): See `itembank.bank.norms.noise_ratio`
    weighted: WeightedItems  # The items with their weights in the targets
    n_counting: FloatArray  # (n_scenarios,): Items of each scenario that count in its score
    squares: FloatArray  # (n_scenarios,): Sum of their squared weights

    @classmethod
    def of_bank(cls, bank: Bank, targets: ScoreTargets | None = None) -> Self:
        """Take the parts of a bank that are needed; other targets must have the bank's scenarios."""
        targets = bank.targets if targets is None else targets
        n_scenarios, counts = targets.n_scenarios, (targets.weights > 0.0).astype(np.float64)
        weighted = WeightedItems.create(bank.parameters, targets.weights, targets.scenario_index, n_scenarios)
        n_counting, squares = (
            np.bincount(targets.scenario_index, weights=one, minlength=n_scenarios).astype(np.float64)
            for one in (counts, targets.weights**2)
        )
        if bank.rest is not None and targets is bank.targets:
            weighted = weighted.with_curves(bank.rest.curves, bank.rest.curve_scenarios)
            n_counting = n_counting + bank.rest.sizes.astype(np.float64)
            squares = squares + bank.rest.squares
        return cls(
            bank.parameters,
            bank.calibration.prior,
            targets,
            item_thresholds(bank.calibration.thresholds, bank.targets.scenarios),
            bank.cache.remember("noise ratio", lambda: noise_ratio(bank)),
            weighted,
            n_counting,
            squares,
        )

    def answers(self, responses: FloatArray, positions: IntArray) -> FloatArray:
        """Apply the thresholds of the calibration to raw responses to some items, (n_models, n_columns)."""
        return apply_thresholds(responses, self.thresholds[self.targets.scenario_index[positions]])


def score_basis(bank: Bank) -> ScoreBasis:
    """Return the basis of a bank for its own targets; it is made once for a bank in memory."""
    return bank.cache.remember("score basis", lambda: ScoreBasis.of_bank(bank))


def weighted_mean(
    # (n_models, n_items): Raw; NaN where missing: the weights of the others are rescaled, model by model
    responses: FloatArray,
    weights: FloatArray,  # (n_items,): Non-negative
    scenario_index: IntArray,  # (n_items,)
    n_scenarios: int,
) -> FloatArray:
    """Weighted mean of the observed responses in each scenario: ``sum_S w_i Y_i / sum_S w_i`` (tinyBenchmarks eq. 3.1).

    Returns (n_models, n_scenarios): NaN where no weight was observed.
    """
    observed = ~np.isnan(responses)
    total = scenario_sums(np.where(observed, responses, 0.0) * weights, scenario_index, n_scenarios)
    mass = scenario_sums(observed * weights, scenario_index, n_scenarios)
    result: FloatArray = np.divide(total, mass, out=np.full(total.shape, np.nan), where=mass > 0.0)
    return result


def sample_mean(responses: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Plain mean of the observed responses in each scenario, ``sum_S Y_i / n_j``; see `weighted_mean`.

    It estimates the micro score whatever the target's weights are.
    """
    return weighted_mean(responses, np.ones(responses.shape[1]), scenario_index, n_scenarios)


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
    # (n_models, n_scenarios): Variance of the unseen part of the scores if every unseen answer is drawn by itself,
    # ``r sum_U omega_i^2 p_i (1 - p_i)``, and no less than with ``p = 1 - 1 / (2 (n + 1))`` for all items: after n
    # right answers and none wrong that is the posterior mean under Jeffreys' prior.
    noise: FloatArray
    n_observed: IntArray  # (n_models, n_scenarios)
    n_effective: FloatArray  # (n_models, n_scenarios): ``(sum w)^2 / sum w^2``, of a sample with unequal weights
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
    basis, positions = score_basis(bank), observations.positions
    parameters, parts = basis.parameters.take(positions), []
    for block in row_blocks(observations.responses.shape[0], bank.n_items, times=4):
        trials = None if observations.n_trials is None else observations.n_trials[block]
        some = replace(observations, responses=observations.responses[block], n_trials=trials)
        answers = basis.answers(some.responses, positions)
        abilities = map_abilities(parameters, answers, basis.prior, n_trials=trials)
        parts.append(summary_at(basis, some, abilities))
    return ResponseSummary(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ResponseSummary.__slots__)
    )


def posterior_moments(targets: ScoreTargets, summary: ResponseSummary) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of every target by the item model, each (n_models, n_targets).

    The overall score has its own variance ``w' V w``: scenario scores share the uncertain ability.
    """
    weights, covariance = targets.scenario_weights, summary.posterior_covariance
    overall = np.einsum("j,mjk,k->m", weights, covariance, weights)
    variances = np.column_stack([np.einsum("mjj->mj", covariance), overall])
    return targets.with_overall(summary.posterior_mean), variances


def summary_at(basis: ScoreBasis, observations: Observations, abilities: Abilities) -> ResponseSummary:
    """Summarise the responses of a few models whose abilities are known already."""
    targets, positions, responses = basis.targets, observations.positions, observations.responses
    n_scenarios, scenario_index, omega = (
        targets.n_scenarios,
        targets.scenario_index[positions],
        targets.weights[positions],
    )

    def sums(values: FloatArray) -> FloatArray:
        return scenario_sums(values, scenario_index, n_scenarios)

    observed = ~np.isnan(responses)
    known = sums(np.where(observed, responses, 0.0) * omega)
    # whether a scenario is complete is decided by counting: 1 - mass may be rounding, and must then be zero; for an
    # incomplete scenario it must stay positive
    is_complete = sums((observed & (omega > 0.0)).astype(np.float64)) == basis.n_counting
    mass = sums(observed * omega)
    open_weight = np.where(is_complete, 0.0, np.maximum(1.0 - mass, np.finfo(np.float64).tiny))
    seen = predicted_sums(
        basis.parameters.take(positions), omega, scenario_index, n_scenarios, abilities.theta, mask=observed
    )
    # all items less the observed ones; of a scenario without unseen items exactly zero: subtraction leaves rounding
    unseen = sums_at(basis.weighted, abilities.theta) - seen
    unseen = PredictedSums(
        np.where(is_complete, 0.0, unseen.mean),
        np.where(is_complete, 0.0, unseen.noise),
        np.where(is_complete[:, :, None], 0.0, unseen.gradient),
    )
    mean, covariance = score_posterior(known, unseen, abilities.covariance, basis.noise_ratio)
    unseen_squares = basis.squares - sums(observed * omega**2)
    rest = 0.5 / (observed.sum(axis=1, keepdims=True) + 1.0)
    least = np.where(unseen.noise > 0.0, np.maximum(unseen_squares, 0.0) * rest * (1.0 - rest), 0.0)
    weights = observed * observations.weights
    total, total_squares = sums(weights), sums(weights**2)
    return ResponseSummary(
        sample_mean=sample_mean(responses, scenario_index, n_scenarios),
        weighted=weighted_mean(responses, observations.weights, scenario_index, n_scenarios),
        known=known,
        open_weight=open_weight,
        posterior_mean=mean,
        posterior_covariance=covariance,
        noise=basis.noise_ratio * np.maximum(unseen.noise, least),
        n_observed=sums(observed.astype(np.float64)).astype(np.int64),
        n_effective=np.divide(total**2, total_squares, out=np.zeros(total.shape), where=total_squares > 0.0),
        abilities=abilities.theta,
        ability_covariance=abilities.covariance,
    )
