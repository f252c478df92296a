"""SWE-bench: reports, submissions and logs of its harness, and what agents tell of the runs."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.readers.collecting import find_sources
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.error_kinds import KINDS
from itembank_harnesses.readers.swe_bench import is_swe_bench
from tests.readers.reading import put, put_lines, read, refuses, warns

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* have no verdict", "ignore:lost answers count as", "ignore:logs tell nothing of empty patches"
)
IDS = [f"owner__tool-{k}" for k in range(6)]
AS_REPORTS = ReadingSpec(format="swe-bench")
METADATA = """\
assets:
  logs: s3://a/b   # where they are
info:
  name: "Agent + LLM"
tags:
  model:
  - llm-1
  - llm-2
  org: 'Lab'
  system:
    attempts: '2+'
"""


def read_swe_bench(paths, *, spec=AS_REPORTS, **known):
    return read_responses(paths, spec=replace(spec, format="swe-bench"), **known)


def report(folder, name, **lists):
    """A report in the layout of make_run_report, whose lists are indices of IDS."""
    outcomes = ("resolved", "unresolved", "error", "empty_patch", "incomplete")
    chosen = {f"{one}_ids": [IDS[k] for k in lists.get(one, ())] for one in outcomes}
    submitted = sorted(set(IDS) - set(chosen["incomplete_ids"]))
    content = {"total_instances": len(IDS), "submitted_ids": submitted, **chosen, "schema_version": 2}
    return put(folder / f"{name}.json", content)


def submission(folder, name, *, metadata="", split="verified", **lists):
    """A submission whose lists are indices of IDS; gives the file of its results."""
    place = folder / "evaluation" / split / name
    if metadata:
        put(place / "metadata.yaml", metadata)
    return put(place / "results" / "results.json", {one: [IDS[k] for k in some] for one, some in lists.items()})


@pytest.fixture
def all_ids(tmp_path):
    return put(tmp_path / "instances.csv", "\n".join(["item_id", *IDS]))


def by_item(matrix, model=0):
    return dict(zip(matrix.item_ids, matrix.responses[model].tolist(), strict=True))


def test_a_report_tells_right_wrong_failed_and_not_run_apart_and_several_are_attempts(tmp_path):
    some = {"resolved": [0], "unresolved": [1], "empty_patch": [2], "error": [3], "incomplete": [4, 5]}
    path = report(tmp_path, "lab__agent-1.5.run-a", **some)
    matrix = warns("count as missing, not wrong: 1 of 'lab/agent-1.5' .1 error", read_swe_bench, path)
    assert matrix.model_ids == ["lab/agent-1.5"]
    assert by_item(matrix) == pytest.approx({IDS[0]: 1.0, IDS[1]: 0.0, IDS[2]: 0.0, IDS[3]: math.nan}, nan_ok=True)
    assert matrix.items["subscenario"].unique().to_list() == ["owner/tool"]
    for run, resolved in {"r1": [0, 1], "r2": [1]}.items():
        report(tmp_path / "b", f"agent.{run}", resolved=resolved, unresolved=sorted({*range(6)} - {*resolved}))
    matrix = read_swe_bench(tmp_path / "b", spec=ReadingSpec(repeats="count"))
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5, 1.0, 0.0, 0.0, 0.0, 0.0]], [[2] * 6])
    refuses("repeat", read_swe_bench, tmp_path / "b")
    path = report(tmp_path / "c", "agent.run", resolved=[0], unresolved=[1, 2], error=[3], incomplete=[4, 5])
    matrix = read_swe_bench(path, spec=ReadingSpec(errors="wrong"))
    assert (matrix.lost.n.sum(), by_item(matrix)[IDS[3]]) == (1, 0.0)
    path = report(tmp_path / "d", "agent.run", resolved=[0], unresolved=[1, 2, 3, 4])
    matrix = warns("1 of 'agent'", read_swe_bench, path)
    assert (list(by_item(matrix)), matrix.lost.n.tolist()) == (IDS, [[0, 0, 0, 0, 0, 1]])
    # The harness lists all predictions as submitted, also where --instance_ids names some of them to grade
    path = report(tmp_path / "e", "agent.run", resolved=[0], unresolved=[1], error=[2])
    content = json.loads(path.read_text()) | {"total_instances": 3}
    matrix = warns("1 of 'agent'", read_swe_bench, put(path, content))
    assert by_item(matrix) == pytest.approx({IDS[0]: 1.0, IDS[1]: 0.0, IDS[2]: math.nan}, nan_ok=True)
    assert matrix.lost.n.tolist() == [[0, 0, 1]]


NAMES = {"gpt-4.1.run-a": "gpt-4.1", "gpt-4.20250614": "gpt-4", "lab__Qwen2.5-72B": "lab/Qwen2.5-72B", "agent": "agent"}


@pytest.mark.parametrize(("name", "model"), [*NAMES.items(), ("gpt-4.1", "gpt-4.1")])
def test_the_model_of_a_report_keeps_its_version(tmp_path, name, model):
    """Where no run id was given, the last dot is that of a version."""
    assert read_swe_bench(report(tmp_path, name, resolved=[0], unresolved=[1, 2, 3, 4, 5])).model_ids == [model]


def test_unlisted_instances_of_a_submission_are_wrong_when_all_are_known(tmp_path, all_ids):
    submission(tmp_path, "20240402_agent_a", resolved=[0, 2], no_generation=[1], no_logs=[], metadata=METADATA)
    submission(tmp_path, "20241220_agent_b", resolved=[5])
    matrix = read_swe_bench(tmp_path, items=all_ids)
    assert matrix.model_ids == ["20240402_agent_a", "20241220_agent_b"]
    assert by_item(matrix) == dict(zip(IDS, (1.0, 0.0, 1.0, 0.0, 0.0, 0.0), strict=True))
    assert by_item(matrix, 1) == dict(zip(IDS, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), strict=True))
    assert matrix.items["scenario"].unique().to_list() == ["swe-bench-verified"]
    assert matrix.models.to_dicts()[0] == {
        "model_id": "20240402_agent_a", "date": "2024-04-02", "name": "Agent + LLM", "llm": "llm-1, llm-2",
        "organisation": "Lab", "attempts": "2+",
    }  # fmt: skip


def test_files_that_were_put_together_name_their_models(tmp_path, all_ids):
    """A submission's results under another name, and reports that OpenHands calls report.json."""
    for name, resolved in {"results_a": [0, 2], "results_b": [1]}.items():
        put(tmp_path / f"{name}.json", {"resolved": [IDS[k] for k in resolved], "no_logs": []})
    for name in ("run_1", "run_2"):
        report(tmp_path / name, "report", resolved=[0], unresolved=range(1, 6))
    matrix = read_responses(tmp_path, items=all_ids)
    assert sorted(matrix.model_ids) == ["results_a", "results_b", "run_1", "run_2"]
    assert dict(zip(matrix.model_ids, matrix.responses.sum(axis=1).tolist(), strict=True))["results_a"] == 2.0


def test_reports_and_submissions_that_cannot_be_are_refused(tmp_path):
    submission(tmp_path, "20240402_agent_a", resolved=[0, 2], no_generation=[1], no_logs=[])
    refuses(r"resolved instances only \(2 of 500\).*items='instances.csv'", read_swe_bench, tmp_path)
    path = report(tmp_path / "b", "agent.run", resolved=[0, 1], unresolved=[1, 2, 3, 4, 5])
    refuses(r"one outcome, got 1 .*owner__tool-1", read_swe_bench, path)
    other = tmp_path / "c" / "other.json"
    refuses("must be a report of SWE-bench", read_swe_bench, put(other, '{"resolved": "no list"}'))
    refuses("got neither", read_swe_bench, tmp_path / "c")
    assert not is_swe_bench([1])
    assert not is_swe_bench({"resolved": [], "something_else": 1})


def test_files_that_list_all_instances_together_tell_the_others(tmp_path):
    stated = submission(tmp_path, "20240402_agent_a", resolved=[0, 2], no_generation=[1], split="tiny")
    path = report(tmp_path, "agent.run", resolved=[3], unresolved=[0, 1, 2, 4, 5])
    # a submission does not say how many there are
    refuses("resolved instances only", read_swe_bench, [tmp_path / "evaluation", path])
    put(stated, {"resolved_ids": IDS[:1], "total_instances": 6})
    matrix = read_swe_bench([stated, path], spec=ReadingSpec(scenario="s"))
    assert by_item(matrix) == dict(zip(IDS, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0), strict=True))


def test_old_submissions_list_how_far_each_patch_came_and_no_other_instances(tmp_path, all_ids):
    came = {"generated": [0, 1, 2, 3], "with_logs": [0, 1, 2], "applied": [0, 1], "no_apply": [2], "test_timeout": [3]}
    path = submission(tmp_path, "20231010_rag", resolved=[0], no_generation=[4, 5], **came)
    matrix = warns("1 of '20231010_rag'", read_swe_bench, tmp_path, items=all_ids)
    outcomes = (1.0, 0.0, 0.0, math.nan, 0.0, 0.0)
    assert by_item(matrix) == pytest.approx(dict(zip(IDS, outcomes, strict=True)), nan_ok=True)
    put(path, {"resolved": ["owner__tool-7"]})
    refuses("1 that are not: 'owner__tool-7'", read_swe_bench, tmp_path, items=all_ids)


def test_the_real_matrix_written_as_submissions_is_read_as_it_was(shared_dir, tmp_path):
    """10 submissions of the leaderboard: 5,000 responses, and the percentages that it states."""
    folder = shared_dir / "data" / "swebench_verified"
    rows = pl.read_parquet(folder / "responses.parquet")
    names = rows["model_id"].unique(maintain_order=True)[:10]
    for name in names:
        mine = rows.filter(pl.col("model_id") == name)
        place = tmp_path / "evaluation" / "verified" / name / "results"
        solved = mine.filter(pl.col("response") == 1)["item_id"].to_list()
        put(place / "results.json", {"resolved": solved, "no_generation": [], "no_logs": []})
    rows.select("item_id").unique().write_csv(tmp_path / "instances.csv")
    matrix = read_swe_bench(tmp_path / "evaluation", items=tmp_path / "instances.csv")
    known = pl.read_csv(folder / "models.csv", infer_schema_length=None)
    stated = dict(known.select("model_id", "leaderboard_resolved_pct").iter_rows())
    read = dict(zip(matrix.model_ids, 100 * matrix.responses.mean(axis=1), strict=True))
    assert matrix.responses.shape == (10, 500)
    assert all(read[name] == pytest.approx(stated[name], abs=0.05) for name in names if stated[name] is not None)


OWN_RATE = "SWE-bench's rate counts them as 0, in points: "


def write_log(folder, instance, content, *, run="r1", model="lab__m"):
    """The log of one instance; its report is missing where the content is None."""
    place = folder / "logs" / "run_evaluation" / run / model / instance
    put(place / "run_instance.log", "...")
    if content is not None:
        put(place / "report.json", content)


def judged(instance, resolved, **more):
    about = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "tests_status": {}}
    return {instance: {**about, "resolved": resolved, **more}}


def write_report(path, *, failure_reasons=(), **lists):
    """A report whose lists are numbers of instances; all were submitted."""
    content = {f"{name}_ids": [IDS[k] for k in some] for name, some in lists.items()}
    reasons = {IDS[k]: why for k, why in dict(failure_reasons).items()}
    about = {"submitted_ids": IDS, "total_instances": 6, "schema_version": 2, "failure_reasons": reasons}
    put(path, {**about, **content})


def write_mini(folder, *, model="lab/m", ends=("Submitted",) * 6, empty=(), version="2.2.0", limit=250, calls=20):
    """Runs of mini-SWE-agent, which ended so, some of them without a patch; run k cost k dollars."""
    patches = {one: "" if k in empty else "diff" for k, one in enumerate(IDS)}
    told = {one: {"model_name_or_path": model, "instance_id": one, "model_patch": patches[one]} for one in IDS}
    put(folder / "preds.json", told)
    for k, (one, end) in enumerate(zip(IDS, ends, strict=True)):
        config = {"agent": {"step_limit": limit, "output_path": f"/somewhere/{one}"}, "model": {"model_name": model}}
        info = {"model_stats": {"instance_cost": float(k), "api_calls": calls}, "exit_status": end, "config": config}
        content = {"info": {**info, "mini_version": version}, "trajectory_format": "mini-swe-agent-1.1"}
        put(folder / one / f"{one}.traj.json", content)


def write_openhands(folder, *, model="lab/m", errors=(None,) * 6, empty=()):
    about = {"metadata": {"llm": {"model": model}, "max_iterations": 100}}
    lines = [
        {"instance_id": one, "test_result": {"git_patch": "" if k in empty else "diff"}, "error": errors[k], **about}
        | {
            "metrics": {
                "accumulated_cost": 0.5,
                "accumulated_token_usage": {"prompt_tokens": 9, "completion_tokens": k},
            }
        }
        for k, one in enumerate(IDS)
    ]
    put_lines(folder / "output.jsonl", lines)


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
    found = warns(r"2 instances have no verdict \(2 error\).* lab/m 25.0 in place of 50.0", read, tmp_path)
    assert (found.model_ids, kinds(found)) == (["lab/m"], {"0": 1.0, "1": 0.0, "2": "error", "3": "error"})
    assert kinds(read(tmp_path / "logs" / "run_evaluation" / "r1")) == kinds(found)
    assert find_sources([tmp_path], ReadingSpec()).unknown == []


def test_logs_tell_failures_of_the_infrastructure_and_predictions_what_has_no_log(tmp_path):
    more = {"infra_failure": True, "infra_failure_reason": "browser_launch_failed"}
    write_log(tmp_path, IDS[0], judged(IDS[0], False, **more))
    write_log(tmp_path, IDS[1], judged(IDS[1], False, infra_failure=False, infra_failure_reason="tests_timed_out"))
    write_log(tmp_path, IDS[2], judged(IDS[2], True))
    warns("logs tell nothing of empty patches.* 'lab/m'", read, tmp_path)
    write_mini(tmp_path / "runs" / "m", empty=(3, 4), ends=(*["Submitted"] * 4, "RateLimitError", "Submitted"))
    expected = {"0": "harness", "1": "time-out", "2": 1.0, "3": 0.0, "4": "harness", "5": "error"}
    assert kinds(read(tmp_path)) == expected


def test_a_report_counts_before_its_logs_and_they_tell_its_name(tmp_path):
    """The run's id has a dot; and a run that has logs alone is another attempt."""
    write_report(tmp_path / "lab__m.v1.5.json", resolved=[1], unresolved=[0, 3, 4, 5], empty_patch=[2])
    write_log(tmp_path, IDS[0], judged(IDS[0], True), run="v1.5")
    write_log(tmp_path, IDS[1], judged(IDS[1], True), run="v1.5")
    found = warns(r"say otherwise than the logs .* on 1 instances \('owner__tool-0'\)", read, tmp_path)
    assert (found.model_ids, list(kinds(found).values())) == (["lab/m"], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    write_report(tmp_path / "lab__m.v1.5.json", resolved=[0, 1], unresolved=[3, 4, 5], empty_patch=[2])
    write_log(tmp_path, IDS[0], judged(IDS[0], False), run="v2")
    found = read(tmp_path, repeats="count")
    assert (found.n_trials.tolist(), found.responses[0, 0]) == ([[2, 1, 1, 1, 1, 1]], 0.5)


def test_failure_reasons_and_predictions_tell_what_reports_do_not(tmp_path):
    reasons = {1: "network_unreachable", 2: "browser_launch_failed", 3: "tests_timed_out", 4: "missing_module"}
    some = {"unresolved": [1, 2, 3, 5], "error": [4], "infra_failure": [1, 2], "ambiguous_failure": [3, 4]}
    write_report(tmp_path / "m.r.json", resolved=[0], **some, failure_reasons=reasons)
    found = warns(f"{OWN_RATE}m 16.7 in place of 50.0", read, tmp_path)
    assert list(kinds(found).values()) == [1.0, "harness", "harness", "time-out", "error", 0.0]
    assert read(tmp_path, errors="wrong").responses.mean() == pytest.approx(1 / 6)
    write_mini(tmp_path / "b" / "run")
    path = tmp_path / "b" / "sb-cli-reports" / "swe-bench_verified__test__id1.json"
    write_report(path, resolved=[0], unresolved=range(1, 6))
    assert read(tmp_path / "b").model_ids == ["lab/m"]


def test_costs_calls_and_broken_runs_of_mini_swe_agent_are_joined(tmp_path):
    """An empty patch is wrong unless the run broke; what was graded counts however the run ended."""
    ends = ("RuntimeError", "LimitsExceeded", "Submitted", "ContextWindowExceededError", "RuntimeError", "TimeExceeded")
    write_mini(tmp_path / "a", ends=ends, empty=(1, 2, 3))
    write_mini(tmp_path / "b", model="lab/other", calls=7)
    write_report(tmp_path / "reports" / "lab__m.r.json", resolved=[0], unresolved=[5], error=[4], empty_patch=[1, 2, 3])
    write_report(tmp_path / "reports" / "lab__other.r.json", resolved=range(6))
    found = read(tmp_path)
    assert found.model_ids == ["lab/m", "lab/other"]
    assert list(kinds(found).values()) == [1.0, 0.0, 0.0, "limit", "error", 0.0]
    np.testing.assert_array_equal(found.costs["cost_usd"], [range(6)] * 2)
    np.testing.assert_array_equal(found.costs["calls"], [[20] * 6, [7] * 6])
    about = found.models.row(0, named=True)
    expected = {"agent": "mini-swe-agent", "agent_version": "2.2.0", "llm": "lab/m", "agent_args": "step_limit=250"}
    assert {name: about[name] for name in expected} == expected
    given = read([tmp_path / "reports" / "lab__m.r.json", tmp_path / "a"])
    np.testing.assert_array_equal(given.costs["cost_usd"], [range(6)])
    again = read([tmp_path / "reports" / "lab__m.r.json", *(tmp_path / "a").glob("*/*.traj.json")])
    np.testing.assert_array_equal(again.costs["calls"], [[20] * 6])


@pytest.mark.parametrize("content", ["", '{"info"', [], {}, {"info": None}, {"info": {"model_stats": 3}}], ids=str)
def test_a_broken_trajectory_costs_its_costs_alone(tmp_path, content):
    write_mini(tmp_path)
    write_report(tmp_path / "lab__m.r.json", resolved=[0, 1], unresolved=[2, 3, 4, 5])
    put(tmp_path / IDS[5] / f"{IDS[5]}.traj.json", content)
    infinite = {"info": {"model_stats": {"instance_cost": float("nan"), "api_calls": -1}}}
    put(tmp_path / IDS[4] / f"{IDS[4]}.traj.json", infinite)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read(tmp_path)
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
    found = read(tmp_path)
    assert found.model_ids == ["OpenHands+lab/m1", "OpenHands+lab/m2"]
    assert list(kinds(found).values()) == [1.0, 0.0, "harness", 0.0, 0.0, 0.0]
    assert list(kinds(found, 1).values()) == [1.0, 1.0, "harness", 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(found.costs["cost_usd"], np.full((2, 6), 0.5))
    np.testing.assert_array_equal(found.costs["output_tokens"], [range(6)] * 2)


@pytest.mark.parametrize(("make", "agent", "command"), [
    (write_mini, "mini-swe-agent", "run_evaluation .*--predictions_path .*preds.json"),
    (write_openhands, "OpenHands", "swebench-eval .*output.jsonl --run-id NAME"),
])  # fmt: skip
def test_runs_without_a_report_are_refused_and_the_command_is_named(tmp_path, make, agent, command):
    make(tmp_path / "runs")
    words = rf"{agent} on lab/m \(6 instances\)' and no verdict on them.*{command}"
    refuses(words, read, tmp_path)
    write_report(tmp_path / "another.r.json", resolved=range(6))
    assert not warns("no verdict on the runs of .*reports are of 'another'", read, tmp_path).costs


def test_two_agents_of_one_name_are_refused(tmp_path):
    for name, more in {"a": {}, "b": {"version": "2.3.0"}, "c": {"limit": 50}}.items():
        write_mini(tmp_path / name, **more)
        write_report(tmp_path / name / f"lab__m.{name}.json", resolved=range(6))
    refuses(r"ran with mini-swe-agent 2.2.0 step_limit=250 in .*a and with .*2.3.0", read, tmp_path, repeats="count")
    refuses("step_limit=50 in ", read, [tmp_path / "a", tmp_path / "c"], repeats="count")
