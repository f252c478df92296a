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
NAMES = {"swebench_bashonly_cost": "SWE-bench, one minimal agent", "openllm1_gsm8k": "GSM8K, Open LLM Leaderboard v1"}
RANDOM = ("stratified", "weighted")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.untouched", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/untouched"))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    lines = [
        "| data | items | auto | IRT++ | stratified random | coverage |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    for name, n_models in MODELS.items():
        spec = StudySpec(
            name,
            splits=(RandomShare(test_share=0.25),),
            selectors=("auto", "anchor-irt", "stratified"),
            estimators=("auto", "gp-irt", "weighted"),
            pairs=(DEFAULT, IRT, RANDOM),
            n_items=(30, 100),
            calibration=CalibrationChoice(n_dims=1),
            repeats=10,
        )
        found = run_study(spec, arguments.output / name, responses=_load(name, n_models), n_jobs=arguments.jobs)
        for n_items in spec.n_items:
            rows = _rows(found.summary.filter(target="overall", budget=n_items))
            cells = [NAMES[name], str(n_items), *(_errors(row) for row in rows), f"{rows[0]['coverage']:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
            ratios.append(rows[0]["mae"] / rows[1]["mae"])
    lines.append(f"\nGeometric mean of auto over IRT++: {float(np.exp(np.mean(np.log(ratios)))):.2f}.")
    (arguments.output / "untouched.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


def _rows(summary: pl.DataFrame) -> list[dict[str, float]]:
    """Rows of the default, IRT++ and random items."""
    return [
        summary.filter(selector=selector, estimator=estimator).row(0, named=True)
        for selector, estimator in (DEFAULT, IRT, RANDOM)
    ]


def _errors(row: dict[str, float]) -> str:
    return f"{100.0 * row['mae']:.2f} ± {100.0 * row['mae_se']:.2f}"


def _load(name: str, n_models: int | None) -> ResponseMatrix:
    responses = read_responses([Path(os.environ["ITEMBANK_SHARED"]) / "data" / name / "responses.parquet"])
    if n_models is None:
        return responses
    whole = np.flatnonzero(responses.observed.mean(axis=1) > 0.999)
    return responses.take(models=np.sort(np.random.default_rng(0).choice(whole, n_models, replace=False)))


if __name__ == "__main__":
    main()
