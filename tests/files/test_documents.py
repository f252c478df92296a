import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from safetensors.numpy import save_file

from itembank.bank.selections import Selection
from itembank.errors import ParameterError
from itembank.files import documents
from itembank.files.documents import (
    BLANK,
    MARK,
    N_DIGITS,
    is_sealed,
    parse_json,
    read_choices,
    read_json,
    read_toml,
    seal,
    seal_holds,
)
from itembank.methods import MethodTable
from itembank_studies.study_files import load_study
from tests.readers.reading import put, refuses

NESTED = "[" * 100_000


@pytest.mark.parametrize(("read", "text", "message"), [
    (read_json, NESTED, "cannot be read as JSON: it is nested too deeply"),
    (read_json, '{"a": "\\ud800"}', r"holds half a character, \\ud800"),
    (read_json, "{", "cannot be read as JSON: Expecting"),
    (read_json, "1" * 5000, "cannot be read as JSON: Exceeds the limit"),
    (read_toml, "a = " + NESTED, "nested too deeply"),
    (read_toml, "a =", "cannot be read as TOML: Invalid value"),
])  # fmt: skip
def test_documents_that_cannot_be(tmp_path, read, text, message):
    refuses(message, read, put(tmp_path / "file", text))


def test_whole_characters_in_escapes_are_read():
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]


def test_only_ordinary_files_of_a_sane_size_are_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    refuses("must be an ordinary file, got a pipe", read_json, tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    refuses("must be an ordinary file, got a device", read_json, tmp_path / "endless")
    (tmp_path / "file").write_text("[1, 2, 3]")
    monkeypatch.setattr(documents, "MOST_BYTES", 5)
    refuses("must have at most 5 bytes, got 9", read_json, tmp_path / "file")


@pytest.mark.parametrize(
    "text", [NESTED, '{"items": [{"item_id": "a", "scenario": "s", "weight": 1' + "0" * 400 + "}]}"]
)
def test_a_selection_that_cannot_be_is_a_data_error(tmp_path, text):
    refuses(r"nested too deeply|weight \(a number", Selection.load, put(tmp_path / "selection.json", text))


def test_a_study_nested_too_deeply_is_a_data_error(tmp_path):
    refuses(r"nested too deeply.*cannot be read as a study", load_study, put(tmp_path / "study.toml", "a = " + NESTED))


def sealed(path):
    save_file({"numbers": np.arange(5.0)}, path, {"made": f"by a test {BLANK}"})
    seal(path)
    return path.read_bytes()


def test_the_seal_is_the_digest_of_the_file_and_a_changed_byte_is_found(tmp_path):
    content = sealed(tmp_path / "file")
    place = content.index(MARK) + len(MARK)
    zeroed = content[:place] + b"0" * N_DIGITS + content[place + N_DIGITS :]
    assert content[place : place + N_DIGITS].decode() == hashlib.sha256(zeroed).hexdigest()
    assert seal_holds(tmp_path / "file")
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
    refuses("no place", seal, path, error=ValueError)


@dataclass(frozen=True)
class Part:
    size: int
    name: str = "part"


@dataclass(frozen=True)
class Method:
    strength: float = 1.0


@dataclass(frozen=True)
class Whole:
    count: int = 3
    weight: float | Literal["auto"] | None = None
    is_on: bool = False
    tags: tuple[str, ...] = ()
    bounds: Mapping[str, float] | float = 0.0
    part: Part = field(default_factory=lambda: Part(1))
    method: Method | str = "plain"
    methods: tuple[Method | str, ...] = ()


METHODS = MethodTable("tried", {"plain": Method})
NAMED = {"method": (METHODS, "name"), "methods": (METHODS, "name")}


def read(folder, content):
    path = folder / "spec.toml"
    return read_choices(put(path, content), Whole, NAMED)


def test_values_are_as_the_spec_takes_them(tmp_path):
    content = """
    weight = 2
    is_on = true
    tags = ["a", "b"]
    bounds = {x = 1, y = 2.5}
    part = {size = 4}
    method = {name = "plain", strength = 3}
    methods = ["plain", {name = "plain"}]
    """
    assert read(tmp_path, content) == {
        "weight": 2.0, "is_on": True, "tags": ("a", "b"), "bounds": {"x": 1.0, "y": 2.5}, "part": Part(4),
        "method": Method(3.0), "methods": ("plain", Method()),
    }  # fmt: skip
    assert read(tmp_path, 'weight = "auto"\nbounds = 3') == {"weight": "auto", "bounds": 3.0}
    assert read(tmp_path, "") == {}


@pytest.mark.parametrize(("content", "message"), [
    ("counts = 3", "spec.toml: keys of the file must be among 'count', .* got 'counts'. Did you mean 'count'"),
    ("count = 2.5", "spec.toml: count must be a whole number, got 2.5"),
    ("count = true", "count must be a whole number, got True"),
    ("weight = 'all'", "weight must be a number or 'auto', got 'all'"),
    ("tags = 'a'", "tags must be a list, each of it a text, got 'a'"),
    ("tags = [1]", "tags must be a text, got 1"),
    ("bounds.x = 'far'", r"bounds\.x must be a number, got 'far'"),
    ("part = {name = 'x'}", r"\[part\] needs 'size' as well"),
    ("part = {size = 'x'}", r"part\.size must be a whole number"),
    ("part = 3", "part must be a table, got 3"),
    ("method = {name = 'fancy'}", r"method\.name: tried method must be one of 'plain', got 'fancy'"),
    ("method = {strength = 3}", "got None"),
    ("method = {name = 'plain', power = 3}", r"keys of \[method\] must be among 'strength'"),
])  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path, content, message):
    refuses(message, read, tmp_path, content, error=ParameterError)
