"""CPU time of scoring: one model and a thousand, from 100 items in ten dimensions, and from large banks.

Run alone with ``python -m benchmarks.speed_scoring``; set OMP_NUM_THREADS=1 for the figures in the docs.
"""

import time
from collections.abc import Callable

import numpy as np

from itembank.irt.bernoulli import probability
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.likelihood_abilities import ml_abilities, wle_abilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray

N_ITEMS = 28_000
N_REPEATS = 7


def run() -> list[dict[str, object]]:
    """Return rows with `name`, `cpu_seconds` (median) and `target` (seconds, or None)."""
    rng = np.random.default_rng(0)
    parameters, theta = _bank(rng, 100, 10)
    prior = AbilityPrior.standard(10)
    many = _answers(rng, parameters, theta)
    wide, _ = _bank(rng, N_ITEMS, 10)
    few = _scattered(rng, wide, theta)
    line, line_theta = _bank(rng, 100, 1)
    line_many, line_prior = _answers(rng, line, line_theta), AbilityPrior.standard(1)
    guessing = ItemParameters.create(line.loadings, line.intercept, 0.25)
    return [
        _row("map, 1 model, 100 items, 10 dims", lambda: map_abilities(parameters, many[:1], prior), 1e-3, 200),
        _row("map, 1,000 models, 100 items, 10 dims", lambda: map_abilities(parameters, many, prior), 0.2),
        _row("map, 1 model, 100 of 28,000 items, 10 dims", lambda: map_abilities(wide, few[:1], prior), None, 50),
        _row("map, 1,000 models, each 100 of 28,000 items, 10 dims", lambda: map_abilities(wide, few, prior), None, 1),
        _row("eap (Laplace), 1,000 models, 100 items, 10 dims", lambda: eap_abilities(parameters, many, prior), None),
        _row("ml, 1,000 models, 100 items, 1 dim", lambda: ml_abilities(line, line_many), None),
        _row("wle, 1,000 models, 100 items, 1 dim", lambda: wle_abilities(line, line_many), None),
        _row("eap, 1,000 models, 100 items, 1 dim", lambda: eap_abilities(line, line_many, line_prior), None),
        _row("map, known guessing, 1,000 models, 1 dim", lambda: map_abilities(guessing, line_many, line_prior), None),
    ]


def _bank(rng: np.random.Generator, n_items: int, n_dims: int) -> tuple[ItemParameters, FloatArray]:
    loadings = rng.lognormal(0.0, 0.5, (n_items, n_dims)) / np.sqrt(n_dims)
    return ItemParameters.create(loadings, rng.normal(size=n_items)), rng.normal(size=(1000, n_dims))


def _answers(rng: np.random.Generator, parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    return (rng.random((len(theta), parameters.n_items)) < probability(parameters, theta)).astype(float)


def _scattered(rng: np.random.Generator, parameters: ItemParameters, theta: FloatArray) -> FloatArray:
    """Answers of each model to its own 100 items, as after an adaptive test."""
    responses = np.full((len(theta), parameters.n_items), np.nan)
    for row, ability in enumerate(theta):
        items = rng.choice(parameters.n_items, 100, replace=False)
        responses[row, items] = _answers(rng, parameters.take(items), ability[None])[0]
    return responses


def _row(name: str, work: Callable[[], object], target: float | None, n_calls: int = 5) -> dict[str, object]:
    work()
    seconds = []
    for _ in range(N_REPEATS):
        begin = time.process_time()
        for _ in range(n_calls):
            work()
        seconds.append((time.process_time() - begin) / n_calls)
    return {"name": name, "cpu_seconds": float(np.median(seconds)), "target": target}


if __name__ == "__main__":
    for row in run():
        target = "" if row["target"] is None else f"  (target {row['target']:g} s)"
        print(f"{row['cpu_seconds'] * 1e3:10.3f} ms  {row['name']}{target}")
