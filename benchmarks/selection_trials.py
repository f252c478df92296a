"""What do the trials behind `auto` know? ``ITEMBANK_SHARED=... python -m benchmarks.selection_trials`` (ten minutes).

Random splits of the panel: each way of choosing items that `auto` tries, its error on calibration models left out (the
trial), the error of the models that the bank has not seen, by the same stack of estimates, and which way `auto` takes.
Stratified items are drawn three times. Then, over splits: both errors, and the correlation of the two differences from
`v-optimal`.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.panel.studies import STUDIES, panel_study
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.planning.auto import CANDIDATES, Tried, best_of, errors_of
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import Stratified
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import PreparedFold, prepare_fold
from itembank.studies.split_specs import RandomShare
from itembank.studies.splits import make_folds

DRAWS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=["bfcl_v1"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[30, 100])
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(10)), help="which of the panel's splits")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/selection_trials.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ItembankWarning)
    rows: list[dict[str, object]] = []
    for name in arguments.only:
        spec = panel_study(name)
        responses = load_data(spec.data)
        (split,) = (split for split in spec.splits if isinstance(split, RandomShare))
        folds = make_folds(split, responses.models, spec.repeats, spec.seed)
        for fold in (fold for fold in folds if fold.repeats[0] in arguments.splits):
            prepared = prepare_fold(spec, responses, fold)
            for n_items in arguments.sizes:
                rows += ({"data": name, "split": fold.repeats[0], **row} for row in tried(prepared, n_items))
            pl.DataFrame(rows).write_parquet(arguments.output)
            print(name, fold.repeats[0], flush=True)
    show(pl.DataFrame(rows))


def tried(prepared: PreparedFold, n_items: int) -> Iterator[dict[str, object]]:
    """Yield trial and true error of each way of choosing, in points, with the trial's difference from the first way."""
    bank, new = prepared.bank, prepared.new
    found: list[Tried] = []
    rows = []
    for spec in CANDIDATES:
        for draw in range(DRAWS if isinstance(spec, Stratified) else 1):
            one = Tried(recipe := Recipe(spec, n_items, False, ()), errors_of(bank, recipe, draw))
            found += [one] if draw == 0 else []
            chosen = select_by_recipe(bank, recipe, draw)
            answers = new.take(items=new.item_indices(chosen.item_ids))
            value = estimate(bank, answers, selection=chosen, method="stacked").value[:, -1]
            difference = one.errors - found[0].errors
            known = difference[~np.isnan(difference)]
            rows.append(
                {
                    "items": n_items,
                    "way": one.label,
                    "draw": draw,
                    "trial": 100.0 * one.error,
                    "error": 100.0 * float(np.abs(value - prepared.truth[:, -1]).mean()),
                    "trial_se": 100.0 * float(known.std(ddof=1) / np.sqrt(known.size)),
                }
            )
    taken = best_of(found).label
    yield from ({**row, "is_taken": row["way"] == taken and row["draw"] == 0} for row in rows)


def show(table: pl.DataFrame) -> None:
    """Print the means over splits, what `auto` gained, and how trials and truth go together."""
    keys = ["data", "items"]
    means = table.group_by([*keys, "way", "draw"]).agg(
        pl.col("trial", "error", "trial_se").mean(), taken=pl.col("is_taken").sum()
    )
    usual = table.filter(pl.col("way") == table["way"][0]).select(*keys, "split", usual_trial="trial", usual="error")
    others = table.filter(pl.col("draw") == 0, pl.col("way") != table["way"][0]).join(usual, on=[*keys, "split"])
    others = others.with_columns(d_trial=pl.col("trial") - pl.col("usual_trial"), d=pl.col("error") - pl.col("usual"))
    by_taking = table.filter("is_taken").join(usual, on=[*keys, "split"]).group_by(keys)
    with pl.Config(tbl_rows=-1, float_precision=2, tbl_width_chars=120):
        print(means.sort(*keys, "way", "draw"))
        print(by_taking.agg(auto=pl.col("error").mean(), always_the_first=pl.col("usual").mean()))
        print(others.group_by(keys).agg(correlation=pl.corr("d_trial", "d")))


if __name__ == "__main__":
    main()
