"""How far a link could have come out otherwise with other linking models: a jackknife over them."""

from collections.abc import Callable

import numpy as np

from itembank.living.linking_data import LinkingData
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import rounded
from itembank.progress import ProgressCallback, silent

MOST_GROUPS = 10
"""Links that are made again: with more linking models, groups of them are left out."""


def jackknife_error(
    data: LinkingData,
    scores: Callable[[LinkingData], FloatArray],
    strength: FloatArray,
    *,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Find the standard error of what a link says, ``sqrt((G - 1) / G sum_g (s_g - mean s)^2)``.

    Leaving models out takes in what no information matrix does: that models differ in how they do on the new items
    compared with the old ones. Groups are alike in strength, so that what is left still spans the abilities.

    Parameters
    ----------
    data : LinkingData
    scores : function
        From linking data to (n_points,), such as the expected score on the new items at some abilities.
    strength : (n_models,)
        Of the linking models.
    progress : ProgressCallback

    Returns
    -------
    (n_points,)
    """
    n_groups = min(MOST_GROUPS, data.n_models)
    group = np.empty(data.n_models, dtype=np.int64)
    group[np.argsort(rounded(strength), kind="stable")] = np.arange(data.n_models) % n_groups
    found = []
    for one in range(n_groups):
        progress("linking error", one / n_groups)
        found.append(scores(data.take_models(group != one)))
    result: FloatArray = np.sqrt((n_groups - 1) * np.var(np.stack(found), axis=0))
    return result
