"""The precision of families that have one, in joint MAP: learned between ascents of items and abilities.

At the joint maximum the residual spread of the responses is too small, since items and abilities fit part of it. So
phi maximises ``sum log f(y; phi) - (nu / 2) log I(phi)``, with nu the number of parameters that the responses determine
and I how their information grows with phi: Laplace's approximation of the marginal likelihood (MacKay 1992). I is
``phi + 1`` for probabilities, which for large phi makes phi the usual unbiased ``(n - nu) / sum of squares``, and
``(phi + 1) / (phi + n)`` for n trials: the inverses of the variances of a response. A wide prior keeps phi finite
where there are as many parameters as responses, as in the 2PL with two models; there it decides, so give a precision.
"""

from typing import NamedTuple

import numpy as np

from itembank.calibration.fits import FitData
from itembank.calibration.joint_map.ascent import Point
from itembank.calibration.joint_map.passes import logit_blocks, trials_at
from itembank.calibration.precision_prior import DIFFERENCE, LEAST, MOST, PRIOR_MEAN, PRIOR_SD
from itembank.irt.families import ResponseModel, response_model
from itembank.irt.family_names import KINDS
from itembank.irt.logistic import asymptotes_of
from itembank.numerics.arrays import FloatArray, IntArray

LARGEST_STEP = 2.0
"""Of log phi: a factor of seven, as far as differences at the old phi can be trusted."""
LEAST_CHANGE = 1e-3
"""Of log phi: far below its standard error."""
MOST_ROUNDS = 60
"""Of an ascent and a step of the precisions."""


class Learned(NamedTuple):
    """Logs of the precisions after a step, and their standard errors, each (n_precisions,)."""

    log_precision: FloatArray
    error: FloatArray


def model_of(data: FitData, precision: FloatArray) -> ResponseModel:
    """Make the distribution of the responses at a precision of each item, (n_items,)."""
    lower = data.lower_asymptote
    return response_model(data.family, asymptotes_of(lower, np.ones_like(lower)), precision)


def learn(data: FitData, point: Point, index: IntArray, *, log_precision: FloatArray, freedom: FloatArray) -> Learned:
    """Take a Newton step of every precision, by differences.

    Parameters
    ----------
    data, point
    index : (n_items,)
        Which items share a precision.
    log_precision : (n_precisions,)
        At present.
    freedom : (n_precisions,)
        Parameters that the responses determine.
    """
    low, middle, high = (
        _of_each(data, point, model_of(data, np.exp(log_precision + step)[index]), index)
        - 0.5 * freedom * _log_information(data, np.exp(log_precision + step), index)
        - 0.5 * ((log_precision + step - PRIOR_MEAN) / PRIOR_SD) ** 2
        for step in (-DIFFERENCE, 0.0, DIFFERENCE)
    )
    gradient, curvature = (high - low) / (2.0 * DIFFERENCE), (2.0 * middle - high - low) / DIFFERENCE**2
    # Where the objective is not concave, a whole unit uphill.
    step = np.where(curvature > 0.0, gradient / np.where(curvature > 0.0, curvature, 1.0), np.sign(gradient))
    moved = np.clip(log_precision + np.clip(step, -LARGEST_STEP, LARGEST_STEP), np.log(LEAST), np.log(MOST))
    return Learned(moved, 1.0 / np.sqrt(np.maximum(curvature, 1.0 / PRIOR_SD**2)))


def _of_each(data: FitData, point: Point, model: ResponseModel, index: IntArray) -> FloatArray:
    """Log-likelihood of the responses of each precision, (n_precisions,)."""
    design = np.column_stack([point.abilities, np.ones(len(point.abilities))])
    of_items = np.empty(len(point.items))
    for block, x, responses in logit_blocks(data, point.items, design):
        inside = model.take(np.arange(block.start, block.stop))
        terms = inside.log_likelihood_terms(x, responses, trials_at(data, block))
        of_items[block] = np.sum(terms if data.observed is None else terms * data.observed[:, block], axis=0)
    return np.asarray(np.bincount(index, weights=of_items), dtype=np.float64)


def _log_information(data: FitData, precision: FloatArray, index: IntArray) -> FloatArray:
    """Mean log of the information of the responses of each precision, up to what does not depend on it."""
    if data.n_trials is None:
        return np.log1p(precision) if KINDS[data.family].takes == "probabilities" else np.zeros(precision.shape)
    of_cells = np.log1p(precision)[index] - np.log(precision[index] + np.maximum(data.n_trials, 1.0))
    is_there = data.n_trials > 0.0
    total = np.bincount(index, weights=np.sum(of_cells * is_there, axis=0))
    return np.asarray(total / np.maximum(np.bincount(index, weights=is_there.sum(axis=0)), 1.0), dtype=np.float64)
