"""Tables in a study's folder: sealed when they are written, and refused when they are not what was written."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from itembank.data.atomic import replacing_file
from itembank.data.digests import BLANK, is_sealed, seal, seal_holds
from itembank.data.parquet import read_parquet
from itembank.errors import DataError, DataWarning, shown, warn

DIGEST_KEY = "itembank.digest"


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all."""
    with replacing_file(path) as temporary:
        write_sealed(table, temporary)


def write_sealed(table: pl.DataFrame, path: Path) -> None:
    """Write a table with a digest of the file in its metadata."""
    table.write_parquet(path, metadata={DIGEST_KEY: BLANK})
    seal(path)


def read_tables(paths: Sequence[Path]) -> list[pl.DataFrame]:
    """Read tables.

    Raises
    ------
    DataError
        When one is not what was written, or cannot be read.
    """
    check_tables(paths)
    return [read_parquet(path) for path in paths]


def check_tables(paths: Sequence[Path]) -> None:
    """Raise `DataError` when a table is not what was written; those of earlier releases are tried."""
    damaged = [path for path in paths if not is_whole(path)]
    if damaged:
        raise DataError(
            f"{shown(damaged)} cannot be read: not what was written there. Delete what is damaged, and give the "
            "command that ran the study again: it goes on with the rest."
        )


def is_whole(path: Path) -> bool:
    """Whether a table can be read and is what was written."""
    if is_sealed(path):
        return seal_holds(path)
    try:
        read_parquet(path)
    except (pl.exceptions.PolarsError, DataError, OSError):
        return False
    return True


def warn_of_damage(paths: Sequence[Path]) -> None:
    """Say which parts of a study are damaged and made again."""
    if paths:
        warn(f"{len(paths)} parts of the study are damaged and are run again: {shown(paths)}.", DataWarning)
