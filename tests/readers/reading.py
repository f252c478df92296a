"""What most tests of readers do: read with choices, be refused in words, be warned in words."""

import gzip
import json
import warnings

import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.collecting import rows_of_source
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec


def read(source, **choices):
    """Read with these choices."""
    return read_responses(source, spec=ReadingSpec(**choices))


def read_text(folder, text, name="r.csv", **choices):
    """Read a file of this text."""
    return read(put(folder / name, text), **choices)


def refused(folder, text, name="r.csv", **choices):
    """What is said on the command line of a file that cannot be read."""
    with command_line_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return refuses(".", read_text, folder, text, name, **choices)


def refuses(words, function, *given, error=DataError, **choices):
    """Check that a call is refused in these words, a regular expression; gives the whole message."""
    with pytest.raises(error, match=words) as caught:
        function(*given, **choices)
    said = str(caught.value)
    del caught  # its traceback holds this frame, and with it whatever the call left open
    return said


def warns(words, function, *given, category=DataWarning, **choices):
    """Check that a call warns in these words, a regular expression; gives what it returns."""
    with pytest.warns(category, match=words):
        return function(*given, **choices)


def put(path, content):
    """Write a file, of text or as JSON, and give its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def put_lines(path, records):
    """Write JSON Lines, and give the path."""
    return put(path, "".join(f"{json.dumps(one)}\n" for one in records))


def write_frame(frame, path):
    """Write a table as the name says, packed where it ends in gz, and give the path."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress((frame.write_csv() if kind == "csv" else frame.write_ndjson()).encode()))
    else:
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[kind](path)
    return path


def rows_of(program, source, **choices):
    """Rows that the reader of a program makes."""
    return rows_of_source(program, [source], ReadingSpec(**choices))
