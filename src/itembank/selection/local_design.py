"""V-optimal items for one model: those whose responses leave the least uncertainty about its own scores.

They are chosen by the linear-Gaussian model of responses near its ability (`local_model`), where the one design for
all models (`v_optimal`) takes slopes and scatter of an average one.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.bank_factors import bank_factor_model
from itembank.bank.banks import Bank
from itembank.irt.linear_gaussian import factor_posterior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.selection.anchors import latent_features
from itembank.selection.local_model import LocalModel
from itembank.selection.nearest import weighted_by_nearest
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
        """Fit the residuals of the calibration models, once for many choices.

        Raises
        ------
        DataError
            For a bank that was published without responses.
        """
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
        theta: FloatArray,
        covariance: FloatArray,
        answered: IntArray,
        n_items: int,
        *,
        asked: IntArray,
        most_scenarios: int | None = None,
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
        most_scenarios : int or None
            How many scenarios they are of at most: those of which most would be chosen without this limit.

        Returns
        -------
        (n_items,)
            Positions in the bank, in the order of choice.
        """
        model = self.local.at(theta, covariance)
        # what is answered is known: the design is that for the other items' part of the scores, given the answers
        items = np.concatenate([pool.items for pool in self.pools])
        is_open = np.concatenate([pool.is_candidate for pool in self.pools]) & ~np.isin(items, asked)
        given = factor_posterior(model, answered, np.zeros((0, answered.size))).covariance
        weights = self.target_weights.copy()
        weights[answered] = 0.0
        near = LinearModel(model.loadings @ np.linalg.cholesky((given + given.T) / 2.0), model.noise).take(items)

        def chosen_of(is_candidate: BoolArray) -> IntArray:
            return greedy_v_optimal(
                near,
                weights[items],
                self.importance,
                min(n_items, int(is_candidate.sum())),
                is_candidate=is_candidate,
                group=np.zeros(items.size, dtype=np.int64),
                at_least=np.zeros(1, dtype=np.int64),
                at_most=np.array([items.size]),
            ).items

        chosen = chosen_of(is_open)
        if most_scenarios is not None:
            scenario = np.repeat(np.arange(len(self.pools)), [pool.items.size for pool in self.pools])
            kept = _most_frequent(scenario[chosen], most_scenarios, scenario[is_open])
            if kept.size < np.unique(scenario[chosen]).size:
                chosen = chosen_of(is_open & np.isin(scenario, kept))
        return items[chosen]

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
        weights = np.zeros(self.target_weights.shape[0])
        for pool in self.pools:
            choice = weighted_by_nearest(pool, self.features[pool.items], np.flatnonzero(np.isin(pool.items, chosen)))
            weights[pool.items[choice.chosen]] = choice.weights
        return weights[chosen]


def _most_frequent(chosen: IntArray, most: int, open_ones: IntArray) -> IntArray:
    """Return so many scenarios of which most items were chosen; of equals those with more open items, then the first.

    Parameters
    ----------
    chosen, open_ones : (n_chosen,), (n_open,)
        Scenario of each item that was chosen, and that can be.
    most : int
    """
    size = int(open_ones.max(initial=0)) + 1
    counts, room = np.bincount(chosen, minlength=size), np.bincount(open_ones, minlength=size)
    order = np.lexsort((-room, -counts))[:most]
    return order[counts[order] > 0]
