"""Anchor points on item parameters: items are alike when they ask for the same abilities (tinyBenchmarks 3.2, 4.1)."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.selection.anchors import NO_SPREAD, spread
from itembank.selection.pools import ScenarioPool


def irt_features(bank: Bank, pool: ScenarioPool, *, standardise: bool) -> FloatArray:
    """Return the loadings and intercept of the items of a scenario, (n_pool, n_dims + 1).

    Parameters
    ----------
    bank : Bank
    pool : ScenarioPool
    standardise : bool
        Scale the intercept to variance 1 over the candidates, and the loadings, all by one number, to total
        variance 1. A scale for each dimension would make clusters depend on how ability is rotated, and give
        dimensions that hardly matter the same say as the first.
    """
    parameters = bank.parameters
    features: FloatArray = np.column_stack([parameters.loadings[pool.items], parameters.intercept[pool.items]])
    if not standardise:
        return features
    scale = spread(features, pool)
    scale[:-1] = np.sqrt(np.sum(scale[:-1] ** 2))
    return features / np.where(scale > NO_SPREAD, scale, 1.0)
