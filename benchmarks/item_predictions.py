"""Predicted against observed responses to single items, of models left out (IRSL Figures 4, 9, 16 and 24).

Every benchmark has an item model of its own, 2PL unless told: Beta for probabilities, beta-binomial for counts,
Bernoulli for right and wrong. Models are left out in folds, and half of a model's answers predict the other half
(`itembank study predictions`). With `laws` abilities of the built-in language models' largest sizes are forecast
from the compute of smaller ones instead.

    python -m benchmarks.item_predictions [SET ...] [--item-model 1pl] [-o benchmarks/results/item_predictions]

Sets: bytelms, bytelms-correct, llmonkeys_pythia, livecodebench, alpacaeval2, openllm1_core, laws.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.accuracy import data_sets
from benchmarks.test_time.sets import SOURCES, load_sets
from itembank.calibration.build import build_bank
from itembank.errors import ItembankWarning
from itembank.readers.builtin import load_builtin
from itembank.readers.compute import training_compute
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.scenario_fits import default_spec
from itembank.studies.papers.item_predictions import item_predictions
from itembank.studies.papers.item_predictions_results import ItemPredictions
from itembank.studies.papers.law_predictions import law_predictions

SETS = ("bytelms", "bytelms-correct", "llmonkeys_pythia", "livecodebench", "alpacaeval2", "openllm1_core", "laws")
COLUMNS = {
    "set": "benchmark", "n_models": "models", "n_items": "items", "correlation": "correlation",
    "standard_error": "its standard error", "by_item_means": "by item means", "slope": "slope", "bias": "bias",
    "calibration_error": "calibration error", "by_chance": "by chance",
}  # fmt: skip


def main() -> None:
    arguments = _arguments()
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    rows, bins = [], []
    for name in arguments.sets or SETS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ItembankWarning)
            for label, found in _found(name, folder, arguments.item_model):
                rows += [{"set": label, **row} for row in found.rows()]
                bins += [{"set": label, **row} for row in found.bin_rows()]
                print(_line(rows[-1]), flush=True)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        head = [_cells(list(COLUMNS.values())), "|---" * len(COLUMNS) + "|"]
        table = "\n".join([*head, *map(_line, rows)])
        (arguments.output / "item-predictions.md").write_text(f"{table}\n", encoding="utf-8")
        pl.DataFrame(rows).write_csv(arguments.output / "item-predictions.csv", float_precision=6)
        pl.DataFrame(bins).write_csv(arguments.output / "bins.csv", float_precision=6)


def _found(name: str, folder: Path, item_model: str) -> Iterator[tuple[str, ItemPredictions]]:
    """Predictions of each benchmark of a set."""
    if name == "laws":
        responses = load_builtin("bytelms", response="probability")
        compute = training_compute(responses.models, responses.model_ids)
        yield name, law_predictions(responses, compute, largest_flops=np.unique(compute.flops[compute.is_final])[-2])
        return
    for label, responses in _benchmarks(name, folder):
        spec = replace(default_spec(responses), item_model=item_model)
        yield label, item_predictions(build_bank(responses, spec))


def _benchmarks(name: str, folder: Path) -> Iterator[tuple[str, ResponseMatrix]]:
    """Yield the responses of each benchmark of a set; of language models trained here, those of finished runs."""
    if name in SOURCES:
        yield from ((one.name, one.responses) for one in load_sets(name, folder))
        return
    if name.startswith("bytelms"):
        responses = load_builtin("bytelms", response="correct" if name.endswith("correct") else "probability")
        responses = responses.take(models=np.flatnonzero(responses.models["is_final"].to_numpy()))
    else:
        responses = data_sets.load(name, folder).responses
    scenario = responses.items["scenario"].to_numpy()
    for one in dict.fromkeys(scenario.tolist()):
        yield f"{name}: {one}", responses.take(items=np.flatnonzero(scenario == one))


def _line(row: dict[str, object]) -> str:
    values = [row[name] for name in COLUMNS]
    return _cells([f"{value:.4f}" if isinstance(value, float) else str(value) for value in values])


def _cells(values: list[str]) -> str:
    return f"| {' | '.join(values)} |"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", choices=[[], *SETS])
    parser.add_argument("--item-model", choices=("1pl", "2pl"), default="2pl")
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
