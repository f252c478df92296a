"""`itembank gate next --command`: any program runs the stages of a gate, and none of its answers is paid for twice."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import DataError
from itembank.gating.running import GateRun

N_ITEMS = 300
AGENT = """echo $1 >> count
if [ -e deadly ] && [ "$(wc -l < count)" -eq 30 ]; then rm deadly; kill -9 $PPID; exit; fi
if [ "$1" = "$(cat failing 2> /dev/null)" ]; then echo no luck >&2; exit 3; fi
grep "^$1 " $2 | cut -d ' ' -f 2
"""
"""Leaves a line when it begins, ends whoever started it where it is told to, fails on one item, or answers."""


@pytest.fixture
def gate(run, tmp_path, monkeypatch):
    """Answers of a baseline, of a twin that differs on few items, and of a broken one; and a gate on the first."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    baseline = (rng.random(N_ITEMS) < 0.7).astype(int)
    lost, ids = rng.random(N_ITEMS) < 0.5, [f"q{number}" for number in range(N_ITEMS)]
    for name, answers in (("good", baseline ^ (rng.random(N_ITEMS) < 0.02)), ("bad", np.where(lost, 0, baseline))):
        (tmp_path / name).write_text("".join(f"{item} {int(one)}\n" for item, one in zip(ids, answers, strict=True)))
    table = {"model_id": "base", "item_id": ids, "scenario": "s", "response": baseline}
    pl.DataFrame(table).write_csv("base.csv")
    (tmp_path / "agent.sh").write_text(AGENT)
    run.ok("gate", "start", "base.csv", "--margin", 0.08, "-o", "gate")
    return tmp_path


def words(name, *more):
    command = f"sh agent.sh {{item_id}} {name}"
    return ("gate", "next", "gate", "--command", command, "--model-id", f"org/{name}", "--format", "json", *more)


def begun(folder):
    return (folder / "count").read_text().split()


def by_hand(run, folder, name):
    """Give the same answers as results."""
    told = dict(line.split() for line in (folder / name).read_text().splitlines())
    ran = dict.fromkeys(begun(folder))
    table = {"model_id": f"org/{name}", "item_id": list(ran), "response": [int(told[item]) for item in ran]}
    pl.DataFrame(table).write_csv("ran.csv")
    return run("gate", "next", "gate", "ran.csv", "--format", "json").json


@pytest.mark.parametrize(("name", "verdict", "code"), [("good", "pass", 0), ("bad", "fail", 1)])
def test_stops_as_soon_as_the_verdict_stands_which_is_that_of_results_by_hand(run, gate, name, verdict, code):
    done = run(*words(name, "--jobs", 3))
    found, n_run = done.json, len(begun(gate))
    assert (done.code, found["verdict"]) == (code, verdict), done.err
    assert n_run == len(set(begun(gate))) == found["n_items"] < N_ITEMS
    assert (found, done.err.count(" of 300 items: difference ")) == (by_hand(run, gate, name), len(found["looks"]))
    again = run(*words(name))
    assert (again.code, again.out, len(begun(gate))) == (code, done.out, n_run)


def test_goes_on_after_a_kill_and_runs_no_answered_item_again(run, gate):
    (gate / "deadly").touch()
    killed = subprocess.run([sys.executable, "-m", "itembank", *map(str, words("good"))], check=False)
    assert killed.returncode == -9
    done = run.ok(*words("good"))
    assert "Continuing: 29 items are answered" in done.err
    ran = begun(gate)
    assert [item for item in set(ran) if ran.count(item) > 1] == [ran[29]]  # which nobody had answered
    assert done.json == by_hand(run, gate, "good")


def test_an_item_that_stays_failed_keeps_the_gate_from_looking_until_it_is_mended(run, gate):
    first = run("gate", "start", "base.csv", "--margin", 0.08, "-o", "again", "--format", "json").json
    item = first["next_items"][7]
    (gate / "failing").write_text(item)
    done = run(*words("good", "--retries", 1))
    assert (done.code, done.out) == (5, "")
    assert f"all 50 items of a stage are answered, and 1 are not: '{item}' (Exit status 3. no luck)" in done.err
    assert (len(begun(gate)), begun(gate).count(item)) == (51, 2)
    (gate / "failing").unlink()
    run.ok(*words("good"))
    assert (begun(gate)[51], len(set(begun(gate)))) == (item, len(begun(gate)) - 2)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "Give the candidate's results, or --command COMMAND"),
        (("base.csv", "--command", "true"), "one of them"),
        (("base.csv", "--jobs", 2), "--jobs goes with --command"),
        (("--command", "echo 1", "--model-id", "m", "--ids", "lm-eval"), "--ids goes with results"),
        (("--command", "echo 1"), "--model-id NAME"),
        (("--command", "echo {itemid}", "--model-id", "m"), "Did you mean 'item_id'"),
        (("--command", "no-such-program", "--model-id", "m"), "got 'no-such-program'"),
    ],
)
def test_refuses_before_anything_is_run(run, gate, more, message):
    before, done = sorted((gate / "gate").iterdir()), run("gate", "next", "gate", *more)
    assert (done.code, message in done.err) == (2, True), done.err
    assert sorted((gate / "gate").iterdir()) == before


def test_answers_for_another_gate_are_refused(run, gate):
    assert run(*words("bad")).code == 1
    n_run = len(begun(gate))
    run.ok("gate", "start", "base.csv", "--margin", 0.08, "--seed", 1, "-o", "gate")
    done = run(*words("bad"))
    assert (done.code, "holds answers for another gate" in done.err, len(begun(gate))) == (5, True, n_run)


def test_a_candidate_is_told_as_a_session_is():
    rng = np.random.default_rng(4)
    baseline = ib.ResponseMatrix.create((rng.random((1, N_ITEMS)) < 0.7).astype(float))
    passing = GateRun(ib.start_gate(baseline, margin=0.08), model_id="new")
    first, second = passing.ask(2)
    for wrong in ({"response": 2.0}, {"n_correct": 1}, {}, {"response": 1.0, "costs": {"seconds": -1.0}}):
        with pytest.raises(DataError, match=first):
            passing.tell(first, **wrong)
    with pytest.raises(DataError, match="must be of the gate, got 'elsewhere'"):
        passing.tell("elsewhere", 1.0)
    passing.tell(first, n_correct=1, n_trials=2, costs={"seconds": 2.0})
    passing.tell_failed(second, again=True, costs={"seconds": 1.0})
    assert (list(passing.told), passing.pending, passing.costs) == ([first], (), {"seconds": 3.0})
    assert passing.ask() == (second,)
