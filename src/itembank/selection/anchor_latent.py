"""Anchor points on leading components: items are alike when models answered them alike, noise apart."""

import numpy as np

from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray


def latent_features(model: FactorModel) -> FloatArray:
    """Return the mean and the loadings of every item, (n_items, n_factors + 1).

    The squared distance of two items is then what the factor model expects of the squared difference of their
    responses by one model, their own noise left out:
    ``E[(y_i - y_j)^2] = (m_i - m_j)^2 + |L_i - L_j|^2 + s_i + s_j``. No feature needs another scale.
    """
    return np.column_stack([model.mean, model.loadings])
