"""The line between two scales of ability that makes the test characteristic curves of common items alike."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray

LEAST_SLOPE = 1e-3
"""Of the line; a free calibration without any spread of ability has none."""


class ScaleLink(NamedTuple):
    """``ability = slope * free ability + intercept``."""

    slope: float
    intercept: float

    def apply(self, loadings: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bring loadings (n_items, 1) and intercepts (n_items,) of the free scale onto the other one."""
        moved = loadings / self.slope
        return moved, intercept - moved[:, 0] * self.intercept


def stocking_lord(old: ItemParameters, free: ItemParameters, theta: FloatArray, weights: FloatArray) -> ScaleLink:
    """Find the line from a free scale to that of old items (Stocking and Lord 1983).

    Minimises ``sum_q w_q (T_old(theta_q) - T_free((theta_q - B) / A))^2``, with T the sum of the curves of the common
    items, over slope A and intercept B.

    Parameters
    ----------
    old, free : ItemParameters
        Of the common items in one dimension, on the old and on the free scale; both have the old asymptotes.
    theta : (n_quadrature,)
        Abilities on the old scale.
    weights : (n_quadrature,)
        Not negative.
    """
    height = old.upper_asymptote - old.lower_asymptote
    roots = np.sqrt(weights)
    wanted = expit(np.outer(theta, old.loadings[:, 0]) + old.intercept) @ height

    def residuals(line: FloatArray) -> FloatArray:
        x = np.outer((theta - line[1]) / line[0], free.loadings[:, 0]) + free.intercept
        result: FloatArray = roots * (expit(x) @ height - wanted)
        return result

    def derivatives(line: FloatArray) -> FloatArray:
        away = (theta - line[1]) / line[0]
        sigmoid = expit(np.outer(away, free.loadings[:, 0]) + free.intercept)
        rise = roots * ((sigmoid * (1.0 - sigmoid)) @ (height * free.loadings[:, 0])) / line[0]
        return np.column_stack([-rise * away, -rise])

    bounds = ([LEAST_SLOPE, -np.inf], [np.inf, np.inf])
    found = least_squares(residuals, np.array([1.0, 0.0]), derivatives, bounds=bounds, xtol=1e-12, ftol=1e-12)
    return ScaleLink(float(found.x[0]), float(found.x[1]))
