import hashlib
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from itembank.bank.selections import Selection
from itembank.errors import DataError
from itembank.files import documents
from itembank.files.documents import (
    BLANK,
    MARK,
    N_DIGITS,
    is_sealed,
    parse_json,
    read_json,
    read_toml,
    seal,
    seal_holds,
)
from itembank.studies.study_files import load_study

NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NESTED, "cannot be read as JSON: it is nested too deeply"),
        ('{"a": "\\ud800"}', r"holds half a character, \\ud800"),
        ("{", "cannot be read as JSON: Expecting"),
        ("1" * 5000, "cannot be read as JSON: Exceeds the limit"),
    ],
)
def test_json_that_cannot_be(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataError, match=message):
        read_json(tmp_path / "file")


def test_whole_characters_in_escapes_are_read():
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]


@pytest.mark.parametrize(
    ("text", "message"), [("a = " + NESTED, "nested too deeply"), ("a =", "cannot be read as TOML: Invalid value")]
)
def test_toml_that_cannot_be(tmp_path, text, message):
    (tmp_path / "file").write_text(text)
    with pytest.raises(DataError, match=message):
        read_toml(tmp_path / "file")


def test_only_ordinary_files_of_a_sane_size_are_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="must be an ordinary file, got a pipe"):
        read_json(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(DataError, match="must be an ordinary file, got a device"):
        read_json(tmp_path / "endless")
    (tmp_path / "file").write_text("[1, 2, 3]")
    monkeypatch.setattr(documents, "MOST_BYTES", 5)
    with pytest.raises(DataError, match="must have at most 5 bytes, got 9"):
        read_json(tmp_path / "file")


@pytest.mark.parametrize(
    "text", [NESTED, '{"items": [{"item_id": "a", "scenario": "s", "weight": 1' + "0" * 400 + "}]}"]
)
def test_a_selection_that_cannot_be_is_a_data_error(tmp_path, text):
    (tmp_path / "selection.json").write_text(text)
    with pytest.raises(DataError, match=r"nested too deeply|weight \(a number"):
        Selection.load(tmp_path / "selection.json")


def test_a_study_nested_too_deeply_is_a_data_error(tmp_path):
    (tmp_path / "study.toml").write_text("a = " + NESTED)
    with pytest.raises(DataError, match=r"nested too deeply.*cannot be read as a study"):
        load_study(tmp_path / "study.toml")


def sealed(path):
    save_file({"numbers": np.arange(5.0)}, path, {"made": f"by a test {BLANK}"})
    seal(path)
    return path.read_bytes()


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(tmp_path):
    content = sealed(tmp_path / "file")
    place = content.index(MARK) + len(MARK)
    zeroed = content[:place] + b"0" * N_DIGITS + content[place + N_DIGITS :]
    assert content[place : place + N_DIGITS].decode() == hashlib.sha256(zeroed).hexdigest()
    assert seal_holds(tmp_path / "file")


def test_a_changed_byte_is_found_wherever_it_is(tmp_path):
    path = tmp_path / "file"
    content = sealed(path)
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert not seal_holds(path), place


@pytest.mark.parametrize("content", [b"", b"short", b"PAR1" + b"\xff" * 20, b"\xff" * 40, b"PAR1PAR1"])
def test_a_file_without_a_digest_has_none(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not is_sealed(path)
    assert not seal_holds(path)
    with pytest.raises(ValueError, match="no place"):
        seal(path)
