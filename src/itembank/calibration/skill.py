"""Whether fitted abilities are skill: whether models of higher ability have higher scores.

Nothing in the likelihood of slopes of both signs asks for that. Where many items are guessed and some models are
siblings, the ability that explains most answers can be the guesses that siblings share.
"""

import numpy as np

from itembank.calibration.fits import FitData
from itembank.calibration.start import additive_effects, multiple_correlation, start_values
from itembank.numerics.arrays import FloatArray

MOST_ITEMS = 3000
"""Where responses are too many for a copy, so many items at even steps give the scores."""


def score_correlation(data: FitData, abilities: FloatArray) -> float:
    """Correlation over models of ability and score; with more abilities, of the combination closest to the score.

    Scores are means of the responses (of the logits of probabilities and counts), and with missing ones the effects of
    models beside those of items, so that models are compared over the items that they share.

    Parameters
    ----------
    data : FitData
        Of n_models models.
    abilities : (n_models, n_dims)

    Returns
    -------
    float
        From -1 to 1 in one dimension, from 0 to 1 in more; 1 where scores or abilities do not differ.
    """
    if data.columns is not None:
        n_items = data.columns.size
        data = data.take_items(np.unique(np.linspace(0, n_items - 1, min(n_items, MOST_ITEMS)).astype(np.int64)))
    data = data.copied()
    values = start_values(data)
    if data.observed is None:
        scores = values.mean(axis=1, dtype=np.float64)
    else:
        scores, _ = additive_effects(np.where(data.observed, values, 0.0), data.observed.astype(np.float64))
    size = multiple_correlation(scores, abilities)
    return -size if abilities.shape[1] == 1 and float((scores - scores.mean()) @ abilities[:, 0]) < 0.0 else size
