"""Ridge regression of each score on the observed responses."""

import numpy as np

from itembank.estimation.regression.missing import Block, solve_blocks
from itembank.numerics.arrays import FloatArray

RELATIVE_PENALTIES = np.logspace(-5.0, 1.0, 31)


def predict_ridge(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    penalty: float | None = None,
) -> FloatArray:
    """Linear prediction of each score, ``min |y - b_0 - X b|^2 + penalty |b|^2`` (P2 6.4).

    New models are fitted by their pattern of missing items, each from the items they answered.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    penalty : float or None
        None takes, for each target, that of `RELATIVE_PENALTIES` (times the largest eigenvalue of the centred Gram
        matrix) with the least squared error of the calibration models left out one at a time.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:  # noqa: ARG001
        return _ridge(train, scores, new, penalty)

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _ridge(train: FloatArray, scores: FloatArray, new: FloatArray, penalty: float | None) -> FloatArray:
    """Ridge prediction from complete arrays, through X = U diag(sqrt(e)) V'."""
    train_mean, score_mean = train.mean(axis=0), scores.mean(axis=0)
    basis, eigenvalues, directions = _decomposed(train - train_mean)
    if not eigenvalues.size:
        return np.repeat(score_mean[None, :], new.shape[0], axis=0)
    projected = basis.T @ (scores - score_mean)  # (rank, n_targets)
    penalties = RELATIVE_PENALTIES * eigenvalues[-1] if penalty is None else np.array([penalty])
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
