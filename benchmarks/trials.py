"""Whether plans of items and trials come true: ``python -m benchmarks.trials -o FOLDER``.

LiveCodeBench has ten attempts of a model at an item. A bank of three quarters of the models plans n items with k
trials; models of the other quarter, drawn by chance, twice, or the best, or the worst, get k of their ten attempts at
drawn items. Their estimates are compared with the mean of the other attempts at all items, whose own variance is taken
off. Simulated attempts have known probabilities, which a two-dimensional item model and chance of each cell made.

The floor is compared with what chance does to the mean of k attempts at all items: the unbiased variance of each cell.
"""

import argparse
import dataclasses
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

import itembank as ib
from itembank.errors import ItembankWarning
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix

NAME, ATTEMPTS, DRAWS = "trials", 10, 10
SPLITS = ((30, 1), (30, 3), (100, 1), (100, 3), (0, 1), (0, 3))
"""Items, 0 for all, and trials of each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    lines = [
        "| data | new models | items | trials | planned half-width | of estimates | 1.96 x error | floor | found |",
        "|---" * 9 + "|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        for name, responses, truth in _sets():
            lines += _rows(name, responses, truth)
    table = "\n".join(lines)
    print(table)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{NAME}.md").write_text(table, encoding="utf-8")


def _sets() -> Iterator[tuple[str, ResponseMatrix, FloatArray | None]]:
    """Yield names, ten attempts at each item, and the probabilities behind them where they are known."""
    data = pl.read_parquet(
        Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data/livecodebench/responses.parquet"
    )
    for scenario, most in (("codegeneration", 400), ("testoutputprediction", 442)):
        own = data.filter(pl.col("scenario") == scenario, pl.col("n_trials") == ATTEMPTS)
        full = own.group_by("item_id").len().sort("len", "item_id", descending=[True, False]).head(most)
        matrix = ib.read_responses(own.filter(pl.col("item_id").is_in(full["item_id"].to_list())))
        yield scenario, matrix.take(models=np.flatnonzero(~np.isnan(matrix.responses).any(axis=1))), None
    rng = np.random.default_rng(1)
    ability = rng.normal(0.0, 1.5, (60, 1)) + 0.4 * rng.normal(size=(60, 2))
    loadings = np.abs(rng.normal(0.7, 0.3, (300, 2)))
    chance = expit(ability @ loadings.T + rng.normal(0.0, 1.5, 300) + rng.normal(0.0, 1.5, (60, 300)))
    n = np.full(chance.shape, ATTEMPTS)
    yield "simulated", ResponseMatrix.from_counts(rng.binomial(n, chance), n), chance


def _rows(name: str, responses: ResponseMatrix, truth: FloatArray | None) -> Iterator[str]:
    """Yield a line for each kind of new models and split."""
    order, n_new = np.argsort(responses.responses.mean(axis=1), kind="stable"), responses.n_models // 4
    by_chance = [np.random.default_rng(seed).permutation(order)[:n_new] for seed in (0, 1)]
    for kind, splits in (("random", by_chance), ("best", [order[-n_new:]]), ("worst", [order[:n_new]])):
        found = [_of_split(responses, new, truth) for new in splits]
        for k, (size, trials) in enumerate(SPLITS):
            planned, given, error, floor, chance = np.mean([one[k] for one in found], axis=0)
            numbers = (planned, given, 1.96 * np.sqrt(error), floor, 1.96 * np.sqrt(chance))
            columns = " | ".join(f"{100.0 * one:.1f}" for one in numbers)
            yield f"| {name} | {kind} | {size or responses.n_items} | {trials} | {columns} |"


def _of_split(responses: ResponseMatrix, new: IntArray, truth: FloatArray | None) -> list[tuple[float, ...]]:
    """Planned half-width, mean one of estimates, mean square of errors, floor and variance of chance of each split."""
    bank = ib.calibrate(responses.take(models=np.setdiff1d(np.arange(responses.n_models), new)))
    others, result = responses.take(models=np.sort(new)), []
    correct = np.rint(others.responses * ATTEMPTS).astype(int)
    chance = np.mean(others.responses * (1.0 - others.responses)) * ATTEMPTS / (ATTEMPTS - 1)
    for size, trials in SPLITS:
        n_items = size or responses.n_items
        plan = _planned(bank, n_items, trials)
        halves, errors = [], []
        for seed in range(DRAWS):
            taken = np.random.default_rng(seed).hypergeometric(correct, ATTEMPTS - correct, trials)
            n = np.full(taken.shape, trials)
            answers = ResponseMatrix.from_counts(taken, n, models=others.models, items=others.items)
            chosen = ib.select(bank, n_items, method="drawn", rng=seed)
            answers = answers.take(items=others.item_indices(chosen.item_ids))
            scores = ib.estimate(bank, answers, selection=chosen, estimand="repeated").scores
            if truth is None:
                meant = ((correct - taken) / (ATTEMPTS - trials)).mean(axis=1)
                own = chance / (ATTEMPTS - trials) / responses.n_items
            else:
                meant, own = truth[np.sort(new)].mean(axis=1), 0.0
            halves.append(np.mean(scores.high - scores.low, axis=0)[-1] / 2.0)
            errors.append(np.mean((scores.value[:, -1] - meant) ** 2) - own)
        floor = ib.plan_trials(bank).table.filter(n_trials=trials)["floor"].item()
        result.append(
            (plan, float(np.mean(halves)), float(np.mean(errors)), floor, chance / trials / responses.n_items)
        )
    return result


def _planned(bank: ib.Bank, n_items: int, trials: int) -> float:
    """Half-width that is planned for so many items: a budget that pays for just these, each trial costing one."""
    costs = {"seconds": np.ones(bank.responses.responses.shape)}
    priced = ResponseMatrix.create(
        bank.responses.responses, models=bank.responses.models, items=bank.responses.items,
        n_trials=bank.responses.n_trials, costs=costs,
    )  # fmt: skip
    bank = dataclasses.replace(bank, responses=priced)
    found = ib.plan_trials(bank, budget=n_items * trials + 0.5).table.filter(n_trials=trials, n_items=n_items)
    return float(found["half_width"].item())


if __name__ == "__main__":
    main()
