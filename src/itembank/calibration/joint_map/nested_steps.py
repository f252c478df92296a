"""The steps of joint MAP for nested item models, and the scale and axes that items and abilities share.

Objective (WILD 5.1, App. A), with normal priors of alpha and the intercept c that WILD does not state:
``sum l(y, alpha (theta_g + K . theta) + c) + lambda l(y, alpha theta_g + c)``
``- |theta|^2 / 2 - l1 sum |K| - sum (alpha - 1)^2 / (2 slope_sd^2) - sum c^2 / (2 intercept_sd^2)``.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.joint_map.nested_passes import Group, NestedDerivatives, active_items
from itembank.calibration.joint_map.steps import LARGEST_STEP, best_transform, l1_scales, thresholded
from itembank.numerics.arrays import FloatArray

SCALE_RANGE = 2.0
"""Largest factor, up or down, by which one step changes the scale of the general ability. With 1.2 to 8 the ends
are the same."""

N_THRESHOLD_SWEEPS = 8
"""Sweeps of coordinate descent in a step of the items: the next step goes on where this one ends. 1 to 30 end alike."""

LEAST_GAIN = 1e-5
"""Fraction of the log prior's size that a rotation of the axes must add to it. From 0 to 1e-3 the ends are the same."""


def log_prior(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> float:
    """Log prior of all parameters up to its constant."""
    slopes = float(np.sum((items[:, 0] - 1.0) ** 2)) / (2.0 * spec.slope_sd**2)
    intercepts = float(np.sum(items[:, -1] ** 2)) / (2.0 * spec.intercept_sd**2)
    loadings = spec.loading_weight * float(np.abs(items[:, 1:-1]).sum())
    return -0.5 * float(np.sum(abilities**2)) - loadings - slopes - intercepts


def item_step(items: FloatArray, group: Group, derivatives: NestedDerivatives, spec: JointMAP) -> FloatArray:
    """Proximal Newton step of a group's (alpha, K, c), (n_group, n_active + 1), with the L1 term exact."""
    active = active_items(items, group)
    gradient, precision = derivatives.gradient.copy(), derivatives.precision.copy()
    for place, centre, spread in ((0, 1.0, spec.slope_sd), (-1, 0.0, spec.intercept_sd)):
        gradient[:, place] -= (active[:, place] - centre) / spread**2
        precision[:, place, place] += 1.0 / spread**2
    # alpha and c have no L1 term: eliminate them by the Schur complement of their block
    ends, inner = np.array([0, active.shape[1] - 1]), np.arange(1, active.shape[1] - 1)
    ends_precision = precision[:, ends[:, None], ends]
    cross = precision[:, inner[:, None], ends]  # (n_group, n_specific, 2)
    regression = np.linalg.solve(ends_precision, cross.swapaxes(1, 2))  # (n_group, 2, n_specific)
    reduced = precision[:, inner[:, None], inner] - cross @ regression
    reduced_gradient = gradient[:, inner] - np.einsum("iep,ie->ip", regression, gradient[:, ends])
    specific = (
        thresholded(active[:, inner], reduced_gradient, reduced, spec.loading_weight, N_THRESHOLD_SWEEPS)
        - active[:, inner]
    )
    ends_step = np.linalg.solve(ends_precision, gradient[:, ends, None])[..., 0] - np.einsum(
        "iep,ip->ie", regression, specific
    )
    step = np.column_stack([ends_step[:, 0], specific, ends_step[:, 1]])
    # of the logit, to first order, at abilities of size 2
    reach = 2.0 * np.abs(ends_step[:, 0]) * (1.0 + np.linalg.norm(active[:, inner], axis=1)) + np.abs(ends_step[:, 1])
    reach += 2.0 * np.abs(active[:, 0]) * np.linalg.norm(specific, axis=1)
    shortened: FloatArray = step * np.minimum(1.0, LARGEST_STEP / np.maximum(reach, 1e-300))[:, None]
    return shortened


def best_scale(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Shift and scale the general ability, and scale the specific ones, to the highest log prior; no logit changes.

    With ``theta_g = m + s theta_g'`` and ``theta_k = t_k theta_k'`` items are
    ``alpha' = s alpha``, ``K_k' = t_k K_k / s`` and ``c' = c + alpha m``. The best m is a ratio; for given s the best
    ``t_k^3`` is ``s sum theta_k^2 / (l1 sum |K_k|)``; s is found by a search in one dimension.
    """
    slope, specific, intercept = items[:, 0], items[:, 1:-1], items[:, -1]
    variance = spec.intercept_sd**2
    shift = (abilities[:, 0].sum() - slope @ intercept / variance) / (len(abilities) + slope @ slope / variance)
    general = abilities[:, 0] - shift
    scale = _general_scale(items, general, abilities[:, 1:], spec)
    scales = l1_scales(specific, abilities[:, 1:], spec.loading_weight, scale)
    moved = np.column_stack([slope * scale, specific * (scales / scale), intercept + slope * shift])
    return moved, np.column_stack([general / scale, abilities[:, 1:] / scales])


def _general_scale(items: FloatArray, general: FloatArray, specific: FloatArray, spec: JointMAP) -> float:
    """Best scale s of the general ability."""
    slope, spread = items[:, 0], float(general @ general)
    linear, square = float(slope.sum()), float(slope @ slope)
    sizes, spreads = spec.loading_weight * np.abs(items[:, 1:-1]).sum(axis=0), np.sum(specific**2, axis=0)
    least = 1.5 * float(np.sum(np.cbrt(spreads * sizes**2)))  # l1 |K'| + |theta'|^2 / 2 at the best t, for s = 1

    def penalty(logarithm: float) -> float:
        scale = np.exp(logarithm)
        # sum (s alpha - 1)^2 / (2 slope_sd^2) without its constant; |theta_g|^2 / 2 falls as s^-2, and at the best t_k
        # the specific part as s^(-2/3).
        slopes = (scale**2 * square - 2.0 * scale * linear) / (2.0 * spec.slope_sd**2)
        return float(slopes + spread / (2.0 * scale**2) + least * scale ** (-2.0 / 3.0))

    reach = np.log(SCALE_RANGE)
    optimum = minimize_scalar(penalty, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
    return float(np.exp(optimum.x)) if optimum.fun < penalty(0.0) else 1.0


def best_axes(items: FloatArray, abilities: FloatArray, spec: JointMAP) -> tuple[FloatArray, FloatArray]:
    """Rotate the specific abilities, and K with them, to a higher log prior; no logit changes.

    Every rotation removes the zeros of K until the next step of the items restores them, so a tiny gain is refused.
    """
    transform = best_transform(items[:, 1:-1], abilities[:, 1:], spec.loading_weight)
    rotated = abilities[:, 1:] @ np.linalg.inv(transform).T
    moved = np.column_stack([items[:, 0], items[:, 1:-1] @ transform, items[:, -1]])
    before = log_prior(items, abilities, spec)
    after = log_prior(moved, np.column_stack([abilities[:, 0], rotated]), spec)
    if after - before <= LEAST_GAIN * abs(before):
        return items, abilities
    return moved, np.column_stack([abilities[:, 0], rotated])
