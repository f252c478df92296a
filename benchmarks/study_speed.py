"""How long a study takes: 10 repeats x 6 selectors x 6 estimators x 4 sizes on 395 models and 1,537 items.

Run with ``ITEMBANK_SHARED=... python -m benchmarks.study_speed``; ``--profile`` also takes one fold apart by cProfile.
"""

import argparse
import cProfile
import os
import pstats
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from itembank.data.readers.read import read_responses
from itembank.data.responses import ResponseMatrix
from itembank.studies.run import run_study
from itembank.studies.specs import CalibrationChoice, StudySpec
from itembank.studies.split_specs import RandomShare
from itembank.studies.splits import make_folds
from itembank.studies.units import run_fold

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
# part of a fold: functions whose time (with all they call) it is, and those in them that are another part's
PARTS = {
    "calibration, with the half-sample fit for gp-IRT's b": ("build_bank",),
    "fits without a fifth of the models each": ("_make_folds",),
    "selections": ("_selection",),
    "selections without a fifth of the models each": ("_chosen_by",),
    "estimates for the models left out": ("_run",),
    "estimates": ("_estimated",),
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
        started, before = time.monotonic(), cpu_seconds()
        result = run_study(spec, arguments.output or Path(folder) / "study", responses=responses, n_jobs=arguments.jobs)
        wall, used = time.monotonic() - started, cpu_seconds() - before
    print(f"{result.estimates.height:,} estimates; {wall:.0f} s, {used:.0f} CPU s, {arguments.jobs} processes")
    for name, seconds in spent(result.estimates).items():
        print(f"{name:12s} {seconds:7.1f} CPU s in the folds")


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


def cpu_seconds() -> float:
    """CPU time of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def spent(estimates: pl.DataFrame) -> dict[str, float]:
    """CPU seconds of calibrations, selections and estimates, each counted once."""
    fold = ["split", "repeat", "fold"]
    chosen = [*fold, "draw", "selector", "budget"]
    keys = {"calibrate": fold, "select": chosen, "estimate": [*chosen, "estimator"]}
    return {name: float(estimates.unique(key)[f"seconds_{name}"].sum()) for name, key in keys.items()}


def profile(spec: StudySpec, responses: ResponseMatrix) -> list[tuple[str, float, int]]:
    """Take one fold apart: name, seconds and calls of each part, and the whole."""
    fold = make_folds(spec.splits[0], responses.models, spec.repeats, spec.seed)[0]
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    run_fold(spec, responses, fold)
    profiler.disable()
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]  # not in typeshed
    # name of a function to (calls, seconds with all it calls)
    found = {key[2]: (value[1], value[3]) for key, value in stats.items() if "itembank" in key[0]}
    seconds = {part: sum(found.get(name, (0, 0.0))[1] for name in names) for part, names in PARTS.items()}
    calls = {part: sum(found.get(name, (0, 0.0))[0] for name in names) for part, names in PARTS.items()}
    seconds["estimates"] -= sum(seconds[part] for part in INSIDE_ESTIMATES)
    whole = found["run_fold"][1]
    rest = whole - sum(seconds.values())
    return [(part, seconds[part], calls[part]) for part in PARTS] + [("the rest", rest, 1), ("whole", whole, 1)]


if __name__ == "__main__":
    main()
