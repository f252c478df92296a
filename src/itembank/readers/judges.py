"""Tables in which several judges marked the same answers: one matrix of responses a judge."""

from dataclasses import replace
from pathlib import Path

from itembank.errors import DataError, shown
from itembank.readers.columns import as_text
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.table import with_usual_names
from itembank.readers.table_files import read_table_file
from itembank.responses.responses import ResponseMatrix


def read_by_judge(path: Path) -> list[ResponseMatrix]:
    """Read a long table with a column `judge` (or 'grader', ...): the responses by each judge, in the order of names.

    Several marks of one answer by one judge are averaged.

    Raises
    ------
    DataError
        Without such a column, with one judge, or where the answers by a judge cannot be read.
    """
    frame, spec = read_table_file(path).frame, ReadingSpec(repeats="mean")
    usual = with_usual_names(frame.columns, spec)
    column = usual.column("judge")
    if column not in frame.columns:
        raise DataError(f"{path}: there must be a column 'judge', got columns {shown(frame.columns, 12)}.")
    names = as_text(frame[column]).str.strip_chars().drop_nulls().unique().sort().to_list()
    if len(names) < 2:
        raise DataError(f"{path}: two judges or more must be compared, got {shown(names)} in {column!r}.")
    # what the columns were taken for is said once
    specs = [spec, *[usual] * (len(names) - 1)]
    return [
        read_responses(path, spec=replace(one, where={column: name})) for one, name in zip(specs, names, strict=True)
    ]
