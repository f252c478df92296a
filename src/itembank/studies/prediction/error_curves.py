"""From every prediction to curves of error, and differences of assessors.

Standard errors are over partitions: what other divisions of the same models and items would change.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.studies.metrics import clustered_ratio

SETS = ("interpolation", "extrapolation")
CELL = ("n_calibration_tasks", "set", "assessor", "budget")


@dataclass(frozen=True, slots=True)
class Errors:
    """Sums over models and tasks, one row a cell and partition.

    Attributes
    ----------
    table : table
        `n_calibration_tasks`, `set`, `assessor`, `budget`, `partition`, `total` (of absolute errors), `signed`,
        `count`, `cost`, `n_items`.
    """

    table: pl.DataFrame

    @classmethod
    def of(cls, predictions: pl.LazyFrame, runs: pl.LazyFrame) -> Self:
        """Sum over models and tasks, without reading all predictions at once."""
        error = pl.col("prediction").cast(pl.Float64) - pl.col("truth").cast(pl.Float64)
        cells = ["n_calibration_tasks", "assessor", "budget", "partition"]
        sums = (
            predictions.with_columns(error=error, set=set_of("is_interpolation"))
            .filter(pl.col("error").is_not_nan())
            .group_by([*cells, "set"])
            .agg(total=pl.col("error").abs().sum(), signed=pl.col("error").sum(), count=pl.len())
        )
        spent = runs.group_by(cells).agg(cost=pl.col("cost").mean(), n_items=pl.col("n_items").mean())
        table = sums.join(spent, on=cells, how="left").collect(engine="streaming")
        return cls(
            table.sort(
                "n_calibration_tasks",
                "set",
                "assessor",
                "budget",
                "partition",
                descending=[False, True, False, False, False],
            )
        )


def set_of(column: str) -> pl.Expr:
    """Name of the set of tasks."""
    return pl.when(pl.col(column)).then(pl.lit(SETS[0])).otherwise(pl.lit(SETS[1]))


def summarise_curves(errors: Errors) -> pl.DataFrame:
    """Return one row for each number of calibration tasks, set, assessor and budget.

    `mae` is the task-level mean absolute error (P2 eq. 11), over tasks, test models and partitions; `bias` the mean of
    prediction less truth; `mae_se`, `bias_se` their standard errors over partitions; `n_items` and `cost` what a test
    model was asked, on average; `n_partitions`.
    """
    rows = []
    for key, cell in errors.table.group_by(CELL, maintain_order=True):
        count, partition = cell["count"].to_numpy().astype(np.float64), cell["partition"].to_numpy()
        row: dict[str, Any] = dict(zip(CELL, key, strict=True))
        row["mae"], row["mae_se"] = clustered_ratio(cell["total"].to_numpy(), count, partition)
        row["bias"], row["bias_se"] = clustered_ratio(cell["signed"].to_numpy(), count, partition)
        rows.append(row | {"n_items": cell["n_items"].mean(), "cost": cell["cost"].mean(), "n_partitions": cell.height})
    return pl.DataFrame(rows, infer_schema_length=None)


def differences(errors: Errors, reference: str) -> pl.DataFrame:
    """Return each assessor's error less that of a reference in the same partitions, with its standard error.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `assessor`, `budget`, `difference`, `difference_se`, `ratio`, `ratio_se`.

    Raises
    ------
    ParameterError
        When the study has no such assessor.
    """
    known = errors.table["assessor"].unique(maintain_order=True).to_list()
    if reference not in known:
        raise ParameterError(f"the reference must be one of {shown(known, len(known))}, got {reference!r}.")
    key = ["n_calibration_tasks", "set", "budget", "partition"]
    other = errors.table.filter(pl.col("assessor") == reference).select(*key, reference="total")
    pairs = errors.table.filter(pl.col("assessor") != reference).join(other, on=key, maintain_order="left")
    rows = []
    for cell_key, cell in pairs.group_by(CELL, maintain_order=True):
        total, base = cell["total"].to_numpy(), cell["reference"].to_numpy()
        count, partition = cell["count"].to_numpy().astype(np.float64), cell["partition"].to_numpy()
        row: dict[str, Any] = dict(zip(CELL, cell_key, strict=True))
        row["difference"], row["difference_se"] = clustered_ratio(total - base, count, partition)
        row["ratio"], row["ratio_se"] = clustered_ratio(total, base, partition)
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def errors_by(
    predictions: pl.LazyFrame, column: str, pair: tuple[str, str], *, n_tasks: int, which: str, budget: int
) -> pl.DataFrame:
    """Compare two assessors task by task or model by model (P2 Figures 12 to 15).

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
    rows = []
    for (name,), part in both.group_by("name", maintain_order=True):
        total, other = part["total"].to_numpy(), part["total_second"].to_numpy()
        count, partition = part["count"].to_numpy().astype(np.float64), part["partition"].to_numpy()
        difference, difference_se = clustered_ratio(total - other, count, partition)
        maes = [clustered_ratio(one, count, partition)[0] for one in (total, other)]
        rows.append((name, *maes, difference, difference_se))
    names = ("name", "first", "second", "difference", "difference_se")
    schema = {name: pl.String if name == "name" else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("difference", "name")
