"""The methods of estimation, one function each: (`Known`, spec) to scores (n_models, n_scenarios + 1).

They gather what the pure kernels take. Scores that are exact, or that nothing is known of, are put right afterwards
(`point_scores`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model
from itembank.errors import ParameterError
from itembank.estimation import estimator_specs as specs
from itembank.estimation.asked import Asked
from itembank.estimation.estimator_specs import METHODS, PointSpec, Stacked
from itembank.estimation.headlines import learnt_by
from itembank.estimation.observations import Observations
from itembank.estimation.regressions import (
    FactorPrediction,
    combined,
    predict_factor,
    predict_ridge,
    predict_task_mean_eb,
    reconciled,
)
from itembank.estimation.response_summary import ResponseSummary, posterior_moments, summarise_responses, weighted_mean
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.responses.targets import ScoreTargets


@dataclass(frozen=True, slots=True)
class Known:
    """Data that every method of estimation may use."""

    asked: Asked  # The bank, and responses of the new models to some of its items
    summary: ResponseSummary  # What the item model and the sample say of these models
    # (n_models, n_targets): Scores of the past models that regressions are to learn instead of the bank's own.
    past_scores: FloatArray | None = None
    made: dict[object, FactorPrediction] = field(default_factory=dict, repr=False)  # What several methods ask for

    @classmethod
    def of(cls, asked: Asked) -> Self:
        """Summarise the responses."""
        return cls(asked, summarise_responses(asked.bank, asked.observations))

    @property
    def bank(self) -> Bank:
        """The bank whose scores are estimated."""
        return self.asked.bank

    @property
    def observations(self) -> Observations:
        """Responses of the new models to some items of the bank."""
        return self.asked.observations

    def take(self, *, models: IntArray, columns: IntArray) -> "Known":
        """Return the data of some models on some of the items; their summary stays that of all items."""
        asked = self.asked.take(models=models, columns=columns)
        return Known(asked, self.summary.take(models), self.past_scores)

    def for_regression(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Past models' responses to the observed items, their scores, and the new models' responses."""
        self.bank.check_responses("This method of estimation needs")
        scores = self.bank.best_known_scores if self.past_scores is None else self.past_scores
        return self.bank.responses.of_items(self.observations.positions), scores, self.observations.responses


def point_scores(known: Known, spec: PointSpec) -> FloatArray:
    """Estimate every scenario's score and the overall one, (n_models, n_scenarios + 1).

    A scenario that was answered in full has its exact score by every method. NaN where the method has nothing to
    go by, and for models without any response.
    """
    scores = METHODS.kernel(spec)(known, spec)
    shape = (known.observations.responses.shape[0], len(known.bank.targets.names))
    if scores.shape != shape:
        raise ParameterError(
            f"the kernel of method {METHODS.name_of(spec)!r} must return scores of shape {shape} (models; scenarios "
            f"and overall), got {scores.shape}."
        )
    result = with_exact(known.bank.targets, known.summary, scores)
    result[known.summary.is_silent] = np.nan
    return result


def learnt_score(
    known: Known,
    spec: PointSpec,
    past: FloatArray,  # (n_calibration_models,): NaN where not known
) -> FloatArray:
    """Estimate a score that is known of past models alone, (n_models,), by a method that `learns_scores`."""
    scores = np.column_stack([known.bank.best_known_scores[:, :-1], past])
    result: FloatArray = METHODS.kernel(spec)(replace(known, past_scores=scores), spec)[:, -1]
    return result


def learnt_headline(known: Known, members: Sequence[PointSpec]) -> FloatArray | None:
    """Estimate the bank's headline score by the method that learns it (`learnt_by`), (n_models,); None without one."""
    headline = known.bank.headline
    learner = learnt_by(headline, members)
    return None if headline is None or learner is None else learnt_score(known, learner, headline.past)


def estimated_by(known: Known, spec: PointSpec | Stacked, weights: FloatArray | None) -> FloatArray:
    """Estimate by a method, (n_models, n_targets); 'stacked' with these weights, or equal ones where there are none."""
    if not isinstance(spec, Stacked):
        return point_scores(known, spec)
    values = np.stack([point_scores(known, member) for member in spec.members])
    if weights is None:  # too few models to learn weights from
        weights = np.full((len(spec.members), values.shape[2]), 1.0 / len(spec.members))
    return stacked_scores(known.bank.targets, known.summary, values, weights)


def stacked_scores(
    targets: ScoreTargets,
    summary: ResponseSummary,
    values: FloatArray,  # (n_members, n_models, n_targets)
    weights: FloatArray,  # (n_members, n_targets)
) -> FloatArray:
    """Weigh the estimates of several methods and let scenarios add up to the overall score, (n_models, n_targets)."""
    _, variances = posterior_moments(targets, summary)
    value = combined(values, weights)
    return with_exact(targets, summary, reconciled(value, variances, targets.scenario_weights))


def with_exact(targets: ScoreTargets, summary: ResponseSummary, scores: FloatArray) -> FloatArray:
    """Put exact scores where everything was observed, (n_models, n_scenarios + 1)."""
    is_complete = summary.is_complete
    whole = np.column_stack([is_complete, is_complete.all(axis=1)])
    return np.where(whole, targets.with_overall(summary.known), scores)


def target_weights(bank: Bank) -> FloatArray:
    """Weight of every row of the bank's factor models in each target, (n_items, n_scenarios + 1).

    Of a bank that leaves out items those of each scenario are one more row (`Bank.rest`).
    """

    def find() -> FloatArray:
        targets = bank.targets
        of_items = np.column_stack([targets.target(name).weights for name in targets.names])
        of_rest = targets.with_overall(np.eye(targets.n_scenarios))
        return of_items if bank.rest is None else np.concatenate([of_items, of_rest])

    return bank.cache.remember("target weights", find)


def gp_irt(weighted: FloatArray, p_irt: FloatArray, sample_share: FloatArray) -> FloatArray:
    """Return ``lambda T_w + (1 - lambda) T_p`` (tinyBenchmarks eq. 4.4), (n_models, n_scenarios).

    Where nothing was observed the weighted mean is NaN and lambda 0: p-IRT alone is left.
    """
    return p_irt + sample_share * (np.where(np.isnan(weighted), p_irt, weighted) - p_irt)


def sample_share(
    bias: FloatArray,  # (n_scenarios,): b: mean absolute error of the item model's scenario score
    response_variance: FloatArray,  # (n_scenarios,): sigma^2: mean variance of the responses within the scenario
    # (n_models, n_scenarios): n: observed items of a scenario; of a random sample with unequal weights ``(sum w)^2 /
    # sum w^2``, as the variance of its weighted mean is ``sigma^2 sum w^2 / (sum w)^2``. Lambda is 0 where it is 0.
    n_effective: FloatArray,
    # (n_scenarios,): k: 1 for a random sample, 4 for anchor points (tinyBenchmarks), or estimated
    factor: FloatArray,
) -> FloatArray:
    """gp-IRT's lambda, ``b^2 / (b^2 + v)`` with ``v = sigma^2 / (k n)`` (tinyBenchmarks 4.2).

    The best mixture of an unbiased estimate of variance v and one of bias b without variance (Song 1988).

    Returns (n_models, n_scenarios): In [0, 1]; 0 where both b and v are 0, since then p-IRT is exact.
    """
    # an observed item counts as at least one effective item; without any, v is infinite and lambda zero
    variance = np.where(n_effective > 0.0, response_variance / (factor * np.maximum(n_effective, 1.0)), np.inf)
    total = bias**2 + variance  # (n_models, n_scenarios)
    return np.divide(bias**2, total, out=np.zeros(total.shape), where=total > 0.0)


def estimated_factor(
    # (n_models, n_scenarios): The past models' weighted anchor estimates and full scores; NaN is left out
    weighted: FloatArray,
    scores: FloatArray,  # (n_models, n_scenarios)
    response_variance: FloatArray,  # (n_scenarios,)
    n_selected: IntArray,  # (n_scenarios,): Items of the selection in each scenario
) -> FloatArray:
    """Measured k: ``(sigma^2 / n) / mean_l (T_lj - Z_lj)^2`` over the past models, (n_scenarios,).

    Infinite where the anchors made no error; 1 where no past model has both scores.
    """
    error = mean_where_known((weighted - scores) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = response_variance / (n_selected * error)
    return np.where(np.isnan(factor), 1.0, factor)


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
    """Mean score of the past models."""
    _, past_scores, responses = known.for_regression()
    return np.repeat(mean_where_known(past_scores)[None, :], responses.shape[0], axis=0)


def by_task_mean_eb(known: Known, spec: specs.TaskMeanEB) -> FloatArray:
    """Observed responses of a scenario drawn towards the past models' mean score of it."""
    targets = known.bank.targets
    return predict_task_mean_eb(
        *known.for_regression()[1:],
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
    return factor_prediction(known, spec).value


def factor_prediction(known: Known, spec: specs.Factor) -> FactorPrediction:
    """Predict scores by a factor model, once for all that ask."""
    if spec not in known.made:
        bank, observations = known.bank, known.observations
        model = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
        known.made[spec] = predict_factor(model, observations.positions, target_weights(bank), observations.responses)
    return known.made[spec]


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
    return estimated_factor(weighted, bank.known_scores.value[:, :-1], bank.response_variance, n_selected)
