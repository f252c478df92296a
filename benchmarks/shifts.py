"""Models unlike those that calibrated: ``python -m benchmarks.shifts -o DIR``.

Runs the studies of benchmarks/studies on specialised models, merges and families, and on prompts as models
(tinyBenchmarks Figures 5, 7 and 15), and writes one table of each: errors of the overall score in points, rank
correlations, and how often the default's 95 % intervals held. A study that was stopped goes on.
"""

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from itembank.readers.read import read_responses
from itembank.responses.response_files import write_responses
from itembank_studies.results import StudyResult
from itembank_studies.run import run_study
from itembank_studies.study_files import load_study

STUDIES = Path(__file__).parent / "studies"
NAMES = ("specialised_openllm1", "prompts_livecodebench", "prompts_bfcl")
METHODS = {
    "random": ("random", "weighted"),
    "correctness": ("anchor-correctness", "weighted"),
    "correctness++": ("anchor-correctness", "gp-irt"),
    "IRT": ("anchor-irt", "weighted"),
    "IRT++": ("anchor-irt", "gp-irt"),
    "default": ("auto", "auto"),
}
"""By the names that tinyBenchmarks gives them."""
PROMPTS = {"codeexecution": "at once", "codeexecution_cot": "step by step"}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shifts", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/shifts"))
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    os.environ["ITEMBANK_PROMPTS"] = str(arguments.output.resolve())
    if "prompts_livecodebench" in arguments.only:
        write_prompts(arguments.output)
    for name in arguments.only:
        result = run_study(load_study(STUDIES / f"{name}.toml"), arguments.output / name, n_jobs=arguments.jobs)
        table = as_table(result, load_study(STUDIES / f"{name}.toml").n_items)
        (arguments.output / f"{name}.md").write_text(table + "\n", encoding="utf-8")
        print(f"\n{name}\n\n{table}", flush=True)


def write_prompts(folder: Path) -> None:
    """Write one row for each model and prompt of LiveCodeBench's code execution, for models that were asked both ways.

    The two prompts are two scenarios there, with the same items. An answer is right where more than half of the ten
    samples are: they hardly differ.
    """
    path = folder / "prompts.parquet"
    if path.exists():
        return
    source = Path(os.environ["ITEMBANK_SHARED"]) / "data" / "livecodebench" / "responses.parquet"
    rows = pl.read_parquet(source).with_columns(pl.col("model_id", "item_id", "scenario").cast(pl.String))
    rows = rows.filter(pl.col("scenario").is_in(list(PROMPTS)))
    both = rows.group_by("model_id").agg(pl.col("scenario").n_unique()).filter(scenario=len(PROMPTS))
    rows = rows.join(both, on="model_id", how="semi").with_columns(prompt=pl.col("scenario").replace(PROMPTS))
    rows = rows.select(
        pl.format("{}, {}", "model_id", "prompt").alias("model_id"),
        "item_id",
        (pl.col("response") > 0.5).cast(pl.Int8).alias("response"),
        llm="model_id",
        prompt="prompt",
    )
    rows.drop("llm", "prompt").write_csv(folder / "prompts.csv")
    rows.select("model_id", "llm", "prompt").unique().sort("model_id").write_csv(folder / "prompt-models.csv")
    write_responses(read_responses(folder / "prompts.csv", models=folder / "prompt-models.csv"), path)


def as_table(result: StudyResult, sizes: Sequence[int]) -> str:
    """Return one row for each split and number of items, as Markdown."""
    columns = (
        "split",
        "calibrated on",
        "tested",
        "items",
        *METHODS,
        "coverage",
        "Spearman, default",
        "Spearman, IRT++",
    )
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    overall = result.summary.filter(target="overall")
    tested = result.estimates.filter(target="overall").group_by("split").agg(pl.col("model_id").n_unique())
    n_tested = dict(tested.iter_rows())
    for split in overall["split"].unique(maintain_order=True):
        for size in sizes:
            rows = overall.filter(split=split, budget=size)
            by_method = {
                name: rows.filter(selector=selector, estimator=estimator).row(0, named=True)
                for name, (selector, estimator) in METHODS.items()
            }
            default, published = by_method["default"], by_method["IRT++"]
            cells = (
                split,
                f"{default['n_calibration']:.0f}",
                str(n_tested[split]),
                str(size),
                *(_error(row) for row in by_method.values()),
                f"{default['coverage']:.2f}",
                *(f"{row['spearman']:.2f}" for row in (default, published)),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _error(row: dict[str, float]) -> str:
    """Mean absolute error in points, with its standard error over repeats, where there are several."""
    error = f"{100.0 * row['mae']:.1f}"
    return error if math.isnan(row["mae_se"]) else f"{error} ± {100.0 * row['mae_se']:.1f}"


if __name__ == "__main__":
    main()
