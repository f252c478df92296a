"""Priors of the item parameters of marginal ML, and the scale of ability that suits them best."""

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize

from itembank.calibration.specs import ItemPrior, LearnedItemPrior
from itembank.numerics.arrays import FloatArray

AnyItemPrior: TypeAlias = ItemPrior | LearnedItemPrior


class PriorTerms(NamedTuple):
    """Log-density with its derivatives.

    Attributes
    ----------
    value : float
    gradient : (n_items, n_dims + 1)
    precision : (n_items, n_dims + 1, n_dims + 1)
        Minus the second derivatives.
    """

    value: float
    gradient: FloatArray
    precision: FloatArray


def prior_terms(items: FloatArray, prior: AnyItemPrior, *, has_common_slope: bool = False) -> PriorTerms:
    """Log-density of all item parameters (loadings, intercept).

    A common slope counts once; its terms stand with the first item, since only sums over items are used.
    Learned centres are at their best values for these items, so that by the envelope theorem the gradient
    needs no derivative of them; the precision holds them fixed.
    """
    n_items, n_columns = items.shape
    gradient, precision = np.zeros_like(items), np.zeros((n_items, n_columns, n_columns))
    rows = slice(0, 1) if has_common_slope else slice(None)
    from_intercept, slope_pull = _intercept_residual(items, prior, has_common_slope=has_common_slope)
    weight = 1.0 / prior.intercept_sd**2
    value = _normal_log_density(from_intercept, prior.intercept_sd)
    gradient[:, -1] = -weight * from_intercept
    precision[:, -1, -1] = weight
    if n_columns == 2:
        log_density, slope, curvature = _lognormal(items[rows, 0], prior)
        gradient[rows, 0], precision[rows, 0, 0] = slope, curvature
        gradient[:, 0] += weight * slope_pull * from_intercept
        precision[:, 0, 0] += weight * slope_pull**2
        precision[:, 0, 1] = precision[:, 1, 0] = -weight * slope_pull
        return PriorTerms(value + float(log_density.sum()), gradient, precision)
    if isinstance(prior, ItemPrior):
        value += _normal_log_density(items[:, :-1], prior.loading_sd)
        gradient[:, :-1] = -items[:, :-1] / prior.loading_sd**2
        precision[:, :-1, :-1] = np.eye(n_columns - 1) / prior.loading_sd**2
    return PriorTerms(value, gradient, precision)


def log_prior(items: FloatArray, prior: AnyItemPrior | None, *, has_common_slope: bool = False) -> float:
    """Log-density of all item parameters; zero without a prior."""
    return 0.0 if prior is None else prior_terms(items, prior, has_common_slope=has_common_slope).value


def _intercept_residual(items: FloatArray, prior: AnyItemPrior, *, has_common_slope: bool) -> tuple[FloatArray, float]:
    """Take intercepts minus their centre, and the centre's slope on the loading."""
    slopes, intercepts = items[:, 0], items[:, -1]
    if isinstance(prior, ItemPrior):
        return intercepts, 0.0
    centred, spread = slopes - slopes.mean(), intercepts - intercepts.mean()
    size = float(centred @ centred)
    if has_common_slope or size < 1e-12 * len(items):
        return spread, 0.0
    pull = float(centred @ spread) / size
    return spread - pull * centred, pull


def _lognormal(slope: FloatArray, prior: AnyItemPrior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-density of slopes, its derivative, and minus its second derivative.

    A learned prior is a density of the log slope: that of the slope would reward ever smaller slopes of
    all items together.
    """
    sd, log_slope = prior.log_discrimination_sd, np.log(slope)
    is_fixed = isinstance(prior, ItemPrior)
    centre = prior.log_discrimination_mean if isinstance(prior, ItemPrior) else float(log_slope.mean())
    pull = (log_slope - centre) / sd**2
    log_density = -0.5 * sd**2 * pull**2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
    first, second = -pull / slope, (1.0 / sd**2 - pull) / slope**2
    if is_fixed:
        return log_density - log_slope, first - 1.0 / slope, second - 1.0 / slope**2
    return log_density, first, second


def _normal_log_density(values: FloatArray, sd: float) -> float:
    """Sum of normal log-densities with mean 0."""
    constant = values.size * (np.log(sd) + 0.5 * np.log(2.0 * np.pi))
    return float(-0.5 * np.sum(values**2) / sd**2 - constant)


class Scale(NamedTuple):
    """A normal population of ability: theta = shift + matrix . standard normal."""

    shift: FloatArray
    matrix: FloatArray


def best_scale(
    mean: FloatArray,
    covariance: FloatArray,
    items: FloatArray,
    prior: AnyItemPrior | None,
    *,
    has_common_slope: bool = False,
) -> Scale:
    """Find the population of ability that suits the posteriors, and the item priors on its scale, best.

    The parameter expansion of EM (Liu, Rubin and Wu 1998, PX-EM): the population's mean m and
    covariance ``W W'`` are fitted as well, then reduced to N(0, I) by `rescale`. Plain EM all but
    stands still along these directions when abilities are known sharply, as its step is the share of
    the prior in each posterior. With fixed item priors this maximises
    ``-M (log|W| + tr((W W')^-1 T(m)) / 2) + log prior(W' a, c + a . m)`` over m and W.

    Parameters
    ----------
    mean : (n_models, n_dims)
        Posterior means of ability.
    covariance : (n_models, n_dims, n_dims)
    items : (n_items, n_dims + 1)
    """
    centre = mean.mean(axis=0)
    centred = mean - centre
    spread = centred.T @ centred / len(mean) + covariance.mean(axis=0)
    scale = Scale(centre, np.linalg.cholesky(spread))
    if prior is None or isinstance(prior, LearnedItemPrior):
        return scale
    moments = _Moments(len(mean), centre, spread)
    found = minimize(
        lambda packed: _negative_expanded(packed, moments, items, prior, has_common_slope=has_common_slope),
        _pack(scale),
        jac=True,
        method="BFGS",
        options={"maxiter": 30, "gtol": 1e-6 * len(mean)},
    )
    return _unpack(found.x, len(centre))


def rescale(items: FloatArray, scale: Scale) -> FloatArray:
    """Item parameters after the population is moved to N(0, I): ``a' = W' a``, ``c' = c + a . m``."""
    loadings, intercept = items[:, :-1], items[:, -1]
    return np.column_stack([loadings @ scale.matrix, intercept + loadings @ scale.shift])


class _Moments(NamedTuple):
    """Number of abilities, their mean and their total covariance."""

    n_models: int
    centre: FloatArray
    spread: FloatArray


def _negative_expanded(
    packed: FloatArray, moments: _Moments, items: FloatArray, prior: AnyItemPrior, *, has_common_slope: bool
) -> tuple[float, FloatArray]:
    """Minus the objective of `best_scale`, and its gradient in the packed parameters."""
    n_models, centre, spread = moments
    n_dims = len(centre)
    shift, matrix = _unpack(packed, n_dims)
    back = np.linalg.inv(matrix)
    total = spread + np.outer(centre - shift, centre - shift)
    whitened = back @ total @ back.T
    terms = prior_terms(rescale(items, Scale(shift, matrix)), prior, has_common_slope=has_common_slope)
    loadings = items[:, :-1]
    value = -n_models * (np.log(np.diag(matrix)).sum() + 0.5 * np.trace(whitened)) + terms.value
    shift_slope = n_models * back.T @ back @ (centre - shift) + loadings.T @ terms.gradient[:, -1]
    matrix_slope = n_models * back.T @ (whitened - np.eye(n_dims)) + loadings.T @ terms.gradient[:, :-1]
    slope = np.concatenate([shift_slope, _lower_with_log_diagonal(matrix_slope, matrix)])
    return -value, -slope


def _pack(scale: Scale) -> FloatArray:
    """Shift, then the lower triangle of the matrix with logs on its diagonal."""
    matrix = scale.matrix.copy()
    np.fill_diagonal(matrix, np.log(np.diag(matrix)))
    return np.concatenate([scale.shift, matrix[np.tril_indices(len(matrix))]])


def _unpack(packed: FloatArray, n_dims: int) -> Scale:
    """Undo `_pack`."""
    matrix = np.zeros((n_dims, n_dims))
    matrix[np.tril_indices(n_dims)] = packed[n_dims:]
    np.fill_diagonal(matrix, np.exp(np.diag(matrix)))
    return Scale(packed[:n_dims], matrix)


def _lower_with_log_diagonal(slope: FloatArray, matrix: FloatArray) -> FloatArray:
    """Turn derivatives in the matrix into those in its packed triangle."""
    chained = slope.copy()
    np.fill_diagonal(chained, np.diag(slope) * np.diag(matrix))
    return chained[np.tril_indices(len(matrix))]
