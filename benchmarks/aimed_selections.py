"""Items chosen for the score that is wanted, or for the mean over scenarios: ``python -m benchmarks.aimed_selections``.

Four hundred models of the Open LLM Leaderboard calibrate, two hundred others are estimated: the leaderboard's own
scores (28,632 items) and the mean win rate, from answers to the core's items. `select` with a headline score as target
chooses its items for that score; without one, for the bank's overall score. Errors are paired by model.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from itembank.bank.bank_views import with_target
from itembank.bank.banks import Bank
from itembank.bank.known_scores import with_external_scores
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.numerics.arrays import FloatArray
from itembank.planning.select import select
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import EXTERNAL, WIN_RATE

NAME = "aimed-selections"
EXTERNAL_SCORES = ("lb_gsm8k", "lb_mmlu", "lb_truthfulqa", "lb_arc", "lb_hellaswag", "lb_winogrande", "lb_avg")
N_CALIBRATING = 400
SIZES = (30, 100)
N_DIMS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        bank, new = _bank_and_others(Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data" / "openllm1_core")
        columns = " | ".join(f"{n}: overall | aimed | difference" for n in SIZES)
        lines = [f"| score, items | {columns} |", "|---" * (1 + 3 * len(SIZES)) + "|", *_rows(bank, new)]
    table = "\n".join(lines)
    print(table)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{NAME}.md").write_text(table, encoding="utf-8")


def _bank_and_others(folder: Path) -> tuple[Bank, ResponseMatrix]:
    """Return a bank with external scores, and the full answers of other models."""
    responses = read_responses([folder / "responses.parquet"], models=folder / "models.csv", items=folder / "items.csv")
    models = with_external_scores(responses.models, responses.models, EXTERNAL_SCORES)
    responses = replace(responses, models=models)
    order = np.random.default_rng(0).permutation(responses.n_models)
    known, new = (responses.take(models=np.sort(part)) for part in (order[:N_CALIBRATING], order[N_CALIBRATING:]))
    return calibrate(known, Variational("mirt", n_dims=N_DIMS), rng=0), new


def _rows(bank: Bank, new: ResponseMatrix) -> Iterator[str]:
    """Yield a line for each score."""
    for target in (*EXTERNAL_SCORES, WIN_RATE):
        print(target, file=sys.stderr, flush=True)
        view = with_target(bank, target)
        truth = _truth(view, new)
        cells = []
        for n_items in SIZES:
            overall, aimed = (_errors(one, view, new, truth, n_items) for one in (bank, view))
            difference = aimed - overall
            error = difference.std(ddof=1) / np.sqrt(difference.size)
            cells += [f"{overall.mean():.2f}", f"{aimed.mean():.2f}", f"{difference.mean():+.2f} ± {error:.2f}"]
        yield f"| {target} | {' | '.join(cells)} |"


def _truth(view: Bank, new: ResponseMatrix) -> FloatArray:
    """Headline scores of the new models, (n_models,)."""
    if view.targets.last == WIN_RATE and view.headline is not None:
        return view.headline.win_rates(view.targets.scenario_means(new.responses))
    scores: FloatArray = new.models[f"{EXTERNAL}{view.targets.last}"].to_numpy()
    return scores


def _errors(chooses: Bank, view: Bank, new: ResponseMatrix, truth: FloatArray, n_items: int) -> FloatArray:
    """Absolute errors in points from the items that a bank chooses, (n_models,)."""
    chosen = select(chooses, n_items, rng=0)
    answers = new.take(items=new.item_indices(chosen.item_ids))
    found = estimate(view, answers, selection=chosen)
    errors: FloatArray = 100.0 * np.abs(found.value[:, -1] - truth)
    return errors[~np.isnan(errors)]


if __name__ == "__main__":
    main()
