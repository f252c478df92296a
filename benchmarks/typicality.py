"""Do intervals hold for unusual models? ``ITEMBANK_SHARED=... python -m benchmarks.typicality`` (40 CPU-minutes).

Splits of the panel (random ones and by date or kind): items chosen and scores estimated by the default, then coverage
and width of 95 % intervals by how well a model's answers fit, with the misfit in the scale of errors and without it
(the item model's standard errors as scale). Both rest on the same estimates and the same models left out.
"""

import argparse
import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.studies import panel_study
from itembank.errors import ItembankWarning
from itembank.estimation import estimated_scores
from itembank.estimation.posterior import standard_error
from itembank.estimation.response_summary import posterior_moments
from itembank.numerics.threads import one_blas_thread
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import prepare_fold
from itembank.studies.splits import make_folds

REPEATS = {"swebench_verified": 10, "alpacaeval2": 10, "bfcl_v1": 10, "openllm1_core": 4}
BANDS = (0.0, 0.7, 1.3, 1.8, 2.5, np.inf)
WITH, WITHOUT = "with misfit", "without"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(REPEATS), default=list(REPEATS))
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/typicality.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    table = pl.concat([pl.DataFrame(list(estimates_of(name))) for name in arguments.only])
    table.write_parquet(arguments.output)
    show(table)


@one_blas_thread()
def estimates_of(name: str) -> Iterator[dict[str, object]]:
    """Yield the overall score of every tested model of every split, with both intervals."""
    spec = panel_study(name)
    responses = load_data(spec.data)
    for split in spec.splits:
        for fold in make_folds(split, responses.models, REPEATS[name], spec.seed):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ItembankWarning)
                prepared = prepare_fold(spec, responses, fold)
                for n_items in spec.n_items:
                    print(name, split.name, fold.repeats[0], n_items, flush=True)
                    yield from rows_of(prepared, int(n_items), {"data": name, "split": split.name})


def rows_of(prepared, n_items: int, where: dict[str, object]) -> Iterator[dict[str, object]]:
    """Estimate all tested models from the items of one selection, twice."""
    selection = ib.select(prepared.bank, n_items, rng=0)
    answers = prepared.new.take(items=prepared.new.item_indices(selection.item_ids))
    found = {WITH: ib.estimate(prepared.bank, answers, selection=selection)}
    with without_misfit():
        found[WITHOUT] = ib.estimate(prepared.bank, answers, selection=selection)
    for row in range(answers.n_models):
        for kind, one in found.items():
            yield {
                **where,
                "n_items": n_items,
                "kind": kind,
                "true": prepared.truth[row, -1],
                **{name: getattr(one, name)[row, -1] for name in ("value", "low", "high")},
                "misfit": found[WITH].typicality.misfit[row],
                "is_flagged": bool(found[WITH].typicality.is_flagged[row]),
            }


class without_misfit:  # noqa: N801 (a context manager, used like a function)
    """Let widths follow the item model's standard errors, as they did before."""

    def __enter__(self) -> None:
        self.calibrated = calibrated = estimated_scores.calibrated

        def by_item_model(targets, summary, value, past, *, scale, level):  # noqa: ARG001
            plain = dataclasses.replace(past, scale=past.standard_error)
            errors = standard_error(value, *posterior_moments(targets, summary))
            return calibrated(targets, summary, value, plain, scale=errors, level=level)

        estimated_scores.calibrated = by_item_model

    def __exit__(self, *_) -> None:
        estimated_scores.calibrated = self.calibrated


def show(table: pl.DataFrame) -> None:
    """Print coverage, half-width and Winkler's score, in points, of all models, by misfit, and of flagged ones."""
    held = (pl.col("low") - 1e-12 <= pl.col("true")) & (pl.col("true") <= pl.col("high") + 1e-12)
    missed = (pl.col("low") - pl.col("true")).clip(0.0) + (pl.col("true") - pl.col("high")).clip(0.0)
    width = pl.col("high") - pl.col("low")
    columns = {
        "estimates": pl.len(),
        "coverage": held.mean(),
        "half-width": 50.0 * width.mean(),
        "winkler": 100.0 * (width + 40.0 * missed).mean(),
    }
    band = pl.col("misfit").cut(BANDS[1:-1], left_closed=True).alias("misfit")
    for groups in ([], ["data", "split", "n_items"], [band], ["is_flagged"]):
        print(table.group_by("kind", *groups).agg(**columns).sort(pl.all().exclude(columns)))


if __name__ == "__main__":
    pl.Config.set_tbl_rows(99)
    main()
