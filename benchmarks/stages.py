"""Do stages pay? ``ITEMBANK_SHARED=... python -m benchmarks.stages`` (two CPU-hours).

Splits of the panel: one batch by the default, two stages of as many items, IRT++ (anchor-irt and gp-irt), and whether
``stages='auto'`` takes them. Errors, coverage and interval score of 95 % intervals of the overall score of the tested
models. Standard errors resample models. Every fold is kept when it is done (`benchmarks.kept_parts`).
"""

import argparse
from dataclasses import replace
from pathlib import Path

import polars as pl

from benchmarks.kept_parts import run_parts
from benchmarks.panel.studies import open_study
from benchmarks.panel.table import CELL, IRT, NAMES
from benchmarks.panel.work import DEFAULT, STAGES, of_method, parts
from benchmarks.resampling import IntervalQuality, mean_error

PAIRS = (DEFAULT, IRT)
SELECTORS, ESTIMATORS = zip(*PAIRS, strict=True)
REPEATS = {"swebench_verified": 10, "alpacaeval2": 6, "bfcl_v1": 6, "mmlu_pro": 3, "openllm1_core": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(REPEATS), default=list(REPEATS))
    parser.add_argument("--only-kept", action="store_true", help="the table of the folds that are done; run nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/stages"))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    found: list[pl.DataFrame] = []
    for name in arguments.only:
        spec, responses, folder = open_study(name, kept_as="stages")
        spec = replace(spec, selectors=SELECTORS, estimators=ESTIMATORS, pairs=PAIRS, repeats=REPEATS[name])
        found += run_parts(folder, parts(name, spec, responses), jobs=arguments.jobs, only_kept=arguments.only_kept)
    text = markdown(pl.concat(found))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "stages.md").write_text(text, encoding="utf-8")
    print(text)


def markdown(estimates: pl.DataFrame) -> str:
    """Return a row for each set, split and number of items."""
    lines = [
        "| data | split | items | IRT++ | one batch | two stages | two stages / one batch | two stages / IRT++ | taken "
        "| coverage: batch, stages | Winkler: batch, stages |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (study, split, n_items), cell in estimates.group_by(CELL, maintain_order=True):
        lines.append(f"| {NAMES[study]} | {split} | {n_items:.0f} | {' | '.join(columns(cell))} |")
    return "\n".join(lines)


def columns(cell: pl.DataFrame) -> list[str]:
    """Return the numbers of a cell, in points."""
    irt, batch, stages = (mean_error(of_method(cell, method)) for method in (IRT, DEFAULT, STAGES))
    quality = [IntervalQuality.of(of_method(cell, method)) for method in (DEFAULT, STAGES)]
    return [
        *(str(one) for one in (irt, batch, stages, stages / batch, stages / irt)),
        f"{of_method(cell, STAGES)['takes_stages'].mean():.2f}",
        ", ".join(f"{one.coverage:.3f}" for one in quality),
        ", ".join(f"{one.winkler:.2f}" for one in quality),
    ]


if __name__ == "__main__":
    main()
