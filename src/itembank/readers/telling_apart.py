"""Rows of one model and item, told apart by a column that nobody read: a task, a metric, a judge, an agent, attempts.

Numbers of several tasks or judges are never counted or averaged as if they were attempts: they are refused, with the
name of the column and what to write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.reading_specs import ReadingSpec, Repeats, how, how_to_add
from itembank.readers.rows import OtherColumns, ResponseRows, can_be_counted
from itembank.responses.labels import come_again, first_in_group, named, names_of, numbered

Kind = Literal["attempt", "task", "metric", "judge", "agent", "version", "prompt", "unknown"]
_STEMS: Final[Mapping[Kind, str]] = {
    "attempt": "attempt run replication replicate rep repeat repetition trial sample iteration try completion "
    "generation rollout seed epoch",
    "task": "task subtask dataset benchmark bench suite subject eval evaluation category subset split domain topic",
    "metric": "metric measure criterion dimension aspect",
    "judge": "judge grader rater annotator evaluator reviewer scorer rubric",
    "agent": "agent scaffold harness framework effort reasoningeffort reasoning thinking mode checkpoint step revision "
    "quantization quant precision provider temperature config setup setting tool variant",
    "version": "language lang locale",
    "prompt": "prompt template prompttemplate paraphrase perturbation shots fewshot numfewshot",
}
_ENDS = ("", "name", "id", "index", "idx", "number", "no", "num", "model", "type", "key", "info")
KINDS: Final[Mapping[str, Kind]] = {
    stem + end: kind for kind, stems in _STEMS.items() for stem in stems.split() for end in _ENDS
}
"""What columns of other people's tables tell, by their names without case, blanks and underscores."""
PLAIN: Final = ("task", "dataset", "benchmark", "subject", "agent", "scaffold", "harness", "effort", "reasoningeffort")
"""Tasks and agents that make another item, or model, of one id even where no pair of them comes twice."""
OFTEN: Final = 0.5
"""Share of repeated pairs that a column tells apart, unless its name is plain."""
FEW_VALUES: Final = 20
"""A column of another name must have so few values, each in half of three pairs or more."""
WHAT_TO_DO: Final[Mapping[Kind, str]] = {
    "task": "ids start anew in each, so that it goes before them",
    "metric": "take one",
    "judge": "take one",
    "agent": "it is a part of the model's id",
    "version": "it is a part of the item's id",
    "prompt": "take one",
}


@lru_cache(maxsize=10_000)
def kind_of(name: str) -> Kind:
    """Tell by its name what a column holds."""
    return KINDS.get(_plain(name), "unknown")


def is_plain(name: str) -> bool:
    """Whether a column names a task or an agent, whatever the rows are."""
    return any(_plain(name) in {stem, stem + "name", stem + "id", stem + "info"} for stem in PLAIN)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold().removesuffix(".name") if letter.isalnum())


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Rows with a response whose model and item have several."""

    group: IntArray  # (n_rows,): pair of model and item, from 0
    response: FloatArray  # (n_rows,)
    columns: Mapping[str, IntArray]  # What the source tells beside, each (n_rows,): number of its name, -1 for none
    names: Mapping[str, pl.Series]  # The names of each column

    @property
    def n_groups(self) -> int:
        """Number of pairs."""
        return int(self.group.max()) + 1

    def share(self, name: str) -> float:
        """Share of the pairs whose rows have several values in a column."""
        _, differing = first_in_group(self.group, self.n_groups, self.columns[name])
        return np.unique(self.group[differing]).size / self.n_groups

    def are_unique(self, names: Sequence[str], seeds: IntArray) -> bool:
        """Whether no two rows of a pair have the same seed and the same values in these columns."""
        key = self.group
        for index in (seeds, *(self.columns[name] for name in names)):
            key = np.unique(key * (int(index.max(initial=0)) + 2) + index + 1, return_inverse=True)[1]
        return np.unique(key).size == key.size

    def is_designed(self, name: str) -> bool:
        """Whether a column looks like a part of a design: few values, each in half of the pairs at least."""
        index, names = self.columns[name], self.names[name]
        if self.n_groups < 3 or not 2 <= names.len() <= FEW_VALUES or (index < 0).any():
            return False
        if names.str.contains(r"^-?\d*\.\d+$").any():  # a measurement
            return False
        code = np.unique(self.response, return_inverse=True)[1]
        if np.unique(code * names.len() + index).size == np.unique(code).size:  # the response once more
            return False
        pairs = np.unique(self.group * names.len() + index) % names.len()
        return bool((np.bincount(pairs) >= OFTEN * self.n_groups).all())


def told_apart(rows: ResponseRows, cell: IntArray, spec: ReadingSpec) -> ResponseRows:
    """Return rows whose attempts have a seed each, where a column of the source numbers them.

    `cell`, (n_rows,), is the pair of model and item. `DataError` where a column that is none of attempts tells rows of
    one pair apart; where no pair comes twice, a warning names items of several tasks and models of several agents.
    """
    if rows.others is None:
        return rows
    is_answered = ~np.isnan(rows.response)
    is_repeated = come_again(cell, rows.models.height * rows.items.height, is_answered)
    if not is_repeated.any():
        _tell_of_several(rows, is_answered, rows.others, spec)
        return rows
    repeated = np.flatnonzero(is_repeated)
    table = rows.others.load(rows.others.names)
    group = np.unique(cell[repeated], return_inverse=True)[1]
    again = {column.name: column.gather(repeated) for column in table}
    names = {name: names_of(column) for name, column in again.items()}
    columns = {name: numbered(column, names[name]) for name, column in again.items()}
    found = _Repeated(group, rows.response[repeated], columns, names)
    nothing = np.full(repeated.size, -1, dtype=np.int64)
    has_attempts = "attempt" in rows.frame.columns
    seeds = numbered(rows.frame["attempt"].gather(repeated)) if has_attempts else nothing
    parts, attempts = _parts_and_attempts(found, seeds)
    if parts:
        first = repeated[np.unique(group, return_index=True)[1]]
        where = first_few(named(rows.frame, first), found.n_groups)
        values = {name: names[name].to_list() for name in parts}
        advice = _advice(values, rows.others, spec, found, is_settled=found.are_unique(parts, nothing))
        raise DataError(
            f"{rows.source}: one model must have one response to an item, got several for {found.n_groups} pairs: "
            f"{where}. {advice}"
        )
    if not attempts:
        return rows
    warn(f"{rows.source}: {shown(attempts)} numbers repeated attempts: read it as epoch.", DataWarning)
    known = [table[name] for name in attempts]
    known += [rows.frame["attempt"].cast(pl.String)] if has_attempts else []
    joined = pl.select(pl.concat_str(known, separator="/", ignore_nulls=True)).to_series()
    attempt = joined.replace("", None).cast(pl.Categorical)
    return replace(rows, frame=rows.frame.with_columns(attempt=attempt))


def _parts_and_attempts(found: _Repeated, seeds: IntArray) -> tuple[list[str], Sequence[str]]:
    """Columns that tell rows of a pair apart and are none of attempts; else those that number its attempts."""
    shares = {name: share for name in found.columns if (share := found.share(name)) > 0.0}
    kinds = {name: kind_of(name) for name in shares}
    parts = [
        name
        for name, kind in kinds.items()
        if kind in {"metric", "judge"}
        or is_plain(name)
        or (kind not in {"attempt", "unknown"} and shares[name] >= OFTEN)
    ]
    attempts = [name for name, kind in kinds.items() if kind == "attempt"]
    if not found.are_unique([*parts, *attempts], seeds):
        others = [name for name, kind in kinds.items() if kind == "unknown" and found.is_designed(name)][:FEW_VALUES]
        parts += next((one for one in _some(others) if found.are_unique([*parts, *attempts, *one], seeds)), ())
    return parts, next((one for one in _some(attempts) if found.are_unique(one, seeds)), ())


def _some(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give each name, then each two of them."""
    return (one for size in (1, 2) for one in combinations(names, size))


def _advice(
    values: Mapping[str, list[str]], others: OtherColumns, spec: ReadingSpec, found: _Repeated, *, is_settled: bool
) -> str:
    """Say which columns tell rows apart, by their values, and what is to be written."""
    kinds = {name: kind_of(name) for name in values}
    repeats: Repeats = "count" if can_be_counted(found.response) else "mean"
    lines = []
    for name, kind in kinds.items():
        text = f"{name!r} ({shown(values[name], 3)}) tells them apart"
        if kind in WHAT_TO_DO:
            lines.append(f"{text}: {WHAT_TO_DO[kind]}.")
            continue
        attempts = how_to_add(spec, columns={"epoch": name}, repeats=repeats)
        one = how(where={name: values[name][0]})
        lines.append(f"{text}. If it numbers attempts, add: {attempts}; if not, take one of its values: {one}.")
    choices = _choices({name: (kind, values[name]) for name, kind in kinds.items()}, others)
    if choices:
        choices |= {"repeats": repeats} if not is_settled and spec.repeats == "error" else {}
        lines.append(f"\nTo read them, add: {how_to_add(spec, **choices)}")
    name = next(iter(values))
    drop, epoch = how(drop_columns=(name,)), how(columns={"epoch": name})
    lines.append(f"\nA column that says nothing of this is left out by {drop}; one of attempts is told by {epoch}.")
    return " ".join(lines).replace(" \n", "\n")


def _choices(parts: Mapping[str, tuple[Kind, list[str]]], others: OtherColumns) -> dict[str, Any]:
    """Return the choices of a `ReadingSpec` that take each column for what its name says it is."""
    ours = others.ours
    of: dict[Kind, list[str]] = {}
    for name, (kind, _) in parts.items():
        of.setdefault(kind, []).append(name)
    columns: dict[str, str] = {}
    more: dict[str, Any] = {}
    agents, tasks, versions = (of.get(kind, []) for kind in ("agent", "task", "version"))
    if agents:
        columns["model_id"] = "+".join([*agents, *filter(None, [ours.get("model_id")])])
    if len(tasks) == 1 and "scenario" not in ours:
        columns["scenario"], more["prefix_scenario"], tasks = tasks[0], True, []
    if tasks or versions:
        columns["item_id"] = "+".join([*tasks, *filter(None, [ours.get("item_id")]), *versions])
    metrics = of.get("metric", [])
    if metrics and ours.get("metric") != metrics[0]:
        columns["metric"] = metrics[0]
    if metrics:
        more["metric"] = (parts[metrics[0]][1][0],)
    where = {name: parts[name][1][0] for name in (*metrics[1:], *of.get("judge", []), *of.get("prompt", []))}
    choices = {"columns": columns, **more, "where": where}
    return {name: value for name, value in choices.items() if value}


def _tell_of_several(rows: ResponseRows, is_answered: BoolArray, others: OtherColumns, spec: ReadingSpec) -> None:
    """Warn of items in several tasks, and of models of several agents."""
    for name in filter(is_plain, others.names):
        kind, answered = kind_of(name), np.flatnonzero(is_answered)
        column = others.load([name])[name].gather(answered)
        owners, what = (rows.items, "item_id") if kind == "task" else (rows.models, "model_id")
        index = numbered(rows.frame[what].gather(answered), owners[what])
        differing = np.unique(index[first_in_group(index, owners.height, numbered(column))[1]])
        if differing.size:
            names = shown(owners[what].gather(differing).to_list())
            values = names_of(column).to_list()
            how_to = how_to_add(spec, **_choices({name: (kind, values)}, others))
            warn(
                f"{rows.source}: {differing.size} {what}s have several values of {name!r} ({shown(values, 3)}), and "
                f"count as one each: {names}. To tell them apart, add: {how_to}",
                DataWarning,
            )
