"""`itembank report`: one page of a bank."""

import pytest

from itembank.bank.bank_files import save_bank
from itembank.banks import start
from itembank.cli.options import typed_command
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("without_library")


def test_writes_the_page_of_a_bank(run, bank_folder, tmp_path):
    page = tmp_path / "bank.html"
    outcome = run("report", bank_folder, "-o", page)
    assert (outcome.code, outcome.out) == (0, "")
    assert f"Report: {page}" in outcome.err
    text = page.read_text(encoding="utf-8")
    assert "questions give an interval of" in text
    assert f"itembank report {bank_folder} -o {page}" in text


def test_a_bank_without_past_models_has_a_page_that_says_how_good_estimates_are(run, tmp_path):
    save_bank(start(make_bank().responses.items), tmp_path / "none")
    run.ok("report", tmp_path / "none", "-o", tmp_path / "none.html")
    assert "questions give an interval of" in (tmp_path / "none.html").read_text(encoding="utf-8")


def test_a_name_that_no_page_has_is_refused_before_any_work(run, bank_folder, monkeypatch):
    monkeypatch.setattr("itembank.load_bank", lambda _: pytest.fail("loaded"))
    outcome = run("report", bank_folder, "-o", "bank.pdf")
    assert outcome.code == 2
    assert "must end in .html" in outcome.err


def test_the_command_of_a_page_names_files_of_letters_that_cannot_be_seen(monkeypatch):
    monkeypatch.setattr("sys.argv", ["itembank", "report", "a b\n", "ü"])
    assert typed_command() == "itembank report $'a b\\x0a' 'ü'"
