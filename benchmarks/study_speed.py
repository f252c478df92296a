"""How long a study takes: 10 repeats x 6 selectors x 6 estimators x 4 sizes on 395 models and 1,537 items.

Run with ``ITEMBANK_SHARED=... python -m benchmarks.study_speed``; ``--profile`` takes one fold apart.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

from itembank.estimation import folds, members_out_of_fold, method_trials
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.studies import fold_runs
from itembank.studies.run import run_study
from itembank.studies.split_specs import RandomShare
from itembank.studies.splits import make_folds
from itembank.studies.study_specs import CalibrationChoice, StudySpec

N_MODELS = 395
SEED = 395
SELECTORS = (
    "random",
    {"method": "stratified", "allocation": "proportional", "name": "stratified"},
    "anchor-correctness",
    "anchor-irt",
    "anchor-latent",
    "v-optimal",
)
ESTIMATORS = ("weighted", "p-irt", "gp-irt", "ridge", "factor", "stacked")
SIZES = (30, 60, 100, 180)
# part of a fold: the function whose time it is, with all that it calls
PARTS = {
    "calibration, with the half-sample fit for gp-IRT's b": (fold_runs, "build_bank"),
    "fits without a fifth of the models each": (folds, "_make_folds"),
    "selections": (fold_runs, "_selection"),
    "selections without a fifth of the models each": (method_trials, "_chosen_by"),
    "estimates for the models left out": (members_out_of_fold, "_estimates"),
    "estimates": (fold_runs, "_estimated"),
}
INSIDE_ESTIMATES = tuple(PARTS)[1:2] + tuple(PARTS)[3:5]


def main() -> None:
    """Run the study and print where its time went."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study_speed", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="take the first fold apart instead of running the study")
    parser.add_argument("-o", "--output", type=Path, help="folder to keep the study in")
    arguments = parser.parse_args()
    spec, responses = study(arguments.repeats), some_models()
    if arguments.profile:
        for name, seconds, calls in profile(spec, responses):
            print(f"| {name} | {calls} | {seconds:.1f} |")
        return
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        result = run_study(spec, arguments.output or Path(folder) / "study", responses=responses, n_jobs=arguments.jobs)
        wall = time.monotonic() - started
    found = spent(result.estimates)
    print(f"{result.estimates.height:,} estimates in {wall:.0f} s by {arguments.jobs} processes")
    print(f"{sum(found.values()):.0f} CPU s in the folds: {', '.join(f'{name} {found[name]:.0f}' for name in found)}")


def some_models() -> ResponseMatrix:
    """Return the responses of a fixed part of the models of the Open LLM Leaderboard."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / "openllm1_core"
    responses = read_responses([folder / "responses.parquet"], items=folder / "items.csv")
    rows = np.random.default_rng(SEED).choice(responses.n_models, N_MODELS, replace=False)
    return responses.take(models=np.sort(rows))


def study(repeats: int) -> StudySpec:
    """Return the study."""
    return StudySpec(
        "speed",
        splits=(RandomShare(0.25),),
        selectors=SELECTORS,
        estimators=ESTIMATORS,
        n_items=SIZES,
        calibration=CalibrationChoice(n_dims=10),
        repeats=repeats,
    )


def spent(estimates: pl.DataFrame) -> dict[str, float]:
    """CPU seconds of calibrations, selections and estimates, each counted once."""
    fold = ["split", "repeat", "fold"]
    chosen = [*fold, "draw", "selector", "budget"]
    keys = {"calibrate": fold, "select": chosen, "estimate": [*chosen, "estimator"]}
    return {name: float(estimates.unique(key)[f"seconds_{name}"].sum()) for name, key in keys.items()}


def profile(spec: StudySpec, responses: ResponseMatrix) -> list[tuple[str, float, int]]:
    """Take one fold apart: name, CPU seconds and calls of each part, and the whole.

    Timed part by part: cProfile makes the loops of k-means look three times as slow as they are.
    """
    fold = make_folds(spec.splits[0], responses.models, spec.repeats, spec.seed)[0]
    taken: dict[str, list[float]] = {part: [] for part in PARTS}
    with ExitStack() as stack:
        for part, (module, name) in PARTS.items():
            stack.enter_context(mock.patch.object(module, name, _timed(getattr(module, name), taken[part])))
        started = time.process_time()
        fold_runs.run_fold(spec, responses, fold)
        whole = time.process_time() - started
    seconds = {part: sum(each) for part, each in taken.items()}
    seconds["estimates"] -= sum(seconds[part] for part in INSIDE_ESTIMATES)
    rest = whole - sum(seconds.values())
    rows = [(part, seconds[part], len(taken[part])) for part in PARTS]
    return [*rows, ("the rest", rest, 1), ("whole", whole, 1)]


def _timed(function: Callable[..., Any], taken: list[float]) -> Callable[..., Any]:
    """Note the CPU seconds of every call."""

    def call(*values: Any, **choices: Any) -> Any:
        started = time.process_time()
        try:
            return function(*values, **choices)
        finally:
            taken.append(time.process_time() - started)

    return call


if __name__ == "__main__":
    main()
