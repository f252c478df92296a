"""A served session does what the commands do, request by request."""

import json

import pytest

from tests.cli.session.loops import LIMIT


def served(run, stdin, journal, *requests):
    stdin("\n".join(one if isinstance(one, str) else json.dumps(one) for one in requests))
    outcome = run("session", "serve", journal)
    return [json.loads(line) for line in outcome.out.splitlines()], outcome


def test_requests_do_what_the_commands_do(run, stdin, journal, bank_folder, tmp_path):
    (asked,), _ = served(run, stdin, journal, {"request": "ask", "n": 2, "id": 7})
    assert asked["id"] == 7
    again = run("session", "ask", journal, "-n", "2").json
    assert [one["item_id"] for one in again["items"]] == [one["item_id"] for one in asked["items"]]

    first, second = (one["item_id"] for one in asked["items"])
    answers = [{"item_id": first, "response": 1}, {"item_id": second, "response": 0}]
    (told, scores), _ = served(run, stdin, journal, {"request": "tell", "answers": answers}, {"request": "scores"})
    assert told["told"] == [first, second]
    assert told["n_items"] == 2
    status = run.json("session", "status", journal)
    assert scores["scores"] == status["scores"]

    other = tmp_path / "other.jsonl"
    run("session", "start", bank_folder, "-o", other, "--model-id", "new/model", *LIMIT)
    stdin("\n".join(json.dumps(one) for one in answers))
    run("session", "tell", other, "-")
    kept = run.json("session", "status", other)
    assert [one["estimate"] for one in kept["scores"]] == [one["estimate"] for one in scores["scores"]]


def test_a_whole_session_ends_and_says_so(run, stdin, journal):
    asked, facts = None, {}
    for _ in range(20):
        lines = [{"request": "tell", "answers": [{"item_id": asked, "response": 1}]}] if asked else []
        replies, _ = served(run, stdin, journal, *lines, {"request": "ask"})
        facts = replies[-1]
        if not facts["items"]:
            break
        asked = facts["items"][0]["item_id"]
    assert facts["reason_stopped"].startswith("budget")


@pytest.mark.parametrize(
    ("request_line", "message"),
    [
        ("{", "must be a JSON object on one line"),
        ("[1]", "whose request is one of 'ask', 'tell', 'scores'"),
        ('{"request": "aks"}', "whose request is one of"),
        ('{"request": "ask", "m": 2}', "may have 'id', 'n', 'only_new', got 'm' too"),
        ('{"request": "ask", "n": 0}', "n must be a whole number >= 1"),
        ('{"request": "ask", "only_new": 1}', "only_new must be true or false"),
        ('{"request": "tell", "answers": {}}', "answers must be a list"),
        (
            '{"request": "tell", "answers": [{"item_id": "math/0", "response": 1, "costs": {"tokens": 1e308}}]}',
            "from 0 to 1e+15",
        ),
        (f'{{"request": "ask", "id": {"[" * 900}{"]" * 900}}}', "at most 100 lists or objects within each other"),
        (f'{{"request": "ask", "n": {"[" * 900}{"]" * 900}}}', "at most 100"),
        (f'{{"request": "tell", "answers": [{"[" * 900}{"]" * 900}]}}', "at most 100"),
        ('{"request": "tell", "answers": [{"item_id": "nowhere", "response": 1}]}', "nowhere"),
        ('{"request": "tell", "answers": [{"item_id": "i1", "response": 7}]}', "must"),
    ],
)
def test_what_is_wrong_is_said_and_the_session_goes_on(run, stdin, journal, request_line, message):
    (refused, asked), outcome = served(run, stdin, journal, request_line, {"request": "ask"})
    assert message in refused["error"]
    assert refused["n_items"] == 0
    assert asked["items"]
    assert outcome.code == 0


def test_an_id_comes_back_as_it_was(run, stdin, journal):
    (reply,), _ = served(run, stdin, journal, {"request": "ask", "id": {"a": [1, [None, "b"]]}})
    assert reply["id"] == {"a": [1, [None, "b"]]}
