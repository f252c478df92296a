"""Two methods of 2025 and 2026 as baselines of the studies: AIPW and Bayesian quadrature.

They are methods of another package, as docs/own-methods.md has it: `install` adds them to the tables of this process.

- ``aipw``: the estimate of "How Benchmark Prediction from Fewer Data Misses the Mark" (arXiv 2506.07673), for items
  drawn at random. The paper finds that it alone beats the mean of random items for models beyond the past ones.
- ``bayesian-quadrature``, to choose and to estimate: ProEval (arXiv 2604.23099), a Gaussian process pre-trained on past
  models, in its form with scores as features.

TailoredBench (arXiv 2502.13576) asks in two stages and EssenceBench (arXiv 2510.10457) searches by a genetic
algorithm; they have no baseline here.
"""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.point import Known, target_weights
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.selector_specs import METHODS as SELECTORS
from itembank.selection.selector_specs import SelectionSpec

AIPW, QUADRATURE = "aipw", "bayesian-quadrature"
RIDGE_PENALTY = 10.0
"""Of the authors' implementation (github.com/socialfoundations/benchmark-prediction)."""
NOISE_VARIANCE = 0.3
"""Of the authors' implementation (github.com/google-deepmind/proeval)."""


@dataclass(frozen=True, slots=True)
class AIPWSpec(PointSpec):
    """Ridge regression of a model's responses on those of past models, corrected by the sample's residuals."""

    penalty: float = RIDGE_PENALTY


@dataclass(frozen=True, slots=True)
class QuadratureSpec(PointSpec):
    """Posterior mean of the score under a Gaussian process with the past models' mean and covariance."""

    noise: float = NOISE_VARIANCE


@dataclass(frozen=True, slots=True)
class QuadratureItems(SelectionSpec):
    """Items that lower the posterior variance of the overall score most, one after the other."""

    noise: float = NOISE_VARIANCE

    def may_skip_scenarios(self, *, is_short: bool) -> bool:  # noqa: ARG002
        """Return True: the paper chooses for one mean."""
        return True


def by_aipw(known: Known, spec: AIPWSpec) -> FloatArray:
    """Sum up predictions of all items, and add what the asked ones differ from theirs."""
    targets, observations = known.bank.targets, known.observations
    past = filled(known.bank.responses.responses)
    scenario = targets.scenario_index[observations.positions]
    omega = target_weights(known.bank)[:, : targets.n_scenarios]
    scores = np.empty((observations.responses.shape[0], targets.n_scenarios))
    for row, answers in enumerate(observations.responses):
        is_known = ~np.isnan(answers)
        positions, observed = observations.positions[is_known], answers[is_known]
        predicted = ridge_predictions(past, positions, observed, spec.penalty)
        weights = observations.weights[is_known]
        residual = np.bincount(scenario[is_known], weights * (observed - predicted[positions]), targets.n_scenarios)
        mass = np.bincount(scenario[is_known], weights, targets.n_scenarios)
        scores[row] = predicted @ omega + np.divide(residual, mass, out=np.zeros(mass.size), where=mass > 0.0)
    return np.clip(targets.with_overall(scores), 0.0, 1.0)


def ridge_predictions(past: FloatArray, positions: IntArray, observed: FloatArray, penalty: float) -> FloatArray:
    """Predict a model's responses to all items from its own to some, (n_items,).

    Items are the observations: ``g(i) = mean(y_S) + (x_i - mean(x_S))' b`` with ``b`` of least ``|y - g|^2 + penalty
    |b|^2``, where x_i holds the past models' responses to item i and the intercept is free.

    Parameters
    ----------
    past : (n_models, n_items)
    positions, observed : (n_observed,)
        Items that were asked, and the responses to them.
    penalty : float
    """
    if not observed.size:
        return past.mean(axis=0)
    features = past[:, positions] - past[:, positions].mean(axis=1, keepdims=True)
    gram = features.T @ features + penalty * np.eye(observed.size)
    coefficients = features @ np.linalg.solve(gram, observed - observed.mean())
    result: FloatArray = observed.mean() + (past.T - past[:, positions].mean(axis=1)) @ coefficients
    return result


def by_quadrature(known: Known, spec: QuadratureSpec) -> FloatArray:
    """Weigh the posterior means of all items, asked ones too."""
    observations = known.observations
    mean, features = prior(known.bank.responses.responses)
    weights = target_weights(known.bank)
    rows = []
    for answers in observations.responses:
        is_known = ~np.isnan(answers)
        positions = observations.positions[is_known]
        rows.append(weights.T @ posterior_mean(mean, features, positions, answers[is_known], spec.noise))
    return np.clip(np.array(rows), 0.0, 1.0)


def prior(past: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (n_items,) and features X (n_items, n_models) of a Gaussian process of covariance ``X X'``.

    Both are those of the past models' responses (n_models, n_items): ``X X'`` is their covariance over models.
    """
    complete = filled(past)
    mean = complete.mean(axis=0)
    return mean, (complete - mean).T / np.sqrt(max(past.shape[0] - 1, 1))


def posterior_mean(
    mean: FloatArray, features: FloatArray, positions: IntArray, observed: FloatArray, noise: float
) -> FloatArray:
    """Mean of the process at all items given noisy responses to some, (n_items,).

    ``m + X X_S' (X_S X_S' + noise I)^-1 (y_S - m_S)``, solved among the items or among the models, whichever are fewer.
    """
    asked = features[positions]
    precision = np.eye(features.shape[1]) + asked.T @ asked / noise
    result: FloatArray = mean + features @ np.linalg.solve(precision, asked.T @ (observed - mean[positions]) / noise)
    return result


def by_integral(pools: ItemPools, spec: QuadratureItems) -> list[Choice]:
    """Choose for the overall score, whatever scenario items are of; each weighs as in the score."""
    bank = pools.bank
    _, features = prior(bank.responses.responses)
    is_open = np.zeros(bank.n_items, dtype=bool)
    for pool in pools.scenarios:
        is_open[pool.items] = pool.is_candidate
    chosen = greedy_integral(features, bank.targets.overall_weights, is_open, pools.n_items, spec.noise)
    return [_choice(pool.weights, np.flatnonzero(np.isin(pool.items, chosen))) for pool in pools.scenarios]


def greedy_integral(
    features: FloatArray, weights: FloatArray, is_open: BoolArray, n_items: int, noise: float
) -> IntArray:
    """Choose one item after the other, each of the largest fall in ``Var(w' f)``, (n_items,).

    With A the posterior covariance of the features' coefficients, item i lowers it by
    ``(w' X A x_i)^2 / (x_i' A x_i + noise)``, and then ``A <- A - A x_i x_i' A / (x_i' A x_i + noise)``.
    """
    covariance, lever = np.eye(features.shape[1]), features.T @ weights
    is_open, chosen = is_open.copy(), []
    for _ in range(n_items):
        spread = features @ covariance
        own = np.einsum("ik,ik->i", spread, features) + noise
        item = int(first_largest(np.where(is_open, (spread @ lever) ** 2 / own, -np.inf)))
        covariance = covariance - np.outer(spread[item], spread[item]) / own[item]
        is_open[item] = False
        chosen.append(item)
    return np.array(chosen, dtype=np.int64)


def filled(past: FloatArray) -> FloatArray:
    """Put the mean of an item where a past model has no response to it."""
    if not np.isnan(past).any():
        return past
    return np.where(np.isnan(past), np.nanmean(past, axis=0), past)


def _choice(weights: FloatArray, chosen: IntArray) -> Choice:
    own = weights[chosen]
    return Choice(chosen, own / own.sum() if own.size else own)


def install() -> None:
    """Add the methods to this process, once."""
    if AIPW not in ESTIMATORS.names():
        ESTIMATORS.register(AIPW, AIPWSpec, by_aipw)
        ESTIMATORS.register(QUADRATURE, QuadratureSpec, by_quadrature)
        SELECTORS.register(QUADRATURE, QuadratureItems, by_integral)
