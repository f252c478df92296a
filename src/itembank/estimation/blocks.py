"""The arithmetic of `estimate` for a block of models: ability, what it predicts, and each method's scores."""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.gp_irt import gp_irt, sample_share
from itembank.estimation.mean import sample_mean
from itembank.estimation.p_irt import p_irt
from itembank.estimation.posterior import score_posterior
from itembank.estimation.predictions import PredictedSums, predicted_sums
from itembank.estimation.scenario_sums import scenario_sums
from itembank.estimation.specs import PIRT, EstimationSpec, SampleMean, Weighted
from itembank.estimation.weighted import weighted_mean
from itembank.irt.binarise import apply_thresholds
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.scoring.newton import map_abilities


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What every block needs of the bank and of the observed items.

    Attributes
    ----------
    parameters : ItemParameters
        Of all n_items items.
    prior : AbilityPrior
    weights : (n_items,)
        omega, summing to one in each scenario.
    scenario_index : (n_items,)
    n_scenarios : int
    positions : (n_columns,)
        Which item each column of responses is.
    sample_weights : (n_columns,)
        Weights of the weighted mean.
    thresholds : (n_columns,)
        Where responses are made binary for ability; NaN leaves them.
    noise_ratio, bias, response_variance, factor : (n_scenarios,)
        See `noise_ratio`, `sample_share`.
    is_random : bool
        Whether the items count as a random sample.
    """

    parameters: ItemParameters
    prior: AbilityPrior
    weights: FloatArray
    scenario_index: IntArray
    n_scenarios: int
    positions: IntArray
    sample_weights: FloatArray
    thresholds: FloatArray
    noise_ratio: FloatArray
    bias: FloatArray
    response_variance: FloatArray
    factor: FloatArray
    is_random: bool


@dataclass(frozen=True, slots=True)
class BlockEstimates:
    """Scenario scores of some models.

    Attributes
    ----------
    value : (n_models, n_scenarios)
        NaN where the method has nothing to go by.
    posterior_mean : (n_models, n_scenarios)
    posterior_covariance : (n_models, n_scenarios, n_scenarios)
    n_observed : (n_models, n_scenarios)
    sample_share : (n_models, n_scenarios)
        gp-IRT's lambda.
    abilities : (n_models, n_dims)
    ability_covariance : (n_models, n_dims, n_dims)
    """

    value: FloatArray
    posterior_mean: FloatArray
    posterior_covariance: FloatArray
    n_observed: IntArray
    sample_share: FloatArray
    abilities: FloatArray
    ability_covariance: FloatArray


def estimate_block(benchmark: Benchmark, responses: FloatArray, spec: EstimationSpec) -> BlockEstimates:
    """Estimate the scenario scores of some models from their responses (n_models, n_columns), NaN where missing."""
    n_scenarios = benchmark.n_scenarios
    own_scenario = benchmark.scenario_index[benchmark.positions]
    observed = ~np.isnan(responses)
    n_observed = scenario_sums(observed.astype(np.float64), own_scenario, n_scenarios).astype(np.int64)
    abilities = map_abilities(
        benchmark.parameters.take(benchmark.positions),
        apply_thresholds(responses, benchmark.thresholds),
        benchmark.prior,
    )
    omega = benchmark.weights[benchmark.positions]
    known = scenario_sums(np.where(observed, responses, 0.0) * omega, own_scenario, n_scenarios)
    is_complete = _is_complete(benchmark, observed, omega, own_scenario)
    unseen = _without(_unseen(benchmark, abilities.theta, observed), is_complete)
    posterior = score_posterior(known, unseen, abilities.covariance, benchmark.noise_ratio)
    n_effective = _n_effective(benchmark, observed) if benchmark.is_random else n_observed.astype(np.float64)
    share = sample_share(benchmark.bias, benchmark.response_variance, n_effective, benchmark.factor)
    weighted = weighted_mean(responses, benchmark.sample_weights, own_scenario, n_scenarios)
    if isinstance(spec, SampleMean):
        value = sample_mean(responses, own_scenario, n_scenarios)
    elif isinstance(spec, Weighted):
        value = weighted
    elif isinstance(spec, PIRT):
        value = p_irt(known, unseen)
    else:
        value = gp_irt(weighted, p_irt(known, unseen), share)
    value = np.where(is_complete, known, value)
    value[~observed.any(axis=1)] = np.nan
    return BlockEstimates(
        value, posterior.mean, posterior.covariance, n_observed, share, abilities.theta, abilities.covariance
    )


def _n_effective(benchmark: Benchmark, observed: BoolArray) -> FloatArray:
    """Effective number of observed items of a weighted random sample, ``(sum w)^2 / sum w^2``."""
    own_scenario = benchmark.scenario_index[benchmark.positions]
    weights = observed * benchmark.sample_weights
    total = scenario_sums(weights, own_scenario, benchmark.n_scenarios)
    squares = scenario_sums(weights**2, own_scenario, benchmark.n_scenarios)
    return np.divide(total**2, squares, out=np.zeros(total.shape), where=squares > 0.0)


def joined(blocks: list[BlockEstimates]) -> BlockEstimates:
    """Put the estimates of several blocks of models together."""
    names = BlockEstimates.__slots__
    return BlockEstimates(*(np.concatenate([getattr(block, name) for block in blocks]) for name in names))


def _unseen(benchmark: Benchmark, theta: FloatArray, observed: BoolArray) -> PredictedSums:
    """Predict the items that were not observed: all less the observed ones."""
    everything = predicted_sums(
        benchmark.parameters, benchmark.weights, benchmark.scenario_index, benchmark.n_scenarios, theta
    )
    seen = predicted_sums(
        benchmark.parameters.take(benchmark.positions),
        benchmark.weights[benchmark.positions],
        benchmark.scenario_index[benchmark.positions],
        benchmark.n_scenarios,
        theta,
        mask=observed,
    )
    return everything - seen


def _is_complete(benchmark: Benchmark, observed: BoolArray, omega: FloatArray, own_scenario: IntArray) -> BoolArray:
    """Where every item that counts in a scenario's score was observed, (n_models, n_scenarios)."""
    counts = (benchmark.weights > 0.0).astype(np.int64)
    needed = np.bincount(benchmark.scenario_index, weights=counts, minlength=benchmark.n_scenarios)
    seen = scenario_sums(np.where(observed, omega > 0.0, False).astype(np.float64), own_scenario, benchmark.n_scenarios)
    complete: BoolArray = seen == needed
    return complete


def _without(sums: PredictedSums, is_complete: BoolArray) -> PredictedSums:
    """Set to exactly zero what subtraction leaves of a scenario without unseen items."""
    return PredictedSums(
        np.where(is_complete, 0.0, sums.mean),
        np.where(is_complete, 0.0, sums.noise),
        np.where(is_complete[:, :, None], 0.0, sums.gradient),
    )
