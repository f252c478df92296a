"""`ConvergentValidity`: how far scenarios measure the same ability."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class CorrelationTable:
    """Correlations between scenarios with intervals, each (n_scenarios, n_scenarios), 1 on the diagonal."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, repr=False)
class ConvergentValidity(Tabular):
    """Correlations over models of the abilities that each scenario's own items give (IRSL App. D).

    Attributes
    ----------
    scenarios : tuple of n_scenarios names
    model_ids : tuple of n_models ids
    theta, standard_errors : (n_models, n_scenarios)
        NaN where a model answered none of a scenario's items.
    reliability : (n_scenarios,)
        Share of the variance of ability that is not error of its estimate.
    observed : CorrelationTable
        Of the estimated abilities.
    disattenuated : CorrelationTable
        Divided by the root of the reliabilities (Spearman 1904), at most 1: of the abilities themselves. NaN where
        a reliability is below 0.2.
    beyond_compute : CorrelationTable or None
        Of what is left of the abilities when their line in log FLOP is taken out; None where FLOP is not given.
    n_models_of_pair : (n_scenarios, n_scenarios)
        Models that answered both.
    order : (n_scenarios,)
        Scenarios put beside those they correlate with (average linkage), for figures.
    level : float
    interval : str
        'fisher' (Fisher's z) or 'bootstrap' (models, or groups of them, drawn anew).
    n_groups : int or None
        Groups of models that the bootstrap drew.
    message : str
    """

    scenarios: tuple[str, ...]
    model_ids: tuple[str, ...]
    theta: FloatArray
    standard_errors: FloatArray
    reliability: FloatArray
    observed: CorrelationTable
    disattenuated: CorrelationTable
    beyond_compute: CorrelationTable | None
    n_models_of_pair: IntArray
    order: IntArray
    level: float
    interval: str
    n_groups: int | None
    message: str

    def rows(self) -> list[dict[str, Any]]:
        """One record a pair of scenarios, the highest correlation first."""
        first, second = np.triu_indices(len(self.scenarios), k=1)
        rows = [self._row(i, j) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
        return sorted(rows, key=lambda row: -np.nan_to_num(row["correlation"], nan=-2.0))

    def to_dict(self) -> dict[str, Any]:
        """Return what is true of all pairs together."""
        off = self.observed.value[np.triu_indices(len(self.scenarios), k=1)]
        return {
            "n_models": len(self.model_ids),
            "n_scenarios": len(self.scenarios),
            "median_correlation": float(np.nanmedian(off)) if np.isfinite(off).any() else None,
            "lowest_correlation": float(np.nanmin(off)) if np.isfinite(off).any() else None,
            "reliability": dict(zip(self.scenarios, self.reliability.tolist(), strict=True)),
            "interval": self.interval,
            "level": self.level,
            "n_groups": self.n_groups,
            "message": self.message,
        }

    def _row(self, i: int, j: int) -> dict[str, Any]:
        row: dict[str, Any] = {
            "first": self.scenarios[i],
            "second": self.scenarios[j],
            "n_models": int(self.n_models_of_pair[i, j]),
        }
        tables = {"correlation": self.observed, "disattenuated": self.disattenuated}
        if self.beyond_compute is not None:
            tables["beyond_compute"] = self.beyond_compute
        for name, table in tables.items():
            prefix = "" if name == "correlation" else f"{name}_"
            row[name] = float(table.value[i, j])
            row[f"{prefix}lower"] = float(table.lower[i, j])
            row[f"{prefix}upper"] = float(table.upper[i, j])
        return row
