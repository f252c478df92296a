"""Items with the most Fisher information at every ability that occurs (metabench, arXiv 2407.12844)."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import logit
from itembank.irt.families import information_weights
from itembank.methods import Method
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import first_largest, rounded
from itembank.selection.anchors import irt_features, weighted_by_nearest
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.selector_specs import SelectionSpec


@dataclass(frozen=True, slots=True)
class Information(SelectionSpec):
    """The items of each scenario that tell most about ability at every level that occurs (metabench, arXiv 2407.12844).

    Informative items are not representative ones: estimate from ability or by a regression.
    """


def by_information(pools: ItemPools, spec: Information) -> list[Choice]:  # noqa: ARG001
    """Choose the items with the most information about ability at every level that occurs."""
    return pools.each(lambda pool, n_items: choose_by_information(pools.bank, pool, n_items))


INFORMATION = Method(Information, by_information)


def choose_by_information(bank: Bank, pool: ScenarioPool, n_items: int) -> Choice:
    """Divide the calibration models into n_items groups of rising ability and take the best item of each group.

    The best item of a group is the one, not taken yet, whose Fisher information at the ability of one of its models
    is largest. In several dimensions ability and information are those along the mean loading of the scenario's
    items: ``I_i = w_i (a_i . u)^2``. With more items than models, neighbouring groups hold the same model.

    Weights are those of `weighted_by_nearest` on the item parameters.

    Parameters
    ----------
    bank : Bank
    pool : ScenarioPool
    n_items : int
    """
    parameters = bank.parameters.take(pool.items)
    # In several dimensions information is a matrix and models have no order; both are projected on the mean loading u.
    direction = _direction(parameters.loadings, pool.weights)
    steepness = (parameters.loadings @ direction) ** 2  # (n_pool,)
    abilities = bank.calibration.abilities
    order = np.argsort(rounded(abilities @ direction), kind="stable")
    is_open = pool.is_candidate.copy()
    chosen = []
    for group in _groups(order, n_items):
        information = information_weights(parameters, logit(parameters, abilities[group])).max(axis=0) * steepness
        chosen.append(int(first_largest(np.where(is_open, information, -np.inf))))
        is_open[chosen[-1]] = False
    features = irt_features(bank, pool, standardise=True)
    return weighted_by_nearest(pool, features, np.array(chosen, dtype=np.int64))


def _direction(loadings: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the unit vector of the mean loading, (n_dims,); the first axis where the mean is zero."""
    mean = weights @ loadings
    length = float(np.linalg.norm(mean))
    return mean / length if length > 0.0 else np.eye(loadings.shape[1])[0]


def _groups(order: IntArray, n_groups: int) -> list[IntArray]:
    """Divide models in order of ability into groups of equal size, none empty; neighbours may share a model."""
    n_models = order.shape[0]
    edges = np.arange(n_groups + 1) * n_models / n_groups
    # 1e-9: an edge that is whole in exact arithmetic may come out a little below it; at least one model a group, the
    # same for neighbours where there are more groups than models
    first = np.floor(edges[:-1] + 1e-9).astype(np.int64)
    last = np.maximum(np.floor(edges[1:] + 1e-9).astype(np.int64), first + 1)
    return [order[start:stop] for start, stop in zip(first, last, strict=True)]
