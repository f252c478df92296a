"""Forecasts of models that were held out, beside what the models scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.scaling.pretraining.decisions import decision_accuracy
from itembank.scaling.pretraining.forecasts import interval_factor

DEGREES_OF_FREEDOM = 4.0
"""Of what a held-out check says of the next forecast: two for the scenario's own errors, two for those of all."""

SMALLEST_HALF = 1e-6
"""Half of an interval that errors are divided by at least."""


@dataclass(frozen=True, slots=True)
class HeldOutForecasts:
    """Forecasts of finished models that were not fitted, each beside what the model scored.

    Attributes
    ----------
    forecasts : tuple of rows
        scenario, recipe, law, largest_flops (fitted), flops (forecast), beyond (their ratio), score, low, high,
        actual, error, is_covered.
    level : float
        That the intervals claim.
    """

    forecasts: tuple[dict[str, Any], ...]
    level: float

    @property
    def shortest_distance(self) -> float:
        """Least distance in log FLOP of a forecast beyond what was fitted."""
        return float(np.log(min(row["beyond"] for row in self.forecasts)))

    def summary(self, *, by: Sequence[str] = ("law",)) -> list[dict[str, Any]]:
        """Group the forecasts: mean absolute error, mean error, coverage, mean width of the intervals and number.

        `by` names columns of the forecasts: 'law', 'scenario', 'largest_flops', ...
        """
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.forecasts:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return [{**dict(zip(by, key, strict=True)), **_summary(rows)} for key, rows in groups.items()]

    def widening(self) -> dict[tuple[str, str], float]:
        """Give the factor, by law and scenario, that intervals must grow by to hold as much as they claim.

        One where the intervals of a law held at least that share of all these forecasts. Otherwise Student's t with 4
        degrees of freedom times the root mean square of errors over the half of the interval on their side, that of
        the scenario and that of all scenarios counting alike: recipes miss a skill together, so however many there
        are, a scenario tells what two independent errors would, and the others as much. One at least.
        """
        ratios: dict[str, dict[str, list[float]]] = {}
        for row in self.forecasts:
            side = row["high"] - row["score"] if row["error"] < 0.0 else row["score"] - row["low"]
            ratio = abs(row["error"]) / max(side, SMALLEST_HALF)
            ratios.setdefault(row["law"], {}).setdefault(row["scenario"], []).append(ratio)
        return {
            (law, scenario): factor
            for law, by_scenario in ratios.items()
            for scenario, factor in _factors(by_scenario, self.level).items()
        }

    def decisions(self) -> list[dict[str, Any]]:
        """Decision accuracy for each scenario, law and largest size fitted, at the largest compute that exists."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.forecasts:
            if row["is_largest"]:
                groups.setdefault((row["scenario"], row["law"], row["largest_flops"]), []).append(row)
        return [
            {
                "scenario": scenario,
                "law": law,
                "share_of_target": float(np.mean([largest / row["flops"] for row in rows])),
                "decision_accuracy": decision_accuracy(
                    np.array([row["score"] for row in rows]), np.array([row["actual"] for row in rows])
                ),
                "n_recipes": len(rows),
            }
            for (scenario, law, largest), rows in groups.items()
        ]


def _factors(ratios: Mapping[str, Sequence[float]], level: float) -> dict[str, float]:
    """Widening of one law by scenario, from errors over the halves of intervals."""
    if np.mean(np.concatenate([np.asarray(values) for values in ratios.values()]) <= 1.0) >= level:
        return dict.fromkeys(ratios, 1.0)
    squares = {scenario: float(np.mean(np.square(values))) for scenario, values in ratios.items()}
    together = float(np.mean(list(squares.values())))
    factor = interval_factor(level, DEGREES_OF_FREEDOM)
    return {scenario: max(1.0, factor * float(np.sqrt(0.5 * (own + together)))) for scenario, own in squares.items()}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    errors = np.array([row["error"] for row in rows])
    return {
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "mean_error": float(np.mean(errors)),
        "coverage": float(np.mean([row["is_covered"] for row in rows])),
        "width": float(np.mean([row["high"] - row["low"] for row in rows])),
        "n_forecasts": len(rows),
    }
