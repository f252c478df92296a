"""Do models with few answers spoil a bank? ``ITEMBANK_SHARED=... python -m benchmarks.incomplete_models``.

Banks of the Open LLM Leaderboard v1, calibrated with one ability, or with ``--dims auto`` with as many as `itembank
calibrate` takes. 170 models that no bank holds answer 100 items, which `select` chooses, and are estimated by
`estimate`. Per draw of the models:

- 3, 5 and 10 complete models;
- 30 complete models; the same and 400 models that answered 60, or 300, of 1,537 items, by chance; 430 complete models.

Prints, averaged over draws: mean absolute error in points, coverage and half-width of 95 % intervals, of the overall
score, and the mean error that `estimate` says past models left out had; then the scenarios' mean error, the least
coverage of one, and their mean half-width. One draw takes a CPU-minute with one ability, ten with more; what is done is
kept, and further draws are added.
"""

import argparse
import dataclasses
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.studies import panel_study
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.dimensions import MINIMUM_TO_CHOOSE, choose_n_dims
from itembank.errors import ItembankWarning
from itembank.responses.responses import ResponseMatrix
from itembank.studies.data_sets import load_data

SEED = 15
N_CALIBRATION, N_ITEMS = 430, 100
BANKS = {
    "3": (3, 0),
    "5": (5, 0),
    "10": (10, 0),
    "30": (30, 0),
    "30 + 400 x 60": (30, 60),
    "30 + 400 x 300": (30, 300),
    "430": (430, 0),
}
"""Complete models, and answers of each of the others; no others where that is 0."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--only", nargs="+", choices=list(BANKS), default=list(BANKS))
    parser.add_argument("--dims", choices=["1", "auto"], default="1")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/incomplete_models.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    done = pl.read_parquet(arguments.output) if arguments.output.exists() else pl.DataFrame()
    for draw in range(arguments.draws):
        for name in arguments.only:
            if done.height and done.filter(draw=draw, bank=name, dims=arguments.dims).height:
                continue
            print("draw", draw, "bank", name, flush=True)
            done = pl.concat([done, pl.DataFrame(list(rows_of(draw, name, arguments.dims)))], how="diagonal_relaxed")
            done.write_parquet(arguments.output)
    show(done.filter(dims=arguments.dims))


def rows_of(draw: int, name: str, dims: str) -> Iterator[dict[str, object]]:
    """Yield what came out for every target of a bank."""
    past, new = models_of(draw, *BANKS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        is_chosen = dims == "auto" and past.n_models >= MINIMUM_TO_CHOOSE
        n_dims = choose_n_dims(past).n_dims if is_chosen else 1
        bank = ib.build_bank(past, Variational("2pl" if n_dims == 1 else "mirt", n_dims=n_dims), rng=0)
        selection = ib.select(bank, N_ITEMS, rng=draw)
        found = ib.estimate(bank, new, selection=selection)
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses))
    said = re.search(r"stacked (\d+\.\d+)", found.explanation)
    for number, target in enumerate(bank.targets.names):
        low, high, value, true = found.low[:, number], found.high[:, number], found.value[:, number], truth[:, number]
        yield {
            "draw": draw,
            "bank": name,
            "target": target,
            "interval": found.interval_kind,
            "dims": dims,
            "n_dims": n_dims,
            "error": 100.0 * float(np.abs(value - true).mean()),
            "coverage": float(((low <= true) & (true <= high)).mean()),
            "half_width": 50.0 * float((high - low).mean()),
            "said": float(said[1]) if said and target == "overall" else None,
        }


def models_of(draw: int, n_complete: int, n_answers: int) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Return the models of a bank, some of them incomplete, and those that it has not seen."""
    responses = load_data(panel_study("openllm1_core").data)
    order = np.random.default_rng([SEED, draw]).permutation(responses.n_models)
    past = responses.take(models=order[: N_CALIBRATION if n_answers else n_complete])
    rng = np.random.default_rng([SEED, draw, n_answers])
    values = past.responses.copy()
    for row in range(n_complete, past.n_models):
        values[row, rng.permutation(past.n_items)[n_answers:]] = np.nan
    return dataclasses.replace(past, responses=values), responses.take(models=order[N_CALIBRATION:])


def show(done: pl.DataFrame) -> None:
    """Print the table, a bank a row."""
    overall = pl.col("target") == "overall"
    per_target = done.group_by("bank", "target", maintain_order=True).agg(
        pl.col("draw").n_unique().alias("draws"), pl.col("error", "coverage", "half_width", "said").mean()
    )
    print("\n| past models | draws | error | said | coverage | half-width", end=" ")
    print("| scenarios: error | least coverage | half-width |\n" + "|---" * 9 + "|")
    for name in BANKS:
        rows = per_target.filter(bank=name)
        for row in rows.filter(overall).iter_rows(named=True):
            own = rows.filter(~overall)
            said = "-" if row["said"] is None else f"{row['said']:.2f}"
            print(
                f"| {name} | {row['draws']} | {row['error']:.2f} | {said} | {row['coverage']:.3f} "
                f"| {row['half_width']:.1f} | {own['error'].mean():.2f} | {own['coverage'].min():.3f} "
                f"| {own['half_width'].mean():.1f} |"
            )


if __name__ == "__main__":
    main()
