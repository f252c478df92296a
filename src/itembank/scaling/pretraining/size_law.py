"""Ability against parameters N and tokens D, in the additive form of Chinchilla (Hoffmann et al. 2022, eq. 2).

    theta = t_r + a g(log N; alpha) + b g(log D; beta) + u_r log C,     g(x; k) = (1 - exp(-k x)) / k

which is ``t' - A / N^alpha - B / D^beta`` with ``A = a / alpha``; k = 0 is a line in the logarithm, so that IRSL's law
is the case ``alpha = beta = 0, a = b``. t is the recipe's own, and so is u, which is small; a, b, alpha and beta are
common to the recipes of a scenario. All is linear but the exponents, the noise and the spread of u: these are averaged
over a grid, each point weighed by its marginal likelihood.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import softmax

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.pretraining.ability_law import BENDS, bent
from itembank.scaling.pretraining.fitting import LawData, LawFit, carried_gaps, root_mean_square
from itembank.scaling.pretraining.forecasts import Forecast, ability_forecast, interval_factor
from itembank.scaling.pretraining.law_notes import lacking_notes
from itembank.scaling.pretraining.law_spec import ParamsTokensLaw
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, mean_probability

FLOP_PER_PARAMETER_AND_TOKEN = 6.0
LEVEL_VARIANCE = 100.0
SLOPE_VARIANCE = 1.0
"""Prior variance of a and b, in abilities a unit of the logarithm: wide, as abilities rise by tenths."""
NOISES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Standard deviations of a model's ability around the law that are tried."""
OWN_SLOPES = (0.0, 0.03, 0.1, 0.3)
"""Standard deviations of u that are tried."""
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True)
class SizeLaws:
    """Laws in N and D of one scenario, a mixture of n_parts points of the grid.

    Attributes
    ----------
    centres : (2,)
        Mean of log N and log D.
    weights : (n_parts,)
    exponents : (n_parts, 2)
    noises, own_slopes : (n_parts,)
    sizes : (n_points, 2)
        Log N and log D of the models fitted, less the centres.
    recipe : (n_points,)
    inverse : (n_parts, n_points, n_points)
        Of the covariance of abilities.
    lean : (n_parts, n_points)
        The inverse times abilities.
    """

    centres: FloatArray
    weights: FloatArray
    exponents: FloatArray
    noises: FloatArray
    own_slopes: FloatArray
    sizes: FloatArray
    recipe: IntArray
    inverse: FloatArray
    lean: FloatArray

    def predict(self, sizes: FloatArray, recipe: IntArray) -> tuple[FloatArray, FloatArray]:
        """Ability of new models of log N and log D (n_models, 2) of recipes (n_models,), and its variance."""
        at = sizes - self.centres
        means, variances = [], []
        for number, (exponents, noise, own) in enumerate(
            zip(self.exponents, self.noises, self.own_slopes, strict=True)
        ):
            cross = _covariance((at, recipe), (self.sizes, self.recipe), exponents, own)
            # the diagonal alone of the covariance of the new models
            each = (
                LEVEL_VARIANCE
                + SLOPE_VARIANCE * sum(bent(at[:, axis], exponents[axis]) ** 2 for axis in range(2))
                + own**2 * at.sum(axis=1) ** 2
            )
            means.append(cross @ self.lean[number])
            known = np.einsum("pn,nm,pm->p", cross, self.inverse[number], cross)
            variances.append(np.maximum(each - known, 0.0) + noise**2)
        mean = self.weights @ np.array(means)
        # total variance over the grid: mean of the variances plus variance of the means
        return mean, self.weights @ (np.array(variances) + (np.array(means) - mean) ** 2)

    @property
    def mean_exponents(self) -> FloatArray:
        """Mean of alpha and beta, (2,)."""
        result: FloatArray = self.weights @ self.exponents
        return result


def fit_sizes(sizes: FloatArray, recipe: IntArray, theta: FloatArray, variance: FloatArray) -> SizeLaws:
    """Fit the law of one scenario.

    Parameters
    ----------
    sizes : (n_points, 2)
        Log N and log D.
    recipe : (n_points,)
    theta, variance : (n_points,)
        Measured abilities and their sampling variance.
    """
    centres = sizes.mean(axis=0)
    points = (sizes - centres, recipe)
    grid = list(product(BENDS, BENDS, NOISES, OWN_SLOPES))

    def factor(number: int) -> FloatArray:
        *exponents, noise, own = grid[number]
        within = _covariance(points, points, np.array(exponents), own)
        result: FloatArray = np.linalg.cholesky(within + np.diag(noise**2 + variance))
        return result

    weights = softmax([_log_likelihood(factor(number), theta) for number in range(len(grid))])
    chosen = np.flatnonzero(weights >= LEAST_WEIGHT * weights.max())
    inverses = [np.linalg.inv(part @ part.T) for part in map(factor, chosen.tolist())]
    table = np.array(grid)[chosen]
    return SizeLaws(
        centres=centres,
        weights=weights[chosen] / weights[chosen].sum(),
        exponents=table[:, :2],
        noises=table[:, 2],
        own_slopes=table[:, 3],
        sizes=points[0],
        recipe=recipe,
        inverse=np.stack(inverses),
        lean=np.stack([inverse @ theta for inverse in inverses]),
    )


def _log_likelihood(factor: FloatArray, theta: FloatArray) -> float:
    """Log density of abilities of this Cholesky factor, up to a constant."""
    whitened = np.linalg.solve(factor, theta)
    return float(-0.5 * whitened @ whitened - np.log(np.diagonal(factor)).sum())


def _covariance(
    first: tuple[FloatArray, IntArray], second: tuple[FloatArray, IntArray], exponents: FloatArray, own: float
) -> FloatArray:
    """Covariance of abilities between models, without noise; each side is sizes (n, 2) less the centres and recipes."""
    (one, recipe), (other, other_recipe) = first, second
    same = recipe[:, None] == other_recipe[None, :]
    result: FloatArray = same * (LEVEL_VARIANCE + own**2 * np.outer(one.sum(axis=1), other.sum(axis=1)))
    for axis in range(2):
        # slope of the power law at the centre, common to all recipes
        result = result + SLOPE_VARIANCE * np.outer(
            bent(one[:, axis], exponents[axis]), bent(other[:, axis], exponents[axis])
        )
    return result


@dataclass(frozen=True, slots=True)
class FittedSizeLaw:
    """The law in N and D of one scenario.

    Attributes
    ----------
    laws : SizeLaws
    abilities : ScenarioAbilities
        What it was fitted to, with the items.
    path : (n_recipes, 2)
        Log N at the centre of log FLOP, and its rise with a unit of it, as the recipe's own sizes went; NaN for a
        recipe without a law.
    centre : float
    carried : (n_recipes,)
    gap_variance : float
    degrees_of_freedom : float
    residual : (n_recipes,)
    """

    laws: SizeLaws
    abilities: ScenarioAbilities
    path: FloatArray
    centre: float
    carried: FloatArray
    gap_variance: float
    degrees_of_freedom: float
    residual: FloatArray

    def forecast(self, log_flops: FloatArray, level: float, log_params: FloatArray | None = None) -> Forecast:
        """Forecast the scores at log FLOP (n_points,), spent on so many parameters, or as recipes went on so far."""
        shape = (len(self.path), len(log_flops))
        params = self.path[:, :1] + self.path[:, 1:] * (log_flops - self.centre)
        if log_params is not None:
            params = np.where(np.isfinite(params), log_params, np.nan)
        recipe = np.repeat(np.arange(shape[0]), shape[1])
        sizes = log_sizes(np.tile(log_flops, shape[0]), params.ravel())
        mean, variance = (part.reshape(shape) for part in self.laws.predict(sizes, recipe))
        factor = interval_factor(level, self.degrees_of_freedom)
        return ability_forecast(self.abilities, (mean, variance), (self.carried, self.gap_variance), factor)


def log_sizes(log_flops: FloatArray, log_params: FloatArray) -> FloatArray:
    """Log N and log D of models, (n_models, 2), with ``D = C / (6 N)``."""
    return np.stack([log_params, log_flops - log_params - np.log(FLOP_PER_PARAMETER_AND_TOKEN)], axis=1)


def fit_size_law(data: LawData, spec: ParamsTokensLaw) -> LawFit | None:  # noqa: ARG001
    """Fit the law in N and D of one scenario to finished models; None without abilities."""
    if data.abilities is None:
        return None
    abilities, runs = data.abilities, data.runs
    is_of_law = np.isfinite(runs.of_finals(abilities.theta))
    rows = runs.finals[is_of_law]
    sizes = log_sizes(runs.log_flops, runs.log_params)
    laws = fit_sizes(sizes[rows], runs.recipe_index[rows], abilities.theta[rows], abilities.variance[rows])
    expected = np.full(len(runs.log_flops), np.nan)
    expected[rows] = mean_probability(abilities.parameters, laws.predict(sizes[rows], runs.recipe_index[rows])[0])
    carried, gap_variance = carried_gaps(runs.of_finals(abilities.gap))
    centre = float(runs.log_flops[rows].mean())
    law = FittedSizeLaw(
        laws=laws,
        abilities=abilities,
        path=_paths(runs.of_finals(runs.log_flops) - centre, runs.of_finals(runs.log_params)),
        centre=centre,
        carried=carried,
        gap_variance=gap_variance,
        degrees_of_freedom=float(rows.size - is_of_law.any(axis=1).sum() - 2),
        residual=root_mean_square(runs.of_finals(data.scores - expected)),
    )
    return LawFit(law, lacking_notes(runs))


def _paths(x: FloatArray, y: FloatArray) -> FloatArray:
    """Line of least squares of each recipe, height at zero and slope, (n_recipes, 2); NaN without two sizes."""
    paths = np.full((len(x), 2), np.nan)
    for number, (one, other) in enumerate(zip(x, y, strict=True)):
        known = np.isfinite(one) & np.isfinite(other)
        if known.sum() > 1:
            paths[number] = np.polyfit(one[known], other[known], 1)[::-1]
    return paths
