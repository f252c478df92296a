"""Results of pre-training laws: forecasts for every recipe and scenario, and the data they rest on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.scaling.pretraining.ability_law import AbilityLaws
from itembank.scaling.pretraining.forecasts import FittedAbilityLaw, FittedLaw, Forecast
from itembank.scaling.pretraining.held_out_results import HeldOutForecasts
from itembank.scaling.pretraining.law_choice import closer_by_hand, closest_law
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities, ScenarioScores
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class ScenarioLaws:
    """The laws of one scenario."""

    scores: ScenarioScores  # Of the models the laws were fitted to, and their checkpoints
    fitted: Mapping[str, FittedLaw]  # Empty where no recipe has enough models with responses
    notes: Mapping[str, tuple[str, ...]]  # What makes a forecast doubtful; empty where nothing does

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.scores.scenario

    @property
    def abilities(self) -> ScenarioAbilities:
        """Measured abilities of the same models, and the items.

        Raises
        ------
        ParameterError
            When the item response law is not among those fitted.
        """
        return self._ability_law.abilities

    @property
    def ability_laws(self) -> AbilityLaws:
        """Lines of ability in log FLOP.

        Raises
        ------
        ParameterError
            When the item response law is not among those fitted.
        """
        return self._ability_law.laws

    @property
    def _ability_law(self) -> FittedAbilityLaw:
        fitted = self.fitted.get("irsl")
        if not isinstance(fitted, FittedAbilityLaw):
            raise ParameterError(
                f"abilities need the law 'irsl', fitted in scenario {self.scenario!r} are {shown(list(self.fitted))}."
            )
        return fitted


@dataclass(frozen=True, slots=True, repr=False)
class PretrainingLaw(Tabular):
    """Pre-training laws of n_recipes recipes; made by `pretraining_law`.

    Attributes
    ----------
    recipes : tuple of n_recipes names
    scenarios : tuple of ScenarioLaws
    model_ids : tuple of n_models ids
        The models that took part.
    log_flops : (n_models,)
        Natural logarithm.
    recipe_index : (n_models,)
    is_final : (n_models,)
    target_flops : float
    level : float
        Of the intervals.
    message : str
        What was left out, or taken in place of something.
    held_out : HeldOutForecasts or None
        Forecasts of the largest sizes from the smaller ones, beside what those models scored; None without a check.
        Where their intervals held fewer than claimed, those of `forecast` beyond the largest sizes are wider.
    """

    recipes: tuple[str, ...]
    scenarios: tuple[ScenarioLaws, ...]
    model_ids: tuple[str, ...]
    log_flops: FloatArray
    recipe_index: IntArray
    is_final: BoolArray
    target_flops: float
    level: float
    message: str
    held_out: HeldOutForecasts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the laws fitted, in the order they were asked for."""
        return tuple(dict.fromkeys(name for laws in self.scenarios for name in laws.fitted))

    @property
    def best(self) -> str:
        """Law to read first: the first one, unless another was clearly closer on the sizes held out."""
        return closest_law(self.names, self.held_out)[0]

    @property
    def best_reason(self) -> str:
        """How the best law compares with the next on the sizes held out, in words; empty where nothing was compared."""
        return closest_law(self.names, self.held_out)[1]

    def closer_by_hand(self, name: str = "") -> str:
        """Say which forecast by hand was closer on the sizes held out than a law, the best by default; '' for none."""
        return closer_by_hand(name or self.best, self.held_out)

    def of_scenario(self, scenario: str) -> ScenarioLaws:
        """Return the laws of one scenario.

        Raises
        ------
        ParameterError
            When there is none of that name.
        """
        for laws in self.scenarios:
            if laws.scenario == scenario:
                return laws
        known = [laws.scenario for laws in self.scenarios]
        raise ParameterError(f"scenario must be one of {shown(known)}, got {scenario!r}.")

    def forecast(
        self,
        scenario: str,
        law: str | None = None,
        *,
        flops: Sequence[float] | FloatArray | None = None,
    ) -> Forecast:
        """Forecast every recipe's score at some computes (the target by default), each (n_recipes, n_points).

        The law is the `best` one unless it is named.

        Raises
        ------
        ParameterError
            For an unknown scenario or law, or a compute that is not above zero.
        """
        fitted, law = self.of_scenario(scenario).fitted, law or self.best
        if law not in fitted:
            raise ParameterError(f"law must be one of {shown(list(fitted))} in scenario {scenario!r}, got {law!r}.")
        at = np.asarray([self.target_flops] if flops is None else flops, dtype=np.float64)
        if not (np.isfinite(at).all() and (at > 0.0).all()):
            raise ParameterError(f"flops must be finite and > 0, got {shown(at.tolist())}.")
        return self._widened(fitted[law].forecast(np.log(at), self.level), law, scenario, np.log(at))

    def _widened(self, forecast: Forecast, law: str, scenario: str, log_flops: FloatArray) -> Forecast:
        """Widen intervals beyond each recipe's largest size by the factor that the held-out check found.

        From nothing at that size to the whole factor at the shortest distance checked.
        """
        if self.held_out is None or self.held_out.table.is_empty():
            return forecast
        whole = self.held_out.widening().get((law, scenario), 1.0)
        finals = np.where(self.is_final, self.log_flops, -np.inf)
        largest = np.array(
            [finals[self.recipe_index == number].max(initial=-np.inf) for number in range(len(self.recipes))]
        )
        fraction = np.clip((log_flops - largest[:, None]) / self.held_out.shortest_distance, 0.0, 1.0)
        factor = 1.0 + (whole - 1.0) * fraction  # (n_recipes, n_points)
        low = forecast.score - factor * (forecast.score - forecast.low)
        high = forecast.score + factor * (forecast.high - forecast.score)
        return forecast._replace(low=np.clip(low, 0.0, 1.0), high=np.clip(high, 0.0, 1.0))

    def rows(self) -> list[dict[str, Any]]:
        """One row a scenario, law and recipe: the forecast at the target, for tables; the best law first."""
        return [row for laws in self.scenarios for name in self._ordered(laws.fitted) for row in self._rows(laws, name)]

    def curve_rows(self, n_points: int = 25) -> list[dict[str, Any]]:
        """One row a scenario, recipe, law and compute from the smallest finished model to the target."""
        low = float(self.log_flops[self.is_final].min())
        flops = np.exp(np.linspace(low, max(float(self.log_flops.max()), np.log(self.target_flops)), n_points))
        rows: list[dict[str, Any]] = []
        for laws in self.scenarios:
            for name in laws.fitted:
                forecast = self.forecast(laws.scenario, name, flops=flops)
                for number, recipe in enumerate(self.recipes):
                    ends = zip(flops, forecast.score[number], forecast.low[number], forecast.high[number], strict=True)
                    head = {"scenario": laws.scenario, "recipe": recipe, "law": name}
                    rows.extend(
                        {**head, "flops": float(at), "score": float(score), "low": float(below), "high": float(above)}
                        for at, score, below, above in ends
                    )
        return rows

    def comparison(self) -> list[dict[str, Any]]:
        """One row a law, the best first, or none without a check: what forecasts of the sizes held out were worth.

        Mean absolute error, mean error, coverage and mean width of the intervals before they were widened, number of
        forecasts; mean factor of the widening over scenarios; decision accuracy at the largest size that exists, over
        scenarios; and the root mean square of the residuals at the sizes fitted. Below them stands what a person does
        by hand: the last score, and a line through the logits of the last three; these are not widened.
        """
        if self.held_out is None:
            return []
        widening = self.held_out.widening()
        rows = {row["law"]: row for row in _worth(self.held_out)}
        for name, row in rows.items():
            fitted = [laws.fitted[name].residual for laws in self.scenarios if name in laws.fitted]
            row["widening"] = float(np.mean([factor for (law, _), factor in widening.items() if law == name]))
            row["residual"] = float(np.sqrt(np.nanmean(np.square(fitted))))
        by_hand = [] if self.held_out.by_hand is None else _worth(self.held_out.by_hand)
        return [rows[name] for name in self._ordered(rows)] + by_hand

    def _ordered(self, names: Iterable[str]) -> list[str]:
        """Put the best law first."""
        best = self.best
        return sorted(names, key=lambda name: name != best)

    def _rows(self, laws: ScenarioLaws, name: str) -> list[dict[str, Any]]:
        fitted = laws.fitted[name]
        forecast = self.forecast(laws.scenario, name)
        residual = fitted.residual
        rows = []
        for number, recipe in enumerate(self.recipes):
            is_of_recipe = (self.recipe_index == number) & self.is_final & laws.scores.is_present
            row = {
                "scenario": laws.scenario,
                "recipe": recipe,
                "law": name,
                "score": float(forecast.score[number, 0]),
                "low": float(forecast.low[number, 0]),
                "high": float(forecast.high[number, 0]),
                "n_sizes": int(is_of_recipe.sum()),
                "beyond": float(self.target_flops / np.exp(self.log_flops[is_of_recipe].max()))
                if is_of_recipe.any()
                else np.nan,
                "residual": float(residual[number]),
                "spread_over_starts": float(forecast.spread[number, 0]),
            }
            if isinstance(fitted, FittedAbilityLaw):
                row["slope"] = float(fitted.laws.slope[number])
                row["slope_error"] = float(fitted.laws.slope_error[number])
            else:
                row["slope"] = row["slope_error"] = np.nan
            row["note"] = laws.notes[name][number]
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Facts about the whole, for JSON."""
        return {
            "target_flops": self.target_flops,
            "level": self.level,
            "recipes": list(self.recipes),
            "scenarios": [laws.scenario for laws in self.scenarios],
            "laws": list(self.names),
            "best_law": self.best,
            "best_law_reason": self.best_reason,
            "n_models": len(self.model_ids),
            "n_final": int(self.is_final.sum()),
            "message": self.message,
        }


def _worth(held_out: HeldOutForecasts) -> list[dict[str, Any]]:
    """One row a law: its forecasts of the sizes held out, with what only fitted laws have still unknown."""
    decisions = held_out.decisions()
    rows = held_out.summary().to_dicts()
    for row in rows:
        accuracy = decisions.filter(law=row["law"])["decision_accuracy"].to_numpy()
        known = accuracy[np.isfinite(accuracy)]
        row["widening"] = np.nan
        row["decision_accuracy"] = float(np.mean(known)) if known.size else np.nan
        row["residual"] = np.nan
    return rows
