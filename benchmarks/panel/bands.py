"""How the default's intervals hold, by what a user can see: misfit, the estimate, and what kind of model it is."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from benchmarks.panel.table import CELL, NAMES
from benchmarks.panel.work import DEFAULT, of_method
from benchmarks.resampling import IntervalQuality
from itembank.estimation.estimates import FLAGGED

MISFIT = (0.7, 1.3, 1.8, 2.5)
DECILES = 10
FAMILY = {
    "openllm1_core": "family",
    "openllm1_gsm8k": "family",
    "alpacaeval2": "family",
    "mmlu_pro": "family",
    "bfcl_v1": "mode",
}
"""Columns of the models' tables that say what kind a model is; SWE-bench's agents have none."""
FEWEST_OF_FAMILY = 5
OTHERS = "others"


def default_estimates(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the default's overall scores, those that repeats of a method without chance gave again left out."""
    return of_method(estimates, DEFAULT).unique([*CELL, "model_id", "estimate", "low", "high"], maintain_order=True)


def markdown(default: pl.DataFrame, families: Mapping[str, Mapping[str, str]]) -> str:
    """Return tables of intervals by misfit, whether a model was flagged, decile of the estimate, and family.

    Parameters
    ----------
    default : table
        Of `default_estimates`.
    families : mapping of study to mapping of model id to family
    """
    tables = {
        "models": {"all": default},
        "misfit D": by_misfit(default),
        "answered unlike past models": by_flag(default),
        "decile of the estimate": by_decile(default),
        "family": by_family(default, families),
    }
    return "\n\n".join(_table(head, groups) for head, groups in tables.items() if groups)


def by_misfit(default: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Divide estimates by the misfit of the model's answers."""
    known = default.filter(pl.col("misfit").is_finite())
    labels = np.array(_labels(MISFIT))
    named = known.with_columns(band=labels[np.digitize(known["misfit"].to_numpy(), MISFIT)])
    return _divided(named, "band", labels.tolist())


def by_flag(default: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Divide estimates by whether `estimate` flags the model."""
    known = default.filter(pl.col("typicality").is_finite())
    flagged = pl.when(pl.col("typicality") < FLAGGED).then(pl.lit("flagged")).otherwise(pl.lit("not flagged"))
    return _divided(known.with_columns(band=flagged), "band", ["not flagged", "flagged"])


def by_decile(default: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Divide estimates by their rank among those of the same study, split and number of items."""
    rank = (pl.col("estimate").rank("ordinal").cast(pl.Int64) - 1) * DECILES // pl.len() + 1
    ranked = default.with_columns(band=rank.over(CELL).cast(pl.String))
    return _divided(ranked, "band", [str(number) for number in range(1, DECILES + 1)])


def by_family(default: pl.DataFrame, families: Mapping[str, Mapping[str, str]]) -> dict[str, pl.DataFrame]:
    """Divide the estimates of each study by the family of the model; those of few models stand together."""
    found: dict[str, pl.DataFrame] = {}
    for (study,), rows in default.group_by("study", maintain_order=True):
        if study not in families:
            continue
        family = pl.col("model_id").replace_strict(families[study], default=OTHERS)
        named = rows.with_columns(band=family)
        sizes = named.group_by("band").agg(n=pl.col("model_id").n_unique()).filter(pl.col("n") >= FEWEST_OF_FAMILY)
        large = sorted(set(sizes["band"].to_list()) - {OTHERS, "other"})
        named = named.with_columns(band=pl.when(pl.col("band").is_in(large)).then("band").otherwise(pl.lit(OTHERS)))
        found |= {f"{NAMES[study]}: {name}": one for name, one in _divided(named, "band", [*large, OTHERS]).items()}
    return found


def _divided(rows: pl.DataFrame, column: str, order: list[str]) -> dict[str, pl.DataFrame]:
    parts = {name: rows.filter(pl.col(column) == name) for name in order}
    return {name: part for name, part in parts.items() if part.height}


def _labels(breaks: tuple[float, ...]) -> list[str]:
    between = [f"{low} to {high}" for low, high in pairwise(breaks)]
    return [f"below {breaks[0]}", *between, f"{breaks[-1]} and more"]


def _table(head: str, groups: Mapping[str, pl.DataFrame]) -> str:
    lines = [f"| {head} | estimates | models | error | coverage | half-width | Winkler |", f"|{'---|' * 7}"]
    for name, rows in groups.items():
        # a model of two leaderboards is two models here
        one = IntervalQuality.of(rows.with_columns(pl.concat_str("study", "model_id", separator="/").alias("model_id")))
        lines.append(
            f"| {name} | {one.n_estimates} | {one.n_models} | {one.error:.2f} "
            f"| {one.coverage:.3f} ({one.low:.2f} to {one.high:.2f}) | {one.half_width:.2f} | {one.winkler:.2f} |"
        )
    return "\n".join(lines)
