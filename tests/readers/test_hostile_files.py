"""Files that ask for too much, or are none: refused at once, in words."""

import gzip
import os

import pytest

from itembank.errors import DataError
from itembank.files import memory
from itembank.readers.compute import read_model_table
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

ROW = b"model-1,item-1,1\n"


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(memory, "_machine_memory", lambda: 32_000_000.0)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.csv.zst"])
def test_a_table_that_grows_when_unpacked_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(memory, "ALWAYS_ALLOWED", 2_000_000)
    path, content = tmp_path / name, b"model_id,item_id,response\n" + ROW * 300_000
    if name.endswith("zst"):
        path.write_bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(content))
    else:
        path.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"unpacked, the file grows beyond .*max_memory=8e9"):
        read_responses(path)
    matrix = read_responses(path, spec=ReadingSpec(max_memory=2e9, repeats="last"))
    assert matrix.responses.tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["line.jsonl", "line.jsonl.gz", "array.json"])
def test_one_endless_line_is_refused(tmp_path, small_machine, name):
    content = b'[{"model_id": "' + b"a" * 3_000_000
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb") as file:
        file.write(content if name == "array.json" else content[1:])
    with pytest.raises(DataError, match="a line, or a JSON document, must have at most"):
        read_responses(tmp_path / name)


def test_a_json_array_over_many_lines_is_refused_where_it_is_too_large(tmp_path, small_machine):
    rows = ',\n{"model_id": "a", "item_id": "b", "response": 1}' * 40_000
    (tmp_path / "array.json").write_text('[{"model_id": "a", "item_id": "b", "response": 1}' + rows + "]")
    with pytest.raises(DataError, match="a JSON document, must have at most"):
        read_responses(tmp_path / "array.json")


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet", "r.csv.gz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, name, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"must be an ordinary file, got a {kind}"):
        read_responses(tmp_path / name)


@pytest.mark.parametrize(
    "line",
    [
        '{"model_id": "a", "item_id": "\\ud800", "response": 1}',
        '{"subject_id": "a", "responses": {"\\ud800": 1}}',
    ],
)
def test_half_a_character_is_refused_with_its_line(tmp_path, line):
    fine = line.replace("\\ud800", "fine")
    (tmp_path / "r.jsonl").write_text(f"{fine}\n{line}\n")
    with pytest.raises(DataError, match=r"line 2 must be one JSON object.*half a character, \\ud800"):
        read_responses(tmp_path / "r.jsonl")


def test_half_a_character_in_a_table_of_models_is_refused(tmp_path):
    (tmp_path / "models.jsonl").write_text('{"model_id": "\\udfff", "flops": 1e20}\n')
    with pytest.raises(DataError, match="half a character"):
        read_model_table(tmp_path / "models.jsonl")


def test_a_number_of_four_hundred_digits_is_no_response(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"subject_id": "a", "responses": {"x": 1' + "0" * 400 + "}}\n")
    with pytest.raises(DataError, match=r"response must lie in \[0, 1\]"):
        read_responses(tmp_path / "r.jsonl")
