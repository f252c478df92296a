"""Decisions on a simulated suite of DataDecide's size: is IRSL's advantage there, and at which noise.

25 recipes x 14 sizes from 4M to 1B parameters, 100 tokens a parameter, 10 benchmarks of 100 items (Magnusson et al.
2025, arXiv 2504.11393). Half of the benchmarks have items alike (standard deviations of difficulty and discrimination
0.19 and 0.14, as IRSL reports of BoolQ), half have items that differ (0.55 and 0.61, as of ARC Challenge). Abilities
are lines in log FLOP, as IRSL's law has them, or bent ones, as none of the laws here has them. Recipes differ in level,
slope and bend, and every run has noise of its own, a share of the spread of recipes at the largest size. Which share is
DataDecide's is read from its own finding that the order of models of 150M parameters is that of 1B in about 80 of 100
pairs. The truth is the mean probability at 1B, with that run's noise.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.errors import ItembankWarning
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute, training_compute
from itembank_scaling.pretraining.decision_study import ACCURACY, PROBABILITY, DecisionMethod
from itembank_scaling.pretraining.law_results import decision_accuracy
from itembank_scaling.pretraining.law_specs import ItemResponseLaw, PretrainingSettings, TwoStep
from itembank_scaling.pretraining.pretraining_law import held_out_coverage

SIZES = 1e6 * np.array([4, 6, 8, 10, 14, 16, 20, 60, 90, 150, 300, 530, 750, 1000.0])
TOKENS_PER_PARAMETER = 100.0
N_RECIPES, N_BENCHMARKS, N_ITEMS, BUDGET = 25, 10, 100, 50
N_CALIBRATING = 2
PRECISION = 30.0
LEVEL_SD, SLOPE, SLOPE_SD = 0.25, 0.35, 0.03
"""Of recipes: spread of ability at the centre, rise with log FLOP, and its spread."""
BENDS = {"lines": (0.0, 0.0), "bent": (-0.01, 0.01)}
"""Mean and spread of the recipes' rise with the square of log FLOP."""
FITTED_UP_TO = (150e6, 530e6)
SINGLE = "order at the largest size fitted"
METHODS: Mapping[str, DecisionMethod] = {
    f"{name} {metric}": (metric, law)
    for metric in (ACCURACY, PROBABILITY)
    for name, law in (
        ("traditional", TwoStep(n_starts=8)),
        ("1PL", ItemResponseLaw("1pl", pooling="none", shape="line", gap="none")),
        ("2PL", ItemResponseLaw("2pl", pooling="none", shape="line", gap="none")),
        ("2PL with gap", ItemResponseLaw("2pl", pooling="none", shape="line")),
        ("2PL pooled, bent", ItemResponseLaw("2pl")),
    )
}


class Suite(NamedTuple):
    """A simulated suite: responses by metric, training compute, and bits per byte, (n_models, n_items)."""

    responses: dict[str, ResponseMatrix]
    compute: TrainingCompute
    loss: FloatArray


def run(noises: list[float], n_suites: int, output: Path | None) -> None:
    """Print the table, and keep it with every benchmark's numbers.

    `noises` are standard deviations of a run's ability, as shares of the recipes' spread at the largest size.
    """
    rows = []
    for noise, truth, number in product(noises, BENDS, range(n_suites)):
        print(f"noise {noise:g}, {truth}, suite {number + 1} of {n_suites}", file=sys.stderr, flush=True)
        suite = simulated(noise, BENDS[truth], np.random.default_rng(number))
        rows += [{"noise": noise, "truth": truth, "suite": number, **row} for row in _decisions(suite, number)]
    table = pl.DataFrame(rows)
    print(as_markdown(table))
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / "datadecide.md").write_text(f"{as_markdown(table)}\n", encoding="utf-8")
        table.write_csv(output / "datadecide.csv", float_precision=5)


def simulated(noise: float, bend: tuple[float, float], rng: np.random.Generator) -> Suite:
    """Make a suite whose runs have this noise, and whose abilities bend by this mean and spread."""
    flops = np.log(6.0 * SIZES * TOKENS_PER_PARAMETER * SIZES)
    x = flops - flops.mean()
    spread = float(np.sqrt(LEVEL_SD**2 + (SLOPE_SD * x[-1]) ** 2))
    bends = rng.spawn(1)[0].normal(*bend, (N_BENCHMARKS, N_RECIPES))  # lines and bent have the same noise
    columns = []
    for number in range(N_BENCHMARKS):
        level, slope = LEVEL_SD * rng.standard_normal(N_RECIPES), SLOPE + SLOPE_SD * rng.standard_normal(N_RECIPES)
        theta = level[:, None] + slope[:, None] * x + noise * spread * rng.standard_normal((N_RECIPES, x.size))
        theta += bends[number][:, None] * x**2
        difficulty_sd, slope_sd = ((0.19, 0.14), (0.55, 0.61))[number % 2]
        difficulty, discrimination = rng.normal(0.5, difficulty_sd, N_ITEMS), rng.normal(1.0, slope_sd, N_ITEMS)
        columns.append(expit(np.maximum(discrimination, 0.1) * (theta.reshape(-1, 1) - difficulty)))
    p = np.concatenate(columns, axis=1)
    probability = np.clip(rng.beta(p * PRECISION, (1.0 - p) * PRECISION), 1e-5, 1.0 - 1e-5)
    ids = [f"r{recipe:02d}/{size / 1e6:g}M" for recipe in range(N_RECIPES) for size in SIZES]
    kinds = ("alike", "different")
    names = [f"{kinds[number % 2]} {number // 2 + 1}" for number in range(N_BENCHMARKS) for _ in range(N_ITEMS)]
    models = pl.DataFrame(
        {"model_id": ids, "recipe": [one.split("/")[0] for one in ids], "flops": np.tile(np.exp(flops), N_RECIPES)}
    )
    made = {"model_ids": ids, "scenarios": names}
    right = (rng.random(p.shape) < p).astype(np.float64)
    responses = {
        ACCURACY: ResponseMatrix.create(right, **made),
        PROBABILITY: ResponseMatrix.create(probability, **made),
    }
    return Suite(responses, training_compute(models, ids), -np.log2(probability))


def _decisions(suite: Suite, number: int) -> Iterator[dict[str, object]]:
    """Give the decision accuracy of every method, benchmark and largest size fitted."""
    rng = np.random.default_rng(number)
    recipes = tuple(rng.permutation(suite.compute.recipes)[:N_CALIBRATING].tolist())
    cuts = [600.0 * size**2 * 1.01 for size in FITTED_UP_TO]
    settings = PretrainingSettings(fewest_sizes=2, n_items=BUDGET, n_checked=0, calibration_recipes=recipes)
    for label, (metric, law) in METHODS.items():
        laws = PretrainingSettings(**{**_fields(settings), "laws": (law,)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ItembankWarning)
            found = held_out_coverage(
                suite.responses[metric],
                suite.compute,
                loss=suite.loss if isinstance(law, TwoStep) else None,
                actual=suite.responses[PROBABILITY],
                largest=cuts,
                settings=laws,
                rng=number,
            )
        for key, part in found.table.filter("is_largest").group_by("scenario", "largest_flops", maintain_order=True):
            size = FITTED_UP_TO[int(np.argmin(np.abs(np.array(cuts) - key[1])))]
            share = decision_accuracy(part["score"].to_numpy(), part["actual"].to_numpy())
            yield {"benchmark": key[0], "size": size, "method": label, "decision_accuracy": share}
    yield from _single_scale(suite, recipes, rng)


def _fields(settings: PretrainingSettings) -> dict[str, object]:
    names = ("fewest_sizes", "n_items", "n_checked", "calibration_recipes")
    return {name: getattr(settings, name) for name in names}


def _single_scale(suite: Suite, calibrating: tuple[str, ...], rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Order recipes by their models of one size, on as many items drawn at random."""
    size = np.tile(SIZES, N_RECIPES)
    kept = ~np.isin(np.repeat(suite.compute.recipes, SIZES.size), calibrating)
    scenario = suite.responses[PROBABILITY].items["scenario"].to_numpy()
    for metric, matrix in suite.responses.items():
        for benchmark in dict.fromkeys(scenario.tolist()):
            items = np.flatnonzero(scenario == benchmark)
            asked = rng.permutation(items)[:BUDGET]
            actual = suite.responses[PROBABILITY].responses[np.ix_(kept & (size == SIZES[-1]), items)].mean(axis=1)
            for one in FITTED_UP_TO:
                seen = matrix.responses[np.ix_(kept & (size == one), asked)].mean(axis=1)
                share = decision_accuracy(seen, actual)
                label = f"{SINGLE}, {metric}"
                yield {"benchmark": benchmark, "size": one, "method": label, "decision_accuracy": share}


def as_markdown(table: pl.DataFrame) -> str:
    """One line a method, one column a noise and largest size; a table for each kind of items and of truth."""
    lines = []
    for kind, truth in product(("alike", "different"), table["truth"].unique(maintain_order=True)):
        part = table.filter(pl.col("benchmark").str.starts_with(kind), truth=truth)
        columns = part.select("noise", "size").unique(maintain_order=True).sort("size", "noise").rows()
        head = " | ".join(f"{size / 1e6:g}M, noise {noise:g}" for noise, size in columns)
        lines += [f"| items {kind}, {truth}: fitted up to | {head} |", "|---" * (len(columns) + 1) + "|"]
        for method in part["method"].unique(maintain_order=True):
            own = part.filter(method=method).group_by("noise", "size").agg(pl.col("decision_accuracy").mean())
            found = {(noise, size): value for noise, size, value in own.rows()}
            lines.append(f"| {method} | " + " | ".join(f"{found[column]:.2f}" for column in columns) + " |")
        lines.append("")
    return "\n".join(lines)
