"""The traditional two-step law: loss from compute, then score from loss (IRSL eq. 1; Bhagia et al. 2024)."""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.curve_fitting import CurveFits, fit_curves, spread_points
from itembank.scaling.pretraining.law_spec import TwoStep
from itembank.scaling.pretraining.sigmoid_law import sigmoid_curve, sigmoid_values

STEEPEST_IN_LOSS = 60.0
"""Slope of the logit in the loss (bits per byte): a score that falls by nine tenths of its range within 0.1 bits."""

LARGEST_LOG_COEFFICIENT = 50.0
"""A fence against overflow: exp(A) is about the loss at the mean compute, some bits."""
SMALLEST_SPAN = 1e-3
"""Of the losses, below which they count as one."""


@dataclass(frozen=True, slots=True)
class TwoStepFits:
    """Both steps of n_curves recipes."""

    loss: CurveFits  # Step 1: (A, b, E) of ``loss = exp(A - b x) + E``, x in log FLOP less `centre`
    score: CurveFits  # Step 2: (k, L0, a, e) of ``score = e + a sigmoid(k (loss - L0))``
    centre: float

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores at log FLOP (n_points,): best start (n_curves, n_points), all (n_curves, n_starts, n_points).

        The s-th of all starts goes through the s-th start of both steps.
        """
        x = log_flops - self.centre
        best = sigmoid_values(self.score.best, loss_of_compute(self.loss.best, x))
        return best, sigmoid_values(self.score.parameters, loss_of_compute(self.loss.parameters, x))


def fit_two_step(
    final: tuple[FloatArray, FloatArray], every: tuple[FloatArray, FloatArray], spec: TwoStep, rng: np.random.Generator
) -> TwoStepFits:
    """Fit both steps for each recipe.

    Step 1 minimises Huber's loss of log loss over final checkpoints, with ``0 <= b <= 1`` and ``E >= 0``; step 2 the
    squares of the scores over all checkpoints, with ``-1 <= a <= 0 <= e <= 1`` and ``0 <= k``.

    Parameters
    ----------
    final : (log FLOP, loss) of final checkpoints, each (n_curves, n_finals)
        Losses are positive; NaN where a recipe has fewer points.
    every : (loss, score) of all checkpoints, each (n_curves, n_points)
    spec : TwoStep
    rng : Generator
        Places the starts.
    """
    log_flops, losses = final
    centre = float(np.nanmean(log_flops))
    x = log_flops - centre
    first = fit_curves(
        log_loss_curve,
        x,
        np.log(losses),
        _loss_starts(losses, spec.n_starts, rng),
        lower=np.array([-LARGEST_LOG_COEFFICIENT, 0.0, 0.0]),
        upper=np.array([LARGEST_LOG_COEFFICIENT, 1.0, float(np.nanmax(losses))]),
        huber_delta=spec.huber_delta,
    )
    all_losses, scores = every
    low, high = float(np.nanmin(all_losses)), float(np.nanmax(all_losses))
    span = max(high - low, SMALLEST_SPAN)
    starts = _score_starts(low, high, spec.n_starts, rng)
    second = fit_curves(
        sigmoid_curve,
        all_losses,
        scores,
        np.broadcast_to(starts, (len(scores), *starts.shape)),
        lower=np.array([0.0, low - 3.0 * span, -1.0, 0.0]),
        upper=np.array([STEEPEST_IN_LOSS, high + 3.0 * span, 0.0, 1.0]),
    )
    return TwoStepFits(first, second, centre)


def loss_of_compute(parameters: FloatArray, x: FloatArray) -> FloatArray:
    """``exp(A - b x) + E`` for parameters (..., 3) = (A, b, E) at x (..., n_points)."""
    log_scale, exponent, floor = (parameters[..., i, None] for i in range(3))
    result: FloatArray = np.exp(log_scale - exponent * x) + floor
    return result


def log_loss_curve(parameters: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of `loss_of_compute` with its derivatives, for `fit_curves`."""
    log_scale, exponent, floor = (parameters[:, i, None] for i in range(3))
    # with f = exp(A - b x) / L, the derivatives of log L are d/dA = f, d/db = -x f and d/dE = 1 / L; 300 keeps exp from
    # overflow
    power = np.exp(np.minimum(log_scale - exponent * x, 300.0))
    total = power + floor
    fraction = power / total
    return np.log(total), np.stack([fraction, -x * fraction, 1.0 / total], axis=-1)


def _loss_starts(losses: FloatArray, n_starts: int, rng: np.random.Generator) -> FloatArray:
    """Place starts of step 1 by exponent and irreducible fraction of the smallest loss, (n_curves, n_starts, 3)."""
    points = spread_points(np.array([0.02, 0.0]), np.array([0.6, 0.95]), n_starts, rng)
    smallest, middle = np.nanmin(losses, axis=1)[:, None], np.nanmedian(losses, axis=1)[:, None]
    floor = points[:, 1] * smallest
    exponent = np.broadcast_to(points[:, 0], floor.shape)
    # A such that the curve goes through the median loss at the mean compute; the floor lies below every loss
    return np.stack([np.log(np.maximum(middle - floor, 1e-6)), exponent, floor], axis=-1)


def _score_starts(low: float, high: float, n_starts: int, rng: np.random.Generator) -> FloatArray:
    """Place starts of step 2, the same for every recipe, (n_starts, 4)."""
    span = max(high - low, SMALLEST_SPAN)
    box_low = np.array([1.0 / span, low - 0.5 * span, -1.0, 0.3])
    box_high = np.array([15.0 / span, high, -0.1, 1.0])
    return spread_points(box_low, np.minimum(box_high, [STEEPEST_IN_LOSS, np.inf, np.inf, np.inf]), n_starts, rng)
