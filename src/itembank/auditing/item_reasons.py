"""From evidence to reasons: which items are flagged for what, and a sentence on each."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.item_audit_names import REASONS, SAME_FOR_ALL
from itembank.auditing.item_evidence import ItemEvidence
from itembank.auditing.item_statistics import ItemStatistics
from itembank.numerics.arrays import BoolArray, FloatArray

TWENTY_TIMES = float(np.log(20.0))
"""Another explanation must be so much likelier, or odds so much lower than is usual, for a flag."""
NEGATIVE = 2.0
"""An item-rest correlation of -2 / sqrt(n_models) is enough by itself; half of that with a likelihood ratio."""
LIKELY = 0.5
"""Probability of a defect from which the best models' failure is more than a hard item."""
LEAST_BEST = 3
"""Best models that must all fail."""


def flags(statistics: ItemStatistics, evidence: ItemEvidence, probability: FloatArray) -> dict[str, BoolArray]:
    """Which items have each of the reasons that the answers alone give, (n_items,) each.

    Parameters
    ----------
    statistics : ItemStatistics
    evidence : ItemEvidence
    probability : (n_items,)
        Of a defect.
    """
    n, mean = statistics.n_models, np.nan_to_num(statistics.mean, nan=0.5)
    margin = statistics.item_rest * np.sqrt(n)
    wrong_key = ((evidence.key_lr > TWENTY_TIMES) & (margin < -0.5 * NEGATIVE)) | (margin < -NEGATIVE)
    all_fail = (statistics.n_best >= LEAST_BEST) & (statistics.n_best_right == 0.0)
    best_fail = all_fail & (evidence.suspicion > TWENTY_TIMES) & (probability > LIKELY)
    return {
        "wrong-key": wrong_key,
        "best-fail": best_fail & ~wrong_key,
        "noise": (evidence.noise_lr > TWENTY_TIMES) & ~wrong_key & ~best_fail,
        "dead": (n > 0) & (mean == 0.0),
        "saturated": (n > 0) & (mean == 1.0),
    }


def with_reasons(table: pl.DataFrame, flagged: dict[str, BoolArray]) -> pl.DataFrame:
    """Add `reason`, `reasons` and `evidence` to a table of one row an item; dead and saturated ones have no other."""
    varies = ~np.logical_or.reduce([flagged[name] for name in SAME_FOR_ALL])
    found = {name: mark if name in SAME_FOR_ALL else mark & varies for name, mark in flagged.items()}
    marks = [pl.when(pl.Series(found[name])).then(pl.lit(name)) for name in REASONS if name in found]
    reasons = pl.concat_list(marks).list.drop_nulls().list.join(", ")
    table = table.with_columns(reason=pl.coalesce(marks))
    table = table.with_columns(reasons=pl.when(pl.col("reason").is_not_null()).then(reasons))
    words = [None if row["reason"] is None else _sentence(row) for row in table.iter_rows(named=True)]
    return table.with_columns(evidence=pl.Series(words, dtype=pl.String))


def _sentence(row: dict[str, Any]) -> str:
    """Say what speaks against an item."""
    text = "; ".join(SAYS[name](row) for name in row["reasons"].split(", "))
    if row.get("rival") is not None and row["n_rival"] > row["n_key"]:
        text += f"; of the best models {row['n_rival']} answer {row['rival']}, {row['n_key']} the key"
    return text


def _wrong_key(row: dict[str, Any]) -> str:
    times = np.exp(min(row["key_ratio"], 20.0))
    ratio = f"another key explains the answers {times:,.0f} times better, " if times >= 2.0 else ""
    return f"{ratio}item-rest correlation {row['item_rest']:.2f}"


def _best_fail(row: dict[str, Any]) -> str:
    times = np.exp(min(row["suspicion"], 20.0))
    return (
        f"none of the {row['n_best']} best models is right; the odds of a top model are {times:,.0f} times lower than "
        "usual in its group"
    )


def _noise(row: dict[str, Any]) -> str:
    times = np.exp(min(row["noise_ratio"], 20.0))
    return f"guessing explains the answers {times:,.0f} times better than ability, item-rest {row['item_rest']:.2f}"


SAYS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "wrong-key": _wrong_key,
    "best-fail": _best_fail,
    "noise": _noise,
    "duplicate": lambda row: f"models answer it as they answer {row['duplicate_of']}",
    "differs": lambda row: f"{100.0 * row['differs_by']:+.0f} points for {row['differs_for']} at equal ability",
    "dead": lambda row: f"none of {row['n_models']} models is right",
    "saturated": lambda row: f"all {row['n_models']} models are right",
}
"""How each reason is told of an item."""
