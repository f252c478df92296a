"""Responses and scores that are missing: which complete problems a regression falls into."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from itembank.estimation.predictions import scenario_sums
from itembank.estimation.response_summary import sample_mean
from itembank.irt.linear_gaussian import FactorModel, FactorPosterior, factor_posterior
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.ties import first_smallest


@dataclass(frozen=True, slots=True)
class Block:
    """New models that answered the same items, and scores that the same calibration models have."""

    train: IntArray  # (n_block_train,): Calibration models whose scores are known
    columns: IntArray  # (n_observed,): What the new models answered
    new: IntArray  # (n_block_new,): Rows of the new models
    targets: IntArray  # (n_block_targets,)


Solver = Callable[[FloatArray, FloatArray, FloatArray, Block], FloatArray]
"""(train responses, train scores, new responses, block), all complete -> (n_block_new, n_block_targets)."""


def solve_blocks(
    train_responses: FloatArray,  # (n_train, n_columns)
    train_scores: FloatArray,  # (n_train, n_targets)
    new_responses: FloatArray,  # (n_new, n_columns): NaN where missing in all three
    solver: Solver,  # Sees complete arrays only
) -> FloatArray:
    """Predict block by block, each from exactly what its new models answered, and clip to [0, 1].

    A regression on the answered items alone uses what was observed and nothing made up, at the price of a fit for
    each pattern of missing items; new models of one run share theirs. What calibration models did not answer is
    filled in by `completed`, after the unanswered columns are gone.

    Returns (n_new, n_targets): NaN for a target that no calibration model has a score for.
    """
    result = np.full((new_responses.shape[0], train_scores.shape[1]), np.nan)
    for block in blocks(train_scores, new_responses):
        train = completed(train_responses[np.ix_(block.train, block.columns)])
        scores = train_scores[np.ix_(block.train, block.targets)]
        new = new_responses[np.ix_(block.new, block.columns)]
        result[np.ix_(block.new, block.targets)] = solver(train, scores, new, block)
    return np.asarray(np.clip(result, 0.0, 1.0))


def blocks(train_scores: FloatArray, new_responses: FloatArray) -> Iterator[Block]:
    """Every pair of a pattern of known scores and a pattern of answered items; targets without any score are left."""
    new_patterns = list(_patterns(~np.isnan(new_responses)))
    for known, targets in _patterns(~np.isnan(train_scores).T):
        train = np.flatnonzero(known)
        if train.size:
            for answered, new in new_patterns:
                yield Block(train, np.flatnonzero(answered), new, targets)


def _patterns(mask: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Each distinct row of a mask and where it stands."""
    if mask.all():  # by far the most frequent, and the cheapest to see
        if mask.shape[0]:
            yield np.ones(mask.shape[1], dtype=np.bool_), np.arange(mask.shape[0])
        return
    distinct, inverse = np.unique(mask, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    for number, row in enumerate(distinct):
        yield row, np.flatnonzero(inverse == number)


def completed(responses: FloatArray) -> FloatArray:
    """Fill missing responses (n_models, n_columns) by item mean plus the model's mean distance from the item means.

    A column that nobody answered becomes constant, and so says nothing in a regression.
    """
    observed = ~np.isnan(responses)
    if observed.all():
        return responses
    values = np.where(observed, responses, 0.0)
    item_mean = values.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    distance = np.where(observed, responses - item_mean, 0.0)
    model_effect = distance.sum(axis=1) / np.maximum(observed.sum(axis=1), 1)
    filled = np.clip(item_mean + model_effect[:, None], 0.0, 1.0)
    filled = np.where(observed.any(axis=0), filled, 0.0)
    result: FloatArray = np.where(observed, responses, filled)
    return result


RANK_TOLERANCE = 1e-12
"""Eigenvalues below this fraction of the largest count as zero: their vectors are rounding."""
RELATIVE_PENALTIES = np.logspace(-3.0, 4.0, 36)
"""Candidates, in units of the mean squared deviation of a column times the number of models."""
FREEDOM_OF_MEAN = 30.0
"""Prior standard deviation of the common coefficient, in units of an item's: large enough to leave it unpenalised."""
FREEDOM_OF_SCENARIOS = 2.0
"""Likewise of the scenarios' common coefficients; choosing it from the data costs more than it brings."""


def predict_ridge(
    train_responses: FloatArray,  # (n_train, n_columns)
    train_scores: FloatArray,  # (n_train, n_targets)
    new_responses: FloatArray,  # (n_new, n_columns): NaN where missing in all three
    *,
    # None takes, for each target, that of `RELATIVE_PENALTIES` with the least squared error of the calibration models
    # left out one at a time
    penalty: float | None = None,
    # (n_columns,): Not negative, any scale: those of the selection, or all alike. Columns without weight are left out
    # unless nothing else was answered. None draws to zero, as WILD does.
    column_weights: FloatArray | None = None,
    scenario_index: IntArray | None = None,  # (n_columns,): Scenario of each column; only used with `column_weights`
) -> FloatArray:
    """Linear prediction of each score, ``min |y - b_0 - X b|^2 + penalty |b|^2`` (WILD 6.4).

    With `column_weights` w, coefficients are not drawn to zero but to a free multiple of sqrt(w), and within scenarios
    to one of their own (ours): with few models the sample mean is most of what can be known, and drawing to zero
    throws it away. The prior is ``b_i = sqrt(w_i) (u + v_j + d_i)``: u free, v_j of each scenario and d_i of each item
    normal. The root stands between equal coefficients, which lose where weights matter, and the weights themselves,
    which lose where a few are large. New models are fitted by their pattern of missing items, each from the items
    they answered.

    Returns (n_new, n_targets): In [0, 1]; NaN for a target that no calibration model has a score for.
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


def ridge_line(
    train: FloatArray,  # (n_models, n_columns)
    scores: FloatArray,  # (n_models,): Both complete
) -> tuple[float, FloatArray]:
    """Fit ``y = a + X b`` by ridge regression, penalised as leaving models out one at a time asks; return a and b."""
    centre = train.mean(axis=0)
    centred = train - centre
    unit = (centred**2).sum() / train.shape[1]
    mean, slopes = _ridge(centred, scores[:, None], RELATIVE_PENALTIES * unit)
    return float(mean[0] - centre @ slopes[:, 0]), slopes[:, 0]


def _ridge(train: FloatArray, scores: FloatArray, penalties: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit ridge regressions to complete arrays with means of train taken out, through X = U diag(sqrt(e)) V'.

    Returns (n_targets,): Intercepts: the mean scores; (n_features, n_targets): Coefficients.
    """
    score_mean = scores.mean(axis=0)
    basis, eigenvalues, directions = decomposed(train)
    if not eigenvalues.size:
        return score_mean, np.zeros((train.shape[1], scores.shape[1]))
    projected = basis.T @ (scores - score_mean)  # (rank, n_targets)
    errors = _left_out_errors(basis, eigenvalues, projected, scores - score_mean, penalties)
    chosen = penalties[first_smallest(errors.T)]  # (n_targets,)
    return score_mean, directions @ (projected * np.sqrt(eigenvalues)[:, None] / (eigenvalues[:, None] + chosen))


def decomposed(
    centred: FloatArray,  # (n_models, n_columns)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decompose ``X = U diag(sqrt(e)) V'`` by the smaller Gram matrix, a few times faster than by singular values.

    Returns left (n_models, rank): U; eigenvalues (rank,): e, descending; right (n_columns, rank): V.
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


@dataclass(frozen=True, slots=True)
class FactorPrediction:
    """Scores of new models under the factor model."""

    value: FloatArray  # (n_new, n_targets): Posterior mean, cut to [0, 1]
    # (n_new, n_targets): Posterior variance of the score, model-based: the factors' and the unobserved items' own.
    variance: FloatArray
    # (n_new,): Squared Mahalanobis distance of the responses from their mean, by response: 1 on average for models of
    # the population that the factor model describes. NaN without responses.
    misfit: FloatArray


def predict_factor(
    model: FactorModel,  # Of all items
    positions: IntArray,  # (n_columns,): Position of each column of `new_responses` among the items, no two alike
    target_weights: FloatArray,  # (n_items, n_targets): omega of each score, over all items
    new_responses: FloatArray,  # (n_new, n_columns): Raw; NaN where missing
    *,
    # (n_factors, n_targets): ``sum_i omega_i L_i`` over all items, where the caller has it already
    lever: FloatArray | None = None,
) -> FactorPrediction:
    """Posterior mean and variance of ``Z = sum_i omega_i y_i`` given what was observed.

    ``E[Z | y_S] = sum_S omega_i y_i + sum_U omega_i (m_i + L_i . E[f | y_S])``, where U is every item that was not
    observed, and ``Var[Z | y_S] = c' C c + sum_U omega_i^2 s_i`` with ``c = sum_U omega_i L_i`` and C the posterior
    covariance of the factors. The misfit is ``D = (y_S - m_S)' V^-1 (y_S - m_S) / |S|`` with
    ``V = L_S L_S' + diag(s_S)``. Observed responses count as they are. Missing responses belong to U: nothing is filled
    in, and each pattern of missing items has its own C.
    """
    lever = model.loadings.T @ target_weights if lever is None else lever
    shape = (new_responses.shape[0], target_weights.shape[1])
    value, variance, misfit = np.empty(shape), np.empty(shape), np.empty(shape[0])
    for block in blocks(np.zeros((1, 1)), new_responses):
        answers = new_responses[np.ix_(block.new, block.columns)]
        found = _one_pattern(model, positions[block.columns], answers, target_weights, lever)
        value[block.new], variance[block.new], misfit[block.new] = found
    return FactorPrediction(np.clip(value, 0.0, 1.0), variance, misfit)


def _one_pattern(
    model: FactorModel, items: IntArray, responses: FloatArray, weights: FloatArray, lever: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean (n_block_new, n_targets), variance (n_targets,) and misfit (n_block_new,) of models with the same items."""
    posterior = factor_posterior(model, items, responses)
    unobserved = weights.copy()
    unobserved[items] = 0.0
    lever = lever - model.loadings[items].T @ weights[items]  # of the items that were not observed
    value = responses @ weights[items] + model.mean @ unobserved + posterior.mean @ lever
    variance = np.einsum("qt,qt->t", posterior.covariance @ lever, lever) + model.noise @ unobserved**2
    return value, variance, _misfit(model, items, responses, posterior)


def _misfit(model: FactorModel, items: IntArray, responses: FloatArray, posterior: FactorPosterior) -> FloatArray:
    """Squared Mahalanobis distance of responses by response, (n_models,).

    By Woodbury's identity ``r' V^-1 r = (r / s)' (r - L_S E[f])``, which needs no matrix of |S| rows.
    """
    if items.size == 0:
        return np.full(responses.shape[0], np.nan)
    residual = responses - model.mean[items]
    unexplained = residual - posterior.mean @ model.loadings[items].T
    result: FloatArray = np.einsum("li,li,i->l", residual, unexplained, 1.0 / model.noise[items]) / items.size
    return result


def predict_task_mean(
    train_responses: FloatArray,  # noqa: ARG001 - every regression estimator takes the same three
    train_scores: FloatArray,
    new_responses: FloatArray,
) -> FloatArray:
    """Mean score of the calibration models, for every new model alike (the floor, WILD 6.4).

    Parameters
    ----------
    train_responses : (n_train, n_columns)
        Not used.
    train_scores : (n_train, n_targets)
        NaN where a score is not known.
    new_responses : (n_new, n_columns)
        Only counted.

    Returns
    -------
    (n_new, n_targets)
        NaN for a target that no calibration model has a score for.
    """
    return np.repeat(mean_where_known(train_scores)[None, :], new_responses.shape[0], axis=0)


def predict_task_mean_eb(
    train_responses: FloatArray,  # noqa: ARG001 - every regression estimator takes the same three
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    scenario_index: IntArray,
    scenario_weights: FloatArray,
    strength: float = 5.0,
) -> FloatArray:
    """Mean of a Beta-binomial posterior whose prior is the calibration models' mean score.

    ``theta_t = (lambda mu_t + sum_R y) / (lambda + |R|)`` with mu_t the mean score of scenario t over the calibration
    models and R the new model's observed responses of that scenario: WILD eq. 15, where alpha = lambda mu_t and
    beta = lambda (1 - mu_t). The overall score is the weighted sum of the scenarios'.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
        Not used: the prior is made of full scores.
    train_scores : (n_train, n_scenarios + 1)
        The overall score last. NaN where a score is not known.
    new_responses : (n_new, n_columns)
        NaN where missing.
    scenario_index : (n_columns,)
        Scenario of each column.
    scenario_weights : (n_scenarios,)
        Of the overall score; they sum to one.
    strength : float
        lambda.

    Returns
    -------
    (n_new, n_scenarios + 1)
        NaN for a scenario without any known score, and so for the overall score if that scenario weighs.
    """
    n_scenarios = scenario_weights.size
    prior = mean_where_known(train_scores[:, :n_scenarios])
    observed = ~np.isnan(new_responses)
    count = scenario_sums(observed.astype(np.float64), scenario_index, n_scenarios)
    mean = np.nan_to_num(sample_mean(new_responses, scenario_index, n_scenarios))
    scenarios = (strength * prior + count * mean) / (strength + count)
    weighing = scenario_weights > 0.0
    overall = scenarios[:, weighing] @ scenario_weights[weighing]
    return np.asarray(np.clip(np.column_stack([scenarios, overall]), 0.0, 1.0))
