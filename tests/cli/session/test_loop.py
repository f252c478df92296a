"""`itembank session`: a loop that any shell can run, and when it stops."""

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank
from itembank.responses.response_files import write_responses
from itembank.sessions.journal import Journal, read_journal
from itembank.sessions.limits import Budget
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST, LIMIT, ids, play, session_file
from tests.sessions.session_worker import response_to
from tests.sessions.simulated import model_based


def test_a_loop_ends_with_the_numbers_of_a_session_in_python(run, bank_folder, journal):
    assert play(run, journal) == 0
    session = model_based(load_bank(bank_folder), budget=Budget(6), model_id="new/model")
    while items := session.ask():
        session.tell(items[0], response_to(items[0]))
    status = run.json("session", "status", journal)
    assert status["scores"] == session.estimate().scores.rows()
    assert status["ability"] == session.estimate().theta.tolist()
    assert (status["n_items"], status["reason_stopped"]) == (6, "budget: 6 items")


def test_asks_the_same_again_until_told(run, journal):
    three = ids(run, journal, "-n", 3)
    assert len(set(three)) == 3
    assert ids(run, journal) == three[:1]
    assert ids(run, journal, "-n", 5) == three
    run("session", "tell", journal, three[1], "--response", 1)
    assert ids(run, journal, "-n", 2) == [three[0], three[2]]
    run("session", "tell", journal, three[0], "--failed", "--again")
    run("session", "tell", journal, three[2], "--failed")
    assert three[2] not in ids(run, journal, "-n", 2)


def test_a_batch_that_was_interrupted_ends_as_it_would_have(run, bank_folder, tmp_path):
    ends = []
    for name in ("whole", "interrupted"):
        journal = tmp_path / name
        run("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--max-items", 12, *FAST)
        if name == "interrupted":
            for item in ids(run, journal, "-n", 4)[:3]:
                run("session", "tell", journal, item, "--response", response_to(item))
        play(run, journal, "-n", 4)
        content = run.json("session", "status", journal)
        ends.append((content["scores"], content["ability"], read_journal(journal).events))
    assert ends[0] == ends[1]


def test_new_items_are_for_further_workers(run, journal):
    asked = [*ids(run, journal, "-n", 2), *ids(run, journal, "--new", "-n", 2), *ids(run, journal, "--new")]
    assert len(set(asked)) == 5


def test_json_says_where_to_find_an_item(run, bank_folder, journal):
    content = run("session", "ask", journal, "-n", 2).json
    items = load_bank(bank_folder).responses.items
    for item in content["items"]:
        row = items.filter(pl.col("item_id") == item["item_id"]).to_dicts()[0]
        assert item == {name: row[name] for name in ("item_id", "scenario", "subscenario")} | {"is_new": True}
    assert (content["n_items"], content["n_pending"], content["reason_stopped"]) == (0, 2, None)
    again = run("session", "ask", journal, "-n", 3).json
    assert [item["is_new"] for item in again["items"]] == [False, False]


def test_items_in_hand_at_the_end_of_the_budget_are_still_to_be_answered(run, journal):
    asked = ids(run, journal, "-n", 9)
    assert len(asked) == 6
    outcome = run("session", "ask", journal, "--new", "--format", "ids")
    assert (outcome.code, outcome.out) == (0, "")
    assert "Stopped by the budget of 6 items" in outcome.err
    assert "Asked and not answered yet: 6." in outcome.err
    assert ids(run, journal, "-n", 9) == asked


def test_a_stopped_session_asks_nothing(run, journal):
    assert play(run, journal) == 0
    content = run("session", "ask", journal).json
    assert (content["items"], content["reason_stopped"], content["n_items"]) == ([], "budget: 6 items", 6)


def test_a_stopped_session_is_extended(run, journal):
    play(run, journal)
    done = run("session", "extend", journal, "--max-items", 8)
    assert (done.code, done.out) == (0, "")
    assert "The budget is now 8 items" in done.err
    assert len(ids(run, journal, "-n", 5)) == 2
    lower = run("session", "extend", journal, "--max-items", 7)
    assert lower.code == 2
    assert "must be raised above 8 items, got 7" in lower.err


def test_exit_code_says_whether_the_precision_was_reached(run, bank_folder, tmp_path):
    for name, width, code in (("wide", 0.4, 0), ("narrow", 0.001, 3)):
        journal = tmp_path / name
        start = ("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--half-width", width)
        run.ok(*start, *LIMIT, *FAST)
        run.ok("session", "status", journal)
        assert play(run, journal, "-n", 2) == code
        outcome = run("session", "status", journal, "--format", "json")
        assert outcome.code == code
        assert outcome.json["is_precise"] is (code == 0)
        run.ok("session", "tell", journal, "math/0", "--response", 1)


def test_a_precise_session_asks_nothing_new_but_ends_what_it_began(run, bank_folder, tmp_path):
    journal = tmp_path / "j"
    run("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--half-width", 0.4, *FAST)
    asked = ids(run, journal, "-n", 30)
    for item in asked[:-1]:
        run("session", "tell", journal, item, "--response", response_to(item))
    assert run.json("session", "status", journal)["is_precise"]
    outcome = run("session", "ask", journal, "--new", "--format", "ids")
    assert (outcome.code, outcome.out) == (0, "")
    assert "Stopped: the goal of ±0.4 (40 points) was reached" in outcome.err
    assert ids(run, journal, "-n", 5) == asked[-1:]
    run("session", "tell", journal, asked[-1], "--failed")
    assert ids(run, journal) == []


def test_status_changes_nothing_and_shows_costs_and_scores(run, journal):
    run("session", "tell", journal, "math/0", "--response", 1, "--cost", "seconds=2.5")
    before = journal.read_bytes()
    outcome = run("session", "status", journal)
    assert journal.read_bytes() == before
    for text in ("new/model", "2.5 seconds", "95 % interval", "1/60"):
        assert text in outcome.out


def test_status_works_while_the_session_is_open_and_telling_does_not(run, journal, monkeypatch):
    monkeypatch.setattr("itembank.cli.session.WAIT", 0.0)
    with Journal.open(journal):
        run.ok("session", "status", journal)
        for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1)):
            outcome = run("session", *arguments)
            assert (outcome.code, outcome.out) == (1, "")
            assert "another process" in outcome.err


@pytest.mark.parametrize(
    ("batch", "options", "rare"),
    [
        (4, (*LIMIT, "--half-width", 0.05), None),
        (4, ("--max-items", 9), 'criterion = "random"\nseed = 11'),
        (4, ("--max-items", 8, "--half-width", 0.1), "constraints.at_least = 1"),
        (1, ("--cost", "output_tokens", "--max-cost", "output_tokens=600"), 'criterion = "d-optimal"\nn_start = 2'),
    ],
)
def test_a_loop_over_a_recorded_model_ends_with_the_numbers_of_replay(run, bank_folder, tmp_path, batch, options, rare):
    options = options if rare is None else (*options, *session_file(tmp_path, rare))
    recorded = make_bank(n_items=60, with_extras=True, n_models=3, seed=8).responses.take(models=np.array([1]))
    write_responses(recorded, tmp_path / "recorded.parquet")
    replayed = run("replay", bank_folder, tmp_path / "recorded.parquet", *options, "--batch", batch, "--format", "json")
    journal = tmp_path / "j"
    run.ok("session", "start", bank_folder, "-o", journal, "--model-id", recorded.model_ids[0], *options)
    column = {item: place for place, item in enumerate(recorded.item_ids)}
    while True:
        asked = run("session", "ask", journal, "-n", batch, "--new", "--format", "ids")
        if asked.code or not asked.out:
            break
        for item in asked.out.splitlines():
            response = recorded.responses[0, column[item]]
            if np.isnan(response):  # nothing was run, and nothing was spent
                run.ok("session", "tell", journal, item, "--failed", "--cost", "output_tokens=0")
                continue
            trials = int(recorded.n_trials[0, column[item]])
            cost = f"output_tokens={recorded.costs['output_tokens'][0, column[item]]}"
            told = ("--correct", round(response * trials), "--trials", trials, "--cost", cost)
            run.ok("session", "tell", journal, item, *told)
    assert asked.code == replayed.code
    status = run("session", "status", journal, "--format", "json").json
    rows = replayed.json["rows"]
    shared = ("target", "estimate", "low", "high", "standard_error", "n_items", "n_total")
    assert [{name: row[name] for name in shared} for row in status["scores"]] == [
        {name: row[name] for name in shared} for row in rows
    ]
    for name in ("reason_stopped", "is_precise"):
        assert {row[name] for row in rows} == {status[name]}
    if "--cost" in options:
        assert rows[0]["cost"] == status["costs"]["output_tokens"]
