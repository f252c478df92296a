"""Results in a notebook: their pages' first pieces, or a table without the libraries of pages."""

import sys

import pytest

from itembank.data.responses import ResponseMatrix
from itembank.estimation.estimate import estimate
from itembank.pages.render import _environment
from tests.data.banks import make_bank


@pytest.fixture(scope="module")
def estimates():
    bank = make_bank()
    answers = bank.responses.responses[:2, :20]
    responses = ResponseMatrix.create(answers, model_ids=["<b>one</b>", "two"], item_ids=bank.item_ids[:20])
    return estimate(bank, responses, method="p-irt", interval="model-based")


def test_estimates_show_the_number_with_its_interval(estimates):
    shown = estimates._repr_html_().replace("\u00a0", " ")  # numbers keep to their unit
    assert "&lt;b&gt;one&lt;/b&gt;" in shown
    assert "<b>one" not in shown
    assert "95 % interval" in shown
    assert f"{100 * estimates.column('overall')[1]:.1f} %" in shown
    assert shown.count("<tr>") == 1 + len(estimates.rows())


def test_without_the_libraries_there_is_a_table(estimates, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _environment.cache_clear()
    shown = estimates._repr_html_()
    assert shown.startswith("<table><caption>ScoreEstimates")
    assert "&lt;b&gt;one" in shown
