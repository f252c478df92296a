"""`itembank report`: one page of a bank."""

import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import start
from itembank.errors import DataError
from itembank.planning.accuracy import accuracy, kept_accuracy
from tests.bank.banks import make_bank


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """Leave the charts' library out of pages: to bundle it takes seconds."""
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")


def test_writes_the_page_of_a_bank_and_keeps_what_it_measured(run, bank_folder, tmp_path):
    page = tmp_path / "bank.html"
    outcome = run("report", bank_folder, "-o", page, "--title", "Mine & yours")
    assert (outcome.code, outcome.out) == (0, "")
    assert f"Report: {page}" in outcome.err
    text = page.read_text(encoding="utf-8")
    assert "Mine &amp; yours" in text
    assert "intervals cover the true score of" in text
    assert f"itembank report {bank_folder} -o {page}" in text
    assert kept_accuracy(load_bank(bank_folder)) is not None


def test_measures_nothing_when_told_so(run, bank_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.planning.accuracy._measured", lambda *_: pytest.fail("measured"))
    folder = tmp_path / "other"
    save_bank(make_bank(seed=5), folder)
    outcome = run.ok("report", folder, "-o", tmp_path / "bank.html", "--no-accuracy")
    assert "The page does not say how good estimates are: --no-accuracy was given." in outcome.err
    few = tmp_path / "few"
    save_bank(start(make_bank().responses.items), few)
    assert "too few past models" in run("report", few, "-o", tmp_path / "few.html").err


def test_a_bank_that_cannot_be_measured_has_a_page_all_the_same(run, tmp_path, monkeypatch):
    save_bank(make_bank(seed=6), tmp_path / "bank")

    def refuse(*_, **__):
        raise DataError("no item is left.")

    monkeypatch.setattr("itembank.planning.accuracy.accuracy", refuse)
    outcome = run.ok("report", tmp_path / "bank", "-o", tmp_path / "bank.html")
    assert "The page does not say how good estimates are: no item is left." in outcome.err
    assert (tmp_path / "bank.html").is_file()


def test_takes_what_was_measured_before(run, bank_folder, tmp_path):
    accuracy(load_bank(bank_folder))
    outcome = run("report", bank_folder, "-o", tmp_path / "bank.html", "--no-accuracy")
    assert "Without" not in outcome.err
    assert "intervals cover the true score of" in (tmp_path / "bank.html").read_text(encoding="utf-8")


def test_a_name_that_no_page_has_is_refused_before_any_work(run, bank_folder, monkeypatch):
    monkeypatch.setattr("itembank.load_bank", lambda _: pytest.fail("loaded"))
    outcome = run("report", bank_folder, "-o", "bank.pdf")
    assert outcome.code == 2
    assert "must end in .html" in outcome.err
