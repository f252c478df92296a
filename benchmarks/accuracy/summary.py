"""From single estimates to errors, and to the tables of the report."""

import polars as pl

from benchmarks.accuracy.study import SELECTIONS, SIZES

GROUP = ["data_set", "split", "selection", "estimator", "n_items"]
STRATEGIES = [(selection, estimator) for selection in SELECTIONS for estimator in ("plain", "++")]


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


def markdown(summary: pl.DataFrame) -> str:
    """Three tables: errors of the six strategies, of the other estimators, and rank correlation with coverage."""
    columns = [(selection, estimator) for selection in SELECTIONS for estimator in ("p-IRT", "++ measured factor")]
    return "\n".join(
        [
            "Mean absolute error of the overall score in points, with its standard error over repeats:\n",
            _table(summary, STRATEGIES, _error),
            "\np-IRT alone, and ++ with the anchors' variance factor measured on the calibration models:\n",
            _table(summary, columns, _error),
            "\nSpearman correlation of estimated and true scores over the new models:\n",
            _table(summary, STRATEGIES, lambda row: f"{row['rank_correlation']:.3f}"),
            "\nShare of new models inside their model-based 95 % interval:\n",
            _table(summary, STRATEGIES, lambda row: f"{row['coverage']:.2f}"),
            "",
        ]
    )


def _error(row: dict[str, float]) -> str:
    spread = row["standard_error"]
    return f"{row['error']:.2f}" if spread is None else f"{row['error']:.2f} ± {spread:.2f}"


def _table(summary: pl.DataFrame, columns: list[tuple[str, str]], cell) -> str:
    heads = ["data", "new models", "n", *(f"{a} {b}".removesuffix(" plain") for a, b in columns)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for (data_set, split), part in summary.group_by(["data_set", "split"], maintain_order=True):
        for n_items in SIZES:
            cells = []
            for selection, estimator in columns:
                row = part.filter(
                    (pl.col("n_items") == n_items)
                    & (pl.col("selection") == selection)
                    & (pl.col("estimator") == estimator)
                ).row(0, named=True)
                cells.append(cell(row))
            lines.append(f"| {data_set} | {split} | {n_items} | {' | '.join(cells)} |")
    return "\n".join(lines)
