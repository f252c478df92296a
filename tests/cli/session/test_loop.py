"""`itembank session`: a loop that any shell can run, and when it stops."""

import json
import shlex

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.sessions.journal import Journal, read_journal
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.cli.session.loops import FAST, LIMIT, ids, play, session_file
from tests.sessions.session_worker import response_to
from tests.sessions.simulated import model_based


def test_a_loop_ends_with_the_numbers_of_a_session_in_python(run, bank_folder, journal):
    assert play(run, journal) == 0
    session = model_based(ib.load_bank(bank_folder), budget=ib.Budget(6), model_id="new/model")
    while items := session.ask():
        session.tell(items[0], response_to(items[0]))
    status = run.json("session", "status", journal)
    assert status["scores"] == session.estimate().scores.rows()
    assert status["ability"] == session.estimate().theta.tolist()
    assert (status["n_items"], status["reason_stopped"]) == (6, "budget: 6 items")
    value, low, high = (100.0 * status["scores"][-1][name] for name in ("estimate", "low", "high"))
    said = f"Score {value:.1f} ± {0.5 * (high - low):.1f} points from 6 of 60 items. Stopped by the budget of 6 items"
    assert run("session", "status", journal).out.startswith(said)


def test_asks_the_same_again_until_told(run, journal):
    three = ids(run, journal, "-n", 3)
    assert (len(set(three)), ids(run, journal), ids(run, journal, "-n", 5)) == (3, three[:1], three)
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
    items = ib.load_bank(bank_folder).responses.items
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
    holds(outcome.err, "Stopped by the budget of 6 items", "Asked and not answered yet: 6.")
    assert ids(run, journal, "-n", 9) == asked


def test_a_stopped_session_asks_nothing_until_it_is_extended(run, journal):
    assert play(run, journal) == 0
    content = run("session", "ask", journal).json
    assert (content["items"], content["reason_stopped"], content["n_items"]) == ([], "budget: 6 items", 6)
    play(run, journal)
    done = run("session", "extend", journal, "--max-items", 8)
    assert (done.code, done.out) == (0, "")
    assert "The budget is now 8 items" in done.err
    assert len(ids(run, journal, "-n", 5)) == 2
    run.fails(2, "must be raised above 8 items, got 7", "session", "extend", journal, "--max-items", 7)


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
    (score,) = (row for row in run.json("session", "status", journal)["scores"] if row["target"] == "overall")
    half = f"{50.0 * (score['high'] - score['low']):.1f}"
    assert f"Stopped: the goal of ±0.4 (40 points) was reached, the half-width is {half} points." in outcome.err
    assert ids(run, journal, "-n", 5) == asked[-1:]
    run("session", "tell", journal, asked[-1], "--failed")
    assert ids(run, journal) == []


def test_status_changes_nothing_and_works_while_the_session_is_open(run, journal, monkeypatch):
    run("session", "tell", journal, "math/0", "--response", 1, "--cost", "seconds=2.5")
    before, outcome = journal.read_bytes(), run("session", "status", journal)
    assert journal.read_bytes() == before
    for text in ("new/model", "2.5 seconds", "95 % interval", "1/60"):
        assert text in outcome.out
    monkeypatch.setattr("itembank.cli.session.WAIT", 0.0)
    with Journal.open(journal):
        run.ok("session", "status", journal)
        for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1)):
            run.fails(1, "another process", "session", *arguments)


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
    ib.write_responses(recorded, tmp_path / "recorded.parquet")
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
    status, rows = run("session", "status", journal, "--format", "json").json, replayed.json["rows"]
    shared = ("target", "estimate", "low", "high", "standard_error", "n_items", "n_total")
    assert [{name: row[name] for name in shared} for row in status["scores"]] == [
        {name: row[name] for name in shared} for row in rows
    ]
    for name in ("reason_stopped", "is_precise"):
        assert {row[name] for row in rows} == {status[name]}
    if "--cost" in options:
        assert rows[0]["cost"] == status["costs"]["output_tokens"]


def test_tells_responses_counts_costs_failures_and_corrections(run, journal):
    asked = ids(run, journal, "-n", 3)
    run("session", "tell", journal, asked[0], "--response", 0.25, "--cost", "seconds=1.5", "--cost", "output_tokens=7")
    run("session", "tell", journal, asked[1], "--correct", 3, "--trials", 4)
    run("session", "tell", journal, asked[2], "--failed", "--again")
    run("session", "tell", journal, asked[0], "--response", 0.5)
    run("session", "tell", journal, "law/59", "--failed")
    events = [dict(event) for event in read_journal(journal).events[1:]]
    told = {"event": "told", "costs": {}, "was_asked": True, "is_correction": False}
    failed = {"event": "failed", "reason": "", "costs": {}}
    assert events == [
        {**told, "item_id": asked[0], "response": 0.25, "costs": {"seconds": 1.5, "output_tokens": 7.0}},
        {**told, "item_id": asked[1], "response": 0.75, "n_correct": 3, "n_trials": 4},
        {**failed, "item_id": asked[2], "again": True},
        {**told, "item_id": asked[0], "response": 0.5, "is_correction": True},
        {**failed, "item_id": "law/59", "again": False},
    ]


def test_tells_many_at_once(run, journal, stdin):
    asked = ids(run, journal, "-n", 3)
    stdin("\n".join(json.dumps({"item_id": item, "response": 1, "costs": {"seconds": 2}}) for item in asked))
    content = run("session", "tell", journal, "-").json
    assert (content["told"], content["n_items"], content["n_pending"]) == (asked, 3, 0)
    assert content["costs"] == {"seconds": 6.0}


@pytest.mark.parametrize(
    "content",
    ["", '{"item_id": "math/0", "response": 1}\nnonsense', '{"item_id": "unheard", "response": 1}', b"\xff\xfe"],
)
def test_of_many_answers_all_or_none_are_told(run, journal, stdin, content):
    before = journal.read_bytes()
    stdin(content)
    outcome = run("session", "tell", journal, "-")
    assert (outcome.code, outcome.out, journal.read_bytes()) == (1, "", before)
    assert outcome.err.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("", 2, "which ITEM"),
        ("math/0", 2, "Give one of"),
        ("math/0 --response 1 --failed", 2, "Give one of"),
        ("math/0 --correct 1", 2, "belong together"),
        ("math/0 --response 1 --again", 2, "--again belongs to --failed"),
        ("math/0 --response 1 --cost 7", 2, "UNIT=AMOUNT"),
        ("math/0 --response 1 --cost seconds=-7", 1, "number from 0 to 1e+15"),
        ("math/0 --response 1 --cost seconds=nan", 1, "number from 0 to 1e+15"),
        ("math/0 --response 1 --cost tokens=1e308", 1, "number from 0 to 1e+15, got 1e+308 tokens"),
        ("math/0 --failed --cost tokens=1.1e15", 1, "number from 0 to 1e+15"),
        ("math/0 --response 1.01", 1, "[0, 1]"),
        ("math/0 --response nan", 1, "[0, 1]"),
        ("math/0 --correct 2 --trials 1", 1, "n_correct"),
        ("unheard --response 1", 1, "'unheard'"),
        ("'' --response 1", 1, "item_id"),
        ("- --response 1", 2, "standard input"),
    ],
)
def test_a_bad_answer_changes_nothing(run, journal, arguments, code, message):
    before = journal.read_bytes()
    run.fails(code, message, "session", "tell", journal, *shlex.split(arguments))
    assert journal.read_bytes() == before


@pytest.mark.parametrize("is_many", [False, True])
def test_a_slip_in_a_unit_of_cost_is_refused_with_a_way_out_that_works(run, journal, stdin, is_many):
    def tell(*options):
        stdin(json.dumps({"item_id": "math/0", "response": 1, "costs": {"output_token": 3}}))
        alone = ("math/0", "--response", 1, "--cost", "output_token=3")
        return run("session", "tell", journal, *(("-",) if is_many else alone), *options)

    before, refused = journal.read_bytes(), tell()
    assert (refused.code, refused.out, journal.read_bytes()) == (1, "", before)
    assert "Did you mean 'output_tokens'? A unit that is meant to be new needs --new-units." in refused.err
    assert tell("--new-units").json["costs"] == {"output_token": 3.0}


def test_a_person_reads_the_score_first(run, journal):
    (item,) = ids(run, journal)
    told = run.ok("session", "tell", journal, item, "--response", 1, "--cost", "seconds=2", "--format", "table").out
    score = run.ok("session", "status", journal).out.splitlines()[0]
    assert told.splitlines()[0] == f"1 answer is kept. {score}"
    assert ("2 seconds spent" in told, "conclusion" in told) == (True, False)


def test_status_and_replay_say_how_typical_the_answers_are(run, fitted_bank, tmp_path, monkeypatch):
    journal = tmp_path / "run.jsonl"
    run.ok("session", "start", fitted_bank, "-o", journal, "--model-id", "new", *LIMIT)
    play(run, journal)
    monkeypatch.setattr("itembank.estimation.estimates.FLAGGED", 0.0)  # so that none is flagged
    found = run.json("session", "status", journal)
    assert 0.0 <= found["typicality"] <= 1.0
    assert {row["typicality"] for row in found["scores"]} == {found["typicality"]}
    assert found["method"] in {"p-irt", "stacked"}
    answers = tmp_path / "answers.parquet"
    run.ok("import", journal, "-o", answers)
    monkeypatch.setattr("itembank.estimation.estimates.FLAGGED", 1.0)  # so that every model is flagged
    told = run("session", "status", journal)
    assert f"{found['typicality']:.4f}" in told.out
    assert "'new': answered unlike nearly all of the" in told.err
    scores = run.json("session", "status", journal)["scores"]
    assert (found["scores"][0]["note"], "drawn by `select` would settle it" in scores[0]["note"]) == ("", True)
    replayed = run("replay", fitted_bank, answers, *LIMIT)
    assert f"{found['typicality']:.2f}" in replayed.out
    assert "'new': answered unlike nearly all of the" in replayed.err
