"""One row for each study, split and number of items: the default against IRT++ and the best published method."""

import numpy as np
import polars as pl

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
"""Selections and estimates of P1, ridge regression of P2, DISCO and metabench."""


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
        ratio, ratio_se = _ratio(estimates, split, budget, DEFAULT, IRT)
        versus_best, versus_best_se = _ratio(estimates, split, budget, DEFAULT, (best["selector"], best["estimator"]))
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
                "ratio": ratio,
                "ratio_se": ratio_se,
                "best": f"{best['selector']}, {best['estimator']}",
                "best_mae": 100.0 * best["mae"],
                "versus_best": versus_best,
                "versus_best_se": versus_best_se,
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
        f"| {row['study']} | {row['split']} | {row['n_items']} | {row['auto']:.2f} ± {row['auto_se']:.2f} "
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
        "",
    ]
    return "\n".join(lines)


def _geometric_mean(values: pl.Series) -> float:
    return float(np.exp(np.mean(np.log(values.to_numpy()))))


def _one(summary: pl.DataFrame, pair: tuple[str, str]) -> dict:
    selector, estimator = pair
    return summary.filter((pl.col("selector") == selector) & (pl.col("estimator") == estimator)).row(0, named=True)


def _ratio(
    estimates: pl.DataFrame, split: str, budget: float, ours: tuple[str, str], theirs: tuple[str, str]
) -> tuple[float, float]:
    """Ratio of mean absolute errors, and its standard error over repeats (of paired differences)."""
    one, other = (_by_repeat(estimates, split, budget, pair) for pair in (ours, theirs))
    ratio = one.mean() / other.mean()
    spread = np.std(one - ratio * other, ddof=1) / np.sqrt(one.size) if one.size > 1 else float("nan")
    return float(ratio), float(spread / other.mean())


def _by_repeat(estimates: pl.DataFrame, split: str, budget: float, pair: tuple[str, str]) -> np.ndarray:
    selector, estimator = pair
    own = estimates.filter(
        (pl.col("target") == "overall")
        & (pl.col("split") == split)
        & (pl.col("budget") == budget)
        & (pl.col("selector") == selector)
        & (pl.col("estimator") == estimator)
    )
    error = own.with_columns(error=(pl.col("estimate") - pl.col("truth")).abs()).filter(pl.col("error").is_finite())
    return error.group_by("repeat").agg(pl.col("error").mean()).sort("repeat")["error"].to_numpy()
