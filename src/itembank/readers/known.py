"""Tables of what is known of models and items, and joining them to responses."""

from pathlib import Path

import polars as pl

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.readers.columns import id_labels
from itembank.readers.table_files import read_table_file
from itembank.responses.labels import Labels
from itembank.responses.opening import Table


def read_known(path: Path, key: str) -> tuple[pl.DataFrame, Labels]:
    """Read a file of one row a model (key `model_id`) or item (key `item_id`), with its ids as text.

    Raises
    ------
    DataError
        When the file cannot be read, has no such column, or an id is missing or repeated.
    """
    return known_table(read_table_file(path, text=(key, "scenario", "subscenario"), infer=True), key)


def known_table(table: Table, key: str) -> tuple[pl.DataFrame, Labels]:
    """Check a table of one row a model or item, and make its ids text."""
    columns = table.frame.columns
    if key not in columns:
        raise DataError(f"{table.source}: there must be a column {key!r}; there are {shown(columns, 10)}.")
    problems: list[str] = []
    labels = id_labels(table, key, problems)
    if labels is not None and labels.n_names < table.frame.height:
        repeated = table.frame[key].filter(table.frame[key].is_duplicated()).unique(maintain_order=True).to_list()
        problems.append(f"{key} must be unique, got {len(repeated)} ids more than once: {shown(repeated)}.")
    if problems or labels is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    frame = table.frame.with_columns(labels.names.rename(key))
    empty_is_unknown = [
        pl.col(name).cast(pl.String).replace("", None) for name in ("scenario", "subscenario") if name in columns
    ]
    return frame.with_columns(empty_is_unknown), labels


def check_kinds(key: str, ids: Labels, known: Labels, source: str) -> None:
    """Raise `DataError` when ids are whole numbers with the responses and text in the table, or the reverse."""
    if ids.kind is not None and known.kind is not None and ids.kind != known.kind:
        raise DataError(
            f"{key} must have one type, got {ids.kind} in {source} and {known.kind} in the table of "
            f"{key.removesuffix('_id')}s. Write the ids as text."
        )


def add_known(table: pl.DataFrame, known: pl.DataFrame, key: str, source: str) -> pl.DataFrame:
    """Add the columns of `known`; what the responses say themselves stays, with a warning where they differ."""
    ids = table[key]
    absent = ids.filter(~ids.is_in(known[key].implode())).to_list()
    word = key.removesuffix("_id")
    if len(absent) == len(ids):
        raise DataError(
            f"none of the {len(ids)} {word}s of {source} is in the table of {word}s, which has "
            f"{shown(known[key].to_list())}. Check that both use the same ids."
        )
    if absent:
        _warn(
            f"{len(absent)} of {len(ids)} {word}s are not in the table of {word}s and have empty columns: "
            f"{shown(absent)}."
        )
    joined = table.join(known, on=key, how="left", maintain_order="left", suffix=_SUFFIX)
    both = [name for name in known.columns if name != key and name in table.columns]
    for name in both:
        _warn_of_difference(joined, name, key, word)
    merged = [pl.coalesce(name, pl.col(name + _SUFFIX).cast(table.schema[name], strict=False)) for name in both]
    return joined.with_columns(merged).drop(name + _SUFFIX for name in both)


_SUFFIX = "\0known"


def _warn_of_difference(joined: pl.DataFrame, name: str, key: str, word: str) -> None:
    """Warn when the table of known things says something else than the responses."""
    other = pl.col(name + _SUFFIX).cast(joined.schema[name], strict=False)
    unequal = joined.filter(pl.col(name) != other)
    if unequal.height:
        first = unequal.row(0, named=True)
        _warn(
            f"{name} of {unequal.height} {word}s differs between the responses ({first[name]!r} for {first[key]!r}) "
            f"and the table of {word}s ({first[name + _SUFFIX]!r}); what stands with the responses is used."
        )


def _warn(message: str) -> None:
    warn(message, DataWarning)
