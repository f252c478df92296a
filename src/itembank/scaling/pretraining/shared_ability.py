"""Shared abilities: a general ability of all scenarios that follows compute, and one of each scenario beside it.

A factor model of second order over the scenarios' own abilities: model m has in scenario s

    theta_sm = mu_s + lambda_s g_m + d_sm,     g ~ N(0, 1),  d_sm ~ N(0, psi_s)

and theta_sm is measured with an error of known variance. It is a bifactor bank whose specific loadings are in
proportion to the general ones (Schmid and Leiman 1957), which serves every family of responses. Then g is a line in log
FLOP for every recipe, learned from all scenarios, and so is d, drawn to the other recipes of its scenario.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.ability_law import AbilityLaws, fit_ability_laws
from itembank.scaling.pretraining.fitting import LawData, LawFit, carried_gaps, root_mean_square
from itembank.scaling.pretraining.forecasts import Forecast, ability_forecast, interval_factor
from itembank.scaling.pretraining.law_notes import lacking_notes
from itembank.scaling.pretraining.law_spec import SharedAbilityLaw
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, mean_probability

MAX_STEPS = 500
TOLERANCE = 1e-6
"""Change of a loading at which EM stops."""
SMALLEST_VARIANCE = 1e-4
"""Of abilities of a scenario beside the general one: less would make g exact."""


@dataclass(frozen=True, slots=True)
class GeneralAbility:
    """The factor model, and the general ability of n_models models.

    Attributes
    ----------
    mean, loadings, own_variance : (n_scenarios,)
        mu, lambda and psi.
    general, variance : (n_models,)
        What the scenarios say of g, without the pull of its prior, and its sampling variance.
    """

    mean: FloatArray
    loadings: FloatArray
    own_variance: FloatArray
    general: FloatArray
    variance: FloatArray


def general_ability(theta: FloatArray, variance: FloatArray) -> GeneralAbility:
    """Fit the factor model by EM (Rubin and Thayer 1982), with errors of known variance.

    Parameters
    ----------
    theta, variance : (n_models, n_scenarios)
        Measured abilities and their sampling variance; NaN where a model has none.
    """
    known = np.isfinite(theta)
    y, v = np.where(known, theta, 0.0), np.where(known, variance, 1.0)
    count = known.sum(axis=0)
    mean = y.sum(axis=0) / count
    spread = np.sum(np.where(known, (y - mean) ** 2, 0.0), axis=0) / count
    loadings, own = np.sqrt(0.7 * spread), np.maximum(0.3 * spread, SMALLEST_VARIANCE)
    for _ in range(MAX_STEPS):
        precision = known / (own + v)
        post = 1.0 / (1.0 + precision @ loadings**2)  # (n_models,)
        general = post * ((precision * (y - mean)) @ loadings)
        square = general**2 + post
        # the part of a scenario's own ability in the residual: kappa = psi / (psi + v)
        kappa = own / (own + v)
        new_loadings, new_mean = _weighed_lines(y, precision, general, square)
        residual = y - new_mean - np.outer(general, new_loadings)
        own_square = kappa**2 * (residual**2 + np.outer(post, new_loadings**2)) + kappa * v
        own = np.maximum(np.sum(known * own_square, axis=0) / count, SMALLEST_VARIANCE)
        change = float(np.max(np.abs(new_loadings - loadings)))
        loadings, mean = new_loadings, new_mean
        if change < TOLERANCE:
            break
    precision = known / (own + v)
    information = precision @ loadings**2
    alone = ((precision * (y - mean)) @ loadings) / np.maximum(information, SMALLEST_VARIANCE)
    return GeneralAbility(mean, loadings, own, alone, 1.0 / np.maximum(information, SMALLEST_VARIANCE))


def _weighed_lines(
    y: FloatArray, precision: FloatArray, general: FloatArray, square: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find loading and mean of each scenario by weighted least squares on the expected general ability."""
    total = precision.sum(axis=0)
    first, second = general @ precision, square @ precision
    crossed, plain = np.sum(precision * y * general[:, None], axis=0), np.sum(precision * y, axis=0)
    determinant = total * second - first**2
    loadings = (total * crossed - first * plain) / determinant
    return loadings, (plain - loadings * first) / total


@dataclass(frozen=True, slots=True)
class FittedSharedLaw:
    """The law of shared abilities of one scenario.

    Attributes
    ----------
    general : AbilityLaws
        Of g in log FLOP, the same in every scenario.
    own : AbilityLaws
        Of d in log FLOP.
    mean, loading : float
        mu and lambda.
    abilities : ScenarioAbilities
        What it was fitted to, with the items.
    carried : (n_recipes,)
    gap_variance : float
    residual : (n_recipes,)
    """

    general: AbilityLaws
    own: AbilityLaws
    mean: float
    loading: float
    abilities: ScenarioAbilities
    carried: FloatArray
    gap_variance: float
    residual: FloatArray

    def predict(self, log_flops: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ability of a model trained with log FLOP (n_points,), and its variance: each (n_recipes, n_points)."""
        general, general_variance = self.general.predict(log_flops)
        own, own_variance = self.own.predict(log_flops)
        return self.mean + self.loading * general + own, self.loading**2 * general_variance + own_variance

    def forecast(self, log_flops: FloatArray, level: float) -> Forecast:
        """Forecast the scores at log FLOP (n_points,)."""
        factor = interval_factor(level, min(self.general.degrees_of_freedom, self.own.degrees_of_freedom))
        return ability_forecast(self.abilities, self.predict(log_flops), (self.carried, self.gap_variance), factor)


def fit_shared_law(every: Sequence[LawData], spec: SharedAbilityLaw) -> tuple[LawFit | None, ...]:  # noqa: ARG001
    """Fit the law of all scenarios that have abilities to finished models; None for the others.

    Raises
    ------
    DataError
        With fewer than three such scenarios, from which a factor cannot be told.
    """
    measured = [data for data in every if data.abilities is not None]
    if len(measured) < 3:
        raise DataError(
            f"the law 'shared' needs abilities in at least 3 scenarios, got {len(measured)}: fewer do not tell a "
            "general ability from those of scenarios. Leave the law out."
        )
    is_final = every[0].runs.is_final
    theta, variance = (
        np.stack([getattr(data.abilities, name)[is_final] for data in measured], axis=1)
        for name in ("theta", "variance")
    )
    found = general_ability(theta, variance)
    general, doubt = np.full(len(is_final), np.nan), np.full(len(is_final), np.nan)
    general[is_final], doubt[is_final] = found.general, found.variance
    # the scenario that most recipes have enough models in
    runs = max((data.runs for data in measured), key=lambda one: int(one.is_enough.sum()))
    law = fit_ability_laws(*(runs.of_finals(values) for values in (runs.log_flops, general, doubt)))
    fits = iter([_of_scenario(data, number, found, general, law) for number, data in enumerate(measured)])
    return tuple(None if data.abilities is None else next(fits) for data in every)


def _of_scenario(data: LawData, number: int, found: GeneralAbility, general: FloatArray, law: AbilityLaws) -> LawFit:
    """Fit the lines of one scenario's own ability, what g leaves of the measured one."""
    abilities, runs = data.abilities, data.runs
    if abilities is None:
        raise TypeError("laws of scenarios without abilities are left out before")
    mean, loading = float(found.mean[number]), float(found.loadings[number])
    own = abilities.theta - mean - loading * general
    lines = fit_ability_laws(*(runs.of_finals(values) for values in (runs.log_flops, own, abilities.variance)))
    carried, gap_variance = carried_gaps(runs.of_finals(abilities.gap))
    fitted = FittedSharedLaw(law, lines, mean, loading, abilities, carried, gap_variance, np.empty(0))
    expected = fitted.predict(runs.log_flops)[0][runs.recipe_index, np.arange(len(runs.log_flops))]
    residual = runs.of_finals(data.scores - mean_probability(abilities.parameters, expected))
    return LawFit(replace(fitted, residual=root_mean_square(residual)), lacking_notes(runs))
