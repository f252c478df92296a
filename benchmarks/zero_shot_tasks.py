"""Tasks that no model has run yet: ``ITEMBANK_SHARED=... python -m benchmarks.zero_shot_tasks``.

The 26 sources of MMLU-Pro's questions with 128 questions or more are tasks, of 200 items at most. In each repeat half
of them, drawn anew, is unknown: no training model answered it. Items of the other half are calibrated on 24 models with
columns of the item table (`item_covariates`), and the regression on these predicts how difficult the items of unknown
tasks are. Ten test models answer 16 random items of known tasks. Shown is the error of their predicted scores on the
unknown tasks, in points, with its standard error over repeats: with every item as difficult as the average one, with
difficulties by the covariates, and with items that the training models did answer (no zero-shot prediction, and the
best there can be). Beside it stands the same error for the training models' mean: how wrong the difficulties are.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

import itembank as ib
from itembank.calibration.item_regression import item_regression
from itembank.errors import ItembankWarning
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray

COVARIATES = ("subscenario", "n_options", "question_chars", "options_chars")
N_TEST, N_ITEMS, SMALLEST, MOST = 10, 16, 128, 200
WAYS = ("the average item", "covariates", "calibrated")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=8)
    warnings.simplefilter("ignore", ItembankWarning)
    responses = loaded()
    rows = [row for repeat in range(parser.parse_args().repeats) for row in tried(responses, repeat)]
    table = pl.DataFrame(rows, schema=["way", "error", "of_mean"], orient="row")
    print("| items of the unknown tasks | error of test models | error of the training models' mean |\n|---|---|---|")
    for (way,), part in table.group_by("way", maintain_order=True):
        cells = [100.0 * part[name].to_numpy() for name in ("error", "of_mean")]
        shown = [f"{one.mean():.1f} ± {one.std(ddof=1) / np.sqrt(one.size):.1f}" for one in cells]
        print(f"| {way} | {' | '.join(shown).replace('nan ± nan', '-')} |")


def loaded() -> ib.ResponseMatrix:
    """Items of the common core whose source is large; the source is their scenario."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / "mmlu-pro"
    responses = ib.read_responses(
        folder / "responses.parquet", items=folder / "items.csv", response_column="response_l3"
    )
    size = pl.len().over("source")
    is_used = responses.items.select((pl.col("in_common_core") & (size >= SMALLEST)).alias("used"))["used"].to_numpy()
    responses = responses.take(items=np.flatnonzero(is_used))
    names, rng = responses.items["source"].to_numpy(), np.random.default_rng(0)
    few = [rng.permutation(np.flatnonzero(names == name))[:MOST] for name in np.unique(names)]
    responses = responses.take(items=np.sort(np.concatenate(few)))
    items = responses.items.select("item_id", *COVARIATES, scenario="source")
    return ib.ResponseMatrix.create(responses.responses, models=responses.models.select("model_id"), items=items)


def tried(responses: ib.ResponseMatrix, repeat: int) -> Iterator[tuple[str, float, float]]:
    """Errors of the three ways for one division of models and tasks."""
    rng = np.random.default_rng(repeat)
    models, task = rng.permutation(responses.n_models), responses.items["scenario"].to_numpy()
    train, test = models[N_TEST:], models[:N_TEST]
    tasks = rng.permutation(np.unique(task))
    is_known = np.isin(task, tasks[: tasks.size // 2])
    known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    asked = rng.permutation(known.size)[:N_ITEMS]
    answers, truth = responses.responses[np.ix_(test, known[asked])], responses.responses[:, new]
    mean_of_train = truth[train].mean(axis=0)[None]
    bank = ib.build_bank(
        responses.take(models=train, items=known), ib.calibrations.Variational("nested", 3, item_covariates=COVARIATES)
    )
    theta = map_abilities(bank.parameters.take(asked), answers, bank.calibration.prior).theta
    slopes, average = bank.parameters.loadings.mean(axis=0), bank.parameters.intercept
    guesses = (
        (np.full(new.size, average.mean()), np.full(new.size, average.std())),
        item_regression(bank).predict(responses.items[new]),
    )
    for way, (centre, spread) in zip(WAYS, guesses, strict=False):
        of_test, of_train = (expected(one @ slopes, centre, spread) for one in (theta, bank.calibration.abilities))
        gap = error(of_train.mean(axis=0)[None], mean_of_train, task[new])
        yield way, error(of_test, truth[test], task[new]), gap
    whole = ib.calibrations.calibrate(responses.take(models=train), ib.calibrations.Variational("nested", 3))
    theta = map_abilities(whole.parameters.take(known[asked]), answers, whole.prior).theta
    yield WAYS[2], error(probability(whole.parameters.take(new), theta), truth[test], task[new]), np.nan


def expected(logit: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Mean probability over normal intercepts, (n_models, n_items)."""
    nodes = centre[:, None] + spread[:, None] * NODES
    result: FloatArray = expit(logit[:, None, None] + nodes[None]) @ (WEIGHTS / WEIGHTS.sum())
    return result


def error(found: FloatArray, truth: FloatArray, task: np.ndarray) -> float:
    """Mean absolute error of task scores."""
    gaps = [np.abs((found - truth)[:, task == name].mean(axis=1)).mean() for name in np.unique(task)]
    return float(np.mean(gaps))


if __name__ == "__main__":
    main()
