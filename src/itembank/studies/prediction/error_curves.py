"""From every prediction to curves of error, and differences of assessors.

Standard errors are over partitions: what other divisions of the same models and items would change.
"""

import polars as pl

from itembank.errors import ParameterError, shown
from itembank.studies.metrics import ratio_of_sums

SETS = ("interpolation", "extrapolation")
CELL = ("n_calibration_tasks", "set", "assessor", "budget")


def sum_errors(predictions: pl.LazyFrame, runs: pl.LazyFrame) -> pl.DataFrame:
    """Sum errors over models and tasks, without reading all predictions at once.

    Parameters
    ----------
    predictions, runs : table
        As those of `PredictionResult`.

    Returns
    -------
    table
        One row a cell and partition: `n_calibration_tasks`, `set`, `assessor`, `budget`, `partition`, `total` (of
        absolute errors), `signed`, `count`, `cost`, `n_items`.
    """
    error = pl.col("prediction").cast(pl.Float64) - pl.col("truth").cast(pl.Float64)
    cells = ["n_calibration_tasks", "assessor", "budget", "partition"]
    sums = (
        predictions.with_columns(error=error, set=set_of("is_interpolation"))
        .filter(pl.col("error").is_not_nan())
        .group_by([*cells, "set"])
        .agg(total=pl.col("error").abs().sum(), signed=pl.col("error").sum(), count=pl.len())
    )
    spent = runs.group_by(cells).agg(cost=pl.col("cost").mean(), n_items=pl.col("n_items").mean())
    order, falls = (*CELL, "partition"), [name == "set" for name in (*CELL, "partition")]
    table = sums.join(spent, on=cells, how="left").collect(engine="streaming").sort(order, descending=falls)
    return table.with_columns(pl.col("assessor").cast(pl.String))


def set_of(column: str) -> pl.Expr:
    """Name of the set of tasks."""
    return pl.when(pl.col(column)).then(pl.lit(SETS[0])).otherwise(pl.lit(SETS[1]))


def summarise_curves(errors: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each number of calibration tasks, set, assessor and budget.

    `mae` is the task-level mean absolute error (WILD eq. 11), over tasks, test models and partitions; `bias` the mean
    of prediction less truth; `mae_se`, `bias_se` their standard errors over partitions; `n_items` and `cost` what a
    test model was asked, on average; `n_partitions`.

    Parameters
    ----------
    errors : table
        As `sum_errors` returns it.
    """
    return errors.group_by(CELL, maintain_order=True).agg(
        *ratio_of_sums("total", "count", "mae"),
        *ratio_of_sums("signed", "count", "bias"),
        pl.col("n_items").mean(),
        pl.col("cost").mean(),
        n_partitions=pl.len(),
    )


def differences(errors: pl.DataFrame, reference: str) -> pl.DataFrame:
    """Return each assessor's error less that of a reference in the same partitions, with its standard error.

    Parameters
    ----------
    errors : table
        As `sum_errors` returns it.
    reference : str
        Name of an assessor.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `assessor`, `budget`, `difference`, `difference_se`, `ratio`, `ratio_se`.

    Raises
    ------
    ParameterError
        When the study has no such assessor.
    """
    known = errors["assessor"].unique(maintain_order=True).to_list()
    if reference not in known:
        raise ParameterError(f"the reference must be one of {shown(known, len(known))}, got {reference!r}.")
    key = ["n_calibration_tasks", "set", "budget", "partition"]
    base = errors.filter(pl.col("assessor") == reference).select(*key, reference="total")
    pairs = errors.filter(pl.col("assessor") != reference).join(base, on=key, maintain_order="left")
    return (
        pairs.with_columns(difference=pl.col("total") - pl.col("reference"))
        .group_by(CELL, maintain_order=True)
        .agg(*ratio_of_sums("difference", "count", "difference"), *ratio_of_sums("total", "reference", "ratio"))
    )


def errors_by(
    predictions: pl.LazyFrame, column: str, pair: tuple[str, str], *, n_tasks: int, which: str, budget: int
) -> pl.DataFrame:
    """Compare two assessors task by task or model by model (WILD Figures 12 to 15).

    Parameters
    ----------
    predictions : table
        As `PredictionResult.predictions`.
    column : {'task', 'model_id'}
    pair : two names of assessors
    n_tasks, which, budget
        Number of calibration tasks, set of tasks, budget.

    Returns
    -------
    table
        `name`, `first`, `second` (mean absolute errors), `difference` (first less second) and `difference_se`, rising
        by difference.
    """
    error = (pl.col("prediction").cast(pl.Float64) - pl.col("truth").cast(pl.Float64)).abs()
    chosen = predictions.filter(
        pl.col("assessor").cast(pl.String).is_in(pair),
        pl.col("n_calibration_tasks") == n_tasks,
        pl.col("budget") == budget,
        pl.col("is_interpolation") == (which == SETS[0]),
    ).with_columns(name=pl.col(column).cast(pl.String), error=error, assessor=pl.col("assessor").cast(pl.String))
    sums = (
        chosen.filter(pl.col("error").is_not_nan())
        .group_by("name", "assessor", "partition")
        .agg(total=pl.col("error").sum(), count=pl.len())
        .collect(engine="streaming")
    )
    first, second = (sums.filter(pl.col("assessor") == name).drop("assessor") for name in pair)
    both = first.join(second, on=["name", "partition"], suffix="_second").sort("name", "partition")
    return (
        both.with_columns(difference=pl.col("total") - pl.col("total_second"))
        .group_by("name", maintain_order=True)
        .agg(
            ratio_of_sums("total", "count", "first")[0],
            ratio_of_sums("total_second", "count", "second")[0],
            *ratio_of_sums("difference", "count", "difference"),
        )
        .sort("difference", "name")
    )
