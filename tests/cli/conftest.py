import sys
from dataclasses import dataclass

import pytest

from itembank.cli.main import main
from itembank.data.bank_files import save_bank
from tests.data.banks import make_bank


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process, as its entry point does."""

    def run_command(*arguments):
        monkeypatch.setattr(sys, "argv", ["itembank", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def bank_folder(tmp_path):
    """A small bank of three scenarios on disk."""
    save_bank(make_bank(), tmp_path / "bank")
    return tmp_path / "bank"
