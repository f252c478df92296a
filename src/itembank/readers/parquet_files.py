"""Parquet tables."""

from pathlib import Path

from itembank.errors import DataError
from itembank.files.documents import PARQUET_MARK
from itembank.responses.opening import Keep, Table, read_parquet, read_parquet_schema, translated


def read_parquet_file(path: Path, *, keep: Keep) -> Table:
    """Read the columns that `keep` chooses.

    Raises
    ------
    DataError
        When the file is cut or damaged.
    """
    check_end(path)
    with translated(path, "Parquet file"):
        columns = list(read_parquet_schema(path))
        kept = set(keep(columns))
        places = [place for place, name in enumerate(columns) if name in kept]  # names like ^x$ would be patterns
        return Table(str(path), read_parquet(path, columns=places, glob=False))


def check_end(path: Path) -> None:
    """Refuse a file that was cut: the last bytes are the mark again."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(PARQUET_MARK)))
        end = file.read()
    if size < 12 or end != PARQUET_MARK:
        raise DataError(
            f"{path}: the Parquet file is cut: it must end in PAR1 but stops after {size} bytes. Copy it again."
        )
