"""Tables in a study's folder: sealed when they are written, and refused when they are not what was written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from itembank.data.atomic import replacing_file
from itembank.data.digests import BLANK, DIGEST_KEY, RECORD_KEY, is_sealed, seal, seal_holds
from itembank.data.parquet import read_parquet, read_parquet_metadata
from itembank.errors import DataError, DataWarning, shown, warn

NAME_KEY = "itembank.study_table"


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all."""
    with replacing_file(path) as temporary:
        write_sealed(table, temporary, path.name)


def write_sealed(table: pl.DataFrame, path: Path, name: str) -> None:
    """Write a table with the name that its file will have, and a digest of the file, in its metadata."""
    table.write_parquet(path, metadata={DIGEST_KEY: BLANK, NAME_KEY: name})
    seal(path)


def read_tables(paths: Sequence[Path], manifest: Mapping[str, Any]) -> list[pl.DataFrame]:
    """Read tables of the study of this manifest.

    Raises
    ------
    DataError
        When one is not what was written, or cannot be read.
    """
    check_tables(paths, manifest)
    return [read_parquet(path) for path in paths]


def check_tables(paths: Sequence[Path], manifest: Mapping[str, Any]) -> None:
    """Raise `DataError` when a table is not what was written."""
    damaged = [path for path in paths if not is_whole(path, manifest)]
    if damaged:
        raise DataError(
            f"{shown(damaged)} cannot be read: not what was written there. Delete what is damaged, and give the "
            "command that ran the study again: it goes on with the rest."
        )


def is_whole(path: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a table can be read and is what was written there.

    Studies that were begun by releases that wrote no digests have none in their manifest, and tables without.
    """
    try:
        if is_sealed(path):
            return seal_holds(path) and read_parquet_metadata(path).get(NAME_KEY) == path.name
        read_parquet(path)
    except (pl.exceptions.PolarsError, DataError, OSError):
        return False
    return RECORD_KEY not in manifest


def warn_of_damage(paths: Sequence[Path]) -> None:
    """Say which parts of a study are damaged and made again."""
    if paths:
        warn(f"{len(paths)} parts of the study are damaged and are run again: {shown(paths)}.", DataWarning)
