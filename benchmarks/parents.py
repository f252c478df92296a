"""New models with a parent among the past ones: ``python -m benchmarks.parents -o DIR``.

Random splits: some models calibrate, others are estimated by default, with the parent found by their answers, and with
the parent named, by how large a part of all items the past model most like each answers as it does. That part is not
known in life. Errors of the overall score and half-widths are in points.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.planning.select import select
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix

NAME = "parents"
DATA = {"openllm1_core": (400, 200, 4), "openllm1_gsm8k": (400, 500, 4), "swebench_verified": (66, 34, 8)}
"""Past models, new ones, and splits. The method was chosen on other splits of the first."""
FIRST_SEED = 201
SIZES = (30, 100)
LEAST_SCORE = 0.05
"""Models that solve less answer alike whether they are related or not."""
BANDS = {".95 and more": 0.95, ".90 to .95": 0.90, ".85 to .90": 0.85, "below .85": 0.0}
NAMED_FROM = 0.90
WAYS = ("default", "found", "named")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    columns = [f"{what}: {' | '.join(WAYS)}" for what in ("error", "half-width", "coverage")]
    lines = [f"| data | items | alike | models | {' | '.join(columns)} |", "|---" * 13 + "|"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        for data in DATA:
            print(data, file=sys.stderr, flush=True)
            lines += _lines(data)
    table = "\n".join(lines)
    print(table)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{NAME}.md").write_text(table, encoding="utf-8")


def _lines(data: str) -> list[str]:
    """Return a line for each number of items and band."""
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data" / data
    responses = read_responses([folder / "responses.parquet"])
    responses = responses.take(models=np.flatnonzero(responses.observed.all(axis=1)))
    n_past, n_new, n_splits = DATA[data]
    found: dict[int, list[FloatArray]] = {n_items: [] for n_items in SIZES}
    for seed in range(FIRST_SEED, FIRST_SEED + n_splits):
        order = np.random.default_rng(seed).permutation(responses.n_models)
        past, new = (responses.take(models=np.sort(part)) for part in np.split(order[: n_past + n_new], [n_past]))
        bank = calibrate(past, rng=0)
        for n_items in SIZES:
            found[n_items].append(_of_split(bank, new, select(bank, n_items, rng=0)))
    return [line for n_items in SIZES for line in _bands(data, n_items, np.concatenate(found[n_items]))]


def _of_split(bank: Bank, new: ResponseMatrix, selection: Selection) -> FloatArray:
    """Estimate new models in all ways, (n_new, 2 + 3 * 3): agreement, score; errors, half-widths, whether inside."""
    y, a = new.responses, bank.responses.responses
    agreement = (y @ a.T + (1.0 - y) @ (1.0 - a).T) / bank.n_items
    truth = bank.targets.with_overall(bank.targets.scenario_means(y))[:, -1]
    answers = new.take(items=new.item_indices(selection.item_ids))
    result = np.full((new.n_models, 2 + 3 * len(WAYS)), np.nan)
    result[:, :2] = np.column_stack([agreement.max(axis=1), truth])
    parents = np.where(agreement.max(axis=1) >= NAMED_FROM, agreement.argmax(axis=1), -1)
    groups = {bank.responses.model_ids[row]: np.flatnonzero(parents == row) for row in np.unique(parents[parents >= 0])}
    everybody = {"": np.arange(new.n_models)}
    for way, by_parent in enumerate((everybody, {"auto": everybody[""]}, groups)):
        for parent, rows in by_parent.items():
            made = estimate(bank, answers.take(models=rows), selection=selection, parent=parent)
            low, value, high = (part[:, -1] for part in (made.low, made.value, made.high))
            inside = (low <= truth[rows]) & (truth[rows] <= high)
            result[rows, 2 + way :: len(WAYS)] = np.column_stack(
                [np.abs(value - truth[rows]), (high - low) / 2, inside]
            )
    result[:, 2 : 2 + 2 * len(WAYS)] *= 100.0
    return result


def _bands(data: str, n_items: int, found: FloatArray) -> list[str]:
    """Return a line for each band of agreement with models in it."""
    agreement, score = found[:, 0], found[:, 1]
    is_left = score >= LEAST_SCORE
    bands: dict[str, BoolArray] = {}
    for name, least in BANDS.items():
        bands[name] = is_left & (agreement >= least)
        is_left = is_left & ~bands[name]
    bands["solves below .05"], bands["all"] = score < LEAST_SCORE, np.full(score.shape, True)
    lines = []
    for name, inside in bands.items():
        if inside.any():
            numbers = found[inside, 2:]
            known = ~np.isnan(numbers).any(axis=0)
            means = np.where(known, np.where(known, numbers, 0.0).mean(axis=0), np.nan)
            cells = ["-" if np.isnan(mean) else f"{mean:.2f}" for mean in means]
            lines.append(f"| {data} | {n_items} | {name} | {inside.sum()} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
