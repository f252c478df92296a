"""What sessions leave in files: exports, journals that moved or were damaged, odd ids, full disks."""

import errno
import json
import math
import os
import shutil

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import save_bank
from itembank.errors import DataWarning
from itembank.readers.read import read_responses
from itembank.sessions.journal import read_journal
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST, ids, play, read_responses_of


def test_exports_answers_that_estimate_reads(run, bank_folder, journal, tmp_path):
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


def test_a_journal_without_answers_is_refused(run, journal, tmp_path):
    outcome = run("import", journal, "-o", tmp_path / "a.parquet")
    assert outcome.code == 1
    assert "got none" in outcome.err


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


def test_a_bank_that_has_moved_is_named(run, bank_folder, journal, tmp_path):
    bank_folder.rename(tmp_path / "moved")
    outcome = run("session", "ask", journal)
    assert (outcome.code, outcome.out) == (1, "")
    assert "--bank" in outcome.err
    assert len(ids(run, journal, "--bank", tmp_path / "moved")) == 1


def test_another_bank_is_refused(run, journal, tmp_path):
    save_bank(make_bank(seed=5), tmp_path / "other")
    before = journal.read_bytes()
    for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1), ("status", journal)):
        outcome = run("session", *arguments, "--bank", tmp_path / "other")
        assert (outcome.code, outcome.out) == (1, "")
        assert "the bank it was started with" in outcome.err
    assert journal.read_bytes() == before


def test_a_torn_journal_goes_on_and_says_so(run, journal):
    first = ids(run, journal)
    whole = journal.read_bytes()
    run("session", "tell", journal, first[0], "--response", 1)
    journal.write_bytes(journal.read_bytes()[:-9])
    outcome = run("session", "ask", journal, "--format", "ids")
    assert (outcome.code, outcome.out.splitlines()) == (0, first)
    assert "Warning: " in outcome.err
    assert "torn" in outcome.err
    run("session", "tell", journal, first[0], "--response", 1)
    assert journal.read_bytes().startswith(whole)
    assert [event["event"] for event in read_journal(journal).events] == ["asked", "told"]


@pytest.mark.parametrize("command", [("session", "status"), ("import", "-o", "a.parquet")])
def test_looking_at_a_torn_journal_says_so_and_changes_nothing(run, journal, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("session", "tell", journal, ids(run, journal)[0], "--response", 1)
    torn = journal.read_bytes() + b'{"time":"20'
    journal.write_bytes(torn)
    outcome = run.ok(*command, journal)
    assert "Warning: " in outcome.err
    assert "torn" in outcome.err
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
        outcome = run("session", *arguments)
        assert (outcome.code, outcome.out) == (4, "")
        assert "line 2" in outcome.err


def test_odd_ids_pass_through_and_drive_no_terminal(run, tmp_path, stdin):
    bank = make_bank(n_items=12)
    odd = ["-", "--help", "a b", "[red]x", "$(rm -rf /)", "../../etc", "日本", "q\x1b[31m", "'\"", "*", "%s", "\u2028"]
    bank.responses.items.replace_column(0, pl.Series("item_id", odd))
    save_bank(bank, tmp_path / "bank")
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
    save_bank(bank, tmp_path / "bank")
    run("session", "start", tmp_path / "bank", "-o", tmp_path / "j", "--model-id", "m", *FAST)
    outcome = run("session", "ask", tmp_path / "j", "-n", 3, "--format", "ids")
    assert (outcome.code, outcome.out) == (1, "")
    assert "--format json" in outcome.err
    content = run("session", "ask", tmp_path / "j", "-n", 3).json
    assert sorted(item["item_id"] for item in content["items"]) == ["a\nb", "c", "d"]


def test_a_full_disk_loses_nothing_and_the_same_command_works_once_there_is_room(
    run, bank_folder, journal, tmp_path, stdin, monkeypatch
):
    def refuse(handle, content, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    asked = ids(run, journal, "-n", 3)
    before = journal.read_bytes()
    answers = "\n".join(json.dumps({"item_id": item, "response": 1}) for item in asked)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        for arguments in (
            ("ask", journal, "--new"),
            ("tell", journal, asked[0], "--response", 1),
            ("tell", journal, "-"),
        ):
            stdin(answers)
            outcome = run("session", *arguments)
            assert (outcome.code, outcome.out, journal.read_bytes()) == (1, "", before)
            assert "No space left on device" in outcome.err
        outcome = run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST)
        assert outcome.code == 1
        assert not (tmp_path / "j").exists()
    stdin(answers)
    assert run("session", "tell", journal, "-").json["told"] == asked
