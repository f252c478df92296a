"""Ridge regression of each score on the observed responses."""

import numpy as np

from itembank.estimation.regression.missing import Block, solve_blocks
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import first_smallest

RANK_TOLERANCE = 1e-12
"""Eigenvalues below this fraction of the largest count as zero: their vectors are rounding."""
RELATIVE_PENALTIES = np.logspace(-3.0, 4.0, 36)
"""Candidates, in units of the mean squared deviation of a column times the number of models."""
FREEDOM_OF_MEAN = 30.0
"""Prior standard deviation of the common coefficient, in units of an item's: large enough to leave it unpenalised."""
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
    """Linear prediction of each score, ``min |y - b_0 - X b|^2 + penalty |b|^2`` (WILD 6.4).

    With `column_weights` w, coefficients are not drawn to zero but to a free multiple of sqrt(w), and within scenarios
    to one of their own (ours): with few models the sample mean is most of what can be known, and drawing to zero
    throws it away. The prior is ``b_i = sqrt(w_i) (u + v_j + d_i)``: u free, v_j of each scenario and d_i of each item
    normal. The root stands between equal coefficients, which lose where weights matter, and the weights themselves,
    which lose where a few are large. New models are fitted by their pattern of missing items, each from the items
    they answered.

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
        Not negative, any scale: those of the selection, or all alike. Columns without weight are left out unless
        nothing else was answered. None draws to zero, as WILD does.
    scenario_index : (n_columns,) or None
        Scenario of each column; only used with `column_weights`.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    scenarios = np.zeros(train_responses.shape[1], dtype=np.int64) if scenario_index is None else scenario_index

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:
        if not block.columns.size:
            return np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        weights = None if column_weights is None else column_weights[block.columns]
        items, means = _directions(weights, scenarios[block.columns])
        features = np.hstack([items, means])
        centre = train.mean(axis=0)
        # a column in which all models agree is exactly zero; rounding in its mean must not look like a difference
        centred = np.where((train == train[0]).all(axis=0), 0.0, train - centre)
        unit = ((centred @ items) ** 2).sum() / items.shape[1]
        penalties = RELATIVE_PENALTIES * unit if penalty is None else np.array([penalty])
        mean, coefficients = _ridge(centred @ features, scores, penalties)
        predicted: FloatArray = mean + ((new - centre) @ features) @ coefficients
        return predicted

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _directions(weights: FloatArray | None, scenarios: IntArray) -> tuple[FloatArray, FloatArray]:
    """Items that weigh (n_columns, n_weighing), and means of all and of scenarios (n_columns, n_means), by freedom."""
    if weights is None:
        return np.eye(scenarios.size), np.empty((scenarios.size, 0))
    weights = weights if weights.any() else np.ones(weights.size)
    weighs = weights > 0.0
    roots = np.sqrt(weights / weights[weighs].mean())
    mean = FREEDOM_OF_MEAN * roots[:, None] / np.linalg.norm(roots)
    names = np.unique(scenarios[weighs])
    if names.size > 1:
        within = roots[:, None] * (scenarios[:, None] == names)
        mean = np.hstack([mean, FREEDOM_OF_SCENARIOS * within / np.linalg.norm(within, axis=0)])
    return np.diag(roots)[:, weighs], mean


def ridge_line(train: FloatArray, scores: FloatArray) -> tuple[float, FloatArray]:
    """Fit ``y = a + X b`` by ridge regression, penalised as leaving models out one at a time asks; return a and b.

    Parameters
    ----------
    train : (n_models, n_columns)
    scores : (n_models,)
        Both complete.
    """
    centre = train.mean(axis=0)
    centred = train - centre
    unit = (centred**2).sum() / train.shape[1]
    mean, slopes = _ridge(centred, scores[:, None], RELATIVE_PENALTIES * unit)
    return float(mean[0] - centre @ slopes[:, 0]), slopes[:, 0]


def _ridge(train: FloatArray, scores: FloatArray, penalties: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit ridge regressions to complete arrays with means of train taken out, through X = U diag(sqrt(e)) V'.

    Returns
    -------
    (n_targets,)
        Intercepts: the mean scores.
    (n_features, n_targets)
        Coefficients.
    """
    score_mean = scores.mean(axis=0)
    basis, eigenvalues, directions = decomposed(train)
    if not eigenvalues.size:
        return score_mean, np.zeros((train.shape[1], scores.shape[1]))
    projected = basis.T @ (scores - score_mean)  # (rank, n_targets)
    errors = _left_out_errors(basis, eigenvalues, projected, scores - score_mean, penalties)
    chosen = penalties[first_smallest(errors.T)]  # (n_targets,)
    return score_mean, directions @ (projected * np.sqrt(eigenvalues)[:, None] / (eigenvalues[:, None] + chosen))


def decomposed(centred: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decompose ``X = U diag(sqrt(e)) V'`` by the smaller Gram matrix, a few times faster than by singular values.

    Parameters
    ----------
    centred : (n_models, n_columns)

    Returns
    -------
    left : (n_models, rank)
        U.
    eigenvalues : (rank,)
        e, descending.
    right : (n_columns, rank)
        V.
    """
    is_wide = centred.shape[0] <= centred.shape[1]
    eigenvalues, vectors = np.linalg.eigh(centred @ centred.T if is_wide else centred.T @ centred)
    is_positive = eigenvalues > RANK_TOLERANCE * eigenvalues.max(initial=0.0)
    eigenvalues, vectors = eigenvalues[is_positive][::-1], vectors[:, is_positive][:, ::-1]
    # V = X'U / sqrt(e), or U = XV / sqrt(e): only the smaller side needs an eigendecomposition
    other = (centred.T if is_wide else centred) @ vectors / np.sqrt(eigenvalues)
    return (vectors, eigenvalues, other) if is_wide else (other, eigenvalues, vectors)


def _left_out_errors(
    basis: FloatArray, eigenvalues: FloatArray, projected: FloatArray, centred: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Mean squared error of models left out one at a time, exactly: ``e_i / (1 - h_i)``, (n_penalties, n_targets).

    The leverage h_i counts the free intercept.
    """
    n_models, n_targets = centred.shape
    # H = 1/n + U diag(e / (e + penalty)) U'; e_i / (1 - h_i) spares one fit for each model left out
    shrinkage = eigenvalues / (eigenvalues + penalties[:, None])  # (n_penalties, rank)
    one_less_leverage = 1.0 - 1.0 / n_models - (basis**2) @ shrinkage.T  # (n_models, n_penalties)
    fitted = basis @ (shrinkage.T[:, :, None] * projected[:, None, :]).reshape(eigenvalues.size, -1)
    residuals = centred[:, None, :] - fitted.reshape(n_models, penalties.size, n_targets)
    result: FloatArray = ((residuals / np.maximum(one_less_leverage, 1e-10)[:, :, None]) ** 2).mean(axis=0)
    return result
