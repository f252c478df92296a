"""Rows that programs of jq make, and the programs that are advised."""

import gzip
import hashlib
import json
import os
import signal
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, MissingDependencyError, ParameterError, command_line_words
from itembank.readers import jq_programs, jq_rows
from itembank.readers.jq_programs import program_for
from tests.readers.reading import put, read, read_text, refused, refuses, warns

RECORDS = [{"doc": {"id": f"q{k}"}, "metrics": {"acc,none": k / 4}, "cost": {"tokens": 3 + k}} for k in range(5)]
PLAIN = "{model_id: $stem, item_id: .q, response: .r}"


@pytest.fixture(autouse=True)
def jq():
    return pytest.importorskip("jq", reason="needs the extra jq")


def read_jq(path, program, **choices):
    return read(path, jq=program, **choices)


def write(path, *values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "json", "indented.json", "indented.json.gz", "jsonl.gz", "parquet"])
def test_every_kind_of_file_gives_the_same_rows(suffix, tmp_path):
    path = tmp_path / f"r.{suffix}"
    indent = 1 if "indented" in suffix else None
    text = "\n".join(map(json.dumps, RECORDS)) if "jsonl" in suffix else json.dumps(RECORDS, indent=indent)
    if suffix == "parquet":
        pl.DataFrame(RECORDS).write_parquet(path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    each = "" if suffix in {"jsonl", "jsonl.gz", "parquet"} else ".[] | "
    row = '{model_id: "m", item_id: .doc.id, response: .metrics."acc,none", output_tokens: .cost.tokens}'
    matrix = read_jq(path, each + row)
    assert (matrix.item_ids, matrix.responses.tolist()) == ([f"q{k}" for k in range(5)], [[0.0, 0.25, 0.5, 0.75, 1.0]])
    assert matrix.costs["output_tokens"].tolist() == [[3, 4, 5, 6, 7]]


@pytest.mark.parametrize("values", [([1, 0], [0, 1]), ("a", "b"), (3, 4)])
def test_values_that_are_no_objects_are_read_too(values, tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": "begin"}, *values)
    matrix = read_jq(path, 'select(type != "object") | {model_id: "m", item_id: tojson, response: 1}')
    assert matrix.item_ids == [json.dumps(one, separators=(",", ":")) for one in values]


def test_a_program_is_told_of_its_file(tmp_path, monkeypatch):
    for model in ("a.5", "b"):
        write(tmp_path / model / "task-1.json", {})
    program = '{model_id: "\\($folder)/\\($stem)", item_id: ($file | split("/")[-1]), response: 1}'
    matrix = read_jq(sorted(tmp_path.glob("*/*.json")), program)
    assert (matrix.model_ids, matrix.item_ids) == (["a.5/task-1", "b/task-1"], ["task-1.json"])
    for model in ("a", "b"):
        write(tmp_path / "more" / f"{model}.jsonl", {"model": model}, *({"q": k, "r": k % 2} for k in range(3)))
    matrix = read_jq(tmp_path / "more", "select(.q != null) | {model_id: $first.model, item_id: .q, response: .r}")
    assert (matrix.model_ids, matrix.responses.tolist()) == (["a", "b"], [[0.0, 1.0, 0.0]] * 2)
    assert read_jq(write(tmp_path / "one.json", {"q": 1, "r": 1}), PLAIN + " | .model_id = $first.q").model_ids == ["1"]
    monkeypatch.setenv("SECRET", "key")
    path = write(tmp_path / "r.json", {"q": 1, "r": 1})
    assert read_jq(path, f"{PLAIN} | .model_id = ($ENV | tojson)").model_ids == ["{}"]


@pytest.mark.skipif(os.name != "posix", reason="names of files are text")
def test_a_name_that_is_no_text_stops_nothing(tmp_path):
    path = tmp_path / "m\udcff.json"
    try:
        path.write_text('{"q": 1, "r": 1}')
    except OSError:
        pytest.skip("this file system has text for names")
    assert read_jq(path, PLAIN).model_ids == ["m?"]


def test_large_whole_numbers_stay_exact(tmp_path):
    numbers = [2**53 + 1, 2**53, 12345678901234567890123]
    path = write(tmp_path / "r.json", [{"q": one, "r": 1} for one in numbers])
    assert read_jq(path, f".[] | {PLAIN}").item_ids == list(map(str, numbers))
    assert read_jq(path, f".[] | {PLAIN} | .item_id |= tostring").item_ids == list(map(str, numbers))
    rounded = write(tmp_path / "s.json", {"q": 2**53 + 1, "r": 1})
    with pytest.raises(DataError, match=r"beyond 2\^53 must be left as they are.* got 9007199254740994, which is not"):
        read_jq(rounded, f"{PLAIN} | .item_id += 2")


@pytest.mark.parametrize("function", ["env", "input", "[inputs]", "halt", "halt_error", '"x" | halt_error(1)'])
def test_a_program_sees_its_file_only(function, tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": 1, "r": 1, "input": 2}, {"q": 2, "r": 0, "input": 3})
    refuses(r"fails at record 1: .* is not for programs of rows", read_jq, path, f"({function}) as $x | {PLAIN}")
    assert read_jq(path, f"{PLAIN} | .seconds = 2").responses.tolist() == [[1.0, 0.0]]
    assert read_jq(path, "{model_id: $stem, item_id: .input, response: .r}").item_ids == ["2", "3"]


def test_a_program_that_loops_is_stopped_from_the_shell(tmp_path, monkeypatch):
    seen = []

    class Program:
        def input_text(self, _text):
            seen.append(signal.getsignal(signal.SIGINT))
            yield '[{"model_id": "m", "item_id": "i", "response": 1}]'

    monkeypatch.setattr(jq_rows, "_compiled", lambda _text: Program())
    path, before = write(tmp_path / "r.json", {"q": 1}), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        read_jq(path, PLAIN)  # where Ctrl-C must not end the notebook
        with command_line_words():
            read_jq(path, PLAIN)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_DFL]


@pytest.mark.parametrize(("program", "says"), [
    (".[", "syntax error, unexpected end of file"), ("# nothing", "cannot be run: "), ("1) | (2", "syntax error"),
    ("llm", "llm/0 is not defined, line 1"),
    ('import "x" as $x; .', "without import, include or module"),
    ('# rows\n  include "rows" {search: "/"}; .', "without import, include or module"),
    ("module {}; .", "without import, include or module"),
])  # fmt: skip
def test_what_is_no_program_is_refused(program, says, tmp_path):
    with pytest.raises(ParameterError, match="the program of jq cannot be run") as error:
        read_jq(write(tmp_path / "r.json", {}), program)
    assert says in str(error.value)
    assert "^^" not in str(error.value)


def test_records_that_fail_or_are_many_are_named_and_read_in_blocks(tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": {"id": 1}, "r": 1}, {"q": "none", "r": 1})
    with pytest.raises(DataError, match=r'record 2: Cannot index string with .*"none".*select\(\.type') as error:
        read_jq(path, "{model_id: $stem, item_id: .q.id, response: .r}")
    assert str(path) in str(error.value)
    rows = [{"agent": agent, "trial": trial, "q": "t", "r": 1} for agent in "xy" for trial in (1, 2)]
    paths = [write(tmp_path / "b" / f"{k}.json", row) for k, row in enumerate(rows)]
    refuses("'agent'", read_jq, paths, '{model_id: "m", item_id: .q, response: .r, epoch: .trial}', repeats="count")
    rows = [{"q": k, "r": 1, "error": "timeout" if k else None} for k in range(3)]
    path = write(tmp_path / "c" / "r.json", {"results": {"results": rows}})
    with pytest.warns(DataWarning, match="2 records have 'error' filled in, and count all the same"):
        read_jq(path, f".results.results[] | {PLAIN} # no error\n")
    assert read_jq(path, f".results.results[] | select(.error == null) | {PLAIN}").item_ids == ["0"]
    paths = [write(tmp_path / "d" / f"{one}.json", {"q": 1, "r": r, "kind": "x"}) for one, r in (("a", 1), ("b", 0))]
    with pytest.warns(DataWarning, match=r"rows without 'scenario': .* The first record has 'q', 'r', 'kind'\."):
        read_jq(paths, f"{PLAIN} + {{scenario: .kin}}")
    refuses("rows without 'response': it is null in all of them", read_jq, paths, f"{PLAIN} + {{response: .answer}}")
    lost = f"{PLAIN} + {{response: null, error: .kind}}"
    refuses(r"at least one response, got none\. Answers were lost: 2 errors", read_jq, paths, lost)


@pytest.mark.parametrize(("row", "says"), [
    ('{model_id: [1], item_id: "x", response: 1}', "'model_id' must be text or numbers in every row"),
    ('{model_id: "a", item_id: "x", response: 1, scenario: {a: 1}}', "'scenario' must be text or numbers"),
    ('{model_id: "a", item_id: "x", response: {a: 1}}', "response must be a number"),
    ('{model_id: "a", item_id: "x", response: 2}', r"response must lie in \[0, 1\]"),
    ('{model_id: "a", item_id: "x", response: 1, seconds: .large}', "seconds must be a finite number"),
    ('{model_id: "a", item_id: ("x", 1), response: 1}', "item_id must have one type"),
    ('{model_id: "a", item_id: "x", response: 1, content: {q: .none}}', "content must be an object"),
    ('{model_id: "a", item_id: "x", response: 1, content: "q"}', "content must be an object"),
    ("null", "must make objects, one a row, got null of record 1"),
    ("empty", "must make a row of a file at least, got none"),
])  # fmt: skip
def test_rows_that_cannot_be_are_named(row, says, tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"large": 1e999}')
    error = refuses(says, read_jq, path, row)
    assert str(path) in error


@pytest.mark.parametrize(("text", "says"), [
    ('{"a": 1', "cannot be read"),
    ('{"a": 1}\n{"a": \n', "line 2 must be one JSON value"),
    ('{"a": "\\ud800"}', "half a character"), ("[" * 10**5 + "]" * 10**5, "nested too deeply"),
    ('{"a": ' + "1" * 5000 + "}", "cannot be read|must be one JSON value"),
])  # fmt: skip
def test_files_that_are_no_json_are_named(text, says, tmp_path):
    path = tmp_path / f"r.{'jsonl' if text.count('{') > 1 else 'json'}"
    refuses(says, read_jq, put(path, text), PLAIN)


def test_memory_is_bounded(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"q": k, "r": 1} for k in range(10_000)], indent=1))
    refuses("a JSON document, must have at most", read_jq, path, f".[] | {PLAIN}", max_memory=1e5)
    path = tmp_path / "r.json"
    path.write_text(f'{{"a": [{"[]," * 10**5}[]]}}')
    refuses(r"r\.json: jq asks for .* GiB of memory, of which", read_jq, path, PLAIN, max_memory=2e7)


def test_contents_are_kept_as_a_digest(tmp_path):
    rows = [{"id": k, "pred": pred, "key": "A", "q": f"Q{k}"} for k, pred in enumerate(("A", "B", None))]
    program = ".[] | {model_id: $stem, item_id: .id, response: (.pred == .key), content: {text: .q, key}}"
    matrix = read_jq([write(tmp_path / f"{name}.json", rows) for name in "mn"], program)
    assert matrix.responses.tolist() == [[1.0, 0.0, 0.0]] * 2
    digests = [hashlib.sha256(json.dumps([f"Q{k}", "A"]).encode()).hexdigest() for k in range(3)]
    assert matrix.items["content_hash"].to_list() == digests
    assert matrix.items["content_fields"].unique().to_list() == ['["text", "key"]']
    other = write(tmp_path / "o.json", [{**rows[0], "key": "B"}])
    refuses("got two for 1 item: '0'", read_jq, [tmp_path / "m.json", other], program)


def test_tables_give_rows_and_rows_are_read_as_a_long_table(tmp_path):
    rows = [
        {"model_id": "a", "item_id": "x", "scenario": "s", "n_trials": 4, "n_correct": 3},
        {"model_id": "b", "item_id": "x", "scenario": "s", "n_trials": 2, "n_correct": 0},
    ]
    path = write(tmp_path / "r.jsonl", *rows)
    by_program, table = read_jq(path, "."), read(path)
    np.testing.assert_array_equal(by_program.responses, table.responses)
    np.testing.assert_array_equal(by_program.n_trials, table.n_trials)
    assert by_program.items.equals(table.items)
    rows = [{"llm": "a", "question": k, "correct": "yes" if k else "no", "by": "xy"[k % 2]} for k in range(4)]
    with pytest.warns(DataWarning):
        matrix = read_jq(write(tmp_path / "r.json", rows), ".[]", where={"by": "y"}, scenario="quiz")
    assert (matrix.responses.tolist(), matrix.items["scenario"].to_list()) == ([[1.0, 1.0]], ["quiz"] * 2)
    (tmp_path / "r.csv").write_text("q,marks\n007,8\n008,3\n")
    matrix = read_jq(tmp_path / "r.csv", "{model_id: $stem, item_id: .q, response: ((.marks | tonumber) / 10)}")
    assert (matrix.item_ids, matrix.responses.tolist()) == (["007", "008"], [[0.8, 0.3]])


@pytest.mark.parametrize(
    ("condition", "is_told"),
    [(".s==1", True), ('."s" >= 0.5', True), ("1 == .s", True), ("(.s | tonumber) == 1", False), (".s == .q", False)],
)
def test_a_program_that_takes_values_of_csv_for_numbers_is_warned_of(condition, is_told, tmp_path):
    (tmp_path / "r.csv").write_text("q,s\n1,1\n2,0\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_jq(tmp_path / "r.csv", f'{{model_id: "m", item_id: .q, response: ({condition})}}')
    assert any("values of CSV as text" in str(one.message) for one in caught) == is_told


def test_many_records_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.readers.json_files.BYTES_A_BLOCK", 200)
    path = write(tmp_path / "r.jsonl", *({"q": f"q{k}", "r": k % 2} for k in range(100)), {"q": 5})
    refuses(r"fails at record 101: null .* cannot be", read_jq, path, PLAIN + " | .response /= 1")
    assert read_jq(path, f"select(.r != null) | {PLAIN}").responses.sum() == 50


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jq", None)
    refuses(r"itembank, .*: pip install jq", read_jq, write(tmp_path / "r.json", {}), ".", error=MissingDependencyError)


def test_a_list_of_objects_is_read_by_a_program_that_knows_the_model_beside_it(tmp_path):
    record = {"model": "org/a", "n_examples": 2, "examples": [{"id": "x", "score": 1}, {"id": "y", "score": 0}]}
    program = ".model as $model | .examples[] | . + {model_id: $model, item_id: .id, response: .score}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(record), "r.json")
    matrix = read_text(tmp_path, json.dumps(record), "r.json", jq=program)
    assert (matrix.model_ids, matrix.responses.tolist()) == (["org/a"], [[1.0, 0.0]])


@pytest.mark.parametrize("inside", ["", ".results"])
def test_lists_of_objects_by_model_are_read_by_a_program_that_reads_every_model(tmp_path, inside):
    rows = {"a": [{"id": "x", "way": "p", "score": 1}], "b": [{"id": "x", "way": "q", "score": 0, "note": "z"}]}
    record = {name: {"results": own, "n": 1} for name, own in rows.items()} if inside else rows
    row = ". + {model_id: $model, item_id: .id, response: .score}"
    program = f"to_entries[] | .key as $model | .value | {inside or '.'}[] | {row}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(record), "r.json")
    matrix = read_text(tmp_path, json.dumps(record), "r.json", jq=program)
    assert (matrix.model_ids, matrix.responses.tolist()) == (["a", "b"], [[1.0], [0.0]])


def test_rows_of_an_advised_program_are_told_apart_by_what_else_they_tell(tmp_path):
    rows = [
        {"id": k, "sampler": way, "correct": k == 1, "p": {"x": 0.1}} for k in range(3) for way in ("top", "greedy")
    ]
    program = ".results[] | . + {model_id: $stem, item_id: .id, response: .correct}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps({"results": rows}), "r.json")
    assert "'sampler' ('top', 'greedy') tells them apart" in refused(
        tmp_path, json.dumps({"results": rows}), "r.json", jq=program
    )


ROWS = [{"id": one, "correct": one == 1} for one in (1, 2)]
BY_ID = "to_entries[] | .key as $item | .value"


def by(path, model, item, response=".correct", own=". + "):
    """The program for rows at a path."""
    return f"{path} | {own}{{model_id: {model}, item_id: {item}, response: {response}}}"


def by_task(path, model):
    return f'{path} | . + {{model_id: {model}, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}}'


TASK, MODEL = "to_entries[] | .key as $task | .value", "to_entries[] | .key as $model | .value"
PATHS = [
    ({"model": "a", "scores": {"1": 1, "2": 0}},
        by(f".model as $model | .scores | {BY_ID}", "$model", "$item", ".", "")),
    ([{"model": one, "results": [{"id": 1, "correct": one == "a"}]} for one in "ab"],
        by(".[] | .model as $model | .results[]", "$model", ".id")),
    ([{"model": "a", "id": one, "correct": one == 1, "messages": [{"role": "user"}]} for one in (1, 2)],
        by(".[]", ".model", ".id")),
    ({one: {"model": "a", "response": "B", "graded": {"correct": own}} for one, own in (("1", True), ("2", False))},
        by(BY_ID, ".model", "$item", ".graded.correct")),
    ({"all": {"rate": 0.5}, "each": {one: {"success": one == "1", "tests": [{"x": 1}]} for one in "12"}},
        by(f".each | {BY_ID}", "$stem", "$item", ".success")),
    ({"run": {"model": "a"}, "each": {"1": [{"pass": 1}], "2": [{"pass": 0}]}},
        by(f".run.model as $model | .each | {BY_ID} | .[]", "$model", "$item", ".pass")),
    ({"model": "a", "by_subject": {"law": {"correct": 1}, "art": {"correct": 1}}, "rows": ROWS},
        by(".model as $model | .rows[]", "$model", ".id")),
    ({"models": [{"name": one, "results": [{"id": 1, "correct": one == "a"}]} for one in "ab"]},
        by(".models[] | .name as $model | .results[]", "$model", ".id")),
    ({one: {item: {"correct": one == "a", "seconds": 2} for item in "12"} for one in "ab"},
        by(f"{MODEL} | {BY_ID}", "$model", "$item")),
    ([{"question_id": 1, "answers": {one: {"text": "x", "correct": one == "a"} for one in "ab"}}],
        by(f".[] | .question_id as $item | .answers | {MODEL}", "$model", "$item")),
    ({"questions": [{"id": 1, "answers": [{"model": one, "score": int(one == "a")} for one in "ab"]}]},
        by(".questions[] | .id as $item | .answers[]", ".model", "$item", ".score")),
    ([{"model": one, "score": 0.5, "details": [{"question_id": 1, "correct": one == "a"}]} for one in "ab"],
        by(".[] | .model as $model | .details[]", "$model", ".question_id")),
    ({"run": {"model": {"name": "m"}, "judge": {"model": "j"}}, "rows": {"law": ROWS, "art": ROWS}},
        by_task(f".run.model.name as $model | .rows | {TASK} | .[]", "$model")),
    ({"model": "a", "tasks": [{"name": "law", "rows": ROWS}, {"name": "art", "rows": ROWS}]},
        by_task(".model as $model | .tasks[] | .name as $task | .rows[]", "$model")),
    ({"model": "judge", "runs": [{"model": {"name": one}, "rows": ROWS} for one in "ab"]},
        by(".runs[] | .model.name as $model | .rows[]", "$model", ".id")),
    ({one: {"law": ROWS, "art": [{"id": 3, "correct": True}]} for one in "ab"},
        by_task(f"{MODEL} | {TASK} | .[]", "$model")),
    ({task: dict.fromkeys("ab", ROWS) for task in ("law", "art")}, by_task(f"{TASK} | {MODEL} | .[]", "$model")),
    ([{"model": "a", "task": one,
                "rows": [{"id": 1, "correct": one == "law"}, {**ROWS[0], "id": 2}]} for one in ("law", "art")],
        by_task(".[] | .model as $model | .task as $task | .rows[]", "$model")),
    ({one: [{"id": f"{one} {k}", "correct": k == 1} for k in (1, 2)] for one in ("law", "art")},
        by_task(f"{TASK} | .[]", "$stem")),
    ({"data": {"run": {"rows": ROWS}}}, by(".data.run.rows[]", "$stem", ".id")),
    ([{"id": k, "options": [{"is_correct": own, "chosen": own == (k == 1)} for own in (True, False)]} for k in (1, 2)],
        by(".[] | .id as $item | .options[] | select(.chosen)", "$stem", "$item", ".is_correct")),
    ({f"run {one}": {"model": one, "rows": ROWS} for one in "ab"},
        by(".[] | .model as $model | .rows[]", "$model", ".id")),
    ({"results": {"1": True, "2": False}}, by(f".results | {BY_ID}", "$stem", "$item", ".", "")),
]  # fmt: skip


@pytest.mark.parametrize(("told", "program"), PATHS)
def test_the_program_for_answers_below_their_model_reads_them(tmp_path, told, program):
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(told), "r.json")
    assert {*read_text(tmp_path, json.dumps(told), "r.json", jq=program).responses.ravel()} == {0.0, 1.0}


def test_answers_split_tables_and_own_files_are_told(tmp_path):
    program, _ = program_for([{"q_id": 1, "response": "B", "graded": {"correct": "no"}}])
    assert program.endswith("response: .graded.correct}")
    assert program_for([{"q": {"accuracy": k}} for k in range(2)])[0]  # a metric of each item
    # A program of jq to the items of a selection was advised, which has no responses
    says = refused(tmp_path / "b", '{"schema_version": "itembank.selection/1", "items": [{"item_id": "x"}]}', "s.json")
    assert "is what itembank wrote ('itembank.selection/1'), and no results" in says
    table = json.dumps({"columns": ["model", "question_id", "score"], "data": [["a", "1", 1], ["a", "2", 0]]})
    row = ". + {model_id: .model, item_id: .question_id, response: .score}"
    program = f"{jq_programs.BY_COLUMNS[3:]}[] | {row}"
    assert f"--jq '{program}'" in refused(tmp_path / "c", table, "r.json")
    assert read_text(tmp_path / "c", table, "r.json", jq=program).responses.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("told", "metrics"),
    [
        ({"model": "a", "results": {"mmlu": {"acc": 0.5, "stderr": 0.01}}}, "'acc', 'stderr'"),
        ({"results": {"mmlu": {"acc,none": 0.5, "acc_stderr,none": 0.01}}}, "'acc,none', 'acc_stderr,none'"),
        ({"results": [{"model": one, "accuracy": 0.5, "f1": 0.4} for one in "ab"]}, "'accuracy', 'f1'"),
        ({"id": "x"}, ""),
        (["x", "y"], ""),
        ({"items": ["x", "y"]}, ""),
    ],
)
def test_no_program_is_written_for_summaries_and_for_ids_alone(tmp_path, told, metrics):
    """Metrics were advised as items, and `response: ...` of nothing."""
    put(tmp_path / "folder" / "told.json", told)
    says = refuses("told.json holds no answers of models to items", read, tmp_path / "folder")
    assert (f"({metrics}): bring the results of each" in says) == bool(metrics)
    assert "jq=" not in says


@pytest.mark.parametrize("data", [None, 1, [], [{"a": 1}], [["a", 1]]])
def test_columns_and_data_of_other_kinds_are_no_split_table(tmp_path, data):
    assert "A program of jq makes rows" in refused(
        tmp_path, json.dumps({"columns": [{"name": "x"}], "data": data}), "r.json"
    )


def test_columns_with_dots_are_known_by_what_they_end_in(tmp_path):
    """Of flattened JSON all models were one, which had the name of the file."""
    header = "id,output,expected,metadata.model,scores.score\n"
    says = refused(tmp_path, f"{header}1,a,a,m,1\n2,a,b,n,0\n")
    program = '. + {model_id: .["metadata.model"], item_id: .id, response: .["scores.score"]}'
    assert says.endswith(f"To read the rows, add: --jq '{program}'")
    table = "config.model,sample_id,score\na,1,1\nb,2,0\n"
    with pytest.warns(DataWarning, match="If 'config.model' does, add: columns=|read the column") as told:
        assert read_text(tmp_path, table).model_ids == ["r"]
    assert "columns={'model_id': 'config.model'}" in str(told.list[-1].message)
    assert (
        warns("read the column|are one", read_text, tmp_path, table, columns={"model_id": "config.model"}).n_models == 2
    )


def test_rows_and_objects_of_many_are_looked_through_once(monkeypatch):
    few = [{"id": k, "meta": {"correct": k % 2}} for k in range(2)]
    looked, places = [], jq_programs._places
    monkeypatch.setattr(jq_programs, "_places", lambda one, *more: looked.append(len(one)) or places(one, *more))
    assert program_for([few * 500_000]) == program_for([few])
    assert len(looked) < 30_000
    looked.clear()
    program_for([{f"k{k}": {"a": {"b": k}} for k in range(1000)}])
    assert sum(looked) < 10_000


def test_a_program_of_rows_reads_a_list_of_them(tmp_path):
    """Advice for tables, `. + {...}`, failed where the table was a JSON list."""
    rows = [{"q": k, "pred": "AB"[k % 2], "gold": "A"} for k in range(3)]
    program = ". + {model_id: $stem, item_id: .q, response: (.pred == .gold)}"
    assert read_jq(put(tmp_path / "r.json", rows), program).responses.tolist() == [[1.0, 0.0, 1.0]]
    with pytest.raises(DataError, match=r"fails at record 1: .* The record is \[.{1,200}$"):
        read_jq(tmp_path / "r.json", f"{program} | error")


DEEPEVAL = {"testCases": [
    {"name": f"test_case_{k}", "metricsData": [{"name": "Correctness [GEval]", "score": k / 4, "evaluationModel": "j"}]}
    for k in range(3)
]}  # fmt: skip
SIMPLE = {"metadata": {"example_level_metadata": [{"prompt_id": f"p{k}", "score": k - 1.0} for k in range(3)]}}
MLFLOW = {"columns": ["inputs", "answer_correctness/v1/score"], "data": [["a", 1], ["b", 3], ["c", None]]}


@pytest.mark.parametrize(("program", "path", "document", "model", "responses"), [
    ("deepeval", "20260101_120000.json", DEEPEVAL, "20260101_120000", [0, 0.25, 0.5]),
    ("simple_evals", "healthbench_hard_gpt-4.1_20260101_120000_allresults.json", SIMPLE, "gpt-4.1", [0, 0, 1]),
    ("simple_evals", "healthbench_o3_20260101_120000_allresults.json", SIMPLE, "o3", [0, 0, 1]),
    ("mlflow", "mlruns/0/run-a/artifacts/eval_results_table.json", MLFLOW, "run-a", [0, 0.5]),
    ("mlflow", "run-b/eval_results_table.json", MLFLOW, "run-b", [0, 0.5]),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:lost answers")
def test_programs_beside_the_code_read_what_their_tools_write(program, path, document, model, responses, tmp_path):
    examples = Path(__file__).resolve().parents[2] / "examples" / "jq"
    matrix = read_jq(put(tmp_path / path, document), str(examples / f"{program}.jq"))
    assert matrix.model_ids == [model]
    assert matrix.responses[0][: len(responses)].tolist() == responses


def test_of_answers_by_two_keys_the_fewer_are_models():
    by_model = {model: {f"q{k}": k % 2 for k in range(4)} for model in "ab"}
    by_item = {f"q{k}": dict.fromkeys("ab", k % 2) for k in range(4)}
    outer = [program_for([one])[0].partition(".value")[0].split()[-2] for one in (by_model, by_item)]
    assert outer == ["$model", "$item"]


def test_a_program_of_rows_fails_on_a_list_as_on_its_object(tmp_path):
    path = put(tmp_path / "r.json", '[{"q": "x", "r": 1}, {"q": "y", "r": "lost"}]')
    for rows in ("", ".[] | "):
        refuses("lost.* cannot be parsed", read_jq, path, f"{rows}{PLAIN} | .response |= tonumber")
    refuses("needs three", read_jq, path, f'if length != 3 then error("needs three") else .[] | {PLAIN} end')
