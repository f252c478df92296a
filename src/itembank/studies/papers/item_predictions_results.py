"""`ItemPredictions`: predicted probabilities of single responses beside the responses, by scenario."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.studies.papers.probability_agreement import Association, Bins, association, binned
from itembank.tabular import Tabular


class Cells(NamedTuple):
    """Responses with what was predicted of them; each (n_cells,).

    `item_mean` is the mean response of other models to the item; `model` and `item` are rows and columns.
    """

    predicted: FloatArray
    observed: FloatArray
    item_mean: FloatArray
    model: IntArray
    item: IntArray


@dataclass(frozen=True, slots=True)
class ScenarioPredictions:
    """Predictions of the responses to one scenario's items.

    Attributes
    ----------
    scenario : str
    predicted, observed : (n_cells,)
        What the item model gives the response, and the response as the item model takes it.
    n_models, n_items : int
    association : Association
        Correlation of observed with predicted, its standard error over models, and the slope.
    item_means : Association
        The same of the item's mean response over other models, which knows nothing of the model.
    bins : Bins
        Observed means by predicted value.
    """

    scenario: str
    predicted: FloatArray
    observed: FloatArray
    n_models: int
    n_items: int
    association: Association
    item_means: Association
    bins: Bins

    @classmethod
    def of(cls, scenario: str, cells: Cells) -> Self:
        """Summarise the cells of a scenario."""
        return cls(
            scenario,
            cells.predicted,
            cells.observed,
            np.unique(cells.model).size,
            np.unique(cells.item).size,
            association(cells.predicted, cells.observed, cells.model),
            association(cells.item_mean, cells.observed, cells.model),
            binned(cells.predicted, cells.observed, cells.model),
        )

    @property
    def root_mean_square(self) -> float:
        """Root mean square difference of observed from predicted."""
        return float(np.sqrt(np.mean((self.observed - self.predicted) ** 2)))

    def row(self) -> dict[str, Any]:
        """One record of plain numbers."""
        return {
            "scenario": self.scenario,
            "n_models": self.n_models,
            "n_items": self.n_items,
            "n_cells": self.predicted.size,
            "correlation": self.association.correlation,
            "standard_error": self.association.standard_error,
            "by_item_means": self.item_means.correlation,
            "slope": self.association.slope,
            "bias": float(np.mean(self.predicted - self.observed)),
            "root_mean_square": self.root_mean_square,
            "calibration_error": self.bins.calibration_error,
            "by_chance": self.bins.by_chance,
        }

    def bin_rows(self) -> list[dict[str, Any]]:
        """One record a bin of predicted values."""
        names = ("n_cells", "predicted", "observed", "standard_error")
        return [
            {"scenario": self.scenario, **dict(zip(names, numbers, strict=True))}
            for numbers in zip(*(column.tolist() for column in self.bins), strict=True)
        ]


@dataclass(frozen=True, slots=True, repr=False)
class ItemPredictions(Tabular):
    """Result of `item_predictions`.

    Attributes
    ----------
    scenarios : tuple of ScenarioPredictions
        The last is of all items where there are several scenarios.
    family : str
        Of the responses.
    bank_id : str
    """

    scenarios: tuple[ScenarioPredictions, ...]
    family: str
    bank_id: str

    def rows(self) -> list[dict[str, Any]]:
        """One record a scenario."""
        return [scenario.row() for scenario in self.scenarios]

    def bin_rows(self) -> list[dict[str, Any]]:
        """One record for each scenario and bin of predicted values."""
        return [row for scenario in self.scenarios for row in scenario.bin_rows()]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that hold for all scenarios."""
        return {"bank_id": self.bank_id, "family": self.family}
