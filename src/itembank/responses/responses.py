"""`ResponseMatrix`: what every model answered to every item; all that is wrong is collected and raised once."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
import polars as pl

from itembank.checks import check_names, check_one_of, list_of_ids
from itembank.errors import N_SHOWN, DataError, DataWarning, did_you_mean, first_few, quoted, remedy, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.blocks import CELLS_AT_ONCE, row_blocks
from itembank.responses.error_kinds import KINDS, Errors
from itembank.responses.lost_answers import LostAnswers, counted_as
from itembank.tables import plural
from itembank.tabular import Compact, of_pandas, pandas_table

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SCENARIO = "all"
MOST_TRIALS = 10**9
"""NumPy draws samples without replacement from fewer only."""
LARGE = 30_000_000
"""Cells from which on a copy of the responses may be more than the memory has."""


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
    lost : LostAnswers or None
        Attempts that ended without an answer, and what the responses count them as; None if none is known.
    """

    responses: FloatArray
    models: pl.DataFrame
    items: pl.DataFrame
    n_trials: IntArray | None = None
    costs: Mapping[str, FloatArray] = field(default_factory=dict)
    lost: LostAnswers | None = None

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
        lost: LostAnswers | None = None,
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
        values = responses if is_single else _numbers_of("responses", responses, np.float64)
        n_trials = None if n_trials is None else _numbers_of("n_trials", n_trials)
        if not isinstance(costs, Mapping | None):
            raise DataError(f"costs must be arrays by their units, got {quoted(costs)}.")
        of_units = {unit: _numbers_of(f"costs in {unit}", cost) for unit, cost in (costs or {}).items()}
        if lost is not None:
            lost = replace(lost, n=_numbers_of("lost.n", lost.n), kind=_numbers_of("lost.kind", lost.kind))
        if values.ndim != 2:
            raise DataError(f"responses must have two axes (n_models, n_items), got shape {values.shape}.")
        if models is None:
            models = pl.DataFrame({"model_id": _ids(model_ids, values.shape[0], "model")})
        if items is None:
            item_names = _ids(item_ids, values.shape[1], "item")
            names = [DEFAULT_SCENARIO] * len(item_names) if scenarios is None else list_of_ids("scenarios", scenarios)
            if len(names) != len(item_names):
                raise DataError(f"scenarios must name one scenario an item: {len(names)} for {len(item_names)} items.")
            items = pl.DataFrame({"item_id": item_names, "scenario": names})
        models, items = _table_of("models", models), with_scenario_columns(_table_of("items", items))
        matrix = cls(values, models, items, n_trials, of_units, lost)
        arrays: dict[str, FloatArray | IntArray] = dict(matrix.costs)
        if lost is not None:
            arrays |= {"lost.n": lost.n, "lost.kind": lost.kind}
        check_response_matrix(matrix.responses, matrix.model_ids, matrix.item_ids, matrix.n_trials, arrays)
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
        correct, trials = _numbers_of("n_correct", n_correct), _numbers_of("n_trials", n_trials)
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
    def asked(self) -> BoolArray:
        """Where a response is present, or an attempt was lost, (n_models, n_items)."""
        return self.observed if self.lost is None else self.observed | (self.lost.n > 0)

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

    @property
    def told(self) -> BoolArray:
        """Where a response, trials, a lost attempt or a cost is known, (n_models, n_items)."""
        told = self.asked
        if self.n_trials is not None:
            told |= self.n_trials != 0
        for cost in self.costs.values():
            told |= ~np.isnan(cost)
        return told

    def long_tables(self, names: Mapping[str, pl.Series]) -> Iterator[pl.DataFrame]:
        """Give one row for every cell of which something is known, some models at a time.

        `names` are those of models (`model_id`), and of items: `item_id`, `scenario`, `subscenario`.
        """
        of_items = ("item_id", "scenario", "subscenario")
        whole = pl.DataFrame()  # the items of a part in which everything is known: the next part mostly has the same
        first = 0
        for part in self.parts(CELLS_AT_ONCE):
            told = part.told
            model, item = np.nonzero(told)
            is_known = model.size == told.size == whole.height
            items = whole if is_known else pl.DataFrame({column: names[column].gather(item) for column in of_items})
            whole = items if model.size == told.size else whole
            yield pl.DataFrame([names["model_id"].gather(model + first), *items, *part._numbers(told)])
            first += part.n_models

    def _numbers(self, told: BoolArray) -> Iterator[pl.Series]:
        """Give responses, trials, lost attempts and costs of these cells."""
        yield pl.Series("response", self.responses[told], nan_to_null=True)
        if self.n_trials is not None:
            yield pl.Series("n_trials", self.n_trials[told].astype(np.int64))
        if self.lost is not None:
            lost = self.lost[told]
            yield pl.Series("n_errors", lost.n)
            kinds = pl.Series([None, *KINDS[1:]], dtype=pl.String)
            yield kinds.gather(lost.kind).cast(pl.Categorical).alias("error")
        for unit, cost in self.costs.items():
            yield pl.Series(unit, cost[told].astype(np.float64), nan_to_null=True)

    def to_polars(self) -> pl.DataFrame:
        """Return a long table, one row a model and item of which something is known; the columns are our own.

        `model_id`, `item_id`, `scenario`, `subscenario`, `response` and, where known, `n_trials`, `n_errors`, `error`
        and costs.
        """
        names = {name: self.items[name] for name in ("item_id", "scenario", "subscenario")}
        return pl.concat(self.long_tables({"model_id": self.models["model_id"], **names}))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same as a pandas table; `MissingDependencyError` without pandas."""
        return pandas_table(self.to_polars().to_dict(as_series=False))

    @property
    def sentence(self) -> str:
        """How large it is, what it is about, and what can be done with it."""
        names = self.items["scenario"].unique(maintain_order=True).to_list()
        kind = "right or wrong" if all(part.is_binary for part in self.parts()) else "from 0 to 1"
        n_known = sum(int(np.count_nonzero(part.observed)) for part in self.parts())
        known = f"{100.0 * n_known / max(self.n_models * self.n_items, 1):.3g} % are known"
        lost = "" if self.lost is None else f", {plural(int(self.lost.n.sum()), 'attempt', 'were')} lost"
        return (
            f"Responses of {self.n_models:,} {'model' if self.n_models == 1 else 'models'} x {self.n_items:,} items, "
            f"{kind}; {known}{lost}\n"
            f"{'scenario' if len(names) == 1 else f'{len(names)} scenarios'}: {shown(names)}\n"
            "Next: ib.calibrate(responses), of past models; or ib.estimate(bank, responses), of new ones"
        )

    def take(
        self, *, models: IntArray | Sequence[str] | None = None, items: IntArray | Sequence[str] | None = None
    ) -> "ResponseMatrix":
        """Return the rows and columns of these indices or ids, in that order; `DataError` names ids that are absent."""
        rows = np.arange(self.n_models) if models is None else _taken(models, self.model_ids, "model")
        columns = np.arange(self.n_items) if items is None else _taken(items, self.item_ids, "item")
        return self._cut(np.ix_(rows, columns), self.models[rows], self.items[columns])

    def block(self, first: int, last: int) -> "ResponseMatrix":
        """Return models `first` to `last` (not included); nothing is copied."""
        return self._cut(slice(first, last), self.models[first:last], self.items)

    def _cut(self, cut: Any, models: pl.DataFrame, items: pl.DataFrame) -> "ResponseMatrix":
        return ResponseMatrix(
            self.responses[cut],
            models,
            items,
            None if self.n_trials is None else self.n_trials[cut],
            {name: cost[cut] for name, cost in self.costs.items()},
            None if self.lost is None else self.lost[cut],
        )

    def of_items(self, items: IntArray, *, models: IntArray | None = None) -> FloatArray:
        """Return the responses to some items, of all models or of some, (n_models, n_taken)."""
        return self.responses[:, items] if models is None else self.responses[np.ix_(models, items)]

    def with_tables(self, *, models: pl.DataFrame | None = None, items: pl.DataFrame | None = None) -> "ResponseMatrix":
        """Return the same responses with other tables of models or items, in the same order."""
        models = self.models if models is None else _table_of("models", models)
        return replace(self, models=models, items=self.items if items is None else _table_of("items", items))

    def with_errors(self, errors: Errors | None) -> "ResponseMatrix":
        """Return the responses with lost answers counted by another policy; None leaves them as they are."""
        if errors is not None:
            check_one_of("errors", errors, get_args(Errors))
        if errors is None or self.lost is None or errors == self.lost.errors:
            return self
        lost = replace(self.lost, errors=errors)
        responses, n_trials = counted_as(self.responses, self.n_trials, self.lost, lost.value)
        return replace(self, responses=responses, n_trials=n_trials, lost=lost)

    def with_lost_as(self, value: float) -> "ResponseMatrix":
        """Return responses in which each lost answer is an answer like others: 0 a wrong one, 1 a right one."""
        if self.lost is None:
            return self
        responses, n_trials = counted_as(self.responses, self.n_trials, self.lost, value)
        return replace(self, responses=responses, n_trials=n_trials, lost=None)

    @property
    def is_large(self) -> bool:
        """Whether there are so many cells that work on all of them takes a part at a time."""
        return self.n_models * self.n_items > LARGE

    def parts(self, most: int | None = None) -> Iterator["ResponseMatrix"]:
        """Give the models in order, all at once unless they have more cells than `most`, or are large."""
        if self.n_models * self.n_items <= (LARGE if most is None else most):
            yield self
            return
        for rows in row_blocks(self.n_models, self.n_items):
            yield self.block(rows.start, rows.stop)

    def model_indices(self, model_ids: Sequence[str]) -> IntArray:
        """Row of each of these models; `DataError` names those that are absent."""
        return _positions(self.model_ids, model_ids, "model")

    def item_indices(self, item_ids: Sequence[str]) -> IntArray:
        """Column of each of these items; `DataError` names those that are absent."""
        return _positions(self.item_ids, item_ids, "item")


NUL = "{} must not end in the character NUL (\\0): arrays of NumPy leave it out. Write these names without it."


def with_scenario_columns(items: pl.DataFrame) -> pl.DataFrame:
    """Return the item table with text columns `item_id`, `scenario`, `subscenario` first; no name may end in NUL."""
    if "scenario" not in items.columns:
        items = items.with_columns(pl.lit(DEFAULT_SCENARIO).alias("scenario"))
    if "subscenario" not in items.columns:
        items = items.with_columns(pl.lit(None, dtype=pl.String).alias("subscenario"))
    first = ["item_id", "scenario", "subscenario"]
    items = items.with_columns(pl.col(first).cast(pl.String))
    for column in first[1:]:
        if items[column].str.ends_with("\0").any():
            raise DataError(NUL.format(column))
    return items[[*first, *(name for name in items.columns if name not in first)]]  # select('*') would take all


def _ids(given: Sequence[str] | None, count: int, word: str) -> list[str]:
    if given is None:
        return [f"{word}-{number}" for number in range(1, count + 1)]
    return list_of_ids(f"{word}_ids", given)


def _numbers_of(name: str, given: Any, dtype: Any = None) -> Any:
    """Return an array, or nested lists or tuples, as an array of numbers; one of numbers as it is."""
    try:
        values = np.asarray(given)
        if values.dtype.kind in "iufb":
            return values if dtype is None else values.astype(dtype, copy=False)
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be an array of numbers (n_models, n_items): {error}.") from None


def _table_of(name: str, given: Any) -> pl.DataFrame:
    """Return a table of polars; columns by name, or a table of pandas, as one."""
    try:
        if isinstance(given, pl.DataFrame):
            table = given
        elif type(given).__module__.partition(".")[0] == "pandas":
            table = of_pandas(given)
        else:
            table = pl.DataFrame({str(column): list(values) for column, values in dict(given).items()})
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        why = str(error).partition("\n")[0]
        raise DataError(f"the table of {name} must be one of polars or pandas: {why}.") from None
    check_names(f"the table of {name}", table.columns)
    return table


def _taken(wanted: Any, known: list[str], word: str) -> IntArray:
    """Return positions that are given as such, as ids, or as an array of true and false."""
    given = np.asarray(wanted)
    kind = given.dtype.kind if given.ndim == 1 else ""
    if kind in {"U", "O"}:
        return _positions(known, [str(one) for one in given], word)
    if kind == "b" and given.size == len(known):
        return np.flatnonzero(given)
    is_whole, n = kind in {"i", "u"} or given.shape == (0,), len(known)
    if is_whole and np.all((-n <= given) & (given < n)):
        return given.astype(np.int64)
    raise DataError(
        f"{word}s to take must be ids, whole numbers below {n}, or {n} of true and false, in a list or an array, got "
        f"{quoted(wanted)}."
    )


def _positions(known: list[str], wanted: Sequence[str], word: str) -> IntArray:
    index = {name: position for position, name in enumerate(known)}
    absent = [name for name in wanted if name not in index]
    if absent:
        raise DataError(
            f"every {word}_id must be among the {len(known)} known: {len(absent)} of {len(wanted)} are not: "
            f"{shown(absent)}.{did_you_mean(absent, known)} Check the spelling, or that both come from the same "
            "benchmark."
        )
    return np.array([index[name] for name in wanted], dtype=np.int64)


def check_response_matrix(
    responses: FloatArray,
    model_ids: Sequence[str],
    item_ids: Sequence[str],
    n_trials: IntArray | None,
    others: Mapping[str, FloatArray | IntArray],
) -> None:
    """Raise one `DataError` with all that is wrong with a response matrix (n_models, n_items).

    `others` are further arrays of that shape, by name.
    """
    shape = (len(model_ids), len(item_ids))
    problems = []
    if 0 in shape:
        problems.append(f"responses must hold at least one model and one item, got {shape[0]} and {shape[1]}.")
    trials = {} if n_trials is None else {"n_trials": n_trials}
    arrays: dict[str, FloatArray | IntArray] = {"responses": responses, **others, **trials}
    problems.extend(
        f"{name} must have shape (n_models, n_items) = {shape}, got {array.shape}."
        for name, array in arrays.items()
        if array.shape != shape
    )
    if not problems:
        problems = [*_id_problems(model_ids, "model_id"), *_id_problems(item_ids, "item_id")]
        with np.errstate(invalid="ignore"):
            outside = (responses < 0.0) | (responses > 1.0)  # (n_models, n_items); False for NaN
        if outside.any():
            n_rows = int(outside.any(axis=1).sum())
            problems.append(
                f"response must lie in [0, 1], got {plural(int(outside.sum()), 'value')} outside for {n_rows} of "
                f"{len(model_ids)} models: {describe_cells(outside, responses, model_ids, item_ids)}. Rescale or drop "
                "them."
            )
        problems += _trial_problems(responses, n_trials, model_ids, item_ids)
    if problems:
        raise DataError(" ".join(problems))


def check_counts(n_correct: IntArray, n_trials: IntArray) -> None:
    """Raise `DataError` when counts (n_models, n_items) are of two shapes, or are no successes among trials."""
    if n_correct.shape != n_trials.shape:
        raise DataError(f"n_correct and n_trials must have one shape, got {n_correct.shape} and {n_trials.shape}.")
    for name, counts in (("n_correct", n_correct), ("n_trials", n_trials)):
        with np.errstate(invalid="ignore"):
            n_bad = int(np.count_nonzero(~((counts >= 0) & (counts == np.floor(counts)))))
        if n_bad:
            raise DataError(
                f"{name} must be whole numbers of at least 0, got {plural(n_bad, 'other')}. Missing is zero trials."
            )
    above = np.argwhere(n_correct > n_trials)
    if above.size:
        cells = [f"{n_correct[tuple(at)]} of {n_trials[tuple(at)]} at {tuple(at.tolist())}" for at in above[:N_SHOWN]]
        raise DataError(
            f"n_correct must be at most n_trials, got {plural(len(above), 'cell')} above: "
            f"{first_few(cells, len(above))}."
        )


def check_models_and_items_have_responses(
    responses: FloatArray, model_ids: Sequence[str], item_ids: Sequence[str]
) -> None:
    """Raise `DataError` when a model or an item has no response at all."""
    present: BoolArray = ~np.isnan(responses)
    problems = []
    for word, axis, names in (("model", 1, model_ids), ("item", 0, item_ids)):
        empty = [names[index] for index in np.flatnonzero(~present.any(axis=axis)).tolist()]
        if empty:
            problems.append(
                f"every {word} must have at least one response, got none for {len(empty)} of {len(names)} {word}s: "
                f"{shown(empty)}. Leave them out."
            )
    if problems:
        raise DataError(" ".join(problems))


def without_silent(
    matrix: ResponseMatrix, has_model: BoolArray, has_item: BoolArray, where: str = ""
) -> ResponseMatrix:
    """Leave out models (n_models,) and items (n_items,) without an answer, and name them in a `DataWarning` of each."""
    scenario = matrix.items["scenario"]
    gone = sorted({*scenario} - {*scenario.filter(pl.Series(has_item))})
    lost = f" So all of {shown(gone)} is gone, and no score counts it." * bool(gone)
    for what, names, has_any, more in (
        ("models have no answer to any item", matrix.model_ids, has_model, ""),
        ("items have no answer by any model", matrix.item_ids, has_item, lost),
    ):
        silent = [names[index] for index in np.flatnonzero(~has_any).tolist()]
        if silent:
            message = f"{where}{len(silent)} of {len(names)} {what} and are left out: {shown(silent)}.{more}"
            warn(message, DataWarning)
    if has_model.all() and has_item.all():
        return matrix
    return matrix.take(models=np.flatnonzero(has_model), items=np.flatnonzero(has_item))


def check_complete(responses: FloatArray, model_ids: Sequence[str], item_ids: Sequence[str]) -> None:
    """Raise `DataError` when a response is missing."""
    missing = np.isnan(responses)
    if missing.any():
        raise DataError(
            f"every model must have a response to every item, got {np.count_nonzero(missing)} missing of "
            f"{missing.size}: {describe_cells(missing, None, model_ids, item_ids)}. Run them, leave the models or "
            "items out, or allow missing ones."
        )


def check_enough_models(n_models: int, needed: int, purpose: str) -> None:
    """Raise `DataError` when there are fewer models than `purpose` needs."""
    if n_models < needed:
        how = remedy("ib.banks.start(responses.items, responses)", "itembank calibrate RESPONSES --items ITEMS -o BANK")
        raise DataError(
            f"{purpose} needs at least {needed} models, got {n_models}. "
            f"Add per-item results of more models, or begin a bank of few: {how}."
        )


def describe_cells(
    mask: BoolArray, values: FloatArray | IntArray | None, model_ids: Sequence[str], item_ids: Sequence[str]
) -> str:
    """Name the first few marked cells with their values, if any are given."""
    cells = np.argwhere(mask)
    names = [
        f"{quoted(model_ids[row])} item {quoted(item_ids[column])}"
        + ("" if values is None else f" = {values[row, column]:g}")
        for row, column in cells[:N_SHOWN]
    ]
    return first_few(names, len(cells))


def _id_problems(names: Sequence[str], column: str) -> list[str]:
    problems = []
    if any(name is None or name == "" for name in names):
        problems.append(f"{column} must not be empty.")
    if any(name.endswith("\0") for name in names if name):
        problems.append(NUL.format(column))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        problems.append(
            f"{column} must be unique, got {plural(len(repeated), 'id')} more than once: {shown(repeated)}."
        )
    return problems


def _trial_problems(
    responses: FloatArray, n_trials: IntArray | None, model_ids: Sequence[str], item_ids: Sequence[str]
) -> list[str]:
    if n_trials is None:
        return []
    if not np.issubdtype(n_trials.dtype, np.integer):
        return [f"n_trials must be whole numbers, got an array of {n_trials.dtype}."]
    too_few, too_many = (n_trials < 0) | ((n_trials == 0) & ~np.isnan(responses)), n_trials >= MOST_TRIALS
    missing = "Give their counts, or make the responses missing."
    return [
        f"n_trials must be {what}, got {plural(int(bad.sum()), 'cell')} with {other}: "
        f"{describe_cells(bad, n_trials, model_ids, item_ids)}. {advice}"
        for bad, what, other, advice in (
            (too_few, "at least 1 where there is a response", "less", missing),
            (too_many, f"below {MOST_TRIALS:,}", "more", "Divide both counts by the same number."),
        )
        if bad.any()
    ]


def column_of(table: pl.DataFrame, column: str, purpose: str) -> pl.Series:
    """Return a column of the model or item table; `DataError` names those there are."""
    if column not in table.columns:
        raise DataError(
            f"{purpose} needs the column {column!r}, which is not there; there are "
            f"{shown(table.columns, len(table.columns))}. Name another, or give a table that has it."
        )
    return table[column]
