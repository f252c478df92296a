"""One scale and one set of axes for every calibration: abilities N(0, I), principal axes."""

from dataclasses import replace

import numpy as np

from itembank.calibration.fits import Fit
from itembank.irt.parameters import AbilityPrior
from itembank.numerics.arrays import FloatArray, IntArray


def standardise(fit: Fit) -> Fit:
    """Move abilities to mean 0 and covariance I, and items with them, so that no predicted logit changes.

    The covariance is that of the past models' abilities by the law of total variance: the
    covariance of the estimates plus the mean of their posterior covariances. New models can then be
    scored with the prior N(0, I); the covariance of the shrunken estimates alone is too small for that,
    and singular where a dimension is not used. What rotation is left is fixed by the loadings: their Gram
    matrix becomes diagonal with falling entries, and those of each dimension sum to a positive number.

    With ``theta = m + W theta'`` the logit ``a . theta + c`` is ``(W^T a) . theta' + (c + a . m)``.
    """
    loadings, mean = fit.loadings, fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    total = centred.T @ centred / len(centred) + fit.ability_covariance.mean(axis=0)
    # Symmetric square root; a direction without any variance keeps its scale.
    values, vectors = np.linalg.eigh(total)
    usable = np.where(values > 1e-12 * max(float(values[-1]), 1e-300), values, 1.0)
    root: FloatArray = (vectors * np.sqrt(usable)) @ vectors.T
    moved = loadings @ root
    _, vectors = np.linalg.eigh(moved.T @ moved)
    rotated: FloatArray = root @ vectors[:, ::-1]
    forward = rotated * np.where((loadings @ rotated).sum(axis=0) < 0.0, -1.0, 1.0)  # W, (n_dims, n_dims)
    back = np.linalg.inv(forward)
    item_map = _item_map(forward, mean)
    return replace(
        fit,
        loadings=loadings @ forward,
        intercept=fit.intercept + loadings @ mean,
        item_covariance=item_map @ fit.item_covariance @ item_map.T,
        abilities=centred @ back.T,
        ability_covariance=back @ fit.ability_covariance @ back.T,
    )


def standardise_each(fit: Fit) -> Fit:
    """Move each ability to mean 0 and variance 1 by itself, and items with it: zeros of the loadings stay zeros.

    Variances are total ones as in `standardise`; abilities stay correlated. Loadings of each dimension sum to a
    positive number.
    """
    loadings, mean = fit.loadings, fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    total = np.mean(centred**2, axis=0) + np.einsum("ldd->d", fit.ability_covariance) / len(centred)
    scale = np.sqrt(np.where(total > 0.0, total, 1.0)) * np.where(loadings.sum(axis=0) < 0.0, -1.0, 1.0)
    item_map = _item_map(np.diag(scale), mean)
    return with_empirical_prior(
        replace(
            fit,
            loadings=loadings * scale,
            intercept=fit.intercept + loadings @ mean,
            item_covariance=item_map @ fit.item_covariance @ item_map.T,
            abilities=centred / scale,
            ability_covariance=fit.ability_covariance / np.outer(scale, scale),
        )
    )


def reordered(fit: Fit, order: IntArray) -> Fit:
    """Put the abilities in another order, (n_dims,)."""
    with_intercept = np.append(order, order.shape[0])
    return with_empirical_prior(
        replace(
            fit,
            loadings=fit.loadings[:, order],
            item_covariance=fit.item_covariance[:, with_intercept[:, None], with_intercept],
            abilities=fit.abilities[:, order],
            ability_covariance=fit.ability_covariance[:, order[:, None], order],
        )
    )


def with_empirical_prior(fit: Fit) -> Fit:
    """Return the fit with its abilities' normal distribution (WILD eq. 9) as the prior, their covariances included."""
    mean = fit.abilities.mean(axis=0)
    centred = fit.abilities - mean
    return replace(
        fit, prior=AbilityPrior(mean, centred.T @ centred / len(centred) + fit.ability_covariance.mean(axis=0))
    )


def _item_map(forward: FloatArray, mean: FloatArray) -> FloatArray:
    """Matrix that takes (loadings, intercept) of an item to the new scale, (n_dims + 1, n_dims + 1)."""
    n_dims = len(mean)
    item_map = np.eye(n_dims + 1)
    item_map[:n_dims, :n_dims] = forward.T
    item_map[n_dims, :n_dims] = mean
    return item_map
