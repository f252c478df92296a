"""Run every strategy on every split."""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from benchmarks.accuracy.data_sets import DataSet
from benchmarks.accuracy.splits import Split, splits
from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import GPIRT, PIRT, EstimationSpec, Weighted
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.selection.select import select
from itembank.selection.selector_specs import AnchorCorrectness, AnchorIRT, SelectionSpec, Stratified

SIZES = (30, 60, 100, 180)
SELECTIONS: dict[str, SelectionSpec] = {
    "random": Stratified("proportional"),  # the scores here are plain means over items
    "correctness": AnchorCorrectness(),
    "IRT": AnchorIRT(),
    "IRT, all items": AnchorIRT(allow_degenerate=True),
}
P1_SELECTIONS = ("random", "correctness", "IRT")
ESTIMATORS: dict[str, EstimationSpec] = {
    "plain": Weighted(),
    "++": GPIRT(),
    "p-IRT": PIRT(),
    "++ measured factor": GPIRT("estimated"),
}


def parts(data_set: DataSet, n_repeats: int, n_draws: int) -> dict[str, Callable[[], pl.DataFrame]]:
    """Give the work by name, split by split; each part returns its estimates as a table."""
    work = {}
    for kind in data_set.splits:
        for number, split in enumerate(splits(data_set, kind, n_repeats)):
            # the numbers of repeats and draws name other estimates of the same split
            name = f"{data_set.name}-{kind}-{number}-repeats{len(split.repeats)}-draws{n_draws}"
            work[name] = partial(estimates_of, data_set, kind, split, n_draws)
    return work


def estimates_of(data_set: DataSet, kind: str, split: Split, n_draws: int) -> pl.DataFrame:
    """Run every strategy on a split."""
    with warnings.catch_warnings():
        # half-sample fits that stop early, and the few missing cells of alpacaeval2
        warnings.simplefilter("ignore", ItembankWarning)
        found = _estimates(_bank(data_set, split), data_set.responses.take(models=split.test), split, n_draws)
    return found.with_columns(data_set=pl.lit(data_set.name), split=pl.lit(kind))


def _bank(data_set: DataSet, split: Split) -> Bank:
    started = time.process_time()
    bank = calibrate(data_set.responses.take(models=split.train), data_set.spec)
    print(
        f"  {split.train.size} models x {bank.n_items} items, {bank.calibration.n_dims} dims: "
        f"{time.process_time() - started:.1f} CPU-s, bias {np.round(100 * bank.item_model_bias, 1)} points",
        flush=True,
    )
    return bank


def _estimates(bank: Bank, new: ResponseMatrix, split: Split, n_draws: int) -> pl.DataFrame:
    """One row for each new model, strategy, number of items and draw."""
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))[:, -1]
    parts = []
    for repeat in split.repeats:
        for draw in range(n_draws):
            for n_items in SIZES:
                for name, spec in SELECTIONS.items():
                    selection = select(bank, n_items, method=spec, rng=1000 * repeat + draw)
                    answers = new.take(items=new.item_indices(selection.item_ids))
                    for estimator, method in ESTIMATORS.items():
                        found = estimate(bank, answers, selection=selection, method=method)
                        column = found.targets.index(OVERALL)
                        parts.append(
                            pl.DataFrame(
                                {
                                    "model_id": new.model_ids,
                                    "truth": truth,
                                    "estimate": found.value[:, column],
                                    "low": found.low[:, column],
                                    "high": found.high[:, column],
                                }
                            ).with_columns(
                                selection=pl.lit(name),
                                estimator=pl.lit(estimator),
                                n_items=pl.lit(n_items),
                                repeat=pl.lit(repeat),
                                draw=pl.lit(draw),
                                sample_share=pl.lit(
                                    None if found.sample_share is None else float(np.mean(found.sample_share)),
                                    dtype=pl.Float64,
                                ),
                            )
                        )
    return pl.concat(parts)
