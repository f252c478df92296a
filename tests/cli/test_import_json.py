"""The examples of the page on data, as they stand there, on files of our own in the layout of each tool."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest

from itembank.readers.read import read_responses

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
COMMANDS = [
    shlex.split(one.replace("\\\n", " "))
    for one in PAGE.read_text(encoding="utf-8").split("```")
    if one.strip().startswith("itembank import") and ("--as json" in one or "irsl/" in one)
]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One file, or a few, of each tool."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", {"samples": [{"doc": {"id": k}, "metrics": {"acc": k % 2}} for k in range(4)]})
    about = {"options": ["1", "2"], "answer": "B", "answer_index": 1, "category": "math"}
    asked = [{"question_id": 70 + k, "question": f"Q{k}", **about, "pred": "AB"[k]} for k in (0, 1)]
    write(tmp_path / "outputs" / "llm.json", asked)
    tau = [{"task_id": k, "reward": 1.0, "info": {}, "traj": [], "trial": trial} for k in (0, 1) for trial in (0, 1)]
    write(tmp_path / "tau" / "llm.json", tau)
    for agent, trial in (("old", "t__a"), ("old", "t__b"), ("new", "t__c"), ("new", "t__d")):
        content = {
            "task_name": "t",
            "trial_name": trial,
            "agent_info": {"name": agent, "model_info": {"name": "llm"}},
            "agent_result": {"n_input_tokens": 9, "cost_usd": 0.5},
            "verifier_result": {"rewards": {"reward": 0.0 if trial == "t__b" else 1.0}},
        }
        write(tmp_path / "jobs" / f"job-{agent}" / trial / "result.json", content)
        write(tmp_path / "jobs" / f"job-{agent}" / "result.json", {"n_total_trials": 2})
    rows = [{"testIdx": k, "provider": {"id": one}, "success": one == "a"} for k in (0, 1) for one in ("a", "b")]
    write(tmp_path / "promptfoo.json", {"results": {"version": 3, "results": rows}})
    cases = [{"name": f"case {k}", "success": True, "metricsData": [{"name": "x", "score": 0.25}]} for k in (0, 1)]
    write(tmp_path / "deepeval.json", {"testCases": cases})
    (tmp_path / "irsl").mkdir()
    for model, scores in (("llm-a", [[1.0, 0.0], [1.0, 1.0]]), ("llm-b", [[0.0, 0.0], [1.0, 0.0]])):
        table = pl.DataFrame({"question_idx": [0, 1], "scores": scores})
        table.write_parquet(tmp_path / "irsl" / f"{model}.parquet")
    return tmp_path


EXPECTED = {
    "run.json": [[0.0, 1.0, 0.0, 1.0]],
    "outputs/*.json": [[0.0, 1.0]],
    "tau/*.json": [[1.0, 1.0]],
    "jobs/*/*/result.json": [[1.0], [0.5]],  # of both agents
    "deepeval.json": [[0.25, 0.25]],
    "irsl/*.parquet": [[0.5, 1.0], [0.0, 0.5]],
}


def test_the_page_has_an_example_of_each_tool():
    assert {one[2] for one in COMMANDS} == set(EXPECTED)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[2])
def test_the_examples_of_the_page_work(command, folder, run):
    files = sorted(folder.glob(command[2]))
    outcome = run(command[1], *files, *command[3:])
    assert outcome.code == 0, outcome.err
    assert read_responses(folder / "responses.parquet").responses.tolist() == EXPECTED[command[2]]


def test_a_path_that_finds_nothing_ends_with_the_keys_that_are_there(folder, run):
    words = ("import", "promptfoo.json", "--as", "json", "--column", "rows=result", "-o", "o.parquet")
    outcome = run(*words, "--column", "item_id=a")
    assert outcome.code == 1
    assert "model_id, item_id and response" in outcome.err
    columns = ("--column", "item_id=testIdx", "--column", "response=success", "--model-id", "m")
    outcome = run(*words, *columns)
    assert outcome.code == 1
    assert "--column rows=PATH must lead to the rows, but 'result' finds none" in outcome.err
    assert "Did you mean 'results'?" in outcome.err
