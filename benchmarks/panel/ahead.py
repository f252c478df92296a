"""The default on newer and better models than a bank has: ``python -m benchmarks.panel.ahead -o DIR``.

A bank of older models estimates newer ones, by how many months these are ahead, and a bank of three quarters estimates
the best quarter: on the sets that the default was made on, and below on sets that played no part. In one batch, in two
stages and in sessions; beside random items and IRT++. Every fold is kept when it is done, as in the panel.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.kept_parts import kept_folder, run_parts
from benchmarks.panel.table import IRT, NAMES
from benchmarks.panel.work import DEFAULT, SESSION, STAGES, of_method, parts
from benchmarks.resampling import IntervalQuality, mean_error
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import beside, marks, nominal, number, panel, shade
from itembank.responses.responses import ResponseMatrix
from itembank_studies.split_specs import Ahead, Beyond, NamedGroup, SplitSpec
from itembank_studies.study_files import load_data
from itembank_studies.study_specs import CalibrationChoice, DataSpec, StudySpec

HERE = Path(__file__).parent
RANDOM = ("random", "weighted")
METHODS = {"random items": RANDOM, "IRT++": IRT, "default": DEFAULT}
SIZES = (30, 100)
MONTHS = "months to"
POOLED = "all months"


def one_scenario(name: str) -> dict[str, Any]:
    """Take one scenario of a set whose scenarios share items."""
    return {"prefix_scenario": True, "keep_items": {"column": "scenario", "value": name}}


@dataclass(frozen=True, slots=True)
class Case:
    """A set of responses, and who of its models is to be estimated by whom."""

    data: str  # Folder of $ITEMBANK_SHARED/data
    splits: tuple[SplitSpec, ...]
    n_dims: int = 1
    n_models: int | None = None
    """Models drawn from those that are not in the Open LLM Leaderboard's core; by default all."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further choices of `DataSpec`."""


BEST = Beyond(name="best quarter")
CASES = {
    "swebench_verified": Case(
        "swebench_verified",
        (Ahead("submission_date", until="2025-02-28", months=(2, 4, 6, 10), name=MONTHS), BEST),
    ),
    "alpacaeval2": Case(
        "alpacaeval2",
        (Ahead("date_added_to_repo", until="2023-08-31", months=(5, 6, 16), name=MONTHS), BEST),
        options={"drop_models": {"column": "adversarial_or_degenerate", "value": True}},
    ),
    "openllm1_core": Case(
        "openllm1_core",
        (
            Ahead("first_seen_in_scrape", until="2024-04-30", name="newest"),
            NamedGroup("family", ("llama3",), "Llama 3"),
            BEST,
        ),
        n_dims=10,
    ),
    "mmlu_pro": Case(
        "mmlu-pro",
        (BEST,),
        options={
            "items": "items.csv",
            "response_column": "response_l3",
            "keep_items": {"column": "in_common_core", "value": True},
        },
    ),
    "bfcl_v1": Case("bfcl_v1", (BEST,)),
    "openllm1_gsm8k": Case(
        "openllm1_gsm8k", (Ahead("first_seen_in_scrape", until="2024-04-30", name="newest"), BEST), n_models=600
    ),
    "lineage": Case(
        "lineage_bench",
        (Ahead("date", until="2025-01-31", name="newest"),),
        options=one_scenario("lineage_8_16_32_64"),
    ),
    "codeexecution": Case("livecodebench", (BEST,), options=one_scenario("codeexecution")),
    "testoutput": Case("livecodebench", (BEST,), options=one_scenario("testoutputprediction")),
}
TITLES = {
    **NAMES,
    "lineage": "lineage-bench",
    "codeexecution": "LiveCodeBench, code execution",
    "testoutput": "LiveCodeBench, test outputs",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.ahead", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), help="sets to run")
    parser.add_argument("--only-kept", action="store_true", help="tables of the splits that are done; run nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/ahead"))
    parser.add_argument("--figure", type=Path, help="file of the figure, where it is not the output's")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    found = []
    for name in arguments.only:
        case = CASES[name]
        folder = kept_folder(f"ahead-{name}", [HERE / "work.py"], data=[case.data], settings=[Path(__file__)])
        work = parts(name, spec_of(name), load(case), with_sessions=True)
        found += run_parts(folder, work, jobs=arguments.jobs, only_kept=arguments.only_kept)
    estimates = pooled(pl.concat(found, how="diagonal_relaxed"))
    arguments.output.mkdir(parents=True, exist_ok=True)
    estimates.write_parquet(arguments.output / "estimates.parquet")
    rows = [row_of(key, rows) for key, rows in estimates.group_by("study", "split", "budget", maintain_order=True)]
    text = markdown(rows)
    (arguments.output / "ahead.md").write_text(text, encoding="utf-8")
    draw(rows, arguments.figure or arguments.output / "ahead.png")
    print(text)


def spec_of(name: str) -> StudySpec:
    """Return the study of a case: random items, and the clusters of IRT++, are drawn ten times."""
    case = CASES[name]
    return StudySpec(
        name,
        splits=case.splits,
        selectors=("auto", "anchor-irt", "random"),
        estimators=("auto", "gp-irt", "weighted"),
        pairs=(DEFAULT, IRT, RANDOM),
        n_items=SIZES,
        calibration=CalibrationChoice(n_dims=case.n_dims),
        repeats=10,
    )


def load(case: Case) -> ResponseMatrix:
    """Read the responses of a case; of one scenario, the models and items that hardly lack any."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / case.data
    files = DataSpec(responses=("responses.parquet",), models="models.csv", folder=folder, **case.options)
    responses = load_data(files)
    if case.n_models is not None:
        core = pl.read_csv(folder.parent / "openllm1_core" / "models.csv", infer_schema_length=None)["model_id"]
        is_other = ~responses.models["model_id"].is_in(core.implode()).to_numpy()
        rows = np.flatnonzero(is_other & (responses.observed.mean(axis=1) > 0.999))
        return responses.take(models=np.sort(np.random.default_rng(0).choice(rows, case.n_models, replace=False)))
    if "keep_items" in case.options and files.prefix_scenario:
        responses = responses.take(models=np.flatnonzero(responses.observed.mean(axis=1) > 0.99))
        return responses.take(items=np.flatnonzero(responses.observed.mean(axis=0) > 0.99))
    return responses


def pooled(estimates: pl.DataFrame) -> pl.DataFrame:
    """Name months by those that a split spans, and add all months of a set as a split of their own."""
    split = pl.col("split")
    for case in CASES.values():
        months = [0, *(month for one in case.splits if isinstance(one, Ahead) for month in one.months)]
        for first, last in pairwise(months):
            words = f"months {first + 1} to {last}" if last > first + 1 else f"month {last}"
            split = (
                pl.when((pl.col("study") == case.data) & (pl.col("split") == f"{MONTHS} {last}"))
                .then(pl.lit(words))
                .otherwise(split)
            )
    by_month = estimates.filter(pl.col("split").str.starts_with(MONTHS))
    return pl.concat([estimates.with_columns(split=split), by_month.with_columns(split=pl.lit(POOLED))])


def row_of(key: tuple[Any, ...], rows: pl.DataFrame) -> dict[str, Any]:
    """Measure all ways in a split with a number of items."""
    default = of_method(rows, DEFAULT).unique(["model_id", "split", "estimate"], maintain_order=True)
    found = {"batch": default, "stages": of_method(rows, STAGES), "session": of_method(rows, SESSION)}
    return {
        "study": key[0],
        "split": key[1],
        "budget": key[2],
        "n_past": int(default["n_calibration"].max()),
        "errors": {name: mean_error(of_method(rows, method)) for name, method in METHODS.items()},
        "bias": 100.0 * float((default["estimate"] - default["truth"]).mean()),
        **{name: IntervalQuality.of(one) for name, one in found.items()},
    }


def markdown(records: list[dict[str, Any]]) -> str:
    """Return a table: errors in points, with their standard error over models, and how intervals of the default did."""
    lines = [
        "| data | models ahead | past | new | items | random | IRT++ | default | bias | coverage | half-width "
        "| two stages | coverage | session | coverage |",
        f"|{'---|' * 15}",
    ]
    for row in sorted(records, key=lambda row: (list(TITLES).index(row["study"]), row["split"] == BEST.name)):
        batch, stages, session = row["batch"], row["stages"], row["session"]
        cells = [
            TITLES[row["study"]],
            row["split"],
            f"{row['n_past']}",
            f"{batch.n_models}",
            f"{row['budget']:.0f}",
            *(f"{error.value:.1f} ± {error.error:.1f}" for error in row["errors"].values()),
            f"{row['bias']:+.1f}",
            f"{batch.coverage:.2f}",
            f"{batch.half_width:.1f}",
            *(f"{one.error:.1f} | {one.coverage:.2f}" for one in (stages, session)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    own = [row["batch"] for row in records if row["split"] != POOLED]
    n_estimates = sum(one.n_estimates for one in own)
    held = sum(one.coverage * one.n_estimates for one in own) / n_estimates
    return "\n".join([*lines, "", f"95 % intervals of the default held for {held:.3f} of {n_estimates:,} estimates."])


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Write a figure as a PNG file: errors of three ways in each split, a panel a number of items."""
    own = [row for row in records if row["split"] != POOLED]
    names = list(dict.fromkeys(f"{TITLES[row['study']]}, {row['split']}" for row in own))
    rows = [
        {
            "models": f"{TITLES[row['study']]}, {row['split']}",
            "method": method,
            "error": error.value,
            "items": row["budget"],
        }
        for row in own
        for method, error in row["errors"].items()
    ]
    datas = [
        Data(f"items_{size}", {name: [row[name] for row in rows if row["items"] == size] for name in rows[0]})
        for size in SIZES
    ]
    color = shade("method", dict(zip(METHODS, ("@soft", "@other", "@main"), strict=True)))
    parts_of = [
        panel(
            230,
            19 * len(names),
            marks(
                "point",
                number("error", f"Mean error with {size} items (points)", zero=True),
                nominal("models", names, labelLimit=300, grid=True, labels=size == SIZES[0]),
                color=color,
                filled=True,
                size=60,
                opacity=0.9,
            ),
            data=f"items_{size}",
        )
        for size in SIZES
    ]
    words = "Errors for models that are newer, or better, than all of the bank's"
    Chart(words, beside(*parts_of), tuple(datas), f"{words}.", note="A row: benchmark, and which models are new.").save(
        path
    )


if __name__ == "__main__":
    main()
