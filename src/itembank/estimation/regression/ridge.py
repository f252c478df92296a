"""Ridge regression of each score on the observed responses."""

import numpy as np

from itembank.estimation.regression.missing import Block, solve_blocks
from itembank.numerics.arrays import FloatArray, IntArray

RELATIVE_PENALTIES = np.logspace(-3.0, 4.0, 36)
"""Candidates, in units of the mean squared deviation of a column times the number of models."""
FREEDOM_OF_MEAN = 30.0
"""Prior standard deviation of the common coefficient over that of an item's own: as good as free."""
FREEDOM_OF_SCENARIOS = 2.0
"""Likewise of the scenarios' common coefficients; choosing it from the data costs more than it brings."""


def predict_ridge(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    penalty: float | None = None,
    column_weights: FloatArray | None = None,
    scenario_index: IntArray | None = None,
) -> FloatArray:
    """Linear prediction of each score, ``min |y - b_0 - X b|^2 + penalty |b|^2`` (P2 6.4).

    With `column_weights` coefficients are not drawn to zero but to a multiple of the weights, which is free, and
    within scenarios to a multiple of their own (ours): with few models the sample mean is most of what can be known,
    and ridge towards zero throws it away. The prior is ``b = (u + v_j) w + d``: u free, v_j of each scenario and d of
    each item normal. New models are fitted by their pattern of missing items, each from the items they answered.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    penalty : float or None
        None takes, for each target, that of `RELATIVE_PENALTIES` with the least squared error of the calibration
        models left out one at a time.
    column_weights : (n_columns,) or None
        Not negative, any scale: those of the selection, or all alike. None draws to zero, as P2 does.
    scenario_index : (n_columns,) or None
        Scenario of each column; only used with `column_weights`.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    weights = np.zeros(train_responses.shape[1]) if column_weights is None else column_weights
    scenarios = np.zeros(weights.size, dtype=np.int64) if scenario_index is None else scenario_index

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:
        extra = _cheap_directions(weights[block.columns], scenarios[block.columns])
        unit = ((train - train.mean(axis=0)) ** 2).sum() / max(block.columns.size, 1)
        penalties = RELATIVE_PENALTIES * unit if penalty is None else np.array([penalty])
        return _ridge(np.hstack([train, train @ extra]), scores, np.hstack([new, new @ extra]), penalties)

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _cheap_directions(weights: FloatArray, scenarios: IntArray) -> FloatArray:
    """Directions of coefficients that cost less than their length, (n_columns, n_directions)."""
    if not weights.any():
        return np.empty((weights.size, 0))
    mean = FREEDOM_OF_MEAN * weights / np.linalg.norm(weights)
    names = np.unique(scenarios[weights > 0.0])
    if names.size < 2:
        return mean[:, None]
    own = weights[:, None] * (scenarios[:, None] == names)
    return np.column_stack([mean, FREEDOM_OF_SCENARIOS * own / np.linalg.norm(own, axis=0)])


def _ridge(train: FloatArray, scores: FloatArray, new: FloatArray, penalties: FloatArray) -> FloatArray:
    """Ridge prediction from complete arrays, through X = U diag(sqrt(e)) V'."""
    train_mean, score_mean = train.mean(axis=0), scores.mean(axis=0)
    basis, eigenvalues, directions = _decomposed(train - train_mean)
    if not eigenvalues.size:
        return np.repeat(score_mean[None, :], new.shape[0], axis=0)
    projected = basis.T @ (scores - score_mean)  # (rank, n_targets)
    errors = _left_out_errors(basis, eigenvalues, projected, scores - score_mean, penalties)
    chosen = penalties[errors.argmin(axis=0)]  # (n_targets,)
    coefficients = directions @ (projected * np.sqrt(eigenvalues)[:, None] / (eigenvalues[:, None] + chosen))
    result: FloatArray = score_mean + (new - train_mean) @ coefficients
    return result


def _decomposed(centred: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Left vectors (n, rank), squared singular values ascending, right vectors (p, rank); by the smaller Gram."""
    is_wide = centred.shape[0] <= centred.shape[1]
    gram = centred @ centred.T if is_wide else centred.T @ centred
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > max(gram.shape[0], 1) * 1e-13 * max(eigenvalues.max(initial=0.0), 1e-300)
    eigenvalues, vectors = eigenvalues[kept], vectors[:, kept]
    other = (centred.T if is_wide else centred) @ vectors / np.sqrt(eigenvalues)
    return (vectors, eigenvalues, other) if is_wide else (other, eigenvalues, vectors)


def _left_out_errors(
    basis: FloatArray, eigenvalues: FloatArray, projected: FloatArray, centred: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Mean squared error of models left out one at a time, exactly: ``e_i / (1 - h_i)``, (n_penalties, n_targets).

    The leverage h_i counts the free intercept.
    """
    n_models, n_targets = centred.shape
    shrinkage = eigenvalues / (eigenvalues + penalties[:, None])  # (n_penalties, rank)
    kept = 1.0 - 1.0 / n_models - (basis**2) @ shrinkage.T  # (n_models, n_penalties)
    fitted = basis @ (shrinkage.T[:, :, None] * projected[:, None, :]).reshape(eigenvalues.size, -1)
    residuals = centred[:, None, :] - fitted.reshape(n_models, penalties.size, n_targets)
    result: FloatArray = ((residuals / np.maximum(kept, 1e-10)[:, :, None]) ** 2).mean(axis=0)
    return result
