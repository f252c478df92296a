"""V-optimal items for one model: those whose responses leave the least uncertainty about its own scores.

Near a model's ability the item model is linear and Gaussian: responses rise with ability as steeply as the items'
curves do there, and scatter as much as they do there. What the item model does not explain of the calibration models'
responses is a factor model of its own. Together they say which items tell most about this model, where the one design
for all models (`v_optimal`) takes slopes and scatter of an average one.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.data.bank_factors import bank_factor_model, fitted_factor_model
from itembank.data.banks import Bank
from itembank.factors.linear_gaussian import FactorModel, factor_posterior, fit_factor_model
from itembank.irt.bernoulli import probability
from itembank.irt.families import ResponseModel
from itembank.irt.means import mean_terms
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.anchor_latent import latent_features
from itembank.selection.nearest import weighted_by_nearest
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import candidates, scenario_pools
from itembank.selection.specs import VOptimal
from itembank.selection.v_optimal import greedy_v_optimal, wanted_scores

N_NODES = 7
"""Gauss-Hermite nodes over a model's uncertain ability: exact for polynomials of degree 13 in the logit."""
SMALLEST_NOISE = 0.02
"""Least noise of an item at any ability, as a fraction of the items' mean: curves are never known to be so flat."""


@dataclass(frozen=True, slots=True)
class LocalDesign:
    """What of a bank the next items of any model are chosen by.

    Attributes
    ----------
    parameters : ItemParameters
    prior_root : (n_dims, n_dims)
        Lower Cholesky factor of the covariance of the ability prior.
    residual : FactorModel
        Of the calibration responses less the item model's means.
    shifts : (n_items, n_shifts)
        Loadings of the shifts of `bank_factor_model`.
    scatter : (n_items,)
        Mean of p (1 - p) over the calibration models: what the residuals' size belongs to.
    features : (n_items, n_features)
        What makes items similar, for the weights of the chosen ones.
    pools : tuple of n_scenarios ScenarioPool
    target_weights : (n_items, n_targets)
    importance : (n_targets,)
    """

    parameters: ItemParameters
    prior_root: FloatArray
    residual: FactorModel
    shifts: FloatArray
    scatter: FloatArray
    features: FloatArray
    pools: tuple[ScenarioPool, ...]
    target_weights: FloatArray
    importance: FloatArray

    @classmethod
    def of_bank(cls, bank: Bank, spec: VOptimal, excluded: Collection[str]) -> Self:
        """Fit the residuals of the calibration models, once for many choices.

        Raises
        ------
        DataError
            For a bank that was published without responses.
        """
        bank.check_responses("Choosing a next stage needs")
        means = probability(bank.parameters, bank.calibration.abilities)  # (n_models, n_items)
        usual = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
        target_weights, importance = wanted_scores(bank.targets, spec)
        is_candidate = candidates(bank, spec, excluded)
        return cls(
            bank.parameters,
            np.linalg.cholesky(bank.calibration.prior.covariance),
            _residual_model(bank.responses.responses - means, spec),
            usual.loadings[:, fitted_factor_model(bank, spec.n_factors).n_factors :],
            np.mean(means * (1.0 - means), axis=0),
            latent_features(usual),
            scenario_pools(bank, is_candidate, np.zeros(bank.n_items, dtype=bool)),
            target_weights,
            importance,
        )

    def next_items(
        self, theta: FloatArray, covariance: FloatArray, answered: IntArray, n_items: int, *, asked: IntArray
    ) -> IntArray:
        """Choose the items that leave the least uncertainty about one model's scores, given those it answered.

        Parameters
        ----------
        theta, covariance : (n_dims,), (n_dims, n_dims)
            Posterior of its ability.
        answered : (n_answered,)
            Positions of the items it answered.
        n_items : int
            How many to choose; fewer come where no more can.
        asked : (n_asked,)
            Positions of the items that it was asked, answered or not: none is chosen again.

        Returns
        -------
        (n_items,)
            Positions in the bank, in the order of choice.
        """
        model = local_factor_model(self, theta, covariance)
        # what is answered is known: the design is that for the other items' part of the scores, given the answers
        items = np.concatenate([pool.items for pool in self.pools])
        is_open = np.concatenate([pool.is_candidate for pool in self.pools]) & ~np.isin(items, asked)
        given = factor_posterior(model, answered, np.zeros((0, answered.size))).covariance
        weights = self.target_weights.copy()
        weights[answered] = 0.0
        greedy = greedy_v_optimal(
            (model.loadings @ np.linalg.cholesky((given + given.T) / 2.0))[items],
            model.noise[items],
            weights[items],
            self.importance,
            min(n_items, int(is_open.sum())),
            is_candidate=is_open,
            group=np.zeros(items.size, dtype=np.int64),
            at_least=np.zeros(1, dtype=np.int64),
            at_most=np.array([items.size]),
        )
        return items[greedy.items]

    def weights_of(self, chosen: IntArray) -> FloatArray:
        """Weights of chosen items in the weighted means of their scenarios, as of the design for all models.

        Parameters
        ----------
        chosen : (n_chosen,)
            Positions in the bank.

        Returns
        -------
        (n_chosen,)
        """
        weights = np.zeros(self.scatter.size)
        for pool in self.pools:
            choice = weighted_by_nearest(pool, self.features[pool.items], np.flatnonzero(np.isin(pool.items, chosen)))
            weights[pool.items[choice.chosen]] = choice.weights
        return weights[chosen]


def local_factor_model(design: LocalDesign, theta: FloatArray, covariance: FloatArray) -> FactorModel:
    """Linear-Gaussian model of one model's responses: its factors are ability, those of residuals, and shifts.

    ``y_i = E p_i + E[dp_i/dtheta]' (theta - E theta) + k_i (R_i f + e_i) + S_i u`` with expectations over the posterior
    of ability, R and ``Var e_i`` of the residuals, shifts S, and ``k_i^2 = E[p_i (1 - p_i)]`` over its mean for the
    calibration models: residuals keep their size in units of a response's standard deviation, and shifts, which stand
    for what calibration models do not show, in points. In every family of responses their variance is ``p (1 - p)``
    times a factor of the item (for one: one over the number of trials), so that residuals measured on the responses
    themselves serve all families. The factors of ability have the prior's covariance, which the answers then narrow as
    any other factor's.
    """
    parameters, residual = design.parameters, design.residual
    spread = np.sqrt(np.einsum("id,de,ie->i", parameters.loadings, covariance, parameters.loadings))
    mean, slope, scatter = _expected_curve(parameters, parameters.loadings @ theta + parameters.intercept, spread)
    ratio = scatter / np.maximum(design.scatter, np.finfo(np.float64).tiny)
    noise = np.maximum(residual.noise * ratio, SMALLEST_NOISE * residual.noise.mean())
    of_ability = slope[:, None] * (parameters.loadings @ design.prior_root)
    of_residual = residual.loadings * np.sqrt(ratio)[:, None]
    return FactorModel(mean, np.column_stack([of_ability, of_residual, design.shifts]), noise)


def _expected_curve(
    parameters: ItemParameters, logit: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means over a normal logit of each item of p, its slope in the logit, and p (1 - p), each (n_items,)."""
    asymptotes = ResponseModel.of(parameters).asymptotes
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    result = np.zeros((3, logit.size))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        at = mean_terms(logit + node * spread, asymptotes)
        result += weight * np.stack([at.p, at.first, at.p * at.q])
    return result[0], result[1], result[2]


def _residual_model(residual: FloatArray, spec: VOptimal) -> FactorModel:
    """Fit residuals (n_models, n_items) of responses in [0, 1]."""
    # as numbers in [0, 1], since missing responses are filled in as such
    fitted = fit_factor_model((residual + 1.0) / 2.0, n_factors=spec.n_factors)
    return FactorModel(2.0 * fitted.mean - 1.0, 2.0 * fitted.loadings, 4.0 * fitted.noise)
