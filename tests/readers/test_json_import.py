"""Results in JSON of any shape, by paths; the layouts of four tools, with rows of our own."""

import gzip
import hashlib
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.readers.json_import import (
    ABSENT,
    JsonMapping,
    column_path,
    read_json_results,
    rows_at,
    rows_path,
    value_at,
)
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def cells(matrix):
    """Response of every cell that is known, by model and item."""
    return {
        (model, item): matrix.responses[row, column]
        for row, model in enumerate(matrix.model_ids)
        for column, item in enumerate(matrix.item_ids)
        if not np.isnan(matrix.responses[row, column])
    }


def test_tau_bench(tmp_path):
    """A list of {task_id, reward, trial, info, traj}; the model stands in the file's name."""
    rewards = {0: (1.0, 0.0), 3: (1.0, 1.0)}
    rows = [
        {"task_id": task, "reward": reward, "info": {"task": {}}, "traj": [], "trial": trial}
        for task, some in rewards.items()
        for trial, reward in enumerate(some)
    ]
    path = write(tmp_path / "llm-3.5-b.json", rows)
    mapping = JsonMapping(
        {"model_id": "@file", "item_id": "task_id", "response": "reward", "epoch": "trial", "scenario": "=retail"}
    )
    matrix = read_json_results(path, mapping, spec=ReadingSpec(repeats="count"))
    assert cells(matrix) == {("llm-3.5-b", "0"): 0.5, ("llm-3.5-b", "3"): 1.0}
    assert matrix.n_trials.tolist() == [[2, 2]]
    assert matrix.items["scenario"].unique().to_list() == ["retail"]


def test_harbor(tmp_path):
    """One result.json a trial; one whose run broke off has no verifier_result, and no response."""
    trials = {
        "t1__a": ("t1", {"rewards": {"reward": 1.0}}),
        "t1__b": ("t1", None),
        "t2__a": ("t2", {"rewards": {"reward": 0.0}}),
    }
    for name, (task, verdict) in trials.items():
        content = {
            "task_name": task,
            "trial_name": name,
            "agent_info": {"name": "agent", "model_info": {"name": "llm-a", "provider": "p"}},
            "agent_result": {"n_input_tokens": 10, "n_output_tokens": 4, "cost_usd": 0.25},
            "verifier_result": verdict,
            "exception_info": None if verdict else {"exception_type": "AgentTimeoutError"},
        }
        write(tmp_path / name / "result.json", content)
    mapping = JsonMapping(
        {
            "model_id": "agent_info.model_info.name",
            "item_id": "task_name",
            "epoch": "trial_name",
            "response": "verifier_result.rewards.reward",
            "cost_usd": "agent_result.cost_usd",
            "output_tokens": "agent_result.n_output_tokens",
        }
    )
    paths = sorted(tmp_path.glob("*/result.json"))
    with pytest.warns(DataWarning, match="1 of 'llm-a'"):
        matrix = read_json_results(paths, mapping, spec=ReadingSpec(repeats="count"))
    assert cells(matrix) == {("llm-a", "t1"): 1.0, ("llm-a", "t2"): 0.0}
    assert matrix.costs["cost_usd"].tolist() == [[0.25, 0.25]]


def test_promptfoo(tmp_path):
    """results.results is a list of {provider: {id}, testIdx, success, latencyMs}."""
    rows = [
        {"promptIdx": 0, "testIdx": test, "provider": {"id": model}, "success": success, "score": 1.0, "latencyMs": 420}
        for model, some in {"p:a": (True, False), "p:b": (True, True)}.items()
        for test, success in enumerate(some)
    ]
    path = write(tmp_path / "out.json", {"evalId": "eval-1", "results": {"version": 3, "prompts": [], "results": rows}})
    mapping = JsonMapping(
        {"model_id": "provider.id", "item_id": "testIdx", "response": "success"}, rows="results.results"
    )
    expected = {("p:a", "0"): 1.0, ("p:a", "1"): 0.0, ("p:b", "0"): 1.0, ("p:b", "1"): 1.0}
    assert cells(read_json_results(path, mapping)) == expected


def test_deepeval(tmp_path):
    """testCases is a list of {name, success, metricsData: [{name, score}]}; a metric is taken by its place."""
    cases = [
        {"name": f"case_{k}", "success": k == 0, "metricsData": [{"name": "Correctness", "score": score}]}
        for k, score in enumerate((0.75, 0.5))
    ]
    path = write(tmp_path / "run.json", {"testFile": "t.py", "testCases": cases})
    mapping = JsonMapping({"item_id": "name", "response": "metricsData.0.score"}, rows="testCases")
    matrix = read_json_results(path, mapping, spec=ReadingSpec(model_id="m"))
    assert cells(matrix) == {("m", "case_0"): 0.75, ("m", "case_1"): 0.5}


@pytest.mark.parametrize("suffix", ["jsonl", "json", "jsonl.gz", "parquet"])
def test_records_of_every_kind_of_file_are_the_same(suffix, tmp_path):
    rows = [
        {"doc": {"id": f"q{k}"}, "metrics": {"acc,none": k / 4}, "run": {"model": "m"}, "cost": {"tokens": 3 + k}}
        for k in range(5)
    ]
    path = tmp_path / f"r.{suffix}"
    if suffix == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif suffix == "json":
        write(path, rows)
    else:
        text = "\n".join(map(json.dumps, rows)).encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    mapping = JsonMapping(
        {"model_id": "run.model", "item_id": "doc.id", "response": 'metrics."acc,none"', "output_tokens": "cost.tokens"}
    )
    matrix = read_json_results(path, mapping)
    assert cells(matrix) == {("m", f"q{k}"): k / 4 for k in range(5)}
    assert matrix.costs["output_tokens"].tolist() == [[3, 4, 5, 6, 7]]


def test_lists_in_parquet_give_a_row_for_each_value(tmp_path):
    frame = pl.DataFrame({"task": ["a", "b"], "graded": [[True, False, True], [False]], "model": ["m", "m"]})
    frame.write_parquet(tmp_path / "r.parquet")
    mapping = JsonMapping({"model_id": "/model", "item_id": "/task", "response": ".", "epoch": "@index"}, rows="graded")
    matrix = read_json_results(tmp_path / "r.parquet", mapping, spec=ReadingSpec(repeats="count"))
    assert cells(matrix) == {("m", "a"): pytest.approx(2 / 3), ("m", "b"): 0.0}
    assert matrix.n_trials.tolist() == [[3, 1]]


def test_a_star_stands_for_every_key_and_place(tmp_path):
    content = {"eval": {"t/1": [{"ok": "pass"}, {"ok": "fail"}], "t/2": [{"ok": "pass"}]}, "name": "m"}
    mapping = JsonMapping({"model_id": "/name", "item_id": "@key", "response": "ok", "epoch": "@index"}, rows="eval.*")
    with pytest.warns(DataWarning, match="pass"):
        matrix = read_json_results(write(tmp_path / "r.json", content), mapping, spec=ReadingSpec(repeats="count"))
    assert cells(matrix) == {("m", "t/1"): 0.5, ("m", "t/2"): 1.0}


def test_names_of_files_and_folders(tmp_path):
    for model in ("a", "b"):
        write(tmp_path / model / "task-1.json", {"ok": model == "a"})
    mapping = JsonMapping({"model_id": "@folder", "item_id": "@file", "response": "ok"})
    matrix = read_json_results(sorted(tmp_path.glob("*/*.json")), mapping)
    assert cells(matrix) == {("a", "task-1"): 1.0, ("b", "task-1"): 0.0}


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_answers_are_compared_with_the_key_and_contents_kept_as_a_digest(tmp_path):
    rows = [{"id": k, "pred": pred, "key": "A", "q": {"text": f"Q{k}"}} for k, pred in enumerate(("A", "B", None))]
    columns = {"model_id": "@file", "item_id": "id", "response": "pred==key"}
    mapping = JsonMapping(columns, content=("q.text", "key"))
    matrix = read_json_results([write(tmp_path / f"{name}.json", rows) for name in "mn"], mapping)
    assert cells(matrix) == {(model, item): item == "0" for model in "mn" for item in "012"}
    digests = [hashlib.sha256(json.dumps([f"Q{k}", "A"]).encode()).hexdigest() for k in range(3)]
    assert matrix.items["content_hash"].to_list() == digests
    assert matrix.items["content_fields"].unique().to_list() == ['["text", "key"]']
    other = write(tmp_path / "o.json", [{**rows[0], "key": "B"}])
    with pytest.raises(DataError, match="got two for 1 items: '0'"):
        read_json_results([tmp_path / "m.json", other], mapping)
    with pytest.raises(DataError, match=r"without 'q\.texts', of item '0'"):
        read_json_results(other, JsonMapping(columns, content=("q.texts",)))
    with pytest.raises(DataError, match=r"pred==keys.*Did you mean 'key'"):
        read_json_results(other, JsonMapping({**columns, "response": "pred==keys"}))
    with pytest.raises(ParameterError, match="content must be paths of keys"):
        JsonMapping(columns, content=("@file",))


def test_flat_rows_are_read_as_the_long_table_they_are(tmp_path):
    rows = [
        {"model_id": "a", "item_id": "x", "scenario": "s", "n_trials": 4, "n_correct": 3},
        {"model_id": "b", "item_id": "x", "scenario": "s", "n_trials": 2, "n_correct": 0},
    ]
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    mapped, table = read_json_results(path, JsonMapping({name: name for name in rows[0]})), read_responses(path)
    np.testing.assert_array_equal(mapped.responses, table.responses)
    np.testing.assert_array_equal(mapped.n_trials, table.n_trials)
    assert mapped.items.equals(table.items)


ROW = {"doc": {"id": "x"}, "ok": 1}
WRONG = {
    "a wrong path of rows": ({"item_id": "doc.id", "response": "ok"}, "resuls", r"'resuls' finds none.*'results'"),
    "a key that is not there": ({"item_id": "doc.idd", "response": "ok"}, "results", r"item_id=doc.idd.*keys 'id'"),
    "a response nowhere": ({"item_id": "doc.id", "response": "okk"}, "results", r"response=okk.*Did you mean 'ok'"),
    "an object": ({"item_id": "doc", "response": "ok"}, "results", r"item_id must be one value, .*object with 'id'"),
    "no star": ({"item_id": "@key", "response": "ok"}, "results", r"item_id=@key cannot be known, since.*no \*"),
    "no response": ({"item_id": "doc.id"}, "results", r"must have the columns .* none called 'response'"),
}


@pytest.mark.parametrize(("columns", "rows", "says"), WRONG.values(), ids=WRONG)
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_what_is_wrong_is_said(columns, rows, says, tmp_path):
    path = write(tmp_path / "r.json", {"results": [ROW]})
    with pytest.raises(DataError, match=says) as caught:
        read_json_results(path, JsonMapping(columns, rows), spec=ReadingSpec(model_id="m"))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["a..b", ".a", "a.", "@folders", "a.*.b", '"a', ""])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(ParameterError, match="path"):
        JsonMapping({"item_id": path, "response": "ok"})


def test_a_column_that_is_none_of_ours_is_refused():
    with pytest.raises(ParameterError, match="Did you mean 'response'"):
        JsonMapping({"respons": "ok"})


def test_csv_is_named_as_what_it_is(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,item_id,response\na,x,1\n")
    with pytest.raises(DataError, match="CSV file"):
        read_json_results(tmp_path / "r.csv", JsonMapping({"item_id": "a", "model_id": "b", "response": "c"}))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
KEYS = st.text(st.characters(exclude_characters='."*'), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(KEYS, KEYS, VALUES)
def test_a_value_put_at_a_path_is_found_there(outer, inner, value):
    record = {outer: {inner: value}, "a.b": value}
    steps = rows_path(f"{outer}.{inner}")
    assert value_at(record, steps) == value
    assert value_at(record, rows_path('"a.b"')) == value
    assert value_at({outer: {}}, steps) is ABSENT
    assert value_at({outer: None}, steps) is None
    assert column_path(f"={outer}").steps == (outer,)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, st.lists(VALUES, max_size=3), max_size=4))
def test_a_star_and_a_list_give_every_value_once(record):
    found = [(row.key, row.index, row.value) for row in rows_at({"all": record}, ("all", "*"))]
    assert found == [(key, place, value) for key, some in record.items() for place, value in enumerate(some)]
