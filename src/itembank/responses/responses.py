"""`ResponseMatrix`: what every model answered to every item, checked once when it is made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.errors import DataError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.responses.validation import check_counts, check_response_matrix
from itembank.tabular import Compact

DEFAULT_SCENARIO = "all"


@dataclass(frozen=True, slots=True, repr=False)
class ResponseMatrix(Compact):
    """Responses of n_models models to n_items items.

    Make one with `ResponseMatrix.create` or a reader: both check the data and raise `DataError`.

    Attributes
    ----------
    responses : (n_models, n_items)
        Outcome in [0, 1]; NaN where the model was not asked.
    models : table of n_models rows
        Column `model_id` (text), and whatever else is known of each model.
    items : table of n_items rows
        Columns `item_id`, `scenario`, `subscenario` (text; subscenario may be null), and what else is known.
    n_trials : (n_models, n_items) or None
        Repeated attempts behind each response (0 where missing); the response is their mean.
    costs : mapping of name to (n_models, n_items)
        Cost of each response by unit (`input_tokens`, `output_tokens`, `cost_usd`, `seconds`); NaN where unknown.
    """

    responses: FloatArray
    models: pl.DataFrame
    items: pl.DataFrame
    n_trials: IntArray | None = None
    costs: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        responses: FloatArray,
        *,
        model_ids: Sequence[str] | None = None,
        item_ids: Sequence[str] | None = None,
        scenarios: Sequence[str] | None = None,
        models: pl.DataFrame | None = None,
        items: pl.DataFrame | None = None,
        n_trials: IntArray | None = None,
        costs: Mapping[str, FloatArray] | None = None,
    ) -> Self:
        """Build from an array and either id lists or whole tables; ids default to `model-1`, `item-1`, ...

        An array of float32 is kept as it is, for data that fill the memory.

        Raises
        ------
        DataError
            When shapes differ, ids repeat, a response lies outside [0, 1], or has trials that are no whole number of
            at least 1.
        """
        is_single = isinstance(responses, np.ndarray) and responses.dtype == np.float32
        values = responses if is_single else np.asarray(responses, dtype=np.float64)
        if values.ndim != 2:
            raise DataError(f"responses must have two axes (n_models, n_items), got shape {values.shape}.")
        if models is None:
            models = pl.DataFrame({"model_id": _ids(model_ids, values.shape[0], "model")})
        if items is None:
            item_names = _ids(item_ids, values.shape[1], "item")
            names = [DEFAULT_SCENARIO] * len(item_names) if scenarios is None else [str(name) for name in scenarios]
            if len(names) != len(item_names):
                raise DataError(f"scenarios must name one scenario an item: {len(names)} for {len(item_names)} items.")
            items = pl.DataFrame({"item_id": item_names, "scenario": names})
        items = with_scenario_columns(items)
        matrix = cls(values, models, items, n_trials, dict(costs or {}))
        check_response_matrix(matrix.responses, matrix.model_ids, matrix.item_ids, matrix.n_trials, matrix.costs)
        return matrix

    @classmethod
    def from_counts(cls, n_correct: IntArray, n_trials: IntArray, **known: Any) -> Self:
        """Build from counts: the response is n_correct / n_trials, missing where there were no trials.

        Parameters
        ----------
        n_correct, n_trials : (n_models, n_items)
            Whole numbers.
        **known
            What `create` takes beside responses and trials: `model_ids`, `item_ids`, `scenarios`, `models`, `items`,
            `costs`.

        Raises
        ------
        DataError
            When shapes differ, a count is negative or no whole number, or n_correct exceeds n_trials.

        Examples
        --------
        >>> import numpy as np
        >>> from itembank import ResponseMatrix
        >>> ResponseMatrix.from_counts(np.array([[3, 0]]), np.array([[10, 0]])).responses
        array([[0.3, nan]])
        """
        correct, trials = np.asarray(n_correct), np.asarray(n_trials)
        check_counts(correct, trials)
        missing = np.full(trials.shape, np.nan)
        responses = np.divide(correct, trials, out=missing, where=trials > 0)
        return cls.create(responses, n_trials=trials.astype(np.int64), **known)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.models.height

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.items.height

    @property
    def model_ids(self) -> list[str]:
        """Ids of the models, in row order."""
        return self.models["model_id"].to_list()

    @property
    def item_ids(self) -> list[str]:
        """Ids of the items, in column order."""
        return self.items["item_id"].to_list()

    @property
    def observed(self) -> BoolArray:
        """Where a response is present, (n_models, n_items)."""
        return ~np.isnan(self.responses)

    @property
    def is_complete(self) -> bool:
        """Whether every model answered every item."""
        return not bool(np.isnan(self.responses).any())

    @property
    def is_binary(self) -> bool:
        """Whether every response present is 0 or 1."""
        values = self.responses
        return bool(np.all((values == 0.0) | (values == 1.0) | np.isnan(values)))

    def expected_costs(self) -> dict[str, FloatArray]:
        """Mean cost of each item over the models it is known for, by unit, each (n_items,); NaN where unknown."""
        return {name: mean_where_known(cost) for name, cost in self.costs.items()}

    def take(self, *, models: IntArray | None = None, items: IntArray | None = None) -> "ResponseMatrix":
        """Return the rows and columns at these indices, in that order."""
        rows = np.arange(self.n_models) if models is None else np.asarray(models)
        columns = np.arange(self.n_items) if items is None else np.asarray(items)
        cut = np.ix_(rows, columns)
        return ResponseMatrix(
            self.responses[cut],
            self.models[rows],
            self.items[columns],
            None if self.n_trials is None else self.n_trials[cut],
            {name: cost[cut] for name, cost in self.costs.items()},
        )

    def block(self, first: int, last: int) -> "ResponseMatrix":
        """Return models `first` to `last` (not included); nothing is copied."""
        return ResponseMatrix(
            self.responses[first:last],
            self.models[first:last],
            self.items,
            None if self.n_trials is None else self.n_trials[first:last],
            {name: cost[first:last] for name, cost in self.costs.items()},
        )

    def of_items(self, items: IntArray, *, models: IntArray | None = None) -> FloatArray:
        """Return the responses to some items, of all models or of some, (n_models, n_taken)."""
        return self.responses[:, items] if models is None else self.responses[np.ix_(models, items)]

    def with_tables(self, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None) -> "ResponseMatrix":
        """Return the same responses with other tables of models or items, in the same order."""
        models, items = self.models if models is None else models, self.items if items is None else items
        return ResponseMatrix(self.responses, models, items, self.n_trials, self.costs)

    def parts(self) -> Iterator["ResponseMatrix"]:
        """Give the models in parts that fit the memory as numbers: all at once here, not where they are codes."""
        yield self

    def model_indices(self, model_ids: Sequence[str]) -> IntArray:
        """Row of each of these models; `DataError` names those that are absent."""
        return _positions(self.model_ids, model_ids, "model")

    def item_indices(self, item_ids: Sequence[str]) -> IntArray:
        """Column of each of these items; `DataError` names those that are absent."""
        return _positions(self.item_ids, item_ids, "item")


def with_scenario_columns(items: pl.DataFrame) -> pl.DataFrame:
    """Return the item table with text columns `item_id`, `scenario`, `subscenario` first."""
    if "scenario" not in items.columns:
        items = items.with_columns(pl.lit(DEFAULT_SCENARIO).alias("scenario"))
    if "subscenario" not in items.columns:
        items = items.with_columns(pl.lit(None, dtype=pl.String).alias("subscenario"))
    first = ["item_id", "scenario", "subscenario"]
    return items.select(
        *(pl.col(name).cast(pl.String) for name in first),
        *(name for name in items.columns if name not in first),
    )


def _ids(given: Sequence[str] | None, count: int, word: str) -> list[str]:
    """Given ids as text, or numbered ones."""
    if given is None:
        return [f"{word}-{number}" for number in range(1, count + 1)]
    return [str(name) for name in given]


def _positions(known: list[str], wanted: Sequence[str], word: str) -> IntArray:
    """Index of each wanted id among the known."""
    index = {name: position for position, name in enumerate(known)}
    absent = [name for name in wanted if name not in index]
    if absent:
        raise DataError(
            f"every {word}_id must be among the {len(known)} known: {len(absent)} of {len(wanted)} are not: "
            f"{shown(absent)}.{did_you_mean(absent, known)} Check the spelling, or that both come from the same "
            "benchmark."
        )
    return np.array([index[name] for name in wanted], dtype=np.int64)
