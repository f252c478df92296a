"""Smooth regression of the full score on sub-score and ability (metabench: Kipnis et al. 2024, arXiv 2407.12844)."""

import numpy as np

from itembank.estimation.regression.additive import fit_penalised, make_smooth, smooth_columns
from itembank.estimation.regression.missing import Block, solve_blocks
from itembank.numerics.arrays import FloatArray

SMOOTHNESS = np.logspace(-4.0, 3.0, 8)
"""Penalties of roughness, a model: from following every knot to a straight line."""
SLOPES = np.logspace(-4.0, 1.0, 6)
"""Penalties of the squared slopes of the abilities, a model."""
FEWEST_MODELS = 5
FEWEST_FOR_CURVES = 20


def predict_metabench(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    train_abilities: FloatArray,
    new_abilities: FloatArray,
    column_weights: FloatArray | None = None,
    n_knots: int = 10,
) -> FloatArray:
    """Additive regression ``Z = b + f(sub-score) + sum_d g_d(theta_d)`` with penalised natural cubic splines.

    The sub-score is the weighted mean of the responses that the new model gave, for calibration models too. How
    smooth f and the g_d are, and how far the slopes in theta are drawn to zero, is chosen by generalised
    cross-validation; below 20 models all are straight lines, below 5 the estimate is the mean score.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    train_abilities : (n_train, n_dims)
    new_abilities : (n_new, n_dims)
        From the same observed responses.
    column_weights : (n_columns, n_targets) or None
        Weights of the responses in the sub-score of each target, its scenario's items only; None weighs all alike.
        Where no item that weighs was observed, all count alike.
    n_knots : int
        Of each curve.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    weights = np.ones((train_responses.shape[1], train_scores.shape[1])) if column_weights is None else column_weights

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:
        result = np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        if block.columns.size == 0 or scores.shape[0] < FEWEST_MODELS:
            return result
        share = _shares(weights[np.ix_(block.columns, block.targets)])
        known, asked = train_abilities[block.train], new_abilities[block.new]
        for j in range(scores.shape[1]):
            train_axes = np.column_stack([train @ share[:, j], known])
            new_axes = np.column_stack([new @ share[:, j], asked])
            result[:, j] = _additive(train_axes, scores[:, j], new_axes, n_knots)
        return result

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _shares(weights: FloatArray) -> FloatArray:
    """Weights (n_observed, n_targets) that sum to one for each target."""
    total = weights.sum(axis=0)
    return np.asarray(np.where(total > 0.0, weights, 1.0) / np.where(total > 0.0, total, weights.shape[0]))


def _additive(train_axes: FloatArray, scores: FloatArray, new_axes: FloatArray, n_knots: int) -> FloatArray:
    """Prediction (n_new,) from one smooth an axis; the first axis is the sub-score."""
    n_models, n_axes = train_axes.shape
    train: list[FloatArray] = [np.ones((n_models, 1))]
    new: list[FloatArray] = [np.ones((new_axes.shape[0], 1))]
    groups = [-1]
    for axis in range(n_axes):
        smooth = make_smooth(train_axes[:, axis], n_knots if n_models >= FEWEST_FOR_CURVES else 2)
        train.append(smooth_columns(smooth, train_axes[:, axis]))
        new.append(smooth_columns(smooth, new_axes[:, axis]))
        groups += [-1 if axis == 0 else 2, *[min(axis, 1)] * smooth.curves.shape[1]]
    grids = (SMOOTHNESS * n_models, SMOOTHNESS * n_models, SLOPES * n_models)
    coefficients, _ = fit_penalised(np.hstack(train), scores, np.array(groups), grids)
    result: FloatArray = np.hstack(new) @ coefficients
    return result
