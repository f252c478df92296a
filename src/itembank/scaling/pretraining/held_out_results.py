"""Forecasts of models that were held out, beside what the models scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.scaling.pretraining.decisions import decision_accuracy
from itembank.scaling.pretraining.forecasts import interval_factor
from itembank.tabular import Tabular

DEGREES_OF_FREEDOM = 4.0
"""Of what a held-out check says of the next forecast: two for the scenario's own errors, two for those of all."""

SMALLEST_HALF = 1e-6
"""Half of an interval that errors are divided by at least."""

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

    table: pl.DataFrame
    level: float
    by_hand: "HeldOutForecasts | None" = None

    @property
    def beside_by_hand(self) -> "HeldOutForecasts":
        """The forecasts of the laws, and below them those by hand, as one table."""
        if self.by_hand is None:
            return self
        return HeldOutForecasts(pl.concat([self.table, self.by_hand.table]), self.level)

    @property
    def shortest_distance(self) -> float:
        """Least distance in log FLOP of a forecast beyond the largest fitted size."""
        return float(np.log(self.table["beyond"].to_numpy().min()))

    def rows(self) -> list[dict[str, Any]]:
        """One row a forecast."""
        return self.table.to_dicts()

    def summary(self, *, by: Sequence[str] = ("law",)) -> pl.DataFrame:
        """Group the forecasts: mean absolute error, mean error, coverage, mean width of the intervals and number.

        `by` names columns of the forecasts: 'law', 'scenario', 'largest_flops', ...
        """
        return self.table.group_by(by, maintain_order=True).agg(
            mean_absolute_error=pl.col("error").abs().mean(),
            mean_error=pl.col("error").mean(),
            coverage=pl.col("is_covered").mean(),
            width=(pl.col("high") - pl.col("low")).mean(),
            n_forecasts=pl.len(),
        )

    def widening(self) -> dict[tuple[str, str], float]:
        """Give the factor, by law and scenario, that intervals must grow by to hold as much as they claim.

        One where the intervals of a law held at least that share of all these forecasts. Otherwise Student's t with 4
        degrees of freedom times the root mean square of errors over the half of the interval on their side, that of
        the scenario and that of all scenarios counting alike: recipes miss a skill together, so however many there
        are, a scenario tells what two independent errors would, and the others as much. One at least.
        """
        error, score, square = pl.col("error"), pl.col("score"), pl.col("square")
        half = pl.when(error < 0.0).then(pl.col("high") - score).otherwise(score - pl.col("low"))
        ratio = error.abs() / pl.max_horizontal(half, pl.lit(SMALLEST_HALF))
        quantile = interval_factor(self.level, DEGREES_OF_FREEDOM)
        factor = quantile * (0.5 * (square + square.mean().over("law"))).sqrt()
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
