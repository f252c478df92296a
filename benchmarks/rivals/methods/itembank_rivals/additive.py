"""Sums of penalised natural cubic splines: one smooth curve an axis, smoothness chosen from the data."""

from dataclasses import dataclass

import numpy as np
import scipy

from itembank.numerics.arrays import FloatArray, IntArray

CAUTION = 1.4
"""Cost of a degree of freedom in generalised cross-validation; 1 undersmooths now and then (Kim & Gu 2004)."""
ROUNDS = 3
JITTER = 1e-12
CLOSEST = 1e-3
"""Least distance of two knots, in standard deviations of the axis."""


@dataclass(frozen=True, slots=True)
class Smooth:
    """Basis of a natural cubic spline: a straight line, and curves whose roughness is the square of their coefficient.

    Attributes
    ----------
    centre, scale : float
        Of the axis: curves are of ``z = (x - centre) / scale``.
    knots : (n_knots,)
        In z; empty where the axis takes too few values for more than a line.
    curves : (n_knots, n_knots - 2)
        Values at the knots of curves with ``integral f''(z)^2 dz = 1``, no two sharing any.
    """

    centre: float
    scale: float
    knots: FloatArray
    curves: FloatArray


def make_smooth(x: FloatArray, n_knots: int) -> Smooth:
    """Basis with at most `n_knots` knots at quantiles of the distinct values of x (n,)."""
    centre, scale = float(x.mean()), float(x.std())
    scale = scale if scale > 1e-12 else np.inf  # a constant axis: z = 0
    distinct = np.unique((x - centre) / scale)
    distinct = distinct[np.diff(distinct, prepend=-np.inf) > CLOSEST]  # equal but for rounding, or nearly
    knots = np.quantile(distinct, np.linspace(0.0, 1.0, min(n_knots, distinct.size)))
    if knots.size < 3:
        return Smooth(centre, scale, np.empty(0), np.empty((0, 0)))
    eigenvalues, vectors = np.linalg.eigh(roughness(knots))
    return Smooth(centre, scale, knots, vectors[:, 2:] / np.sqrt(eigenvalues[2:]))  # the two lines have eigenvalue 0


def smooth_columns(smooth: Smooth, x: FloatArray) -> FloatArray:
    """Line and curves at x (n,): (n, 1 + n_curves). Beyond the knots everything goes on straight."""
    z = (x - smooth.centre) / smooth.scale
    if not smooth.knots.size:
        return np.asarray(z[:, None])
    inside = np.clip(z, smooth.knots[0], smooth.knots[-1])
    spline = scipy.interpolate.CubicSpline(smooth.knots, smooth.curves, bc_type="natural")
    return np.column_stack([z, spline(inside) + (z - inside)[:, None] * spline(inside, 1)])


def roughness(knots: FloatArray) -> FloatArray:
    """Matrix of ``integral f''^2`` in the values at the knots, exact: f'' is a broken line, (n_knots, n_knots)."""
    # f'' is linear between knots: its products integrate to h/3 on and h/6 off the diagonal of each interval h
    curvature = scipy.interpolate.CubicSpline(knots, np.eye(knots.size), bc_type="natural")(knots, 2)
    steps = np.diff(knots)
    middle = (np.append(steps, 0.0) + np.append(0.0, steps)) / 3.0
    overlaps = np.diag(middle) + np.diag(steps, 1) / 6.0 + np.diag(steps, -1) / 6.0
    result: FloatArray = curvature.T @ overlaps @ curvature
    return result


def fit_penalised(
    design: FloatArray, values: FloatArray, groups: IntArray, grids: tuple[FloatArray, ...]
) -> tuple[FloatArray, FloatArray]:
    """Least squares with a penalty a group of columns, each chosen by generalised cross-validation.

    ``min |y - X b|^2 + sum_g lambda_g |b_g|^2`` at the lambda with the least ``n RSS / (n - 1.4 edf)^2``, sought one
    group after the other.

    Parameters
    ----------
    design : (n, n_coefficients)
    values : (n,)
    groups : (n_coefficients,)
        Group of each column; -1 is not penalised.
    grids : tuple of (n_candidates,)
        Penalties to choose from, one array a group, ascending. The search starts at the last.

    Returns
    -------
    coefficients : (n_coefficients,)
    penalties : (n_groups,)
    """
    gram, target = design.T @ design, design.T @ values
    penalties = np.array([grid[-1] for grid in grids])
    for _ in range(ROUNDS):
        before = penalties.copy()
        for group, grid in enumerate(grids):
            candidates = np.repeat(penalties[None, :], grid.size, axis=0)
            candidates[:, group] = grid
            scores = _validation(design, values, _inverses(gram, candidates, groups), target)
            # of equal scores the largest penalty, the smoothest curve
            penalties[group] = grid[grid.size - 1 - int(np.argmin(scores[::-1]))]
        if np.array_equal(before, penalties):
            break
    return _inverses(gram, penalties[None, :], groups)[0] @ target, penalties


def _inverses(gram: FloatArray, penalties: FloatArray, groups: IntArray) -> FloatArray:
    """Inverse penalised Gram matrices, (n_candidates, n_coefficients, n_coefficients)."""
    diagonal = np.where(groups >= 0, penalties[:, groups], 0.0) + JITTER * np.trace(gram)
    result: FloatArray = np.linalg.inv(gram + diagonal[:, :, None] * np.eye(groups.size))
    return result


def _validation(design: FloatArray, values: FloatArray, inverses: FloatArray, target: FloatArray) -> FloatArray:
    """Criterion of each candidate, (n_candidates,); infinite where under 5 % of the degrees of freedom are left."""
    n = values.size
    residuals = values - (inverses @ target) @ design.T  # (n_candidates, n)
    freedom = n - CAUTION * np.einsum("cij,ji->c", inverses, design.T @ design)
    criterion = n * (residuals**2).sum(axis=1) / np.maximum(freedom, 1e-9) ** 2
    return np.where(freedom > 0.05 * n, criterion, np.inf)
