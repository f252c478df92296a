"""Residuals of answers given other answers, by the linear-Gaussian factor model: of items, of groups, one by one.

With ``r = y_S - m_S`` and ``V = L_S L_S' + diag(s_S)`` the misfit of a model is ``r' V^-1 r / |S|``
(`estimation.regression.factor`). Everything here divides that same quantity: by item, by group of items, by answer.
"""

import numpy as np
from scipy.linalg import solve_triangular

from itembank.irt.linear_gaussian import FactorModel, factor_posterior
from itembank.numerics.arrays import FloatArray, IntArray


def item_residuals(model: FactorModel, items: IntArray, responses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residual of each answer given all other answers of the same model.

    ``e_i = (V^-1 r)_i / (V^-1)_ii`` with variance ``1 / (V^-1)_ii``, the closed form of leaving one answer out;
    ``V^-1`` by Woodbury's identity, so that no matrix of |S| rows is needed.

    Parameters
    ----------
    model : FactorModel
        Of all items.
    items : (n_observed,)
        Positions of the answered items.
    responses : (n_models, n_observed)
        Complete.

    Returns
    -------
    (n_models, n_observed)
        Answer less expectation, on the scale of responses.
    (n_observed,)
        Variance of each by the factor model.
    """
    loadings, noise = model.loadings[items], model.noise[items]
    posterior = factor_posterior(model, items, responses)
    unexplained = (responses - model.mean[items] - posterior.mean @ loadings.T) / noise
    precision = 1.0 / noise - np.einsum("iq,iq->i", loadings @ posterior.covariance, loadings) / noise**2
    return unexplained / precision, 1.0 / precision


def group_residuals(
    model: FactorModel, items: IntArray, responses: FloatArray, group: IntArray, reference: IntArray
) -> tuple[FloatArray, float]:
    """Mean residual over the items of a group, given the answers to the items of a reference.

    ``e = mean_G (y_i - m_i - L_i . E[f | y_R])`` with variance ``l' C l + sum_G s_i / |G|^2``, where l is the mean of
    the group's loadings and C the covariance of the factors given ``y_R``.

    Parameters
    ----------
    model : FactorModel
        Of all items.
    items : (n_observed,)
        Positions of the answered items.
    responses : (n_models, n_observed)
        Complete.
    group, reference : (n_group,), (n_reference,)
        Columns of `responses`, none in both.

    Returns
    -------
    (n_models,)
        Mean residual, on the scale of responses.
    float
        Its variance by the factor model.
    """
    posterior = factor_posterior(model, items[reference], responses[:, reference])
    own = items[group]
    expected = model.mean[own].mean() + posterior.mean @ model.loadings[own].mean(axis=0)
    lever = model.loadings[own].mean(axis=0)
    variance = float(lever @ posterior.covariance @ lever + model.noise[own].sum() / group.size**2)
    return responses[:, group].mean(axis=1) - expected, variance


def successive_residuals(model: FactorModel, items: IntArray, responses: FloatArray) -> FloatArray:
    """Residual of each answer given the answers before it, in standard deviations, (n_models, n_observed).

    ``u = A^-1 r`` with the Cholesky factor A of V: uncorrelated, of mean 0 and variance 1 for models of the population
    that the factor model describes. Their mean square is the model's misfit.

    Parameters
    ----------
    model : FactorModel
        Of all items.
    items : (n_observed,)
        Positions of the items in the order in which they were answered.
    responses : (n_models, n_observed)
        Complete, in the same order.
    """
    loadings = model.loadings[items]
    covariance = loadings @ loadings.T
    covariance[np.diag_indices(items.size)] += model.noise[items]
    result: FloatArray = solve_triangular(
        np.linalg.cholesky(covariance), (responses - model.mean[items]).T, lower=True, check_finite=False
    ).T
    return result
