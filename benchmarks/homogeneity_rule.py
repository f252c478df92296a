"""When an item model gains little, and when few items tell little: ``python -m benchmarks.homogeneity_rule``.

Scenarios of real and simulated models. Half of the models calibrate; each of the others answers 50 items drawn at
random, and its mean over all items is predicted by the item model and by the mean of the 50. Beside both errors stand
what `homogeneity` says of the scenario, and the share of pairs of models that either orders rightly.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.scenario_fits import ItemSetFit, default_spec, fit_items
from itembank.studies.papers.scenario_homogeneity import homogeneity

RESULTS = Path(__file__).parent / "results" / "homogeneity_rule.csv"
BUDGET, N_SPLITS, N_DRAWS = 50, 2, 5
PRECISION = 10.0


def by_group(name: str, responses: ResponseMatrix, column: str) -> Iterator[tuple[str, ResponseMatrix]]:
    """Divide responses by a column of the item table; groups of fewer than 60 items are left out."""
    groups = np.asarray(responses.items[column].fill_null("").to_list())
    for group in dict.fromkeys(groups.tolist()):
        items = np.flatnonzero(groups == group)
        rows = np.flatnonzero(responses.observed[:, items].mean(axis=1) > 0.9)
        if items.size >= 60 and rows.size >= 20:
            yield f"{name}/{group}", responses.take(models=rows, items=items)


def simulated(rng: np.random.Generator) -> Iterator[tuple[str, ResponseMatrix]]:
    """100 models x 400 items: three mean discriminations, three spreads of difficulty, two of discrimination."""
    for kind in ("binary", "beta"):
        for level in (0.2, 0.5, 1.0):
            for difficulty_sd in (0.2, 0.6, 1.2):
                for log_sd in (0.1, 0.5):
                    slope = level * np.exp(log_sd * rng.standard_normal(400))
                    p = expit(slope * (rng.standard_normal((100, 1)) - difficulty_sd * rng.standard_normal(400)))
                    drawn = (
                        rng.random(p.shape) < p if kind == "binary" else rng.beta(p * PRECISION, (1 - p) * PRECISION)
                    )
                    name = f"simulated {kind}/slope {level}, difficulty {difficulty_sd}, log slope {log_sd}"
                    yield name, ResponseMatrix.create(np.clip(drawn, 1e-6, 1 - 1e-6) if kind == "beta" else drawn)


def scenarios(shared: Path | None, rng: np.random.Generator) -> Iterator[tuple[str, ResponseMatrix]]:
    """Every scenario there is; `shared` is a folder of data sets that do not come with the package."""
    yield from by_group("classifiers", load_builtin("classifiers"), "scenario")
    if shared is not None:
        for name, column in (("openllm1_core", "scenario"), ("mmlu-pro", "subscenario")):
            yield from by_group(name, read_responses([shared / name / "responses.parquet"]), column)
    yield from simulated(rng)


def predicted(fit: ItemSetFit, values: FloatArray, shown: IntArray) -> FloatArray:
    """Mean over all items of each model: what it answered, and what the item model says of the rest."""
    parameters = fit.calibration.parameters
    theta = map_abilities(parameters.take(shown), values[:, shown], fit.calibration.prior).theta
    rest = np.setdiff1d(np.arange(parameters.n_items), shown)
    told = np.nansum(values[:, shown], axis=1) + probability(parameters.take(rest), theta).sum(axis=1)
    result: FloatArray = told / parameters.n_items
    return result


def ordered(estimate: FloatArray, truth: FloatArray) -> float:
    """Share of pairs of different truth that the estimate orders rightly."""
    i, j = np.triu_indices(truth.size, k=1)
    sign = np.sign(truth[i] - truth[j])
    return float((np.sign(estimate[i] - estimate[j]) == sign)[sign != 0].mean())


def measure(responses: ResponseMatrix, rng: np.random.Generator) -> dict[str, float]:
    """Errors and orders of both estimates, over splits of the models and draws of the items."""
    found: dict[str, list[float]] = {"error": [], "error_of_mean": [], "ordered": [], "ordered_by_mean": []}
    for _ in range(N_SPLITS):
        order = rng.permutation(responses.n_models)
        past, new = responses.take(models=np.sort(order[::2])), responses.take(models=np.sort(order[1::2]))
        fit = fit_items("items", past, np.arange(responses.n_items), default_spec(responses))
        values = new.responses[:, fit.columns]
        truth = np.nanmean(values, axis=1)
        for _ in range(N_DRAWS):
            shown = np.sort(rng.choice(fit.columns.size, BUDGET, replace=False))
            by_model, by_mean = predicted(fit, values, shown), np.nanmean(values[:, shown], axis=1)
            found["error"].append(float(np.abs(by_model - truth).mean()))
            found["error_of_mean"].append(float(np.abs(by_mean - truth).mean()))
            found["ordered"].append(ordered(by_model, truth))
            found["ordered_by_mean"].append(ordered(by_mean, truth))
    return {name: float(np.mean(values)) for name, values in found.items()}


def run(shared: Path | None) -> pl.DataFrame:
    """One row a scenario."""
    rows: list[dict[str, Any]] = []
    for name, responses in scenarios(shared, np.random.default_rng(0)):
        told = homogeneity(responses, budget=BUDGET).rows()[0]
        measured = measure(responses, np.random.default_rng(1))
        kept = ("n_items", "n_models", "difficulty_sd", "discrimination_sd", "mean_discrimination", "reliability",
                "share_ordered")  # fmt: skip
        row = {"scenario": name, **{key: told[key] for key in kept}, **measured}
        row["ratio"] = row["error"] / row["error_of_mean"]
        row["is_alike"] = any(text.startswith("items are alike") for text in told["warnings"])
        rows.append(row)
        print(name, f"ratio {row['ratio']:.3f}, alike {row['is_alike']}", flush=True)
    return pl.DataFrame(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, help="Folder with openllm1_core and mmlu-pro.")
    table = run(parser.parse_args().shared)
    RESULTS.parent.mkdir(exist_ok=True)
    table.with_columns(pl.col(pl.Float64).round(4)).write_csv(RESULTS)
    print(table.group_by("is_alike").agg(pl.len(), pl.col("ratio").mean()))
    print("mean distance of share_ordered from ordered:", (table["share_ordered"] - table["ordered"]).abs().mean())
