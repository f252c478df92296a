"""Jobs of Harbor in their own layout: job folders with a folder a trial."""

import json

import numpy as np
import pytest

import itembank as ib
from itembank.readers.read import read_responses
from itembank.responses.prompts import PROMPT_SETTINGS
from tests.readers.reading import put, read, refuses, warns

SILENT = "EnvironmentStartTimeoutError"


def trial(task="t0", reward=1.0, *, number=0, agent="terminus-2", version="2.0.0", llm="gpt-a", error=None, **other):
    """The result of a trial; without a verdict where the reward is None."""
    return {
        "task_name": task, "trial_name": f"{task}__{number:07d}", "source": "terminal-bench",
        "task_checksum": f"checksum of {task}",
        "config": {"agent": {"name": agent, "kwargs": {}}, "timeout_multiplier": 1.0},
        "agent_info": {"name": agent, "version": version, "model_info": llm and {"name": llm, "provider": "openai"}},
        "agent_result": {"n_input_tokens": 100, "n_output_tokens": 20, "cost_usd": 0.5 + number},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": error and {"exception_type": error}, "started_at": f"2026-11-10T12:0{number}:00Z",
        "finished_at": f"2026-11-10T12:0{number}:30Z",
        "agent_execution": {"started_at": "2026-11-10T12:00:00Z", "finished_at": "2026-11-10T12:00:20.5Z"},
        **other,
    }  # fmt: skip


def write_job(folder, trials, *, mean=None, version="2.0"):
    """A job with these trials; the mean that it states is Harbor's, where none is given."""
    folder.mkdir(parents=True)
    groups = {}
    for number, one in enumerate(trials):
        place = folder / f"{one['task_name'].replace('/', '_')}__{number:07d}"
        (place / "agent").mkdir(parents=True)
        put(place / "result.json", one)
        put(place / "config.json", one["config"])
        (place / "agent" / "trajectory.json").write_text('{"steps": []}')
        llm = (one["agent_info"]["model_info"] or {}).get("name")
        key = "__".join(filter(None, (one["agent_info"]["name"], llm, one["source"] or "adhoc")))
        groups.setdefault(key, []).append(max(((one["verifier_result"] or {}).get("rewards") or {"": 0.0}).values()))
    evals = {key: {"metrics": [{"mean": np.mean(own) if mean is None else mean}]} for key, own in groups.items()}
    content = {"n_total_trials": len(trials), "stats": {"evals": evals}}
    put(folder / "result.json", content)
    about = {"datasets": [{"name": "terminal-bench", "version": version}]}
    put(folder / "config.json", about)
    return folder


def several(rewards, **about):
    """Trials of tasks t0, t1, ..., a list of rewards each."""
    return [
        trial(f"t{number}", reward, number=place, **about)
        for number, own in enumerate(rewards)
        for place, reward in enumerate(own)
    ]


def test_trials_are_counted_and_costs_are_means(tmp_path):
    write_job(tmp_path / "jobs" / "2026-11-10__12-00-00", several([[1.0, 0.0, 1.0], [0.0, 0.0]]))
    found = read(tmp_path / "jobs")
    assert found.model_ids == ["terminus-2@2.0.0+openai/gpt-a"]
    np.testing.assert_allclose(found.responses, [[2.0 / 3.0, 0.0]])
    np.testing.assert_array_equal(found.n_trials, [[3, 2]])
    np.testing.assert_allclose(found.costs["cost_usd"], [[1.5, 1.0]])
    np.testing.assert_allclose(found.costs["seconds"], [[20.5, 20.5]])
    assert found.items["scenario"].to_list() == ["terminal-bench"] * 2
    assert found.items["content_hash"].to_list() == ["checksum of t0", "checksum of t1"]
    assert json.loads(found.items[PROMPT_SETTINGS][0]) == {
        "timeouts": "timeout_multiplier=1.0",
        "version": "2.0",
        "highest_reward": "1",
    }


def test_agent_version_and_model_make_a_model(tmp_path):
    agents = [{"agent": "claude-code"}, {"version": "2.1.0"}, {"llm": "gpt-b"}, {"agent": "oracle", "llm": None}, {}]
    for number, about in enumerate(agents):
        write_job(tmp_path / f"job-{number}", several([[1.0]], **about))
    assert read(tmp_path).model_ids == [
        *("claude-code@2.0.0+openai/gpt-a", "terminus-2@2.1.0+openai/gpt-a", "terminus-2@2.0.0+openai/gpt-b"),
        *("oracle@2.0.0", "terminus-2@2.0.0+openai/gpt-a"),
    ]


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_trials_that_broke_before_their_agent_was_set_up_are_of_the_version_of_the_others(tmp_path):
    broken = trial("t1", None, error=SILENT, version="unknown")
    write_job(tmp_path / "a", [trial("t0"), broken])
    write_job(
        tmp_path / "b", [trial("t0", number=1, llm="gpt-b"), trial("t0", version="3.0", number=2, llm="gpt-b"), broken]
    )
    write_job(tmp_path / "c", [trial("t1", version="unknown", llm="gpt-c")])
    found = read(tmp_path, repeats="count")
    of = {model: number for number, model in enumerate(found.model_ids)}
    assert found.lost.n[of["terminus-2@2.0.0+openai/gpt-a"]].tolist() == [0, 2]  # of both jobs
    assert found.observed[of["terminus-2@unknown+openai/gpt-c"]].tolist() == [False, True]
    assert "terminus-2@unknown+openai/gpt-a" not in of


@pytest.mark.filterwarnings("ignore:lost answers count as")
def test_trials_without_a_verdict_are_lost_and_those_that_did_not_end_were_not_run(tmp_path):
    trials = several([[0.0, 1.0]], error="AgentTimeoutError")
    trials += [trial("t1", None, error=SILENT), trial("t1", 1.0, number=1), trial("t2", None, error=SILENT)]
    job = write_job(tmp_path / "job", trials)
    found = warns(rf"2 trials have no verdict \(2 {SILENT}\).* 40.0 in place of 75.0", read, job)
    np.testing.assert_array_equal(found.responses, [[0.5, 1.0, np.nan]])
    np.testing.assert_array_equal(found.lost.n, [[0, 1, 1]])
    wrong = read(job, errors="wrong")  # as Harbor, so that there is nothing to say
    np.testing.assert_array_equal(wrong.responses, [[0.5, 0.5, 0.0]])
    assert np.average(wrong.responses, weights=wrong.n_trials) == pytest.approx(0.4)  # as Harbor has it
    trials = [trial("t0"), trial("t1", None, error="CancelledError"), trial("t2", None, finished_at=None)]
    found = warns("2 of 3 trials have not ended", read, write_job(tmp_path / "b" / "job", trials))
    assert (found.item_ids, found.lost) == (["t0"], None)
    refuses("a trial that has ended, got 2", read, write_job(tmp_path / "b" / "open", trials[1:]))
    job = write_job(tmp_path / "b" / "b" / "job", several([[0.25, 0.75]]))
    refuses(r"--repeats|repeats=", read, job)
    np.testing.assert_allclose(read(job, repeats="mean").responses, [[0.5]])
    job = write_job(tmp_path / "b" / "c" / "job", several([[1.0, 0.0]]), mean=0.9)
    warns("gpt-a__terminal-bench 90.0, its trials 50.0", read, job)


def test_the_reward_that_counts_is_named_and_scaled(tmp_path):
    job = write_job(
        tmp_path / "job", [trial(verifier_result={"rewards": {"style": 2.0, "tests": 4.0}})], mean=4.0
    )  # in the units of the reward
    refuses("has the rewards 'style', 'tests'", read, job)
    refuses(r"rewards must be from 0 to 1, got 4 for task 't0'.*max_response=4", read, job, metric=("tests",))
    assert read(job, metric=("tests",), max_response=4.0).responses.item() == 1.0
    refuses(r"has the rewards 'style', 'tests', and not 'test'. Say which counts", read, job, metric=("test",))
    refuses("got -1", read, write_job(tmp_path / "below", [trial(reward=-1.0)]))


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
@pytest.mark.parametrize(("other", "message"), [
    ({"task_checksum": "another"}, "content"),
    ({"config": {"agent": {"kwargs": {}}, "timeout_multiplier": 2.0}}, "time limits timeout_multiplier=2.0"),
    ({"source": "another-bench"}, "scenario"),
])  # fmt: skip
def test_jobs_that_did_not_run_the_same_are_not_joined(tmp_path, other, message):
    write_job(tmp_path / "a", [trial()])
    write_job(tmp_path / "b", [trial(llm="gpt-b", **other)])
    refuses(message, read, tmp_path)


def test_other_versions_or_arguments_are_not_joined(tmp_path):
    write_job(tmp_path / "a", [trial()])
    write_job(tmp_path / "b", [trial(llm="gpt-b")], version="1.0")
    refuses("task version", read, tmp_path)
    write_job(tmp_path / "b" / "a", [trial()])
    config = {"agent": {"kwargs": {"max_turns": 50}}, "timeout_multiplier": 1.0}
    write_job(tmp_path / "b" / "b", [trial(config=config)])
    refuses(r"ran with none in .* and with max_turns=50", read, tmp_path / "b")
    job = write_job(tmp_path / "c" / "job", [trial()])
    refuses(r"those of jobs alone\. Give the folder of a job", read, job / "result.json")
    assert read([job / "t0__0000000" / "result.json"]).item_ids == ["t0"]


def test_another_job_is_more_trials_and_copies_of_jobs_or_trials_are_none(tmp_path):
    for name in ("a", "b"):
        write_job(tmp_path / "jobs" / name, several([[1.0, 0.0, 1.0]]))
    refuses(r"--repeats|repeats=", read, tmp_path / "jobs")
    found = read(tmp_path / "jobs", repeats="count")
    assert (found.n_trials.item(), found.responses.item()) == (6, pytest.approx(2.0 / 3.0))
    write_job(tmp_path / "backup" / "a", several([[1.0, 0.0, 1.0]]))
    copied = warns("repeats? an earlier row", read, [tmp_path / "jobs" / "a", tmp_path / "backup" / "a"])
    assert copied.n_trials.item() == 3
    trials = [trial(reward=reward, number=number, id=f"u{number}") for number, reward in enumerate([1.0, 0.0, 1.0])]
    write_job(tmp_path / "b" / "job", trials)
    unfinished = {**trials[0], "finished_at": None}
    write_job(tmp_path / "b" / "old", [unfinished, trials[1]])
    assert read(tmp_path / "b").n_trials.item() == 3


def test_jobs_are_estimated_gated_and_read_by_the_reward_of_the_bank(tmp_path, rng):
    difficulty = np.linspace(0.1, 0.9, 12)
    for number, skill in enumerate(np.linspace(0.1, 0.9, 12)):
        rewards = (rng.random((12, 2)) < 0.5 + skill - difficulty[:, None]).astype(float).tolist()
        write_job(tmp_path / "past" / f"job-{number}", several(rewards, llm=f"m{number}"))
    bank = ib.calibrate(read(tmp_path / "past"))
    job = write_job(tmp_path / "new", several([[1.0, 1.0]] * 12, llm="new"))
    assert ib.estimate(bank, job).column("overall").item() == pytest.approx(1.0)
    assert ib.gate(tmp_path / "past" / "job-0", job, margin=0.5).verdict in {"pass", "undecided"}

    def write(name, tests):
        rewards = [{"reward": 1.0, "tests": float(one)} for one in tests]
        trials = [trial(f"t{n}", llm=name, verifier_result={"rewards": one}) for n, one in enumerate(rewards)]
        return write_job(tmp_path / "b" / "jobs" / name, trials, mean=1.0)

    for number in range(6):
        write(f"m{number}", rng.random(12) < 0.2 + 0.1 * number)
    bank = ib.calibrate(read_responses(tmp_path / "b" / "jobs", metric="tests"))
    assert ib.estimate(bank, write("new", [1, 0, 0] * 4)).column("overall").item() == pytest.approx(1.0 / 3.0)
