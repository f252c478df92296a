"""`ResponseRows`: per-item results as rows, what every reader makes before they become a matrix."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, first_few, quoted, remedy, shown
from itembank.files.documents import digest_of
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.reading_specs import how
from itembank.responses.error_kinds import Errors
from itembank.responses.how_read import CONTENT, check_one_power, check_read_alike
from itembank.responses.labels import IdKind, named, names_of
from itembank.responses.prompts import (
    DIFFERS,
    HIGHEST,
    PROMPT_SETTINGS,
    PROMPTS,
    how_to_mix,
    join_prompts,
    settings_text,
    with_prompts,
)
from itembank.tables import plural

CONTENT_FIELDS = "content_fields"
"""Item column: the fields of a document that the digest is of, as a JSON list; null where a harness made it."""
UNCHANGING = ("scenario", "subscenario", CONTENT)
"""Item columns that must say the same in every source."""


def content_digest(*parts: Any) -> str:
    """Digest of whatever tells the content of an item."""
    return digest_of(json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str).encode())


@dataclass(frozen=True, slots=True)
class OtherColumns:
    """Columns of a source that are no part of its rows, to be looked at where rows repeat."""

    names: tuple[str, ...]
    ours: Mapping[str, str]  # What the source calls our columns, as far as it has them
    load: Callable[[Sequence[str]], pl.DataFrame]  # Some of them as text, a row for each of the source

    def take(self, rows: IntArray) -> "OtherColumns":
        """Return those of some rows."""
        return replace(self, load=lambda names: self.load(names)[rows])


ROW_COLUMNS = ("model_id", "item_id", "response", "n_trials", "attempt", "n_errors", "error")


@dataclass(frozen=True, slots=True)
class ResponseRows:
    """What one source tells: a row a model, item and attempt, and what is known of their models and items.

    Attributes
    ----------
    source : str
        Where it comes from, for messages.
    frame : table of n_rows rows
        `model_id` and `item_id` (categories), `response` (divided by its maximum already; NaN where missing), and as
        far as they are told `n_trials` (0 where unknown), `attempt` (a name, null where unknown), `n_errors` (attempts
        that were lost) and `error` (code of what they ended in, as in `LostAnswers`), and costs by unit (NaN where
        unknown).
    models, items : table
        All models (`model_id`) and items (`item_id`, and maybe `scenario`, `subscenario`), in order, as text.
    kinds : mapping of 'model_id' and 'item_id' to what they were before they became text
        None, or no entry, where the source has no types.
    errors : str or None
        What the source says lost answers count as; the responses here never count them.
    others : OtherColumns or None
        None where the source tells nothing else.
    columns : tuple of str
        All columns of a source that is one table, read or not.
    file : path or None
        The file whose name the one model has, where no column names it.
    """

    source: str
    frame: pl.DataFrame
    models: pl.DataFrame
    items: pl.DataFrame
    kinds: Mapping[str, IdKind | None] = field(default_factory=dict)
    errors: Errors | None = None
    others: OtherColumns | None = None
    columns: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.height

    @property
    def response(self) -> FloatArray:
        """Response of each row, (n_rows,); NaN where missing."""
        return self.frame["response"].to_numpy()

    @property
    def costs(self) -> list[str]:
        """Units of the costs that are told."""
        return [name for name in self.frame.columns if name not in ROW_COLUMNS]

    def take(self, rows: IntArray) -> "ResponseRows":
        """Return some of the rows; what is known of models and items that they do not name goes."""
        frame = self.frame[rows]
        models, items = (
            table.filter(table[key].is_in(names_of(frame[key]).implode()))
            for key, table in (("model_id", self.models), ("item_id", self.items))
        )
        others = None if self.others is None else self.others.take(rows)
        return replace(self, frame=frame, models=models, items=items, others=others)

    def describe(self, rows: IntArray) -> str:
        """Name the first few of these rows with their responses."""
        values = self.response[rows[:N_SHOWN]]
        named_rows = [f"{name} = {value:.9g}" for name, value in zip(named(self.frame, rows), values, strict=True)]
        return first_few(named_rows, rows.size)


def with_highest(rows: ResponseRows, highest: float) -> ResponseRows:
    """Keep with the items what their responses were divided by: the same marks on another scale are other responses."""
    if highest == 1.0:
        return rows
    return replace(
        rows, items=rows.items.with_columns(pl.lit(settings_text({HIGHEST: f"{highest:g}"})).alias(PROMPT_SETTINGS))
    )


def rename_model(rows: ResponseRows, model_id: str) -> ResponseRows:
    """Give the one model of these rows another id; `DataError` when there are several."""
    if rows.models.height > 1:
        raise DataError(
            f"{rows.source}: model_id={model_id!r} was given for the results of {rows.models.height} models: "
            f"{shown(rows.models['model_id'].to_list())}."
        )
    return _with_names(rows, pl.lit(model_id), None)


def rename_models(rows: ResponseRows, names: Mapping[str, str]) -> ResponseRows:
    """Call models as `names` says; `DataError` when two models of these rows would get one name."""
    given = rows.models["model_id"]
    new = given.replace(names)
    if new.n_unique() < new.len():
        alike = new.is_duplicated()
        raise DataError(
            f"{rows.source}: models of one file must keep different names, but {shown(given.filter(alike).to_list())} "
            f"would be called {shown(new.filter(alike).unique(maintain_order=True).to_list())}. Correct the table of "
            "names."
        )
    return _with_names(rows, pl.col("model_id").cast(pl.String).replace(names), rows.kinds.get("model_id"))


def _with_names(rows: ResponseRows, names: pl.Expr, kind: IdKind | None) -> ResponseRows:
    """Give models other names."""
    frame = rows.frame.with_columns(model_id=names.cast(pl.Categorical))
    models = rows.models.with_columns(model_id=names.cast(pl.String))
    return replace(rows, frame=frame, models=models, kinds={**rows.kinds, "model_id": kind})


def join_rows(parts: Sequence[ResponseRows], *, allow_mixed_prompts: bool = False) -> ResponseRows:
    """Put the rows of several sources one after the other."""
    problems = [*_kind_problems(parts, "model_id"), *_kind_problems(parts, "item_id")]
    tables = [part.items for part in parts]
    check_one_power(tables)
    for column in (*UNCHANGING, "metric") if len(tables) > 1 else ():
        known = [table.select("item_id", column).drop_nulls() for table in tables if column in table.columns]
        if known:
            values = pl.col(column).unique(maintain_order=True)
            by_item = pl.concat(known).group_by("item_id", maintain_order=True).agg(values)
            unequal = by_item.filter(pl.col(column).list.len() > 1)
            problems.extend([_disagreement(unequal, column)] if unequal.height else [])
    items = _first_known(tables, "item_id")
    items, mixtures = _with_prompts(parts, items)
    if not allow_mixed_prompts:
        problems.extend(mixtures)
    source = joined_source([part.source for part in parts])
    if problems:
        raise DataError(f"{source}: " + "\n".join(problems))
    if len(parts) == 1:
        return parts[0]
    frame = pl.concat([part.frame for part in parts], how="diagonal")
    costs = [name for name in frame.columns if name not in ROW_COLUMNS]
    absent: dict[str, Any] = {"n_errors": 0, "error": 0, **dict.fromkeys(costs, np.nan)}
    if "n_trials" in frame.columns:
        absent["n_trials"] = pl.col("response").is_not_nan().cast(pl.Int64)
    frame = frame.with_columns(pl.col(name).fill_null(one) for name, one in absent.items() if name in frame.columns)
    models = _first_known([part.models for part in parts], "model_id")
    kinds = {key: kind for part in parts for key, kind in part.kinds.items() if kind is not None}
    return ResponseRows(source, frame, models, items, kinds, _one_policy(parts), _join_others(parts))


def _one_policy(parts: Sequence[ResponseRows]) -> Errors | None:
    """Return what the parts say lost answers count as; `DataError` if those that have some say different things."""
    told = {
        part.errors or "missing": part.source
        for part in parts
        if "n_errors" in part.frame and (part.frame["n_errors"] > 0).any()
    }
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


def joined_source(names: Sequence[object]) -> str:
    """Name several sources, by the first of them."""
    return ", ".join(map(str, names[:3])) + (", ..." if len(names) > 3 else "")


def _kind_problems(parts: Sequence[ResponseRows], column: str) -> list[str]:
    """Say when ids have one type in one source and another in the next."""
    sources: dict[str, list[str]] = {}
    for part in parts:
        if kind := part.kinds.get(column):
            sources.setdefault(kind, []).append(part.source)
    if len(sources) < 2:
        return []
    where = " but ".join(f"{kind} in {shown(names, 3)}" for kind, names in sources.items())
    return [f"{column} must have one type in all sources, got {where}. Write them all as text."]


def _with_prompts(parts: Sequence[ResponseRows], item_table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Put how all parts asked an item into the table of items, and name the first part that asked otherwise."""
    told = [part for part in parts if not set(PROMPTS).isdisjoint(part.items.columns)]
    if len(told) < 2:
        return item_table, []
    item_table = with_prompts(item_table, [part.items for part in told])
    is_other = [item_table[name].str.contains(DIFFERS, literal=True).any() for name in PROMPTS if name in item_table]
    if not any(is_other):
        return item_table, []
    known = told[0].items
    for number, part in enumerate(told[1:], start=1):
        whose = joined_source([one.source for one in told[:number]])
        words = check_read_alike(part.items, known, whose=whose, advice="", is_ignored=True)
        if words:
            return item_table, [f"{words} ({part.source}). {how_to_mix()}"]
        known = join_prompts([known, part.items])
    return item_table, []


def _disagreement(unequal: pl.DataFrame, column: str) -> str:
    """Say that sources disagree on a column of the item table."""
    items = unequal["item_id"].to_list()
    if column == CONTENT:
        return (
            f"the content of an item must be the same for all models, got two for {plural(len(items), 'item')}: "
            f"{shown(items)}. The benchmark changed between the runs; read them apart, or run the older models again."
        )
    first = unequal.row(0)
    if column == "metric":
        return (
            f"an item must have one metric for all models, got more for {plural(len(items), 'item')}: {first[0]!r} has "
            f"{shown(first[1])}. To take one where results have several, add: {how(metric=first[1][0])}"
        )
    return (
        f"an item must belong to one {column}, got more for {plural(len(items), 'item')}: {shown(items)} "
        f"({first[0]!r} in {shown(first[1])}). {how_to_prefix()}"
    )


def how_to_prefix() -> str:
    """Say how ids that start anew in each scenario become unique."""
    return f"If ids start anew in each, and it is to go before them, add: {how(prefix_scenario=True)}"


def _first_known(tables: Sequence[pl.DataFrame], key: str) -> pl.DataFrame:
    """One row an id, with the first known value of each column."""
    if len(tables) == 1:
        return tables[0]
    together = pl.concat(tables, how="diagonal_relaxed")
    return together.group_by(key, maintain_order=True).agg(pl.all().drop_nulls().first())
