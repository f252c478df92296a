"""Results of replaying recorded models: estimates, the items asked of each, and why each session ended."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.estimation.estimates import ScoreEstimates, Scores, Typicality
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.sessions.events import Told
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class AskedItem:
    """An item that was asked; `told` is None where it failed."""

    item_id: str
    told: Told | None


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """Summary of a session that asks no more."""

    estimates: ScoreEstimates  # Of one model
    n_answered: int
    costs: Mapping[str, float]
    reason_stopped: str
    is_precise: bool
    asked: Sequence[AskedItem]  # In the order of asking


@dataclass(frozen=True, slots=True, repr=False)
class ReplayResult(Tabular):
    """Sessions of n_models recorded models, in the order of their responses.

    Attributes
    ----------
    estimates : ScoreEstimates
        Of all models; each what a session of the model, driven by hand, ends with.
    n_answered : (n_models,)
        Items that were asked and answered.
    n_failed : (n_models,)
        Items that were asked and that the record has no response to.
    costs : mapping of unit to (n_models,)
        Sum of what the record says that the answers cost; NaN where it does not say. 'tokens' is output tokens plus
        half the input tokens (or the weight of the session's cost unit).
    reason_stopped : tuple of n_models texts
        See `itembank.sessions.stopping`.
    is_precise : (n_models,)
        Whether a rule of precision holds at the end.
    asked : table
        One row an item asked: `model_id`, `step` (from 1), `item_id`, `response` (null where there is none), and the
        costs told.
    """

    estimates: ScoreEstimates
    n_answered: IntArray
    n_failed: IntArray
    costs: Mapping[str, FloatArray]
    reason_stopped: tuple[str, ...]
    is_precise: BoolArray
    asked: pl.DataFrame

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.estimates.n_models

    def rows(self, unit: str | None = None) -> list[dict[str, Any]]:
        """One record for each model and target: the rows of the estimates, and how the model's session went.

        Parameters
        ----------
        unit : str, optional
            Of `cost`, which is None without it or where no cost is known in it.
        """
        ends = [self._end(model, unit) for model in range(self.n_models)]
        n_targets = len(self.estimates.targets)
        return [{**row, **ends[index // n_targets]} for index, row in enumerate(self.estimates.rows())]

    def _end(self, model: int, unit: str | None) -> dict[str, Any]:
        amounts = None if unit is None else self.costs.get(unit)
        return {
            "n_answered": int(self.n_answered[model]),
            "n_failed": int(self.n_failed[model]),
            "cost": None if amounts is None else float(amounts[model]),
            "cost_unit": unit,
            "reason_stopped": self.reason_stopped[model],
            "is_precise": bool(self.is_precise[model]),
        }


def joined_sessions(ends: Sequence[SessionEnd]) -> ReplayResult:
    """Put the sessions of several models together, in their order."""
    units = sorted({unit for end in ends for unit in end.costs})
    return ReplayResult(
        estimates=joined_estimates([end.estimates for end in ends]),
        n_answered=np.array([end.n_answered for end in ends]),
        n_failed=np.array([sum(item.told is None for item in end.asked) for end in ends]),
        costs={unit: np.array([_cost(end, unit) for end in ends]) for unit in units},
        reason_stopped=tuple(end.reason_stopped for end in ends),
        is_precise=np.array([end.is_precise for end in ends]),
        asked=_asked_table(ends),
    )


PER_MODEL = ("n_items", "n_missing", "abilities", "ability_covariance")


def joined_estimates(estimates: Sequence[ScoreEstimates]) -> ScoreEstimates:
    """Put a session's estimates of different models together; they are of one bank, by one method."""
    stacked: dict[str, Any] = {
        name: np.concatenate([getattr(estimate, name) for estimate in estimates]) for name in PER_MODEL
    }
    model_ids = tuple(model for estimate in estimates for model in estimate.model_ids)
    scores = Scores.joined([estimate.scores for estimate in estimates])
    typicality = Typicality.joined([estimate.typicality for estimate in estimates])
    return dataclasses.replace(estimates[0], model_ids=model_ids, scores=scores, typicality=typicality, **stacked)


def _cost(end: SessionEnd, unit: str) -> float:
    return end.costs.get(unit, float("nan") if end.n_answered else 0.0)


def _asked_table(ends: Sequence[SessionEnd]) -> pl.DataFrame:
    """One row an item asked, model after model."""
    models = [end.estimates.model_ids[0] for end in ends for _ in end.asked]
    steps = [step for end in ends for step in range(1, len(end.asked) + 1)]
    items = [item for end in ends for item in end.asked]
    answers = [item.told for item in items]
    units = dict.fromkeys(unit for answer in answers if answer is not None for unit in answer.costs)
    return pl.DataFrame(
        {
            "model_id": pl.Series(models, dtype=pl.String),
            "step": pl.Series(steps, dtype=pl.Int64),
            "item_id": pl.Series([item.item_id for item in items], dtype=pl.String),
            "response": pl.Series(
                [None if answer is None else answer.response for answer in answers], dtype=pl.Float64
            ),
            **{
                unit: pl.Series(
                    [None if answer is None else answer.costs.get(unit) for answer in answers], dtype=pl.Float64
                )
                for unit in units
            },
        }
    )
