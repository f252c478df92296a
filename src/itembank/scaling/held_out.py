"""How good forecasts are: fit to the smaller models, forecast the larger ones that exist, compare."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itembank.data.banks import Bank
from itembank.data.compute import TrainingCompute
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent
from itembank.scaling.decisions import decision_accuracy
from itembank.scaling.pretraining import pretraining_law
from itembank.scaling.pretraining_results import PretrainingLaw
from itembank.scaling.pretraining_specs import PretrainingSettings
from itembank.scaling.runs import SAME_SIZE, aligned


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

    def summary(self, *, by: Sequence[str] = ("law",)) -> list[dict[str, Any]]:
        """Group the forecasts: mean absolute error, mean error, coverage, mean width of the intervals and number.

        `by` names columns of the forecasts: 'law', 'scenario', 'largest_flops', ...
        """
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.forecasts:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return [{**dict(zip(by, key, strict=True)), **_summary(rows)} for key, rows in groups.items()]

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


def held_out_coverage(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    bank: Bank | None = None,
    loss: FloatArray | None = None,
    actual: FloatArray | None = None,
    largest: Sequence[float] | None = None,
    settings: PretrainingSettings | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> HeldOutForecasts:
    """Fit laws to models up to a size, forecast every larger finished model, and see whether the intervals hold it.

    Nothing of the larger models is used: without a bank the items too are calibrated on the smaller ones alone.

    Parameters
    ----------
    responses, compute, bank, loss, rng, progress
        As for `pretraining_law`.
    actual : (n_models, n_scenarios), optional
        Scores to compare with instead of the mean responses, in the order in which scenarios appear: accuracies, say,
        when the laws are fitted to probabilities (decision accuracy compares order alone).
    largest : sequence of float, optional
        Largest training computes to fit to; by default those between the sizes, from `fewest_sizes` on.
    settings : PretrainingSettings, optional
        Its `largest_flops` is not used.

    Returns
    -------
    HeldOutForecasts

    Raises
    ------
    DataError
        When no size is left to forecast; as `pretraining_law`.
    """
    settings = settings or PretrainingSettings()
    at = aligned(compute, responses.model_ids)
    flops, is_final = compute.flops[at], compute.is_final[at]
    cuts = size_cuts(flops[is_final], settings.fewest_sizes) if largest is None else list(largest)
    scenarios = list(dict.fromkeys(responses.items["scenario"].to_list()))
    scores = _scores(responses, scenarios) if actual is None else np.asarray(actual, dtype=np.float64)
    rows: list[dict[str, Any]] = []
    for number, cut in enumerate(cuts):
        progress(f"fitting up to {cut:.2g} FLOP", number / len(cuts))
        law = pretraining_law(
            responses, compute, bank=bank, loss=loss, settings=replace(settings, largest_flops=cut), rng=rng
        )
        rows.extend(_compared(law, compute.take(at), scores, scenarios, cut))
    progress("held-out forecasts", 1.0)
    if not rows:
        raise DataError(
            f"a forecast can be checked only with larger finished models than are fitted, got none beyond {cuts}. Fit "
            "to fewer sizes, or add larger models."
        )
    return HeldOutForecasts(tuple(rows), settings.level)


def size_cuts(final_flops: FloatArray, fewest_sizes: int) -> list[float]:
    """Find the computes between neighbouring sizes, from `fewest_sizes` below on; sizes are clusters of final compute.

    Recipes seldom spend the very same on a size: computes less than half of the usual step apart are one size.
    """
    x = np.sort(np.log(final_flops))
    steps = np.diff(x)
    large = steps[steps > SAME_SIZE]
    if not large.size:
        return []
    is_step = steps > 0.5 * np.median(large[large >= 0.5 * large.max()])
    edges = 0.5 * (x[:-1] + x[1:])[is_step]
    return [float(np.exp(edge)) for edge in edges[fewest_sizes - 1 :]]


def _scores(responses: ResponseMatrix, scenarios: list[str]) -> FloatArray:
    """Mean response of each model in each scenario, (n_models, n_scenarios); NaN without any."""
    index = responses.items["scenario"].to_numpy()
    columns = []
    for name in scenarios:
        part = responses.responses[:, index == name]
        known = ~np.isnan(part)
        count = known.sum(axis=1)
        total = np.where(known, part, 0.0).sum(axis=1)
        columns.append(np.divide(total, count, out=np.full(len(part), np.nan), where=count > 0))
    return np.stack(columns, axis=1)


def _compared(
    law: PretrainingLaw, compute: TrainingCompute, scores: FloatArray, scenarios: list[str], cut: float
) -> list[dict[str, Any]]:
    """Forecasts of every larger finished model beside its score; `compute` in the order of `scores`."""
    larger = np.flatnonzero(compute.is_final & (compute.flops > cut))
    labels = ["all"] * compute.n_models if compute.recipe is None else list(compute.recipe)
    numbers = {name: number for number, name in enumerate(law.recipes)}
    larger = np.array([row for row in larger if labels[row] in numbers], dtype=np.int64)
    if not larger.size:
        return []
    own = np.array([numbers[labels[row]] for row in larger])
    top = {
        name: max(compute.flops[row] for row in larger if labels[row] == name) for name in {labels[r] for r in larger}
    }
    rows = []
    for one in law.scenarios:
        for name in one.fitted:
            found = law.forecast(one.scenario, name, flops=compute.flops[larger])
            for place, row in enumerate(larger.tolist()):
                score, low, high = (float(part[own[place], place]) for part in found[:3])
                actual = float(scores[row, scenarios.index(one.scenario)])
                if not (np.isfinite(score) and np.isfinite(actual)):
                    continue
                rows.append(
                    {
                        "scenario": one.scenario,
                        "recipe": labels[row],
                        "law": name,
                        "largest_flops": cut,
                        "flops": float(compute.flops[row]),
                        "beyond": float(compute.flops[row] / cut),
                        "is_largest": bool(compute.flops[row] == top[labels[row]]),
                        "score": score,
                        "low": low,
                        "high": high,
                        "actual": actual,
                        "error": score - actual,
                        "is_covered": low <= actual <= high,
                    }
                )
    return rows


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    errors = np.array([row["error"] for row in rows])
    return {
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "mean_error": float(np.mean(errors)),
        "coverage": float(np.mean([row["is_covered"] for row in rows])),
        "width": float(np.mean([row["high"] - row["low"] for row in rows])),
        "n_forecasts": len(rows),
    }
