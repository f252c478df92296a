"""`ResponseRows`: per-item results as rows, what every reader makes before they become a matrix."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, first_few, quoted, remedy, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.error_kinds import Errors
from itembank.responses.labels import Labels, join_labels
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.prompts import DIFFERS, PROMPTS, how_to_mix, join_prompts, prompt_differences, with_prompts

CONTENT = "content_hash"
"""Item column: a digest of what was asked and what is right."""
CONTENT_FIELDS = "content_fields"
"""Item column: the fields of a document that the digest is of, as a JSON list; null where a harness made it."""
UNCHANGING = ("scenario", "subscenario", CONTENT)
"""Item columns that must say the same in every source."""


@dataclass(frozen=True, slots=True)
class OtherColumns:
    """Columns of a source that are no part of its rows, to be looked at where rows repeat."""

    names: tuple[str, ...]
    ours: Mapping[str, str]  # What the source calls our columns, as far as it has them
    load: Callable[[Sequence[str]], pl.DataFrame]  # Some of them as text, a row for each of the source

    def take(self, rows: IntArray) -> "OtherColumns":
        """Return those of some rows."""
        return replace(self, load=lambda names: self.load(names)[rows])


@dataclass(frozen=True, slots=True)
class ResponseRows:
    """Rows of one source, one a model, item and attempt."""

    source: str  # Where they come from, for messages
    models: Labels
    items: Labels
    response: FloatArray  # (n_rows,): Divided by the maximum already; NaN where missing
    n_trials: IntArray | None = None  # (n_rows,): 0 where unknown
    costs: Mapping[str, FloatArray] = field(default_factory=dict)  # mapping of unit to (n_rows,): NaN where unknown
    seeds: Labels | None = None
    lost: LostAnswers | None = None  # (n_rows,): Attempts without an answer behind each row; None where none is told
    errors: Errors | None = None  # What the source says lost answers count as; the responses here never count them
    # What is known of each model (`model_id`) and item (`item_id`, and maybe `scenario`, `subscenario`).
    model_table: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"model_id": pl.String}))
    item_table: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"item_id": pl.String}))
    others: OtherColumns | None = None  # None where the source tells nothing else

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.response.shape[0])

    def take(self, rows: IntArray) -> "ResponseRows":
        """Return some of the rows; what is known of models and items that they do not name goes."""
        models, items = self.models.take(rows), self.items.take(rows)
        return replace(
            self,
            models=models,
            items=items,
            response=self.response[rows],
            n_trials=None if self.n_trials is None else self.n_trials[rows],
            costs={unit: cost[rows] for unit, cost in self.costs.items()},
            seeds=None if self.seeds is None else self.seeds.take(rows),
            lost=None if self.lost is None else self.lost[rows],
            model_table=self.model_table.filter(pl.col("model_id").is_in(models.names.implode())),
            item_table=self.item_table.filter(pl.col("item_id").is_in(items.names.implode())),
            others=None if self.others is None else self.others.take(rows),
        )

    def describe(self, rows: IntArray) -> str:
        """Name the first few of these rows with their responses."""
        first = rows[:N_SHOWN]
        names = zip(self.models.at(first), self.items.at(first), self.response[first], strict=True)
        return first_few(
            [f"{quoted(model)} item {quoted(item)} = {value:.9g}" for model, item, value in names], rows.size
        )


def can_be_counted(responses: FloatArray) -> bool:
    """Whether responses, (n_rows,), are right or wrong."""
    return bool(np.isin(responses, (0.0, 1.0)).all())


def rename_model(rows: ResponseRows, model_id: str) -> ResponseRows:
    """Give the one model of these rows another id; `DataError` when there are several."""
    if rows.models.n_names > 1:
        raise DataError(
            f"{rows.source}: model_id={model_id!r} was given for the results of {rows.models.n_names} models: "
            f"{shown(rows.models.names.to_list())}."
        )
    models = Labels(pl.Series("name", [model_id], dtype=pl.String), rows.models.index)
    return replace(rows, models=models, model_table=rows.model_table.with_columns(model_id=pl.lit(model_id)))


def rename_models(rows: ResponseRows, names: Mapping[str, str]) -> ResponseRows:
    """Call models as `names` says; `DataError` when two models of these rows would get one name."""
    given = rows.models.names
    new = given.replace(names)
    if new.n_unique() < new.len():
        alike = new.is_duplicated()
        raise DataError(
            f"{rows.source}: models of one file must keep different names, but {shown(given.filter(alike).to_list())} "
            f"would be called {shown(new.filter(alike).unique(maintain_order=True).to_list())}. Correct the table of "
            "names."
        )
    table = rows.model_table.with_columns(pl.col("model_id").replace(names))
    return replace(rows, models=Labels(new.rename("name"), rows.models.index, rows.models.kind), model_table=table)


def join_rows(parts: Sequence[ResponseRows], *, allow_mixed_prompts: bool = False) -> ResponseRows:
    """Put the rows of several sources one after the other."""
    problems = [*_kind_problems(parts, "model_id"), *_kind_problems(parts, "item_id")]
    tables = [part.item_table for part in parts]
    for column in (*UNCHANGING, "metric") if len(tables) > 1 else ():
        known = [table.select("item_id", column).drop_nulls() for table in tables if column in table.columns]
        if known:
            values = pl.col(column).unique(maintain_order=True)
            by_item = pl.concat(known).group_by("item_id", maintain_order=True).agg(values)
            unequal = by_item.filter(pl.col(column).list.len() > 1)
            problems.extend([_disagreement(unequal, column)] if unequal.height else [])
    item_table = tables[0] if len(tables) == 1 else _first_known(tables, "item_id")
    item_table, mixtures = _with_prompts(parts, item_table)
    if not allow_mixed_prompts:
        problems.extend(mixtures)
    source = joined_source([part.source for part in parts])
    if problems:
        raise DataError(f"{source}: " + " ".join(problems))
    if len(parts) == 1:
        return parts[0]
    trials = [np.where(np.isnan(part.response), 0, 1) if part.n_trials is None else part.n_trials for part in parts]
    unknown = [np.full(part.n_rows, np.nan) for part in parts]
    nothing = pl.Series("name", [], dtype=pl.String)
    seeds = [part.seeds or Labels(nothing, np.full(part.n_rows, -1, dtype=np.int64)) for part in parts]
    costs = {
        unit: np.concatenate([part.costs.get(unit, none) for part, none in zip(parts, unknown, strict=True)])
        for unit in dict.fromkeys(unit for part in parts for unit in part.costs)
    }
    return ResponseRows(
        source,
        join_labels([part.models for part in parts]),
        join_labels([part.items for part in parts]),
        np.concatenate([part.response for part in parts]),
        np.concatenate(trials) if any(part.n_trials is not None for part in parts) else None,
        costs,
        join_labels(seeds) if any(part.seeds is not None for part in parts) else None,
        _join_lost(parts),
        _one_policy(parts),
        _first_known([part.model_table for part in parts], "model_id"),
        item_table,
        others=_join_others(parts),
    )


def _join_lost(parts: Sequence[ResponseRows]) -> LostAnswers | None:
    """Put the lost attempts of all parts together, none for the rows of parts that tell of none."""
    if all(part.lost is None for part in parts):
        return None
    none = [np.zeros(part.n_rows, dtype=np.int64) for part in parts]
    n = [zero if part.lost is None else part.lost.n for part, zero in zip(parts, none, strict=True)]
    kind = [zero if part.lost is None else part.lost.kind for part, zero in zip(parts, none, strict=True)]
    return LostAnswers(np.concatenate(n), np.concatenate(kind))


def _one_policy(parts: Sequence[ResponseRows]) -> Errors | None:
    """Return what the parts say lost answers count as; `DataError` if those that have some say different things."""
    told = {part.errors or "missing": part.source for part in parts if part.lost is not None and part.lost.n.any()}
    if len(told) > 1:
        where = " but ".join(f"{errors} in {quoted(source)}" for errors, source in told.items())
        ways = remedy("spec=ReadingSpec(errors='missing', 'wrong' or 'bounds')", "--errors missing, wrong or bounds")
        raise DataError(f"lost answers must count as the same in all sources, got {where}. Say which: {ways}.")
    return next(iter(told), None)


def _join_others(parts: Sequence[ResponseRows]) -> OtherColumns | None:
    """Put the other columns of all parts together, empty for the rows of parts without them."""
    told = [part.others for part in parts if part.others is not None]
    if not told:
        return None

    def load(names: Sequence[str]) -> pl.DataFrame:
        tables = []
        for part in parts:
            own = [name for name in names if part.others is not None and name in part.others.names]
            known = part.others.load(own) if part.others is not None and own else pl.DataFrame()
            absent = pl.Series([None] * part.n_rows, dtype=pl.String)
            tables.append(pl.DataFrame({name: known[name] if name in own else absent for name in names}))
        return pl.concat(tables)

    names = dict.fromkeys(name for one in told for name in one.names)
    ours = {name: theirs for one in reversed(told) for name, theirs in one.ours.items()}
    return OtherColumns(tuple(names), ours, load)


def joined_source(names: Sequence[str]) -> str:
    """Name several sources."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _kind_problems(parts: Sequence[ResponseRows], column: str) -> list[str]:
    """Say when ids have one type in one source and another in the next."""
    sources: dict[str, list[str]] = {}
    for part in parts:
        labels = part.models if column == "model_id" else part.items
        if labels.kind is not None:
            sources.setdefault(labels.kind, []).append(part.source)
    if len(sources) < 2:
        return []
    where = " but ".join(f"{kind} in {shown(names, 3)}" for kind, names in sources.items())
    return [f"{column} must have one type in all sources, got {where}. Write them all as text."]


def _with_prompts(parts: Sequence[ResponseRows], item_table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Put how all parts asked an item into the table of items, and name the first part that asked otherwise."""
    told = [part for part in parts if not set(PROMPTS).isdisjoint(part.item_table.columns)]
    if len(told) < 2:
        return item_table, []
    item_table = with_prompts(item_table, [part.item_table for part in told])
    is_other = [item_table[name].str.contains(DIFFERS, literal=True).any() for name in PROMPTS if name in item_table]
    if not any(is_other):
        return item_table, []
    known = told[0].item_table
    for number, part in enumerate(told[1:], start=1):
        words = prompt_differences(part.item_table, known, whose=joined_source([one.source for one in told[:number]]))
        if words:
            return item_table, [f"{words} ({part.source}). {how_to_mix()}"]
        known = join_prompts([known, part.item_table])
    return item_table, []


def _disagreement(unequal: pl.DataFrame, column: str) -> str:
    """Say that sources disagree on a column of the item table."""
    items = unequal["item_id"].to_list()
    if column == CONTENT:
        return (
            f"the content of an item must be the same for all models, got two for {len(items)} items: {shown(items)}. "
            "The benchmark changed between the runs; read them apart, or run the older models again."
        )
    first = unequal.row(0)
    if column == "metric":
        one = remedy(f"metric={first[1][0]!r}", f"--metric {shlex.quote(first[1][0])}")
        return (
            f"an item must have one metric for all models, got more for {len(items)} items: {first[0]!r} has "
            f"{shown(first[1])}. To take one where results have several, add: {one}"
        )
    return (
        f"an item must belong to one {column}, got more for {len(items)} items: {shown(items)} "
        f"({first[0]!r} in {shown(first[1])}). {how_to_prefix()}"
    )


def how_to_prefix() -> str:
    """Say how ids that start anew in each scenario become unique."""
    option = remedy("prefix_scenario=True", "--prefix-scenario")
    return f"If ids start anew in each, and it is to go before them, add: {option}"


def _first_known(tables: Sequence[pl.DataFrame], key: str) -> pl.DataFrame:
    """One row an id, with the first known value of each column."""
    tables = [table for table in tables if table.height]
    if not tables:
        return pl.DataFrame(schema={key: pl.String})
    if len(tables) == 1:
        return tables[0]
    together = pl.concat(tables, how="diagonal_relaxed")
    return together.group_by(key, maintain_order=True).agg(pl.all().drop_nulls().first())


def row_problems(rows: ResponseRows, *, max_response: float = 1.0, has_marks: bool = False) -> list[str]:
    """Say what is wrong with the numbers of these rows; with `has_marks` one may stand for a missing response."""
    problems = []
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((rows.response < 0.0) | (rows.response > 1.0))
        unfit = {unit: np.flatnonzero((cost < 0.0) | np.isinf(cost)) for unit, cost in rows.costs.items()}
    if outside.size:
        n_models = np.unique(rows.models.index[outside]).size
        divided = "" if max_response == 1.0 else f" after division by {max_response:g}"
        given = rows.response[~np.isnan(rows.response)] * max_response
        problems.append(
            f"response must lie in [0, 1]{divided}, got {outside.size} values outside for {n_models} of "
            f"{rows.models.n_names} models: {rows.describe(outside)}. {range_advice(given, has_marks=has_marks)}"
        )
    bad = np.flatnonzero(rows.n_trials < 0) if rows.n_trials is not None else np.zeros(0, dtype=np.int64)
    if bad.size:
        problems.append(f"n_trials must be a whole number of at least 1, got something else for {_pairs(rows, bad)}.")
    problems += [
        f"{unit} must be a finite number of at least 0, got {rows.costs[unit][bad[0]]:g} and the like for "
        f"{_pairs(rows, bad)}."
        for unit, bad in unfit.items()
        if bad.size
    ]
    return problems


NINES = {9.0: 5.0, 99.0: 10.0, 999.0: 100.0, 9999.0: 100.0}
"""Numbers that often stand for a missing answer, each with the most that all others are then."""


def range_advice(values: FloatArray, *, has_marks: bool) -> str:
    """Say what responses, (n_values,), of which some lie outside [0, 1], may be.

    With `has_marks` some of them may stand for a missing answer.
    """
    kinds = np.unique(np.round(values, 9))
    if kinds.tolist() in ([-1.0, 1.0], [1.0, 2.0]):
        wrong, right = (f"{one:g}" for one in kinds.tolist())
        option = remedy(f"true_value={right!r}", f"--true-value {right}")
        return f"If {right} is right and {wrong} is wrong, add: {option}"
    marks = _marks(kinds) if has_marks else []
    rest = kinds[~np.isin(kinds, marks)]
    scale = _scale(rest)
    if marks:
        names = tuple(f"{one:g}" for one in marks)
        python, words = [f"missing_values={names!r}"], [f"--missing {one}" for one in names]
        if scale:
            python, words = [*python, f"max_response={scale:g}"], [*words, f"--max-response {scale:g}"]
        are = f"{names[0]} marks an answer that is" if len(names) == 1 else f"{shown(names)} mark answers that are"
        ends = f" and the others end at {scale:g}" if scale else ""
        return f"If {are} missing{ends}, add: {remedy(', '.join(python), ' '.join(words))}"
    low, top = float(rest[0]), float(rest[-1])
    if low < 0.0 or not np.isfinite(top):
        return "Responses must run from 0, the worst, to 1, the best: rescale them in the file."
    largest = f"The largest is {top:.9g}."
    if not scale:
        highest = remedy("max_response=...", "--max-response HIGHEST")
        return f"{largest} To divide by the highest that a response can be, 100 for percentages, add: {highest}"
    option = remedy(f"max_response={scale:g}", f"--max-response {scale:g}")
    if scale == 100.0:
        return f"{largest} If these are percentages, add: {option}"
    lowest = f". The lowest mark, {low:g}, is then {low / scale:g} and not 0." if low > 0.0 else ""
    return f"{largest} If marks end at {scale:g}, add: {option}{lowest}"


def _marks(kinds: FloatArray) -> list[float]:
    """Return the values of these, (n_kinds,) in order, that probably stand for a missing answer."""
    negative, rest = kinds[kinds < 0.0], kinds[kinds >= 0.0]
    if negative.size and rest.size:
        are_few = negative.size == 1 or (negative.size <= 3 and rest[-1] <= 1.0)
        are_codes = are_few and bool((negative == np.floor(negative)).all())
        return [float(one) for one in negative] if are_codes else []
    if negative.size or kinds.size == 1:
        return []
    top, others = float(kinds[-1]), kinds[:-1]
    if others.tolist() == [0.0, 1.0] and top > 5.0 and top not in {10.0, 100.0}:
        return [top]
    if top not in NINES or others[-1] > NINES[top] or not _are_marks(others):
        return []
    has_gap = top > 10.0 or (others[0] == 0.0 and others[-1] <= 1.0)
    is_whole = others.size > 1 and others.size == others[-1] - others[0] + 1.0  # 1 to 5: then 9 is none of ten
    return [top] if has_gap or is_whole else []


def _scale(kinds: FloatArray) -> float:
    """Return what responses, (n_kinds,) in order, are to be divided by; 0 where they lie in [0, 1] or do not tell."""
    low, top = float(kinds[0]), float(kinds[-1])
    if low < 0.0 or top <= 1.0 or not np.isfinite(top):
        return 0.0
    are_marks = _are_marks(kinds)
    # marks up to five end at the largest that was given, those above seven at ten; six and seven may be either
    if are_marks and top <= 5.0:
        return float(np.ceil(top))
    if are_marks and 7.0 < top <= 10.0:
        return 10.0
    return 100.0 if 10.0 < top <= 100.0 and (top > 50.0 or not are_marks) else 0.0


def _are_marks(kinds: FloatArray) -> bool:
    """Whether these are whole or half numbers."""
    return bool((2.0 * kinds == np.floor(2.0 * kinds)).all())


def _pairs(rows: ResponseRows, which: IntArray) -> str:
    """Count these rows and name the first few."""
    first = which[:N_SHOWN]
    names = zip(rows.models.at(first), rows.items.at(first), strict=True)
    pairs = [f"{quoted(model)} item {quoted(item)}" for model, item in names]
    return f"{which.size} rows: {first_few(pairs, which.size)}"
