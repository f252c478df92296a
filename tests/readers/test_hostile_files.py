"""Files that ask for too much, or are none: refused at once, in words."""

import gzip
import os
from pathlib import Path

import polars as pl
import pytest

from itembank.files import memory
from itembank.responses.opening import zstandard
from itembank_scaling.compute import read_model_table
from tests.readers.reading import put, read, refuses

ROW = b"model-1,item-1,1\n"


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(memory, "_machine_memory", lambda: 32_000_000.0)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.csv.zst"])
def test_a_table_that_grows_when_unpacked_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(memory, "ALWAYS_ALLOWED", 2_000_000)
    path, content = tmp_path / name, b"model_id,item_id,response\n" + ROW * 300_000
    if name.endswith("zst"):
        path.write_bytes(zstandard().compress(content))
    else:
        path.write_bytes(gzip.compress(content))
    refuses(r"unpacked, the file grows beyond .*max_memory=8e9", read, path)
    assert read(path, max_memory=2e9, repeats="last").responses.tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["line.jsonl", "line.jsonl.gz", "array.json"])
def test_one_endless_line_is_refused(tmp_path, small_machine, name):
    content = b'[{"model_id": "' + b"a" * 3_000_000
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb") as file:
        file.write(content if name == "array.json" else content[1:])
    refuses("a line, or a JSON document, must have at most", read, tmp_path / name)


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet", "r.csv.gz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, name, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    refuses(f"must be an ordinary file, got a {kind}", read, tmp_path / name)


@pytest.mark.parametrize(
    "line",
    ['{"model_id": "a", "item_id": "\\ud800", "response": 1}', '{"subject_id": "a", "responses": {"\\ud800": 1}}'],
)
def test_half_a_character_is_refused_with_its_line(tmp_path, line):
    fine = line.replace("\\ud800", "fine")
    (tmp_path / "r.jsonl").write_text(f"{fine}\n{line}\n")
    refuses(r"line 2 must be one JSON object.*half a character, \\ud800", read, tmp_path / "r.jsonl")


def test_large_arrays_halves_of_characters_and_endless_numbers_are_refused(tmp_path, small_machine):
    (tmp_path / "models.jsonl").write_text('{"model_id": "\\udfff", "flops": 1e20}\n')
    refuses("half a character", read_model_table, tmp_path / "models.jsonl")
    put(tmp_path / "b" / "r.jsonl", '{"subject_id": "a", "responses": {"x": 1' + "0" * 400 + "}}\n")
    refuses(r"response must lie in \[0, 1\]", read, tmp_path / "b" / "r.jsonl")
    rows = ',\n{"model_id": "a", "item_id": "b", "response": 1}' * 40_000
    put(tmp_path / "c" / "array.json", '[{"model_id": "a", "item_id": "b", "response": 1}' + rows + "]")
    refuses("a JSON document, must have at most", read, tmp_path / "c" / "array.json")


@pytest.mark.parametrize("name", ["r[1]", "r*", "~/r", "r\udcff"])
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_a_name_that_is_a_pattern_or_no_text_is_of_this_file_alone(tmp_path, monkeypatch, name, ending):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "~").mkdir()
    other = pl.DataFrame({"item_id": ["m", "n"], "model_id": ["i", "i"], "response": [1.0, 1.0]})
    own = pl.DataFrame({"model_id": ["m", "n"], "item_id": ["i", "i"], "response": [0.0, 1.0]})
    for table, path in ((other, "r1"), (other, "r"), (own, name)):
        with (gzip.open if ending.endswith("gz") else open)(f"{path}{ending}", "wb") as file:
            table.write_parquet(file) if ending == ".parquet" else table.write_csv(file)
    for source in (Path(f"{name}{ending}"), Path(f"{name}{ending}").absolute()):
        found = read(source)
        assert ([*found.model_ids], [*found.item_ids], found.responses.tolist()) == (["m", "n"], ["i"], [[0.0], [1.0]])
