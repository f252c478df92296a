"""A bank, a session that has just begun, and standard input."""

import io
import sys

import pytest

from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST, LIMIT


@pytest.fixture
def bank_folder(tmp_path):
    make_bank(n_items=60, with_extras=True).save(tmp_path / "bank")
    return tmp_path / "bank"


@pytest.fixture
def stdin(monkeypatch):
    def put(content):
        content = content.encode() if isinstance(content, str) else content
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


@pytest.fixture
def journal(run, bank_folder, tmp_path):
    options = ("--model-id", "new/model", *LIMIT, *FAST)
    outcome = run("session", "start", bank_folder, "-o", tmp_path / "run.jsonl", *options)
    assert (outcome.code, outcome.out) == (0, "")
    return tmp_path / "run.jsonl"
