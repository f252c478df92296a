"""What does it cost to ask whole scenarios? ``ITEMBANK_SHARED=... python -m benchmarks.stage_scenarios`` (20 minutes).

Two stages in which the second one may ask of any scenario, or of at most K (``select --later-scenarios``), and one
batch: errors of the overall score of calibration models left out, each with its own stages, and of how many scenarios
the second stage asked them. Standard errors are of paired differences from two stages without a limit, over models.
Of BFCL the kinds of function calls are the scenarios; of Open LLM v1 200 models are taken.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.bank.banks import Bank
from itembank.errors import ItembankWarning
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import SEED
from itembank.estimation.stages import answered_in_stages
from itembank.planning.auto import errors_of
from itembank.planning.stages import stage_sizes
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import VOptimal

SETS = ("bfcl_v1", "openllm1_core")
SIZES = (30, 90)
MOST_MODELS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ItembankWarning)
    print("| data | items | later scenarios | asked of | error | minus no limit |\n|---|---|---|---|---|---|")
    for name in arguments.only:
        bank = ib.build_bank(loaded(name))
        for n_items in arguments.sizes:
            for line in tried(bank, n_items):
                print(f"| {name} | {n_items} | {line} |", flush=True)


def loaded(name: str) -> ib.ResponseMatrix:
    """Read some models' responses, to items of several scenarios."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / name
    matrix = ib.read_responses(folder / "responses.parquet")
    items = matrix.items
    if items["scenario"].n_unique() == 1:
        about = pl.read_csv(folder / "items.csv", infer_schema_length=None).cast({"item_id": pl.String})
        known = items.select("item_id").join(about, on="item_id", how="left", maintain_order="left")
        items = items.with_columns(scenario=known["subscenario"])
    models = np.sort(np.random.default_rng(14).permutation(matrix.n_models)[:MOST_MODELS])
    return ib.ResponseMatrix.create(matrix.responses[models], models=matrix.models[models.tolist()], items=items)


def tried(bank: Bank, n_items: int) -> Iterator[str]:
    """Yield a row for each limit: how many scenarios were asked of, error, and its difference, in points."""
    sizes = stage_sizes(bank, n_items, 2)
    free = Recipe(VOptimal(), sizes[0], False, (), (), sizes)
    usual = errors_of(bank, free, SEED)
    yield row("any", _scenarios_asked(bank, free), usual, usual)
    half = (bank.targets.n_scenarios + 1) // 2
    for most in sorted({half, 2, 1}, reverse=True):
        limited = replace(free, later_scenarios=most)
        yield row(str(most), _scenarios_asked(bank, limited), errors_of(bank, limited, SEED), usual)
    batch = Recipe(VOptimal(), n_items, False, ())
    yield row("one batch", float(bank.targets.n_scenarios), errors_of(bank, batch, SEED), usual)


def row(name: str, n_scenarios: float, errors: np.ndarray, usual: np.ndarray) -> str:
    """Write a row of the table."""
    difference = 100.0 * (errors - usual)
    difference = difference[~np.isnan(difference)]
    doubt = difference.std(ddof=1) / np.sqrt(difference.size)
    return f"{name} | {n_scenarios:.1f} | {100.0 * np.nanmean(errors):.2f} | {difference.mean():+.2f} ± {doubt:.2f}"


def _scenarios_asked(bank: Bank, recipe: Recipe) -> float:
    """Count the scenarios that the second stage asks of, on average over models."""
    counts = []
    for fold in folds(bank):
        routing = bank.responses.item_indices(select_by_recipe(fold.bank, recipe, SEED).item_ids)
        later = (np.setdiff1d(one.positions, routing) for one in answered_in_stages(bank, fold, recipe))
        counts += [np.unique(bank.targets.scenario_index[items]).size for items in later]
    return float(np.mean(counts))


if __name__ == "__main__":
    main()
