"""Fit each kind of law to the measured models of one scenario."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.ability_law import fit_ability_laws
from itembank.scaling.pretraining.forecasts import (
    CurvePredictions,
    FittedAbilityLaw,
    FittedCurveLaw,
    FittedLaw,
    score_error_growth,
)
from itembank.scaling.pretraining.law_notes import ability_notes, curve_notes
from itembank.scaling.pretraining.law_spec import SigmoidLaw, TwoStep
from itembank.scaling.pretraining.method_specs import ItemResponseLaw
from itembank.scaling.pretraining.runs import Runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, mean_probability
from itembank.scaling.pretraining.sigmoid_law import N_PARAMETERS as SIGMOID_PARAMETERS
from itembank.scaling.pretraining.sigmoid_law import fit_sigmoid_law
from itembank.scaling.pretraining.two_step import fit_two_step

FEWEST_POINTS = 4
"""Sizes from which forecasts of the larger ones are tried, to learn what they miss: a curve has four parameters."""

N_EARLIER = 3
"""Earlier fits that are tried: those with far fewer sizes say little about the present one."""


@dataclass(frozen=True, slots=True)
class LawData:
    """Data that a law of one scenario may be fitted to."""

    scores: FloatArray  # (n_models,): Observed
    abilities: ScenarioAbilities | None  # None where there is no item model, as where 'irsl' is not among the laws
    losses: FloatArray | None  # (n_models,): None where 'two-step' is not among the laws
    runs: Runs  # Of the same models
    seed: int


@dataclass(frozen=True, slots=True)
class LawFit:
    """A fitted law, and what makes each recipe's forecast doubtful, n_recipes texts."""

    law: FittedLaw
    notes: tuple[str, ...]


class CurveFit(Protocol):
    """Fit a curve law to the models of at most some sizes."""

    def __call__(self, n_sizes: int | None) -> CurvePredictions:
        """Fit to each recipe's first `n_sizes` sizes; to all for None."""
        ...


def fit_ability_law(data: LawData, spec: ItemResponseLaw) -> LawFit | None:
    """Fit the item response scaling law of every recipe; None without abilities.

    Its residuals are those of the observed scores (n_models,).
    """
    if data.abilities is None:
        return None
    abilities, runs = data.abilities, data.runs
    x, theta, variance = (runs.of_finals(values) for values in (runs.log_flops, abilities.theta, abilities.variance))
    laws = fit_ability_laws(x, theta, variance, pooling=spec.pooling, shape=spec.shape)
    carried, gap_variance = carried_gaps(runs.of_finals(abilities.gap), is_carried=spec.gap == "carried")
    expected, _ = laws.predict(runs.log_flops)
    theta_on_law = expected[runs.recipe_index, np.arange(len(runs.log_flops))]
    with np.errstate(invalid="ignore"):
        residual = runs.of_finals(data.scores - mean_probability(abilities.parameters, theta_on_law))
    law = FittedAbilityLaw(laws, abilities, carried, gap_variance, root_mean_square(residual))
    return LawFit(law, ability_notes(laws, abilities, runs))


def carried_gaps(gaps: FloatArray, *, is_carried: bool) -> tuple[FloatArray, float]:
    """Score beyond what ability explains that a recipe will keep, (n_recipes,), and the variance left around it.

    A recipe may be better at a benchmark than its ability there says, at every size. The gap of its largest size is
    carried on as far as gaps of neighbouring sizes agree: times ``sum g_j g_(j+1) / sum g_j^2`` over all recipes and
    sizes, between 0 and 1.

    Parameters
    ----------
    gaps : (n_recipes, n_sizes)
        Observed score less the score at the ability, by rising size; NaN where there is none.
    is_carried : bool
        Without it nothing is kept, and the variance is that of the gaps themselves.
    """
    if not is_carried:
        return np.zeros(len(gaps)), mean_square(gaps)
    first, second = gaps[:, :-1], gaps[:, 1:]
    both = np.isfinite(first) & np.isfinite(second)
    # slope of the regression of each gap on the one before it, through zero
    products, squares = np.sum(first[both] * second[both]), np.sum(first[both] ** 2)
    slope = float(np.clip(products / squares, 0.0, 1.0)) if squares > 0.0 else 0.0
    last = np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in gaps])
    left = second[both] - slope * first[both]
    return slope * last, mean_square(left if left.size else gaps)


def fit_sigmoid(data: LawData, spec: SigmoidLaw) -> LawFit:
    """Fit the direct sigmoid of every recipe to its finished models' scores (n_models,)."""
    scores, runs = data.scores, data.runs
    x, y = (runs.of_finals(values)[runs.is_enough] for values in (runs.log_flops, scores))

    def fit(n_sizes: int | None) -> CurvePredictions:
        return fit_sigmoid_law(x, first_sizes(y, n_sizes), spec, np.random.default_rng(data.seed))

    law = _curve_law(fit, x, y, runs)
    return LawFit(law, curve_notes(law, scores, runs))


def fit_two_step_law(data: LawData, spec: TwoStep) -> LawFit | None:
    """Fit the two-step law of every recipe to scores and losses (n_models,); None without losses."""
    if data.losses is None:
        return None
    scores, losses, runs = data.scores, data.losses, data.runs
    x, y, final_losses = (runs.of_finals(values)[runs.is_enough] for values in (runs.log_flops, scores, losses))
    every_x, every_losses, every_scores = (
        runs.of_every(values)[runs.is_enough] for values in (runs.log_flops, losses, scores)
    )

    def fit(n_sizes: int | None) -> CurvePredictions:
        fitted_x = np.where(np.isfinite(first_sizes(x, n_sizes)), x, -np.inf)
        second = np.where(every_x <= fitted_x.max(axis=1, keepdims=True), every_scores, np.nan)
        first = (x, first_sizes(final_losses, n_sizes))
        return fit_two_step(first, (every_losses, second), spec, np.random.default_rng(data.seed))

    law = _curve_law(fit, x, y, runs)
    return LawFit(law, curve_notes(law, scores, runs, losses=losses))


def _curve_law(fit: CurveFit, x: FloatArray, y: FloatArray, runs: Runs) -> FittedCurveLaw:
    """Fit to all sizes, and to fewer to find the errors of forecasts of the larger sizes."""
    whole = fit(None)
    residual = y - at_own(whole, x)
    n_points = np.isfinite(y).sum(axis=1)
    # a recipe with no more points than parameters has residuals of zero and adds no degree of freedom
    degrees = float(np.maximum(n_points - SIGMOID_PARAMETERS, 0).sum())
    variance = float(np.nansum(residual**2) / max(degrees, 1.0))
    n_most = x.shape[1]
    errors, distances = earlier_errors(fit, x, y, min(max(FEWEST_POINTS, n_most - N_EARLIER), n_most - 1))
    # x is natural log FLOP, here and in `FittedCurveLaw.forecast`
    drift = score_error_growth(errors, distances, variance)
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
    best = np.clip(fits.predict(points)[0], 0.0, 1.0)
    result: FloatArray = np.take_along_axis(best, places.reshape(x.shape), axis=1)
    return np.where(np.isfinite(x), result, np.nan)


def first_sizes(values: FloatArray, n_sizes: int | None) -> FloatArray:
    """Keep the first sizes, NaN for the others."""
    return values if n_sizes is None else np.where(np.arange(values.shape[1]) < n_sizes, values, np.nan)


def mean_square(values: FloatArray) -> float:
    """Mean square of the values that are numbers, zero for none."""
    known = values[np.isfinite(values)]
    return float(np.mean(known**2)) if known.size else 0.0


def root_mean_square(values: FloatArray) -> FloatArray:
    """Root mean square of each row's numbers, (n_rows,); NaN for none."""
    count = np.isfinite(values).sum(axis=1)
    total = np.nansum(values**2, axis=1)
    result: FloatArray = np.sqrt(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0))
    return result
