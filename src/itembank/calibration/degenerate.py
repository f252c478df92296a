"""Items that every calibration model answered the same way: the others are what is known of them."""

import numpy as np

from itembank.calibration.fits import Fit
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.scoring.newton import map_abilities

SMALLEST_VARIANCE = 1e-6


def find_degenerate(responses: FloatArray) -> BoolArray:
    """Which items have one and the same binary response by all who answered, (n_items,)."""
    low = np.nanmin(responses, axis=0)
    high = np.nanmax(responses, axis=0)
    same: BoolArray = low == high
    return same


def put_back(
    fit: Fit, responses: FloatArray, is_degenerate: BoolArray, lower_asymptote: FloatArray
) -> tuple[ItemParameters, FloatArray]:
    """Give parameters and covariances of all items, from those of the items that were fitted.

    A degenerate item is taken to be like the others: the fitted items' (loadings, intercept) are its normal prior,
    and it gets the mode and the curvature of its posterior given the calibration models' abilities. Its curve so
    rises with ability from where all of them stand. (A constant probability fits them as well, but a new model
    beyond their range then never gets the credit: on AlpacaEval split by date it made p-IRT's error six times as
    large, `docs/results.md`.)

    Parameters
    ----------
    fit : Fit
        Of the items that are not degenerate.
    responses : (n_models, n_items)
        Binary, NaN where missing.
    is_degenerate : (n_items,)
    lower_asymptote : (n_items,)

    Returns
    -------
    parameters : ItemParameters
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
    """
    n_items, n_dims = is_degenerate.shape[0], fit.loadings.shape[1]
    coefficients = np.empty((n_items, n_dims + 1))
    covariance = np.empty((n_items, n_dims + 1, n_dims + 1))
    coefficients[~is_degenerate] = np.column_stack([fit.loadings, fit.intercept])
    covariance[~is_degenerate] = fit.item_covariance
    prior = _item_prior(coefficients[~is_degenerate])
    for lower in np.unique(lower_asymptote[is_degenerate]):
        alike = is_degenerate & (lower_asymptote == lower)
        coefficients[alike], covariance[alike] = _by_prior(responses[:, alike], fit.abilities, prior, lower=lower)
    return ItemParameters.create(coefficients[:, :-1], coefficients[:, -1], lower_asymptote), covariance


def _item_prior(coefficients: FloatArray) -> AbilityPrior:
    """Return the normal distribution of the fitted items' (loadings, intercept), from (n_items, n_dims + 1)."""
    n_items, size = coefficients.shape
    if n_items <= size:  # too few to tell how they vary together
        return AbilityPrior(coefficients.mean(axis=0), np.eye(size))
    return AbilityPrior(coefficients.mean(axis=0), np.cov(coefficients.T) + SMALLEST_VARIANCE * np.eye(size))


def _by_prior(
    responses: FloatArray, abilities: FloatArray, prior: AbilityPrior, *, lower: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior mode and covariance of (loadings, intercept) of items given abilities.

    Item and model change places: with ``x_l = (theta_l, 1)`` the logit ``x_l . (a_i, c_i)`` is that of a "model"
    whose "ability" is ``(a_i, c_i)`` on an "item" of loadings ``x_l``, so the ability kernel finds it.
    """
    places = ItemParameters.create(
        np.column_stack([abilities, np.ones(len(abilities))]), np.zeros(len(abilities)), lower
    )
    # few patterns differ: without missing responses all right and all wrong are the only ones
    coded = np.where(np.isnan(responses), -1.0, responses).astype(np.int8)
    patterns, which = np.unique(coded, axis=1, return_inverse=True)
    found = map_abilities(places, np.where(patterns < 0, np.nan, patterns).T, prior)
    return found.theta[which.ravel()], found.covariance[which.ravel()]
