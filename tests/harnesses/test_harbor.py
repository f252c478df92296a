"""Runs of Harbor, by a stand-in with its interface: what it is called with, what runs again, what is estimated."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_files import save_bank
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.sessions.journal import read_journal
from itembank_harnesses.harbor import HarborRun
from tests.docs.blocks import blocks
from tests.harnesses.harbor_program import main

REPOSITORY = Path(__file__).resolve().parents[2]

TASKS = [*(f"t{number:02d}" for number in range(18)), "x[1]", "x1"]
"""The last matches the one before it as a pattern."""
AGENT = ("--", "-a", "terminus-2", "-m", "own/new-0.6")
SILENT = "EnvironmentStartTimeoutError"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A data set, the jobs of 16 agents on all of it, their bank and a gate of the first."""
    place = tmp_path_factory.mktemp("harbor")
    data_set = place / "registry" / "bench"
    for number, task in enumerate(TASKS):
        (data_set / task).mkdir(parents=True)
        text = f'difficulty = {number / 20}\n[task]\nname = "org/{task}"\n'
        (data_set / task / "task.toml").write_text(text)
    config = {"n_attempts": 2, "datasets": [{"path": str(data_set), "task_names": ["*"]}]}
    path = place / "job.json"
    for number in range(16):
        job = {"jobs_dir": str(place / "jobs"), "job_name": f"2026-11-{number + 10}__12-00-00"}
        path.write_text(json.dumps({**config, **job}))
        main(["run", "-c", str(path), "-a", "terminus-2", "-m", f"own/m{number}-{number / 15:.2f}"])
    bank = ib.calibrate(read_responses(place / "jobs"))
    save_bank(bank, place / "bank")
    program = place / "bin" / "harbor"
    program.parent.mkdir()
    script = Path(__file__).with_name("harbor_program.py")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    program.chmod(0o755)
    return place


@pytest.fixture
def harbor(made, monkeypatch, tmp_path):
    """The folder of a run, with the stand-in on the path."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("PATH", f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "run"


def trials(folder):
    """Names of the tasks of all trials with a verdict, or that were lost."""
    texts = [one.read_text() for one in folder.glob("job-*/*/result.json")]
    found = [json.loads(text) for text in texts if len(text) > 40]
    ended = [(one["task_name"], (one["exception_info"] or {}).get("exception_type")) for one in found]
    return sorted(task for task, error in ended if error != "CancelledError")


def chosen(folder):
    return list(ib.Selection.load(folder / "selection.json").item_ids)


def test_chosen_tasks_run_as_often_as_asked_and_give_the_estimate_of_their_jobs(run, harbor):
    words = ("run", "harbor", "bank", "bench", "-n", 8, "--attempts", 2, "-o", harbor, "--format", "json", *AGENT)
    printed = run.ok(*words).out
    assert trials(harbor) == sorted(chosen(harbor) * 2)
    scores = json.loads(printed)["scores"]
    again = run.ok("estimate", "bank", harbor, "--selection", harbor / "selection.json", "--format", "json").out
    assert scores == json.loads(again)["rows"]
    assert scores[0]["model_id"] == "terminus-2@1.0+own/new-0.6"
    assert run.ok(*words).out == printed
    assert [one.name for one in harbor.glob("job-*")] == ["job-1"]
    more = json.loads(run.ok(*words[:7], 3, *words[8:]).out)["scores"]
    assert trials(harbor) == sorted(chosen(harbor) * 3)
    assert more[-1]["n_items"] == 8


def test_patterns_in_names_of_tasks_choose_only_what_they_are(harbor):
    run = HarborRun.of(ib.load_bank("bank"), "registry/bench", harbor, AGENT[1:], spec=ReadingSpec())
    told = run.answers(["org/x[1]", "org/t03"])
    assert [(one.item_id, one.costs["cost_usd"]) for one in told] == [("org/x[1]", 0.5), ("org/t03", 0.5)]
    assert trials(harbor) == ["org/t03", "org/x[1]"]


def test_the_reward_that_counts_and_its_scale_are_the_banks(run, harbor, monkeypatch):
    words = ("run", "harbor", "bank", "bench", "-n", 5, "-o", harbor, "--format", "json")
    plain = json.loads(run.ok(*words, *AGENT).out)["scores"]
    monkeypatch.setenv("HARBOR_TROUBLE", '{"most": 4}')
    words = (*words[:7], harbor.parent / "scaled", *words[8:])
    refused = run(*words, *AGENT).err
    assert "Say which counts" in refused
    assert f"itembank import {harbor.parent / 'scaled'} [OPTIONS] -o responses.parquet. Then: itembank est" in refused
    bank = ib.load_bank("bank")
    settings = bank.responses.items["prompt_settings"].str.replace(r'("highest_reward": ?)"1"', '${1}"4"')
    told = bank.responses.with_tables(items=bank.responses.items.with_columns(settings, metric=pl.lit("tests")))
    save_bank(replace(bank, responses=told), harbor.parent / "of-four")
    words = (*words[:2], harbor.parent / "of-four", *words[3:])
    scaled = run.ok(*words, *AGENT)  # of the trials that were paid for, as the bank's were read
    assert [one | {"note": ""} for one in json.loads(scaled.out)["scores"]] == [one | {"note": ""} for one in plain]
    assert len(trials(harbor.parent / "scaled")) == 5


def test_a_run_that_was_stopped_goes_on_with_the_trials_that_lack(run, harbor, monkeypatch):
    words = ("run", "harbor", "bank", "bench", "-n", 5, "--attempts", 3, "-o", harbor, *AGENT)
    monkeypatch.setenv("HARBOR_TROUBLE", '{"stop_after": 7}')
    stopped = run(*words)
    assert stopped.code == 1
    assert "5 of 5 have fewer" in stopped.err
    assert "exit status 130" in stopped.err
    assert len(trials(harbor)) == 7
    monkeypatch.setenv("HARBOR_TROUBLE", '{"stop_after": 0}')
    assert run(*words[:8], "-o", harbor.parent / "cut", *AGENT).code == 1  # a file that was cut off is all there is
    monkeypatch.setenv("HARBOR_TROUBLE", "{}")
    run.ok(*words[:8], "-o", harbor.parent / "cut", *AGENT)
    run.ok(*words)
    assert trials(harbor) == trials(harbor.parent / "cut") == sorted(chosen(harbor) * 3)
    assert len(list(harbor.glob("job-*"))) == 3  # one of the tasks that ran twice, one of the others


def test_lost_trials_are_not_wrong_and_run_again_until_they_count(run, harbor, monkeypatch):
    words = ("run", "harbor", "bank", "bench", "-n", 6, "-o", harbor, "--format", "json")
    monkeypatch.setenv("HARBOR_TROUBLE", json.dumps(dict.fromkeys(TASKS, SILENT)))
    silent = run(*words, *AGENT)
    assert silent.code == 1
    assert f"no trial has a verdict (6 {SILENT})" in silent.err
    late, lost = (item.removeprefix("org/") for item in chosen(harbor)[:2])
    monkeypatch.setenv("HARBOR_TROUBLE", json.dumps({late: "AgentTimeoutError", lost: SILENT}))
    found = run.ok(*words, *AGENT)
    assert json.loads(found.out)["scores"][-1]["n_items"] == 5
    assert "trials have no verdict" in found.err
    counted = run.ok(*words, "--errors", "wrong", *AGENT)
    assert json.loads(counted.out)["scores"][-1]["n_items"] == 6
    assert len(trials(harbor)) == 12  # nothing ran again where they count
    monkeypatch.setenv("HARBOR_TROUBLE", "{}")
    assert json.loads(run.ok(*words, *AGENT).out)["scores"][-1]["n_items"] == 6
    assert len(trials(harbor)) == 13


def test_a_session_asks_job_by_job_and_pays_for_all_trials(run, harbor, monkeypatch):
    words = ("run", "harbor", "bank", "bench", "--adaptive", "--max-items", 5, "--batch", 2, "--attempts", 2)
    words += ("-o", harbor, "--format", "json", *AGENT)
    monkeypatch.setenv("HARBOR_TROUBLE", '{"stop_after": 3}')
    assert run(*words).code == 1
    monkeypatch.setenv("HARBOR_TROUBLE", json.dumps({"t10": SILENT}))
    run.ok(*words)
    status = json.loads(run.ok("session", "status", harbor / "session.jsonl", "--format", "json").out)
    told = [one for one in read_journal(harbor / "session.jsonl").events if one["event"] == "told"]
    assert len(told) == status["n_items"] == 5
    assert all(one["n_trials"] == 2 for one in told)
    assert status["costs"]["cost_usd"] == pytest.approx(5 * 2 * 0.5)
    n_trials = len(trials(harbor))
    run.ok(*words)
    assert len(trials(harbor)) == n_trials


def test_a_gate_runs_stage_by_stage_to_the_verdict_of_its_jobs(run, harbor):
    gate = harbor.parent / "gate"
    run.ok("gate", "start", "jobs/2026-11-25__12-00-00", "--margin", "0.3", "-o", gate)  # of the best agent
    words = ("run", "harbor", "bank", "bench", "--gate", gate, "--attempts", 2, "-o", harbor, "--format", "json")
    found = run(*words, "--", "-a", "terminus-2", "-m", "own/new-0.0")
    assert (found.code, json.loads(found.out)["verdict"]) == (1, "fail")
    assert len(trials(harbor)) == 2 * json.loads(found.out)["n_items"]
    again = run("gate", "next", gate, harbor, "--format", "json")
    assert (again.code, json.loads(again.out)["verdict"]) == (1, "fail")
    assert json.loads(again.out)["difference"] == json.loads(found.out)["difference"]


def test_a_dry_run_counts_tasks_and_their_usual_costs(run, harbor, monkeypatch):
    monkeypatch.setenv("PATH", "")
    words = ("run", "harbor", "bank", "bench", "-n", 6, "--attempts", 3, "-o", harbor, "--dry-run", "--format", "json")
    (row,) = json.loads(run.ok(*words, *AGENT).out)["rows"]
    assert (row["n_items"], row["n_items_full"]) == (6, 20)
    assert row["cost_usd"] == pytest.approx(6 * 3 * 0.5)
    assert not harbor.exists()
    missing = run(*words[:-3], *AGENT)
    assert missing.code == 1
    assert "need its command harbor on the PATH" in missing.err


JOB = {"agents": [{"name": "terminus-2", "model_name": "own/new-0.6"}], "datasets": [{"name": "bench"}]}


@pytest.mark.parametrize(
    ("data_set", "arguments", "code", "message"),
    [
        ("bench", "-a terminus-2 -k 3", 2, "must not hold '-k'"),
        ("bench", "-a terminus-2 -ix1", 2, "must not hold '-ix1'"),
        ("bench", "-a terminus-2 --jobs-dir=x", 2, "must not hold '--jobs-dir=x'"),
        ("bench", "-m own/new-0.6", 2, "must name an agent"),
        (JOB, "-m own/new-0.6", 2, "must name an agent beside its model"),
        ("bench", "-a terminus-2 -m a -m b", 2, "one agent and one model, got 'a', 'b'"),
        ("bench", "-a terminus-2 --timeout-multiplier 2", 4, "time limits timeout_multiplier=1.0"),
        ("bench", "-a terminus-2 --timeout-multiplier x", 2, "must be a finite number > 0, got 'x'"),
        ("other", "-a terminus-2 -m own/new-0.6", 1, "5 of 5 have fewer"),
        ("./other", "-a terminus-2", 1, "no such folder of tasks"),
        ({**JOB, "datasets": [{"name": "bench", "n_tasks": 3}]}, "", 1, "got 1, with 'n_tasks'"),
        ({**JOB, "datasets": [{"name": "bench"}, {"name": "other"}]}, "", 1, "must have one data set"),
        ({**JOB, "datasets": None}, "", 1, "must have one data set"),
        ({**JOB, "agents": [*JOB["agents"], {"name": "oracle"}]}, "", 2, "one agent and one model"),
        ({**JOB, "n_attempts": "many"}, "", 2, "n_attempts must be a whole number >= 1"),
        ("[]", "", 1, "must have one data set"),
        ("datasets: []", "", 1, "cannot be read as JSON"),
    ],
)
def test_what_would_run_something_else_is_refused(run, harbor, data_set, arguments, code, message):
    if not isinstance(data_set, str) or data_set in {"[]", "datasets: []"}:
        path = harbor.parent / "job.json"
        path.write_text(data_set if isinstance(data_set, str) else json.dumps(data_set))
        data_set = path
    found = run("run", "harbor", "bank", data_set, "-n", 5, "-o", harbor, "--", *arguments.split())
    assert message in " ".join(found.err.split())
    assert found.code == code
    assert not trials(harbor)


def test_jobs_of_another_agent_or_of_changed_tasks_are_not_taken_for_this_run(run, harbor, made):
    job = harbor.parent / "job.json"
    job.write_text(json.dumps({**JOB, "n_attempts": 2}))
    words = ("run", "harbor", "bank", job, "-n", 5, "-o", harbor, "--format", "json")
    assert json.loads(run.ok(*words).out)["scores"][0]["model_id"] == "terminus-2@1.0+own/new-0.6"
    assert trials(harbor) == sorted(chosen(harbor) * 2)
    other = run(*words, "--", "-a", "terminus-2", "-m", "own/other-0.6")
    assert (other.code, "of another agent or data set" in other.err) == (1, True)
    text = {path: path.read_text() for path in (made / "registry" / "bench").glob("*/task.toml")}
    try:
        for path, own in text.items():
            path.write_text(f"{own}# changed\n")
        changed = run(*words[:-4], "-o", harbor.parent / "changed", *AGENT)
    finally:
        for path, own in text.items():
            path.write_text(own)
    assert changed.code == 1
    assert "got 5 of 5 with another" in changed.err


TAU2 = """
import json, os, pathlib, sys
value = lambda name: sys.argv[sys.argv.index(name) + 1]
lost, is_folder = value("--task-ids") == "3", value("--task-ids") == "4"
simulation = {"task_id": value("--task-ids"), "trial": 0, "agent_cost": 0.25, "duration": 60.0}
simulation["termination_reason"] = "infrastructure_error" if lost else "user_stop"
simulation["reward_info"] = None if lost else {"reward": 1.0}
agent, user = {"implementation": "llm_agent", "llm": value("--agent-llm")}, {"llm": value("--user-llm")}
info = {"agent_info": agent, "user_info": user, "environment_info": {"domain_name": value("--domain")}}
place = pathlib.Path(os.environ["TAU2_DATA_DIR"], "simulations")
path = place / value("--save-to") / "results.json" if is_folder else place / (value("--save-to") + ".json")
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps({"info": info, "tasks": [], "simulations": [simulation]}))
print("the mean of one task")
"""


COSTS = {"input_tokens": 100.0, "output_tokens": 10.0, "cost_usd": 0.5, "seconds": 60.0}
TAU2_COSTS = {"cost_usd": 0.25, "seconds": 60.0}


def recipe(name):
    """A script of the page."""
    text = (REPOSITORY / "docs" / "harnesses.md").read_text()
    return next(code for language, code in blocks(text) if language == "sh" and f"# {name}" in code)


@pytest.mark.parametrize(
    ("script", "task", "trouble", "printed", "said"),
    [
        ("harbor_task.sh", "org/t01", None, {"response": 1.0, "costs": COSTS}, ""),
        ("harbor_task.sh", "org/t19", None, None, "No tasks matched"),
        ("harbor_task.sh", "org/t01", "AgentTimeoutError", {"response": 1.0, "costs": COSTS}, ""),
        ("harbor_task.sh", "org/t01", SILENT, {"costs": {}}, "no verdict: 1 harness error"),
        ("tau2_task.sh", "airline/1", None, {"response": 1.0, "costs": TAU2_COSTS}, ""),
        ("tau2_task.sh", "airline/4", None, {"response": 1.0, "costs": TAU2_COSTS}, ""),
        ("tau2_task.sh", "airline/3", None, {"costs": TAU2_COSTS}, "no verdict: 1 harness error"),
    ],
)
def test_recipes_print_one_answer_and_fail_without_a_verdict(script, task, trouble, printed, said, harbor, monkeypatch):
    place = harbor.parent / "place"
    (place / "registry").mkdir(parents=True)
    (place / "registry" / "terminal-bench").symlink_to(Path("registry/bench").resolve())
    (place / "examples").symlink_to(REPOSITORY / "examples")
    (place / script).write_text(recipe(script))
    (place / "tau2").write_text(f"#!{sys.executable}\n{TAU2}")
    (place / "tau2").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(place), str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("TAU2_DATA_DIR", str(place / "data"))
    monkeypatch.setenv("HARBOR_TROUBLE", json.dumps({"t01": trouble} if trouble else {}))
    words = [shutil.which("sh"), script, task, "own/new-0.99"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if said else 0), done.stderr
    assert said in done.stderr
    assert (json.loads(done.stdout) if done.stdout else None) == printed
