"""The default on two sets that no choice was made on: ``python -m benchmarks.panel.untouched -o DIR``.

SWE-bench run by one minimal agent (24 models), and GSM8K of the Open LLM Leaderboard (300 models drawn from those
that answered everything).
"""

import argparse
import os
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.panel.table import DEFAULT, IRT
from itembank.data.readers.read import read_responses
from itembank.data.responses import ResponseMatrix
from itembank.studies.run import run_study
from itembank.studies.specs import CalibrationChoice, StudySpec
from itembank.studies.split_specs import RandomShare

MODELS = {"swebench_bashonly_cost": None, "openllm1_gsm8k": 300}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.untouched", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/untouched"))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    for name, n_models in MODELS.items():
        spec = StudySpec(
            name,
            splits=(RandomShare(test_share=0.25),),
            selectors=("auto", "anchor-irt", "stratified"),
            estimators=("auto", "gp-irt", "weighted"),
            pairs=(DEFAULT, IRT, ("stratified", "weighted")),
            n_items=(30, 100),
            calibration=CalibrationChoice(n_dims=1),
            repeats=10,
        )
        found = run_study(spec, arguments.output / name, responses=_load(name, n_models), n_jobs=arguments.jobs)
        overall = found.summary.filter(target="overall")
        points = [(pl.col(column) * 100.0).round(2) for column in ("mae", "mae_se")]
        print(name, overall.select("selector", "estimator", "budget", *points, "coverage"))


def _load(name: str, n_models: int | None) -> ResponseMatrix:
    responses = read_responses([Path(os.environ["ITEMBANK_SHARED"]) / "data" / name / "responses.parquet"])
    if n_models is None:
        return responses
    whole = np.flatnonzero(responses.observed.mean(axis=1) > 0.999)
    return responses.take(models=np.sort(np.random.default_rng(0).choice(whole, n_models, replace=False)))


if __name__ == "__main__":
    main()
