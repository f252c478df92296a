"""`TaskOverview`: what tasks cost, how well models do on them, and which of them order models alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class TaskOverview(Tabular):
    """Tasks side by side, as their raw scores and costs show them.

    Attributes
    ----------
    tasks : tuple of n_tasks names
        Sorted.
    n_items, n_models : (n_tasks,)
        Items of each task, and models that answered some.
    score, spread : (n_tasks,)
        Mean of the models' scores on the task, and their standard deviation.
    cost : (n_tasks,)
        Mean cost of a response, over models and items; NaN where unknown.
    unit : str
        Of the cost; empty without one.
    correlation, lower, upper : (n_tasks, n_tasks)
        Pearson correlation of the scores over models that have both, with its interval by Fisher's z.
    n_models_of_pair : (n_tasks, n_tasks)
    order : (n_tasks,)
        Puts tasks that order models alike side by side: leaves of the average linkage of ``1 - correlation``.
    level : float
    """

    tasks: tuple[str, ...]
    n_items: IntArray
    n_models: IntArray
    score: FloatArray
    spread: FloatArray
    cost: FloatArray
    unit: str
    correlation: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_models_of_pair: IntArray
    order: IntArray
    level: float

    @property
    def cost_ratio(self) -> float:
        """How many times what a response costs in the cheapest task it costs in the dearest; NaN without costs."""
        known = self.cost[self.cost > 0.0]
        return float(known.max() / known.min()) if known.size else float("nan")

    def rows(self) -> list[dict[str, Any]]:
        """One row a task, neighbours alike: items, models, scores, cost, and the task that is most like it."""
        return [self._row(place) for place in self.order.tolist()]

    def pairs(self) -> list[dict[str, Any]]:
        """One row a pair of tasks, the most alike first: correlation, its interval, and how many models have both."""
        first, second = np.triu_indices(len(self.tasks), k=1)
        pairs = [
            {
                "task": self.tasks[i],
                "other_task": self.tasks[j],
                "correlation": float(self.correlation[i, j]),
                "lower": float(self.lower[i, j]),
                "upper": float(self.upper[i, j]),
                "n_models": int(self.n_models_of_pair[i, j]),
            }
            for i, j in zip(first.tolist(), second.tolist(), strict=True)
        ]
        return sorted(pairs, key=_unlikeness)

    def _row(self, place: int) -> dict[str, Any]:
        others = np.where(np.arange(len(self.tasks)) == place, np.nan, self.correlation[place])
        nearest = None if np.isnan(others).all() else int(np.nanargmax(others))
        row: dict[str, Any] = {
            "task": self.tasks[place],
            "n_items": int(self.n_items[place]),
            "n_models": int(self.n_models[place]),
            "score": float(self.score[place]),
            "spread": float(self.spread[place]),
        }
        if self.unit:
            row |= {"cost": float(self.cost[place]), "cost_of_task": float(self.cost[place] * self.n_items[place])}
        alike = float("nan") if nearest is None else float(others[nearest])
        return row | {"most_alike": None if nearest is None else self.tasks[nearest], "correlation": alike}


def _unlikeness(pair: dict[str, Any]) -> float:
    """Rise as the correlation of a pair falls; an unknown one comes last."""
    value = float(pair["correlation"])
    return 2.0 if np.isnan(value) else -value
