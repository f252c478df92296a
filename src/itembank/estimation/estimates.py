"""`ScoreEstimates`: estimated full-benchmark scores with all that is needed to read them rightly."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.errors import DataError, shown
from itembank.estimation.estimand_names import RUN
from itembank.estimation.scores import Scores
from itembank.estimation.typicality import Typicality
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.score_names import OVERALL
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class ScoreEstimates(Tabular):
    """Estimated scores of n_models models on n_targets targets.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
        Every scenario, then 'overall' or a headline score in its place.
    scores : Scores
        `value`, `standard_error`, `low` and `high`, each (n_models, n_targets), also attributes of the estimates
        themselves. Values are NaN where the method has nothing to go by. The standard error is the root of the expected
        squared error: the item model's (see `score_posterior`), where intervals are calibrated times what the errors
        for calibration models were to it. The interval has the given level and is cut to [0, 1].
    n_items : (n_models, n_targets)
        Observed responses behind each target.
    n_total : (n_targets,)
        Items of each target.
    n_missing : (n_models,)
        Items of the selection that a model has no response to; 0 without a selection.
    level : float
    method : str
        The method taken, also where 'auto' was asked for.
    explanation : str
        Why, where 'auto' was asked for; else empty.
    bank_id : str
    target_id : str
        Which set of items, with which weights, the scores are of: `Bank.target_id`.
    interval_kind : str
        'calibrated': on the errors for calibration models left out in turn. 'model-based': from the item model
        alone. 'design': from how the items were drawn.
    sample_share : (n_models, n_scenarios) or None
        gp-IRT's lambda: the share of the weighted mean, the rest being p-IRT's.
    abilities : (n_models, n_dims)
        MAP ability of each model from all its responses.
    ability_covariance : (n_models, n_dims, n_dims)
    typicality : Typicality
        How typical each model's answers are of the calibration models; unknown (NaN) where intervals are not
        calibrated.
    estimand : str
        Which score the intervals are for: 'run' or 'expected' (`itembank.estimation.estimands`).
    """

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    scores: Scores
    n_items: IntArray
    n_total: IntArray
    n_missing: IntArray
    level: float
    method: str
    explanation: str
    bank_id: str
    interval_kind: str
    sample_share: FloatArray | None
    abilities: FloatArray
    ability_covariance: FloatArray
    typicality: Typicality
    estimand: str = RUN
    target_id: str = ""

    @property
    def value(self) -> FloatArray:
        """Estimated scores, (n_models, n_targets)."""
        return self.scores.value

    @property
    def standard_error(self) -> FloatArray:
        """Standard errors of the estimates, (n_models, n_targets)."""
        return self.scores.standard_error

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals, (n_models, n_targets)."""
        return self.scores.low

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals, (n_models, n_targets)."""
        return self.scores.high

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.model_ids)

    @property
    def flagged_models(self) -> tuple[str, ...]:
        """Models that answered unlike the calibration models (`Typicality`): their intervals deserve care."""
        return tuple(self.model_ids[row] for row in np.flatnonzero(self.typicality.is_flagged).tolist())

    @property
    def main_target(self) -> str:
        """Name of the score that stands above those of scenarios: 'overall', or the headline score in its place."""
        return OVERALL if OVERALL in self.targets else self.targets[-1]

    def column(self, target: str) -> FloatArray:
        """Estimates of one target, (n_models,)."""
        result: FloatArray = self.value[:, self.targets.index(target)]
        return result

    def rows(self) -> list[dict[str, Any]]:
        """One record for each model and target, as the command line prints them."""
        return [
            {
                "model_id": model,
                "target": target,
                "estimate": float(self.value[l, t]),
                "low": float(self.low[l, t]),
                "high": float(self.high[l, t]),
                "level": self.level,
                "standard_error": float(self.standard_error[l, t]),
                "interval": self.interval_kind,
                "estimand": self.estimand,
                "n_items": int(self.n_items[l, t]),
                "n_total": int(self.n_total[t]),
                "n_missing": int(self.n_missing[l]),
                "typicality": known_number(self.typicality.typicality[l]),
                "method": self.method,
                "bank": self.bank_id,
                "target_id": self.target_id,
            }
            for l, model in enumerate(self.model_ids)  # noqa: E741 (l is the model index of the formulas)
            for t, target in enumerate(self.targets)
        ]


def known_number(value: float) -> float | None:
    """Return a number, or None where it is not known."""
    return None if np.isnan(value) else float(value)


def checked(estimates: ScoreEstimates, is_owed: BoolArray) -> ScoreEstimates:
    """Return estimates, or raise `DataError` where one is infinite, or unknown though owed (n_models, n_targets)."""
    value = estimates.value
    wrong = np.isinf(value) | np.isinf(estimates.low) | np.isinf(estimates.high) | (np.isnan(value) & is_owed)
    if not wrong.any():
        return estimates
    rows, columns = np.nonzero(wrong)
    names = [
        f"{estimates.model_ids[row]} on {estimates.targets[column]}"
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    raise DataError(
        f"every score must be a finite number, got {value[wrong][0]:g} and the like for {len(names)} of {value.size}: "
        f"{shown(names)}. The bank's numbers are probably extreme: calibrate it again, or take another method."
    )
