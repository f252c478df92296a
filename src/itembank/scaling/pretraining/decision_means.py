"""Decision accuracies averaged over splits of the recipes, and over scenarios."""

from collections.abc import Sequence

import polars as pl


def mean_over_splits(decisions: pl.DataFrame, by: Sequence[str] = ("scenario", "law")) -> pl.DataFrame:
    """Mean decision accuracy over splits, for each share of the target's compute, grouped by names of columns.

    Shares differ a little from split to split: the k-th of each split go together.

    Parameters
    ----------
    decisions : table
        As `decision_curves` returns it.
    by : names of columns

    Returns
    -------
    table
        Columns `by`, `share_of_target`, `decision_accuracy`, `n`.
    """
    share, accuracy = pl.col("share_of_target"), pl.col("decision_accuracy")
    place = share.rank("min").over("split", "scenario", "law")
    known = accuracy.filter(accuracy.is_not_nan()).mean().fill_null(float("nan"))
    groups = decisions.with_columns(place=place).group_by(*by, "place", maintain_order=True)
    return groups.agg(share.log().mean().exp(), decision_accuracy=known, n=pl.len()).drop("place")


def mean_decisions(decisions: pl.DataFrame) -> pl.DataFrame:
    """Mean decision accuracy over scenarios by law and share of the target's compute, which rises with `place`.

    Returns
    -------
    table
        Columns `law`, `place`, `share`, `mean`, `standard_error` (over scenarios; NaN for a single one), `n`
        (scenarios).
    """
    accuracy = pl.col("decision_accuracy")
    known = decisions.filter(accuracy.is_not_nan() & accuracy.is_not_null())
    place = pl.col("share_of_target").rank("dense").over("scenario", "law")
    return (
        known.with_columns(place=place)
        .group_by("law", "place", maintain_order=True)
        .agg(
            share=pl.col("share_of_target").log().mean().exp(),
            mean=accuracy.mean(),
            standard_error=(accuracy.std() / pl.len().sqrt()).fill_null(float("nan")),
            n=pl.len(),
        )
        .sort("place", maintain_order=True)
    )
