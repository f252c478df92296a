"""The later stages of a test: the items that are V-optimal for what one model's answers so far say of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.bank_factors import bank_factor_model
from itembank.bank.banks import Bank
from itembank.irt.linear_gaussian import factor_posterior
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.anchors import latent_features, weighted_by_nearest
from itembank.selection.local_model import LocalModel
from itembank.selection.pools import ScenarioPool
from itembank.selection.select import candidates, scenario_pools
from itembank.selection.selector_specs import VOptimal
from itembank.selection.v_optimal import LinearModel, greedy_v_optimal, wanted_scores


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
        given = factor_posterior(model, answered, np.zeros((0, answered.size))).covariance
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
