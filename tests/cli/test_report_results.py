import re

import numpy as np
import pytest

from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(autouse=True)
def _without_the_library(monkeypatch):
    """Leave out the library that draws charts, which takes seconds to bundle."""
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")


@pytest.fixture
def new(tmp_path):
    """Two models that answered 20 of 30 items."""
    bank = make_bank()
    values = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    matrix = ResponseMatrix.create(values, model_ids=["new/a", "new/b"], items=bank.responses.items)
    write_responses(matrix.take(items=np.arange(20)), tmp_path / "new.parquet")
    return tmp_path / "new.parquet"


@pytest.fixture
def journal(run, fitted_bank, tmp_path):
    path = tmp_path / "run.jsonl"
    options = ("--model-id", "new/model", "--max-items", 3, *FAST)
    assert run("session", "start", fitted_bank, "-o", path, *options).code == 0
    for response in (1, 0):
        item = run("session", "ask", path, "--format", "ids").out.strip()
        assert run("session", "tell", path, item, "--response", response).code == 0
    return path


def words(path):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8")))


def test_an_estimate_writes_the_same_numbers_into_its_page(run, fitted_bank, new, tmp_path):
    page = tmp_path / "page.html"
    estimate = ("estimate", fitted_bank, new, "--method", "p-irt", "--interval", "model-based")
    plain = run(*estimate)
    assert plain.err.count("--report FILE.html") == 1
    assert "--report" not in run(*estimate, "--format", "json").err
    assert "--report" not in run(*estimate, "--quiet").err
    written = run(*estimate, "--report", page)
    assert written.out == plain.out
    assert f"Report: {page}" in written.err
    assert "FILE.html" not in written.err
    first = next(line for line in plain.out.splitlines() if "new/a" in line and "overall" in line)
    assert f"{100 * float(first.split()[2]):.1f} %" in words(page)
    assert f"itembank estimate {fitted_bank} {new}" in words(page)


def test_a_journal_makes_a_page(run, journal, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", journal, "-o", page, "--title", "Ours").code == 0
    assert "Going on" in words(page)
    assert "Ours" in words(page)
    assert "new/model" in words(page)
    assert f"itembank report {journal} -o session.html" in run("session", "status", journal).err


@pytest.mark.parametrize(
    ("words_given", "reason"),
    [
        (("{bank}", "--bank", "{bank}"), "--bank goes with a journal of a session"),
        (("{journal}", "--no-accuracy"), "--accuracy goes with a bank"),
        (("{new}",), "must be a bank's folder or the journal of a session"),
    ],
)
def test_what_does_not_go_together_is_refused(run, fitted_bank, new, journal, tmp_path, words_given, reason):
    given = [one.format(bank=fitted_bank, new=new, journal=journal) for one in words_given]
    outcome = run("report", *given, "-o", tmp_path / "page.html")
    assert outcome.code == 2
    assert reason in outcome.err
    assert not (tmp_path / "page.html").exists()
