"""Ability as a line in log FLOP, one line a training recipe (P3 eq. 3), with what its forecasts are worth.

Recipe r at size j: ``theta_rj = t_r + s_r x_rj + u_rj + e_rj`` with x in log FLOP, ``e_rj`` the error of the measured
ability, of known variance v_rj, and ``u_rj`` the distance of that model from its recipe's line, of variance sigma^2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

Pooling = Literal["none", "partial"]

N_COEFFICIENTS = 2
FEWEST_RECIPES_TO_POOL = 4
"""Recipes from which the spread of lines between recipes can be told from few."""

MAX_POOLING_STEPS = 300
POOLING_TOLERANCE = 1e-5
SMALLEST_VARIANCE = 1e-12
"""Of a measured ability: what is given as exact weighs this at most."""


@dataclass(frozen=True, slots=True)
class AbilityLaws:
    """Lines of n_recipes recipes.

    Attributes
    ----------
    centre : float
        Log FLOP at which the first coefficient is the ability.
    coefficients : (n_recipes, 2)
        Ability at the centre, and the slope s in a unit of log FLOP; NaN for a recipe with too few sizes.
    covariance : (n_recipes, 2, 2)
        Of the coefficients.
    residual_variance : float
        sigma^2, common to all recipes.
    drift : float
        Growth of the variance of a forecast with the square of its distance beyond the largest size, in log FLOP,
        beside what the uncertain coefficients bring: lines bend.
    n_sizes : (n_recipes,)
    largest : (n_recipes,)
        Largest log FLOP the line was fitted to.
    degrees_of_freedom : float
        Points less coefficients over all recipes: what sigma^2 rests on.
    """

    centre: float
    coefficients: FloatArray
    covariance: FloatArray
    residual_variance: float
    drift: float
    n_sizes: IntArray
    largest: FloatArray
    degrees_of_freedom: float

    @property
    def slope(self) -> FloatArray:
        """Rise of ability with a unit of log FLOP, (n_recipes,)."""
        return self.coefficients[:, 1]

    @property
    def slope_error(self) -> FloatArray:
        """Standard error of the slope, (n_recipes,)."""
        result: FloatArray = np.sqrt(self.covariance[:, 1, 1])
        return result

    @property
    def intercept(self) -> FloatArray:
        """Ability at one FLOP (P3's b), (n_recipes,)."""
        result: FloatArray = self.coefficients[:, 0] - self.coefficients[:, 1] * self.centre
        return result

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ability of a model trained with log FLOP (n_points,), and its variance: each (n_recipes, n_points)."""
        design = _design(np.broadcast_to(log_flops, (len(self.coefficients), len(log_flops))) - self.centre)
        mean = np.einsum("rpc,rc->rp", design, self.coefficients)
        spread = np.einsum("rpc,rcd,rpd->rp", design, self.covariance, design)
        beyond = np.maximum(log_flops[None, :] - self.largest[:, None], 0.0)
        return mean, spread + self.residual_variance + self.drift * beyond**2


def fit_ability_laws(
    log_flops: FloatArray, theta: FloatArray, variance: FloatArray, *, pooling: Pooling = "partial"
) -> AbilityLaws:
    """Fit every recipe's line.

    Weighted least squares, weights ``1 / (sigma^2 + v)``, with sigma^2 from the residuals of all recipes (the value
    at which their weighted sum of squares is what its degrees of freedom say; Paule and Mandel 1982). 'partial' then
    draws the lines to each other: ``(t_r, s_r) ~ N(mu, Omega)`` with mu and Omega found by EM over recipes, so that
    recipes with few or noisy sizes lean on the others; with fewer than four recipes it is 'none'. The drift is what
    forecasts of each size from the smaller ones missed by, beyond the variance stated.

    Parameters
    ----------
    log_flops, theta, variance : (n_recipes, n_sizes)
        NaN where a recipe has fewer sizes; any order.
    pooling : {'partial', 'none'}
    """
    order = np.argsort(np.where(np.isfinite(theta), log_flops, np.inf), axis=1, kind="stable")
    x, y, v = (np.take_along_axis(array, order, axis=1) for array in (log_flops, theta, variance))
    is_known = np.isfinite(x) & np.isfinite(y) & np.isfinite(v)
    x, y, v = (np.where(is_known, array, np.nan) for array in (x, y, v))
    laws = _lines(x, y, v, pooling, None)
    return replace(laws, drift=_drift(x, y, v, pooling, laws.residual_variance))


def _lines(x: FloatArray, y: FloatArray, v: FloatArray, pooling: Pooling, residual: float | None) -> AbilityLaws:
    """Lines without drift; sigma^2 from the residuals unless given."""
    n_sizes = np.isfinite(y).sum(axis=1)
    centre = float(np.nanmean(x))
    at = x - centre
    is_line = n_sizes >= N_COEFFICIENTS
    degrees = float(np.sum(n_sizes[is_line] - N_COEFFICIENTS))
    if residual is None:
        residual = _residual_variance(at[is_line], y[is_line], v[is_line], degrees)
    cross, moment = _sums(at, y, residual + v)
    if pooling == "partial" and int(is_line.sum()) >= FEWEST_RECIPES_TO_POOL:
        coefficients, covariance = _pooled(cross, moment, n_sizes > 0, is_line)
    else:
        coefficients, covariance = _separate(cross, moment, is_line)
    return AbilityLaws(centre, coefficients, covariance, residual, 0.0, n_sizes, _largest(x), degrees)


def _design(x: FloatArray) -> FloatArray:
    """``(1, x)``, (..., 2)."""
    return np.stack([np.ones_like(x), x], axis=-1)


def _largest(x: FloatArray) -> FloatArray:
    """Largest known value of each row, NaN for none."""
    largest = np.where(np.isfinite(x), x, -np.inf).max(axis=1)
    return np.where(np.isfinite(largest), largest, np.nan)


def _sums(x: FloatArray, y: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``X' W X`` (n_recipes, 2, 2) and ``X' W y`` (n_recipes, 2) with ``W = 1 / variance``, 0 where NaN."""
    weights = np.where(np.isfinite(y), 1.0 / np.maximum(variance, SMALLEST_VARIANCE), 0.0)
    design = _design(np.nan_to_num(x))
    scaled = design * weights[..., None]
    return np.einsum("rpc,rpd->rcd", scaled, design), np.einsum("rpc,rp->rc", scaled, np.nan_to_num(y))


def _separate(cross: FloatArray, moment: FloatArray, is_line: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Each recipe's own line; NaN without two sizes."""
    coefficients = np.full(moment.shape, np.nan)
    covariance = np.full(cross.shape, np.nan)
    covariance[is_line] = np.linalg.inv(cross[is_line])
    coefficients[is_line] = np.einsum("rcd,rd->rc", covariance[is_line], moment[is_line])
    return coefficients, covariance


def _pooled(
    cross: FloatArray, moment: FloatArray, has_points: BoolArray, is_line: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Lines drawn to each other (empirical Bayes); recipes with one size have one too.

    The covariance holds what the uncertain mean mu brings, not what the uncertain Omega does.
    """
    own, own_covariance = _separate(cross, moment, is_line)
    n_recipes = int(has_points.sum())
    mean = own[is_line].mean(axis=0)
    floor = 1e-6 * np.diag(np.diagonal(own_covariance[is_line], axis1=1, axis2=2).mean(axis=0))
    between = np.atleast_2d(np.cov(own[is_line].T)) + floor
    used_cross, used_moment = cross[has_points], moment[has_points]
    for _ in range(MAX_POOLING_STEPS):
        prior = np.linalg.inv(between)
        spread = np.linalg.inv(used_cross + prior)
        lines = np.einsum("rcd,rd->rc", spread, used_moment + prior @ mean)
        new_mean = lines.mean(axis=0)
        apart = lines - new_mean
        # the mean was found from the same lines: one degree of freedom less
        new_between = (spread.sum(axis=0) + apart.T @ apart * n_recipes / (n_recipes - 1.0)) / n_recipes + floor
        change = np.max(np.abs(new_between - between) / np.sqrt(np.outer(np.diag(between), np.diag(between))))
        mean, between = new_mean, new_between
        if change < POOLING_TOLERANCE:
            break
    prior = np.linalg.inv(between)
    spread = np.linalg.inv(cross + prior)
    lines = np.einsum("rcd,rd->rc", spread, moment + prior @ mean)
    marginal = np.einsum("rcd,rde->rce", cross, np.linalg.inv(np.eye(N_COEFFICIENTS) + between @ cross))
    mean_covariance = np.linalg.inv(marginal.sum(axis=0))
    lean = spread @ prior
    covariance = spread + lean @ mean_covariance @ lean.transpose(0, 2, 1)
    lines[~has_points], covariance[~has_points] = np.nan, np.nan
    return lines, covariance


def _residual_variance(x: FloatArray, y: FloatArray, v: FloatArray, degrees: float) -> float:
    """sigma^2 at which the weighted squares of all residuals sum to their degrees of freedom; zero at least."""
    if degrees <= 0.0:
        return 0.0

    def excess(variance: float) -> float:
        cross, moment = _sums(x, y, variance + v)
        lines = np.linalg.solve(cross, moment[..., None])[..., 0]
        residual = np.nan_to_num(y) - np.einsum("rpc,rc->rp", _design(np.nan_to_num(x)), lines)
        return float(np.sum(np.where(np.isfinite(y), residual**2 / np.maximum(variance + v, SMALLEST_VARIANCE), 0.0)) - degrees)

    return _root(excess, float(np.nanvar(y)))


def _drift(x: FloatArray, y: FloatArray, v: FloatArray, pooling: Pooling, residual: float) -> float:
    """Growth of the squared errors with distance, from forecasts of every size by lines through the smaller ones."""
    errors, stated, distances = [], [], []
    for n_kept in range(N_COEFFICIENTS, x.shape[1]):
        later = np.isfinite(y) & (np.arange(x.shape[1]) >= n_kept)
        if not later.any():
            continue
        kept = np.where(np.arange(x.shape[1]) < n_kept, y, np.nan)
        kept = np.where(later.any(axis=1, keepdims=True), kept, np.nan)
        part = _lines(np.where(np.isfinite(kept), x, np.nan), kept, v, pooling, residual)
        design = _design(np.nan_to_num(x) - part.centre)
        mean = np.einsum("rpc,rc->rp", design, part.coefficients)
        spread = np.einsum("rpc,rcd,rpd->rp", design, part.covariance, design)
        errors.append((y - mean)[later] ** 2)
        stated.append((spread + residual + v)[later])
        distances.append((x - part.largest[:, None])[later])
    if not errors:
        return 0.0
    return growth_of_errors(np.concatenate(errors), np.concatenate(stated), np.concatenate(distances))


def growth_of_errors(squares: FloatArray, stated: FloatArray, distances: FloatArray) -> float:
    """Growth g of the variance of forecasts with the square of their distance h beyond what they were fitted to.

    The value at which ``sum_j e_j^2 / (v_j + g h_j^2)`` is the number of forecasts; zero at least.

    Parameters
    ----------
    squares, stated, distances : (n_forecasts,)
        Squared errors e^2, the variance v that was stated without drift, and h. Distances of zero tell nothing.
    """
    is_known = np.isfinite(squares) & np.isfinite(stated) & (distances > 0.0)
    squares, stated, distances = squares[is_known], stated[is_known], distances[is_known]
    if not squares.size:
        return 0.0

    def excess(drift: float) -> float:
        return float(np.sum(squares / np.maximum(stated + drift * distances**2, 1e-12)) - squares.size)

    return _root(excess, float(np.max(squares / distances**2)))


def _root(falling: Callable[[float], float], upper: float) -> float:
    """Where a falling function crosses zero, between zero and a few times `upper`; zero when it is below at zero."""
    if upper <= 0.0 or falling(0.0) <= 0.0:
        return 0.0
    while falling(upper) > 0.0:
        upper *= 2.0
    return float(brentq(falling, 0.0, upper, xtol=1e-12, rtol=1e-8))
