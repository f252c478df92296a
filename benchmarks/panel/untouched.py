"""The default on two sets that no choice was made on: ``python -m benchmarks.panel.untouched -o DIR``.

SWE-bench run by one minimal agent (24 models), and GSM8K of the Open LLM Leaderboard (300 models drawn from those
that answered everything). Every split is kept when it is done, as in the panel, and the tables are the panel's.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.kept_parts import kept_folder, run_parts
from benchmarks.panel.goals import without_goals
from benchmarks.panel.report import report
from benchmarks.panel.table import AIPW, IRT, QUADRATURE, QUADRATURES, RANDOM_AIPW
from benchmarks.panel.work import DEFAULT, parts
from benchmarks.rivals.plug_in import METHODS, check_installed
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank_studies.split_specs import RandomShare
from itembank_studies.study_specs import CalibrationChoice, StudySpec

HERE = Path(__file__).parent
MODELS = {"swebench_bashonly_cost": None, "openllm1_gsm8k": 300}
RANDOM = ("stratified", "weighted")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.untouched", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(MODELS), default=list(MODELS), help="sets to run")
    parser.add_argument("--only-kept", action="store_true", help="tables of the splits that are done; run nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/untouched"))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    check_installed()
    found, models = [], {}
    for name in arguments.only:
        responses = _load(name, MODELS[name])
        folder = kept_folder(f"untouched-{name}", [HERE / "work.py", METHODS], data=[name], settings=[Path(__file__)])
        work = parts(name, spec_of(name), responses)
        found += run_parts(folder, work, jobs=arguments.jobs, only_kept=arguments.only_kept)
        models[name] = responses.models
    print(report("untouched", pl.concat(found), models, arguments.output, goals=without_goals))


def spec_of(name: str) -> StudySpec:
    """Return the study: the default, IRT++, random items, and the methods that came out since."""
    return StudySpec(
        name,
        splits=(RandomShare(test_share=0.25),),
        selectors=("v-optimal", "anchor-irt", "stratified", QUADRATURE),
        estimators=("auto", "gp-irt", "weighted", AIPW, QUADRATURE),
        pairs=(DEFAULT, IRT, RANDOM, RANDOM_AIPW, QUADRATURES),
        n_items=(30, 100),
        calibration=CalibrationChoice(n_dims=1),
        repeats=4,
    )


def _load(name: str, n_models: int | None) -> ResponseMatrix:
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / name
    responses = read_responses([folder / "responses.parquet"], models=folder / "models.csv")
    if n_models is None:
        return responses
    whole = np.flatnonzero(responses.observed.mean(axis=1) > 0.999)
    return responses.take(models=np.sort(np.random.default_rng(0).choice(whole, n_models, replace=False)))


if __name__ == "__main__":
    main()
