"""Ids, words and numbers of tables: no digit and no name is lost, and what nobody sees is told."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataWarning, ParameterError
from itembank.readers import table_files
from itembank.readers.columns import PAIRS
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.table_files import first_rows
from tests.readers.reading import put, read, read_text, refuses, warns, write_frame

pytestmark = pytest.mark.filterwarnings("ignore:.*lost answers count as missing")
HEADER = "model_id,item_id,response\n"


def test_digits_and_ids_that_look_like_numbers_stay(tmp_path):
    values = [1 / 3, 0.875, 0.1, 2 / 7, 1e-17, 1.0]
    rows = [f"m,{k},{value!r}\n" for k, value in enumerate(values)]
    assert read(put(tmp_path / "t.csv", HEADER + "".join(rows))).responses.tolist() == [values]
    text = "llm,question,score\n1,01,1\n1,1,0\n1.0,01,1\n1.0,1,1\n"
    (tmp_path / "t.csv").write_text(text)
    models, items = r"2 model_ids differ .* alone: '1' and '1.0'", r"2 item_ids differ .* alone: '01' and '1'"
    with pytest.warns(match="read the column"), pytest.warns(match=models), pytest.warns(match=items):
        found = read(tmp_path / "t.csv")
    assert (found.model_ids, found.item_ids) == (["1", "1.0"], ["01", "1"])
    names = ["x\u00b2", "x2", "a-b", "a_b", "\u00e9", "e"]
    pl.DataFrame({"model_id": names, "item_id": "q", "response": 1}).write_csv(tmp_path / "r.csv")
    assert read(tmp_path / "r.csv").model_ids == names


@pytest.mark.filterwarnings("ignore:lost answers", "ignore:.*all models have the same")
@pytest.mark.parametrize(
    ("last", "choices", "expected"),
    [("NA", {}, np.nan), ("true", {}, 1.0), (" 0.5 ", {}, 0.5), ("-9", {"missing_values": ("-9",)}, np.nan)],
)
def test_a_response_that_is_no_number_is_read_as_the_words_it_is(tmp_path, last, choices, expected):
    rows = [f"m{k // 50},i{k % 50},{k % 2}\n" for k in range(99)]
    found = read(put(tmp_path / "t.csv", HEADER + "".join(rows) + f"m1,i49,{last}\n"), **choices).responses
    np.testing.assert_array_equal(found.ravel()[:99], [k % 2 for k in range(99)])
    np.testing.assert_array_equal(found[1, 49], expected)


def test_the_first_rows_of_a_file_end_at_the_end_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_LOOKED_AT", 60)
    rows = [["m", f"{k}, \n{k}", str(k % 2)] for k in range(20)]
    pl.DataFrame(rows, schema=["model_id", "item_id", "response"], orient="row").write_csv(tmp_path / "t.csv")
    found = first_rows(tmp_path / "t.csv").frame
    assert found.rows() == [tuple(row) for row in rows[: found.height]]
    assert 1 <= found.height < 5


PROGRAM = """
import json, resource
from pathlib import Path
import numpy as np
from itembank import read_responses

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
items = [f",a task with a long name/question number {k},{k % 2}\\n" for k in range(1000)]
def write(n_models):
    with open("t.csv", "w") as file:
        file.write("model_id,item_id,response\\n")
        for k in range(n_models):
            name = f"an organisation/a model number {k}"
            file.writelines(name + item for item in items)
write(2000)
Path("t.csv").rename("large.csv")
write(20)
read_responses("t.csv")
before = peak()
assert read_responses("large.csv").responses.sum() == 1e6
print(json.dumps(peak() - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak is Linux's")
def test_a_row_of_a_long_table_takes_less_memory_than_its_text(tmp_path):
    run = {"cwd": tmp_path, "capture_output": True, "env": {**os.environ, "POLARS_MAX_THREADS": "1"}}
    grown = json.loads(subprocess.run([sys.executable, "-c", PROGRAM], check=True, **run).stdout)
    # two million rows of 80 bytes took 170 MB; read as text, they took 405 MB
    assert grown < 290_000


PADDED = {"model_id": ["m", "m ", "m\u00a0", "\ufeffm"], "item_id": ["q1", "q2", "q3", "q4"], "response": [1, 0, 1, 1]}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_blanks_at_the_ends_of_ids_are_taken_off(tmp_path, suffix):
    path = write_frame(pl.DataFrame(PADDED), tmp_path / f"r.{suffix}")
    words = r"taken off 3 of 4 model_ids: 'm ', 'm\\xa0', '\\ufeffm'. So 3 of these become the same as another"
    matrix = warns(words, read, path)
    assert (matrix.model_ids, matrix.responses.tolist()) == (["m"], [[1.0, 0.0, 1.0, 1.0]])


def test_blanks_are_taken_off_wherever_names_are(tmp_path):
    pytest.importorskip("jq", reason="needs the extra jq")
    pl.DataFrame(PADDED).write_ndjson(tmp_path / "r.jsonl")
    assert warns("taken off 3 of 4 model_ids", read, tmp_path / "r.jsonl", jq=".").model_ids == ["m"]
    matrix = warns("taken off 1 of 2", read, put(tmp_path / "wide.csv", "item_id,scenario,m ,m\nq1,s,1,\nq2,s ,,0\n"))
    assert (matrix.model_ids, matrix.responses.tolist()) == (["m"], [[1.0, 0.0]])
    assert matrix.items["scenario"].to_list() == ["s", "s"]
    (tmp_path / "r.csv").write_text('model_id,item_id,response\na,q1,1\n" ",q1,1\n')
    with pytest.warns(DataWarning), pytest.raises(ValueError, match=r"model_id must not be empty, got 1 row .*: row 2"):
        read(tmp_path / "r.csv")


@pytest.mark.parametrize(("one", "other", "shown"), [
    ("Org/m", "org/M", "'Org/m' and 'org/M'"), ("a b", "a\u00a0b", r"'a b' and 'a\\xa0b'"),
    ("ab", "a\u200bb", r"'ab' and 'a\\u200bb'"),
    ("caf\u00e9", "cafe\u0301", r"'caf\\xe9' and 'cafe\\u0301'"),
    ("17", "17.0", "'17' and '17.0'"), ("m-1", "m\u20111", r"'m-1' and 'm\\u20111'"),
    ("org/m", "org__m", "'org/m' and 'org__m'"),
])  # fmt: skip
@pytest.mark.parametrize("in_two_files", [False, True])
def test_ids_that_nobody_tells_apart_are_named(tmp_path, one, other, shown, in_two_files):
    rows = [{"model_id": name, "item_id": "q", "response": 1} for name in (one, other, "x")]
    parts = [rows[:1], rows[1:]] if in_two_files else [rows]
    for number, part in enumerate(parts):
        pl.DataFrame(part).write_csv(tmp_path / f"{number}.csv")
    with pytest.warns(DataWarning, match=f"2 model_ids differ from another in case.* alone: {shown}. They count as"):
        matrix = read(sorted(tmp_path.glob("*.csv")))
    assert matrix.model_ids == [one, other, "x"]


def test_scenarios_that_nobody_tells_apart_and_names_for_none_are_told(tmp_path):
    """Two spellings of a scenario counted twice in the overall score."""
    table = "model_id,item_id,scenario,response\na,x,GSM8K,1\na,y,gsm8k,0\na,z,arc,0\n"
    assert warns("2 scenarios differ .* 'GSM8K' and 'gsm8k'", read_text, tmp_path, table).n_items == 3
    table = "model_id,item_id,response\na,x,1\na,nan,0\n"
    assert warns("'nan' is read as item_id, and may stand for none", read_text, tmp_path, table).n_items == 2


def long(*values):
    """Write responses of one model to as many items, as CSV."""
    return "model_id,item_id,response\n" + "".join(f"a,q{number},{value}\n" for number, value in enumerate(values))


def answers(tmp_path, text, **choices):
    return read(put(tmp_path / "r.csv", text), **choices).responses[0]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != ("true", "false")])
def test_a_usual_pair_is_read_by_itself_and_told(tmp_path, pair):
    right, wrong = pair[0].upper(), pair[1].capitalize()
    with pytest.warns(DataWarning, match=re.escape(f"read '{right}' as right and '{wrong}' as wrong")):
        found = answers(tmp_path, long(right, wrong, "", f" {right} ", "NA"))
    np.testing.assert_array_equal(found, [1, 0, np.nan, 1, np.nan])


@pytest.mark.parametrize(
    ("words", "worth"), [("CPINc", [1, 0.5, 0, 0, 1]), (("Wins", "drawn", "LOSES", "ties"), [1, 0.5, 0, 0.5])]
)
def test_words_of_more_than_two_outcomes(tmp_path, words, worth):
    np.testing.assert_array_equal(warns("as 0.5", answers, tmp_path, long(*words)), worth)


def test_one_word_or_one_that_was_said_is_enough(tmp_path):
    with pytest.warns(DataWarning, match="read 'incorrect' as wrong"):
        np.testing.assert_array_equal(answers(tmp_path, long("incorrect", "incorrect")), [0, 0])
    with pytest.warns(DataWarning, match="read 'fail' as right and 'pass' as wrong"):
        np.testing.assert_array_equal(answers(tmp_path, long("pass", "fail"), true_value="fail"), [0, 1])
    with pytest.warns(DataWarning, match="read 'C' as right and 'I' as wrong"):
        np.testing.assert_array_equal(answers(tmp_path, "model_id,x,y,z\na,C,I,\nb,C,C,I\n"), [1, 0, np.nan])
    for text in ("model_id,x,y\na,C,1\nb,I,0\n", "model_id,family,x\na,yes,pass\nb,no,fail\n"):
        refuses("every column but model_id must hold the responses", answers, tmp_path, text)


@pytest.mark.parametrize(("values", "says"), [
    (("C", "I", "Q", "C"), r"'C' 2 times, 'I' 1 time, 'Q' 1 time. If 'Q' marks .* missing_values=\('Q',\)\n"),
    (("correct", "fail"), "'correct' 1 time, 'fail' 1 time.*say which: true_value='correct' or true_value='fail'"),
    (("yes", "1"), "got 1 other value: 'a' item 'q0' = 'yes'"),
    (("A", "B", "C", "D"), r"or, if these are answers and another column says .*, add: response_column='...'$"),
    (("1", "0", '"1,000"'), r"'1,000' 1 time. Write numbers with a decimal point, .* thousands\.$"),
    (("true", "false", "lazy"), r"If 'lazy' marks an answer that is missing, add: missing_values=\('lazy',\)\n"),
    (("accepted", "rejected"), "'accepted' 1 time, 'rejected' 1 time"),
])  # fmt: skip
def test_what_is_not_one_pair_is_refused_with_its_counts(tmp_path, values, says):
    refuses(says, answers, tmp_path, long(*values))


@pytest.mark.parametrize("true_value", ["accepted", " Accepted"])
def test_the_value_that_is_right_can_be_said(tmp_path, true_value):
    with pytest.warns(DataWarning, match="read 'accepted' as right and 'rejected' as wrong"):
        found = answers(tmp_path, long("accepted", "rejected", ""), true_value=true_value)
    np.testing.assert_array_equal(found, [1, 0, np.nan])


@pytest.mark.parametrize(("values", "true_value", "says"), [
    (("C", "I", "P", "P"), "C", "must be 'C', which is right, or 'i', which is wrong, got 'P' 2 times"),
    (("a", "b", "c", "c"), "a", "must be 'a', which is right, or one other value, got 'c' 2 times, 'b' 1 time"),
    (("done", "failed", "lost"), "dome", "Did you mean 'done'"),
    (("resolved", "unresolved", "0.5"), "resolved", "got '0.5' 1 time"),
])  # fmt: skip
def test_what_is_neither_right_nor_wrong_is_refused_with_its_count(tmp_path, values, true_value, says):
    refuses(says, answers, tmp_path, long(*values), true_value=true_value)


@pytest.mark.parametrize("column", [[2, 1, None], [2.0, 1.0, None], ["2", "1", None]])
def test_numbers_can_stand_for_right_and_wrong_as_well(column):
    table = pl.DataFrame({"model_id": ["a"] * 3, "item_id": ["x", "y", "z"], "response": column})
    found = warns("read '2' as right and '1' as wrong", read, table, true_value="2")
    np.testing.assert_array_equal(found.responses, [[1, 0, np.nan]])


@pytest.mark.parametrize("choices", [{"true_value": " "}, {"true_value": "yes", "max_response": 100.0}])
def test_choices_that_contradict_are_refused(choices):
    refuses("true_value must be a word", ReadingSpec, **choices, error=ParameterError)
