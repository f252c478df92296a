"""Tables of the study."""

import polars as pl

from benchmarks.test_time.sets import NAMES
from benchmarks.test_time.study import METHODS

RUN = ("set", "split", "model_id", "items")
TRADITIONAL, DEFAULT = "plug-in", "irsl"


def summarise(records: pl.DataFrame) -> pl.DataFrame:
    """Mean errors of each method and set; the standard error is over splits, which share models.

    Of -log pass@k only the models are compared for which every method has a value: the plug-in has none for a model
    without a right sample in the budget.
    """
    records = records.with_columns(is_compared=pl.col("log_error").is_finite().all().over(RUN))
    by_split = records.group_by("set", "items", "method", "split").agg(
        pl.col("error", "held", "half_width").mean(),
        pl.col("log_error").filter("is_compared").mean(),
        pl.col("is_compared").mean().alias("share_compared"),
        pl.len().alias("n_models"),
    )
    spread = [(pl.col(name).std() / pl.len().sqrt()).alias(f"{name}_se") for name in ("error", "log_error")]
    means = pl.col("error", "log_error", "held", "half_width", "share_compared", "n_models").mean()
    summary = by_split.group_by("set", "items", "method").agg(means, *spread, pl.len().alias("n_splits"))
    return summary.sort("set", "items", pl.col("method").cast(pl.Enum(METHODS)))


def coverage(records: pl.DataFrame) -> str:
    """Say how often intervals held over all items of a set, ± over splits, and how wide they are."""
    of_splits = records.filter(items="all", method=DEFAULT).group_by("split").agg(pl.col("held", "half_width").mean())
    held, n_splits = of_splits["held"], of_splits.height
    error = float(held.std() or 0.0) / n_splits**0.5
    return f"held {held.mean():.3f} ± {error:.3f}, half-width {100.0 * of_splits['half_width'].mean():.1f} points"


def gaps(records: pl.DataFrame) -> pl.DataFrame:
    """Error of the traditional law less that of the default, for every model of every split (IRSL Figure 8)."""
    wide = records.filter(pl.col("items") == "all").pivot(
        "method", index=["set", "split", "model_id"], values=["error", "log_error"]
    )
    return wide.select(
        "set",
        "split",
        "model_id",
        gap=pl.col(f"error_{TRADITIONAL}") - pl.col(f"error_{DEFAULT}"),
        log_gap=pl.col(f"log_error_{TRADITIONAL}") - pl.col(f"log_error_{DEFAULT}"),
    ).sort("set", "split", "model_id")


def ratios(summary: pl.DataFrame) -> pl.DataFrame:
    """Error of the default over that of the traditional law, by set and items."""
    wide = summary.pivot("method", index=["set", "items"], values=["error", "log_error"])
    return wide.select(
        "set",
        "items",
        ratio=pl.col(f"error_{DEFAULT}") / pl.col(f"error_{TRADITIONAL}"),
        log_ratio=pl.col(f"log_error_{DEFAULT}") / pl.col(f"log_error_{TRADITIONAL}"),
    )


def table(summary: pl.DataFrame) -> str:
    """Return the table of the documents: all items, points of pass@k and of -log pass@k, the least errors in bold."""
    part = summary.filter(pl.col("items") == "all")
    lines = [
        "| set | traditional | Jeffreys | items alike | plug-in | IRSL | its 95 % intervals held | half-width |",
        "|---" * (len(METHODS) + 3) + "|",
    ]
    for name in sorted(part["set"].unique(), key=lambda name: (name not in NAMES, [*NAMES, name].index(name), name)):
        rows = {row["method"]: row for row in part.filter(pl.col("set") == name).to_dicts()}
        least = min(round(row["error"], 4) for row in rows.values())
        cells = [_cell_in_bold(rows[method], least) for method in METHODS]
        default = rows[DEFAULT]
        label = NAMES.get(name, name.replace("bytelms-samples:", "built-in,"))
        lines.append(f"| {label} | {' | '.join(cells)} | {default['held']:.2f} | {100 * default['half_width']:.1f} |")
    found = ratios(part).with_columns(is_public=pl.col("set").is_in(list(NAMES)))
    means = found.group_by("is_public").agg(pl.col("ratio", "log_ratio").log().mean().exp()).sort("is_public")
    for row in means.to_dicts():
        where = "public" if row["is_public"] else "built-in"
        lines.append(
            f"\nGeometric mean of IRSL's error over the traditional law's on the {where} sets: {row['ratio']:.2f} "
            f"(of -log pass@k {row['log_ratio']:.2f})."
        )
    return "\n".join(lines)


def _cell_in_bold(row: dict[str, float], least: float) -> str:
    error, rest = _cell(row).split(" (")
    return f"**{error}** ({rest}" if round(row["error"], 4) <= least else f"{error} ({rest}"


def as_markdown(summary: pl.DataFrame) -> str:
    """One table of errors with the coverage of the default's intervals, and the ratios to the traditional law."""
    lines = []
    for items in ("all", "kept"):
        part = summary.filter(pl.col("items") == items)
        lines += [f"\n{items} items: error of pass@k (of -log pass@k), in hundredths\n"]
        lines += ["| set | " + " | ".join(METHODS) + " | intervals held | half-width |"]
        lines += ["|---|" + "---|" * (len(METHODS) + 2)]
        for name in part["set"].unique(maintain_order=True):
            rows = {row["method"]: row for row in part.filter(pl.col("set") == name).to_dicts()}
            cells = [_cell(rows[method]) for method in METHODS]
            default = rows[DEFAULT]
            cells += [f"{default['held']:.2f}", f"{100 * default['half_width']:.1f}"]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    found = ratios(summary).filter(pl.col("items") == "all")
    geometric = {name: found[name].log().mean() for name in ("ratio", "log_ratio")}
    for row in found.to_dicts():
        lines.append(
            f"\n{row['set']}: error {row['ratio']:.2f} of the traditional law's, of -log {row['log_ratio']:.2f}"
        )
    means = {name: 2.718281828459045**value for name, value in geometric.items() if value is not None}
    lines.append("\ngeometric mean: " + ", ".join(f"{name} {value:.2f}" for name, value in means.items()))
    return "\n".join(lines)


def _cell(row: dict[str, float]) -> str:
    return f"{100 * row['error']:.2f} ± {100 * (row['error_se'] or 0.0):.2f} ({100 * row['log_error']:.1f})"
