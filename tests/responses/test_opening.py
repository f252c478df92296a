import subprocess
import sys

import polars as pl
import pytest

from itembank.responses import opening

CHATTING = """
import os, sys
import polars as pl
from itembank.responses import opening

def panic():
    os.write(2, b"thread 'main' panicked at ...\\n")
    raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

def warned():
    os.write(2, b"worth knowing\\n")
    return 1

try:
    opening.quiet(panic)()
except Exception as error:
    print(type(error).__name__, error)
print(opening.quiet(warned)())
"""


def test_a_panic_is_an_ordinary_error_and_is_not_told_on_the_terminal():
    done = subprocess.run([sys.executable, "-c", CHATTING], capture_output=True, text=True, check=True)
    assert done.stdout == "ComputeError it is damaged. Copy it again.\n1\n"
    assert done.stderr == "worth knowing\n"


def test_damaged_parquet_is_refused_whatever_is_damaged(tmp_path, capfd):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"name": ["a", "b", "c"] * 30, "number": range(90)}).write_parquet(path)
    content = path.read_bytes()
    for start in range(0, len(content) - 40, 40):
        path.write_bytes(content[:start] + bytes(40) + content[start + 40 :])
        try:
            opening.read_parquet(path)
        except pl.exceptions.PolarsError:
            continue
    assert "panicked" not in capfd.readouterr().err


def test_other_errors_come_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        opening.read_parquet(tmp_path / "absent.parquet")
