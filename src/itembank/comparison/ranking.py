"""Order of the models, and groups of models that do not differ significantly from the best of the group."""

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray


def tied_groups(scores: FloatArray, is_different: BoolArray) -> tuple[IntArray, IntArray]:
    """Order of the models from best to worst, and the group of each.

    The best model begins group 1; going down, the first model that differs significantly from the best of the
    current group begins the next. Groups are runs of the order, so every model is in exactly one; two models of
    neighbouring groups need not differ significantly from each other.

    Parameters
    ----------
    scores : (n_models,)
        NaN comes last.
    is_different : (n_models, n_models)
        Symmetric: which pairs differ significantly.

    Returns
    -------
    order : (n_models,)
        Rows of the models, best first; equal scores in the order they came.
    group : (n_models,)
        Group of each model, in the order of `scores`, from 1.
    """
    order = np.argsort(-scores, kind="stable").astype(np.int64)
    group = np.ones(scores.shape[0], dtype=np.int64)
    start, number = 0, 1
    while True:  # a round for each group, not for each model
        group[order[start:]] = number
        beyond = np.flatnonzero(is_different[order[start], order[start + 1 :]])
        if beyond.size == 0:
            return order, group
        start, number = start + 1 + int(beyond[0]), number + 1


def square(values: BoolArray, first: IntArray, second: IntArray, n_models: int) -> BoolArray:
    """Values of pairs (n_pairs,) as a symmetric matrix (n_models, n_models)."""
    matrix = np.zeros((n_models, n_models), dtype=bool)
    matrix[first, second] = values
    return matrix | matrix.T
