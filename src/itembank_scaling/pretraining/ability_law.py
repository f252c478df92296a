"""Ability against log FLOP, one line a training recipe (IRSL eq. 3), with what its forecasts are worth.

Recipe r at size j: ``theta_rj = t_r + s_r g(x_rj) + u_rj + e_rj`` with x in log FLOP, ``e_rj`` the error of the
measured ability, of known variance v_rj, and ``u_rj`` the distance of that model from its recipe's line, of variance
sigma^2. IRSL's law is ``g(x) = x``. Lines of all recipes of a scenario may bend alike,

    g(x) = (1 - exp(-k (x - c))) / k + c,    c the mean of x, slope 1 there,

which flattens for k > 0, as abilities do that near a ceiling. How much they bend is uncertain: forecasts are averaged
over bends, each weighed by its restricted likelihood and a prior that leaves even odds for none.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.tabular import Compact
from itembank_scaling.pretraining.law_fitting import (
    Forecast,
    LawData,
    LawFit,
    growth_of_errors,
    interval_factor,
    lacking_note,
    root,
    root_mean_square,
)
from itembank_scaling.pretraining.law_inputs import Runs
from itembank_scaling.pretraining.law_specs import ItemResponseLaw, Pooling, Shape
from itembank_scaling.pretraining.measured_abilities import ScenarioAbilities, item_variance, mean_probability

N_COEFFICIENTS = 2
"""Height and slope of a line: what a recipe's sizes must exceed to leave residuals."""

BENDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Values of k that are tried, in a unit of natural log FLOP: none that rises ever faster, which would run away."""


SMALLEST_VARIANCE = 1e-12
"""Least variance of a measured ability: an ability given as exact would have infinite weight."""


class Lines(NamedTuple):
    """Lines of n_recipes recipes in some coordinate g."""

    coefficients: FloatArray  # (n_recipes, 2): Ability where g is zero, and slope
    covariance: FloatArray  # (n_recipes, 2, 2)
    residual_variance: float
    log_likelihood: float  # Restricted, of the lines of recipes alone; comparable between coordinates


@dataclass(frozen=True, slots=True, repr=False)
class AbilityLaws(Compact):
    """Laws of n_recipes recipes, each a mean over n_bends bends.

    Attributes
    ----------
    centre : float
        Log FLOP at which the first coefficient is the ability.
    bends, weights : (n_bends,)
        k, and how much it counts; the weights sum to one.
    coefficients : (n_bends, n_recipes, 2)
        Ability at the centre, and the slope there, in a unit of log FLOP; NaN for a recipe with too few sizes.
    covariance : (n_bends, n_recipes, 2, 2)
        Of the coefficients.
    residual_variances : (n_bends,)
        sigma^2, common to all recipes.
    drift : float
        Growth of the variance of a forecast with the square of its distance beyond the largest size, in log FLOP,
        beside what the uncertain coefficients bring.
    n_sizes : (n_recipes,)
    largest : (n_recipes,)
        Largest log FLOP the line was fitted to.
    degrees_of_freedom : float
        What sigma^2 rests on: points less coefficients over all recipes, fewer as recipes leave their lines together.
    """

    centre: float
    bends: FloatArray
    weights: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    residual_variances: FloatArray
    drift: float
    n_sizes: IntArray
    largest: FloatArray
    degrees_of_freedom: float

    @property
    def residual_variance(self) -> float:
        """sigma^2, mean over bends."""
        return float(self.weights @ self.residual_variances)

    @property
    def bend(self) -> float:
        """Mean of k."""
        return float(self.weights @ self.bends)

    @property
    def slope(self) -> FloatArray:
        """Rise of ability with a unit of log FLOP at the centre, (n_recipes,)."""
        return self.weights @ self.coefficients[:, :, 1]

    @property
    def slope_error(self) -> FloatArray:
        """Standard error of the slope, (n_recipes,)."""
        slopes = self.coefficients[:, :, 1]
        return np.sqrt(self.weights @ (self.covariance[:, :, 1, 1] + (slopes - self.slope) ** 2))

    @property
    def intercept(self) -> FloatArray:
        """Ability at one FLOP along the tangent at the centre (IRSL's b), (n_recipes,)."""
        return self.weights @ self.coefficients[:, :, 0] - self.slope * self.centre

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ability of a model trained with log FLOP (n_points,), and its variance: each (n_recipes, n_points)."""
        x = np.broadcast_to(log_flops - self.centre, (len(self.largest), len(log_flops)))
        means, variances = [], []
        for bend, lines, covariance in zip(self.bends, self.coefficients, self.covariance, strict=True):
            design = _design(bent(x, bend))
            means.append(np.einsum("rpc,rc->rp", design, lines))
            variances.append(np.einsum("rpc,rcd,rpd->rp", design, covariance, design))
        # each bend has its own coordinate, so that only predictions can be averaged, not coefficients
        mean = np.tensordot(self.weights, means, axes=1)
        spread = np.tensordot(self.weights, variances + (np.array(means) - mean) ** 2, axes=1)
        # total variance over bends: mean of the variances plus variance of the means
        beyond = np.maximum(log_flops[None, :] - self.largest[:, None], 0.0)
        return mean, spread + self.residual_variance + self.drift * beyond**2


def fit_ability_laws(
    log_flops: FloatArray,  # (n_recipes, n_sizes): NaN where a recipe has fewer sizes; any order
    theta: FloatArray,  # (n_recipes, n_sizes)
    variance: FloatArray,  # (n_recipes, n_sizes)
    *,
    # {'partial', 'none'}: 'none' is IRSL's law: each recipe's own line, and sizes weigh alike
    pooling: Pooling = "partial",
    # {'bent', 'line'}: 'line' is IRSL's law. Without a recipe of three sizes, which could show a bend, it is 'line'
    shape: Shape = "bent",
) -> AbilityLaws:
    """Fit every recipe's law.

    Weighted least squares, weights ``1 / (sigma^2 + v)``, with sigma^2 from the residuals of all recipes (the value
    at which their weighted sum of squares is what its degrees of freedom say; Paule and Mandel 1982). 'partial' then
    draws the lines to each other: ``(t_r, s_r) ~ N(mu, Omega)`` with mu and Omega found by EM over recipes, so that
    recipes with few or noisy sizes lean on the others; with fewer than four recipes each has its own. The drift is what
    forecasts of each size from the smaller ones missed by, beyond the variance stated.
    """
    order = np.argsort(np.where(np.isfinite(theta), log_flops, np.inf), axis=1, kind="stable")
    x, y, v = (np.take_along_axis(array, order, axis=1) for array in (log_flops, theta, variance))
    is_known = np.isfinite(x) & np.isfinite(y) & np.isfinite(v)
    x, y, v = (np.where(is_known, array, np.nan) for array in (x, y, v))
    centre, n_sizes = float(np.nanmean(x)), is_known.sum(axis=1)
    degrees = float(np.maximum(n_sizes - N_COEFFICIENTS, 0).sum())
    is_bent = shape == "bent" and degrees > 0.0
    bends, weights = _weighed_bends(x - centre, y, v) if is_bent else (np.zeros(1), np.ones(1))
    fitted = [_lines(bent(x - centre, bend), y, v, pooling) for bend in bends]
    best = int(np.argmax(weights))
    on_lines = np.einsum("rpc,rc->rp", _design(bent(x - centre, bends[best])), fitted[best].coefficients)
    return AbilityLaws(
        centre=centre,
        bends=bends,
        weights=weights,
        coefficients=np.stack([lines.coefficients for lines in fitted]),
        covariance=np.stack([lines.covariance for lines in fitted]),
        residual_variances=np.array([lines.residual_variance for lines in fitted]),
        drift=_drift((x - centre, y, v), pooling, bends[best], fitted[best].residual_variance),
        n_sizes=n_sizes,
        largest=_largest(x),
        degrees_of_freedom=degrees / _design_effect(y - on_lines),
    )


def bent(x: FloatArray, bend: float) -> FloatArray:
    """``(1 - exp(-k x)) / k``, x itself for k = 0: slope 1 at zero."""
    # expm1 keeps the digits of 1 - exp(-k x) where k x is small
    return x if bend == 0.0 else -np.expm1(-bend * x) / bend


def _design_effect(residuals: FloatArray) -> float:
    """How many times too many the points count as independent: ``1 + (R - 1) rho``.

    rho is the correlation of residuals (n_recipes, n_sizes) of the same size in different recipes, which share the
    architecture, the schedule and a law that is not quite a line; R the recipes that have a size, on average.
    """
    is_known = np.isfinite(residuals)
    known = np.where(is_known, residuals, 0.0)
    squares, counts = np.sum(known**2, axis=0), is_known.sum(axis=0)
    pairs = float(np.sum(counts * (counts - 1)))
    if pairs == 0.0 or squares.sum() == 0.0:
        return 1.0
    # (sum r)^2 - sum r^2 is the sum of products over ordered pairs of different recipes
    together = float(np.sum(known.sum(axis=0) ** 2 - squares)) / pairs
    rho = np.clip(together / (squares.sum() / counts.sum()), 0.0, 1.0)
    return float(1.0 + (counts[counts > 0].mean() - 1.0) * rho)


def _weighed_bends(x: FloatArray, y: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bends that count, and their weights."""
    bends = np.array(BENDS)
    # without pooling, whose prior would favour the bends that make recipes alike
    values = np.array([_lines(bent(x, bend), y, v, "none").log_likelihood for bend in BENDS])
    # standard deviation of the half-normal prior of k, where there is a bend. The largest that is tried is three of
    # them away and gets 1 % of the weight of the smallest
    bend_sd = 0.2
    prior = np.where(bends == 0.0, 0.0, np.exp(-0.5 * (bends / bend_sd) ** 2))
    straight = 0.5  # prior probability that there is no bend
    prior = np.where(bends == 0.0, straight, (1.0 - straight) * prior / prior.sum())
    values = np.where(np.isfinite(values), values, -np.inf)
    weights = prior * np.exp(values - values.max())
    least_weight = 0.01  # bends with a weight below this fraction of the largest are left out
    counts = weights >= least_weight * weights.max()
    return bends[counts], weights[counts] / weights[counts].sum()


def _lines(x: FloatArray, y: FloatArray, v: FloatArray, pooling: Pooling, residual: float | None = None) -> Lines:
    """Lines in the coordinate x; sigma^2 from the residuals unless given."""
    n_sizes = np.isfinite(y).sum(axis=1)
    is_known = np.isfinite(y)
    highest = np.where(is_known, x, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(is_known, x, np.inf).min(axis=1, initial=np.inf)
    # difference in the coordinate up to which two models count as one size: no slope can be told from them
    same_size = 1e-6
    # several models of one compute have no slope
    is_line = (n_sizes >= N_COEFFICIENTS) & (highest - lowest > same_size)
    degrees = float(np.sum(n_sizes[is_line] - N_COEFFICIENTS))
    if residual is None:
        residual = _residual_variance(x[is_line], y[is_line], v[is_line], degrees)
    cross, moment = _sums(x, y, residual + v)
    value = _restricted_likelihood(x[is_line], y[is_line], residual + v[is_line])
    fewest_recipes_to_pool = 4  # recipes from which the spread of lines between recipes can be told from few
    if pooling == "partial" and int(is_line.sum()) >= fewest_recipes_to_pool:
        return Lines(*_pooled(cross, moment, n_sizes > 0, is_line), residual, value)
    if pooling == "none":  # all sizes alike, with the covariance where points have their own variances
        coefficients, inverse = _separate(*_sums(x, y, np.ones_like(v)), is_line)
        spread, _ = _sums(x, y, 1.0 / np.maximum(residual + v, SMALLEST_VARIANCE))  # X' V X
        return Lines(coefficients, inverse @ spread @ inverse, residual, value)
    return Lines(*_separate(cross, moment, is_line), residual, value)


def _restricted_likelihood(x: FloatArray, y: FloatArray, variance: FloatArray) -> float:
    """Restricted log-likelihood of the residuals of separate lines, up to constants that no coordinate changes."""
    cross, moment = _sums(x, y, variance)
    plain, _ = _sums(x, y, np.ones_like(variance))
    lines = np.linalg.solve(cross, moment[..., None])[..., 0]
    residual = np.nan_to_num(y) - np.einsum("rpc,rc->rp", _design(np.nan_to_num(x)), lines)
    scaled = np.where(np.isfinite(y), residual**2 / np.maximum(variance, SMALLEST_VARIANCE), 0.0)
    logs = np.where(np.isfinite(y), np.log(np.maximum(variance, SMALLEST_VARIANCE)), 0.0)
    # REML: -1/2 (log det V + log det X'V^-1 X - log det X'X + r'V^-1 r). The term in X'X makes likelihoods comparable
    # between bends, which change the design X.
    volume = np.linalg.slogdet(cross)[1] - np.linalg.slogdet(plain)[1]
    return float(-0.5 * (logs.sum() + volume.sum() + scaled.sum()))


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
    """Lines shrunk to their common mean (empirical Bayes); recipes with one size have a line too.

    The covariance holds what the uncertain mean mu brings, not what the uncertain Omega does.
    """
    separate, separate_covariance = _separate(cross, moment, is_line)
    n_recipes = int(has_points.sum())
    mean = separate[is_line].mean(axis=0)
    # EM can shrink the between-recipe covariance to a singular matrix, whose inverse is needed below
    floor = 1e-6 * np.diag(np.diagonal(separate_covariance[is_line], axis1=1, axis2=2).mean(axis=0))
    between = np.atleast_2d(np.cov(separate[is_line].T)) + floor
    used_cross, used_moment = cross[has_points], moment[has_points]
    # EM creeps where slopes hardly differ between recipes. After 300 steps simulated slopes were within 1e-4 of the
    # end, and their errors 2 % too large; after 100 steps 7 %
    max_pooling_steps = 300
    pooling_tolerance = 1e-5  # change of the covariance between recipes in a step, against its diagonal
    for _ in range(max_pooling_steps):
        # E step: posterior of each recipe's line; M step: mean and covariance of the lines
        prior = np.linalg.inv(between)
        spread = np.linalg.inv(used_cross + prior)
        lines = np.einsum("rcd,rd->rc", spread, used_moment + prior @ mean)
        new_mean = lines.mean(axis=0)
        apart = lines - new_mean
        # the mean was found from the same lines: one degree of freedom less
        new_between = (spread.sum(axis=0) + apart.T @ apart * n_recipes / (n_recipes - 1.0)) / n_recipes + floor
        change = np.max(np.abs(new_between - between) / np.sqrt(np.outer(np.diag(between), np.diag(between))))
        mean, between = new_mean, new_between
        if change < pooling_tolerance:
            break
    prior = np.linalg.inv(between)
    spread = np.linalg.inv(cross + prior)
    lines = np.einsum("rcd,rd->rc", spread, moment + prior @ mean)
    marginal = np.einsum("rcd,rde->rce", cross, np.linalg.inv(np.eye(N_COEFFICIENTS) + between @ cross))
    mean_covariance = np.linalg.inv(marginal.sum(axis=0))
    # the posterior mean moves by S Omega^-1 d mu: the uncertainty of mu comes on top of S (law of total variance)
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
        return float(
            np.sum(np.where(np.isfinite(y), residual**2 / np.maximum(variance + v, SMALLEST_VARIANCE), 0.0)) - degrees
        )

    return root(excess, float(np.nanvar(y)))


def _drift(points: tuple[FloatArray, FloatArray, FloatArray], pooling: Pooling, bend: float, residual: float) -> float:
    """Growth of the squared errors with distance, from forecasts of every size by lines through the smaller ones.

    `points` are log FLOP less the centre, abilities and their variances, each (n_recipes, n_sizes).
    """
    x, y, v = points
    errors, stated, distances = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for n_fitted in range(N_COEFFICIENTS, x.shape[1]):
        later = np.isfinite(y) & (np.arange(x.shape[1]) >= n_fitted)
        is_fitted = (np.arange(x.shape[1]) < n_fitted) & later.any(axis=1, keepdims=True) & np.isfinite(y)
        if not later.any():
            continue
        fitted_x, fitted_y, fitted_v = (np.where(is_fitted, values, np.nan) for values in (bent(x, bend), y, v))
        part = _lines(fitted_x, fitted_y, fitted_v, pooling, residual)
        design = _design(np.nan_to_num(bent(x, bend)))
        mean = np.einsum("rpc,rc->rp", design, part.coefficients)
        spread = np.einsum("rpc,rcd,rpd->rp", design, part.covariance, design)
        errors.append((y - mean)[later] ** 2)
        stated.append((spread + residual + v)[later])
        distances.append((x - _largest(np.where(is_fitted, x, np.nan))[:, None])[later])
    return growth_of_errors(np.concatenate(errors), np.concatenate(stated), np.concatenate(distances))


@dataclass(frozen=True, slots=True)
class FittedAbilityLaw:
    """The item response scaling law of one scenario."""

    laws: AbilityLaws
    abilities: ScenarioAbilities  # What it was fitted to, with the items
    carried: FloatArray  # (n_recipes,): Score beyond what the items give at the ability that a recipe keeps
    gap_variance: float  # Of the observed score around both
    residual: FloatArray  # (n_recipes,)

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,).

        The ability's interval goes through the items' curve, which keeps it within the score's range; what uncertain
        items bring, and what models differ from their ability's score, come on top, in quadrature.
        """
        mean, variance = self.laws.predict(log_flops)
        factor = interval_factor(level, self.laws.degrees_of_freedom)
        items = self.abilities.parameters
        half = factor * np.sqrt(variance)
        score, below, above = (
            mean_probability(items, at.ravel()).reshape(at.shape) for at in (mean, mean - half, mean + half)
        )
        uncertain = item_variance(items, self.abilities.item_covariance, mean.ravel()).reshape(mean.shape)
        gap = factor * np.sqrt(self.gap_variance + uncertain)
        # half-widths of independent sources add in squares; each side has its own, as the curve is not symmetric
        # minimum and maximum, as the mean curve falls where most slopes are negative
        to_low = np.sqrt((score - np.minimum(below, above)) ** 2 + gap**2)
        to_high = np.sqrt((np.maximum(below, above) - score) ** 2 + gap**2)
        score = np.clip(score + self.carried[:, None], 0.0, 1.0)
        low, high = np.clip(score - to_low, 0.0, 1.0), np.clip(score + to_high, 0.0, 1.0)
        return Forecast(score, low, high, np.where(np.isnan(score), np.nan, 0.0))


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
    return law, ability_notes(laws, abilities, runs)


def carried_gaps(
    # (n_recipes, n_sizes): Observed score less the score at the ability, by rising size; NaN where there is none
    gaps: FloatArray,
    *,
    is_carried: bool,  # Without it nothing is kept, and the variance is that of the gaps themselves
) -> tuple[FloatArray, float]:
    """Score beyond what ability explains that a recipe will keep, (n_recipes,), and the variance left around it.

    A recipe may be better at a benchmark than its ability there says, at every size. The gap of its largest size is
    carried on as far as gaps of neighbouring sizes agree: times ``sum g_j g_(j+1) / sum g_j^2`` over all recipes and
    sizes, between 0 and 1.
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


def ability_notes(laws: AbilityLaws, abilities: ScenarioAbilities, runs: Runs) -> tuple[str, ...]:
    """Say what is doubtful about every recipe's ability law, n_recipes texts."""
    theta, variance = runs.of_finals(abilities.theta), runs.of_finals(abilities.variance)
    clear_fall = 2.0  # standard errors by which an ability must fall from one size to the next to be called a fall
    with np.errstate(invalid="ignore"):
        fall = -np.diff(theta, axis=1)
        is_fall = fall > clear_fall * np.sqrt(variance[:, 1:] + variance[:, :-1] + 2.0 * laws.residual_variance)
    notes = []
    for number in range(len(runs.recipes)):
        parts = [lacking_note(runs, number)]
        slope, error = laws.slope[number], laws.slope_error[number]
        if slope <= 0.0:
            parts.append(f"ability does not rise with compute (slope {slope:.3f}, standard error {error:.3f})")
        elif slope < clear_fall * error:
            parts.append(f"whether ability rises with compute is open (slope {slope:.3f}, standard error {error:.3f})")
        if is_fall[number].any():
            parts.append(f"ability falls clearly at {int(is_fall[number].sum())} of {runs.n_sizes[number] - 1} steps")
        notes.append("; ".join(part for part in parts if part))
    return tuple(notes)


def mean_square(values: FloatArray) -> float:
    """Mean square of the values that are numbers, zero for none."""
    known = values[np.isfinite(values)]
    return float(np.mean(known**2)) if known.size else 0.0
