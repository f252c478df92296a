"""Parquet tables."""

from pathlib import Path

from itembank.data.digests import PARQUET_MARK
from itembank.data.parquet import read_parquet, read_parquet_schema
from itembank.data.readers.opening import Keep, Table, translated
from itembank.errors import DataError


def read_parquet_file(path: Path, *, keep: Keep) -> Table:
    """Read the columns that `keep` chooses.

    Raises
    ------
    DataError
        When the file is cut or damaged.
    """
    _check_end(path)
    with translated(path, "Parquet file"):
        columns = list(read_parquet_schema(path))
        return Table(str(path), read_parquet(path, columns=list(keep(columns)), glob=False))


def _check_end(path: Path) -> None:
    """Refuse a file that was cut: the last bytes are the mark again."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(PARQUET_MARK)))
        end = file.read()
    if size < 12 or end != PARQUET_MARK:
        raise DataError(
            f"{path}: the Parquet file is cut: it must end in PAR1 but stops after {size} bytes. Copy it again."
        )
