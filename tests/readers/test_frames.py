import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.readers.read import read_responses, to_polars
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import read, refuses, warns

LONG = {"model_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], "response": [1.0, 0.0, 0.5]}
PANDAS = pd.DataFrame(LONG)
ARRAYS = np.fromiter([np.array(["r"], dtype=object)], dtype=object)
"""Of such cells, which Parquet of lists of lists has, polars counts no values: it panics."""
WIDE = PANDAS.pivot(index="model_id", columns="item_id", values="response")

TABLES = {
    "polars": pl.DataFrame(LONG), "polars lazy": pl.DataFrame(LONG).lazy(), "pandas": PANDAS,
    "pandas categories": PANDAS.astype({"model_id": "category", "item_id": "category"}),
    "pandas indexed": PANDAS.set_index(["model_id", "item_id"]),
    "pandas series": PANDAS.set_index(["model_id", "item_id"])["response"],
    "pandas indexed by its columns": PANDAS.set_index(["model_id", "item_id"], drop=False),
    "pandas wide": WIDE, "pandas in another order": PANDAS.set_axis([7, 3, 5]), "pandas wide, transposed": WIDE.T,
    "pyarrow": pa.table(LONG),
    "arrow stream": pa.RecordBatchReader.from_batches(pa.table(LONG).schema, pa.table(LONG).to_batches()),
}  # fmt: skip


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_of_every_library_are_the_same_matrix(name):
    matrix = read(TABLES[name])
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [0.5, np.nan]])
    assert (matrix.model_ids, matrix.item_ids) == (["a", "b"], ["x", "y"])


@pytest.mark.parametrize("table", [
    PANDAS.set_axis(["model", "item", "score"], axis=1).set_index(["model", "item"]),
    WIDE.rename_axis(index="model"), WIDE.rename_axis(index=None, columns=None),
])  # fmt: skip
def test_indexes_of_pandas_are_read_as_columns_of_files_are(table, tmp_path):
    """Only an index with our own names was: another was lost, so that attempts which it numbered counted once."""
    matrix = warns("as model_id", read, table)
    table.to_csv(tmp_path / "t.csv")
    np.testing.assert_array_equal(matrix.responses, warns("as model_id", read, tmp_path / "t.csv").responses)
    attempts = pd.DataFrame(
        {"model_id": "a", "item_id": "x", "response": [1, 1, 0]}, pd.Index([1, 2, 3], name="attempt")
    )
    assert warns("'attempt' numbers repeated attempts", read, attempts, repeats="count").n_trials.tolist() == [[3]]


@pytest.mark.parametrize("index", [
    pd.Index([0, 1], name="number"), pd.Index(["o", "p"], name="org"), pd.Index(["r1", "r2"]),
    pd.MultiIndex.from_tuples([(0, 1), (1, 0)], names=["k", "k"]),
])  # fmt: skip
@pytest.mark.parametrize("column", ["model_id", "who"])
def test_an_index_beside_ids_is_no_response(index, column):
    """Numbers of two rows were read as an item, without a word; other indexes were refused as one."""
    table = WIDE.rename_axis(index=column).reset_index().set_axis(index)
    matrix = read(table, columns={} if column == "model_id" else {"model_id": column})
    assert (matrix.model_ids, matrix.item_ids) == (["a", "b"], ["x", "y"])


def test_known_tables_may_be_in_memory_and_mixed_ids_are_refused(tmp_path):
    (tmp_path / "items.csv").write_text("item_id,scenario,n_options\nx,math,4\ny,law,5\n")
    models = pd.DataFrame({"model_id": ["b", "a"], "size": [7, 1]})
    matrix = read_responses(PANDAS, models=models, items=tmp_path / "items.csv")
    assert matrix.models.rows() == [("a", 1), ("b", 7)]
    assert matrix.items.rows() == [("x", "math", None, 4), ("y", "law", None, 5)]
    refuses("several types", read, PANDAS.assign(model_id=pd.Series(["a", 1, "b"], dtype=object)))
    with pytest.raises(DataError, match="item_id must have one type, got whole numbers in the table and text in the"):
        read_responses(
            pl.DataFrame({"model_id": ["a"], "item_id": [1], "response": [1]}),
            items=pl.DataFrame({"item_id": ["1"], "scenario": ["math"]}),
        )
    refuses("got int 1", read, [1, 2], error=ParameterError)
    refuses("format of a table in memory", read, PANDAS, format="lm-eval", error=ParameterError)


@pytest.mark.parametrize(("table", "message"), [
    (pl.DataFrame({"model_id": ["a", None], "item_id": ["x", "y"], "response": [1, 1]}), "model_id must not be empty"),
    (pl.DataFrame({"model_id": ["a"], "item_id": ["x"], "response": [{"score": 1}]}), "response must be a number"),
    (pl.DataFrame({"model_id": ["a"], "item_id": ["x"], "response": [2]}), r"must lie in \[0, 1\]"),
    (pl.DataFrame({**LONG, "seconds": "1:03"}), r"seconds must be a number, .* add: drop_columns=\('seconds',\)"),
    (pl.DataFrame(LONG).clear(), "is empty"),
    (pd.DataFrame({"item_id": ["x", "y"], "a": [1, 0], "b": [ARRAYS, ARRAYS]}), "'b' is the scenario"),
    (pl.DataFrame({"x": [1]}), "model_id or item_id"),
    (PANDAS.rename(columns={"response": "points"}), "none called 'response'"),
])  # fmt: skip
def test_bad_tables(table, message):
    refuses(message, read, table)


@pytest.mark.parametrize("wide", [False, True])
def test_choices_of_tables_are_those_of_files(tmp_path, wide):
    """Of a table in memory some were ignored without a word."""
    table = pd.DataFrame(LONG | {"scenario": ["m", "c", "m"]})
    if wide:
        table = table.pivot(index=["item_id", "scenario"], columns="model_id", values="response").reset_index()
    table.to_csv(tmp_path / "t.csv", index=False)
    for choice in ({"tasks": ("m",)}, {"exclude_tasks": ("c",)}):
        ways = [read(table, **choice)]
        ways.append(read(tmp_path / "t.csv", **choice))
        assert [(one.model_ids, one.item_ids, one.responses.tolist()) for one in ways] == [
            (["a", "b"], ["x"], [[1.0], [0.5]])
        ] * 2
    for refused in ({"metric": ("acc",)}, {"task_names": {"m": "n"}}, {"tasks": ("z",)}):
        for way, of in ((read_responses, table), (read_responses, tmp_path / "t.csv")):
            refuses(r"be named by|must be in the logs.* none|no task matches", way, of, spec=ReadingSpec(**refused))


def test_a_program_of_jq_makes_rows_of_a_table_in_memory_too():
    """Messages about such tables advise programs."""
    pytest.importorskip("jq")
    wrong = pl.DataFrame({"model_id": ["a", "b"], "item_id": ["x", "x"], "response": [0, 1]})
    program = ". + {response: (1 - .response)}"
    for table in (wrong, wrong.to_pandas(), wrong.to_dicts()):
        made = read(table, jq=program)
        assert (made.model_ids, made.responses.tolist()) == (["a", "b"], [[1.0], [0.0]])
    assert read(wrong, jq=program, max_response=2).responses.tolist() == [[0.5], [0.0]]
    refuses("must make a row of a file at least, got none", read, wrong, jq="empty")


@pytest.mark.parametrize(("beside", "says"), [
    ({"status": ["ok", "timeout", "ok"]}, "1 row has 'timeout' as 'status', and their responses count"),
    ({"http_status": [200, 500, 200]}, "1 row has '500' as 'http_status', .* add: columns={'error': 'http_status'}"),
    ({"finish_reason": ["stop", "error", "length"]}, "1 row has 'error' as 'finish_reason'"),
    ({"is_error": [False, True, False]}, "1 row has '[Tt]rue' as 'is_error'"),
    ({"deleted": [0, 0, 1]}, "may tell which rows count, .* add: where={'deleted': '0'}"),
    ({"is_valid": [True, False, True]}, "may tell which rows count, .* add: where={'is_valid': '[Tt]rue'}"),
    ({"label": [1.0, 0.0, 0.5]}, "'label' is called as the right answers"),
    ({"deleted_at": ["", "2026-01-01", ""]}, "may tell which rows count, .* add: where={'deleted_at': ''}"),
    ({"skipped": [False, True, False]}, "may tell which rows count, .* add: where={'skipped': '[Ff]alse'}"),
    ({"parse_error": [0, 1, 0]}, "1 row has '1' as 'parse_error', .* add: columns={'error': 'parse_error'}"),
    ({"judge_error": ["", "no JSON", ""]}, "1 row has 'no JSON' as 'judge_error'"),
    ({"output": ["4", "ERROR: rate limit exceeded", "5"]}, "1 row has 'ERROR: rate limit exceeded' as 'output'"),
    ({"response": [3.0, 0.0, 5.0], "max_score": 5}, "'max_score' beside it may say of how many it is"),
])  # fmt: skip
def test_columns_beside_are_looked_at_as_in_files(tmp_path, beside, says):
    table = PANDAS.assign(**beside)
    table.to_csv(tmp_path / "t.csv", index=False)
    for way, of in ((read_responses, table), (read_responses, tmp_path / "t.csv")):
        with pytest.raises(DataError, match=says) if "max_score" in beside else pytest.warns(DataWarning, match=says):
            way(of)


KINDS = pd.DataFrame(
    {"text": ["a", None, "c"], "string": pd.array(["a", None, "c"], dtype="string"),
        "category": pd.Categorical(["a", None, "a"]), "whole": [1, 2, 3], "number": [1.5, np.nan, 3.0],
        "truth": [True, False, True], "maybe": pd.array([True, None, False], dtype="boolean"),
        "count": pd.array([1, None, 3], dtype="Int64"), "day": pd.to_datetime(["2024-01-01", None, "2024-02-01"])}
)  # fmt: skip


def test_columns_of_pandas_hold_what_its_own_way_through_arrow_gives():
    ours, theirs = to_polars(KINDS), pl.from_pandas(KINDS)
    assert ours.columns == theirs.columns
    for name in ours.columns:
        assert ours[name].to_list() == theirs[name].to_list(), name
    assert to_polars(pd.DataFrame([[1.0, 0.0]], columns=[7, 8])).columns == ["7", "8"]


def test_pandas_tables_of_text_are_read_where_there_is_no_pyarrow():
    code = (
        "import sys; sys.modules['pyarrow'] = None; import pandas as pd, itembank as ib;"
        "t = pd.DataFrame({'model_id': ['a', 'b'], 'item_id': ['x', 'x'], 'response': [1, 0]});"
        "sys.exit(ib.read_responses(t).model_ids != ['a', 'b'])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_table_library_but_polars_is_imported():
    code = (
        "import sys, polars as pl; from itembank.readers.read import read_responses as r;"
        "r(pl.DataFrame({'model_id': ['a'], 'item_id': ['x'], 'response': [1]}));"
        "sys.exit(any(name in sys.modules for name in ('pandas', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_objects_of_python_are_no_responses():
    """They ended in an error of polars."""
    table = pl.DataFrame({"model_id": ["a"], "item_id": ["x"], "response": pl.Series([1 + 0j], dtype=pl.Object)})
    refuses(r"'a' item 'x' = '\(1\+0j\)'", read, table)
