"""Columns that tell rows of one model and item apart; metric and judge are never pooled."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning
from itembank.readers.agreement import check_same_prompts, read_new_responses
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.telling_apart import kind_of
from itembank.responses.prompts import prompts_in_words
from itembank.responses.response_files import write_responses
from tests.readers.reading import put, read, refuses, warns, write_frame
from tests.readers.reading import read as read_file

pytestmark = pytest.mark.filterwarnings("ignore:.*(without a response|have no response|as judge)")


def attempts(**more):
    """Two attempts of two models at three items, with a column more."""
    rows = [(model, item, k) for model in "ab" for item in "xyz" for k in (0, 1)]
    frame = pl.DataFrame(rows, schema=["model_id", "item_id", "k"], orient="row")
    columns = [pl.Series(name, [make(*row) for row in rows]) for name, make in more.items()]
    return frame.with_columns(response=pl.col("k").cast(pl.Float64)).drop("k").with_columns(columns)


@pytest.mark.parametrize(("column", "kind"), [
    ("Replication", "attempt"), ("answer_option", "option"), ("run_id", "attempt"), ("Task Name", "task"),
    ("grader_model", "judge"), ("reasoning_effort", "agent"), ("agent_info.name", "agent"), ("metric", "metric"),
    ("lang", "version"), ("answer", "unknown"), ("timestamp", "unknown"),
])  # fmt: skip
def test_kinds_of_columns(column, kind):
    assert kind_of(column) == kind


@pytest.mark.parametrize(("name", "make"), [
    ("answer", lambda model, item, k: "ABCD"[(ord(item) + k) % 4]),
    ("seconds_taken", lambda model, item, k: 0.25 * k + ord(item)),
    ("timestamp", lambda model, item, k: f"{model}{item}{k}"),
    ("provider", lambda model, item, k: "other" if (model, item, k) == ("a", "x", 1) else "usual"),
    ("parse_ok", lambda model, item, k: (model, item, k) != ("b", "x", 1)),
    ("passed", lambda model, item, k: bool(k)), ("note", lambda model, item, k: None),
])  # fmt: skip
def test_what_the_answers_bring_with_them_does_not_make_them_something_else(name, make):
    matrix = read(attempts(**{name: make}), repeats="count")
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5] * 3] * 2, [[2] * 3] * 2)


@pytest.mark.parametrize("repeats", ["error", "count", "mean", "last"])
@pytest.mark.parametrize(
    "name", ["task", "metric", "judge", "grader", "rubric", "agent", "effort", "language", "prompt"]
)
def test_nothing_is_pooled_over_what_a_column_names(name, repeats):
    frame = attempts(**{name: lambda model, item, k: f"{name} {k}"})
    refuses(rf"for 6 pairs: .*'{name}' \('{name} 0', '{name} 1'\) tells them apart", read, frame, repeats=repeats)


def test_attempts_are_numbered_by_one_or_two_columns():
    # Equal answers of two runs counted once as copies, so that a model with luck had more trials
    frame = attempts(run=lambda model, item, k: k + 1).with_columns(response=1)
    matrix = warns("'run' numbers repeated attempts: read it as epoch", read, frame, repeats="count")
    assert matrix.n_trials.tolist() == [[2] * 3] * 2
    with pytest.warns(DataWarning), pytest.raises(DataError, match=r"repeated attempts .several seeds. for 6 pairs"):
        read(frame)
    frame = attempts(run=lambda model, item, k: "r")
    frame = pl.concat([frame.with_columns(run=pl.lit(f"r{r}"), sample=pl.Series([0, 1] * 6)) for r in range(2)])
    assert warns("'run', 'sample' numbers repeated", read, frame, repeats="count").n_trials.tolist() == [[4] * 3] * 2
    frame = attempts(category=lambda model, item, k: f"category {k}")
    assert read(frame, repeats="count", drop_columns=("cat*",)).n_trials.tolist() == [[2] * 3] * 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "csv.gz"])
def test_the_column_is_found_in_files_of_every_kind_and_across_two(tmp_path, suffix):
    frame = attempts(agent=lambda model, item, k: f"agent {k}")
    for k in range(2):
        write_frame(frame.filter(pl.col("agent") == f"agent {k}"), tmp_path / f"{k}.{suffix}")
    refuses(r"'agent' \('agent 0', 'agent 1'\) tells them apart", read, sorted(tmp_path.iterdir()), repeats="count")


def test_rows_that_agree_are_copies_of_no_other_task_or_judge(tmp_path):
    # Read a part at a time, equal answers to two tasks' first questions were one question
    attempts(task=lambda model, item, k: f"task {k}").with_columns(response=1).write_csv(tmp_path / "r.csv")
    refuses(r"'task' .* tells them apart: ids start anew in each", read, tmp_path / "r.csv")
    rows = [{"model_id": "m", "item_id": "x", "judge": j, "response": 1, "more": {"a": [1]}} for j in ("one", "two")]
    refuses(r"'judge' \('one', 'two'\)", read, put(tmp_path / "r.jsonl", "\n".join(map(json.dumps, rows))))


def test_columns_make_ids_rows_are_chosen_and_values_are_missing(tmp_path):
    frame = pl.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": ["p", "q"], "a+b": ["own", "own"], "response": [1, 0]})
    told = {"model_id": "a + c", "item_id": "c+b"}
    assert read(frame, columns=told).model_ids == ["x + p", "y + q"]
    assert read(frame, columns=told).item_ids == ["p/1", "q/2"]
    assert read(frame, columns={"model_id": "a+b", "item_id": "c"}).model_ids == ["own"]
    assert read(write_frame(frame, tmp_path / "r.csv"), columns=told).item_ids == ["p/1", "q/2"]
    refuses(r"got none called 'a.z'", read, frame, columns={"model_id": "a+z", "item_id": "c"})
    frame = pl.DataFrame({"model_id": ["m", "m"], "item_id": ["x", "x"], "n": [1, 2], "response": [1, 0]})
    assert read(frame, where={"n": "2"}).responses.tolist() == [[0.0]]
    refuses(r"must leave a row, but none has '3' as 'n'; there are '1', '2'", read, frame, where={"n": "3"})
    refuses(r"must name a column of the table, got 'm'; there are", read, frame, where={"m": "3"})
    assert read(write_frame(frame, tmp_path / "r.csv"), where={"n": "1"}).responses.tolist() == [[1.0]]
    frame = pl.DataFrame({"model_id": ["m"] * 4, "item_id": list("wxyz"), "response": ["1", "SKIP", "-1.0", "0"]})
    np.testing.assert_array_equal(read(frame, missing_values=("skip", "-1")).responses, [[1, np.nan, np.nan, 0]])
    words = frame.with_columns(response=pl.Series(["good", "skip", "bad", "good"]))
    matrix = warns("read 'good' as right and 'bad' as wrong", read, words, missing_values=("skip",), true_value="good")
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
    refuses(r"'task' .* tells them apart", read, frame)
    matrix = read(frame, columns={"scenario": "task"}, prefix_scenario=True)
    told = {(m, f"{t}/{i}"): r for m, t, i, r in rows}
    assert matrix.n_items == n_items * n_tasks
    for m, model in enumerate(matrix.model_ids):
        for i, item in enumerate(matrix.item_ids):
            assert matrix.responses[m, i] == told[model, item]


def test_rows_of_answer_options_are_no_attempts(tmp_path):
    pairs = [(k, place, option) for k in range(4) for place, option in enumerate("ABC")]
    rows = [("a", f"q{k}", option, k % 3 == place, k % 2 == place) for k, place, option in pairs]
    schema = ["model_id", "item_id", "option", "response", "chosen"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(tmp_path / "r.csv")
    words = "such as the answer option that was chosen. If so, add: where={'chosen': 'true'}"
    with pytest.warns(DataWarning, match=words), pytest.raises(ValueError, match="take those that were chosen"):
        read(tmp_path / "r.csv", repeats="mean")
    assert read(tmp_path / "r.csv", where={"chosen": "true"}).responses.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    two = "model_id,item_id,choice,response\n" + "".join(f"{m},x,A,1\n{m},x,B,0\n{m},y,A,1\n" for m in "ab")
    refuses("two.csv: .*'choice' .* tells them apart: where a row is one", read_file, put(tmp_path / "two.csv", two))
    plain = "model_id,item_id,response,selected\na,x,1,0\na,y,0,1\n"  # a warning is an error here
    assert read_file(put(tmp_path / "plain.csv", plain)).responses.tolist() == [[1.0, 0.0]]


def judged(path, models, judge, *, items=("x", "y"), metric=None):
    """Every model has half a point on every item."""
    rows = [{"model_id": model, "item_id": item, "judge": judge, "response": 0.5} for model in models for item in items]
    frame = pl.DataFrame(rows)
    frame = frame if metric is None else frame.with_columns(metric=pl.lit(metric))
    frame.write_csv(path)
    return path


def judges(matrix):
    return [json.loads(text)["judge"] for text in matrix.items["prompt_settings"]]


def test_judges_are_read_kept_and_may_differ_by_item(tmp_path):
    matrix = read_responses(judged(tmp_path / "r.csv", ["a", "b"], "gpt-4o"))
    write_responses(matrix, tmp_path / "r.parquet")
    again = read_responses(tmp_path / "r.parquet")
    assert judges(matrix) == judges(again) == ["gpt-4o"] * 2
    assert prompts_in_words(again.items) == ["judge gpt-4o"]
    one = pl.read_csv(judged(tmp_path / "r.csv", ["a", "b"], "one", items=["x"]))
    two = pl.read_csv(judged(tmp_path / "r.csv", ["a", "b"], "two", items=["y"]))
    assert judges(read_responses(write_frame(pl.concat([one, two]), tmp_path / "r.csv"))) == ["one", "two"]
    put(tmp_path / "r.json", [{"q": "x", "by": {"name": "gpt-4o"}, "r": 1}])
    pytest.importorskip("jq", reason="needs the extra jq")
    spec = ReadingSpec(jq=".[] | {item_id: .q, judge: .by.name, response: .r}", model_id="a")
    assert judges(read_responses(tmp_path / "r.json", spec=spec)) == ["gpt-4o"]


@pytest.mark.parametrize("column", ["grader", "Judge Model", "grader_name"])
def test_usual_names_of_the_judge_are_read(tmp_path, column):
    pl.DataFrame({"model": ["a"], "item": ["x"], column: ["gpt-4o"], "score": [1]}).write_csv(tmp_path / "r.csv")
    assert judges(warns(f"'{column}' as judge", read_responses, tmp_path / "r.csv")) == ["gpt-4o"]


def test_judges_and_metrics_are_not_mixed_unasked(tmp_path):
    # In two files, and in one
    paths = [judged(tmp_path / "a.csv", ["a"], "one"), judged(tmp_path / "b.csv", ["b"], "two")]
    refuses(r"judges differ for 2 of 2 items: .*a.csv had judge one, these have judge two", read_responses, paths)
    assert judges(read_file(paths, allow_mixed_prompts=True)) == ["differs"] * 2
    pl.concat(map(pl.read_csv, paths)).write_csv(tmp_path / "both.csv")
    refuses("for all models, got more for 2 items: 'x' has 'one' and 'two'", read_responses, tmp_path / "both.csv")
    assert judges(read_file(tmp_path / "both.csv", allow_mixed_prompts=True)) == ["differs"] * 2
    paths = [judged(tmp_path / "a.csv", ["a"], "one"), judged(tmp_path / "b.csv", ["a"], "two")]
    for spec in (ReadingSpec(repeats="mean"), ReadingSpec(repeats="mean", allow_mixed_prompts=True)):
        refuses(r"judges differ|'judge' \('one', 'two'\) tells them apart: take one", read_responses, paths, spec=spec)
    told = ReadingSpec(repeats="mean", columns={"epoch": "judge", "judge": ""})
    assert read_responses(paths, spec=told).n_trials.tolist() == [[2, 2]]  # with the reason named
    paths = [judged(tmp_path / f"{name}.csv", [name], "one", metric=name) for name in ("acc", "f1")]
    refuses("one metric for all models, got more for 2 items: 'x' has 'acc', 'f1'", read_responses, paths)


def test_new_results_are_read_by_the_metric_and_compared_with_the_judge_of_the_bank(tmp_path):
    known = read_responses(judged(tmp_path / "past.csv", ["a", "b"], "one")).items
    check_same_prompts(read_new_responses([judged(tmp_path / "same.csv", ["c"], "one")], known).items, known)
    other = read_new_responses([judged(tmp_path / "other.csv", ["c"], "two")], known)
    refuses("for 2 of 2 items: the bank's runs had judge one, these have", check_same_prompts, other.items, known)
    known = read_responses(judged(tmp_path / "past.csv", ["a", "b"], "one", metric="acc")).items
    assert known["metric"].to_list() == ["acc", "acc"]
    rows = [("c", item, metric, value) for item in "xy" for metric, value in (("f1", 0.25), ("acc", 1.0))]
    frame = pl.DataFrame(rows, schema=["model_id", "item_id", "metric", "response"], orient="row")
    frame.write_csv(tmp_path / "new.csv")
    np.testing.assert_array_equal(read_new_responses([tmp_path / "new.csv"], known).responses, [[1.0, 1.0]])
    frame.filter(pl.col("metric") == "f1").write_csv(tmp_path / "new.csv")
    refuses(r"metric must be chosen .*got 'all=acc'; there are 'f1'", read_new_responses, [tmp_path / "new.csv"], known)
    read_new_responses([write_frame(frame.drop("metric").unique("item_id", keep="last"), tmp_path / "new.csv")], known)


def test_metrics_are_taken_in_order_of_preference_by_scenario(tmp_path):
    rows = [
        ("a", "arc/1", "arc", "acc", 0.0),
        ("a", "arc/1", "arc", "acc_norm", 1.0),
        ("a", "gsm/1", "gsm", "exact", 0.5),
        ("a", "gsm/1", "gsm", "acc", 0.25),
    ]
    frame = pl.DataFrame(rows, schema=["model_id", "item_id", "scenario", "metric", "response"], orient="row")
    frame.write_csv(tmp_path / "r.csv")

    def read(*metric):
        return read_responses(tmp_path / "r.csv", metric=metric).responses.tolist()

    assert (read("acc_norm", "exact"), read("acc")) == ([[1.0, 0.5]], [[0.0, 0.25]])
    assert read("arc=acc_norm", "acc") == [[1.0, 0.25]]
    refuses("got 'acc_norm'; there are 'exact', 'acc' in 'gsm'", read, "acc_norm")


@pytest.mark.parametrize("text", ["model_id,item_id,response\na,x,1\n", "model_id,x\na,1\n"])
def test_a_metric_that_no_column_names_is_refused(tmp_path, text):
    (tmp_path / "r.csv").write_text(text)
    refuses("be named by a column of a long table, got metric 'acc'", read_responses, tmp_path / "r.csv", metric="acc")


def test_ids_that_start_anew_in_what_nobody_knows_are_joined():
    rows = [("m", src, str(k), (k + len(src)) % 2) for src in ("gsm8k", "arcs") for k in range(4)]
    frame = pl.DataFrame(rows, schema=["model_id", "src", "item_id", "response"], orient="row")
    says = r"if ids of items start anew in each, add: spec=ReadingSpec\(columns={'item_id': 'src\+item_id'}\)"
    refuses(says, read, frame)
