"""Models that several sets of results name differently: proposals to edit, and the edited table read back."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import polars as pl

from itembank.checks import check_fraction
from itembank.errors import DataError, ParameterError, shown
from itembank.readers.model_names import ModelName, likeness
from itembank.readers.table_files import read_table_file
from itembank.spreadsheets import unguarded

LEAST = 0.6
"""Likeness from which two names are proposed."""
MOST = 3
"""Proposals for one model in one other set."""
YES = "yes"
COLUMNS = ("same", "score", "set", "model_id", "other_set", "other_model_id", "differs")


def match_models(sets: Mapping[str, Sequence[str]], *, least: float = LEAST) -> pl.DataFrame:
    """Propose which models of several sets are the same one, by their names.

    Nothing is joined by it: look through the table, write 'yes' or 'no' into its column `same`, and give it to
    `read_responses` by `read_model_names`.

    Parameters
    ----------
    sets : mapping of a set's name to its model ids
        Two or more.
    least : float
        Smallest score of a proposal, in (0, 1].

    Returns
    -------
    table
        One row a pair, the likeliest first: `same` ('yes' where two names differ in nothing but how they are written,
        else empty), `score`, `set`, `model_id`, `other_set`, `other_model_id`, `differs` (words that one name has and
        the other has not). For each model at most three of another set. Names that are the same letter by letter are
        not in it: they are one model in any case.

    Raises
    ------
    ParameterError
        For fewer than two sets, and for a score outside (0, 1].

    Examples
    --------
    >>> found = match_models({"a": ["gpt-4o-2024-05-13"], "b": ["GPT-4O-20240513", "GPT-4O-mini"]})
    >>> found.select("same", "other_model_id", "differs").rows()
    [('yes', 'GPT-4O-20240513', '')]
    """
    if len(sets) < 2:
        raise ParameterError(f"names are matched between two sets or more, got {shown(list(sets))}.")
    check_fraction("least", least, whole=True)
    rows = [row for pair in combinations(sets, 2) for row in _pairs(sets, *pair, least)]
    schema = {name: pl.Float64 if name == "score" else pl.String for name in COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("score", descending=True, maintain_order=True)


def read_model_names(path: str | Path) -> dict[str, str]:
    """Read an edited table of `match_models`: what the models that are the same as others are to be called.

    Parameters
    ----------
    path : path
        CSV or Parquet. Rows count whose column `same` says 'yes'.

    Returns
    -------
    dict of model id to the name it gets
        That of the first row that has the model.

    Raises
    ------
    DataError
        When a column is missing, `same` is something else than 'yes', 'no' or empty, or two models of one set would
        become one.
    """
    frame = read_table_file(Path(path), text=COLUMNS, infer=True).frame
    absent = [name for name in COLUMNS if name not in {"score", "differs"} and name not in frame.columns]
    if absent:
        raise DataError(f"{path}: there must be columns {shown(absent)}; there are {shown(frame.columns, 10)}.")
    says = frame["same"].cast(pl.String).fill_null("").str.strip_chars().str.to_lowercase()
    strange = says.filter(~says.is_in([YES, "no", ""])).unique(maintain_order=True).to_list()
    if strange:
        raise DataError(f"{path}: 'same' must be 'yes', 'no' or empty, got {shown(strange)}.")
    groups = _groups(frame.filter(says == YES))
    problems = [problem for group in groups for problem in _problems(group)]
    if problems:
        raise DataError(f"{path}: {' '.join(problems[:5])} Write 'no' to all but one of them.")
    return {model: group[0][1] for group in groups for _, model in group if model != group[0][1]}


def _pairs(
    sets: Mapping[str, Sequence[str]], one: str, other: str, least: float
) -> Iterator[tuple[str, float, str, str, str, str, str]]:
    """Proposals between two sets."""
    theirs = {name: ModelName.of(name) for name in sets[other] if name not in set(sets[one])}
    for name in sets[one]:
        if name in set(sets[other]):
            continue
        mine = ModelName.of(name)
        found = [(likeness(mine, parsed), candidate) for candidate, parsed in theirs.items()]
        likely = sorted((pair for pair in found if pair[0].score >= least), key=lambda pair: -pair[0].score)
        for alike, candidate in likely[:MOST]:
            is_sure = alike.score == 1.0
            yield (YES if is_sure else "", round(alike.score, 3), one, name, other, candidate, alike.differs)


def _groups(pairs: pl.DataFrame) -> list[list[tuple[str, str]]]:
    """(set, model id) of each group of models that are said to be one, directly or by way of others."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in pairs.select("set", "model_id", "other_set", "other_model_id").iter_rows():
        one, other = (row[0], unguarded(row[1])), (row[2], unguarded(row[3]))
        mine, theirs = groups.setdefault(one, [one]), groups.setdefault(other, [other])
        if mine is not theirs:
            mine.extend(theirs)
            groups.update(dict.fromkeys(theirs, mine))
    return list({id(group): group for group in groups.values()}.values())


def _problems(group: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Say which models of one set would become one."""
    of_set = defaultdict(list)
    for name, model in group:
        of_set[name].append(model)
    for name, models in of_set.items():
        if len(models) > 1:
            yield f"models of one set must stay apart, but {shown(models)} of {name} would be one."
