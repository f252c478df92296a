"""py-irt's JSON Lines: one line a model, ``{"subject_id": ..., "responses": {item: 0 or 1}}``."""

from collections.abc import Sequence
from pathlib import Path

from itembank.errors import DataError
from itembank.progress import ProgressCallback, silent
from itembank.readers.collecting import read_each
from itembank.readers.json_files import Record, read_records, table_of_records
from itembank.readers.long_table import rows_of_long
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, join_rows, rename_model


def is_py_irt(record: Record) -> bool:
    """Whether an object is a line of py-irt's format."""
    return "subject_id" in record and isinstance(record.get("responses"), dict)


def py_irt_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read files in py-irt's format as long tables."""
    return join_rows(read_each(paths, lambda path: _file_rows(path, spec), progress, spec))


def _file_rows(path: Path, spec: ReadingSpec) -> ResponseRows:
    blocks = (_long(path, records) for records in read_records(path))
    table = table_of_records(path, blocks, keep=lambda keys: keys, text=("model_id", "item_id"))
    rows = rows_of_long(table, ReadingSpec(max_response=spec.max_response))
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _long(path: Path, records: list[Record]) -> list[Record]:
    if not all(map(is_py_irt, records)):
        raise DataError(f'{path}: every object must have "subject_id" and an object "responses", got one without.')
    return [
        {"model_id": record["subject_id"], "item_id": item, "response": response}
        for record in records
        for item, response in record["responses"].items()
    ]
