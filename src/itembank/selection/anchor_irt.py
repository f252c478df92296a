"""Anchor points on item parameters: items are alike when they ask for the same abilities (P1 3.2, 4.1)."""

import numpy as np

from itembank.data.banks import Bank
from itembank.numerics.arrays import FloatArray, IntArray


def irt_features(bank: Bank, items: IntArray) -> FloatArray:
    """Return the loadings and intercept of these items, (n_items, n_dims + 1)."""
    parameters = bank.parameters
    features: FloatArray = np.column_stack([parameters.loadings[items], parameters.intercept[items]])
    return features
