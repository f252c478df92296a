"""The methods of estimation, one function each: (`Known`, spec) to scores (n_models, n_scenarios + 1).

They gather what the pure kernels take. Scores that are exact, or that nothing is known of, are put right afterwards
(`point_scores`).
"""

import numpy as np

from itembank.bank.bank_factors import bank_factor_model
from itembank.estimation import estimator_specs as specs
from itembank.estimation.gp_irt import estimated_factor, gp_irt, sample_share
from itembank.estimation.point import Known, calibration_scores, target_weights
from itembank.estimation.regression.factor import predict_factor
from itembank.estimation.regression.ridge import predict_ridge
from itembank.estimation.regression.task_mean import predict_task_mean, predict_task_mean_eb
from itembank.estimation.sample_means import weighted_mean
from itembank.numerics.arrays import FloatArray


def by_mean(known: Known, spec: specs.SampleMean) -> FloatArray:  # noqa: ARG001 (the signature of all)
    """Plain mean of the observed responses of each scenario."""
    return known.bank.targets.with_overall(known.summary.sample_mean)


def by_weighted_mean(known: Known, spec: specs.Weighted) -> FloatArray:  # noqa: ARG001
    """Weighted mean of the observed responses of each scenario."""
    return known.bank.targets.with_overall(known.summary.weighted)


def by_p_irt(known: Known, spec: specs.PIRT) -> FloatArray:  # noqa: ARG001
    """Observed responses as they are, the item model's probability for the rest."""
    return known.bank.targets.with_overall(known.summary.posterior_mean)


def by_gp_irt(known: Known, spec: specs.GPIRT) -> FloatArray:
    """Mixture of the weighted mean and p-IRT."""
    summary = known.summary
    mixed = gp_irt(summary.weighted, summary.posterior_mean, gp_irt_share(known, spec))
    return known.bank.targets.with_overall(mixed)


def gp_irt_share(known: Known, spec: specs.GPIRT) -> FloatArray:
    """gp-IRT's lambda, (n_models, n_scenarios)."""
    bank, summary = known.bank, known.summary
    bias = np.where(np.isnan(bank.item_model_bias), spec.unmeasured_bias, bank.item_model_bias)
    n_effective = summary.n_effective if known.observations.is_random else summary.n_observed.astype(np.float64)
    return sample_share(bias, bank.response_variance, n_effective, _variance_factor(known, spec))


def by_task_mean(known: Known, spec: specs.TaskMean) -> FloatArray:  # noqa: ARG001
    """Mean score of the calibration models."""
    return predict_task_mean(*known.for_regression())


def by_task_mean_eb(known: Known, spec: specs.TaskMeanEB) -> FloatArray:
    """Observed responses of a scenario drawn towards the calibration models' mean score of it."""
    targets = known.bank.targets
    return predict_task_mean_eb(
        *known.for_regression(),
        scenario_index=targets.scenario_index[known.observations.positions],
        scenario_weights=targets.scenario_weights,
        strength=spec.strength,
    )


def by_ridge(known: Known, spec: specs.Ridge) -> FloatArray:
    """Ridge regression, drawn to the weighted mean of the selection or to zero."""
    observations, is_weighted = known.observations, spec.towards == "weights"
    scenarios = known.bank.targets.scenario_index[observations.positions]
    return predict_ridge(
        *known.for_regression(),
        penalty=None if spec.penalty == "leave-one-out" else spec.penalty,
        column_weights=observations.weights if is_weighted else None,
        scenario_index=scenarios if is_weighted else None,
    )


def by_factor_model(known: Known, spec: specs.Factor) -> FloatArray:
    """Mean of the score under a linear-Gaussian factor model of all items."""
    bank, observations = known.bank, known.observations
    model = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
    return predict_factor(model, observations.positions, target_weights(bank), observations.responses).value


def _variance_factor(known: Known, spec: specs.GPIRT) -> FloatArray:
    """How many times smaller than a random sample's the variance of the weighted mean is, (n_scenarios,)."""
    bank, observations = known.bank, known.observations
    n_scenarios = bank.targets.n_scenarios
    if observations.is_random:
        return np.ones(n_scenarios)
    if spec.anchor_variance_factor != "estimated":
        return np.full(n_scenarios, float(spec.anchor_variance_factor))
    bank.check_responses("The variance factor 'estimated' needs")
    positions = observations.selected
    scenario = bank.targets.scenario_index[positions]
    answered = bank.responses.of_items(positions)
    weighted = weighted_mean(answered, observations.selected_weights, scenario, n_scenarios)
    n_selected = np.bincount(scenario, minlength=n_scenarios)
    return estimated_factor(weighted, calibration_scores(bank)[:, :-1], bank.response_variance, n_selected)
