"""`SamplingPlan`: which items to sample further, for each model and scenario."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.ties import rounded
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """Further samples of one model on one scenario."""

    model_id: str
    scenario: str
    item_ids: tuple[str, ...]
    n_trials: IntArray  # (n_items,): The samples there are
    n_correct: IntArray  # (n_items,)
    n_more: IntArray  # (n_items,): Further samples of each item
    gain: FloatArray  # (n_items,): Share of the variance of pass@k that they are expected to take away
    half_width_now: float  # Of the interval of pass@k: today's, and the expected one
    half_width_after: float
    is_reached: bool  # Whether the wanted half-width can be reached
    n_uniform: int | None  # Samples that it would take with as many of every item; None when that does not reach it

    @property
    def total(self) -> int:
        """Further samples in all."""
        return int(self.n_more.sum())


@dataclass(frozen=True, slots=True, repr=False)
class SamplingPlan(Tabular):
    """Result of `sampling_plan`.

    Attributes
    ----------
    k : int
    half_width, level : float
        Wanted.
    plans : tuple of ScenarioPlan
    """

    k: int
    half_width: float
    level: float
    plans: tuple[ScenarioPlan, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One record for each item to sample, those with the most gain a sample first."""
        rows: list[dict[str, Any]] = []
        for plan in self.plans:
            rate = plan.gain / np.maximum(plan.n_more, 1)
            order = np.argsort(-rounded(rate), kind="stable")
            rows.extend(
                {
                    "model_id": plan.model_id,
                    "scenario": plan.scenario,
                    "item_id": plan.item_ids[j],
                    "n_correct": int(plan.n_correct[j]),
                    "n_trials": int(plan.n_trials[j]),
                    "n_more": int(plan.n_more[j]),
                    "gain": float(plan.gain[j]),
                }
                for j in order.tolist()
                if plan.n_more[j] > 0
            )
        return rows

    def summary(self) -> list[dict[str, Any]]:
        """One record for each model and scenario."""
        return [
            {
                "model_id": plan.model_id,
                "scenario": plan.scenario,
                "k": self.k,
                "half_width_now": plan.half_width_now,
                "half_width_wanted": self.half_width,
                "half_width_after": plan.half_width_after,
                "is_reached": plan.is_reached,
                "n_more": plan.total,
                "n_uniform": plan.n_uniform,
                "n_items": int(np.sum(plan.n_more > 0)),
            }
            for plan in self.plans
        ]
