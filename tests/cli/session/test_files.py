"""What sessions leave in files: exports, journals that moved or were damaged, odd ids, full disks."""

import errno
import json
import math
import os
import shutil

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataWarning
from itembank.readers.read import read_responses
from itembank.sessions.journal import read_journal
from tests.bank.banks import make_bank
from tests.cli.conftest import holds
from tests.cli.session.loops import FAST, LIMIT, ids, play, read_responses_of


def test_answers_are_imported_once_there_are_some(run, journal, tmp_path, bank_folder):
    run.fails(1, "got none", "import", journal, "-o", tmp_path / "a.parquet")
    play(run, journal)
    run("session", "tell", journal, "math/0", "--correct", 1, "--trials", 4, "--cost", "seconds=2")
    run.ok("import", journal, "-o", tmp_path / "answers.parquet", "--quiet")
    responses = read_responses([tmp_path / "answers.parquet"])
    assert responses.model_ids == ["new/model"]
    told = {event["item_id"]: event for event in read_journal(journal).events if event["event"] == "told"}
    assert set(responses.item_ids) == set(told)
    row = responses.responses[0]
    assert row.tolist() == [told[item]["response"] for item in responses.item_ids]
    place = responses.item_ids.index("math/0")
    assert (row[place], responses.n_trials[0, place], responses.costs["seconds"][0, place]) == (0.25, 4, 2.0)
    assert np.isnan(np.delete(responses.costs["seconds"][0], place)).all()
    words = ("--method", "p-irt", "--interval", "model-based")
    estimates = run.json("estimate", bank_folder, tmp_path / "answers.parquet", *words)
    assert estimates["rows"][-1]["n_items"] == len(told)


def test_failed_and_corrected_answers_are_not_imported(run, journal, tmp_path):
    run("session", "tell", journal, "math/0", "--response", 1)
    run("session", "tell", journal, "math/3", "--response", 1)
    run("session", "tell", journal, "math/3", "--response", 0)
    run("session", "tell", journal, "math/0", "--failed")
    run.ok("import", journal, "-o", tmp_path / "a.parquet")
    with pytest.warns(DataWarning, match="lost answers count as missing, not wrong: 1 of"):
        answers = read_responses([tmp_path / "a.parquet"])
    assert answers.item_ids == ["math/0", "math/3"]
    assert answers.responses[0].tolist() == pytest.approx([math.nan, 0.0], nan_ok=True)


def test_bank_and_journal_can_be_moved_together(run, bank_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    run.ok("session", "start", "bank", "-o", "runs/j", "--model-id", "m", *FAST)
    (tmp_path / "elsewhere").mkdir()
    shutil.move("bank", "elsewhere/bank")
    shutil.move("runs", "elsewhere/runs")
    assert len(ids(run, tmp_path / "elsewhere" / "runs" / "j")) == 1


def test_a_bank_that_has_moved_is_named_and_another_one_refused(run, journal, tmp_path, bank_folder):
    make_bank(seed=5).save(tmp_path / "other")
    before = journal.read_bytes()
    for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1), ("status", journal)):
        run.fails(1, "the bank it was started with", "session", *arguments, "--bank", tmp_path / "other")
    assert journal.read_bytes() == before
    bank_folder.rename(tmp_path / "moved")
    run.fails(1, "--bank", "session", "ask", journal)
    assert len(ids(run, journal, "--bank", tmp_path / "moved")) == 1


def test_a_torn_journal_goes_on_and_says_so(run, journal):
    first, whole = ids(run, journal), journal.read_bytes()
    run("session", "tell", journal, first[0], "--response", 1)
    journal.write_bytes(journal.read_bytes()[:-9])
    outcome = run("session", "ask", journal, "--format", "ids")
    assert (outcome.code, outcome.out.splitlines()) == (0, first)
    holds(outcome.err, "Warning: ", "torn")
    run("session", "tell", journal, first[0], "--response", 1)
    assert journal.read_bytes().startswith(whole)
    assert [event["event"] for event in read_journal(journal).events] == ["asked", "told"]


@pytest.mark.parametrize("command", [("session", "status"), ("import", "-o", "a.parquet")])
def test_looking_at_a_torn_journal_says_so_and_changes_nothing(run, journal, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("session", "tell", journal, ids(run, journal)[0], "--response", 1)
    torn = journal.read_bytes() + b'{"time":"20'
    journal.write_bytes(torn)
    holds(run.ok(*command, journal).err, "Warning: ", "torn")
    assert journal.read_bytes() == torn


def test_status_says_when_the_last_event_was(run, journal):
    def last_event():
        return run.json("session", "status", journal)["last_event"]

    assert last_event() is None
    ids(run, journal)
    assert last_event() == read_journal(journal).times[-1]


def test_a_damaged_journal_exits_4(run, journal):
    ids(run, journal)
    journal.write_bytes(journal.read_bytes().replace(b'"asked"', b'"ASKED"'))
    for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1), ("status", journal)):
        run.fails(4, "line 2", "session", *arguments)


def test_odd_ids_pass_through_and_drive_no_terminal(run, tmp_path, stdin):
    bank = make_bank(n_items=12)
    odd = ["-", "--help", "a b", "[red]x", "$(rm -rf /)", "../../etc", "日本", "q\x1b[31m", "'\"", "*", "%s", "\u2028"]
    bank.responses.items.replace_column(0, pl.Series("item_id", odd))
    bank.save(tmp_path / "bank")
    journal = tmp_path / "j"
    run("session", "start", tmp_path / "bank", "-o", journal, "--model-id", "\x1b[31mred [b]", *FAST)
    asked = run("session", "ask", journal, "-n", 12, "--format", "ids").out.split("\n")[:-1]
    assert sorted(asked) == sorted(odd)
    for item in asked[:6]:
        if item != "-":
            run.ok("session", "tell", journal, "--response", 1, "--", item)
    rest = ["-", *asked[6:]] if "-" in asked[:6] else asked[6:]
    stdin("\n".join(json.dumps({"item_id": item, "response": 0}) for item in rest))
    run.ok("session", "tell", journal, "-")
    outcome = run.ok("session", "status", journal)
    assert "\x1b" not in outcome.out + outcome.err
    assert len(read_responses_of(run, journal)) == 12


def test_an_id_with_a_line_break_does_not_stand_on_a_line(run, tmp_path):
    bank = make_bank(n_items=3)
    bank.responses.items.replace_column(0, pl.Series("item_id", ["a\nb", "c", "d"]))
    bank.save(tmp_path / "bank")
    run("session", "start", tmp_path / "bank", "-o", tmp_path / "j", "--model-id", "m", *FAST)
    run.fails(1, "--format json", "session", "ask", tmp_path / "j", "-n", 3, "--format", "ids")
    content = run("session", "ask", tmp_path / "j", "-n", 3).json
    assert sorted(item["item_id"] for item in content["items"]) == ["a\nb", "c", "d"]


def test_a_full_disk_loses_nothing(run, bank_folder, journal, tmp_path, stdin, monkeypatch):
    def refuse(handle, content, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    asked, before = ids(run, journal, "-n", 3), journal.read_bytes()
    answers = "\n".join(json.dumps({"item_id": item, "response": 1}) for item in asked)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        one = ("tell", journal, asked[0], "--response", 1)
        for arguments in (("ask", journal, "--new"), one, ("tell", journal, "-")):
            stdin(answers)
            outcome = run("session", *arguments)
            assert (outcome.code, outcome.out, journal.read_bytes()) == (1, "", before)
            assert "No space left on device" in outcome.err
        assert run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST).code == 1
        assert not (tmp_path / "j").exists()
    stdin(answers)
    assert run("session", "tell", journal, "-").json["told"] == asked


def served(run, stdin, journal, *requests):
    stdin("\n".join(one if isinstance(one, str) else json.dumps(one) for one in requests))
    outcome = run("session", "serve", journal)
    return [json.loads(line) for line in outcome.out.splitlines()], outcome


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


COSTLY = '{"item_id": "math/0", "response": 1, "costs": {"tokens": 1e308}}'


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
        (f'{{"request": "tell", "answers": [{COSTLY}]}}', "from 0 to 1e+15"),
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


def test_requests_do_what_the_commands_do_and_ids_come_back(run, stdin, journal, bank_folder, tmp_path):
    (asked,), _ = served(run, stdin, journal, {"request": "ask", "n": 2, "id": 7})
    assert asked["id"] == 7
    again = run("session", "ask", journal, "-n", "2").json
    assert [one["item_id"] for one in again["items"]] == [one["item_id"] for one in asked["items"]]
    first, second = (one["item_id"] for one in asked["items"])
    answers = [{"item_id": first, "response": 1}, {"item_id": second, "response": 0}]
    (told, scores), _ = served(run, stdin, journal, {"request": "tell", "answers": answers}, {"request": "scores"})
    assert (told["told"], told["n_items"]) == ([first, second], 2)
    assert scores["scores"] == run.json("session", "status", journal)["scores"]
    other = tmp_path / "other.jsonl"
    run("session", "start", bank_folder, "-o", other, "--model-id", "new/model", *LIMIT)
    stdin("\n".join(json.dumps(one) for one in answers))
    run("session", "tell", other, "-")
    kept = run.json("session", "status", other)
    assert [one["estimate"] for one in kept["scores"]] == [one["estimate"] for one in scores["scores"]]
    (reply,), _ = served(run, stdin, journal, {"request": "ask", "id": {"a": [1, [None, "b"]]}})
    assert reply["id"] == {"a": [1, [None, "b"]]}
