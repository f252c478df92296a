import subprocess
import sys
from pathlib import Path

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


def test_damaged_parquet_is_refused_whatever_is_damaged_and_other_errors_come_through(tmp_path, capfd):
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
    with pytest.raises(FileNotFoundError):
        opening.read_parquet(tmp_path / "absent.parquet")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("gpt-3.5-turbo.json", "gpt-3.5-turbo"),
        ("Qwen2.5-7B.jsonl.gz", "Qwen2.5-7B"),
        ("m.CSV.ZST", "m"),
        ("v1.eval", "v1"),
        ("outputs.2.zip", "outputs.2"),
        ("a.eval.json", "a.eval"),
        ("llama-3.1", "llama-3.1"),
        (".json", ".json"),
    ],
)
def test_only_known_endings_are_taken_off_the_name_of_a_file(file, name):
    assert opening.name_without_ending(Path(file)) == name
