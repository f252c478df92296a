"""Nested item models by joint MAP and by variational inference: ``python -m benchmarks.nested_families``.

Right and wrong answers, counts of eight attempts (independent, and agreeing more than chance), and probabilities are
simulated from one nested model: a general ability and two specific ones, 12 tasks of 40 items, 40 training and 20 test
models. Both fits are given the same responses where both have the family; probabilities and agreeing counts only the
variational fit has, and joint MAP gets what it can take of them (answers made binary, counts as if independent). Test
models answer 16 or 64 random items of six tasks. Shown is the error of their predicted scores on the other six tasks
against the true expected scores, in points, and how much more that is than with the true item parameters, paired, with
its standard error over repeats. It takes 50 CPU-seconds.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import CalibrationSpec, JointMAP, Variational
from itembank.errors import ItembankWarning
from itembank.irt.bernoulli import probability
from itembank.irt.binarise import apply_thresholds, item_thresholds
from itembank.irt.families import COUNTS
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix

N_TRAIN, N_TEST, N_TASKS, PER_TASK, N_TRIALS, PRECISION = 40, 20, 12, 40, 8, 8.0
N_ITEMS = (16, 64)
KINDS = ("right or wrong", "counts", "agreeing counts", "probabilities")
FITS: dict[str, dict[str, CalibrationSpec]] = {
    "right or wrong": {"joint MAP": JointMAP("nested", 3), "variational": Variational("nested", 3)},
    "counts": {
        "joint MAP": JointMAP("nested", 3, family="binomial"),
        "variational": Variational("nested", 3, family="binomial"),
    },
    "agreeing counts": {
        "joint MAP, as if independent": JointMAP("nested", 3, family="binomial"),
        "variational": Variational("nested", 3, family="beta-binomial"),
    },
    "probabilities": {
        "joint MAP, made binary": JointMAP("nested", 3, family="bernoulli"),
        "variational": Variational("nested", 3, family="beta"),
    },
}
TRUTH = "true parameters"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=6)
    rows: list[tuple[str, str, int, float]] = []
    for repeat in range(parser.parse_args().repeats):
        for kind in KINDS:
            rows.extend(tried(kind, repeat))
            print(repeat, kind, f"{time.process_time():.0f} CPU-seconds", file=sys.stderr, flush=True)
    table = pl.DataFrame(rows, schema=["kind", "fit", "n_items", "error"], orient="row")
    # errors of one simulation share its models and tasks, so that they are told apart from those of the true items
    table = table.with_columns(repeat=pl.int_range(pl.len()).over("kind", "fit", "n_items"))
    best = table.filter(fit=TRUTH).select("kind", "n_items", "repeat", best="error")
    table = table.join(best, on=["kind", "n_items", "repeat"], maintain_order="left")
    print("| responses | fit | " + " | ".join(f"{n} items, above the best" for n in N_ITEMS) + " |\n|---|---|---|---|")
    for (kind, fit), part in table.group_by("kind", "fit", maintain_order=True):
        print(f"| {kind} | {fit} | {' | '.join(_cell(part.filter(n_items=n)) for n in N_ITEMS)} |")


def _cell(part: pl.DataFrame) -> str:
    """Mean error, and how much more than that with the true parameters, with its standard error."""
    errors, best = part["error"].to_numpy(), part["best"].to_numpy()
    above = 100.0 * (errors - best)
    error = above.std(ddof=1) / np.sqrt(above.size)
    return f"{100.0 * errors.mean():.2f}, {above.mean():+.2f} ± {error:.2f}"


def tried(kind: str, repeat: int) -> Iterator[tuple[str, str, int, float]]:
    """Errors of every fit with every number of items, in one simulation."""
    rng = np.random.default_rng([repeat, KINDS.index(kind)])
    truth, theta = nested_items(rng), rng.normal(size=(N_TRAIN + N_TEST, 3))
    task = np.repeat(np.arange(N_TASKS), PER_TASK)
    responses, n_trials = answers(kind, truth, theta, rng)
    items = pl.DataFrame({"item_id": [f"item-{j}" for j in range(task.size)], "scenario": [f"task-{t}" for t in task]})
    new, new_trials = responses[N_TRAIN:], None if n_trials is None else n_trials[N_TRAIN:].astype(float)
    wanted = unseen_scores(probability(truth, theta[N_TRAIN:]))
    train = ResponseMatrix.create(
        responses[:N_TRAIN], items=items, n_trials=None if n_trials is None else n_trials[:N_TRAIN]
    )
    asked = rng.permutation(np.flatnonzero(task < N_TASKS // 2))
    for name, spec in FITS[kind].items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ItembankWarning)
            bank = calibrate(train, spec)
        values = apply_thresholds(new, item_thresholds(bank.thresholds, items["scenario"].to_list()))
        for n in N_ITEMS:
            found = predicted((bank.parameters, bank.prior), values, new_trials, asked[:n])
            yield kind, name, n, float(np.abs(found - wanted).mean())
    own = ItemParameters.create(truth.loadings, truth.intercept, **of_family(kind, task.size))
    for n in N_ITEMS:
        found = predicted((own, AbilityPrior(np.zeros(3), np.eye(3))), new, new_trials, asked[:n])
        yield kind, TRUTH, n, float(np.abs(found - wanted).mean())


def nested_items(rng: np.random.Generator) -> ItemParameters:
    """Items whose specific loadings are alike within a task."""
    slope = np.exp(0.3 * rng.normal(size=N_TASKS * PER_TASK))
    of_task = np.repeat(rng.normal(scale=0.6, size=(N_TASKS, 2)), PER_TASK, axis=0)
    specific = of_task + rng.normal(scale=0.3, size=of_task.shape)
    loadings = slope[:, None] * np.column_stack([np.ones(slope.size), specific])
    easiness = np.repeat(rng.normal(scale=0.7, size=N_TASKS), PER_TASK) + rng.normal(size=slope.size)
    return ItemParameters.create(loadings, slope * easiness)


def answers(
    kind: str, truth: ItemParameters, theta: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, IntArray | None]:
    """Draw responses of a kind, and the attempts behind them."""
    mean = expit(theta @ truth.loadings.T + truth.intercept)
    drawn = rng.beta(PRECISION * mean, PRECISION * (1.0 - mean))
    if kind == "right or wrong":
        return (rng.random(mean.shape) < mean).astype(float), None
    if kind == "probabilities":
        return drawn, None
    n_trials = np.full(mean.shape, N_TRIALS)
    return rng.binomial(n_trials, mean if kind == "counts" else drawn) / N_TRIALS, n_trials


def of_family(kind: str, n_items: int) -> dict[str, Any]:
    """Family and precision of the true items."""
    family = {"right or wrong": "bernoulli", "counts": "binomial", "agreeing counts": "beta-binomial"}.get(kind, "beta")
    has_precision = family in {"beta", "beta-binomial"}
    return {"family": family, **({"precision": np.full(n_items, PRECISION)} if has_precision else {})}


def predicted(
    fit: tuple[ItemParameters, AbilityPrior], values: FloatArray, n_trials: FloatArray | None, items: IntArray
) -> FloatArray:
    """Predicted scores on the tasks that were not asked, (n_test, n_tasks / 2), from the answers to these items."""
    parameters, prior = fit
    trials = None if n_trials is None or parameters.family not in COUNTS else n_trials[:, items]
    scored = map_abilities(parameters.take(items), values[:, items], prior, n_trials=trials)
    return unseen_scores(probability(parameters, scored.theta))


def unseen_scores(values: FloatArray) -> FloatArray:
    """Mean of the items of each task of the second half, (n_models, n_tasks / 2)."""
    result: FloatArray = values.reshape(len(values), N_TASKS, PER_TASK).mean(axis=2)[:, N_TASKS // 2 :]
    return result


if __name__ == "__main__":
    main()
