"""From every prediction to curves of error, differences of assessors, and what an error costs.

Standard errors are over partitions: what other divisions of the same models and items would change; those of costs are
by the jackknife.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.numerics.arrays import FloatArray
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.summary import ratio_of_sums

SETS = ("interpolation", "extrapolation")
CELL = ("n_calibration_tasks", "set", "assessor", "budget")


def sum_errors(
    predictions: pl.LazyFrame,  # As those of `PredictionResult`
    runs: pl.LazyFrame,
) -> pl.DataFrame:
    """Sum errors over models and tasks, without reading all predictions at once.

    Returns table: One row a cell and partition: `n_calibration_tasks`, `set`, `assessor`, `budget`, `partition`,
    `total` (of absolute errors), `signed`, `count`, `cost`, `n_items`.
    """
    error = pl.col("prediction").cast(pl.Float64) - pl.col("truth").cast(pl.Float64)
    which = pl.when(pl.col("is_interpolation")).then(pl.lit(SETS[0])).otherwise(pl.lit(SETS[1]))
    cells = ["n_calibration_tasks", "assessor", "budget", "partition"]
    sums = (
        predictions.with_columns(error=error, set=which)
        .filter(pl.col("error").is_not_nan())
        .group_by([*cells, "set"])
        .agg(total=pl.col("error").abs().sum(), signed=pl.col("error").sum(), count=pl.len())
    )
    spent = runs.group_by(cells).agg(cost=pl.col("cost").mean(), n_items=pl.col("n_items").mean())
    order, falls = (*CELL, "partition"), [name == "set" for name in (*CELL, "partition")]
    table = sums.join(spent, on=cells, how="left").collect(engine="streaming").sort(order, descending=falls)
    return table.with_columns(pl.col("assessor").cast(pl.String))


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
    predictions: pl.LazyFrame,  # As `PredictionResult.predictions`
    column: str,  # {'task', 'model_id'}
    pair: tuple[str, str],
    *,
    n_tasks: int,  # Number of calibration tasks, set of tasks, budget
    which: str,
    budget: int,
) -> pl.DataFrame:
    """Compare two assessors task by task or model by model (WILD Figures 12 to 15).

    Returns table: `name`, `first`, `second` (mean absolute errors), `difference` (first less second) and
    `difference_se`, rising by difference.
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


REFERENCE_BUDGETS = (16, 64, 256, 1024)
"""Budgets at which the reference's error is a level that others may reach for less; its largest is another."""


def cost_at(
    mae: FloatArray,  # (n_budgets,): Errors do not rise, costs do not fall
    cost: FloatArray,  # (n_budgets,)
    level: float,
) -> float:
    """Cost at which a falling curve reaches a level, linear in the logarithm of the cost between budgets.

    Returns float: The first cost where the curve starts below the level; NaN where it never falls to it.
    """
    reached = np.flatnonzero(mae <= level)
    if not reached.size:
        return float("nan")
    k = int(reached[0])
    if k == 0:
        return float(cost[0])
    share = (mae[k - 1] - level) / (mae[k - 1] - mae[k])
    return float(np.exp(np.log(cost[k - 1]) + share * (np.log(cost[k]) - np.log(cost[k - 1]))))


def mae_at(mae: FloatArray, cost: FloatArray, amount: float) -> float:
    """Error of a curve at a cost, linear in the logarithm of the cost between budgets; NaN outside them."""
    if not cost[0] <= amount <= cost[-1]:
        return float("nan")
    return float(np.interp(np.log(amount), np.log(cost), mae))


def costs_to_reach(errors: pl.DataFrame, spec: PredictionSpec) -> pl.DataFrame:
    """Return what each assessor spends to reach given errors.

    Levels are those of the study, and the errors that its reference (random items) reaches at some budgets. `ratio`
    compares an assessor that divides by cost with the same one that does not, `ratio_to_reference` any with the
    reference. Curves of error are made to fall first (`falling`). Standard errors are by leaving out one partition
    after the other (jackknife), with the level found anew.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `level` (its name), `mae`, `assessor`, `cost`, `cost_se`, `ratio`, `ratio_se`,
        `ratio_to_reference`, `ratio_to_reference_se`; NaN where a level is not reached. Empty without costs.
    """
    numbers = ("cost", "cost_se", "ratio", "ratio_se", "ratio_to_reference", "ratio_to_reference_se")
    schema = {
        "n_calibration_tasks": pl.Int32,
        "set": pl.String,
        "level": pl.String,
        "mae": pl.Float64,
        "assessor": pl.String,
        **dict.fromkeys(numbers, pl.Float64),
    }
    rows = []
    for key, whole, left_out, budgets in _panels(errors, spec) if spec.cost else ():
        levels: list[tuple[str, Callable[[Points], float]]] = [
            (f"{100.0 * level:g} points", partial(_fixed_level, level)) for level in spec.levels
        ]
        for budget, place in budgets:
            levels.append((f"reference at {budget}", partial(_level_of, spec.reference_name, place)))
        for label, level_of in levels:
            for one in spec.assessors:
                reference = "" if one.name == spec.reference_name else spec.reference_name
                pairs = [
                    _with_error(whole, left_out, partial(_cost_of, level_of, one.name, other))
                    for other in (None, _plain_twin(spec, one), reference)
                ]
                rows.append((*key, label, level_of(whole), one.name, *(number for pair in pairs for number in pair)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def errors_at_cost(errors: pl.DataFrame, spec: PredictionSpec) -> pl.DataFrame:
    """Return each assessor's error at what the reference spends at some budgets.

    Returns
    -------
    table
        `n_calibration_tasks`, `set`, `reference_budget`, `cost`, `assessor`, `mae`, `mae_se`; NaN where an assessor's
        budgets do not span the cost. Empty without costs.
    """
    schema = {
        "n_calibration_tasks": pl.Int32,
        "set": pl.String,
        "reference_budget": pl.Int32,
        "cost": pl.Float64,
        "assessor": pl.String,
        "mae": pl.Float64,
        "mae_se": pl.Float64,
    }
    rows = []
    for key, whole, left_out, budgets in _panels(errors, spec) if spec.cost else ():
        for budget, place in budgets:
            for one in spec.assessors:

                def number(points: Points, name: str = one.name, place: int = place) -> float:
                    return mae_at(*points[name], float(points[spec.reference_name][1][place]))

                cost = float(whole[spec.reference_name][1][place])
                rows.append((*key, budget, cost, one.name, *_with_error(whole, left_out, number)))
    return pl.DataFrame(rows, schema=schema, orient="row")


Points: TypeAlias = dict[str, tuple[FloatArray, FloatArray]]
"""Error and cost at each budget, by assessor."""


Panel: TypeAlias = tuple[tuple[Any, ...], Points, list[Points], list[tuple[int, int]]]


def _panels(errors: pl.DataFrame, spec: PredictionSpec) -> Iterator[Panel]:
    """Yield the curves of all assessors for each number of calibration tasks and set, which are its key.

    Yields key, whole, left_out, budgets: Curves of all partitions, and without one after the other (none where there is
    one); budgets of the reference, each with its place on the reference's curve.
    """
    for key, part in errors.group_by("n_calibration_tasks", "set", maintain_order=True):
        sums = {assessor.name: _sums(part.filter(pl.col("assessor") == assessor.name)) for assessor in spec.assessors}
        every = part.filter(pl.col("assessor") == spec.reference_name)["budget"].unique().sort().to_list()
        chosen = [(n, place) for place, n in enumerate(every) if n in REFERENCE_BUDGETS or n == every[-1]]
        n_partitions = sums[spec.reference_name].shape[1]
        left_out = [
            _points({name: np.delete(one, partition, axis=1) for name, one in sums.items()})
            for partition in range(n_partitions if n_partitions > 1 else 0)
        ]
        yield key, _points(sums), left_out, chosen


def _sums(part: pl.DataFrame) -> FloatArray:
    """Errors, their number and the cost of one assessor, (3, n_partitions, n_budgets); NaN where it has no budget."""
    partitions, row = np.unique(part["partition"].to_numpy(), return_inverse=True)
    budgets, column = np.unique(part["budget"].to_numpy(), return_inverse=True)
    sums = np.full((3, partitions.size, budgets.size), np.nan)
    sums[:, row, column] = part.select("total", "count", "cost").to_numpy().T
    return sums


def _points(sums: Mapping[str, FloatArray]) -> Points:
    return {
        name: (falling(np.nansum(total, axis=0) / np.nansum(count, axis=0)), np.nanmean(cost, axis=0))
        for name, (total, count, cost) in sums.items()
    }


def falling(mae: FloatArray) -> FloatArray:
    """Closest curve that never rises, (n_budgets,), by isotonic regression.

    The error of a few items goes up and down by chance; without this, one lucky first item would have reached what
    takes dozens to keep.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 (tables of studies load this module, and fit nothing)

    result: FloatArray = isotonic_regression(mae, increasing=False).x
    return result


def _fixed_level(level: float, _: Points) -> float:
    return level


def _level_of(name: str, place: int, points: Points) -> float:
    return float(points[name][0][place])


def _cost_of(level_of: Callable[[Points], float], name: str, other: str | None, points: Points) -> float:
    """Cost of reaching a level, or its ratio to that of another assessor; NaN where there is no other."""
    if other == "":
        return float("nan")
    level = level_of(points)
    cost = cost_at(*points[name], level)
    return cost if other is None else cost / cost_at(*points[other], level)


def _with_error(whole: Points, left_out: Sequence[Points], number: Callable[[Points], float]) -> tuple[float, float]:
    """Return a number made of curves, with its standard error by the jackknife over partitions."""
    values = np.array([number(points) for points in left_out])
    error = float(np.sqrt((values.size - 1) * np.var(values))) if values.size else float("nan")
    return number(whole), error


def _plain_twin(spec: PredictionSpec, assessor: Assessor) -> str:
    """Name of the assessor that differs only in not dividing by cost; empty for none."""
    if not assessor.per_cost:
        return ""
    plain = replace(assessor, per_cost=False, name="")
    return next((one.name for one in spec.assessors if replace(one, name="") == plain), "")
