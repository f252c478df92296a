"""Anchor points on correctness: items are alike when the calibration models answered them alike (P1 3.2)."""

import numpy as np

from itembank.data.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray, IntArray


def correctness_features(bank: Bank, items: IntArray) -> FloatArray:
    """Responses of the calibration models to these items, (n_items, n_models), gaps filled in.

    A missing response becomes the item model's probability for that model and item: a mean over the
    models that did answer would say more of who answered than of the item.
    """
    responses = bank.responses.responses[:, items]
    missing = np.isnan(responses)
    if missing.any():
        fitted = probability(bank.parameters.take(items), bank.calibration.abilities)
        responses = np.where(missing, fitted, responses)
    features: FloatArray = np.ascontiguousarray(responses.T)
    return features
