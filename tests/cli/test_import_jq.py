"""The examples of the page on data, as they stand there, on files of our own in the layout of each tool."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.readers.read import read_responses

pytest.importorskip("jq", reason="needs the extra jq")
PAGE = Path(__file__).parents[2] / "docs" / "data.md"
COMMANDS = {
    words[2]: words
    for one in PAGE.read_text(encoding="utf-8").split("```")
    if one.strip().startswith("itembank import") and ("--jq" in one or "irsl/" in one)
    for words in [shlex.split(one.replace("\\\n", " "))]
}
"""By what is imported."""


def write(path, *values):
    """Write JSON: one value, or several as lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One file, or a few, of each tool."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", {"samples": [{"doc": {"id": k}, "metrics": {"acc": k % 2}} for k in range(4)]})
    about = {"options": ["1", "2"], "answer": "B", "answer_index": 1, "category": "math"}
    asked = [{"question_id": 70 + k, "question": f"Q{k}", **about, "pred": "AB"[k]} for k in (0, 1)]
    write(tmp_path / "outputs" / "llm.json", asked)
    for model, reward in (("gpt-2.5", 1.0), ("gpt-2.5-b", 0.0)):
        trials = [(task, trial) for task in (0, 1) for trial in (0, 1)]
        tau = [{"task_id": k, "reward": reward, "info": {}, "traj": [], "trial": trial} for k, trial in trials]
        write(tmp_path / "tau" / f"{model}.json", tau)
    for agent, trial in (("old", "t__a"), ("old", "t__b"), ("new", "t__c"), ("new", "t__d"), ("new", "t__e")):
        verdict = None if trial == "t__e" else {"rewards": {"reward": 0.0 if trial == "t__b" else 1.0}}
        content = {
            "task_name": "t",
            "trial_name": trial,
            "agent_info": {"name": agent, "model_info": {"name": "llm"}},
            "agent_result": {"n_input_tokens": 9, "cost_usd": 0.5},
            "verifier_result": verdict,
            "exception_info": None if verdict else {"exception_type": "AgentTimeoutError"},
        }
        write(tmp_path / "jobs" / f"job-{agent}" / trial / "result.json", content)
        write(tmp_path / "jobs" / f"job-{agent}" / "result.json", {"n_total_trials": 2})
    rows = [
        {"testIdx": k, "provider": {"id": one}, "success": one == "a", "failureReason": 2 * (one == "b" and k == 1)}
        for k in (0, 1)
        for one in ("a", "b")
    ]
    write(tmp_path / "promptfoo.json", {"results": {"version": 3, "results": rows}})
    metrics = [{"name": "Bias", "score": 1.0}, {"name": "Correctness", "score": 0.25}]
    cases = [{"name": f"case {k}", "success": True, "metricsData": metrics[:: 1 - 2 * k]} for k in (0, 1)]
    write(tmp_path / "deepeval.json", {"testCases": cases})
    events = [
        {"sample_id": f"t.{k}", "type": kind, "data": {"correct": k == 1}}
        for k in (0, 1)
        for kind in ("sampling", "match")
    ]
    write(tmp_path / "events" / "llm.jsonl", {"spec": {"eval_name": "e"}}, *events)
    lists = {"id": [17, 4, 99], "results": [1, 0, 1], "subset": ["chat", "chat", "math"], "model": "rm"}
    write(tmp_path / "lists" / "rm.json", lists)
    traces = [
        {
            "task": {"key": str(k)},
            "agent": {"config": {"model": "m"}},
            "rewards": {"right": {"score": float(k), "weight": 1.0}, "form": {"score": 1.0, "weight": 0.25}},
        }
        for k in (0, 1)
    ]
    write(tmp_path / "rewards.jsonl", *({"traces": [one]} for one in traces))
    write(tmp_path / "keyed" / "llm.json", {"eval": {"t/1": [{"ok": True}, {"ok": False}], "t/2": [{"ok": True}]}})
    (tmp_path / "irsl").mkdir()
    for model, scores in (("llm-a", [[1.0, 0.0], [1.0, 1.0]]), ("llm-b", [[0.0, 0.0], [1.0, 0.0]])):
        table = pl.DataFrame({"question_idx": [0, 1], "scores": scores})
        table.write_parquet(tmp_path / "irsl" / f"{model}.parquet")
    return tmp_path


NAN = float("nan")
EXPECTED = {
    "run.json": {"org/a": [0.0, 1.0, 0.0, 1.0]},
    "outputs/*.json": {"llm": [0.0, 1.0]},
    "tau/*.json": {"gpt-2.5-b": [0.0, 0.0], "gpt-2.5": [1.0, 1.0]},
    "jobs/*/*/result.json": {"new + llm": [1.0], "old + llm": [0.5]},
    "promptfoo.json": {"a": [1.0, 1.0], "b": [0.0, NAN]},
    "deepeval.json": {"org/a": [0.25, 0.25]},
    "events/*.jsonl": {"llm": [0.0, 1.0]},
    "lists/*.json": {"rm": [1.0, 0.0, 1.0]},
    "rewards.jsonl": {"m": [0.2, 1.0]},
    "keyed/*.json": {"keyed": [0.5, 1.0]},
    "irsl/*.parquet": {"llm-a": [0.5, 1.0], "llm-b": [0.0, 0.5]},
}


def test_the_page_has_an_example_of_each_tool():
    assert set(COMMANDS) == set(EXPECTED)


def imported(run, folder, name, *words):
    """Run the page's command for these files, and return the responses."""
    command = COMMANDS[name]
    run.ok(command[1], *sorted(folder.glob(command[2])), *command[3:], *words)
    return read_responses(folder / "responses.parquet")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_of_the_page_work(name, folder, run):
    found = imported(run, folder, name)
    assert found.model_ids == list(EXPECTED[name])
    np.testing.assert_allclose(found.responses, list(EXPECTED[name].values()))


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_keep_what_else_is_known(folder, run):
    harbor = imported(run, folder, "jobs/*/*/result.json")
    assert harbor.costs["cost_usd"].tolist() == [[0.5], [0.5]]
    assert harbor.n_trials.tolist() == [[2], [2]]
    assert harbor.lost.n.tolist() == [[1], [0]]
    assert imported(run, folder, "promptfoo.json").lost.n.tolist() == [[0, 0], [0, 1]]
    lists = imported(run, folder, "lists/*.json").items
    assert lists["item_id"].to_list() == ["17", "4", "99"]
    assert lists["scenario"].to_list() == ["chat", "chat", "math"]
    items = imported(run, folder, "outputs/*.json").items
    assert items["content_fields"].unique().to_list() == ['["question", "options", "answer"]']


PUBLIC = {
    "jobs/*/*/result.json": (
        "06-harbor/jobs/*/*/result.json",
        {"mini-swe-agent + model-x": 15, "terminus-2 + model-x": 4},
    ),
    "promptfoo.json": ("08-promptfoo-errors.json", {"provider:a": 6, "provider:b": 2}),
    "lists/*.json": ("21-parallel-lists.json", {"org/rm": 3}),
    "events/*.jsonl": ("27-event-log.jsonl", {"27-event-log": 3}),
    "rewards.jsonl": ("30-weighted-rewards.jsonl", {"org/m": 14 / 3}),
}
"""Of files laid out as those of bug reports: right answers of each model."""


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_the_examples_of_the_page_read_what_people_reported(name, shared_dir, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    pattern, expected = PUBLIC[name]
    command = COMMANDS[name]
    files = sorted((shared_dir / "inputs").glob(pattern))
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
    for number, words in enumerate((("--jq", program), ("--jq", "@rows.jq"), ("--spec", "spec.toml"))):
        run.ok("import", "promptfoo.json", *words, "-o", f"{number}.parquet")
        assert read_responses(f"{number}.parquet").responses.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(
    ("program", "code", "says"),
    [
        (".results[ | {}", 2, "the program of jq cannot be run: syntax error, unexpected '|'"),
        ("{model_id: $llm}", 2, "$llm is not defined"),
        ("@nowhere.jq", 2, "nowhere.jq: the program of jq cannot be read"),
        (".result[]", 1, "fails at record 1: Cannot iterate over null"),
        (f".result[]? | {ROW}", 1, "must make a row of a file at least, got none. The first record has 'results'."),
        (".results.results", 1, "must make objects, one a row, got [{"),
        (".results.results[].success", 1, "must make objects, one a row, got true of record 1."),
        (".results.results[] | {answer: .success}", 1, 'The first row of the program is {"answer": true}'),
        (".results.results[] | {item_id: .testIdx, response: .success}", 1, "model_id: $stem is the name of the file"),
        (f".results.results[] | {ROW} + {{item_id: .test}}", 1, "rows without 'item_id': it is null in all of them."),
        (f".results.results[] | {ROW} + {{response: .ok}}", 1, "rows without 'response': it is null in all of them."),
        (f".results.results[] | {ROW} + {{item_id: .provider}}", 1, "'item_id' must be text or numbers in every row"),
    ],
)
def test_what_is_wrong_is_said(program, code, says, folder, run):
    outcome = run("import", "promptfoo.json", "--jq", program, "-o", "o.parquet")
    assert (outcome.code, says in " ".join(outcome.err.split())) == (code, True), outcome.err


def test_a_folder_is_not_read_by_a_program(run, folder):
    done = run("import", folder, "--jq", ROW, "-o", "o.parquet")
    assert (done.code, f"is a folder; a program of jq reads files: {folder}/*.json" in done.err) == (1, True)


def test_a_program_goes_with_no_other_format(run, folder):
    done = run("import", "promptfoo.json", "--jq", ROW, "--as", "promptfoo", "-o", "o.parquet")
    assert (done.code, "leave --as out" in done.err) == (2, True)
