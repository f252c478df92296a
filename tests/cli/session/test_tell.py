"""`itembank session tell`: answers one by one and many at once, good and bad."""

import json

import pytest

from itembank.sessions.journal import read_journal
from tests.cli.session.loops import ids


def test_tells_responses_counts_costs_failures_and_corrections(run, journal):
    asked = ids(run, journal, "-n", 3)
    run("session", "tell", journal, asked[0], "--response", 0.25, "--cost", "seconds=1.5", "--cost", "output_tokens=7")
    run("session", "tell", journal, asked[1], "--correct", 3, "--trials", 4)
    run("session", "tell", journal, asked[2], "--failed", "--again")
    run("session", "tell", journal, asked[0], "--response", 0.5)
    run("session", "tell", journal, "law/59", "--failed")
    events = [dict(event) for event in read_journal(journal).events[1:]]
    assert events == [
        {
            "event": "told",
            "item_id": asked[0],
            "response": 0.25,
            "costs": {"seconds": 1.5, "output_tokens": 7.0},
            "was_asked": True,
            "is_correction": False,
        },
        {
            "event": "told",
            "item_id": asked[1],
            "response": 0.75,
            "n_correct": 3,
            "n_trials": 4,
            "costs": {},
            "was_asked": True,
            "is_correction": False,
        },
        {"event": "failed", "item_id": asked[2], "again": True, "reason": "", "costs": {}},
        {"event": "told", "item_id": asked[0], "response": 0.5, "costs": {}, "was_asked": True, "is_correction": True},
        {"event": "failed", "item_id": "law/59", "again": False, "reason": "", "costs": {}},
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
        ((), 2, "which ITEM"),
        (("math/0",), 2, "Give one of"),
        (("math/0", "--response", "1", "--failed"), 2, "Give one of"),
        (("math/0", "--correct", "1"), 2, "belong together"),
        (("math/0", "--response", "1", "--again"), 2, "--again belongs to --failed"),
        (("math/0", "--response", "1", "--cost", "7"), 2, "UNIT=AMOUNT"),
        (("math/0", "--response", "1", "--cost", "seconds=-7"), 1, "number from 0 to 1e+15"),
        (("math/0", "--response", "1", "--cost", "seconds=nan"), 1, "number from 0 to 1e+15"),
        (("math/0", "--response", "1", "--cost", "tokens=1e308"), 1, "number from 0 to 1e+15, got 1e+308 tokens"),
        (("math/0", "--failed", "--cost", "tokens=1.1e15"), 1, "number from 0 to 1e+15"),
        (("math/0", "--response", "1.01"), 1, "[0, 1]"),
        (("math/0", "--response", "nan"), 1, "[0, 1]"),
        (("math/0", "--correct", "2", "--trials", "1"), 1, "n_correct"),
        (("unheard", "--response", "1"), 1, "'unheard'"),
        (("", "--response", "1"), 1, "item_id"),
        (("-", "--response", "1"), 2, "standard input"),
    ],
)
def test_a_bad_answer_changes_nothing(run, journal, arguments, code, message):
    before = journal.read_bytes()
    outcome = run("session", "tell", journal, *arguments)
    assert (outcome.code, outcome.out, journal.read_bytes()) == (code, "", before)
    assert message in outcome.err


@pytest.mark.parametrize("is_many", [False, True])
def test_a_slip_in_a_unit_of_cost_is_refused_with_a_way_out_that_works(run, journal, stdin, is_many):
    def tell(*options):
        stdin(json.dumps({"item_id": "math/0", "response": 1, "costs": {"output_token": 3}}))
        alone = ("math/0", "--response", 1, "--cost", "output_token=3")
        return run("session", "tell", journal, *(("-",) if is_many else alone), *options)

    before = journal.read_bytes()
    refused = tell()
    assert (refused.code, refused.out, journal.read_bytes()) == (1, "", before)
    assert "Did you mean 'output_tokens'? A unit that is meant to be new needs --new-units." in refused.err
    assert tell("--new-units").json["costs"] == {"output_token": 3.0}


def test_a_person_reads_the_score_first(run, journal):
    (item,) = ids(run, journal)
    told = run.ok("session", "tell", journal, item, "--response", 1, "--cost", "seconds=2", "--format", "table").out
    score = run.ok("session", "status", journal).out.splitlines()[0]
    assert told.splitlines()[0] == f"1 answer is kept. {score}"
    assert "2 seconds spent" in told
    assert "conclusion" not in told
