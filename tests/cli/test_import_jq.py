"""The commands of the page on data, as they are printed there, on files of our own in the layout of each tool."""

import itertools
import json
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.readers.read import read_responses
from tests.docs.blocks import EXAMPLES, blocks

pytest.importorskip("jq", reason="needs the extra jq")
PAGE = Path(__file__).parents[2] / "docs" / "data.md"
COMMANDS = {
    words[2]: words
    for _, code in blocks(PAGE.read_text(encoding="utf-8"))
    for line in code.replace("\\\n", " ").splitlines()
    if line.startswith("itembank import") and ("--jq" in line or "irsl/" in line)
    for words in [shlex.split(line)]
}  # By what is imported


def write(path, *values):
    """Write JSON: one value, or several as lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    write(tmp_path / "run.json", {"samples": [{"doc": {"id": k}, "metrics": {"acc": k % 2}} for k in range(4)]})
    about = {"options": ["1", "2"], "answer": "B", "answer_index": 1, "category": "math"}
    asked = [{"question_id": 70 + k, "question": f"Q{k}", **about, "pred": "AB"[k]} for k in (0, 1)]
    write(tmp_path / "outputs" / "llm.json", asked)
    failed = {("b", 1): 2, ("b", 0): 1}
    rows = []
    for k, one in itertools.product((0, 1), "ab"):
        ended = {"failureReason": failed.get((one, k), 0), "success": (one, k) not in failed}
        ended["score"] = 0.5 * (one == "a")
        rows.append({"testIdx": k, "promptIdx": "ab".index(one), "provider": {"id": one, "label": ""}, **ended})
    write(tmp_path / "promptfoo.json", {"results": {"version": 3, "results": rows}})
    metrics = [{"name": "Bias", "score": 1.0}, {"name": "Correctness", "score": 0.25, "evaluationModel": "judge-a"}]
    cases: list[dict] = [{"name": f"case {k}", "metricsData": metrics[:: 1 - 2 * k]} for k in (0, 1)]
    cases += [{"name": "case 2", "success": False, "metricsData": None}]
    cases += [{"name": "case 3", "metricsData": [{"name": "Correctness", "score": None, "error": "rate limit"}]}]
    about = {"testCases": cases, "hyperparameters": {"model": "org/a"}}
    write(tmp_path / "deepeval" / "latest.json", {"testRunData": about, "testRunLink": None})
    write(tmp_path / "deepeval" / "llm.json", {"testCases": cases[:1], "hyperparameters": None})
    for model, last in (("m0", "match"), ("m1", "error")):
        data = {"match": {"correct": True}, "error": {"type": "Timeout", "message": "no answer"}, "sampling": {}}
        events = [(0, "sampling"), (0, "match"), (1, "sampling"), (1, last), (2, "sampling")]
        lines = [{"event_id": n, "sample_id": f"t.{k}", "type": x, "data": data[x]} for n, (k, x) in enumerate(events)]
        spec = {"completion_fns": [model], "eval_name": "t.dev.v0", "base_eval": "t"}
        write(tmp_path / "evals" / f"{model}-run.jsonl", {"spec": spec}, *lines, {"final_report": {"accuracy": 1.0}})
    scores = [("x", 0.5), ("y", -0.25), ("z", None)]
    simple = {"metadata": {"example_level_metadata": [{"prompt_id": one, "score": score} for one, score in scores]}}
    write(tmp_path / "simple" / "healthbench_gpt_4.1-mini_20250513_101530_allresults.json", simple)
    ref, op = "weave:///e/p/object", "weave:///e/p/op"
    calls = []
    for k in range(3):
        asked = {"model": f"{ref}/llm:v1", "example": f"{ref}/Dataset:d/attr/rows/id/q{k}"}
        given = {"output": "x", "scores": {"exact_match": k == 1} if k < 2 else {}, "model_latency": 0.5}
        named = {"op_name": f"{op}/Evaluation.predict_and_score:abc", "exception": None}
        calls.append({**named, "inputs": asked, "output": given})
    broken = {**calls[0], "output": None, "exception": "TimeoutError"}
    broken["inputs"] = {**calls[0]["inputs"], "example": f"{ref}/Dataset:d/attr/rows/id/q3"}
    write(tmp_path / "weave.jsonl", {"op_name": f"{op}/Evaluation.evaluate:abc", "output": {}}, *calls, broken)
    columns = ["question_id", "model", "correct", "error"]
    data = [["q1", "a", True, None], ["q2", "a", False, None], ["q3", "a", None, "Timeout"]]
    write(tmp_path / "wandb" / "t.table.json", {"_type": "table", "columns": columns, "data": data})
    columns = ["inputs", "outputs", "answer_correctness/v1/score", "answer_correctness/v1/justification"]
    data = [["Q1", "x", 5, "good"], ["Q2", "y", 2, "poor"], ["Q3", "z", None, None], ["Q4", "z", float("nan"), None]]
    write(
        tmp_path / "mlruns" / "0" / "run-1" / "artifacts" / "eval_results_table.json",
        {"columns": columns, "data": data},
    )
    for number, model in enumerate(("exp-a", "exp-b")):
        run = {"session_name": model, "error": None, "feedback_stats": {}, "latency": 1.5}
        runs = [{**run, "reference_example_id": f"ex{k}"} for k in range(3)]
        runs[number]["feedback_stats"] = {"correctness": {"n": 1, "avg": 1.0}}
        runs[2] |= {"feedback_stats": {"correctness": {"n": 1, "avg": 0.0}}} if number else {"error": "TimeoutError()"}
        write(tmp_path / "langsmith" / f"{model}.jsonl", {"name": "no example"}, *runs)
    (tmp_path / "langsmith.jq").symlink_to(EXAMPLES / "jq" / "langsmith.jq")
    lists = {"id": [17, 4, 99], "results": [1, 0, 1], "subset": ["chat", "chat", "math"], "model": "rm"}
    write(tmp_path / "lists" / "rm.json", lists)
    (tmp_path / "irsl").mkdir()
    for model, scores in (("llm-a", [[1.0, 0.0], [1.0, 1.0]]), ("llm-b", [[0.0, 0.0], [1.0, 0.0]])):
        table = pl.DataFrame({"question_idx": [0, 1], "scores": scores})
        table.write_parquet(tmp_path / "irsl" / f"{model}.parquet")
    return tmp_path


NAN = float("nan")
EXPECTED = {
    "run.json": {"org/a": [0.0, 1.0, 0.0, 1.0]},
    "outputs/*.json": {"llm": [0.0, 1.0]},
    "langsmith/": {"exp-a": [1.0, NAN, NAN], "exp-b": [NAN, 1.0, 0.0]},
    "promptfoo.json": {"a + prompt 0": [0.5, 0.5], "b + prompt 1": [0.0, NAN]},
    "deepeval/*.json": {"org/a": [0.25, 0.25, NAN, NAN], "llm": [0.25, NAN, NAN, NAN]},
    "evals/*.jsonl": {"m0": [1.0, 1.0], "m1": [1.0, NAN]},
    "simple/*_allresults.json": {"gpt_4.1-mini": [0.5, 0.0, NAN]},
    "weave.jsonl": {"llm:v1": [0.0, 1.0, NAN, NAN]},
    "wandb/*.table.json": {"a": [1.0, 0.0, NAN]},
    "mlruns/*/*/artifacts/eval_results_table.json": {"run-1": [1.0, 0.25, NAN, NAN]},
    "lists/*.json": {"rm": [1.0, 0.0, 1.0]},
    "irsl/*.parquet": {"llm-a": [0.5, 1.0], "llm-b": [0.0, 0.5]},
}


def test_the_page_has_an_example_of_each_tool():
    assert set(COMMANDS) == set(EXPECTED)


def imported(run, folder, name, *words):
    command = COMMANDS[name]
    run.ok(command[1], *sorted(folder.glob(command[2].rstrip("/"))), *command[3:], *words)
    return read_responses(folder / "responses.parquet")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_of_the_page_work(name, folder, run):
    found = imported(run, folder, name)
    assert found.model_ids == list(EXPECTED[name])
    np.testing.assert_allclose(found.responses, list(EXPECTED[name].values()))


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_keep_what_else_is_known(folder, run):
    n_lost = {
        "langsmith/": [[0, 1, 1], [1, 0, 0]],
        "promptfoo.json": [[0, 0], [0, 1]],
        "deepeval/*.json": [[0, 0, 1, 1], [0, 0, 0, 0]],
        "evals/*.jsonl": [[0, 0], [0, 1]],
        "simple/*_allresults.json": [[0, 0, 1]],
        "weave.jsonl": [[0, 0, 1, 1]],
        "wandb/*.table.json": [[0, 0, 1]],
        "mlruns/*/*/artifacts/eval_results_table.json": [[0, 0, 1, 1]],
    }
    assert {name: imported(run, folder, name).lost.n.tolist() for name in n_lost} == n_lost
    assert imported(run, folder, "deepeval/*.json").items["prompt_settings"][0] == '{"judge": "judge-a"}'
    assert imported(run, folder, "evals/*.jsonl").items["scenario"].to_list() == ["t", "t"]
    assert imported(run, folder, "weave.jsonl").costs["seconds"][0, 0] == 0.5
    lists = imported(run, folder, "lists/*.json").items
    assert lists["item_id"].to_list() == ["17", "4", "99"]
    assert lists["scenario"].to_list() == ["chat", "chat", "math"]
    items = imported(run, folder, "outputs/*.json").items
    assert items["content_fields"].unique().to_list() == ['["question", "options", "answer"]']


PUBLIC = {
    "langsmith/": ("agents/langsmith", {f"exp-m{k}": right for k, right in enumerate((2, 5, 9, 11, 9, 16))}),
    "promptfoo.json": ("08-promptfoo-errors.json", {"provider:a + prompt 0": 6, "provider:b + prompt 0": 2}),
    "lists/*.json": ("21-parallel-lists.json", {"org/rm": 3}),
    "evals/*.jsonl": ("27-event-log.jsonl", {"m": 3}),
}  # Of files laid out as those of bug reports: right answers of each model


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_of_the_page_read_what_people_reported(name, shared_dir, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    pattern, expected = PUBLIC[name]
    command, files = COMMANDS[name], sorted((shared_dir / "inputs").glob(pattern))
    if not files:
        pytest.skip(f"no {pattern} among the reference data")
    run.ok(command[1], *files, *command[3:])
    found = read_responses(tmp_path / "responses.parquet")
    trials = np.ones_like(found.responses) if found.n_trials is None else np.maximum(found.n_trials, 1)
    right = np.nansum(found.responses * trials, axis=1)
    assert dict(zip(found.model_ids, right.tolist(), strict=True)) == pytest.approx(expected)


ROW = "{model_id: $stem, item_id: .testIdx, response: .success}"


def test_a_program_may_be_in_a_file_and_in_that_of_spec(folder, run):
    program = f'.results.results[] | select(.provider.id == "a") | {ROW}'
    (folder / "rows.jq").write_text(f"# rows\n{program}\n")
    (folder / "spec.toml").write_text(f"jq = '''{program}'''\n")
    for number, words in enumerate((("--jq", program), ("--jq", "rows.jq"), ("--spec", "spec.toml"))):
        run.ok("import", "promptfoo.json", *words, "-o", f"{number}.parquet")
        assert read_responses(f"{number}.parquet").responses.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("program", "code", "says"),
    [
        (".results[ | {}", 2, "the program of jq cannot be run: syntax error, unexpected '|'"),
        ("{model_id: $llm}", 2, "$llm is not defined"),
        ("nowhere.jq", 2, "nowhere.jq: the program of jq cannot be read"),
        (".result[]", 1, "fails at record 1: Cannot iterate over null"),
        (f".result[]? | {ROW}", 1, "must make a row of a file at least, got none. The first record has 'results'."),
        (".results.results", 1, "must make objects, one a row, got [{"),
        (".results.results[].success", 1, "must make objects, one a row, got true of record 1."),
        (".results.results[] | {answer: .success}", 1, 'The first row of the program is {"answer": true,'),
        (".results.results[] | {item_id: .testIdx, response: .success}", 1, "model_id: $stem is the name of the file"),
        (f".results.results[] | {ROW} + {{item_id: .test}}", 1, "rows without 'item_id': it is null in all of them."),
        (f".results.results[] | {ROW} + {{response: .ok}}", 1, "rows without 'response': it is null in all of them."),
        (f".results.results[] | {ROW} + {{item_id: .provider}}", 1, "'item_id' must be text or numbers in every row"),
    ],
)
def test_what_is_wrong_is_said(program, code, says, folder, run):
    outcome = run("import", "promptfoo.json", "--jq", program, "-o", "o.parquet")
    assert (outcome.code, says in " ".join(outcome.err.split())) == (code, True), outcome.err


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_a_folder_gives_its_files_of_json(run, folder):
    (folder / "langsmith" / "deeper").mkdir()
    for name in ("notes.json", "deeper/run.jsonl", "table.csv", ".hidden.json"):
        (folder / "langsmith" / name).write_text("{" if name == ".hidden.json" else '{"a": 1}')
    done = run("import", "langsmith", "--jq", "langsmith.jq", "-o", "o.parquet")
    says = "makes no rows of 2 files, which are left out: 'langsmith/notes.json', 'langsmith/deeper/run.jsonl'."
    assert (done.code, says in " ".join(done.err.split())) == (0, True), done.err
    assert read_responses("o.parquet").model_ids == ["exp-a", "exp-b"]
    (folder / "langsmith" / "half.json").write_text('{"a": ')
    for field, code in (("", 1), ("skip_unusable = true", 0), ('exclude_files = ["half.json"]', 0)):
        (folder / "spec.toml").write_text(field)
        words = ("--jq", "langsmith.jq", "--spec", "spec.toml")
        assert run("import", "langsmith", *words, "-o", "o.parquet").code == code
    (folder / "none").mkdir()
    command = ("import", "none", "--jq", "langsmith.jq", "-o", "o.parquet")
    run.fails(1, "none: must hold files of JSON, or tables, for the program of jq, got none", *command)


def test_every_reader_of_new_results_takes_the_program(folder, run):
    rng = np.random.default_rng(3)
    right = rng.random((12, 1)) > rng.random(40)
    row = "{model_id: $stem, item_id: .q, response: .right, error, epoch: .attempt}"
    (folder / "our.jq").write_text(f"# a row an attempt\n{row} # end\n")
    for number, one in enumerate(right):
        pairs = itertools.product(enumerate(one), (1, 2))
        attempts = [{"q": f"q{k}", "right": bool(is_right), "attempt": n} for (k, is_right), n in pairs]
        write(folder / "past" / f"m{number}.jsonl", *attempts)
    new = [{"q": f"q{k}", "right": k % 2 == 0, "attempt": n} for k in range(40) for n in (1, 2)]
    new[0] = {**new[0], "right": False, "error": "timeout"}
    write(folder / "new" / "x.jsonl", *new)
    run.ok("import", "past", "--jq", "our.jq", "--repeats", "count", "-o", "past.parquet")
    run.ok("calibrate", "past.parquet", "-o", "bank")
    run.ok("import", "new", "--jq", "our.jq", "--repeats", "count", "-o", "new.parquet")
    estimates = [run.json("estimate", "bank", *words) for words in (["new.parquet"], ["new", "--jq", "our.jq"])]
    assert estimates[0] == estimates[1]
    # every second one is right, and the lost attempt does not count
    assert estimates[1]["rows"][0]["estimate"] == pytest.approx(0.5)
    jq = ("--jq", "our.jq")
    for words in (
        "gate past/m1.jsonl past/m2.jsonl --repeats",
        "gate past/m1.jsonl past/m2.jsonl --bank bank",
        "gate start past/m1.jsonl --bank bank --margin 0.3 -o gate",
        "gate next gate new",
        "check bank new",
        "compare bank past/m1.jsonl new",
    ):
        done = run(*words.split(), *jq)
        assert (done.code in {0, 1, 3}, "Error" in done.err) == (True, False), done.err
    for words in (("replay", "bank", "new"), ("bank", "add-models", "bank", "new", "-o", "bank-2")):
        assert "how files are read is chosen first, by itembank import FILES --jq" in run(*words, *jq).err
    run.fails(5, "import past/m1.jsonl --jq our.jq [OPTIONS]", "gate", "past/m1.jsonl", "past/m2.jsonl", *jq)
    assert "--jq goes with RESPONSES" in run("check", "bank", *jq).err


def test_a_program_goes_with_no_other_format(run, folder):
    run.fails(2, "leave --as out", "import", "promptfoo.json", "--jq", ROW, "--as", "promptfoo", "-o", "o.parquet")


EVENTS = (
    [{"spec": {"name": "s1"}}]
    + [{"id": f"t.{k}", "type": kind, "data": data, "sample_id": f"t.{k}"}
       for k in range(3) for kind, data in (("sampling", {"sampled": ["a"]}), ("match", {"correct": k != 1}))]
    + [{"final_report": {"accuracy": 0.7}}]
)  # fmt: skip


ROWS = [{"index": "a", "x": 1, "y": 0}, {"index": "b", "x": 1, "y": 1}]
LONG_ROWS = [{"model": one["index"], "item": k, "score": one[k]} for one in ROWS for k in "xy"]


@pytest.mark.parametrize(
    "content",
    [
        {"x": {"a": 1, "b": 1}, "y": {"a": 0, "b": 1}},
        {"schema": {"fields": []}, "data": ROWS},
        {"schema": {"fields": []}, "data": LONG_ROWS},
    ],
)
def test_tables_of_pandas_are_told_a_program_that_reads_them(folder, run, content):
    """The program for a table of columns was `select(? != null)`."""
    Path("r.json").write_text(json.dumps(content))
    said = run("import", "r.json", "-o", "responses.parquet").err
    run.ok(*shlex.split(re.search("itembank (import .* -o responses.parquet)", said)[1]))
    matrix = read_responses("responses.parquet")
    assert (matrix.model_ids, matrix.item_ids, matrix.responses.tolist()) == (["a", "b"], ["x", "y"], [[1, 0], [1, 1]])


@pytest.mark.parametrize("more", [(), ("--column", "response=data.correct")])
def test_rows_of_objects_are_told_a_program_that_reads_them(folder, run, more):
    Path("log of events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    said = run("import", "log of events.jsonl", *more, "-o", "responses.parquet").err
    assert "these hold objects: 'spec', 'data', 'final_report'" in said
    advice = said[said.index("itembank import") :].splitlines()[0]
    run.ok(*shlex.split(advice)[1:])
    assert read_responses("responses.parquet").responses.tolist() == [[1.0, 0.0, 1.0]]
