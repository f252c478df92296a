"""Columns that tell rows of one model and item apart, which no message needs to speak of."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.telling_apart import kind_of

pytestmark = pytest.mark.filterwarnings("ignore:.*(without a response|have no response|as judge)")


def attempts(**more):
    """Two attempts of two models at three items, with a column more."""
    rows = [(model, item, k) for model in "ab" for item in "xyz" for k in (0, 1)]
    frame = pl.DataFrame(rows, schema=["model_id", "item_id", "k"], orient="row")
    columns = [pl.Series(name, [make(*row) for row in rows]) for name, make in more.items()]
    return frame.with_columns(response=pl.col("k").cast(pl.Float64)).drop("k").with_columns(columns)


def read(frame, **choices):
    return read_responses(frame, spec=ReadingSpec(**choices))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("Replication", "attempt"),
        ("answer_option", "option"),
        ("run_id", "attempt"),
        ("Task Name", "task"),
        ("grader_model", "judge"),
        ("reasoning_effort", "agent"),
        ("agent_info.name", "agent"),
        ("metric", "metric"),
        ("lang", "version"),
        ("answer", "unknown"),
        ("timestamp", "unknown"),
    ],
)
def test_kinds_of_columns(column, kind):
    assert kind_of(column) == kind


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("answer", lambda model, item, k: "ABCD"[(ord(item) + k) % 4]),
        ("seconds_taken", lambda model, item, k: 0.25 * k + ord(item)),
        ("timestamp", lambda model, item, k: f"{model}{item}{k}"),
        ("provider", lambda model, item, k: "other" if (model, item, k) == ("a", "x", 1) else "usual"),
        ("parse_ok", lambda model, item, k: (model, item, k) != ("b", "x", 1)),
        ("passed", lambda model, item, k: bool(k)),
        ("note", lambda model, item, k: None),
    ],
)
def test_what_the_answers_bring_with_them_does_not_make_them_something_else(name, make):
    matrix = read(attempts(**{name: make}), repeats="count")
    assert matrix.responses.tolist() == [[0.5] * 3] * 2
    assert matrix.n_trials.tolist() == [[2] * 3] * 2


@pytest.mark.parametrize("repeats", ["error", "count", "mean", "last"])
@pytest.mark.parametrize(
    "name", ["task", "metric", "judge", "grader", "rubric", "agent", "effort", "language", "prompt"]
)
def test_nothing_is_pooled_over_what_a_column_names(name, repeats):
    frame = attempts(**{name: lambda model, item, k: f"{name} {k}"})
    with pytest.raises(DataError, match=rf"for 6 pairs: .*'{name}' \('{name} 0', '{name} 1'\) tells them apart"):
        read(frame, repeats=repeats)


def test_a_column_is_left_out_of_account_where_one_says_so():
    frame = attempts(category=lambda model, item, k: f"category {k}")
    assert read(frame, repeats="count", drop_columns=("cat*",)).n_trials.tolist() == [[2] * 3] * 2


def test_numbered_attempts_that_agree_are_no_copies():
    """Equal answers of two runs counted once as copies, so that a model with luck had more trials."""
    frame = attempts(run=lambda model, item, k: k + 1).with_columns(response=1)
    with pytest.warns(DataWarning, match="'run' numbers repeated attempts: read it as epoch"):
        matrix = read(frame, repeats="count")
    assert matrix.n_trials.tolist() == [[2] * 3] * 2
    with pytest.warns(DataWarning), pytest.raises(DataError, match=r"repeated attempts .several seeds. for 6 pairs"):
        read(frame)


def test_attempts_in_two_columns_are_numbered_by_both():
    frame = attempts(run=lambda model, item, k: "r")
    frame = pl.concat([frame.with_columns(run=pl.lit(f"r{r}"), sample=pl.Series([0, 1] * 6)) for r in range(2)])
    with pytest.warns(DataWarning, match="'run', 'sample' numbers repeated attempts"):
        assert read(frame, repeats="count").n_trials.tolist() == [[4] * 3] * 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "csv.gz"])
def test_the_column_is_found_in_files_of_every_kind_and_across_two(tmp_path, suffix):
    frame = attempts(agent=lambda model, item, k: f"agent {k}")
    for k in range(2):
        part = frame.filter(pl.col("agent") == f"agent {k}")
        path = tmp_path / f"{k}.{suffix}"
        if suffix == "csv.gz":
            path.write_bytes(gzip.compress(part.write_csv().encode()))
        else:
            {"csv": part.write_csv, "parquet": part.write_parquet, "jsonl": part.write_ndjson}[suffix](path)
    with pytest.raises(DataError, match=r"'agent' \('agent 0', 'agent 1'\) tells them apart"):
        read_responses(sorted(tmp_path.iterdir()), spec=ReadingSpec(repeats="count"))


def test_rows_that_agree_are_not_taken_for_copies_of_another_task(tmp_path):
    """Read a part at a time, equal answers to two tasks' first questions were one question."""
    frame = attempts(task=lambda model, item, k: f"task {k}").with_columns(response=1)
    frame.write_csv(tmp_path / "r.csv")
    with pytest.raises(DataError, match=r"'task' .* tells them apart: ids start anew in each"):
        read_responses(tmp_path / "r.csv")


def test_columns_that_make_one(tmp_path):
    frame = pl.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": ["p", "q"], "a+b": ["own", "own"], "response": [1, 0]})
    told = {"model_id": "a + c", "item_id": "c+b"}
    assert read(frame, columns=told).model_ids == ["x + p", "y + q"]
    assert read(frame, columns=told).item_ids == ["p/1", "q/2"]
    assert read(frame, columns={"model_id": "a+b", "item_id": "c"}).model_ids == ["own"]
    frame.write_csv(tmp_path / "r.csv")
    assert read_responses(tmp_path / "r.csv", spec=ReadingSpec(columns=told)).item_ids == ["p/1", "q/2"]
    with pytest.raises(DataError, match=r"got none called 'a.z'"):
        read(frame, columns={"model_id": "a+z", "item_id": "c"})


def test_rows_are_chosen_by_what_they_say(tmp_path):
    frame = pl.DataFrame({"model_id": ["m", "m"], "item_id": ["x", "x"], "n": [1, 2], "response": [1, 0]})
    assert read(frame, where={"n": "2"}).responses.tolist() == [[0.0]]
    with pytest.raises(DataError, match=r"must leave a row, but none has '3' as 'n'; there are '1', '2'"):
        read(frame, where={"n": "3"})
    with pytest.raises(DataError, match=r"must name a column of the table, got 'm'; there are"):
        read(frame, where={"m": "3"})
    frame.write_csv(tmp_path / "r.csv")
    assert read_responses(tmp_path / "r.csv", spec=ReadingSpec(where={"n": "1"})).responses.tolist() == [[1.0]]


def test_values_that_are_missing_are_told():
    frame = pl.DataFrame({"model_id": ["m"] * 4, "item_id": list("wxyz"), "response": ["1", "SKIP", "-1.0", "0"]})
    matrix = read(frame, missing_values=("skip", "-1"))
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan, np.nan, 0]])
    words = frame.with_columns(response=pl.Series(["good", "skip", "bad", "good"]))
    with pytest.warns(DataWarning, match="read 'good' as right and 'bad' as wrong"):
        matrix = read(words, missing_values=("skip",), true_value="good")
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan, 0, 1]])


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 3), st.randoms())
def test_obeyed_advice_gives_the_rows_of_one_task(n_items, n_tasks, n_models, random):
    """Whatever the sizes, ids that start anew become n_tasks x n_items items with the rows' own answers."""
    rows = [
        (f"m{m}", f"t{t}", i, random.randint(0, 1))
        for m in range(n_models)
        for t in range(n_tasks)
        for i in range(n_items)
    ]
    random.shuffle(rows)
    frame = pl.DataFrame(rows, schema=["model_id", "task", "item_id", "response"], orient="row")
    with pytest.raises(DataError, match=r"'task' .* tells them apart"):
        read(frame)
    matrix = read(frame, columns={"scenario": "task"}, prefix_scenario=True)
    told = {(m, f"{t}/{i}"): r for m, t, i, r in rows}
    assert matrix.n_items == n_items * n_tasks
    for m, model in enumerate(matrix.model_ids):
        for i, item in enumerate(matrix.item_ids):
            assert matrix.responses[m, i] == told[model, item]


def test_json_lines_with_a_nested_column_are_looked_at_too(tmp_path):
    rows = [{"model_id": "m", "item_id": "x", "judge": j, "response": 1, "more": {"a": [1]}} for j in ("one", "two")]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=r"'judge' \('one', 'two'\)"):
        read_responses(tmp_path / "r.jsonl")


def test_rows_of_answer_options_are_no_attempts(tmp_path):
    pairs = [(k, place, option) for k in range(4) for place, option in enumerate("ABC")]
    rows = [("a", f"q{k}", option, k % 3 == place, k % 2 == place) for k, place, option in pairs]
    schema = ["model_id", "item_id", "option", "response", "chosen"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(tmp_path / "r.csv")
    words = "If a row is one option, only those chosen count: add where={'chosen': 'true'}"
    with pytest.warns(DataWarning, match=words), pytest.raises(ValueError, match="take those that were chosen"):
        read_responses(tmp_path / "r.csv", spec=ReadingSpec(repeats="mean"))
    matrix = read_responses(tmp_path / "r.csv", spec=ReadingSpec(where={"chosen": "true"}))
    assert matrix.responses.tolist() == [[1.0, 1.0, 0.0, 0.0]]
