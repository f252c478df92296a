"""Rows of one model and item, told apart by a column that nobody read: a task, a metric, a judge, an agent, attempts.

Numbers of several tasks or judges are never counted or averaged as if they were attempts: they are refused, with the
name of the column and what to write.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, shown, warn
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.readers.reading_specs import ReadingSpec, Repeats, how, how_to_add
from itembank.readers.rows import OtherColumns, ResponseRows
from itembank.readers.settling import can_be_counted
from itembank.responses.labels import come_again, first_in_group, named, names_of, numbered
from itembank.tables import plural

Kind = Literal["attempt", "task", "metric", "judge", "agent", "version", "prompt", "choice", "option", "unknown"]
_STEMS: Final[Mapping[Kind, str]] = {
    "attempt": "attempt run replication replicate rep repeat repetition trial sample iteration try completion "
    "generation rollout seed epoch",
    "task": "task subtask dataset benchmark bench suite subject eval evaluation category subset split domain topic",
    "metric": "metric measure criterion dimension aspect",
    "judge": "judge grader rater annotator evaluator reviewer scorer rubric",
    "agent": "agent scaffold harness framework effort reasoningeffort reasoning thinking mode checkpoint step revision "
    "quantization quant precision provider temperature config setup setting tool variant "
    "condition arm method strategy approach",
    "version": "language lang locale",
    "choice": "chosen ischosen selected isselected picked ispicked",
    "prompt": "prompt template prompttemplate paraphrase perturbation shots fewshot numfewshot nshots numshots nshot",
    "option": "option optiontext answeroption choice choicetext answerchoice alternative",
}
_ENDS = ("", "name", "id", "index", "idx", "number", "no", "num", "model", "type", "key", "info", "version")
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
    "choice": "if rows are options of questions, take those that were chosen",
    "option": "where a row is one answer option, keep the one that was chosen alone",
}


@lru_cache(maxsize=10_000)
def kind_of(name: str) -> Kind:
    """Tell by its name what a column holds."""
    return KINDS.get(_plain(name), "unknown")


def attempts_of(columns: Sequence[str]) -> list[str]:
    """Return the columns that by name are one attempt each: run1, run_2, score_seed3; none where only one is."""
    stems = {name: re.sub(r"[\W_]*\d+$", "", name.casefold()) for name in columns if name[-1:].isdigit()}
    words = {name: {kind_of(stem), kind_of(re.split(r"[\W_]", stem)[-1])} for name, stem in stems.items()}
    found = [name for name in stems if "attempt" in words[name]]
    return found if len(found) > 1 and len({stems[name] for name in found}) == 1 else []


def is_plain(name: str) -> bool:
    """Whether a column names a task or an agent, whatever the rows are."""
    return any(_plain(name) in {stem, stem + "name", stem + "id", stem + "info"} for stem in PLAIN)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold().removesuffix(".name") if letter.isalnum())


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Rows with a response whose model and item have several."""

    rows: pl.DataFrame  # `group` (pair of model and item, from 0), `response`, `attempt`
    columns: Mapping[str, pl.Series]  # What the source tells beside, each (n_rows,)

    @property
    def n_groups(self) -> int:
        """Number of pairs."""
        return self.rows["group"].n_unique()

    def distinct(self, *columns: pl.Series) -> pl.DataFrame:
        """Return the different rows of some columns, of whatever names: `0`, `1`, ..."""
        return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)]).unique()

    def share(self, name: str) -> float:
        """Share of the pairs whose rows have several values in a column."""
        values = self.distinct(self.rows["group"], self.columns[name]).drop_nulls()
        return values["0"].filter(values["0"].is_duplicated()).n_unique() / self.n_groups

    def are_unique(self, names: Sequence[str], *, by_attempt: bool = True) -> bool:
        """Whether no two rows of a pair have the same values in these columns (and the same attempt)."""
        key = [
            self.rows["group"],
            *([self.rows["attempt"]] if by_attempt else []),
            *(self.columns[one] for one in names),
        ]
        return self.distinct(*key).height == self.rows.height

    def is_designed(self, name: str) -> bool:
        """Whether a column looks like a part of a design: few values, each in half of the pairs at least."""
        column, response = self.columns[name], self.rows["response"]
        is_unknown = kind_of(name) == "unknown"  # what is called an option needs fewer pairs to be one
        if (is_unknown and self.n_groups < 3) or column.null_count() or not 2 <= column.n_unique() <= FEW_VALUES:
            return False
        if column.str.contains(r"^-?\d*\.\d+$").any():  # a measurement
            return False
        if is_unknown and self.distinct(response, column).height == response.n_unique():  # the response once more
            return False
        n_pairs = self.distinct(self.rows["group"], column)["1"].value_counts()["count"]
        return bool((n_pairs >= OFTEN * self.n_groups).all())


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
    nothing = pl.Series([None] * rows.n_rows, dtype=pl.String)
    attempts = rows.frame["attempt"].cast(pl.String) if "attempt" in rows.frame.columns else nothing
    group = np.unique(cell[repeated], return_inverse=True)[1]
    told = pl.DataFrame({"group": group, "response": rows.response[repeated], "attempt": attempts.gather(repeated)})
    found = _Repeated(told, {column.name: column.gather(repeated) for column in table})
    parts, numbering = _parts_and_attempts(found)
    if parts:
        first = repeated[np.unique(group, return_index=True)[1]]
        where = first_few(named(rows.frame, first), found.n_groups)
        values = {name: names_of(found.columns[name]).to_list() for name in parts}
        advice = _advice(values, rows.others, spec, found)
        raise DataError(
            f"{rows.source}: one model must have one response to an item, got several for "
            f"{plural(found.n_groups, 'pair')}: {where}. {advice}"
        )
    if not numbering:
        return rows
    warn(f"{rows.source}: {shown(numbering)} numbers repeated attempts: read it as epoch.", DataWarning)
    known = [*(table[name] for name in numbering), attempts]
    joined = pl.select(pl.concat_str(known, separator="/", ignore_nulls=True)).to_series()
    return replace(rows, frame=rows.frame.with_columns(attempt=joined.replace("", None).cast(pl.Categorical)))


def _parts_and_attempts(found: _Repeated) -> tuple[list[str], Sequence[str]]:
    """Columns that tell rows of a pair apart and are none of attempts; else those that number its attempts."""
    shares = {name: share for name in found.columns if (share := found.share(name)) > 0.0}
    kinds = {name: kind_of(name) for name in shares}
    if chosen := [name for name, kind in kinds.items() if kind == "choice" and _taken(found.columns[name])]:
        return chosen[:1], ()
    parts = [
        name
        for name, kind in kinds.items()
        if kind in {"metric", "judge"}
        or is_plain(name)
        or (kind not in {"attempt", "option", "unknown"} and shares[name] >= OFTEN)
    ]
    attempts = [name for name, kind in kinds.items() if kind == "attempt"]
    if not found.are_unique([*parts, *attempts]):
        others = [name for name, kind in kinds.items() if kind in {"option", "unknown"} and found.is_designed(name)]
        parts += next((one for one in _some(others[:FEW_VALUES]) if found.are_unique([*parts, *attempts, *one])), ())
    return parts, next((one for one in _some(attempts) if found.are_unique(one)), ())


def _taken(column: pl.Series) -> list[str]:
    """Return the value of the options that were chosen, where a column tells of each whether it was."""
    values = sorted(map(str, column.unique()), key=str.lower)
    return values[1:] if [one.lower() for one in values] in (["false", "true"], ["0", "1"]) else []


def _some(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give each name, then each two of them."""
    return (one for size in (1, 2) for one in combinations(names, size))


def _advice(values: Mapping[str, list[str]], others: OtherColumns, spec: ReadingSpec, found: _Repeated) -> str:
    """Say which columns tell rows apart, by their values, and what is to be written."""
    repeats: Repeats = "count" if can_be_counted(found.rows["response"].to_numpy()) else "mean"
    lines = []
    for name, own in values.items():
        text = f"{name!r} ({shown(own, 3)}) tells them apart"
        if kind_of(name) in WHAT_TO_DO:
            lines.append(f"{text}: {WHAT_TO_DO[kind_of(name)]}.")
            continue
        attempts = how_to_add(spec, columns={"epoch": name}, repeats=repeats)
        one = how(where={name: own[0]})
        parts = how_to_add(spec, columns={"item_id": "+".join([name, *filter(None, [others.ours.get("item_id")])])})
        lines.append(
            f"{text}. If it numbers attempts, add: {attempts}; if ids of items start anew in each, add: {parts}; if "
            f"not, take one of its values: {one}."
        )
    choices = _choices(values, others)
    if choices:
        is_settled = "choice" in map(kind_of, values) or found.are_unique([*values], by_attempt=False)
        choices |= {"repeats": repeats} if not is_settled and spec.repeats == "error" else {}
        lines.append(f"\nTo read them, add: {how_to_add(spec, **choices)}")
    name = next(iter(values))
    drop, epoch = how(drop_columns=(name,)), how(columns={"epoch": name})
    lines.append(f"\nA column that says nothing of this is left out by {drop}; one of attempts is told by {epoch}.")
    return " ".join(lines).replace(" \n", "\n")


def _choices(values: Mapping[str, list[str]], others: OtherColumns) -> dict[str, Any]:
    """Return the choices of a `ReadingSpec` that take each column, with its values, for what its name says it is."""
    ours, columns, more = others.ours, dict[str, str](), dict[str, Any]()
    agents, tasks, versions, metrics, judges, prompts = (
        [name for name in values if kind_of(name) == kind]
        for kind in ("agent", "task", "version", "metric", "judge", "prompt")
    )
    if agents:
        columns["model_id"] = "+".join([*agents, *filter(None, [ours.get("model_id")])])
    if len(tasks) == 1 and "scenario" not in ours:
        columns["scenario"], more["prefix_scenario"], tasks = tasks[0], True, []
    if tasks or versions:
        columns["item_id"] = "+".join([*tasks, *filter(None, [ours.get("item_id")]), *versions])
    if metrics and ours.get("metric") != metrics[0]:
        columns["metric"] = metrics[0]
    if metrics:
        more["metric"] = (values[metrics[0]][0],)
    where = {name: values[name][0] for name in (*metrics[1:], *judges, *prompts)}
    where |= {name: _taken(pl.Series(own))[0] for name, own in values.items() if kind_of(name) == "choice"}
    choices = {"columns": columns, **more, "where": where}
    return {name: value for name, value in choices.items() if value}


def _tell_of_several(rows: ResponseRows, is_answered: BoolArray, others: OtherColumns, spec: ReadingSpec) -> None:
    """Warn of items in several tasks, and of models of several agents."""
    for name in filter(is_plain, others.names):
        answered = np.flatnonzero(is_answered)
        column = others.load([name])[name].gather(answered)
        owners, what = (rows.items, "item_id") if kind_of(name) == "task" else (rows.models, "model_id")
        index = numbered(rows.frame[what].gather(answered), owners[what])
        differing = np.unique(index[first_in_group(index, owners.height, numbered(column))[1]])
        if differing.size:
            names = shown(owners[what].gather(differing).to_list())
            values = names_of(column).to_list()
            how_to = how_to_add(spec, **_choices({name: values}, others))
            warn(
                f"{rows.source}: {differing.size} {what}s have several values of {name!r} ({shown(values, 3)}), and "
                f"count as one each: {names}. To tell them apart, add: {how_to}",
                DataWarning,
            )
