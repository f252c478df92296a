"""The verb `task_overview`: scores, costs and correlations of tasks, from the responses as they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenResponses, as_responses
from itembank.bank.costs import CostUnit, as_cost_unit, response_costs
from itembank.checks import check_fraction
from itembank.errors import DataError, shown
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.responses.responses import column_of
from itembank.tabular import Tabular
from itembank_scaling.transfers import correlations as kernel
from itembank_scaling.transfers.convergent import MINIMUM_MODELS, cluster_order


@dataclass(frozen=True, slots=True, repr=False)
class TaskOverview(Tabular):
    """Tasks side by side, as their raw scores and costs show them.

    Attributes
    ----------
    tasks : tuple of n_tasks names
        Sorted.
    n_items, n_models : (n_tasks,)
        Items of each task, and models that answered some.
    score, spread : (n_tasks,)
        Mean of the models' scores on the task, and their standard deviation.
    cost : (n_tasks,)
        Mean cost of a response, over models and items; NaN where unknown.
    unit : str
        Of the cost; empty without one.
    correlation, lower, upper : (n_tasks, n_tasks)
        Pearson correlation of the scores over models that have both, with its interval by Fisher's z.
    n_models_of_pair : (n_tasks, n_tasks)
    order : (n_tasks,)
        Puts tasks that order models alike side by side: leaves of the average linkage of ``1 - correlation``.
    level : float
    """

    tasks: tuple[str, ...]
    n_items: IntArray
    n_models: IntArray
    score: FloatArray
    spread: FloatArray
    cost: FloatArray
    unit: str
    correlation: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_models_of_pair: IntArray
    order: IntArray
    level: float

    @property
    def cost_ratio(self) -> float:
        """How many times what a response costs in the cheapest task it costs in the dearest; NaN without costs."""
        known = self.cost[self.cost > 0.0]
        return float(known.max() / known.min()) if known.size else float("nan")

    def rows(self) -> list[dict[str, Any]]:
        """One row a task, neighbours alike: items, models, scores, cost, and the task that is most like it."""
        rows = []
        for place in self.order.tolist():
            row: dict[str, Any] = {
                "task": self.tasks[place],
                "n_items": int(self.n_items[place]),
                "n_models": int(self.n_models[place]),
                "score": float(self.score[place]),
                "spread": float(self.spread[place]),
            }
            if self.unit:
                row |= {"cost": float(self.cost[place]), "cost_of_task": float(self.cost[place] * self.n_items[place])}
            others = np.where(np.arange(len(self.tasks)) == place, np.nan, self.correlation[place])
            nearest = None if np.isnan(others).all() else int(np.nanargmax(others))
            row["most_alike"] = None if nearest is None else self.tasks[nearest]
            row["correlation"] = float("nan") if nearest is None else float(others[nearest])
            rows.append(row)
        return rows

    def pairs(self) -> list[dict[str, Any]]:
        """One row a pair of tasks, the most alike first: correlation, its interval, and how many models have both.

        Pairs of an unknown correlation come last.
        """
        i, j = np.triu_indices(len(self.tasks), k=1)
        table = pl.DataFrame(
            {
                "task": [self.tasks[one] for one in i],
                "other_task": [self.tasks[one] for one in j],
                "correlation": self.correlation[i, j],
                "lower": self.lower[i, j],
                "upper": self.upper[i, j],
                "n_models": self.n_models_of_pair[i, j],
            }
        )
        return table[np.argsort(np.nan_to_num(-self.correlation[i, j], nan=2.0), kind="stable")].to_dicts()


def task_overview(
    responses: GivenResponses, *, by: str = "scenario", cost: CostUnit | str | None = None, level: float = 0.95
) -> TaskOverview:
    """Compare tasks by what their responses say: how well models do, at what cost, and who does well on both.

    Scores are means of responses, not abilities (WILD Figures 1, 16 and 17): the errors of short tasks' scores draw
    correlations to zero.

    Parameters
    ----------
    responses : ResponseMatrix, path or paths
    by : str
        Column of the item table that says which task an item belongs to. 'subscenario' has its scenario before
        it if there are several scenarios; items without one belong to no task.
    cost : CostUnit or str, optional
        'tokens', or any cost that the responses record.
    level : float
        Of the intervals of the correlations.

    Raises
    ------
    DataError
        With fewer than four models or two tasks, for a column that is not there, or a cost that was not recorded.

    Examples
    --------
    >>> found = task_overview("responses.parquet", by="subscenario", cost="tokens")  # doctest: +SKIP
    """
    responses = as_responses(responses)
    check_fraction("level", level)
    if responses.n_models < MINIMUM_MODELS:
        raise DataError(f"tasks are compared over at least {MINIMUM_MODELS} models, got {responses.n_models}.")
    names, index = tasks_of(responses.items, by)
    scores = task_means(responses.responses, index, len(names))
    unit = None if cost is None else as_cost_unit(cost)
    costs = (
        np.full_like(scores, np.nan) if unit is None else task_means(response_costs(responses, unit), index, len(names))
    )
    counts, value = kernel.pair_counts(scores), kernel.correlations(scores)
    low, high = kernel.fisher_interval(value, counts, level)
    correlation, lower, upper = (kernel.square(part, len(names)) for part in (value, low, high))
    known = ~np.isnan(scores)
    mean = mean_where_known(scores)
    return TaskOverview(
        names,
        np.bincount(index[index >= 0], minlength=len(names)),
        known.sum(axis=0),
        mean,
        np.sqrt(mean_where_known((scores - mean) ** 2)),
        mean_where_known(costs),
        "" if unit is None else unit.name,
        correlation,
        lower,
        upper,
        kernel.square(counts.astype(np.float64), len(names)).astype(np.int64) + np.diag(known.sum(axis=0) - 1),
        cluster_order(correlation),
        level,
    )


def tasks_of(items: pl.DataFrame, by: str) -> tuple[tuple[str, ...], IntArray]:
    """Names of the tasks that a column tells, and the task of each item, (n_items,), -1 for none."""
    column = column_of(items, by, "the task of an item").cast(pl.String)
    if by == "subscenario" and items["scenario"].n_unique() > 1:
        column = items["scenario"] + "/" + column
    names = tuple(column.drop_nulls().unique().sort().to_list())
    if len(names) < 2:
        raise DataError(
            f"at least two tasks are needed, got {len(names)} in column {by!r}: {shown(names)}. Name another column."
        )
    return names, column.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def task_means(values: FloatArray, index: IntArray, n_tasks: int) -> FloatArray:
    """Mean of each model's values on each task, (n_models, n_tasks); NaN where it has none."""
    result = np.full((values.shape[0], n_tasks), np.nan)
    for task in range(n_tasks):
        result[:, task] = mean_where_known(values[:, index == task], axis=1)
    return result
