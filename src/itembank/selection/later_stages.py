"""The later stages of a test: the items that are V-optimal for what one model's answers so far say of it.

Near a model's ability the item model is linear and Gaussian: responses rise with ability as steeply as the items'
curves do there, and scatter as much as they do there. What the item model does not explain of the past models'
responses is a factor model of its own. Together they say which items tell most about models of this ability, where
`bank_factor_model` takes slopes and scatter of an average one: past models of all abilities taken together.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.bank.norms import bank_factor_model, columns_of, fitted_factor_model
from itembank.irt.bernoulli import probability
from itembank.irt.families import expected_curve
from itembank.irt.linear_gaussian import FactorModel, factor_posterior, fit_factor_model
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.anchors import latent_features, weighted_by_nearest
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import candidates, scenario_pools
from itembank.selection.selector_specs import VOptimal
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal, wanted_scores

SCATTER = "scatter"
SMALLEST_NOISE = 0.02
"""Least noise of an item at any ability, as a fraction of the items' mean: curves are never known to be so flat."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """What of a bank the linear-Gaussian models at all abilities are made of."""

    parameters: ItemParameters
    of_ability: FloatArray  # (n_items, n_dims): Slopes of the logits in abilities of variance one, by the prior
    residual: FactorModel  # Of the calibration responses less the item model's means
    shifts: FloatArray  # (n_items, n_shifts): Loadings of the shifts of `bank_factor_model`
    # (n_items,): Mean of p (1 - p) over the past models: what the residuals' size belongs to.
    scatter: FloatArray

    @classmethod
    def of_bank(cls, bank: Bank, spec: VOptimal) -> Self:
        """Fit the residuals of the past models, which the bank must hold; once for a bank in memory."""
        return bank.cache.remember(("local model", spec.n_factors, spec.discrepancy), lambda: cls._of_bank(bank, spec))

    @classmethod
    def _of_bank(cls, bank: Bank, spec: VOptimal) -> Self:
        def fit() -> dict[str, FloatArray]:
            scatter = np.empty(bank.n_items)

            def residuals(place: slice, responses: FloatArray) -> FloatArray:
                items = np.arange(place.start, place.stop)
                means = probability(bank.parameters.take(items), bank.calibration.abilities)
                scatter[place] = np.mean(means * (1.0 - means), axis=0)
                # as numbers in [0, 1], since missing responses are filled in as such
                return (responses - means + 1.0) / 2.0

            fitted = fit_factor_model(columns_of(bank.responses).changed(residuals), n_factors=spec.n_factors)
            loadings = np.ascontiguousarray(2.0 * fitted.loadings)
            return {
                "mean": 2.0 * fitted.mean - 1.0,
                "loadings": loadings,
                "noise": 4.0 * fitted.noise,
                SCATTER: scatter,
            }

        def fits(kept: dict[str, FloatArray]) -> bool:
            return kept.keys() == {"mean", "loadings", "noise", SCATTER} and len(kept[SCATTER]) == bank.n_items

        found = dict(bank.cache.arrays(cache_name("residuals", str(spec.n_factors)), fit, fits=fits))
        usual = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
        return cls(
            bank.parameters,
            bank.parameters.loadings @ np.linalg.cholesky(bank.calibration.prior.covariance),
            scatter=found.pop(SCATTER),
            residual=FactorModel(**found),
            shifts=usual.loadings[:, fitted_factor_model(bank, spec.n_factors).n_factors :],
        )

    def at(
        self,
        theta: FloatArray,  # (n_dims,): Posterior of ability; a covariance of zero for one that is known
        covariance: FloatArray,  # (n_dims, n_dims)
    ) -> FactorModel:
        """Linear-Gaussian model of one model's responses: its factors are ability, those of residuals, and shifts.

        ``y_i = E p_i + E[dp_i/dtheta]' (theta - E theta) + k_i (R_i f + e_i) + S_i u`` with expectations over the
        posterior of ability, R and ``Var e_i`` of the residuals, shifts S, and ``k_i^2 = E[p_i (1 - p_i)]`` over its
        mean for the past models: residuals keep their size in units of a response's standard deviation, and
        shifts, which are for what past models do not show, in points. In every family of responses their
        variance is ``p (1 - p)`` times a factor of the item (for one: one over the number of trials), so that
        residuals measured on the responses themselves serve all families. The factors of ability have the prior's
        covariance, which the answers then narrow as any other factor's.
        """
        parameters, residual = self.parameters, self.residual
        spread = np.sqrt(np.einsum("id,de,ie->i", parameters.loadings, covariance, parameters.loadings))
        mean, slope, scatter = expected_curve(parameters, parameters.loadings @ theta + parameters.intercept, spread)
        ratio = scatter / np.maximum(self.scatter, np.finfo(np.float64).tiny)
        noise = np.maximum(residual.noise * ratio, SMALLEST_NOISE * residual.noise.mean())
        of_ability, of_residual = slope[:, None] * self.of_ability, self.residual.loadings * np.sqrt(ratio)[:, None]
        return FactorModel(mean, np.column_stack([of_ability, of_residual, self.shifts]), noise)


@dataclass(frozen=True, slots=True)
class LocalDesign:
    """What of a bank the next items of any model are chosen by."""

    local: LocalModel
    features: FloatArray  # (n_items, n_features): What makes items similar, for the weights of the chosen ones
    pools: tuple[ScenarioPool, ...]
    target_weights: FloatArray  # (n_items, n_targets)
    importance: FloatArray  # (n_targets,)

    @classmethod
    def of_bank(cls, bank: Bank, spec: VOptimal, excluded: Collection[str]) -> Self:
        """Fit the residuals of the past models, once for many choices."""
        bank.check_responses("Choosing a next stage needs")
        usual = bank_factor_model(bank, n_factors=spec.n_factors, discrepancy=spec.discrepancy)
        target_weights, importance = wanted_scores(bank.targets, spec)
        is_candidate = candidates(bank, spec, excluded)
        return cls(
            LocalModel.of_bank(bank, spec),
            latent_features(usual),
            scenario_pools(bank, is_candidate, np.zeros(bank.n_items, dtype=bool)),
            target_weights,
            importance,
        )

    def next_items(
        self,
        theta: FloatArray,  # (n_dims,): Posterior of its ability
        covariance: FloatArray,  # (n_dims, n_dims)
        answered: IntArray,  # (n_answered,): Positions of the items it answered
        n_items: int,  # How many to choose; fewer come where no more can
        *,
        # (n_asked,): Positions of the items that it was asked, answered or not: none is chosen again
        asked: IntArray,
    ) -> IntArray:
        """Positions of the items that leave the least uncertainty about one model's scores, in the order of choice."""
        model = self.local.at(theta, covariance)
        # what is answered is known: the design is that for the other items' part of the scores, given the answers
        items = np.concatenate([pool.items for pool in self.pools])
        is_open = np.concatenate([pool.is_candidate for pool in self.pools]) & ~np.isin(items, asked)
        _, given = factor_posterior(model, answered, np.zeros((0, answered.size)))
        weights = self.target_weights.copy()
        weights[answered] = 0.0
        loadings = model.loadings @ np.linalg.cholesky((given + given.T) / 2.0)
        chosen, _ = greedy_v_optimal(
            LinearModel(loadings[items], np.zeros((items.size, 0)), model.noise[items]),
            weights[items],
            self.importance,
            min(n_items, int(is_open.sum())),
            is_candidate=is_open,
            group=np.zeros(items.size, dtype=np.int64),
            at_least=np.zeros(1, dtype=np.int64),
            at_most=np.array([items.size]),
        )
        return items[chosen]

    def weights_of(self, chosen: IntArray) -> FloatArray:
        """Weights of items at these positions in the weighted means of their scenarios, (n_chosen,)."""
        weights = np.zeros(self.target_weights.shape[0])
        for pool in self.pools:
            choice = weighted_by_nearest(pool, self.features[pool.items], np.flatnonzero(np.isin(pool.items, chosen)))
            weights[pool.items[choice.chosen]] = choice.weights
        return weights[chosen]
