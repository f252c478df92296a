"""Mean and variance of the score under the linear-Gaussian factor model, given the observed responses."""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.regression.missing import blocks
from itembank.irt.linear_gaussian import FactorModel, FactorPosterior, factor_posterior
from itembank.numerics.arrays import FloatArray, IntArray


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
    model: FactorModel,
    positions: IntArray,
    target_weights: FloatArray,
    new_responses: FloatArray,
    *,
    lever: FloatArray | None = None,
) -> FactorPrediction:
    """Posterior mean and variance of ``Z = sum_i omega_i y_i`` given what was observed.

    ``E[Z | y_S] = sum_S omega_i y_i + sum_U omega_i (m_i + L_i . E[f | y_S])``, where U is every item that was not
    observed, and ``Var[Z | y_S] = c' C c + sum_U omega_i^2 s_i`` with ``c = sum_U omega_i L_i`` and C the posterior
    covariance of the factors. The misfit is ``D = (y_S - m_S)' V^-1 (y_S - m_S) / |S|`` with
    ``V = L_S L_S' + diag(s_S)``. Observed responses count as they are. Missing responses belong to U: nothing is filled
    in, and each pattern of missing items has its own C.

    Parameters
    ----------
    model : FactorModel
        Of all items.
    positions : (n_columns,)
        Position of each column of `new_responses` among the items, no two alike.
    target_weights : (n_items, n_targets)
        omega of each score, over all items.
    new_responses : (n_new, n_columns)
        Raw; NaN where missing.
    lever : (n_factors, n_targets), optional
        ``sum_i omega_i L_i`` over all items, where the caller has it already.

    Returns
    -------
    FactorPrediction
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
