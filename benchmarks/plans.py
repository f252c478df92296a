"""Whether plans come true on real leaderboards: ``python -m benchmarks.plans --data DIR``.

Half of the models make a bank and a plan from it; the other half run the planned items.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.accuracy.data_sets import load
from itembank.bank.banks import Bank
from itembank.calibration.build import build_bank
from itembank.comparison.compare import compare
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.planning.plan import plan
from itembank.planning.plan_spec import PlanSpec
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.selection.select import select

SHARED = Path(os.environ.get("ITEMBANK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GOALS = {"openllm1_core": (0.04, 0.08), "swebench_verified": (0.05, 0.10), "alpacaeval2": (0.05, 0.06)}
N_REPEATS = 5


def come_true(bank: Bank, new: ResponseMatrix, half_width: float, difference: float, seed: int) -> list[float]:
    """Planned items and what they give, for both goals."""
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))[:, -1]
    first = plan(bank, half_width=half_width, selector="stratified", spec=PlanSpec(seed=seed))
    second = plan(bank, difference=difference, selector="stratified", spec=PlanSpec(seed=seed))
    selection = select(bank, first.n_items, method="stratified", rng=seed)
    found = estimate(bank, new.take(items=new.item_indices(selection.item_ids)), selection=selection)
    column = found.targets.index(OVERALL)
    low, high = found.low[:, column], found.high[:, column]
    selection = select(bank, second.n_items, method="stratified", rng=seed)
    compared = compare(
        bank,
        new.take(items=new.item_indices(selection.item_ids)),
        selection=selection,
        spec=ComparisonSpec(n_bootstrap=0),
    )
    true = truth[compared.pairs.second] - truth[compared.pairs.first]
    alike = np.abs(np.abs(true) - difference) < 0.1 * difference
    shown = ((compared.difference.low > 0.0) | (compared.difference.high < 0.0))[:, 0]
    return [
        first.n_items,
        100.0 * np.mean(high - low) / 2.0,
        100.0 * np.mean((low <= truth) & (truth <= high)),
        second.n_items,
        100.0 * np.mean(compared.tests.smallest_detectable_difference),
        100.0 * np.mean(shown[alike]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the data sets")
    parser.add_argument("--only", nargs="+", choices=list(GOALS), default=list(GOALS), help="data sets to run")
    arguments = parser.parse_args()
    print("| data | goal | items | half-width | coverage | goal | items | detectable | shown |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.only:
        started, data, rows = time.process_time(), load(name, arguments.data), []
        for repeat in range(N_REPEATS):
            order = np.random.default_rng([repeat, 7]).permutation(data.responses.n_models)
            half = order.size // 2
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ItembankWarning)
                bank = build_bank(data.responses.take(models=np.sort(order[:half])), data.spec)
                rows.append(come_true(bank, data.responses.take(models=np.sort(order[half:])), *GOALS[name], repeat))
        n, width, inside, n_pairs, detectable, shown = np.mean(rows, axis=0)
        goals = [100.0 * goal for goal in GOALS[name]]
        print(
            f"| {name} | {goals[0]:g} | {n:.0f} | {width:.2f} | {inside:.1f} % | {goals[1]:g} | {n_pairs:.0f} "
            f"| {detectable:.2f} | {shown:.0f} % |  ({time.process_time() - started:.0f} CPU-s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
