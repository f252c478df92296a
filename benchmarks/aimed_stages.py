"""Stages aimed at the score that is wanted, or at the mean over scenarios: ``python -m benchmarks.aimed_stages``.

Two hundred models of the Open LLM Leaderboard calibrate, a hundred others are estimated, and that for two random
splits (five CPU-minutes). Each new model goes through two stages. *plain*: both are chosen for the bank's overall
score; *aimed*: both for the score, as `select --stages 2 --target SCORE` does; *batch*: as many items at once, aimed.
Mean absolute errors in points; differences are paired by model, their standard errors are over models. The
six splits of the mean win rate in docs/stages.md: ``--only mean_win_rate --splits 0 1 2 3 4 5``.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.headlines import with_external_scores
from itembank.bank.selections import Selection
from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.numerics.arrays import FloatArray
from itembank.planning.next_stage import next_stage
from itembank.planning.select import select
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import EXTERNAL, WIN_RATE
from itembank.selection.selector_specs import VOptimal

SCORES = ("lb_gsm8k", "lb_mmlu", "lb_truthfulqa", "lb_arc", "lb_avg", WIN_RATE)
N_CALIBRATING, N_NEW = 200, 100
SIZES = (30, 90)
N_DIMS = 2
SPLITS = (0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SCORES, default=SCORES)
    parser.add_argument("--splits", nargs="+", type=int, default=SPLITS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ItembankWarning)
    splits = [bank_and_others(seed) for seed in arguments.splits]
    print("| score, items | " + " | ".join(f"{n}: plain | aimed | aimed - plain | batch" for n in SIZES) + " |")
    print("|---" * (1 + 4 * len(SIZES)) + "|")
    for score in arguments.only:
        print(f"| {score} | {' | '.join(cells(splits, score))} |", flush=True)


def bank_and_others(seed: int) -> tuple[Bank, ResponseMatrix]:
    """Return a bank with external scores, and the full answers of other models."""
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data" / "openllm1_core"
    responses = read_responses([folder / "responses.parquet"], models=folder / "models.csv", items=folder / "items.csv")
    external = tuple(score for score in SCORES if score != WIN_RATE)
    responses = replace(responses, models=with_external_scores(responses.models, responses.models, external))
    order = np.random.default_rng(seed).permutation(responses.n_models)
    ends = (order[:N_CALIBRATING], order[N_CALIBRATING : N_CALIBRATING + N_NEW])
    known, new = (responses.take(models=np.sort(part)) for part in ends)
    return build_bank(known, Variational("mirt", n_dims=N_DIMS), rng=0), new


def cells(splits: list[tuple[Bank, ResponseMatrix]], score: str) -> Iterator[str]:
    """Yield the columns of one score."""
    for n_items in SIZES:
        errors = np.concatenate([errors_of(with_target(bank, score), new, n_items) for bank, new in splits], axis=1)
        plain, aimed, batch = errors[:, ~np.isnan(errors).any(axis=0)]
        difference = aimed - plain
        doubt = difference.std(ddof=1) / np.sqrt(difference.size)
        yield f"{plain.mean():.2f} | {aimed.mean():.2f} | {difference.mean():+.2f} ± {doubt:.2f} | {batch.mean():.2f}"


def errors_of(bank: Bank, new: ResponseMatrix, n_items: int) -> FloatArray:
    """Absolute errors in points of plain stages, aimed stages and an aimed batch, (3, n_models)."""
    plain, aimed = (select(bank, n_items, stages=2, rng=0, method=method) for method in (VOptimal(), "auto"))
    batch = select(bank, n_items, rng=0)
    at_once = new.take(items=new.item_indices(batch.item_ids))
    found = [in_stages(bank, plain, new), in_stages(bank, aimed, new)]
    found.append(estimate(bank, at_once, selection=batch).value[:, -1])
    errors: FloatArray = 100.0 * np.abs(np.array(found) - truth_of(bank, new))
    return errors


def in_stages(bank: Bank, routing: Selection, new: ResponseMatrix) -> FloatArray:
    """Estimate each model after its own second stage, (n_models,)."""
    found = np.zeros(new.n_models)
    for row in range(new.n_models):
        model = new.take(models=np.array([row]))
        module = next_stage(bank, routing, model)
        answers = model.take(items=model.item_indices(module.whole.item_ids))
        found[row] = estimate(bank, answers, selection=module).value[0, -1]
    return found


def truth_of(bank: Bank, new: ResponseMatrix) -> FloatArray:
    """Headline scores of the new models, (n_models,)."""
    if bank.targets.last == WIN_RATE and bank.headline is not None:
        return bank.headline.win_rates(bank.targets.scenario_means(new.responses))
    scores: FloatArray = new.models[f"{EXTERNAL}{bank.targets.last}"].to_numpy()
    return scores


if __name__ == "__main__":
    main()
