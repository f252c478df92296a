"""`PretrainingLaw` and `HeldOutForecasts`: forecasts, what they rest on, and how far off those of known sizes were."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.tables import plural, points_of
from itembank.tabular import Tabular
from itembank_scaling.pretraining.ability_law import AbilityLaws, FittedAbilityLaw
from itembank_scaling.pretraining.law_fitting import FittedLaw, Forecast, interval_factor
from itembank_scaling.pretraining.measured_abilities import ScenarioAbilities, ScenarioScores


def decision_accuracy(predicted: FloatArray, actual: FloatArray) -> float:
    """Fraction of pairs of recipes that predicted values order as the actual ones do.

    ``sign(predicted_A - predicted_B) = sign(actual_A - actual_B)`` over all pairs (IRSL eq. 5). Two things the equation
    leaves open: pairs whose actual values are equal are left out, since no choice between them is wrong, and a tie of
    predictions counts one half, as a coin would.

    Parameters
    ----------
    predicted, actual : (n_recipes,)
        NaN where there is none: the recipe is left out.

    Returns
    -------
    float
        NaN when no pair can be told apart.

    Raises
    ------
    ParameterError
        When the lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> decision_accuracy(np.array([0.3, 0.5, 0.4]), np.array([0.2, 0.6, 0.7]))
    0.6666666666666666
    """
    predicted, actual = np.asarray(predicted, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    if predicted.shape != actual.shape or predicted.ndim != 1:
        raise ParameterError(
            f"predicted and actual must be as long as each other, got shapes {predicted.shape} and {actual.shape}."
        )
    is_known = np.isfinite(predicted) & np.isfinite(actual)
    predicted, actual = rounded(predicted[is_known]), rounded(actual[is_known])
    first, second = np.triu_indices(len(actual), k=1)
    wanted = np.sign(actual[first] - actual[second])
    got = np.sign(predicted[first] - predicted[second])
    is_decided = wanted != 0.0
    if not is_decided.any():
        return float("nan")
    agreement = np.where(got == 0.0, 0.5, got == wanted)
    return float(agreement[is_decided].mean())


FORECAST_COLUMNS = {
    "scenario": pl.String,
    "recipe": pl.String,
    "law": pl.String,
    "largest_flops": pl.Float64,
    "flops": pl.Float64,
    "beyond": pl.Float64,
    "is_largest": pl.Boolean,
    **dict.fromkeys(("score", "low", "high", "actual", "error"), pl.Float64),
    "is_covered": pl.Boolean,
}
DECISION_COLUMNS = {
    "scenario": pl.String,
    "law": pl.String,
    "share_of_target": pl.Float64,
    "decision_accuracy": pl.Float64,
    "n_recipes": pl.Int64,
}


@dataclass(frozen=True, slots=True, repr=False)
class HeldOutForecasts(Tabular):
    """Forecasts of finished models that were not fitted, each beside what the model scored.

    Attributes
    ----------
    table : table of n_forecasts rows
        `scenario`, `recipe`, `law`, `largest_flops` (fitted), `flops` (forecast), `beyond` (their ratio),
        `is_largest` (of the recipe), `score`, `low`, `high`, `actual`, `error`, `is_covered`.
    level : float
        That the intervals claim.
    by_hand : HeldOutForecasts or None
        What a person's forecasts by hand of the same models would have been (`BY_HAND`), but for those among the laws.
    """

    schema = "pretrain"

    table: pl.DataFrame
    level: float
    by_hand: "HeldOutForecasts | None" = None

    @property
    def beside_by_hand(self) -> "HeldOutForecasts":
        """The forecasts of the laws, and below them those by hand, as one table."""
        if self.by_hand is None:
            return self
        return HeldOutForecasts(pl.concat([self.table, self.by_hand.table]), self.level)

    def summary(self, *, by: Sequence[str] = ("law",)) -> pl.DataFrame:
        """Group the forecasts: mean absolute error, bias, coverage, mean half-width of the intervals and number.

        `by` names columns of the forecasts: 'law', 'scenario', 'largest_flops', ...
        """
        return self.table.group_by(by, maintain_order=True).agg(
            error=pl.col("error").abs().mean(),
            bias=pl.col("error").mean(),
            coverage=pl.col("is_covered").mean(),
            half_width=0.5 * (pl.col("high") - pl.col("low")).mean(),
            n_forecasts=pl.len(),
        )

    def widening(self) -> dict[tuple[str, str], float]:
        """Give the factor, by law and scenario, that intervals must grow by to cover as much as they claim.

        One where the intervals of a law covered at least that share of all these forecasts. Otherwise Student's t with
        4 degrees of freedom times the root mean square of errors over the half of the interval on their side, that of
        the scenario and that of all scenarios counting alike: recipes miss a skill together, so however many there
        are, a scenario tells what two independent errors would, and the others as much. One at least.
        """
        error, score, square = pl.col("error"), pl.col("score"), pl.col("square")
        half = pl.when(error < 0.0).then(pl.col("high") - score).otherwise(score - pl.col("low"))
        ratio = error.abs() / pl.max_horizontal(half, pl.lit(1e-6))
        factor = interval_factor(self.level, 4.0) * (0.5 * (square + square.mean().over("law"))).sqrt()
        table = (
            self.table.with_columns(ratio=ratio)
            .with_columns(is_held=(pl.col("ratio") <= 1.0).mean().over("law") >= self.level)
            .group_by("law", "scenario", maintain_order=True)
            .agg(pl.col("is_held").first(), square=(pl.col("ratio") ** 2).mean())
            .with_columns(factor=pl.when("is_held").then(1.0).otherwise(pl.max_horizontal(pl.lit(1.0), factor)))
        )
        return {(law, scenario): value for law, scenario, value in table.select("law", "scenario", "factor").rows()}

    def decisions(self) -> pl.DataFrame:
        """Decision accuracy for each scenario, law and largest size fitted, at the largest compute that exists.

        Returns
        -------
        table
            `scenario`, `law`, `share_of_target`, `decision_accuracy`, `n_recipes`.
        """
        groups = self.table.filter("is_largest").group_by("scenario", "law", "largest_flops", maintain_order=True)
        rows = [
            (
                *key[:2],
                float((part["largest_flops"] / part["flops"]).to_numpy().mean()),
                decision_accuracy(part["score"].to_numpy(), part["actual"].to_numpy()),
                part.height,
            )
            for key, part in groups
        ]
        return pl.DataFrame(rows, schema=DECISION_COLUMNS, orient="row")


FAR_BEYOND = 1e3
"""Times the compute of the largest model fitted from which a target is doubted."""


def closest_law(
    names: Sequence[str],  # The laws fitted, the preferred one first
    held_out: HeldOutForecasts | None,
) -> tuple[str, str]:
    """Choose among laws by their mean absolute error on the sizes held out.

    The first law stays unless another's error is smaller by more than the standard error of the difference. That is
    taken over the forecasts that both made, or over scenarios where there are five or more.

    Returns name, reason: The law, and how it compares with the next in words; empty where nothing was compared.
    """
    first, *others = names
    if held_out is None or not others:
        return first, ""
    rivals = {name: _pairs(held_out, first, name) for name in others}
    means = {name: pairs.mean(axis=0) for name, pairs in rivals.items() if pairs.size}  # (first, other)
    if not means:
        return first, ""
    gains = {name: float(base - other) for name, (base, other) in means.items()}
    # standard errors of the mean differences, of which one forecast says nothing
    noises = {
        name: float(np.std(pairs[:, 0] - pairs[:, 1], ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else np.inf
        for name, pairs in rivals.items()
    }
    clear = [name for name in means if gains[name] > noises[name]]
    closest = max(clear or means, key=lambda name: gains[name])
    base, other = means[closest]
    if clear:
        return (
            closest,
            f"{closest} was {_times(base, other)} than {first} on the held-out sizes ({_both(other, base)}).",
        )
    if other < base:
        noise = noises[closest]
        known = f" ({points_of(noise)} points)" if np.isfinite(noise) else ", which one forecast cannot tell"
        return first, (
            f"{closest} was closer than {first} on the held-out sizes ({_both(other, base)}), but by no more than the "
            f"standard error of the difference{known}: {first} stays first."
        )
    return first, f"{first} was {_times(other, base)} than {closest} on the held-out sizes ({_both(base, other)})."


def closer_by_hand(name: str, held_out: HeldOutForecasts | None) -> str:
    """Say in a clause which forecast by hand was closer on the sizes held out than a law; empty where none was."""
    if held_out is None or held_out.by_hand is None:
        return ""
    both, hands = held_out.beside_by_hand, held_out.by_hand.table["law"].unique(maintain_order=True).to_list()
    found = {hand: _pairs(both, name, hand) for hand in hands}
    means = {hand: pairs.mean(axis=0) for hand, pairs in found.items() if pairs.size}
    closer = {hand: (own, by_hand) for hand, (own, by_hand) in means.items() if by_hand < own}
    if not closer:
        return ""
    closest = min(closer, key=lambda hand: closer[hand][1] / closer[hand][0])
    own, by_hand = closer[closest]
    return f"the forecast by hand, {closest}, was {_times(own, by_hand)} than {name} ({_both(by_hand, own)})"


def few_checked(n_forecasts: int) -> str:
    """Say in a clause that so few forecasts were checked; empty where they are enough."""
    return f"only {plural(n_forecasts, 'forecast', 'were')} checked" if n_forecasts < 10 else ""


def times_words(ratio: float) -> str:
    """Write how many times as much computing one run is as another: '3.13', '52,000'."""
    return f"{ratio:.3g}" if ratio < FAR_BEYOND else f"{float(f'{ratio:.2g}'):,.0f}"


def _pairs(held_out: HeldOutForecasts, first: str, other: str) -> FloatArray:
    """Absolute errors of two laws where both forecast; means of scenarios where these are enough, (n, 2)."""
    key = ["scenario", "recipe", "largest_flops", "flops"]
    errors = held_out.table.select(*key, "law", error=pl.col("error").abs()).unique(
        [*key, "law"], keep="last", maintain_order=True
    )
    pairs = errors.filter(law=first).join(errors.filter(law=other), on=key, maintain_order="left")
    enough_scenarios = 5  # from here on the errors of a scenario count as one: recipes miss a skill together
    if pairs["scenario"].n_unique() >= enough_scenarios:
        pairs = pairs.group_by("scenario", maintain_order=True).agg(pl.col("error", "error_right").mean())
    return pairs.select("error", "error_right").to_numpy()


def _times(larger: float, smaller: float) -> str:
    return f"{larger / smaller:.1f} times closer" if smaller > 0.0 else "closer"


def _both(smaller: float, larger: float) -> str:
    return f"{points_of(smaller)} against {points_of(larger)} points"


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
        """Measured abilities of the same models, and the items."""
        return self._ability_law.abilities

    @property
    def ability_laws(self) -> AbilityLaws:
        """Lines of ability in log FLOP."""
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
        Where their intervals covered fewer than claimed, those of `forecast` beyond the largest sizes are wider.
    """

    schema = "pretrain"

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
        """How the best law compares with the next on the sizes held out, in words; empty if nothing was compared."""
        return closest_law(self.names, self.held_out)[1]

    def doubts(self, name: str = "") -> tuple[str, ...]:
        """Give the reasons to trust the forecasts of a law, the best by default, little: a clause each."""
        name = name or self.best
        worth = self.worth(name)
        far = (
            f"the target is about {times_words(self._beyond)} times the compute of the largest model fitted, and "
            "nothing shows that the law holds so far beyond it"
        )
        unknown = "no sizes were held out, so their error is unknown"
        return tuple(
            text
            for text in (
                unknown if worth is None else few_checked(worth["n_forecasts"]),
                closer_by_hand(name, self.held_out),
                far if self._beyond > FAR_BEYOND else "",
            )
            if text
        )

    def trust(self, name: str = "") -> str:
        """Say in a sentence how far to trust the forecasts of a law, the best by default."""
        name = name or self.best
        doubts, worth = self.doubts(name), self.worth(name)
        if doubts or worth is None or self.held_out is None:
            return f"Trust these forecasts little: {'; '.join(doubts)}."
        checked = self.held_out.table.filter(law=name)["beyond"].to_numpy().max()
        return (
            f"{worth['n_forecasts']:,} forecasts of held-out sizes were off by {points_of(worth['error'])} points on "
            f"average{'' if self.held_out.by_hand is None else ', closer than by hand'}, at up to "
            f"{times_words(checked)} times the compute fitted; the target is {times_words(self._beyond)} times the "
            f"compute of the largest run{' of all recipes' * (len(self.recipes) > 1)}."
        )

    @property
    def _beyond(self) -> float:
        """Times the compute of the largest model that a law is fitted to that the target is."""
        return min((row["beyond"] for row in self.rows() if np.isfinite(row["score"])), default=np.nan)

    def worth(self, name: str) -> dict[str, Any] | None:
        """Return the row of `comparison` of a law; None if no sizes were held out."""
        return next((row for row in self.comparison() if row["law"] == name), None)

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
        self, scenario: str, law: str | None = None, *, flops: Sequence[float] | FloatArray | None = None
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
        forecast = fitted[law].forecast(np.log(at), self.level)
        if self.held_out is None or self.held_out.table.is_empty():
            return forecast
        # by the factor that the held-out check found: nothing at a recipe's largest size, all of it at the shortest
        # distance that was checked
        shortest = np.log(self.held_out.table["beyond"].to_numpy().min())
        whole = self.held_out.widening().get((law, scenario), 1.0)
        finals = np.where(self.is_final, self.log_flops, -np.inf)
        largest = np.array(
            [finals[self.recipe_index == number].max(initial=-np.inf) for number in range(len(self.recipes))]
        )
        fraction = np.clip((np.log(at) - largest[:, None]) / shortest, 0.0, 1.0)
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

        Mean absolute error, bias, coverage and mean half-width of the intervals before they were widened, number of
        forecasts; mean factor of the widening over scenarios; decision accuracy at the largest size that exists, over
        scenarios; and the root mean square of the residuals at the sizes fitted. Below them is what a person does
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
            "trust": self.trust(),
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
