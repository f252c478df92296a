"""Runs and submissions of Terminal-Bench 1 in their own layouts, and three real submissions."""

import json

import numpy as np
import pytest

from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.error_kinds import KINDS
from itembank.responses.prompts import PROMPT_SETTINGS
from tests.readers.reading import put, read, refuses, warns

pytestmark = pytest.mark.filterwarnings("ignore:lost answers count as", "ignore:.* have no verdict")
WRONG = ReadingSpec(errors="wrong")


def trial(task, verdict, *, failure="unset", run="r1", number=1, **more):
    return {
        "id": f"{run} {task} {number}", "trial_name": f"{task}.{number}-of-2.{run}", "task_id": task,
        "instruction": f"do {task}", "is_resolved": verdict, "failure_mode": failure, "total_input_tokens": 100,
        "total_output_tokens": number, "agent_started_at": "2025-09-10T11:49:30.250000+00:00",
        "agent_ended_at": "2025-09-10T11:50:00.750000+00:00", **more,
    }  # fmt: skip


def results(trials, accuracy=None):
    own = sum(one["is_resolved"] is True for one in trials) / max(len(trials), 1)
    return {"id": "x", "pass_at_k": {}, "results": trials, "accuracy": own if accuracy is None else accuracy}


def write_run(folder, trials, *, agent="terminus", model="openai/m", kwargs=None, limit=1.0, **more):
    """A run with a folder a trial, which says who ran it."""
    about = {"agent_name": agent, "model_name": model, "dataset_name": "core", "dataset_version": "0.1.1"}
    put(folder / "run_metadata.json", {**about, "agent_kwargs": kwargs})
    put(folder / "tb.lock", {"run_config": {"global_timeout_multiplier": limit}, "agent": {}})
    for one in trials:
        put(folder / one["task_id"] / one["trial_name"] / "results.json", one)
    put(folder / "results.json", results(trials, **more))
    return folder


FAILURES = [
    *(trial("a", True, failure="agent_timeout"), trial("a", False, failure="unknown_agent_error", number=2)),
    *(trial("b", None, failure="parse_error"), trial("b", None, failure="test_timeout", number=2)),
    *(trial("c", False, failure="agent_installation_failed"), trial("c", True, number=2)),
]


def test_trials_with_a_verdict_count_and_others_are_lost(tmp_path):
    """Three verdicts of six, two of them right: tasks of 0.5 and 1, where Terminal-Bench says two of six."""
    write_run(tmp_path / "runs" / "r1", FAILURES)
    words = r"3 trials have no verdict \(1 parse_error, 1 test_timeout, 1 agent_installation_failed\).*33.3 in .* 75.0"
    found = warns(words, read, tmp_path)
    assert (found.model_ids, found.item_ids) == (["terminus+openai/m"], ["a", "b", "c"])
    np.testing.assert_array_equal(found.responses, [[0.5, np.nan, 1.0]])
    np.testing.assert_array_equal(found.lost.n, [[0, 2, 1]])
    assert [KINDS[one] for one in found.lost.kind[0]] == ["answer", "error", "harness"]  # of two kinds, neither
    np.testing.assert_allclose(found.costs["output_tokens"], [[1.5] * 3])
    np.testing.assert_allclose(found.costs["seconds"], [[30.5] * 3])
    assert json.loads(found.items[PROMPT_SETTINGS][0]) == {
        "timeouts": "global_timeout_multiplier=1.0",
        "version": "0.1.1",
        "highest_reward": "1",
    }
    assert read_responses(tmp_path, spec=WRONG).responses.mean() == pytest.approx(2 / 6)


def test_runs_are_trials_copies_count_once_and_what_is_stated_otherwise_is_said(tmp_path):
    for run, verdicts in {"r1": (True, False), "r2": (True, True), "r3": (False, None)}.items():
        write_run(tmp_path / run, [trial(task, one, run=run) for task, one in zip("ab", verdicts, strict=True)])
    write_run(tmp_path / "copy", [trial("a", True), trial("b", False)])
    write_run(tmp_path / "other", [trial("a", True, run="r4")], agent="droid")
    found = read(tmp_path)
    assert found.model_ids == ["terminus+openai/m", "droid+openai/m"]
    np.testing.assert_allclose(found.responses, [[2 / 3, 1 / 2], [1.0, np.nan]])
    np.testing.assert_array_equal(found.n_trials, [[3, 2], [1, 0]])
    folder = write_run(tmp_path / "b" / "r1", [trial("a", True), trial("b", False)], accuracy=0.9)
    warns("accuracies must be those .*: 90.0, its trials 50.0. Are all trials there", read, tmp_path / "b")
    put(folder / "results.json", results([trial("a", True), trial("b", False)]))
    put(folder / "a" / "a.1-of-2.r1" / "results.json", trial("a", False))
    found = warns("trials count as the file of their run has them", read, tmp_path / "b")
    assert found.responses.tolist() == [[1.0, 0.0]]
    write_run(tmp_path / "c" / "r1", [trial("a", True)])
    other = write_run(tmp_path / "c" / "r2", [trial("a", False, run="r2")])
    put(other / "run_metadata.json", {**json.loads((other / "run_metadata.json").read_text()), "dataset_name": "extra"})
    refuses("prefix_scenario=True", read, tmp_path / "c")
    found = read(tmp_path / "c", prefix_scenario=True)
    assert dict(zip(found.item_ids, found.responses[0].tolist(), strict=True)) == {"core/a": 1.0, "extra/a": 0.0}


@pytest.mark.parametrize("content", ["", '{"task_id": "b"', "[1]", {"a": 1}], ids=str)
def test_a_run_that_broke_off_has_the_trials_that_it_wrote(tmp_path, content):
    folder = write_run(tmp_path / "r1", [trial("a", True), trial("b", False), trial("c", True)])
    (folder / "results.json").unlink()
    put(folder / "b" / "b.1-of-2.r1" / "results.json", content)
    found = read(tmp_path)
    assert found.item_ids == ["a", "b", "c"]
    np.testing.assert_array_equal(found.responses, [[1.0, np.nan, 1.0]])
    np.testing.assert_array_equal(found.lost.n, [[0, 1, 0]])
    put(folder / "results.json", '{"results": [')
    np.testing.assert_array_equal(read(tmp_path).responses, found.responses)


def test_a_submission_without_metadata_is_named_by_its_folder(tmp_path):
    path = put(tmp_path / "core@0.1.1" / "20250829_goose_claude-4" / "r1_results.json", results([trial("a", True)]))
    found = read(tmp_path)
    assert (found.model_ids, found.items["scenario"].to_list()) == (["goose+claude-4"], ["core"])
    for llm, verdict in (("m-1", True), ("m-2", False)):
        run = tmp_path / "lead" / f"20250902_lead_{llm}"
        write_run(run, [trial("a", verdict, run=llm)], agent="Lead", model=None)
    assert sorted(read(tmp_path / "lead").model_ids) == ["Lead+m-1", "Lead+m-2"]
    nameless = put(tmp_path / "x" / "results.json", path.read_text())
    refuses("agent and model are unknown", read, nameless)
    assert read(nameless, model_id="m").model_ids == ["m"]


@pytest.mark.parametrize(("change", "words"), [
    ({"kwargs": {"max_episodes": 5}}, "must have run with the same arguments.*max_episodes=5"),
    ({"limit": 2.0}, "time limits global_timeout_multiplier=2.0"),
    ({"trials": [trial("a", True, run="r2", instruction="do more")]}, "content of an item must be the same"),
])  # fmt: skip
def test_runs_that_differ_are_refused(tmp_path, change, words):
    write_run(tmp_path / "r1", [trial("a", True)])
    given = {"trials": [trial("a", True, run="r2")], "agent": "terminus" if "kwargs" in change else "droid", **change}
    write_run(tmp_path / "r2", **given)
    refuses(words, read, tmp_path)


def test_real_submissions_agree_with_the_accuracies_that_they_state(shared_dir):
    folder = shared_dir / "logs" / "terminal_bench" / "terminal-bench-core@0.1.1"
    found = read_responses(folder, spec=WRONG)
    stated = {"Factory Droid+claude-4-sonnet": 202, "goose+claude-4-opus": 181}
    stated["chaterm+anthropic/claude-sonnet-4-20250514"] = 197
    assert (set(found.model_ids), found.n_items) == ({*stated}, 80)
    np.testing.assert_array_equal(found.n_trials, 5)
    for model, mean in zip(found.model_ids, found.responses.mean(axis=1), strict=True):
        assert mean == pytest.approx(stated[model] / 400)
    assert found.lost.n.sum() == 60
