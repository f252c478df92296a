"""`itembank session start` and `run`: options become settings, and programs answer items, whatever ends them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import itembank as ib
from itembank.selection.criteria import DOptimality, VOptimality
from itembank.sessions.journal import read_journal
from itembank_living import without_responses
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.cli.session.loops import FAST, ids, play, session_file, settings_of
from tests.sessions.session_worker import response_to

COUNTING = 'echo {item_id} >> count; sleep 0.03; printf \'{"response": %s, "costs": {"output_tokens": 2}}\' '
"""Leaves a line in a file when it begins."""


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """A program of a shell that gives the answers of the loop in the documentation."""
    monkeypatch.chdir(tmp_path)
    table = "".join(
        f"{scenario}/{j} {response_to(f'{scenario}/{j}')}\n" for scenario in ("math", "code", "law") for j in range(60)
    )
    (tmp_path / "answers").write_text(table)
    return "grep -F {item_id}' ' answers | head -n 1 | cut -d ' ' -f 2"


def test_gives_what_the_loop_of_the_documentation_gives(run, journal, answers, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_bytes(journal.read_bytes())
    play(run, other)
    outcome = run.ok("session", "run", journal, "--command", answers, "--shell", "--format", "json")
    driven, by_hand = ib.read_session(journal), ib.read_session(other)
    assert driven.history == by_hand.history
    record = outcome.json
    assert record["scores"] == by_hand.estimate().scores.rows()
    assert run.json("session", "status", journal) == record
    lines = [line for line in outcome.err.splitlines() if " answered  overall " in line]
    assert len(lines) == 6


def test_says_what_was_spent_and_what_everything_would_cost(run, bank_folder, tmp_path):
    start = ("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST)
    run.ok(*start, "--max-cost", "output_tokens=200")
    command = """echo '{"response": 1, "costs": {"output_tokens": 60}}'"""
    outcome = run.ok("session", "run", tmp_path / "j", "--command", command, "--shell", "--jobs", 1)
    assert "3 answered" in outcome.err
    # 60 items of 1 to 98, of which those asked cost more than expected
    assert "180 output_tokens spent, 20 left, the whole benchmark about 3," in outcome.err
    assert "Stopped by the budget of 200 output_tokens: no precision was asked for" in outcome.out
    told = run.json("session", "status", tmp_path / "j")
    assert told["conclusion"] in " ".join(outcome.out.split())
    assert 3000.0 < told["whole_costs"]["output_tokens"] < 4000.0
    for noise in ("target_id", "last_event", "n_unasked", "ability"):
        assert noise in told
        assert noise not in outcome.out


def test_attempts_that_tell_no_cost_are_said_with_what_was_assumed(run, bank_folder, tmp_path):
    start = ("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST)
    begun = run(*start, "--max-cost", "output_tokens=200")
    assert f"Next: itembank session run {tmp_path / 'j'} --command" in begun.err
    assert f"itembank session ask {tmp_path / 'j'}" in begun.err
    outcome = run.ok("session", "run", tmp_path / "j", "--command", "echo resolved", "--shell")
    n = run.json("session", "status", tmp_path / "j")["n_items"]
    holds(" ".join(outcome.out.split()), f"no output_tokens was told {n} times:", " was assumed for each")
    run("session", "extend", tmp_path / "j", "--max-cost", "output_tokens=400")
    outcome = run("session", "run", tmp_path / "j", "--command", "exit 3", "--shell", "--retries", 0)
    assert "passes a maximum" not in outcome.err
    told = run.json("session", "status", tmp_path / "j")
    assert (told["n_items"], told["costs"]) == (n, {})
    assert told["assumed_costs"]["output_tokens"] + told["left"]["output_tokens"] == pytest.approx(400.0)
    assert told["reason_stopped"] == "budget: 400 output_tokens"


def test_a_cost_that_can_be_none_is_a_failed_attempt_and_is_not_kept(run, journal):
    command = """echo '{"response": 1, "costs": {"tokens": 1e308}}'"""
    says = "a cost must be a number from 0 to 1e+15, got 1e+308 tokens"
    run.fails(1, says, "session", "run", journal, "--command", command, "--shell", "--jobs", 1)
    assert (ib.read_session(journal).n_items, ib.read_session(journal).costs) == (0, {})


def test_a_precision_that_is_not_reached_exits_with_3(run, bank_folder, tmp_path):
    start = ("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST)
    run(*start, "--max-items", 2, "--half-width", 0.01)
    assert run("session", "run", tmp_path / "j", "--command", "echo 1").code == 3


def test_failures_are_no_answers_and_too_many_end_the_run(run, journal):
    says = ("10 attempts in a row failed", "Exit status 7.", "is broken")
    run.fails(1, says, "session", "run", journal, "--command", "sh -c 'echo $0 is broken >&2; exit 7' {item_id}")
    session = ib.read_session(journal)
    assert (session.n_items, session.pending, session.n_unasked) == (0, (), 60)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--command", "no-such-program"], 2, "got 'no-such-program'"),
        (["--command", "echo {itemid}"], 2, "Did you mean 'item_id'"),
        (["--command", "true", "--exit-code", "--pattern", "1"], 2, "got both"),
        ([], 2, "--command"),
    ],
)
def test_refuses_before_anything_is_asked(run, journal, words, code, message):
    outcome = run("session", "run", journal, *words)
    assert (outcome.code, message in outcome.err) == (code, True), outcome.err
    assert read_journal(journal).events == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_ends_it_no_item_that_was_told_runs_twice(run, bank_folder, tmp_path, seed):
    """Killed, interrupted once or twice, or asked to end at random moments, again and again."""
    journal, count, told = tmp_path / "run.jsonl", tmp_path / "count", {}
    start = ("session", "start", bank_folder, "-o", journal, "--model-id", "m", *FAST, "--max-items", 24)
    run.ok(*start)
    rng, n_ended = np.random.default_rng(seed), 0
    while True:
        process = started(journal, tmp_path)
        has_ended = end_after(process, count, int(rng.integers(1, 6)), float(rng.uniform(0.0, 0.05)), rng.choice(ENDS))
        _, said = process.communicate(timeout=120)
        assert "Traceback" not in said
        begun = count.read_text().splitlines()
        for item in ib.read_session(journal).told:  # what has begun when its answer is told is all that ever may
            told.setdefault(item, begun.count(item))
        if process.returncode == 0:
            break
        n_ended += has_ended
    begun = count.read_text().splitlines()
    assert n_ended >= 3
    assert (len(told), {item: begun.count(item) for item in told}) == (24, told)
    assert ib.read_session(journal).costs == {"output_tokens": 48.0}


ENDS = ("SIGKILL", "SIGINT", "SIGINT SIGINT", "SIGTERM")


def started(journal, folder):
    words = ["session", "run", journal, "--command", f"{COUNTING} 1", "--shell", "--jobs", 3]
    command = [sys.executable, "-m", "itembank", *map(str, words)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_after(process, count, n_begun, pause, signals):
    """Send signals a moment after so many further items have begun; return whether there was somebody to hear them."""

    def n_lines():
        return len(count.read_text().splitlines()) if count.exists() else 0

    until = n_lines() + n_begun
    while process.poll() is None and n_lines() < until:
        time.sleep(0.005)
    time.sleep(pause)
    for name in signals.split():
        process.send_signal(getattr(signal, name))
    return process.poll() is None


@pytest.mark.slow
def test_the_toy_agent_answers_a_session(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = Path(__file__).parents[3] / "examples" / "toy_agent.py"
    past = subprocess.run([sys.executable, agent, "--models", "12", "--items", "30"], check=True, capture_output=True)
    (tmp_path / "past.csv").write_bytes(past.stdout)
    run.ok("calibrate", "past.csv", "-o", "bank")
    start = ("session", "start", "bank", "-o", "j", "--model-id", "my-model", *FAST)
    run.ok(*start, "--max-cost", "cost_usd=0.05")
    run.ok("session", "run", "j", "--command", f"{sys.executable} {agent} {{item_id}}", "--jobs", 2)
    session = ib.read_session("j")
    assert session.n_items >= 3
    assert 0 < session.costs["cost_usd"] <= 0.06


WHOLE = """
criterion = "d-optimal"
target = "law"
n_start = 3
seed = 4
budget = {n_items = 3, costs = {output_tokens = 9}}
constraints = {at_least = {math = 2, law = 1}, at_most = 15, excluded = ["math/0", "code/1"], randomesque = 2}
[stopping]
ability_error = 0.2
half_width = 0.5
min_items = 4
level = 0.8
decision = {target = "math", model = "org/model-3", confidence = 0.9}
"""


def test_a_file_and_options_become_settings_and_options_win(run, bank_folder, tmp_path):
    options = (
        *session_file(tmp_path, WHOLE),
        *("--cost", "output_tokens", "--target", "math", "--seed", 5),
        *("--max-items", 40, "--max-cost", "output_tokens=5000"),
        *("--half-width", 0.05, "--half-width", "overall=0.1", "--threshold", 0.6),
    )
    run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    assert settings_of(tmp_path / "j") == ib.SessionSpec(
        criterion=DOptimality(per_cost=True),
        cost=ib.CostUnit("output_tokens"),
        target="math",
        budget=ib.Budget(40, {"output_tokens": 5000.0}),
        stopping=ib.Stopping(0.2, {"math": 0.05, "overall": 0.1}, ib.Decision("math", 0.6, None, 0.9), 0.8, 4),
        constraints=ib.Constraints({"math": 2, "law": 1}, 15, ("math/0", "code/1"), 2),
        n_start=3,
        seed=5,
        interval="model-based",
        errors="missing",  # as in the bank, which lost none
    )


REGRESSION = """
criterion = {name = "v-optimal"}
cost = {name = "seconds", input_weight = 0.25}
constraints = {at_least = 1}
"""


def test_a_criterion_with_its_choices_is_divided_by_the_cost_that_is_asked_for(run, bank_folder, tmp_path):
    given = ("--cost", "tokens", "--max-cost", "tokens=900", "--better-than", "org/model-3")
    options = (*session_file(tmp_path, REGRESSION), *given)
    run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    settings = settings_of(tmp_path / "j")
    assert (settings.criterion, settings.cost) == (VOptimality(per_cost=True), ib.CostUnit("tokens", 0.25))
    assert settings.budget == ib.Budget(costs={"tokens": 900.0})
    assert settings.stopping.decision == ib.Decision("overall", model="org/model-3")
    assert settings.constraints == ib.Constraints(at_least=1)


def test_a_scenario_that_is_predicted_is_the_target_and_never_asked(run, bank_folder, tmp_path):
    (tmp_path / "rare.toml").write_text("constraints = {at_most = {math = 4}}\n")
    options = ("--session", tmp_path / "rare.toml", "--max-items", 6, "--predict", "law", "--half-width", 0.2)
    outcome = run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    assert "'law' is never asked: cross-validated mean error" in outcome.err
    settings = settings_of(tmp_path / "j")
    assert (settings.target, settings.stopping.half_widths) == ("law", {"law": 0.2})
    assert settings.constraints.at_most == {"math": 4, "law": 0}
    asked = ids(run, tmp_path / "j", "-n", 6)
    assert len(asked) == 6
    assert not any(item.startswith("law/") for item in asked)
    run("session", "tell", tmp_path / "j", asked[0], "--response", 1)
    said = run("session", "status", tmp_path / "j").out
    holds(said, "Score law ", " from 1 item, none of them its own: it is predicted. Stopped by the budget of 6 items")


def test_calibrated_intervals_are_found_when_the_session_starts(run, bank_folder, tmp_path, monkeypatch):
    journal = tmp_path / "j"
    options = ("--model-id", "m", "--half-width", 0.1, "--target", "law")
    assert "never asked" not in run.ok("session", "start", bank_folder, "-o", journal, *options).err
    monkeypatch.setattr("itembank.sessions.preparation._sessions", None)  # what was found then is kept
    run("session", "tell", journal, "math/0", "--response", 1)
    assert len(ids(run, journal)) == 1
    rows = run.json("session", "status", journal)["scores"]
    assert {row["interval"] for row in rows} == {"calibrated"}


def test_a_session_is_never_started_over(run, bank_folder, journal):
    before = journal.read_bytes()
    outcome = run("session", "start", bank_folder, "-o", journal, "--model-id", "other")
    assert (outcome.code, journal.read_bytes()) == (1, before)
    assert "exists already" in outcome.err


def test_a_bank_that_was_published_with_its_items_asks_these(run, tmp_path, few_folds):
    bank = make_bank(n_models=12)
    chosen = ib.select(bank, 9, method="random", rng=0)
    without_responses(bank, selections=[chosen]).save(tmp_path / "tiny")
    words = ("session", "start", tmp_path / "tiny", "--model-id", "new", "-o")
    done = run(*words, tmp_path / "own.jsonl", *FAST)
    assert "Only items that the bank was published with are asked." in done.err
    asked = run("session", "ask", tmp_path / "own.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(chosen.item_ids)
    none_out = session_file(tmp_path, "constraints.excluded = []")
    run.ok(*words, tmp_path / "all.jsonl", *none_out)
    asked = run("session", "ask", tmp_path / "all.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(bank.item_ids)


def test_it_says_what_is_asked_and_how_good_that_is(run, bank_folder, tmp_path):
    start = ("session", "start", bank_folder, "--model-id", "m")
    said = run.ok(*start, "-o", tmp_path / "1.jsonl", "--max-items", 9).err
    assert "The session of m asks at most 9 of 60 items; these are good to about ±" in said
    assert "points for models like the 12 past ones. It is in" in said
    said = run.ok(*start, "-o", tmp_path / "2.jsonl", *FAST, "--half-width", 0.05, "--half-width", "law=0.1").err
    assert "The session of m asks up to 60 items until overall is ±5.0 points and law is ±10.0 points. It is in" in said
    said = run.ok(*start, "-o", tmp_path / "4.jsonl", *FAST, "--max-items", 99).err
    assert "The session of m asks up to 60 items" in said
    costs = ("--max-cost", "output_tokens=9000")
    said = run.ok(*start, "-o", tmp_path / "3.jsonl", *FAST, "--threshold", 0.5, *costs).err
    assert "asks up to 60 items for at most 9,000 output_tokens until the question is settled" in said
