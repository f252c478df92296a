"""The page on sessions runs as it stands: Python blocks in this process, shell blocks in bash, in their order."""

import re
from pathlib import Path

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.sessions.journal import read_journal
from itembank.sessions.journal_sessions import open_session, read_session, start_session
from itembank.sessions.limits import Budget
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.docs.blocks import blocks, in_bash

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sessions.md"
BLOCKS = blocks(PAGE.read_text(encoding="utf-8"))


def asked(journal):
    return [event["item_ids"] for event in read_journal(journal).events if event["event"] == "asked"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")  # some of the built-in models answer alike
def test_the_page_runs_and_its_two_loops_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "example"}, []
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, "sessions.md", "exec"), namespace)  # noqa: S102
        elif language == "sh":
            printed.append(in_bash(code))
    shell, python = read_session("run.jsonl"), read_session("python.jsonl")
    assert shell.reason_stopped == python.reason_stopped is not None
    assert asked("run.jsonl") == asked("python.jsonl")
    found, other = shell.estimate().scores, python.estimate().scores
    for name in ("value", "low", "high"):  # two processes may place arrays otherwise, which moves the last digits
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-9)
    assert f"Score {100.0 * shell.estimate().scores.rows()[-1]['estimate']:.1f} ±" in printed[1]
    assert printed[-1].count('"event":"told"') == 3
    known = namespace["response"]
    assert {item: answer.response for item, answer in shell.told.items()} == {item: known[item] for item in shell.told}


def test_the_loop_of_the_page_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    """On a small bank: one item is told, two are in hand, when the loop begins again; each turn starts programs."""
    monkeypatch.chdir(tmp_path)
    save_bank(make_bank(), tmp_path / "bank")
    bank = load_bank(tmp_path / "bank")
    with start_session(tmp_path / "run.jsonl", bank, SessionSpec(budget=Budget(3)), model_id="m") as session:
        first = session.ask(3)
        session.tell(first[0], 1.0)
    rows = [f'"{item}",{number % 2},0.5' for number, item in enumerate(bank.item_ids)]
    (tmp_path / "new-model.csv").write_text("\n".join(["item_id,response,seconds", *rows]))
    shell = [code for language, code in BLOCKS if language == "sh"]
    loop = re.search(r"^while .*^done$", shell[1], flags=re.MULTILINE | re.DOTALL)[0]
    in_bash(shell[0] + loop)
    with open_session(tmp_path / "run.jsonl", bank) as session:
        assert (session.reason_stopped, session.pending, session.n_items) == ("budget: 3 items", (), 3)
        assert set(first) == set(session.told)
        assert session.costs == {"seconds": 1.0}
