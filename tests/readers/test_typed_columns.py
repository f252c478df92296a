"""Long tables whose names are read as categories and whose numbers as numbers: no digit, name or memory is lost."""

import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from itembank import read_responses
from itembank.readers import table_files
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.table_files import first_rows

HEADER = "model_id,item_id,response\n"


def test_responses_keep_every_digit(tmp_path):
    values = [1 / 3, 0.875, 0.1, 2 / 7, 1e-17, 1.0]
    rows = [f"m,{k},{value!r}\n" for k, value in enumerate(values)]
    (tmp_path / "t.csv").write_text(HEADER + "".join(rows))
    assert read_responses(tmp_path / "t.csv").responses.tolist() == [values]


def test_ids_that_look_like_numbers_stay_as_they_are_written(tmp_path):
    text = "llm,question,score\n1,01,1\n1,1,0\n1.0,01,1\n1.0,1,1\n"
    (tmp_path / "t.csv").write_text(text)
    models, items = r"2 model_ids differ .* '.0' alone: '1' and '1.0'", r"2 item_ids differ .* '.0' alone: '01' and '1'"
    with pytest.warns(match="read the column"), pytest.warns(match=models), pytest.warns(match=items):
        found = read_responses(tmp_path / "t.csv")
    assert (found.model_ids, found.item_ids) == (["1", "1.0"], ["01", "1"])


@pytest.mark.filterwarnings("ignore:lost answers")
@pytest.mark.parametrize(
    ("last", "choices", "expected"),
    [("NA", {}, np.nan), ("true", {}, 1.0), (" 0.5 ", {}, 0.5), ("-9", {"missing_values": ("-9",)}, np.nan)],
)
def test_a_response_that_is_no_number_is_read_as_the_words_it_is(tmp_path, last, choices, expected):
    rows = [f"m{k // 50},i{k % 50},{k % 2}\n" for k in range(99)]
    (tmp_path / "t.csv").write_text(HEADER + "".join(rows) + f"m1,i49,{last}\n")
    found = read_responses(tmp_path / "t.csv", spec=ReadingSpec(**choices)).responses
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
