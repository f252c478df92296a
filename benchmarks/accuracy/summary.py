"""From single estimates to errors, and to the tables of the report."""

from collections.abc import Callable
from itertools import product
from typing import Any

import polars as pl

from benchmarks.accuracy.data_sets import DIMS
from benchmarks.accuracy.study import P1_SELECTIONS, SIZES

SHORT_NAMES = {
    "openllm1_core": "Open LLM v1",
    "mmlu-pro": "MMLU-Pro",
    "alpacaeval2": "AlpacaEval 2.0",
    "swebench_verified": "SWE-bench Verified",
    "leaderboard2_factors": "Leaderboard v2, simulated",
}
SPLITS = {"random": "random", "folds": "random", "date": "newest", "organisation": "other organisations"}
GROUP = ["data_set", "split", "selection", "estimator", "n_items"]
STRATEGIES = [(selection, estimator) for selection in P1_SELECTIONS for estimator in ("plain", "++")]
VARIANTS = [
    *((selection, "p-IRT") for selection in P1_SELECTIONS),
    *((selection, "++ measured factor") for selection in P1_SELECTIONS[1:]),
    *(("IRT, all items", estimator) for estimator in ("plain", "++")),
]


def summarise(estimates: pl.DataFrame) -> pl.DataFrame:
    """Errors of each strategy: means over models, draws and repeats, with standard errors over repeats."""
    error = (pl.col("estimate") - pl.col("truth")).abs() * 100.0
    covered = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))
    by_draw = estimates.group_by(*GROUP, "repeat", "draw").agg(
        error=error.mean(),
        rank_correlation=pl.corr("truth", "estimate", method="spearman"),
        coverage=covered.mean(),
        sample_share=pl.col("sample_share").mean(),
        n_models=pl.len(),
    )
    by_repeat = by_draw.group_by(*GROUP, "repeat").agg(
        pl.col("error", "rank_correlation", "coverage", "sample_share", "n_models").mean()
    )
    return (
        by_repeat.group_by(GROUP)
        .agg(
            pl.col("error", "rank_correlation", "coverage", "sample_share", "n_models").mean(),
            standard_error=pl.col("error").std() / pl.len().sqrt(),
            n_repeats=pl.len(),
        )
        .sort("data_set", "split", "n_items", "selection", "estimator")
    )


def tables(summary: pl.DataFrame) -> dict[str, str]:
    """Tables of the documents: the six strategies at every n; their variants, ranks and coverage at n = 100."""
    return {
        "accuracy-errors": f"{_table(summary, STRATEGIES, _error, SIZES)}\n\n{_dimensions(summary)}",
        "accuracy-variants": _table(summary, VARIANTS, _error, (100,)),
        "accuracy-ranks": _table(summary, STRATEGIES, lambda row: f"{row['rank_correlation']:.3f}", (100,)),
        "accuracy-coverage": _table(summary, STRATEGIES, lambda row: f"{row['coverage']:.2f}", (100,)),
    }


def _dimensions(summary: pl.DataFrame) -> str:
    """Say how many abilities the item models had."""
    done = set(summary["data_set"].unique())
    return "Abilities: " + ", ".join(f"{SHORT_NAMES[name]} {DIMS[name]}" for name in SHORT_NAMES if name in done) + "."


def _error(row: dict[str, Any]) -> str:
    spread = row["standard_error"]
    return f"{row['error']:.2f}" if spread is None else f"{row['error']:.2f} ± {spread:.2f}"


def _table(
    summary: pl.DataFrame, columns: list[tuple[str, str]], cell: Callable[[dict[str, Any]], str], sizes: tuple[int, ...]
) -> str:
    several = len(sizes) > 1
    heads = ["benchmark", "new models", *(["n"] if several else []), *(_head(*column) for column in columns)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for data_set, split in _rows(summary):
        part = summary.filter((pl.col("data_set") == data_set) & (pl.col("split") == split))
        for n_items in sizes:
            cells = [cell(_row(part, selection, estimator, n_items)) for selection, estimator in columns]
            first = [SHORT_NAMES[data_set], SPLITS[split], *([str(n_items)] if several else [])]
            lines.append(f"| {' | '.join([*first, *cells])} |")
    return "\n".join(lines)


def _rows(summary: pl.DataFrame) -> list[tuple[str, str]]:
    """Give the data sets and splits that were run, in the order of the report."""
    done = set(summary.select("data_set", "split").unique().iter_rows())
    return [pair for pair in product(SHORT_NAMES, SPLITS) if pair in done]


def _row(part: pl.DataFrame, selection: str, estimator: str, n_items: int) -> dict[str, Any]:
    is_it = (pl.col("selection") == selection) & (pl.col("estimator") == estimator) & (pl.col("n_items") == n_items)
    return part.filter(is_it).row(0, named=True)


def _head(selection: str, estimator: str) -> str:
    return {
        "plain": selection,
        "++": f"{selection}++",
        "p-IRT": f"{selection}, p-IRT",
        "++ measured factor": f"{selection}++, factor measured",
    }[estimator]
