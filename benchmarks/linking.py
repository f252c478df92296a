"""New items linked to a bank by a few models, on real data: scores and curves against those of many models.

    python -m benchmarks.linking SHARED/data/openllm1_core/responses.parquet

600 models and 1,537 items of six scenarios are split at random: 300 models and 1,037 items make the bank, 500 items are
new, linking models are drawn from 100 others, and 200 are judged. Printed for each number of linking models, drawn at
random or spread over ability: the mean absolute error, in points, of the mean score on the new items predicted from
100 old ones at random; that by Stocking and Lord's link; the root mean square error of item curves (those of 400
models are the reference; `floor` is their error); the coverage and half-width of 95 % intervals; and the linking
error that the link stated.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.build import build_bank
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.living.fixed_parameters import FixedParameters, calibrate_fixed, expected_curves
from itembank.living.link_items import link_items
from itembank.living.linked_items import LinkedItems
from itembank.living.linking_answers import linking_answers
from itembank.living.new_item_scores import new_item_scores
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix

SIZES = (3, 5, 10, 20)
N_OLD, N_BANK, N_POOL, N_ANSWERED = 1037, 300, 100, 100


class Split(NamedTuple):
    """A bank, its new items, the models that may link, those that are judged, and what they are judged by."""

    bank: Bank
    new_items: np.ndarray
    pool: np.ndarray
    judged: ResponseMatrix
    truth: np.ndarray
    abilities: np.ndarray
    curves: np.ndarray
    reference: ItemParameters


def make_split(responses: ResponseMatrix, seed: int) -> Split:
    """Split models and items, calibrate the bank and the reference."""
    rng = np.random.default_rng(seed)
    models, items = rng.permutation(responses.n_models), rng.permutation(responses.n_items)
    old = np.sort(items[:N_OLD])
    bank = build_bank(responses.take(models=models[:N_BANK], items=old))
    pool, judged = models[N_BANK : N_BANK + N_POOL], models[N_BANK + N_POOL :]
    answers = linking_answers(bank, responses.take(models=models[: N_BANK + N_POOL]))
    fit = calibrate_fixed(answers.data, FixedParameters(tolerance=0.02, max_steps=40))
    found = expected_curves(answers.data, fit)
    order = responses.item_indices(answers.responses.item_ids)
    reference = ItemParameters.create(found[:, :-1], found[:, -1])
    theta = map_abilities(bank.parameters, responses.responses[np.ix_(judged, old)], bank.calibration.prior).theta
    truth = responses.responses[np.ix_(judged, order)].mean(axis=1)
    shown = responses.take(models=judged, items=np.sort(rng.permutation(old)[:N_ANSWERED]))
    return Split(bank, order, pool, shown, truth, theta, probability(reference, theta), reference)


def drawn(split: Split, responses: ResponseMatrix, n_models: int, how: str, seed: int) -> ResponseMatrix:
    """Draw linking models from the pool: at random, or one of each part of it in order of score."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(split.pool, n_models, replace=False)
    if how == "spread":
        ordered = split.pool[np.argsort(responses.responses[split.pool].mean(axis=1))]
        rows = np.array([rng.choice(part) for part in np.array_split(ordered, n_models)])
    return responses.take(models=rows)


def judge(split: Split, linked: LinkedItems) -> dict[str, float]:
    """Compare predicted scores and curves with the truth."""
    scores = new_item_scores(split.bank, linked, split.judged)
    return {
        "MAE": 100.0 * float(np.abs(scores.estimate - split.truth).mean()),
        "curves": float(np.sqrt(np.mean((probability(linked.parameters, split.abilities) - split.curves) ** 2))),
        "coverage": float(np.mean((scores.low <= split.truth) & (split.truth <= scores.high))),
        "half-width": 50.0 * float(np.mean(scores.high - scores.low)),
        "stated": 100.0 * linked.linking_error,
        "bias": 100.0 * float(np.mean(scores.estimate - split.truth)),
    }


def floor(split: Split, linked: LinkedItems) -> dict[str, float]:
    """Judge the reference's curves in the same way."""
    return judge(split, replace(linked, parameters=split.reference, linking_error=0.0))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", type=Path)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    responses = read_responses(options.responses)
    rows: dict[tuple[int, str, str], list[dict[str, float]]] = {}
    for seed in range(options.splits):
        split = make_split(responses, seed)
        for size in options.sizes:
            for how in ("random", "spread"):
                for draw in range(options.draws):
                    chosen = drawn(split, responses, size, how, 100 * seed + draw)
                    linked = link_items(split.bank, chosen)
                    rows.setdefault((size, how, "fixed"), []).append(judge(split, linked))
                    rows.setdefault((0, "all", "floor"), []).append(floor(split, linked))
                    if linked.other is not None and draw == 0:  # once: it takes as long again
                        other = link_items(split.bank, chosen, method="stocking-lord")
                        rows.setdefault((size, how, "stocking-lord"), []).append(judge(split, other))
                report(rows, size, how)
    print("\nmean over all splits and draws")
    for size, how, method in rows:
        report_row(rows, (size, how, method))


def report(rows: dict[tuple[int, str, str], list[dict[str, float]]], size: int, how: str) -> None:
    """Print what is known of a number of linking models so far."""
    for key in rows:
        if key[:2] == (size, how):
            report_row(rows, key)


def report_row(rows: dict[tuple[int, str, str], list[dict[str, float]]], key: tuple[int, str, str]) -> None:
    """Print one line."""
    names = list(rows[key][0])
    means = [float(np.mean([one[name] for one in rows[key]])) for name in names]
    cells = "  ".join(f"{name} {mean:.3f}" for name, mean in zip(names, means, strict=True))
    print(f"{key[0]:>3} {key[1]:<7} {key[2]:<14} {cells}  n {len(rows[key])}", flush=True)


if __name__ == "__main__":
    main()
