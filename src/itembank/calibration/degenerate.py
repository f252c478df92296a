"""Items that every calibration model answered the same way: they say nothing of ability."""

import numpy as np
from scipy.special import logit

from itembank.calibration.fits import Fit
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray


def find_degenerate(responses: FloatArray) -> BoolArray:
    """Which items have one and the same binary response by all who answered, (n_items,)."""
    low = np.nanmin(responses, axis=0)
    high = np.nanmax(responses, axis=0)
    same: BoolArray = low == high
    return same


def constant_logit(responses: FloatArray) -> FloatArray:
    """Logit of each item's mean response, shrunk as ``(s + 1/2) / (n + 1)`` (Jeffreys' prior), (n_items,)."""
    n_answers = np.sum(~np.isnan(responses), axis=0)
    shrunk: FloatArray = logit((np.nansum(responses, axis=0) + 0.5) / (n_answers + 1.0))
    return shrunk


def put_back(
    fit: Fit, responses: FloatArray, is_degenerate: BoolArray, lower_asymptote: FloatArray
) -> tuple[ItemParameters, FloatArray]:
    """Give parameters and covariances of all items, from those of the items that were fitted.

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
        Degenerate items have zero loadings and asymptotes 0 and 1, so that their probability is the shrunk constant.
    item_covariance : (n_items, n_dims + 1, n_dims + 1)
    """
    n_items, n_dims = is_degenerate.shape[0], fit.loadings.shape[1]
    loadings = np.zeros((n_items, n_dims))
    intercept = np.zeros(n_items)
    covariance = np.zeros((n_items, n_dims + 1, n_dims + 1))
    loadings[~is_degenerate] = fit.loadings
    intercept[~is_degenerate] = fit.intercept
    intercept[is_degenerate] = constant_logit(responses[:, is_degenerate])
    covariance[~is_degenerate] = fit.item_covariance
    lower = np.where(is_degenerate, 0.0, lower_asymptote)
    return ItemParameters.create(loadings, intercept, lower), covariance
