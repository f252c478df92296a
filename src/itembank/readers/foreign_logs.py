"""Results of another program than the one that was asked for, told by what their files are called."""

from pathlib import Path

from itembank.errors import DataError, remedy
from itembank.readers.sources import SOURCES, source_of_name


def check_not_foreign(path: Path) -> None:
    """Raise `DataError` when a folder holds results of a program that another reader reads."""
    for file in sorted(path.rglob("*")) if path.is_dir() else []:
        name = source_of_name(file)
        if name:
            how = remedy(f"format={name!r}", f"itembank import --as {name}")
            raise DataError(f"{path}: holds {SOURCES[name].title} ({file.name}). Read them as such ({how}).")
