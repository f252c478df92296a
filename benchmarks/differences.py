"""Do intervals of differences hold for untouched models? ``ITEMBANK_SHARED=... python -m benchmarks.differences``.

New models are drawn six times, the bank is calibrated on others, items are chosen and differences estimated by the
default; then all pairs of new models (780 of 40) are held against the differences of their true scores. Pairs of one
draw share models, so standard errors are over draws. About twenty CPU-minutes.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.studies import panel_study
from benchmarks.panel.untouched import MODELS
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankWarning
from itembank.numerics.threads import one_blas_thread
from itembank.studies.data_sets import load_data

SIZES = (30, 100)
MODELS_OF = {
    "classifiers": (202, 40),
    "openllm1_gsm8k": (150, 40),
    "openllm1_core": (200, 40),
    "swebench_verified": (60, 40),
    "bfcl_v1": (36, 20),
    "alpacaeval2": (35, 20),
}
"""Models that calibrate, and new ones."""
BINS = (0.6, 0.8, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(MODELS_OF), default=list(MODELS_OF))
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/differences.parquet"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ItembankWarning)
    table = pl.concat([one for name in arguments.only for one in pairs_of(name, arguments.draws)])
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(arguments.output)
    show(table)


@one_blas_thread()
def pairs_of(name: str, n_draws: int) -> Iterator[pl.DataFrame]:
    """Yield all pairs of new models on the overall score, and on every scenario, for each draw and number of items."""
    responses = load(name)
    n_past, n_new = MODELS_OF[name]
    for draw in range(n_draws):
        order = np.random.default_rng([draw, 41]).permutation(responses.n_models)
        new, past = (responses.take(models=np.sort(rows)) for rows in (order[:n_new], order[n_new : n_new + n_past]))
        bank = ib.build_bank(past, "variational" if name == "classifiers" else Variational(n_dims=1))
        truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))
        for n_items in SIZES:
            print(name, draw, n_items, flush=True)
            selection = ib.select(bank, n_items, rng=draw)
            answers = new.take(items=new.item_indices(selection.item_ids))
            found = ib.compare(bank, answers, selection=selection, target="all", spec=ib.ComparisonSpec(n_bootstrap=0))
            yield rows_of(found, truth).with_columns(
                data=pl.lit(name), draw=pl.lit(draw), n_items=pl.lit(n_items), selector=pl.lit(selection.method)
            )


def rows_of(found: ib.Comparison, truth: np.ndarray) -> pl.DataFrame:
    """One row for each pair and target."""
    first, second = found.pairs.first, found.pairs.second
    true = truth[second] - truth[first]
    return pl.concat(
        [
            pl.DataFrame(
                {
                    "is_overall": target == "overall",
                    "true": true[:, t],
                    "low": found.difference.low[:, t],
                    "high": found.difference.high[:, t],
                    "probability": found.tests.probability_b_better[:, t],
                }
            )
            for t, target in enumerate(found.targets)
        ]
    )


def load(name: str) -> ib.ResponseMatrix:
    """Load the models of a set that answered everything."""
    if name == "classifiers":
        return ib.load_builtin(name)
    if name != "openllm1_gsm8k":
        return load_data(panel_study(name).data)
    responses = ib.read_responses(Path(os.environ["ITEMBANK_SHARED"]) / "data" / name / "responses.parquet")
    whole = np.flatnonzero(responses.observed.mean(axis=1) > 0.999)
    return responses.take(models=np.sort(np.random.default_rng(0).choice(whole, MODELS[name], replace=False)))


def show(table: pl.DataFrame) -> None:
    """Print coverage, half-width and Winkler's score in points, Brier's score; then how often B was better by bin."""
    held = (pl.col("low") - 1e-12 <= pl.col("true")) & (pl.col("true") <= pl.col("high") + 1e-12)
    missed = (pl.col("low") - pl.col("true")).clip(0.0) + (pl.col("true") - pl.col("high")).clip(0.0)
    width = pl.col("high") - pl.col("low")
    better = (pl.col("true") > 0.0).cast(pl.Float64)
    columns = {
        "coverage": held.mean(),
        "half-width": 50.0 * width.mean(),
        "winkler": 100.0 * (width + 40.0 * missed).mean(),
        "brier": ((pl.col("probability") - better) ** 2).mean(),
    }
    by_draw = table.group_by("is_overall", "data", "n_items", "draw").agg(**columns)
    for groups in (["is_overall", "data", "n_items"], ["is_overall", "n_items"]):
        standard_errors = [
            (pl.col(name).std() / pl.len().sqrt()).alias(f"{name}_se") for name in ("coverage", "winkler")
        ]
        print(by_draw.group_by(groups).agg(pl.col(columns).mean(), *standard_errors).sort(groups))
    overall = table.filter("is_overall", pl.col("true") != 0.0)
    probability = pl.col("probability")
    # a pair says the same whichever of the two comes first
    turned = overall.with_columns(probability=1.0 - probability, true=-pl.col("true"))
    both = pl.concat([overall, turned]).filter(probability >= 0.5)
    print(
        both.group_by("n_items", bin=probability.cut(BINS, left_closed=True))
        .agg(pl.len(), expected=probability.mean(), found=better.mean())
        .sort("n_items", "bin")
    )


if __name__ == "__main__":
    pl.Config.set_tbl_rows(99)
    pl.Config.set_tbl_cols(20)
    pl.Config.set_tbl_width_chars(160)
    main()
