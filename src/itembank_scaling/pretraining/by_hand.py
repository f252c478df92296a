"""What a person does by hand: the last score, or a line through the last three; every law is compared with these."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from itembank.numerics.arrays import FloatArray
from itembank_scaling.pretraining.law_fitting import (
    CurvePredictions,
    FittedCurveLaw,
    LawData,
    LawFit,
    at_own,
    earlier_errors,
    first_sizes,
    growth_of_errors,
    lacking_notes,
    largest_and_residual,
)
from itembank_scaling.pretraining.law_specs import LastLine, LastScore


def fit_last_score(data: LawData, spec: LastScore) -> LawFit:  # noqa: ARG001
    """Take the score of every recipe's largest model for all larger ones."""
    return _by_hand(data, last_scores, 1)


def last_scores(_: FloatArray, y: FloatArray) -> CurvePredictions:
    """Predict the last of the scores (n_curves, n_sizes) everywhere."""
    last = _last(y, 1)

    def predict(log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        best = np.repeat(last, len(log_flops), axis=1)
        return best, best[:, None]

    return predict


def fit_last_line(data: LawData, spec: LastLine) -> LawFit:  # noqa: ARG001
    """Draw a line of least squares through the logits of every recipe's last three scores."""
    return _by_hand(data, logit_lines, 2)


def logit_lines(
    x: FloatArray,  # (n_curves, n_sizes): Log FLOP by rising size, and scores; NaN where a recipe has fewer
    y: FloatArray,  # (n_curves, n_sizes)
) -> CurvePredictions:
    """Predict by lines through the last three logits, or through as many as there are; level through one."""
    n_last = 3  # sizes that the line goes through
    at = _last(np.where(np.isfinite(y), x, np.nan), n_last)
    smallest_score = 0.005  # scores are kept this far from 0 and 1, where logits would be infinite
    z = logit(np.clip(_last(y, n_last), smallest_score, 1.0 - smallest_score))
    centre, height = np.nanmean(at, axis=1), np.nanmean(z, axis=1)
    apart = at - centre[:, None]
    spread = np.nansum(apart**2, axis=1)
    rise = np.nansum(apart * (z - height[:, None]), axis=1)
    slope = np.divide(rise, spread, out=np.zeros_like(rise), where=spread > 0.0)

    def predict(log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        best = expit(height[:, None] + slope[:, None] * (log_flops - centre[:, None]))
        return best, best[:, None]

    return predict


def _last(values: FloatArray, n_last: int) -> FloatArray:
    """Last numbers of each row, (n_curves, n_last), the last one first; NaN where there are fewer."""
    known = np.isfinite(values)
    order = np.argsort(~known[:, ::-1], axis=1, kind="stable")[:, :n_last]
    return np.take_along_axis(values[:, ::-1], order, axis=1)


def _by_hand(data: LawData, predictions: Callable[[FloatArray, FloatArray], CurvePredictions], fewest: int) -> LawFit:
    """Fit, and find the interval from what the same would have missed the recipes' own sizes by.

    Its half grows in proportion to the distance in log FLOP beyond the largest size.
    """
    runs = data.runs
    x, y = (runs.of_finals(values)[runs.is_enough] for values in (runs.log_flops, data.scores))

    def fit(n_sizes: int | None) -> CurvePredictions:
        return predictions(x, first_sizes(y, n_sizes))

    errors, distances = earlier_errors(fit, x, y, fewest)
    known = np.isfinite(errors)
    whole = fit(None)
    largest, residual = largest_and_residual(x, y, y - at_own(whole, x), runs)
    unknown = 1.0  # variance of a forecast where nothing was ever forecast before: any score
    law = FittedCurveLaw(
        fits=whole,
        rows=np.flatnonzero(runs.is_enough),
        largest=largest,
        residual=residual,
        residual_variance=0.0 if known.any() else unknown,
        drift=growth_of_errors(errors[known] ** 2, np.zeros(np.count_nonzero(known)), distances[known]),
        degrees_of_freedom=float(known.sum()),
    )
    return law, lacking_notes(runs)
