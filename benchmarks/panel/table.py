"""One row for each study, split and number of items: the default against IRT++ and the best published method."""

import numpy as np
import polars as pl

from itembank.studies.ratios import error_ratios

DEFAULT = ("auto", "auto")
IRT = ("anchor-irt", "gp-irt")
PUBLISHED = (
    IRT,
    ("anchor-irt", "p-irt"),
    ("anchor-irt", "weighted"),
    ("anchor-correctness", "gp-irt"),
    ("anchor-correctness", "weighted"),
    ("stratified", "gp-irt"),
    ("stratified", "weighted"),
    ("stratified", "ridge"),
    ("disagreement", "knn"),
    ("disagreement", "random-forest"),
    ("information", "metabench"),
)
"""Selections and estimates of tinyBenchmarks, ridge regression of WILD, DISCO and metabench."""
NAMES = {
    "openllm1_core": "Open LLM v1",
    "swebench_verified": "SWE-bench Verified",
    "bfcl_v1": "BFCL",
    "alpacaeval2": "AlpacaEval",
    "mmlu_pro": "MMLU-Pro",
}
"""What tables call the sets."""


def cells(name: str, estimates: pl.DataFrame, summary: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each split and number of items of a study."""
    overall = summary.filter(pl.col("target") == "overall")
    rows = []
    for split, budget in overall.select("split", "budget").unique(maintain_order=True).iter_rows():
        own = overall.filter((pl.col("split") == split) & (pl.col("budget") == budget))
        ours, theirs = _one(own, DEFAULT), _one(own, IRT)
        ran = set(own.select("selector", "estimator").iter_rows())
        published = [_one(own, pair) for pair in PUBLISHED if pair in ran]
        best = min(published, key=lambda row: row["mae"])
        to_irt = _ratio(estimates, split, budget, IRT)
        to_best = _ratio(estimates, split, budget, (best["selector"], best["estimator"]))
        rows.append(
            {
                "study": name,
                "split": split,
                "n_items": int(budget),
                "n_estimates": ours["n_estimates"],
                "auto": 100.0 * ours["mae"],
                "auto_se": 100.0 * ours["mae_se"],
                "irt": 100.0 * theirs["mae"],
                "irt_se": 100.0 * theirs["mae_se"],
                "ratio": to_irt["ratio"],
                "ratio_se": to_irt["ratio_se"],
                "best": f"{best['selector']}, {best['estimator']}",
                "best_mae": 100.0 * best["mae"],
                "versus_best": to_best["ratio"],
                "versus_best_se": to_best["ratio_se"],
                "coverage": ours["coverage"],
                "half_width": 100.0 * ours["half_width"],
                "half_width_over_p95": ours["half_width_over_p95"],
                "spearman": ours["spearman"],
                "best_spearman": max(row["spearman"] for row in published),
            }
        )
    return pl.DataFrame(rows)


def markdown(table: pl.DataFrame) -> str:
    """Return the rows as a Markdown table, with the sums that the goals speak of."""
    lines = [
        "| data | split | items | auto | IRT++ | ratio | best published | coverage | width | Spearman (best) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {NAMES[row['study']]} | {row['split']} | {row['n_items']} | {row['auto']:.2f} ± {row['auto_se']:.2f} "
        f"| {row['irt']:.2f} ± {row['irt_se']:.2f} | {row['ratio']:.2f} ± {row['ratio_se']:.2f} "
        f"| {row['best_mae']:.2f} ({row['best']}) | {row['coverage']:.3f} | {row['half_width_over_p95']:.2f} "
        f"| {row['spearman']:.3f} ({row['best_spearman']:.3f}) |"
        for row in table.iter_rows(named=True)
    ]
    weight = table["n_estimates"].to_numpy()
    coverage = float(np.average(table["coverage"].to_numpy(), weights=weight))
    lines += [
        "",
        f"Geometric mean of the ratios: {_geometric_mean(table['ratio']):.3f} over {table.height} cells; coverage "
        f"{coverage:.3f} over {int(weight.sum())} estimates, {float(table['coverage'].mean()):.3f} over cells.",
    ]
    return "\n".join(lines)


def _geometric_mean(values: pl.Series) -> float:
    return float(np.exp(np.mean(np.log(values.to_numpy()))))


def _one(summary: pl.DataFrame, pair: tuple[str, str]) -> dict:
    selector, estimator = pair
    return summary.filter((pl.col("selector") == selector) & (pl.col("estimator") == estimator)).row(0, named=True)


def _ratio(estimates: pl.DataFrame, split: str, budget: float, reference: tuple[str, str]) -> dict:
    """Ratio of the default's mean absolute error to that of a reference in one cell, and its standard error."""
    cell = estimates.filter((pl.col("target") == "overall") & (pl.col("split") == split) & (pl.col("budget") == budget))
    return _one(error_ratios(cell, *reference), DEFAULT)
