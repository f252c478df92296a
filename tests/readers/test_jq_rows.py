"""Rows that programs of jq make: exact, named where they are none, and seeing their file only."""

import gzip
import hashlib
import json
import os
import signal
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, MissingDependencyError, ParameterError, command_line_words
from itembank.readers import jq_rows
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

RECORDS = [{"doc": {"id": f"q{k}"}, "metrics": {"acc,none": k / 4}, "cost": {"tokens": 3 + k}} for k in range(5)]
PLAIN = "{model_id: $stem, item_id: .q, response: .r}"


@pytest.fixture(autouse=True)
def jq():
    return pytest.importorskip("jq", reason="needs the extra jq")


def read(path, program, **choices):
    return read_responses(path, spec=ReadingSpec(jq=program, **choices))


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
    matrix = read(path, each + row)
    assert matrix.item_ids == [f"q{k}" for k in range(5)]
    assert matrix.responses.tolist() == [[0.0, 0.25, 0.5, 0.75, 1.0]]
    assert matrix.costs["output_tokens"].tolist() == [[3, 4, 5, 6, 7]]


@pytest.mark.parametrize("values", [([1, 0], [0, 1]), ("a", "b"), (3, 4)])
def test_values_that_are_no_objects_are_read_too(values, tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": "begin"}, *values)
    matrix = read(path, 'select(type != "object") | {model_id: "m", item_id: tojson, response: 1}')
    assert matrix.item_ids == [json.dumps(one, separators=(",", ":")) for one in values]


def test_the_file_tells_its_names(tmp_path):
    for model in ("a.5", "b"):
        write(tmp_path / model / "task-1.json", {})
    program = '{model_id: "\\($folder)/\\($stem)", item_id: ($file | split("/")[-1]), response: 1}'
    matrix = read(sorted(tmp_path.glob("*/*.json")), program)
    assert (matrix.model_ids, matrix.item_ids) == (["a.5/task-1", "b/task-1"], ["task-1.json"])


@pytest.mark.skipif(os.name != "posix", reason="names of files are text")
def test_a_name_that_is_no_text_stops_nothing(tmp_path):
    path = tmp_path / "m\udcff.json"
    try:
        path.write_text('{"q": 1, "r": 1}')
    except OSError:
        pytest.skip("this file system has text for names")
    assert read(path, PLAIN).model_ids == ["m?"]


def test_the_first_value_is_that_of_each_file(tmp_path):
    for model in ("a", "b"):
        write(tmp_path / f"{model}.jsonl", {"model": model}, *({"q": k, "r": k % 2} for k in range(3)))
    matrix = read(tmp_path, "select(.q != null) | {model_id: $first.model, item_id: .q, response: .r}")
    assert (matrix.model_ids, matrix.responses.tolist()) == (["a", "b"], [[0.0, 1.0, 0.0]] * 2)
    assert read(write(tmp_path / "one.json", {"q": 1, "r": 1}), PLAIN + " | .model_id = $first.q").model_ids == ["1"]


def test_large_whole_numbers_stay_exact(tmp_path):
    numbers = [2**53 + 1, 2**53, 12345678901234567890123]
    path = write(tmp_path / "r.json", [{"q": one, "r": 1} for one in numbers])
    assert read(path, f".[] | {PLAIN}").item_ids == list(map(str, numbers))
    assert read(path, f".[] | {PLAIN} | .item_id |= tostring").item_ids == list(map(str, numbers))
    rounded = write(tmp_path / "s.json", {"q": 2**53 + 1, "r": 1})
    with pytest.raises(DataError, match=r"beyond 2\^53 must be left as they are.* got 9007199254740994, which is not"):
        read(rounded, f"{PLAIN} | .item_id += 2")


@pytest.mark.parametrize("function", ["env", "input", "[inputs]", "halt", "halt_error", '"x" | halt_error(1)'])
def test_a_program_sees_its_file_only(function, tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": 1, "r": 1, "input": 2}, {"q": 2, "r": 0, "input": 3})
    with pytest.raises(DataError, match=r"fails at record 1: .* is not for programs of rows"):
        read(path, f"({function}) as $x | {PLAIN}")
    assert read(path, f"{PLAIN} | .seconds = 2").responses.tolist() == [[1.0, 0.0]]
    assert read(path, "{model_id: $stem, item_id: .input, response: .r}").item_ids == ["2", "3"]


def test_a_program_that_loops_is_stopped_from_the_shell(tmp_path, monkeypatch):
    seen = []

    class Program:
        def input_text(self, _text):
            seen.append(signal.getsignal(signal.SIGINT))
            yield '[{"model_id": "m", "item_id": "i", "response": 1}]'

    monkeypatch.setattr(jq_rows, "_compiled", lambda _text: Program())
    path, before = write(tmp_path / "r.json", {"q": 1}), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        read(path, PLAIN)  # where Ctrl-C must not end the notebook
        with command_line_words():
            read(path, PLAIN)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_DFL]


def test_the_environment_is_empty(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "key")
    path = write(tmp_path / "r.json", {"q": 1, "r": 1})
    assert read(path, f"{PLAIN} | .model_id = ($ENV | tojson)").model_ids == ["{}"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (".[", "syntax error, unexpected end of file"),
        ("# nothing", "cannot be run: "),
        ("1) | (2", "syntax error"),
        ("llm", "llm/0 is not defined, line 1"),
        ('import "x" as $x; .', "without import, include or module"),
        ('# rows\n  include "rows" {search: "/"}; .', "without import, include or module"),
        ("module {}; .", "without import, include or module"),
    ],
)
def test_what_is_no_program_is_refused(program, says, tmp_path):
    with pytest.raises(ParameterError, match="the program of jq cannot be run") as error:
        read(write(tmp_path / "r.json", {}), program)
    assert says in str(error.value)
    assert "^^" not in str(error.value)


def test_the_record_that_fails_is_named(tmp_path):
    path = write(tmp_path / "r.jsonl", {"q": {"id": 1}, "r": 1}, {"q": "none", "r": 1})
    with pytest.raises(DataError, match=r'record 2: Cannot index string with .*"none".*select\(\.type') as error:
        read(path, "{model_id: $stem, item_id: .q.id, response: .r}")
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("row", "says"),
    [
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
    ],
)
def test_rows_that_cannot_be_are_named(row, says, tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"large": 1e999}')
    with pytest.raises(DataError, match=says) as error:
        read(path, row)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1', "cannot be read"),
        ('{"a": 1}\n{"a": \n', "line 2 must be one JSON value"),
        ('{"a": "\\ud800"}', "half a character"),
        ("[" * 10**5 + "]" * 10**5, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "cannot be read|must be one JSON value"),
    ],
)
def test_files_that_are_no_json_are_named(text, says, tmp_path):
    path = tmp_path / f"r.{'jsonl' if text.count('{') > 1 else 'json'}"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        read(path, PLAIN)


def test_a_document_has_no_more_than_its_share_of_memory(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{"q": k, "r": 1} for k in range(10_000)], indent=1))
    with pytest.raises(DataError, match="a JSON document, must have at most"):
        read(path, f".[] | {PLAIN}", max_memory=1e5)


def test_what_grows_in_jq_is_refused_before(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(f'{{"a": [{"[]," * 10**5}[]]}}')
    with pytest.raises(DataError, match=r"r\.json: jq asks for .* GiB of memory, of which"):
        read(path, PLAIN, max_memory=2e7)


def test_columns_that_are_null_everywhere_are_named(tmp_path):
    paths = [write(tmp_path / f"{one}.json", {"q": 1, "r": r, "kind": "x"}) for one, r in (("a", 1), ("b", 0))]
    with pytest.warns(DataWarning, match=r"rows without 'scenario': .* The first record has 'q', 'r', 'kind'\."):
        read(paths, f"{PLAIN} + {{scenario: .kin}}")
    with pytest.raises(DataError, match="rows without 'response': it is null in all of them"):
        read(paths, f"{PLAIN} + {{response: .answer}}")
    lost = f"{PLAIN} + {{response: null, error: .kind}}"
    with pytest.raises(DataError, match=r"at least one response, got none\. Answers were lost: 2 errors"):
        read(paths, lost)


def test_errors_that_nobody_asked_about_are_told(tmp_path):
    rows = [{"q": k, "r": 1, "error": "timeout" if k else None} for k in range(3)]
    path = write(tmp_path / "r.json", {"results": {"results": rows}})
    with pytest.warns(DataWarning, match="2 records have 'error' filled in, and their responses count all the same"):
        read(path, f".results.results[] | {PLAIN} # no error\n")
    assert read(path, f".results.results[] | select(.error == null) | {PLAIN}").item_ids == ["0"]


def test_agents_that_the_program_leaves_out_are_not_pooled(tmp_path):
    rows = [{"agent": agent, "trial": trial, "q": "t", "r": 1} for agent in "xy" for trial in (1, 2)]
    paths = [write(tmp_path / f"{k}.json", row) for k, row in enumerate(rows)]
    with pytest.raises(DataError, match="'agent'"):
        read(paths, '{model_id: "m", item_id: .q, response: .r, epoch: .trial}', repeats="count")


def test_contents_are_kept_as_a_digest(tmp_path):
    rows = [{"id": k, "pred": pred, "key": "A", "q": f"Q{k}"} for k, pred in enumerate(("A", "B", None))]
    program = ".[] | {model_id: $stem, item_id: .id, response: (.pred == .key), content: {text: .q, key}}"
    matrix = read([write(tmp_path / f"{name}.json", rows) for name in "mn"], program)
    assert matrix.responses.tolist() == [[1.0, 0.0, 0.0]] * 2
    digests = [hashlib.sha256(json.dumps([f"Q{k}", "A"]).encode()).hexdigest() for k in range(3)]
    assert matrix.items["content_hash"].to_list() == digests
    assert matrix.items["content_fields"].unique().to_list() == ['["text", "key"]']
    other = write(tmp_path / "o.json", [{**rows[0], "key": "B"}])
    with pytest.raises(DataError, match="got two for 1 item: '0'"):
        read([tmp_path / "m.json", other], program)


def test_rows_are_read_as_the_long_table_they_are(tmp_path):
    rows = [
        {"model_id": "a", "item_id": "x", "scenario": "s", "n_trials": 4, "n_correct": 3},
        {"model_id": "b", "item_id": "x", "scenario": "s", "n_trials": 2, "n_correct": 0},
    ]
    path = write(tmp_path / "r.jsonl", *rows)
    by_program, table = read(path, "."), read_responses(path)
    np.testing.assert_array_equal(by_program.responses, table.responses)
    np.testing.assert_array_equal(by_program.n_trials, table.n_trials)
    assert by_program.items.equals(table.items)


def test_usual_names_and_choices_of_tables_hold(tmp_path):
    rows = [{"llm": "a", "question": k, "correct": "yes" if k else "no", "by": "xy"[k % 2]} for k in range(4)]
    with pytest.warns(DataWarning):
        matrix = read(write(tmp_path / "r.json", rows), ".[]", where={"by": "y"}, scenario="quiz")
    assert matrix.responses.tolist() == [[1.0, 1.0]]
    assert matrix.items["scenario"].to_list() == ["quiz"] * 2


def test_a_table_gives_its_rows(tmp_path):
    (tmp_path / "r.csv").write_text("q,marks\n007,8\n008,3\n")
    matrix = read(tmp_path / "r.csv", "{model_id: $stem, item_id: .q, response: ((.marks | tonumber) / 10)}")
    assert (matrix.item_ids, matrix.responses.tolist()) == (["007", "008"], [[0.8, 0.3]])


@pytest.mark.parametrize(
    ("condition", "is_told"),
    [(".s==1", True), ('."s" >= 0.5', True), ("1 == .s", True), ("(.s | tonumber) == 1", False), (".s == .q", False)],
)
def test_a_program_that_takes_values_of_csv_for_numbers_is_warned_of(condition, is_told, tmp_path):
    (tmp_path / "r.csv").write_text("q,s\n1,1\n2,0\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(tmp_path / "r.csv", f'{{model_id: "m", item_id: .q, response: ({condition})}}')
    assert any("values of CSV as text" in str(one.message) for one in caught) == is_told


def test_many_records_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.readers.json_files.BYTES_A_BLOCK", 200)
    path = write(tmp_path / "r.jsonl", *({"q": f"q{k}", "r": k % 2} for k in range(100)), {"q": 5})
    with pytest.raises(DataError, match=r"fails at record 101: null .* cannot be"):
        read(path, PLAIN + " | .response /= 1")
    assert read(path, f"select(.r != null) | {PLAIN}").responses.sum() == 50


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jq", None)
    with pytest.raises(MissingDependencyError, match=r"needs the extra jq of itembank, .*: pip install jq"):
        read(write(tmp_path / "r.json", {}), ".")
