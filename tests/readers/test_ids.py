"""Ids that differ by what nobody sees."""

import polars as pl
import pytest

from itembank.errors import DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

PADDED = {"model_id": ["m", "m ", "m\u00a0", "\ufeffm"], "item_id": ["q1", "q2", "q3", "q4"], "response": [1, 0, 1, 1]}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_blanks_at_the_ends_of_ids_are_taken_off(tmp_path, suffix):
    path = tmp_path / f"r.{suffix}"
    frame = pl.DataFrame(PADDED)
    {"parquet": frame.write_parquet, "csv": frame.write_csv, "jsonl": frame.write_ndjson}[suffix](path)
    words = r"taken off 3 of 4 model_ids: 'm ', 'm\\xa0', '\\ufeffm'. So 3 of these become the same as another"
    with pytest.warns(DataWarning, match=words):
        matrix = read_responses(path)
    assert matrix.model_ids == ["m"]
    assert matrix.responses.tolist() == [[1.0, 0.0, 1.0, 1.0]]


def test_blanks_are_taken_off_in_json_of_any_shape(tmp_path):
    pytest.importorskip("jq", reason="needs the extra jq")
    pl.DataFrame(PADDED).write_ndjson(tmp_path / "r.jsonl")
    with pytest.warns(DataWarning, match="taken off 3 of 4 model_ids"):
        matrix = read_responses(tmp_path / "r.jsonl", spec=ReadingSpec(jq="."))
    assert matrix.model_ids == ["m"]


def test_blanks_are_taken_off_the_names_of_columns_and_scenarios(tmp_path):
    (tmp_path / "wide.csv").write_text("item_id,scenario,m ,m\nq1,s,1,\nq2,s ,,0\n")
    with pytest.warns(DataWarning, match="taken off 1 of 2"):
        matrix = read_responses(tmp_path / "wide.csv")
    assert matrix.model_ids == ["m"]
    assert matrix.responses.tolist() == [[1.0, 0.0]]
    assert matrix.items["scenario"].to_list() == ["s", "s"]


def test_an_id_of_blanks_is_empty(tmp_path):
    (tmp_path / "r.csv").write_text('model_id,item_id,response\na,q1,1\n" ",q1,1\n')
    with pytest.warns(DataWarning), pytest.raises(ValueError, match=r"model_id must not be empty, got 1 row .*: row 2"):
        read_responses(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("Org/m", "org/M", "'Org/m' and 'org/M'"),
        ("a b", "a\u00a0b", r"'a b' and 'a\\xa0b'"),
        ("ab", "a\u200bb", r"'ab' and 'a\\u200bb'"),
        ("caf\u00e9", "cafe\u0301", r"'caf\\xe9' and 'cafe\\u0301'"),
        ("17", "17.0", "'17' and '17.0'"),
    ],
)
@pytest.mark.parametrize("in_two_files", [False, True])
def test_ids_that_nobody_tells_apart_are_named(tmp_path, one, other, shown, in_two_files):
    rows = [{"model_id": name, "item_id": "q", "response": 1} for name in (one, other, "x")]
    parts = [rows[:1], rows[1:]] if in_two_files else [rows]
    for number, part in enumerate(parts):
        pl.DataFrame(part).write_csv(tmp_path / f"{number}.csv")
    with pytest.warns(DataWarning, match=f"2 model_ids differ from another in case.* alone: {shown}. They count as"):
        matrix = read_responses(sorted(tmp_path.glob("*.csv")))
    assert matrix.model_ids == [one, other, "x"]


def test_ids_that_look_unlike_are_not_named(tmp_path):
    names = ["x\u00b2", "x2", "a-b", "a_b", "\u00e9", "e"]
    pl.DataFrame({"model_id": names, "item_id": "q", "response": 1}).write_csv(tmp_path / "r.csv")
    assert read_responses(tmp_path / "r.csv").model_ids == names
