"""Estimates of the full scores by one method: from new models' responses and the bank, without intervals."""

import numpy as np

from itembank.data.bank_factors import bank_factor_model
from itembank.data.banks import Bank
from itembank.data.targets import ScoreTargets
from itembank.estimation.evidence import Evidence, gather_evidence
from itembank.estimation.gp_irt import estimated_factor, gp_irt, sample_share
from itembank.estimation.observations import Observations
from itembank.estimation.regression.factor import predict_factor
from itembank.estimation.regression.metabench import predict_metabench
from itembank.estimation.regression.ridge import predict_ridge
from itembank.estimation.regression.signature import predict_k_nearest, predict_random_forest
from itembank.estimation.regression.specs import (
    Factor,
    KNearest,
    Metabench,
    RandomForest,
    Ridge,
    TaskMean,
    TaskMeanEB,
)
from itembank.estimation.regression.task_mean import predict_task_mean, predict_task_mean_eb
from itembank.estimation.specs import GPIRT, PIRT, PointSpec, SampleMean, Weighted
from itembank.estimation.weighted import weighted_mean
from itembank.numerics.arrays import FloatArray


def point_scores(bank: Bank, observations: Observations, evidence: Evidence, spec: PointSpec) -> FloatArray:
    """Estimate every scenario's score and the overall one, (n_models, n_scenarios + 1).

    A scenario that was answered in full has its exact score by every method. NaN where the method has nothing to
    go by, and for models without any response.
    """
    if isinstance(spec, SampleMean | Weighted | PIRT | GPIRT):
        scores = bank.targets.with_overall(_scenario_scores(bank, observations, evidence, spec))
    else:
        scores = _from_calibration_models(bank, observations, evidence, spec)
    return with_certain(bank.targets, evidence, scores)


def with_certain(targets: ScoreTargets, evidence: Evidence, scores: FloatArray) -> FloatArray:
    """Put exact scores where everything was observed, and NaN where nothing was."""
    result = with_exact(targets, evidence, scores)
    result[evidence.is_silent] = np.nan
    return result


def with_exact(targets: ScoreTargets, evidence: Evidence, scores: FloatArray) -> FloatArray:
    """Put exact scores where everything was observed, (n_models, n_scenarios + 1)."""
    is_complete = evidence.is_complete
    whole = np.column_stack([is_complete, is_complete.all(axis=1)])
    return np.where(whole, targets.with_overall(evidence.known), scores)


def weighted_means(responses: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean response of each model over the items it answered, (n_models,); NaN without one that weighs.

    Parameters
    ----------
    responses : (n_models, n_items)
        NaN where missing.
    weights : (n_items,)
    """
    mass: FloatArray = ~np.isnan(responses) @ weights
    total = np.nan_to_num(responses) @ weights
    result: FloatArray = np.divide(total, mass, out=np.full(mass.shape, np.nan), where=mass > 0.0)
    return result


def calibration_scores(bank: Bank) -> FloatArray:
    """Full scores of the calibration models over the items each answered, (n_models, n_scenarios + 1)."""
    return bank.cache.remember("scores", lambda: bank.targets.with_overall(bank.scenario_scores))


def target_weights(bank: Bank) -> FloatArray:
    """Weight of every item in each target, (n_items, n_scenarios + 1)."""
    return bank.cache.remember(
        "target weights", lambda: np.column_stack([bank.targets.target(name).weights for name in bank.targets.names])
    )


def gp_irt_share(bank: Bank, observations: Observations, evidence: Evidence, spec: GPIRT) -> FloatArray:
    """gp-IRT's lambda, (n_models, n_scenarios)."""
    bias = np.where(np.isnan(bank.item_model_bias), spec.unmeasured_bias, bank.item_model_bias)
    n_effective = evidence.n_effective if observations.is_random else evidence.n_observed.astype(np.float64)
    factor = _variance_factor(bank, observations, spec)
    return sample_share(bias, bank.response_variance, n_effective, factor)


def _scenario_scores(
    bank: Bank, observations: Observations, evidence: Evidence, spec: SampleMean | Weighted | PIRT | GPIRT
) -> FloatArray:
    match spec:
        case SampleMean():
            return evidence.sample_mean
        case Weighted():
            return evidence.weighted
        case PIRT():
            return evidence.posterior_mean
        case GPIRT():
            share = gp_irt_share(bank, observations, evidence, spec)
            return gp_irt(evidence.weighted, evidence.posterior_mean, share)


def _variance_factor(bank: Bank, observations: Observations, spec: GPIRT) -> FloatArray:
    """How many times smaller than a random sample's the variance of the weighted mean is, (n_scenarios,)."""
    n_scenarios = bank.targets.n_scenarios
    if observations.is_random:
        return np.ones(n_scenarios)
    if spec.anchor_variance_factor != "estimated":
        return np.full(n_scenarios, float(spec.anchor_variance_factor))
    positions = observations.selected
    scenario = bank.targets.scenario_index[positions]
    answered = bank.responses.responses[:, positions]
    weighted = weighted_mean(answered, observations.selected_weights, scenario, n_scenarios)
    n_selected = np.bincount(scenario, minlength=n_scenarios)
    return estimated_factor(weighted, bank.scenario_scores, bank.response_variance, n_selected)


def _from_calibration_models(  # noqa: PLR0911 (a return for each method)
    bank: Bank, observations: Observations, evidence: Evidence, spec: PointSpec
) -> FloatArray:
    """Run a method that learns from the calibration models' responses and scores."""
    positions = observations.positions
    known = (bank.responses.responses[:, positions], calibration_scores(bank), observations.responses)
    match spec:
        case TaskMean():
            return predict_task_mean(*known)
        case TaskMeanEB():
            return predict_task_mean_eb(
                *known,
                scenario_index=bank.targets.scenario_index[positions],
                scenario_weights=bank.targets.scenario_weights,
                strength=spec.strength,
            )
        case Ridge():
            return _ridge(bank, observations, spec)
        case KNearest():
            count = None if spec.n_neighbours == "leave-one-out" else spec.n_neighbours
            return predict_k_nearest(*known, n_neighbours=count, n_components=spec.n_components)
        case RandomForest():
            return predict_random_forest(*known, n_trees=spec.n_trees, n_components=spec.n_components, seed=spec.seed)
        case Metabench():
            return predict_metabench(
                *known,
                train_abilities=_abilities_on(bank, observations),
                new_abilities=evidence.abilities,
                column_weights=target_weights(bank)[positions],
                n_knots=spec.n_knots,
            )
        case Factor():
            model = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
            return predict_factor(model, positions, target_weights(bank), observations.responses).value
        case _:
            raise TypeError(f"no point estimate by {type(spec).__name__}")


def _ridge(bank: Bank, observations: Observations, spec: Ridge) -> FloatArray:
    """Ridge regression, drawn to the weighted mean of the selection or to zero."""
    positions = observations.positions
    is_weighted = spec.towards == "weights"
    return predict_ridge(
        bank.responses.responses[:, positions],
        calibration_scores(bank),
        observations.responses,
        penalty=None if spec.penalty == "leave-one-out" else spec.penalty,
        column_weights=observations.weights if is_weighted else None,
        scenario_index=bank.targets.scenario_index[positions] if is_weighted else None,
    )


def _abilities_on(bank: Bank, observations: Observations) -> FloatArray:
    """Abilities of the calibration models from the same items as the new models', (n_models, n_dims)."""
    same = observations.answered_by_calibration_models(bank)
    return gather_evidence(bank, same).abilities
