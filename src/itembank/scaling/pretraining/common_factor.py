"""Observational law: scores against common factors of all scenarios, which follow compute (Ruan et al. 2024).

The factors of a model are the first principal components of the logits of its scores (their eq. 3). Every scenario's
logit is a line in the factors, the same for all recipes (eq. 6), and each recipe's factors are lines in log FLOP
(eq. 5), fitted as the abilities of the item response law are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.scaling.pretraining.ability_law import AbilityLaws, fit_ability_laws
from itembank.scaling.pretraining.fitting import LawData, LawFit, carried_gaps, root_mean_square
from itembank.scaling.pretraining.forecasts import Forecast, interval_factor
from itembank.scaling.pretraining.law_notes import lacking_notes
from itembank.scaling.pretraining.law_spec import ObservationalLaw

SMALLEST_SCORE = 0.005
"""Scores are kept this far from 0 and 1, where logits would be infinite."""


@dataclass(frozen=True, slots=True)
class CommonFactors:
    """Principal components of the logits of n_models models in n_scenarios scenarios.

    Attributes
    ----------
    mean : (n_scenarios,)
    loadings : (n_factors, n_scenarios)
        Orthonormal; the sum of each is not negative.
    values : (n_models, n_factors)
        Of the models, as far from each other as their logits.
    share : float
        Of the variance of all logits.
    """

    mean: FloatArray
    loadings: FloatArray
    values: FloatArray
    share: float


def common_factors(z: FloatArray, n_factors: int) -> CommonFactors:
    """Find the first principal components of logits (n_models, n_scenarios)."""
    mean = z.mean(axis=0)
    left, size, right = np.linalg.svd(z - mean, full_matrices=False)
    signs = np.where(right[:n_factors].sum(axis=1) < 0.0, -1.0, 1.0)
    values = left[:, :n_factors] * size[:n_factors] * signs
    total = float(np.sum(size**2))
    share = float(np.sum(size[:n_factors] ** 2)) / total if total > 0.0 else 0.0
    return CommonFactors(mean, right[:n_factors] * signs[:, None], values, share)


@dataclass(frozen=True, slots=True)
class FittedFactorLaw:
    """The observational law of one scenario.

    Attributes
    ----------
    laws : tuple of n_factors AbilityLaws
        Of the factors in log FLOP, the same in every scenario.
    height : float
        Logit where all factors are zero.
    loadings : (n_factors,)
        Rise of the logit with each factor.
    carried : (n_recipes,)
        Logit beyond what the factors give that a recipe keeps.
    gap_variance : float
        Of the logit around both.
    residual : (n_recipes,)
    """

    laws: tuple[AbilityLaws, ...]
    height: float
    loadings: FloatArray
    carried: FloatArray
    gap_variance: float
    residual: FloatArray

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,); the interval is that of the logit."""
        parts = [law.predict(log_flops) for law in self.laws]
        z = (
            self.height
            + self.carried[:, None]
            + sum(rise * mean for rise, (mean, _) in zip(self.loadings, parts, strict=True))
        )
        variance = self.gap_variance + sum(
            rise**2 * spread for rise, (_, spread) in zip(self.loadings, parts, strict=True)
        )
        factor = interval_factor(level, min(law.degrees_of_freedom for law in self.laws))
        half = factor * np.sqrt(variance)
        score = expit(z)
        return Forecast(score, expit(z - half), expit(z + half), np.where(np.isnan(score), np.nan, 0.0))


def fit_observational_law(every: Sequence[LawData], spec: ObservationalLaw) -> tuple[LawFit, ...]:
    """Fit the law of all scenarios to finished models with a score in each.

    Raises
    ------
    DataError
        With fewer scenarios than two or than factors, or no more models than factors.
    """
    runs = every[0].runs
    scores = np.stack([data.scores for data in every], axis=1)
    is_used = runs.is_final & np.isfinite(scores).all(axis=1)
    _check(len(every), int(is_used.sum()), spec.n_factors)
    z = logit(np.clip(scores, SMALLEST_SCORE, 1.0 - SMALLEST_SCORE))
    found = common_factors(z[is_used], spec.n_factors)
    laws = tuple(fit_ability_laws(*_of_finals(every[0], found.values[:, k], is_used)) for k in range(spec.n_factors))
    return tuple(_of_scenario(data, number, found, (z[:, number], is_used), laws) for number, data in enumerate(every))


def _of_finals(data: LawData, values: FloatArray, is_used: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log FLOP, values and no error of finished models, each (n_recipes, n_most)."""
    whole = np.full(len(data.scores), np.nan)
    whole[is_used] = values
    y = data.runs.of_finals(whole)
    return data.runs.of_finals(data.runs.log_flops), y, np.where(np.isfinite(y), 0.0, np.nan)


def _of_scenario(
    data: LawData,
    number: int,
    found: CommonFactors,
    logits: tuple[FloatArray, BoolArray],
    laws: tuple[AbilityLaws, ...],
) -> LawFit:
    """Link of one scenario to the factors: principal components are their own regression."""
    runs, (z, is_used) = data.runs, logits
    height, loadings = float(found.mean[number]), found.loadings[:, number]
    gap = np.full(len(z), np.nan)
    gap[is_used] = z[is_used] - height - found.values @ loadings
    carried, gap_variance = carried_gaps(runs.of_finals(gap))
    law = FittedFactorLaw(laws, height, loadings, carried, gap_variance, np.empty(0))
    own = law.forecast(runs.log_flops, 0.5).score[runs.recipe_index, np.arange(len(z))]
    residual = root_mean_square(runs.of_finals(data.scores - own))
    return LawFit(replace(law, residual=residual), lacking_notes(runs))


def _check(n_scenarios: int, n_models: int, n_factors: int) -> None:
    """Raise `DataError` where there are no such factors."""
    if n_scenarios < max(2, n_factors) or n_models <= n_factors:
        raise DataError(
            f"the law 'observational' needs at least {max(2, n_factors)} scenarios and {n_factors + 1} finished models "
            f"with a score in each of them, got {n_scenarios} scenarios and {n_models} such models. Leave the law out."
        )
