"""`itembank run lm-eval`, with the harness's own command."""

import json
import re
import shutil
import sys

import pytest

from itembank.bank.selections import Selection
from tests.cli.session.loops import FAST as MODEL_BASED
from tests.harnesses.lm_eval.conftest import N_ITEMS
from tests.harnesses.lm_eval.rows import by_filter

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
ARGS = ("--model", "simulated", "--model_args", "skill=0.6,seed=99,model=new")
FAST = ("--adaptive", "--max-items", 8, "--batch", 4, *MODEL_BASED, "--import", "simulated_lm")


@pytest.fixture(scope="module", autouse=True)
def own_tasks_only():
    """Index our tasks alone: those that the harness brings take a quarter of a minute, every time."""
    tasks = pytest.importorskip("lm_eval.tasks")
    init = tasks.TaskManager.__init__

    def with_own_tasks(self, *given, **named):
        init(self, *given, **{**named, "include_defaults": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.TaskManager, "__init__", with_own_tasks)
        yield


@pytest.fixture
def place(tmp_path, simulated, bank_of, monkeypatch):
    """A folder with tasks and a bank, to work in."""
    simulated.write_tasks(tmp_path / "tasks", N_ITEMS)
    shutil.copytree(bank_of(), tmp_path / "bank")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stock(monkeypatch):
    """Call the harness's command as its users do."""
    from lm_eval.__main__ import cli_evaluate  # noqa: PLC0415

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["lm_eval", *map(str, arguments)])
        cli_evaluate()

    return call


def read_logs(folder):
    """Rows of samples files by task, document and filter."""
    rows = []
    for path in folder.rglob("samples_*.jsonl"):
        task = re.fullmatch(r"samples_(.+?)_\d{4}-.*", path.name)[1]
        rows += [(task, json.loads(line)) for line in path.read_text().splitlines()]
    return by_filter(rows)


@pytest.fixture
def full(place, stock):
    """Rows of the harness's own full run."""
    stock(*ARGS, "--include_path", "tasks", "--tasks", "quiz", "--log_samples", "--output_path", "full")
    return read_logs(place / "full")


def items_of(rows):
    return {f"{task}/{number}" for task, number, _ in rows}


def test_a_selection(run, place, full):
    run.ok("select", "bank", "-n", 12, "-o", "selection.json")
    words = ("--selection", "selection.json", "-o", "out", "--import", "simulated_lm")
    done = run.ok("run", "lm-eval", "bank", *words, "--format", "json", "--", *ARGS, "--include_path", "tasks")
    logs = read_logs(place / "out")
    assert items_of(logs) == set(Selection.load("selection.json").item_ids)
    assert all(row == full[key] for key, row in logs.items())
    result = done.json
    assert result["overall_is"] == "macro"
    assert result["scores"][-1]["n_items"] == 12
    assert "that weigh by size" in done.err
    (results,) = (place / "out").rglob("results_*.json")
    assert all(set(one) == {"alias", "name"} for one in json.loads(results.read_text())["results"].values())
    again = run("estimate", "bank", "out", "--selection", "selection.json", "--format", "json")
    assert [(row["target"], row["estimate"], row["low"]) for row in again.json["rows"]] == [
        (row["target"], row["estimate"], row["low"]) for row in result["scores"]
    ]


def test_a_number_of_items_by_the_group(run, place, full):
    words = ("-n", 6, "-o", "out", "--import", "simulated_lm", "--format", "csv")
    run.ok("run", "lm-eval", "bank", *words, "--", "run", *ARGS, "--include_path", "tasks", "--tasks", "quiz")
    logs = read_logs(place / "out")
    assert items_of(logs) == set(Selection.load("out/selection.json").item_ids)
    assert all(row == full[key] for key, row in logs.items())


def test_a_session_goes_on_and_then_says_the_same_again(run, place, full):
    words = ("run", "lm-eval", "bank", *FAST, "-o", "out", "--format", "json")
    arguments = ("--", *ARGS, "--include_path", "tasks")
    done = run.ok(*words, *arguments)
    logs = read_logs(place / "out")
    assert len(items_of(logs)) == 8
    assert all(row == full[key] for key, row in logs.items())
    (results,) = (place / "out").rglob("results_*.json")
    content = json.loads(results.read_text())
    assert content["results"] == {task: {"alias": task, "name": task} for task in content["results"]}
    journal = (place / "out" / "session.jsonl").read_bytes()
    again = run(*words, *arguments)
    assert (again.code, again.out) == (0, done.out)
    assert (place / "out" / "session.jsonl").read_bytes() == journal
    assert read_logs(place / "out") == logs
    other = run(*words, *arguments, "--num_fewshot", 1)
    assert other.code == 4
    assert "prompts differ" in other.err
    other = run(*words, "--ignore-prompts", *arguments, "--num_fewshot", 1)
    assert other.code == 1
    assert "goes on with the prompts that it was started with" in other.err
    estimated = run("estimate", "bank", "out", "--method", "p-irt", "--interval", "model-based", "--format", "json")
    values = {row["target"]: row["estimate"] for row in estimated.json["rows"]}
    assert values == {row["target"]: pytest.approx(row["estimate"]) for row in done.json["scores"]}


def test_a_session_that_is_over_goes_on_with_a_larger_budget(run, place):
    words = ("run", "lm-eval", "bank", *FAST, "-o", "out", "--format", "json")
    arguments = ("--", *ARGS, "--include_path")
    run.ok(*words, *arguments, "tasks")
    first = items_of(read_logs(place / "out"))
    more = [12 if word == 8 else word for word in words]
    done = run.ok(*more, *arguments, "tasks")
    assert done.json["scores"][-1]["n_items"] == 12
    assert first < items_of(read_logs(place / "out"))
    refused = run(*more, "--half-width", 0.1, *arguments, "tasks")
    assert (refused.code, "got another stopping" in refused.err) == (1, True)
    lower = run(*words, *arguments, "tasks")
    assert (lower.code, "must be raised above 12 items, got 8" in lower.err) == (2, True)


OTHER_NAMES = ("--spec", 'task_names = {products = "times", words = "sums", sums = "words"}')
"""A name that no task of the harness has, and two that are those of other tasks."""
WAYS = {"selection": ("-n", 9, "--import", "simulated_lm"), "adaptive": FAST}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("more", [(), ("--tasks", "quiz")], ids=["by the tasks", "by the group"])
def test_tasks_that_were_renamed_at_import_are_run_by_their_own_names(run, place, full, bank_of, way, more):
    words = ("run", "lm-eval", bank_of(OTHER_NAMES), *WAYS[way], "-o", "out", "--format", "json")
    arguments = ("--", *ARGS, "--include_path", "tasks", *more)
    run.ok(*words, "--dry-run", *arguments)
    done = run.ok(*words, *arguments)
    own = {"times": "products", "sums": "words", "words": "sums"}
    logs = read_logs(place / "out")
    assert {task for task, _, _ in logs} <= set(own)
    assert logs == {(task, *rest): full[own[task], *rest] for task, *rest in logs}
    again = run(*words, *arguments)
    assert (again.code, again.out) == (0, done.out)
    run.ok("estimate", bank_of(OTHER_NAMES), "out", "--interval", "model-based", "--format", "json")


def stopped_after(monkeypatch, n_items):
    """Stop a run once, when so many items were run; return the list of those that were, also later."""
    from itembank_harnesses.lm_eval import run as hooks  # noqa: PLC0415

    ran, stops, keep = [], [n_items], hooks.ItemsByAndBy.run_missing

    def run_missing(self, items, *rest):
        if stops == [len(ran)]:
            stops.clear()
            raise KeyboardInterrupt
        ran.extend(items)
        keep(self, items, *rest)

    monkeypatch.setattr(hooks.ItemsByAndBy, "run_missing", run_missing)
    return ran


def test_a_selection_goes_on_after_a_stop_and_asks_nothing_twice(run, place, full, monkeypatch):
    """Stopped after two batches; then with another batch size and device, in another order."""
    words = ("-n", 12, "--batch", 4, "-o", "out", "--import", "simulated_lm", "--format", "json")
    words = ("run", "lm-eval", "bank", *words)
    model = "skill=0.6,seed=99,model=new,calls=calls.txt"
    arguments = ("--", "--model", "simulated", "--model_args", model, "--include_path", "tasks")
    stopped_after(monkeypatch, 8)
    stopped = run(*words, *arguments)
    assert stopped.code == 1
    assert "The same command continues from here" in stopped.err
    before = (place / "calls.txt").read_text().splitlines()
    other = "model=new,seed=99,base_url=http://localhost,skill=0.6,calls=calls.txt"
    again = ("--model_args", other, "--batch_size", 2, "--device", "cpu")
    again = ("--", "--include_path", "tasks", *again, "--model", "simulated")
    done = run.ok(*words, *again)
    calls = (place / "calls.txt").read_text().splitlines()
    assert len(calls) == len(set(calls)) > len(before) > 0
    logs = read_logs(place / "out")
    assert items_of(logs) == set(Selection.load("out/selection.json").item_ids)
    assert all(row == full[key] for key, row in logs.items())
    assert run(*words, *again).out == done.out
    assert (place / "calls.txt").read_text().splitlines() == calls
    for changed, named in (("skill=0.7", "skill"), ("skill=0.6", "seed")):
        model = f"{changed},seed={99 if named == 'skill' else 98},model=new"
        refused = run(*words, "--", "--model", "simulated", "--model_args", model, "--include_path", "tasks")
        assert refused.code == 1
        assert f"goes on with the model that it was started with, whose {named} was" in refused.err


def test_stages_are_run_one_after_the_other(run, place):
    arguments = ("--import", "simulated_lm", "--format", "json", "--", *ARGS, "--include_path", "tasks")
    run.ok("select", "bank", "-n", 15, "--stages", 2, "-o", "stage1.json")
    run.ok("run", "lm-eval", "bank", "--selection", "stage1.json", "-o", "one", *arguments)
    run.ok("select", "bank", "--after", "one", "--selection", "stage1.json", "-o", "stage2.json")
    second = run("run", "lm-eval", "bank", "--selection", "stage2.json", "-o", "two", *arguments)
    assert "itembank estimate BANK EARLIER_RESULTS two --selection" in second.err
    estimated = run("estimate", "bank", "one", "two", "--selection", "stage2.json", "--format", "json")
    assert estimated.json["rows"][-1]["n_items"] == 15


def test_a_session_that_is_not_precise_enough_exits_with_3(run, place):
    words = (*FAST, "--half-width", 0.001, "-o", "out")
    assert run("run", "lm-eval", "bank", *words, "--", *ARGS, "--include_path", "tasks").code == 3


@pytest.mark.parametrize("items", [("-n", "6"), ("--adaptive", "--max-items", "6")])
def test_a_dry_run_counts_and_runs_nothing(run, place, items):
    arguments = ("--", "--model", "hf", "--model_args", "pretrained=org/m", "--include_path", "tasks")
    words = (*items, "-o", "out", "--import", "simulated_lm", "--dry-run", "--format", "json")
    done = run.ok("run", "lm-eval", "bank", *words, *arguments)
    (row,) = done.json["rows"]
    assert row["n_items"] == 6
    assert 6 <= row["n_requests"] <= 24
    assert row["input_tokens"] > 6 * 10
    assert "4 characters a token" in row["tokens_from"]
    assert not (place / "out").exists()


@pytest.mark.parametrize("words", [("-n", 3), ("-n", 3, "--dry-run"), FAST])
def test_a_changed_benchmark_exits_with_4(run, place, words):
    for name in N_ITEMS:
        path = place / "tasks" / f"{name}-test.jsonl"
        path.write_text(path.read_text().replace("What", "what").replace("No.", "no."))
    words = (*words, "-o", "out", *(() if "--import" in words else ("--import", "simulated_lm")))
    done = run("run", "lm-eval", "bank", *words, "--", *ARGS, "--include_path", "tasks")
    assert (done.code, done.out) == (4, "")
    assert "with another content" in done.err


@pytest.fixture
def gated(tmp_path, simulated, stock, run, monkeypatch):
    """A folder with tasks, the full run of a baseline, a bank begun with that alone, and a gate."""
    simulated.write_tasks(tmp_path / "tasks", {"sums": 150, "products": 80, "words": 30})
    monkeypatch.chdir(tmp_path)
    stock(*ARGS, "--include_path", "tasks", "--tasks", "quiz", "--log_samples", "--output_path", "full")
    run.ok("calibrate", "full", "-o", "bank")
    run.ok("gate", "start", "full", "--margin", 0.06, "-o", "gate")
    return tmp_path


def gate_run(skill, *more, bank="bank"):
    model = f"skill={skill},seed=99,model=int8,calls=calls.txt"
    words = ("run", "lm-eval", bank, "--gate", "gate", "-o", "out", "--import", "simulated_lm", "--format", "json")
    return (*words, "--", "--model", "simulated", "--model_args", model, "--include_path", "tasks", *more)


def test_a_gate_stops_when_the_verdict_stands_and_goes_on_after_a_stop(run, gated, monkeypatch):
    (dry,) = run("run", "lm-eval", "--dry-run", *gate_run(0.6)[2:]).json["rows"]
    assert (dry["n_items_first"], dry["n_items"]) == (50, 260)
    assert not (gated / "out").exists()
    stopped_after(monkeypatch, 50)
    stopped = run(*gate_run(0.6))
    assert (stopped.code, "The same command continues from here" in stopped.err) == (5, True)
    done = run.ok(*gate_run(0.6))
    found = done.json
    assert (found["verdict"], found["difference"], 50 < found["n_items"] < 130) == ("pass", 0.0, True)
    calls = (gated / "calls.txt").read_text().splitlines()
    assert len(calls) == len(set(calls))
    full, logs = read_logs(gated / "full"), read_logs(gated / "out")  # the same model with other weights' name
    assert len(items_of(logs)) == found["n_items"]
    assert all(row == full[key] for key, row in logs.items())
    assert run(*gate_run(0.6)).out == done.out
    assert (gated / "calls.txt").read_text().splitlines() == calls
    by_hand = run("gate", "next", "gate", "out", "--format", "json").json
    assert {**found, "notes": []} == by_hand


def test_a_broken_candidate_fails_at_the_first_stages(run, gated):
    done = run("run", "lm-eval", "--github", "--junit", "gate.xml", *gate_run(-2.5)[2:])
    assert "::error title=itembank gate%3A int8::FAIL: int8 is worse" in done.err
    assert 'failures="1"' in (gated / "gate.xml").read_text()
    found = done.json
    assert (done.code, found["verdict"], found["n_items"] < 100) == (1, "fail", True)


def test_a_gate_of_other_items_or_prompts_is_refused_before_the_first_request(run, gated, bank_of):
    done = run(*gate_run(0.6, bank=bank_of()))
    assert (done.code, "the bank must hold all 260 items of the gate" in done.err) == (5, True), done.err
    done = run("run", "lm-eval", "--github", "--junit", "gate.xml", *gate_run(0.6, "--num_fewshot", 1)[2:])
    assert (done.code, "prompts differ" in done.err) == (4, True), done.err
    assert "::error title=itembank gate%3A no verdict::prompts differ" in done.err
    assert 'errors="1"' in (gated / "gate.xml").read_text()
    helped = run(*gate_run(0.6, "--help"))  # the harness ends with exit code 0
    assert (helped.code, "the harness ended by itself" in helped.err, helped.out) == (5, True, "")
    assert not (gated / "calls.txt").exists()
    assert not list((gated / "out").glob("gate.jsonl*"))
    more = ("run", "lm-eval", "bank", "--gate", "gate", "-n", 3, "-o", "out", "--", *ARGS)
    assert "one of --selection FILE, -n N, --adaptive, or --gate" in run(*more).err


def test_a_gate_looks_at_probabilities_also_after_it_went_on(run, gated, stock):
    stock(*ARGS, "--include_path", "tasks", "--tasks", "calculating", "--log_samples", "--output_path", "choices")
    run.ok("gate", "start", "choices", "--margin", 0.08, "-o", "gate")
    first, again = run(*gate_run(0.5)), run(*gate_run(0.5))
    assert (first.json["method"], first.out) == ("probabilities", again.out)
