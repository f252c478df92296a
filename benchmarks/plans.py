"""Whether plans come true: ``python -m benchmarks.plans -o FOLDER``.

Banks of three quarters of the models plan for the other quarter: drawn by chance, twice, or the best, or the worst. The
planned half-width is divided by the mean one of `estimate` from drawn items, over draws and models. And of pairs of
models whose true difference would be the planned detectable one, how many would be significant: the errors of both, as
they came, beside that difference.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import itembank as ib
from itembank.comparison.pairs import model_pairs
from itembank.errors import ItembankWarning
from itembank.numerics.arrays import IntArray
from itembank.responses.responses import ResponseMatrix

NAME = "plans"
SETS = ("swebench_verified", "openllm1_core", "bfcl_v1", "alpacaeval2")
SIZES, DRAWS, MOST_NEW = (30, 100, 200), 5, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    data = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    lines = [
        "| data | new models | items | planned half-width | of estimates | ratio | significant |",
        "|---" * 7 + "|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        for name in SETS:
            lines += _rows(name, ib.read_responses(data / name / "responses.parquet"))
    table = "\n".join(lines)
    print(table)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{NAME}.md").write_text(table, encoding="utf-8")


def _rows(name: str, responses: ResponseMatrix) -> Iterator[str]:
    """Yield a line for each kind of new models and number of items."""
    scores = ib.banks.start(responses.items).targets.scenario_means(responses.responses, missing=True).mean(axis=1)
    order, n_new = np.argsort(scores, kind="stable"), responses.n_models // 4
    by_chance = [np.random.default_rng(seed).permutation(order)[:n_new] for seed in (0, 1)]
    for kind, splits in (("random", by_chance), ("best", [order[-n_new:]]), ("worst", [order[:n_new]])):
        found = [_of_split(responses, new) for new in splits]
        for k, size in enumerate(SIZES):
            planned, given, power = (np.array([one[k][number] for one in found]) for number in range(3))
            columns = [f"{100.0 * planned.mean():.2f}", f"{100.0 * given.mean():.2f}"]
            ratio = f"{float(np.exp(np.mean(np.log(planned / given)))):.2f}"
            yield f"| {name} | {kind} | {size} | {' | '.join(columns)} | {ratio} | {power.mean():.2f} |"


def _of_split(responses: ResponseMatrix, new: IntArray) -> list[tuple[float, float, float]]:
    """Planned half-width, mean one of estimates, and share of pairs that would be significant, for each size."""
    bank = ib.calibrate(responses.take(models=np.setdiff1d(np.arange(responses.n_models), new)))
    others = responses.take(models=np.sort(new)[:: max(1, new.size // MOST_NEW)])
    truth = bank.targets.with_overall(bank.targets.scenario_means(others.responses, missing=True))[:, -1]
    result = []
    for size in SIZES:
        planned, halves, significant = ib.plan(bank, max_items=size).table[-1], [], []
        for seed in range(DRAWS):
            chosen = ib.select(bank, size, method="drawn", rng=seed)
            answers = others.take(items=others.item_indices(chosen.item_ids))
            scores = ib.estimate(bank, answers, selection=chosen).scores
            half, error = (scores.high - scores.low)[:, -1] / 2.0, scores.value[:, -1] - truth
            first, second = model_pairs(half.size)
            apart = error[first] - error[second]
            reach = np.hypot(half[first], half[second])
            halves.append(half.mean())
            significant += [np.mean(planned.detectable_difference + side * apart > reach) for side in (-1.0, 1.0)]
        result.append((planned.half_width, float(np.mean(halves)), float(np.mean(significant))))
    return result


if __name__ == "__main__":
    main()
