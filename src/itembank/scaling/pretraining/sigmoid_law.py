"""The direct law: a score as a sigmoid of log FLOP, fitted from many starts."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.curve_fitting import CurveFits, fit_curves, spread_points
from itembank.scaling.pretraining.law_spec import SigmoidLaw

N_PARAMETERS = 4
"""k, x0, a and e."""
STEEPEST = 6.0
"""Slope of the logit in a natural logarithm of FLOP; a benchmark rises over a decade or more, never within a tenth."""


@dataclass(frozen=True, slots=True)
class SigmoidFits:
    """The direct law of n_curves recipes."""

    fits: CurveFits  # Parameters (k, x0, a, e), x in log FLOP less `centre`
    centre: float

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores at log FLOP (n_points,): best start (n_curves, n_points), all (n_curves, n_starts, n_points)."""
        return (
            sigmoid_values(self.fits.best, log_flops - self.centre),
            sigmoid_values(self.fits.parameters, log_flops - self.centre),
        )


def fit_sigmoid_law(
    log_flops: FloatArray, scores: FloatArray, spec: SigmoidLaw, rng: np.random.Generator
) -> SigmoidFits:
    """Fit the direct law of each recipe to its scores, by least squares.

    Bounds: ``0 <= e <= 1``, ``0 <= a <= 1`` with ``e + a`` free to be anything up to 2 (scores outside what was seen
    are cut when they are reported), ``0 <= k <= 6``, x0 within three spans of the data.

    Parameters
    ----------
    log_flops, scores : (n_curves, n_points)
        NaN where a recipe has fewer points.
    spec : SigmoidLaw
    rng : Generator
        Places the starts.
    """
    centre = float(np.nanmean(log_flops))
    x = log_flops - centre
    # at least a factor of e in compute, so that sizes close together do not make the box of starts as narrow
    span = max(float(np.nanmax(x) - np.nanmin(x)), 1.0)
    lower = np.array([0.0, float(np.nanmin(x)) - 3.0 * span, 0.0, 0.0])
    upper = np.array([STEEPEST, float(np.nanmax(x)) + 3.0 * span, 1.0, 1.0])
    # starts lie in a smaller box than the bounds: curves that rise within the data or one span above it
    box_low = np.array([0.3 / span, float(np.nanmin(x)), 0.1, 0.0])
    box_high = np.array([min(8.0 / span, STEEPEST), float(np.nanmax(x)) + span, 1.0, 0.5])
    starts = spread_points(box_low, box_high, spec.n_starts, rng)
    every = np.broadcast_to(starts, (len(x), *starts.shape))
    return SigmoidFits(fit_curves(sigmoid_curve, x, scores, every, lower=lower, upper=upper), centre)


def sigmoid_values(parameters: FloatArray, x: FloatArray) -> FloatArray:
    """``e + a sigmoid(k (x - x0))`` for parameters (..., 4) = (k, x0, a, e) at x (..., n_points)."""
    k, x0, a, e = (parameters[..., i, None] for i in range(N_PARAMETERS))
    result: FloatArray = e + a * expit(k * (x - x0))
    return result


def sigmoid_curve(parameters: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and derivatives of `sigmoid_values`, for `fit_curves`."""
    k, x0, a, e = (parameters[..., i, None] for i in range(N_PARAMETERS))
    rise = expit(k * (x - x0))
    # with s = sigmoid(k (x - x0)): d/dk = a s (1 - s) (x - x0), d/dx0 = -a s (1 - s) k, d/da = s, d/de = 1
    slope = a * rise * (1.0 - rise)
    derivatives = np.stack([slope * (x - x0), -slope * k, rise, np.ones_like(rise)], axis=-1)
    return e + a * rise, derivatives
