"""Reading one table file, whichever kind it is."""

from collections.abc import Sequence
from pathlib import Path

from itembank.errors import DataError
from itembank.readers.csv_files import read_csv_file
from itembank.readers.json_files import read_json_table
from itembank.readers.parquet_files import read_parquet_file
from itembank.responses.opening import Keep, Table, file_kind


def read_table_file(path: Path, *, keep: Keep = list, text: Sequence[str] = (), infer: bool = False) -> Table:
    """Read a Parquet, CSV or JSON Lines table.

    Parameters
    ----------
    path : Path
    keep : function from column names to those to load
    text : column names
        Read as text from CSV and JSON Lines, where mixed types are noted.
    infer : bool
        CSV: find the types of the other columns instead of leaving all as text.

    Raises
    ------
    DataError
        When the file is empty, cut, not UTF-8, or not what its suffix says.
    """
    kind = file_kind(path)
    if kind == "parquet":
        table = read_parquet_file(path, keep=keep)
    elif kind == "csv":
        table = read_csv_file(path, keep=keep, text=text, infer=infer)
    else:
        table = read_json_table(path, keep=keep, text=text)
    if table.frame.height == 0:
        raise DataError(f"{path}: the file is empty: it has column names but no rows.")
    return table
