"""What laws are fitted to and give: fits of one scenario, their forecasts, and what makes these doubtful."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.tables import plural
from itembank_scaling.pretraining.law_inputs import Runs
from itembank_scaling.pretraining.measured_abilities import ScenarioAbilities


class Forecast(NamedTuple):
    """Scores of n_recipes recipes at n_points computes, each (n_recipes, n_points)."""

    score: FloatArray  # Within [0, 1]; NaN for a recipe without a law
    low: FloatArray
    high: FloatArray
    spread: FloatArray  # Standard deviation of the forecasts of all starts; zero for a law that has no starts


class FittedLaw(Protocol):
    """A law of one scenario, fitted for every recipe."""

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,)."""
        ...

    @property
    def residual(self) -> FloatArray:
        """Root mean square of the score's residuals over the models fitted, (n_recipes,)."""
        ...


CurvePredictions: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Scores at log FLOP (n_points,) by fitted curves: best start (n_curves, n_points), all (n_curves, n_starts, n_points).
"""
CurveFit: TypeAlias = Callable[[int | None], CurvePredictions]
"""Fits a curve law to each recipe's first so many sizes; to all for None."""
LawFit: TypeAlias = tuple[FittedLaw, tuple[str, ...]]
"""A fitted law, and what makes each recipe's forecast doubtful, n_recipes texts."""


@dataclass(frozen=True, slots=True)
class FittedCurveLaw:
    """A law that fits curves to scores: two-step or direct sigmoid."""

    fits: CurvePredictions  # Of the n_curves recipes that have a law
    rows: IntArray  # (n_curves,): Which of the n_recipes recipes they are
    largest: FloatArray  # (n_recipes,): Largest log FLOP fitted
    residual: FloatArray  # (n_recipes,)
    # Of a score at a fitted size, and its growth with the squared distance in log FLOP beyond the largest size.
    residual_variance: float
    drift: float
    degrees_of_freedom: float

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,).

        The interval is that of what forecasts of each size from the smaller ones missed by, which counts parameters,
        starts and wrong shapes together.
        """
        best, every = self.fits(log_flops)
        beyond = np.maximum(log_flops[None, :] - self.largest[:, None], 0.0)
        factor = interval_factor(level, self.degrees_of_freedom)
        half = factor * np.sqrt(self.residual_variance + self.drift * beyond**2)
        score = np.full(half.shape, np.nan)
        score[self.rows] = np.clip(best, 0.0, 1.0)
        spread = np.full(half.shape, np.nan)
        spread[self.rows] = np.clip(every, 0.0, 1.0).std(axis=1)
        return Forecast(score, np.clip(score - half, 0.0, 1.0), np.clip(score + half, 0.0, 1.0), spread)


def interval_factor(level: float, degrees: float) -> float:
    """Student's t of an interval of this level; the normal one for many degrees of freedom."""
    # with one degree of freedom a t-interval is an admission of ignorance, not an interval: two are taken at least
    return t_reach(level, max(degrees, 2.0))


FEW_POINTS = 4
"""Parameters of both curve laws."""


def curve_notes(
    law: FittedCurveLaw, scores: FloatArray, runs: Runs, *, losses: FloatArray | None = None
) -> tuple[str, ...]:
    """Say what is doubtful about every recipe's curve, n_recipes texts."""
    values = runs.of_finals(scores)
    largest = law.largest[np.isfinite(law.largest)]
    spread = law.forecast(np.array([largest.max() + np.log(10.0)]), 0.95).spread[:, 0]
    notes = []
    # standard deviation of a score over starts, at the largest fitted size's tenfold, that is worth a word
    wide_starts = 0.02
    for number in range(len(runs.recipes)):
        parts = [lacking_note(runs, number)]
        known = values[number][np.isfinite(values[number])]
        if known.size >= 2 and known[-1] < known[0]:
            parts.append(f"the score falls with compute, from {100.0 * known[0]:.1f} to {100.0 * known[-1]:.1f} points")
        if known.size and known.size < FEW_POINTS:
            parts.append(f"{plural(known.size, 'size')} for {FEW_POINTS} parameters")
        if spread[number] > wide_starts:
            apart = f"{100.0 * spread[number]:.1f} points (standard deviation)"
            parts.append(f"starts disagree by {apart} at ten times the largest size")
        if losses is not None:
            known_losses = runs.of_finals(losses)[number]
            known_losses = known_losses[np.isfinite(known_losses)]
            if runs.is_enough[number] and not known_losses.size:
                parts.append("no losses of its final checkpoints")
            if known_losses.size >= 2 and known_losses[-1] > known_losses[0]:
                parts.append("the loss rises with compute")
        notes.append("; ".join(part for part in parts if part))
    return tuple(notes)


def lacking_notes(runs: Runs) -> tuple[str, ...]:
    """Say which recipes have too few sizes, n_recipes texts."""
    return tuple(lacking_note(runs, number) for number in range(len(runs.recipes)))


def lacking_note(runs: Runs, number: int) -> str:
    """Say that a recipe has too few sizes; empty where it has enough."""
    count = int(runs.n_sizes[number])
    return "" if runs.is_enough[number] else f"no law: {plural(count, 'size')}"


@dataclass(frozen=True, slots=True)
class LawData:
    """Data that a law of one scenario may be fitted to."""

    scores: FloatArray  # (n_models,): Observed
    abilities: ScenarioAbilities | None  # None where there is no item model, as where 'irsl' is not among the laws
    losses: FloatArray | None  # (n_models,): None where 'two-step' is not among the laws
    runs: Runs  # Of the same models
    seed: int


def fit_curve_law(fit: CurveFit, x: FloatArray, y: FloatArray, runs: Runs) -> FittedCurveLaw:
    """Fit to all sizes, and to fewer to find the errors of forecasts of the larger sizes."""
    whole = fit(None)
    residual = y - at_own(whole, x)
    n_points = np.isfinite(y).sum(axis=1)
    # a recipe with no more points than parameters has residuals of zero and adds no degree of freedom
    degrees = float(np.maximum(n_points - FEW_POINTS, 0).sum())
    variance = float(np.nansum(residual**2) / max(degrees, 1.0))
    n_most = x.shape[1]
    # forecasts are tried of three earlier fits: those with far fewer sizes say little about the present one
    errors, distances = earlier_errors(fit, x, y, min(max(FEW_POINTS, n_most - 3), n_most - 1))
    # x is natural log FLOP, here and in `FittedCurveLaw.forecast`
    drift = growth_of_errors(errors**2, np.full(errors.shape, variance), distances)
    largest, rms = largest_and_residual(x, y, residual, runs)
    return FittedCurveLaw(whole, np.flatnonzero(runs.is_enough), largest, rms, variance, drift, degrees)


def earlier_errors(fit: CurveFit, x: FloatArray, y: FloatArray, fewest: int) -> tuple[FloatArray, FloatArray]:
    """Errors of forecasts of every size from at least `fewest` smaller ones, and their distances, each (n_errors,).

    `x` and `y` are log FLOP and scores (n_curves, n_sizes); NaN where a recipe has fewer sizes.
    """
    errors, distances = [np.empty(0)], [np.empty(0)]
    for n_sizes in range(fewest, x.shape[1]):
        # fit to the first sizes only, and compare with all later ones: errors of real forecasts, by distance
        later = np.isfinite(y[:, n_sizes:]).any(axis=1)
        missed = (y - at_own(fit(n_sizes), x))[later, n_sizes:]
        errors.append(missed.ravel())
        distances.append((x[later, n_sizes:] - x[later, n_sizes - 1, None]).ravel())
    return np.concatenate(errors), np.concatenate(distances)


def largest_and_residual(
    x: FloatArray, y: FloatArray, residual: FloatArray, runs: Runs
) -> tuple[FloatArray, FloatArray]:
    """Largest log FLOP and root mean square of the residuals of every recipe, each (n_recipes,); NaN without a law."""
    largest, rms = np.full(len(runs.recipes), np.nan), np.full(len(runs.recipes), np.nan)
    largest[runs.is_enough] = np.where(np.isfinite(y), x, -np.inf).max(axis=1)
    rms[runs.is_enough] = root_mean_square(residual)
    return largest, rms


def at_own(fits: CurvePredictions, x: FloatArray) -> FloatArray:
    """Predictions of each recipe at its own computes (n_recipes, n_sizes)."""
    points, places = np.unique(np.nan_to_num(x), return_inverse=True)
    best = np.clip(fits(points)[0], 0.0, 1.0)
    result: FloatArray = np.take_along_axis(best, places.reshape(x.shape), axis=1)
    return np.where(np.isfinite(x), result, np.nan)


def first_sizes(values: FloatArray, n_sizes: int | None) -> FloatArray:
    """Keep the first sizes, NaN for the others."""
    return values if n_sizes is None else np.where(np.arange(values.shape[1]) < n_sizes, values, np.nan)


def root_mean_square(values: FloatArray) -> FloatArray:
    """Root mean square of each row's numbers, (n_rows,); NaN for none."""
    count = np.isfinite(values).sum(axis=1)
    total = np.nansum(values**2, axis=1)
    result: FloatArray = np.sqrt(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))
    return result


def growth_of_errors(
    # (n_forecasts,): Squared errors e^2, the variance v that was stated without drift, and h. Distances of zero tell
    # nothing
    squares: FloatArray,
    stated: FloatArray,  # (n_forecasts,)
    distances: FloatArray,  # (n_forecasts,)
) -> float:
    """Growth g of the variance of forecasts with the square of their distance h beyond what they were fitted to.

    The value at which ``sum_j e_j^2 / (v_j + g h_j^2)`` is the number of forecasts; zero at least.
    """
    is_known = np.isfinite(squares) & np.isfinite(stated) & (distances > 0.0)
    squares, stated, distances = squares[is_known], stated[is_known], distances[is_known]
    if not squares.size:
        return 0.0

    def excess(drift: float) -> float:
        return float(np.sum(squares / np.maximum(stated + drift * distances**2, 1e-12)) - squares.size)

    return root(excess, float(np.max(squares / distances**2)))


def root(falling: Callable[[float], float], upper: float) -> float:
    """Where a falling function crosses zero, between zero and a few times `upper`; zero when it is below at zero."""
    from scipy.optimize import brentq  # noqa: PLC0415 (what only shows results loads this module, and fits nothing)

    if upper <= 0.0 or falling(0.0) <= 0.0:
        return 0.0
    while falling(upper) > 0.0:
        upper *= 2.0
    # xtol far below any variance of abilities that matters, so that rtol decides
    return float(brentq(falling, 0.0, upper, xtol=1e-12, rtol=1e-8))
