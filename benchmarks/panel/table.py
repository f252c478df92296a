"""One row for each study, split and number of items: the default against IRT++, published methods, and recent ones."""

import polars as pl

from benchmarks.panel.work import DEFAULT, STAGES, of_method
from benchmarks.resampling import IntervalQuality, mean_error
from itembank_studies.summary import summarise

AIPW, QUADRATURE = "aipw", "bayesian-quadrature"
IRT = ("anchor-irt", "gp-irt")
RANDOM_AIPW = ("stratified", AIPW)
QUADRATURES = (QUADRATURE, QUADRATURE)
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
    RANDOM_AIPW,
    QUADRATURES,
)
"""Selections and estimates of tinyBenchmarks, ridge regression of WILD, DISCO, metabench, AIPW and ProEval."""
NAMES = {
    "openllm1_core": "Open LLM v1",
    "swebench_verified": "SWE-bench Verified",
    "bfcl_v1": "BFCL",
    "alpacaeval2": "AlpacaEval",
    "mmlu_pro": "MMLU-Pro",
    "swebench_bashonly_cost": "SWE-bench, one minimal agent",
    "openllm1_gsm8k": "GSM8K, Open LLM Leaderboard v1",
}
"""What tables call the sets."""
CELL = ("study", "split", "budget")


def cells(estimates: pl.DataFrame) -> list[dict[str, object]]:
    """Return one record for each split and number of items of every study; numbers of errors are `Resampled`.

    The same models are drawn again for all numbers of items of a split, and other ones for other splits.
    """
    seeds = {pair: seed for seed, pair in enumerate(estimates.select(CELL[:2]).unique(maintain_order=True).iter_rows())}
    return [
        _cell(dict(zip(CELL, key, strict=True)), rows, seeds[key[:2]])
        for key, rows in estimates.group_by(CELL, maintain_order=True)
    ]


def _cell(place: dict[str, object], rows: pl.DataFrame, seed: int) -> dict[str, object]:
    """Measure every method in a cell."""
    summary = summarise(rows)
    ran = set(rows.select("selector", "estimator").unique().iter_rows())
    errors = {method: mean_error(of_method(rows, method), seed) for method in (*PUBLISHED, DEFAULT) if method in ran}
    best = min((method for method in PUBLISHED if method in errors), key=lambda method: errors[method].value)
    default = _summary_of(summary, DEFAULT)
    record = {
        **place,
        "n_models": of_method(rows, DEFAULT)["model_id"].n_unique(),
        "n_estimates": default["n_estimates"],
        "errors": errors,
        "ratio": errors[DEFAULT] / errors[IRT],
        "best": best,
        "coverage": default["coverage"],
        "half_width": default["half_width"],
        "half_width_over_p95": default["half_width_over_p95"],
        "spearman": default["spearman"],
        "best_spearman": max(_summary_of(summary, method)["spearman"] for method in PUBLISHED if method in ran),
    }
    asked = of_method(rows, STAGES)
    record["stages"] = mean_error(asked, seed) / errors[IRT]
    record["stages_coverage"] = IntervalQuality.of(asked).coverage
    return record


def _summary_of(summary: pl.DataFrame, method: tuple[str, str]) -> dict[str, float]:
    return summary.filter(selector=method[0], estimator=method[1], target="overall").row(0, named=True)


def markdown(records: list[dict[str, object]]) -> str:
    """Return the records as a Markdown table: the default against IRT++ and the best published method."""
    lines = [
        "| data | split | items | auto | IRT++ | ratio | ratio in two stages | best published "
        "| coverage | in two stages | half-width | width | Spearman (best) |",
        f"|{'---|' * 13}",
    ]
    for row in records:
        errors = row["errors"]
        columns = [
            *_named(row),
            f"{errors[DEFAULT]}",
            f"{errors[IRT]}",
            f"{row['ratio']}",
            f"{row['stages']}",
            f"{errors[row['best']].value:.2f} ({', '.join(row['best'])})",
            f"{row['coverage']:.3f}",
            f"{row['stages_coverage']:.3f}",
            f"{100.0 * row['half_width']:.1f}",
            f"{row['half_width_over_p95']:.2f}",
            f"{row['spearman']:.3f} ({row['best_spearman']:.3f})",
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def recent_markdown(records: list[dict[str, object]]) -> str:
    """Return a table of the default against AIPW and Bayesian quadrature."""
    lines = [
        "| data | split | items | auto | random items, AIPW | auto / AIPW | Bayesian quadrature | auto / quadrature |",
        f"|{'---|' * 8}",
    ]
    for row in records:
        errors = row["errors"]
        recent = [errors[method] for method in (RANDOM_AIPW, QUADRATURES)]
        columns = [f"{errors[DEFAULT]}", *(f"{one} | {errors[DEFAULT] / one}" for one in recent)]
        lines.append(f"| {' | '.join([*_named(row), *columns])} |")
    return "\n".join(lines)


def _named(row: dict[str, object]) -> list[str]:
    return [NAMES[row["study"]], row["split"], f"{row['budget']:.0f}"]
