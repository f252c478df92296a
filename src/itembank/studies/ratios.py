"""Errors of every method over those of one method, pair by pair."""

import polars as pl

from itembank.errors import ParameterError, shown
from itembank.studies.metrics import ratio_of_sums
from itembank.studies.summary import CELL

PAIR = ("split", "repeat", "fold", "draw", "budget", "target", "model_id")


def error_ratios(estimates: pl.DataFrame, selector: str, estimator: str) -> pl.DataFrame:
    """Return the ratio of each method's mean absolute error to that of a reference, with its standard error.

    Both errors of a pair are of the same model in the same repeat, fold and draw, so that what made models hard for
    both cancels: the standard error (over repeats) is smaller than those of the two means suggest.

    Parameters
    ----------
    estimates : table
        As `run_study` makes it.
    selector, estimator : str
        Of the reference, by their names in the results.

    Returns
    -------
    table
        One row for each split, selector, estimator, budget and target: `ratio`, `ratio_se`, `n_pairs`.

    Raises
    ------
    ParameterError
        When the study has no such method.
    """
    known = estimates.with_columns(error=(pl.col("estimate") - pl.col("truth")).abs()).filter(
        pl.col("error").is_not_nan()
    )
    reference = known.filter(selector=selector, estimator=estimator).select(*PAIR, reference="error")
    if reference.height == 0:
        methods = [
            f"{one} {other}" for one, other in known.select("selector", "estimator").unique(maintain_order=True).rows()
        ]
        raise ParameterError(
            f"the reference must be a selector and estimator of the study: {shown(methods, len(methods))}; "
            f"got '{selector} {estimator}'."
        )
    pairs = known.join(reference, on=PAIR, how="inner", maintain_order="left")
    sums = pairs.group_by(*CELL, "repeat", maintain_order=True).agg(
        pl.col("error").sum(), pl.col("reference").sum(), n_pairs=pl.len()
    )
    ratios = sums.group_by(CELL, maintain_order=True).agg(
        *ratio_of_sums("error", "reference", "ratio"), pl.col("n_pairs").sum()
    )
    return ratios.sort("target", "budget", maintain_order=True)


def geometric_mean(ratios: pl.DataFrame) -> pl.DataFrame:
    """Return the geometric mean of the ratios of each selector and estimator over splits and budgets, by target."""
    return ratios.group_by("target", "selector", "estimator", maintain_order=True).agg(
        ratio=pl.col("ratio").log().mean().exp(), n_cells=pl.len()
    )
