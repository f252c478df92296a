"""Anchor points on correctness: items are alike where calibration models answered them alike (tinyBenchmarks 3.2)."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.selection.anchors import NO_SPREAD, spread
from itembank.selection.pools import ScenarioPool


def correctness_features(bank: Bank, pool: ScenarioPool, *, standardise: bool) -> FloatArray:
    """Responses of the calibration models to the items of a scenario, (n_pool, n_models), gaps filled in.

    A missing response becomes the item model's probability for that model and item: a mean over the
    models that did answer would say more of who answered than of the item.

    Parameters
    ----------
    bank : Bank
    pool : ScenarioPool
    standardise : bool
        Give every model's responses the same variance over the candidates.
    """
    bank.check_responses("Anchor points on correctness need")
    responses = bank.responses.of_items(pool.items)
    missing = np.isnan(responses)
    if missing.any():
        fitted = probability(bank.parameters.take(pool.items), bank.calibration.abilities)
        responses = np.where(missing, fitted, responses)
    features: FloatArray = np.ascontiguousarray(responses.T, dtype=np.float64)
    if not standardise:
        return features
    scale = spread(features, pool)
    result: FloatArray = features / np.where(scale > NO_SPREAD, scale, 1.0)
    return result
