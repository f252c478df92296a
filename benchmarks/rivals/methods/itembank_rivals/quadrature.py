"""Bayesian quadrature, to choose and to estimate: ProEval (arXiv 2604.23099).

A Gaussian process pre-trained on past models, in its form with scores as features.
"""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.point_methods import Known, target_weights
from itembank.methods import Method
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import first_largest
from itembank.selection.pools import Choice, ItemPools
from itembank.selection.selector_specs import SelectionSpec
from itembank_rivals.aipw import filled

NOISE_VARIANCE = 0.3
"""Of the authors' implementation (github.com/google-deepmind/proeval)."""


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


def _choice(weights: FloatArray, chosen: IntArray) -> Choice:
    own = weights[chosen]
    return Choice(chosen, own / own.sum() if own.size else own)


QUADRATURE = Method(QuadratureSpec, by_quadrature)
QUADRATURE_ITEMS = Method(QuadratureItems, by_integral)
