"""Tables in a study's folder: sealed when they are written, and refused when they are not what was written."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from itembank.errors import DataError, shown
from itembank.files.atomic import replacing_file
from itembank.files.documents import BLANK, DIGEST_KEY, seal, seal_holds
from itembank.responses.opening import read_parquet, read_parquet_metadata

NAME_KEY = "itembank.study_table"


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all."""
    with replacing_file(path) as temporary:
        write_sealed(table, temporary, path.name)


def write_sealed(table: pl.DataFrame, path: Path, name: str) -> None:
    """Write a table with the name that its file will have, and a digest of the file, in its metadata."""
    table.write_parquet(path, metadata={DIGEST_KEY: BLANK, NAME_KEY: name})
    seal(path)


def read_tables(paths: Sequence[Path]) -> list[pl.DataFrame]:
    """Read tables of a study; `DataError` when one is not what was written, or cannot be read."""
    check_tables(paths)
    return [read_parquet(path) for path in paths]


def check_tables(paths: Sequence[Path]) -> None:
    """Raise `DataError` when a table is not what was written."""
    damaged = [path for path in paths if not is_whole(path)]
    if damaged:
        raise DataError(
            f"{shown(damaged)} cannot be read: not what was written there. Delete what is damaged, and give the "
            "command that ran the study again: it goes on with the rest."
        )


def is_whole(path: Path) -> bool:
    """Whether a table is there, can be read and is what was written under this name."""
    try:
        return seal_holds(path) and read_parquet_metadata(path).get(NAME_KEY) == path.name
    except (pl.exceptions.PolarsError, DataError, OSError):
        return False
