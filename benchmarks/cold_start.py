"""What few past models are worth: ``ITEMBANK_SHARED=... python -m benchmarks.cold_start`` (some CPU-minutes).

Banks begun with 0 to 20 past models of Open LLM Leaderboard v1 (or another set), drawn at random, estimate other models
from items that `select` chooses. Errors, coverage of 95 % intervals and their half-widths, in points, over draws; also
the half-width that `plan_models` forecasts before any further model has run.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.errors import ItembankWarning
from itembank.living import starting
from itembank.numerics.arrays import FloatArray
from itembank.planning.more_models import plan_models
from itembank.responses.responses import ResponseMatrix

N_PAST = (0, 1, 2, 3, 5, 10, 20)
N_NEW = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="openllm1_core")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--past", type=int, nargs="+", default=N_PAST)
    parser.add_argument("--items", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--fit-from", type=int, default=starting.FEWEST_TO_FIT, help="past models for an item model")
    parser.add_argument("--interval", default="calibrated", help="as of estimate")
    arguments = parser.parse_args()
    starting.FEWEST_TO_FIT = arguments.fit_from
    warnings.simplefilter("ignore", ItembankWarning)
    whole = ib.read_responses(Path(os.environ["ITEMBANK_SHARED"]) / "data" / arguments.data / "responses.parquet")
    rows = [
        {"past": n_past, "items": n_items, **found}
        for draw in range(arguments.draws)
        for n_past in arguments.past
        for n_items, found in _one_draw(whole, n_past, arguments, draw)
    ]
    table = pl.DataFrame(rows).group_by("past", "items", maintain_order=True).mean().sort("items", "past")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(table)


def _one_draw(
    whole: ResponseMatrix, n_past: int, arguments: argparse.Namespace, draw: int
) -> list[tuple[int, dict[str, float]]]:
    """Begin a bank with some models, and estimate others."""
    order = np.random.default_rng([draw, 7]).permutation(whole.n_models)
    past, new = order[:n_past], whole.take(models=np.sort(order[n_past:][-N_NEW:]))
    bank = starting.start(whole.items, whole.take(models=np.sort(past)) if n_past else None)
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))
    found = []
    for n_items in arguments.items:
        selection = ib.select(bank, n_items, rng=draw)
        estimates = ib.estimate(bank, new, selection=selection, interval=arguments.interval)
        found.append((n_items, {**_judged(estimates.scores, truth), "said": _said(bank, n_items)}))
    return found


def _judged(scores: object, truth: FloatArray) -> dict[str, float]:
    """Errors and coverage of the overall score, and of the scenarios' (mean and worst)."""
    inside = (scores.low - 1e-9 <= truth) & (truth <= scores.high + 1e-9)  # type: ignore[attr-defined]
    error, half = np.abs(scores.value - truth), (scores.high - scores.low) / 2.0  # type: ignore[attr-defined]
    return {
        "error": 100.0 * float(error[:, -1].mean()),
        "coverage": float(inside[:, -1].mean()),
        "half_width": 100.0 * float(half[:, -1].mean()),
        "scenarios": float(inside[:, :-1].mean()),
        "worst": float(inside[:, :-1].mean(axis=0).min()),
        "scenario_half": 100.0 * float(half[:, :-1].mean()),
    }


def _said(bank: ib.Bank, n_items: int) -> float:
    return 100.0 * float(plan_models(bank, n_items).half_width[0])


if __name__ == "__main__":
    main()
