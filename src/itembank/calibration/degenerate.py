"""Items that every past model answered the same way: their parameters come from the other items."""

import numpy as np

from itembank.calibration.fits import Fit, PreparedResponses
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks


def find_degenerate(responses: FloatArray) -> BoolArray:
    """Which items were answered right every time, or wrong every time, by all who answered, (n_items,)."""
    low = np.nanmin(responses, axis=0)
    high = np.nanmax(responses, axis=0)
    same: BoolArray = (low == high) & ((low == 0.0) | (low == 1.0))
    return same


def put_back(
    fit: Fit,  # Of the items that were not left out
    prepared: PreparedResponses,  # Of all items
    lower_asymptote: FloatArray,  # (n_items,)
    *,
    is_majority: bool = False,  # Whether the others predict the common answer for every model
) -> tuple[ItemParameters, FloatArray]:
    """Give parameters and covariances of all items, from those of the items that were fitted.

    A degenerate item is taken to be like the others: the fitted items' (loadings, intercept) are its normal prior,
    and it gets the mode and the curvature of its posterior given the past models' abilities. Its curve so
    rises with ability from where all of them are. (A constant probability fits them as well, but a new model
    beyond their range then never gets the credit: on AlpacaEval split by date it made p-IRT's error six times as
    large, `benchmarks/tables/tables.md`.) With `is_majority` it is that constant (WILD A.1), of
    ``(n + 1/2) / (n + 1)`` for n equal answers.

    Returns parameters, and covariances (n_items, n_dims + 1, n_dims + 1).
    """
    is_degenerate, n_dims = prepared.is_left_out, fit.loadings.shape[1]
    n_items = is_degenerate.shape[0]
    coefficients = np.zeros((n_items, n_dims + 1))
    covariance = np.zeros((n_items, n_dims + 1, n_dims + 1))
    coefficients[~is_degenerate] = np.column_stack([fit.loadings, fit.intercept])
    covariance[~is_degenerate] = fit.item_covariance
    if is_majority:
        coefficients[is_degenerate, -1], covariance[is_degenerate, -1, -1] = _majority(prepared)
    else:
        fitted = coefficients[~is_degenerate]
        spread = np.eye(n_dims + 1)
        if len(fitted) > n_dims + 1:  # enough for a covariance; equal parameters (a common slope) can be inverted, too
            spread = np.cov(fitted.T) + 1e-6 * spread
        prior = AbilityPrior(fitted.mean(axis=0), spread)
        for lower in np.unique(lower_asymptote[is_degenerate]):
            all_alike = np.flatnonzero(is_degenerate & (lower_asymptote == lower))
            for alike in (all_alike[run] for run in row_blocks(all_alike.size, len(fit.abilities), times=30)):
                trials = None if prepared.n_trials is None else prepared.n_trials[:, alike]
                coefficients[alike], covariance[alike] = _by_prior(
                    prepared.values[:, alike], trials, fit.abilities, prior, lower=lower
                )
    parameters = ItemParameters.create(
        coefficients[:, :-1],
        coefficients[:, -1],
        lower_asymptote,
        family=prepared.family,
        precision=fit.precision,
    )
    return parameters, covariance


def _majority(prepared: PreparedResponses) -> tuple[FloatArray, FloatArray]:
    """Find intercepts, and their variances, of degenerate items that predict the common answer for every model."""
    is_degenerate = prepared.is_left_out
    responses = prepared.values[:, is_degenerate]
    n_answers = np.sum(~np.isnan(responses), axis=0)
    if prepared.n_trials is not None:
        n_answers = prepared.n_trials[:, is_degenerate].sum(axis=0)
    sign = np.where(np.nanmax(responses, axis=0) > 0.5, 1.0, -1.0)
    # p = (n + 1/2) / (n + 1) has the logit log(2 n + 1) and 1 - p = 1 / (2 n + 2); n + 1 answers inform the intercept
    # by (n + 1) p (1 - p).
    intercept = np.log(2.0 * n_answers + 1.0)
    probability = 1.0 / (2.0 * n_answers + 2.0)
    return sign * intercept, 1.0 / ((n_answers + 1.0) * probability * (1.0 - probability))


def _by_prior(
    responses: FloatArray,
    n_trials: IntArray | None,
    abilities: FloatArray,
    prior: AbilityPrior,
    *,
    lower: float,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mode and covariance of (loadings, intercept) of items given abilities.

    Item and model change places: with ``x_l = (theta_l, 1)`` the logit ``x_l . (a_i, c_i)`` is that of a "model"
    whose "ability" is ``(a_i, c_i)`` on an "item" of loadings ``x_l``, so the ability kernel finds it.
    """
    places = ItemParameters.create(
        np.column_stack([abilities, np.ones(len(abilities))]), np.zeros(len(abilities)), lower
    )
    if n_trials is not None:
        posterior = map_abilities(places, responses.T, prior, weights=n_trials.T.astype(np.float64))
        return posterior.theta, posterior.covariance
    # few patterns differ: without missing responses all right and all wrong are the only ones
    coded = np.where(np.isnan(responses), -1.0, responses).astype(np.int8)
    patterns, which = np.unique(coded, axis=1, return_inverse=True)
    posterior = map_abilities(places, np.where(patterns < 0, np.nan, patterns).T, prior)
    return posterior.theta[which.ravel()], posterior.covariance[which.ravel()]
