"""Logs of SWE-bench's harness, and what mini-SWE-agent and OpenHands tell of the runs that it judged."""

import json
import warnings

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.collecting import find_sources
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.error_kinds import KINDS

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* have no verdict", "ignore:lost answers count as", "ignore:logs tell nothing of empty patches"
)
IDS = [f"owner__tool-{k}" for k in range(6)]
OWN_RATE = "SWE-bench's rate counts them as 0, in points: "


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def write_log(folder, instance, content, *, run="r1", model="lab__m"):
    """The log of one instance; its report is missing where the content is None."""
    place = folder / "logs" / "run_evaluation" / run / model / instance
    write(place / "run_instance.log", "...")
    if content is not None:
        write(place / "report.json", content)


def judged(instance, resolved, **more):
    about = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "tests_status": {}}
    return {instance: {**about, "resolved": resolved, **more}}


def write_report(path, **lists):
    """A report whose lists are numbers of instances; all were submitted."""
    content = {f"{name}_ids": [IDS[k] for k in some] for name, some in lists.items() if name != "failure_reasons"}
    reasons = {IDS[k]: why for k, why in lists.get("failure_reasons", {}).items()}
    write(
        path, {"submitted_ids": IDS, "total_instances": 6, "schema_version": 2, **content, "failure_reasons": reasons}
    )


def write_mini(folder, *, model="lab/m", ends=("Submitted",) * 6, empty=(), version="2.2.0", limit=250, calls=20):
    """Runs of mini-SWE-agent, which ended so, some of them without a patch; run k cost k dollars."""
    patches = {one: "" if k in empty else "diff" for k, one in enumerate(IDS)}
    told = {one: {"model_name_or_path": model, "instance_id": one, "model_patch": patches[one]} for one in IDS}
    write(folder / "preds.json", told)
    for k, (one, end) in enumerate(zip(IDS, ends, strict=True)):
        config = {"agent": {"step_limit": limit, "output_path": f"/somewhere/{one}"}, "model": {"model_name": model}}
        info = {"model_stats": {"instance_cost": float(k), "api_calls": calls}, "exit_status": end, "config": config}
        content = {"info": {**info, "mini_version": version}, "trajectory_format": "mini-swe-agent-1.1"}
        write(folder / one / f"{one}.traj.json", content)


def write_openhands(folder, *, model="lab/m", errors=(None,) * 6, empty=()):
    lines = [
        {
            "instance_id": one,
            "test_result": {"git_patch": "" if k in empty else "diff"},
            "metadata": {"llm": {"model": model}, "max_iterations": 100},
            "metrics": {
                "accumulated_cost": 0.5,
                "accumulated_token_usage": {"prompt_tokens": 9, "completion_tokens": k},
            },
            "error": errors[k],
        }
        for k, one in enumerate(IDS)
    ]
    write(folder / "output.jsonl", "".join(f"{json.dumps(one)}\n" for one in lines))


def kinds(matrix, model=0):
    """What became of each instance: its response, or the kind of the error in its place."""
    lost = matrix.lost
    row = zip(matrix.item_ids, matrix.responses[model].tolist(), strict=True)
    gone = {} if lost is None else {k: KINDS[lost.kind[model, k]] for k in np.flatnonzero(lost.n[model])}
    return dict(sorted((name.removeprefix("owner__tool-"), gone.get(k, value)) for k, (name, value) in enumerate(row)))


@pytest.mark.parametrize("broken", [None, "", '{"owner__to', [1], {}, {IDS[2]: None}, judged(IDS[2], None)], ids=str)
def test_a_log_that_is_missing_or_broken_is_a_lost_answer(tmp_path, broken):
    write_log(tmp_path, IDS[0], judged(IDS[0], True))
    write_log(tmp_path, IDS[1], judged(IDS[1], False))
    write_log(tmp_path, IDS[2], broken)
    (tmp_path / "logs" / "run_evaluation" / "r1" / "lab__m" / IDS[3]).mkdir()
    with pytest.warns(DataWarning, match=r"2 instances have no verdict \(2 error\).* lab/m 25.0 in place of 50.0"):
        found = read_responses(tmp_path)
    assert found.model_ids == ["lab/m"]
    assert kinds(found) == {"0": 1.0, "1": 0.0, "2": "error", "3": "error"}
    assert kinds(read_responses(tmp_path / "logs" / "run_evaluation" / "r1")) == kinds(found)
    assert find_sources([tmp_path], ReadingSpec()).unknown == []


def test_logs_tell_failures_of_the_infrastructure_and_predictions_what_has_no_log(tmp_path):
    more = {"infra_failure": True, "infra_failure_reason": "browser_launch_failed"}
    write_log(tmp_path, IDS[0], judged(IDS[0], False, **more))
    write_log(tmp_path, IDS[1], judged(IDS[1], False, infra_failure=False, infra_failure_reason="tests_timed_out"))
    write_log(tmp_path, IDS[2], judged(IDS[2], True))
    with pytest.warns(DataWarning, match="logs tell nothing of empty patches.* 'lab/m'"):
        read_responses(tmp_path)
    write_mini(tmp_path / "runs" / "m", empty=(3, 4), ends=(*["Submitted"] * 4, "RateLimitError", "Submitted"))
    expected = {"0": "harness", "1": "time-out", "2": 1.0, "3": 0.0, "4": "harness", "5": "error"}
    assert kinds(read_responses(tmp_path)) == expected


def test_a_report_counts_before_its_logs_and_they_tell_its_name(tmp_path):
    """The run's id has a dot; and a run that has logs alone is another attempt."""
    write_report(tmp_path / "lab__m.v1.5.json", resolved=[1], unresolved=[0, 3, 4, 5], empty_patch=[2])
    write_log(tmp_path, IDS[0], judged(IDS[0], True), run="v1.5")
    write_log(tmp_path, IDS[1], judged(IDS[1], True), run="v1.5")
    with pytest.warns(DataWarning, match=r"say otherwise than the logs .* on 1 instances \('owner__tool-0'\)"):
        found = read_responses(tmp_path)
    assert (found.model_ids, list(kinds(found).values())) == (["lab/m"], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    write_report(tmp_path / "lab__m.v1.5.json", resolved=[0, 1], unresolved=[3, 4, 5], empty_patch=[2])
    write_log(tmp_path, IDS[0], judged(IDS[0], False), run="v2")
    found = read_responses(tmp_path, spec=ReadingSpec(repeats="count"))
    assert found.n_trials.tolist() == [[2, 1, 1, 1, 1, 1]]
    assert found.responses[0, 0] == 0.5


def test_failure_reasons_tell_the_kind_of_error(tmp_path):
    reasons = {1: "network_unreachable", 2: "browser_launch_failed", 3: "tests_timed_out", 4: "missing_module"}
    some = {"unresolved": [1, 2, 3, 5], "error": [4], "infra_failure": [1, 2], "ambiguous_failure": [3, 4]}
    write_report(tmp_path / "m.r.json", resolved=[0], **some, failure_reasons=reasons)
    with pytest.warns(DataWarning, match=f"{OWN_RATE}m 16.7 in place of 50.0"):
        found = read_responses(tmp_path)
    assert list(kinds(found).values()) == [1.0, "harness", "harness", "time-out", "error", 0.0]
    wrong = read_responses(tmp_path, spec=ReadingSpec(errors="wrong"))
    assert wrong.responses.mean() == pytest.approx(1 / 6)


def test_costs_calls_and_broken_runs_of_mini_swe_agent_are_joined(tmp_path):
    """An empty patch is wrong unless the run broke; what was graded counts however the run ended."""
    ends = ("RuntimeError", "LimitsExceeded", "Submitted", "ContextWindowExceededError", "RuntimeError", "TimeExceeded")
    write_mini(tmp_path / "a", ends=ends, empty=(1, 2, 3))
    write_mini(tmp_path / "b", model="lab/other", calls=7)
    write_report(tmp_path / "reports" / "lab__m.r.json", resolved=[0], unresolved=[5], error=[4], empty_patch=[1, 2, 3])
    write_report(tmp_path / "reports" / "lab__other.r.json", resolved=range(6))
    found = read_responses(tmp_path)
    assert found.model_ids == ["lab/m", "lab/other"]
    assert list(kinds(found).values()) == [1.0, 0.0, 0.0, "limit", "error", 0.0]
    np.testing.assert_array_equal(found.costs["cost_usd"], [range(6)] * 2)
    np.testing.assert_array_equal(found.costs["calls"], [[20] * 6, [7] * 6])
    about = found.models.row(0, named=True)
    expected = {"agent": "mini-swe-agent", "agent_version": "2.2.0", "llm": "lab/m", "agent_args": "step_limit=250"}
    assert {name: about[name] for name in expected} == expected
    given = read_responses([tmp_path / "reports" / "lab__m.r.json", tmp_path / "a"])
    np.testing.assert_array_equal(given.costs["cost_usd"], [range(6)])
    again = read_responses([tmp_path / "reports" / "lab__m.r.json", *(tmp_path / "a").glob("*/*.traj.json")])
    np.testing.assert_array_equal(again.costs["calls"], [[20] * 6])


@pytest.mark.parametrize("content", ["", '{"info"', [], {}, {"info": None}, {"info": {"model_stats": 3}}], ids=str)
def test_a_broken_trajectory_costs_its_costs_alone(tmp_path, content):
    write_mini(tmp_path)
    write_report(tmp_path / "lab__m.r.json", resolved=[0, 1], unresolved=[2, 3, 4, 5])
    write(tmp_path / IDS[5] / f"{IDS[5]}.traj.json", content)
    infinite = {"info": {"model_stats": {"instance_cost": float("nan"), "api_calls": -1}}}
    write(tmp_path / IDS[4] / f"{IDS[4]}.traj.json", infinite)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read_responses(tmp_path)
    expected = ["costs are unknown where an agent's file cannot be read"] * isinstance(content, str)
    assert [str(one.message).partition(":")[0] for one in told] == expected
    assert found.responses.mean() == pytest.approx(1 / 3)
    np.testing.assert_array_equal(found.costs["cost_usd"], [[0.0, 1.0, 2.0, 3.0, np.nan, np.nan]])


def test_openhands_names_its_reports_alike_and_its_models_tell_them_apart(tmp_path):
    for model, resolved in {"m1": [0], "m2": [0, 1]}.items():
        folder = tmp_path / "lab" / f"{model}_maxiter_100"
        rest = sorted({0, 1, 4, 5} - {*resolved})
        write_openhands(folder, model=f"lab/{model}", errors=(*[None] * 2, "docker died", *[None] * 3), empty=(2, 3))
        write_report(folder / "output.report.json", resolved=resolved, unresolved=rest, empty_patch=[2, 3])
        write_log(folder, IDS[1], judged(IDS[1], 1 in resolved), run="eval", model="OpenHands")
    found = read_responses(tmp_path)
    assert found.model_ids == ["OpenHands+lab/m1", "OpenHands+lab/m2"]
    assert list(kinds(found).values()) == [1.0, 0.0, "harness", 0.0, 0.0, 0.0]
    assert list(kinds(found, 1).values()) == [1.0, 1.0, "harness", 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(found.costs["cost_usd"], np.full((2, 6), 0.5))
    np.testing.assert_array_equal(found.costs["output_tokens"], [range(6)] * 2)


def test_a_report_of_sb_cli_gets_the_model_of_the_predictions_beside(tmp_path):
    write_mini(tmp_path / "run")
    write_report(
        tmp_path / "sb-cli-reports" / "swe-bench_verified__test__id1.json", resolved=[0], unresolved=range(1, 6)
    )
    assert read_responses(tmp_path).model_ids == ["lab/m"]


@pytest.mark.parametrize(
    ("make", "agent", "command"),
    [
        (write_mini, "mini-swe-agent", "run_evaluation .*--predictions_path .*preds.json"),
        (write_openhands, "OpenHands", "swebench-eval .*output.jsonl --run-id NAME"),
    ],
)
def test_runs_without_a_report_are_refused_and_the_command_is_named(tmp_path, make, agent, command):
    make(tmp_path / "runs")
    words = rf"{agent} on lab/m \(6 instances\)' and no verdict on them.*{command}"
    with pytest.raises(DataError, match=words):
        read_responses(tmp_path)
    write_report(tmp_path / "another.r.json", resolved=range(6))
    with pytest.warns(DataWarning, match="no verdict on the runs of .*reports are of 'another'"):
        found = read_responses(tmp_path)
    assert not found.costs


def test_two_agents_of_one_name_are_refused(tmp_path):
    for name, more in {"a": {}, "b": {"version": "2.3.0"}, "c": {"limit": 50}}.items():
        write_mini(tmp_path / name, **more)
        write_report(tmp_path / name / f"lab__m.{name}.json", resolved=range(6))
    with pytest.raises(
        DataError, match=r"'lab/m' ran with mini-swe-agent 2.2.0 step_limit=250 in .*a and with .*2.3.0"
    ):
        read_responses(tmp_path, spec=ReadingSpec(repeats="count"))
    with pytest.raises(DataError, match="step_limit=50 in "):
        read_responses([tmp_path / "a", tmp_path / "c"], spec=ReadingSpec(repeats="count"))
