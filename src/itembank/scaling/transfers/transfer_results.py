"""`Transfer`: what one set of items said of another, and how far off it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.scaling.transfers.curves import CurvePrediction
from itembank.scaling.transfers.fold import PairValidity
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class Transfer(Tabular):
    """Target scores, or pass@k curves, predicted from the ability that other items give.

    Attributes
    ----------
    source, target : str
        Scenarios, or 'NAME (easy)' and 'NAME (hard)'.
    model_ids : tuple of n_models ids
        The models that were asked; none of them calibrated the items of its own prediction.
    groups : tuple of n_models names or None
        Recipes or families.
    flops : (n_models,) or None
        Training compute.
    n_source_items, n_target_items : int
    k : tuple of n_k numbers
        Samples an item; 1 is the mean score.
    theta, standard_errors : (n_models,)
        From the source's items alone, on the scale of the calibration models of that model's part.
    actual : (n_models, n_k)
        NaN where a model did not answer the target, or has fewer than k samples of an item.
    uninformed : (n_models, n_k)
        The mean of the calibration models.
    predictions : mapping of method to CurvePrediction
        The first is the prediction, the others stand beside it.
    validity : tuple of PairValidity
        Convergent validity on the calibration models of each part, found before anything was predicted.
    level : float
    """

    source: str
    target: str
    model_ids: tuple[str, ...]
    groups: tuple[str, ...] | None
    flops: FloatArray | None
    n_source_items: int
    n_target_items: int
    k: tuple[int, ...]
    theta: FloatArray
    standard_errors: FloatArray
    actual: FloatArray
    uninformed: FloatArray
    predictions: Mapping[str, CurvePrediction]
    validity: tuple[PairValidity, ...]
    level: float

    @property
    def method(self) -> str:
        """The method whose prediction this is."""
        return next(iter(self.predictions))

    @property
    def prediction(self) -> CurvePrediction:
        """Predicted curves."""
        return self.predictions[self.method]

    @property
    def correlation(self) -> float:
        """Correlation of the abilities of source and target, the mean over parts."""
        return float(np.mean([validity.correlation for validity in self.validity]))

    @property
    def disattenuated(self) -> float:
        """What the correlation would be without errors of the abilities, the mean over parts."""
        return _mean(np.array([validity.disattenuated for validity in self.validity]))

    @property
    def reliabilities(self) -> tuple[float, float]:
        """Reliability of the abilities on source and target, the mean over parts."""
        each = [(validity.source_reliability, validity.target_reliability) for validity in self.validity]
        source, target = np.mean(each, axis=0)
        return float(source), float(target)

    @property
    def errors(self) -> FloatArray:
        """``|predicted - actual|`` of the prediction, (n_models, n_k)."""
        return np.abs(self.prediction.value - self.actual)

    def group_errors(self) -> dict[str, float]:
        """Mean absolute error of each group's curve (IRSL Figs 6, 11, 19), or each model's without groups."""
        names = np.asarray(self.model_ids if self.groups is None else self.groups)
        errors = self.errors
        means = {str(name): _mean(errors[names == name]) for name in dict.fromkeys(names.tolist())}
        return {name: value for name, value in means.items() if np.isfinite(value)}

    def method_rows(self) -> list[dict[str, Any]]:
        """One record a method, with that of no response at all last."""
        rows = [self._method_row(name, prediction) for name, prediction in self.predictions.items()]
        return [*rows, self._method_row("uninformed", CurvePrediction(self.uninformed, *self._nothing()))]

    def rows(self) -> list[dict[str, Any]]:
        """One record for each model and k."""
        return [self._row(i, j) for i in range(len(self.model_ids)) for j in range(len(self.k))]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows; the validity comes first."""
        lowest = min(self.validity, key=lambda validity: validity.lower)
        return {
            "source": self.source,
            "target": self.target,
            "correlation": self.correlation,
            "correlation_lower": lowest.lower,
            "correlation_upper": max(validity.upper for validity in self.validity),
            "disattenuated": self.disattenuated,
            "source_reliability": self.reliabilities[0],
            "target_reliability": self.reliabilities[1],
            "n_calibration_models": min(validity.n_models for validity in self.validity),
            "n_models": len(self.model_ids),
            "n_source_items": self.n_source_items,
            "n_target_items": self.n_target_items,
            "method": self.method,
            "level": self.level,
        }

    def _nothing(self) -> tuple[FloatArray, FloatArray]:
        return np.full(self.actual.shape, np.nan), np.full(self.actual.shape, np.nan)

    def _method_row(self, name: str, prediction: CurvePrediction) -> dict[str, Any]:
        error = prediction.value - self.actual
        inside = (self.actual >= prediction.lower) & (self.actual <= prediction.upper)
        known = np.isfinite(self.actual) & np.isfinite(prediction.lower)
        row: dict[str, Any] = {
            "method": name,
            "error": _mean(np.abs(error)),
            "error_standard_error": self._standard_error(np.abs(error)),
            "bias": _mean(error),
            "correlation": _correlation(prediction.value[:, 0], self.actual[:, 0]),
            "coverage": float(inside[known].mean()) if known.any() else float("nan"),
            "width": _mean(prediction.upper - prediction.lower),
        }
        if len(self.k) > 1:
            row["log_error"] = _mean(np.abs(_minus_log(prediction.value) - _minus_log(self.actual)))
        return row

    def _standard_error(self, errors: FloatArray) -> float:
        """Of the mean error, over groups where there are any, else over models."""
        by_model = _row_means(errors)
        names = np.asarray(self.model_ids if self.groups is None else self.groups)
        means = np.array([_mean(by_model[names == name]) for name in dict.fromkeys(names.tolist())])
        means = means[np.isfinite(means)]
        return float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else float("nan")

    def _row(self, i: int, j: int) -> dict[str, Any]:
        row: dict[str, Any] = {"model_id": self.model_ids[i]}
        if self.groups is not None:
            row["group"] = self.groups[i]
        if self.flops is not None:
            row["flops"] = float(self.flops[i])
        row |= {
            "ability": float(self.theta[i]),
            "standard_error": float(self.standard_errors[i]),
            "k": self.k[j],
            "predicted": float(self.prediction.value[i, j]),
            "lower": float(self.prediction.lower[i, j]),
            "upper": float(self.prediction.upper[i, j]),
            "actual": float(self.actual[i, j]),
        }
        others = {
            name: float(prediction.value[i, j]) for name, prediction in self.predictions.items() if name != self.method
        }
        return row | {f"predicted_{name}": value for name, value in others.items()}


def _minus_log(values: FloatArray) -> FloatArray:
    """``-log`` of positive values, NaN for others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0.0, -np.log(values), np.nan)


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _row_means(values: FloatArray) -> FloatArray:
    known = np.isfinite(values)
    n = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    means: FloatArray = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return means


def _correlation(x: FloatArray, y: FloatArray) -> float:
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3 or x[known].std() == 0.0 or y[known].std() == 0.0:
        return float("nan")
    return float(np.corrcoef(x[known], y[known])[0, 1])
