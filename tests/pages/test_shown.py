"""Results in a notebook: their pages' first pieces, or a table without the libraries of pages."""

import sys

import numpy as np
import pytest

import itembank as ib
from itembank.auditing.item_audit import audit_items
from itembank.bank.selections import Selection
from itembank.comparison.compare import compare
from itembank.errors import ParameterError
from itembank.estimation.estimate import estimate
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_page
from itembank.pages.comparison_page import comparison_page
from itembank.pages.render import _environment
from itembank.responses.responses import ResponseMatrix
from itembank_studies.charts.paper_charts import dimensionality_chart
from itembank_studies.papers.dimensions import dimensionality
from itembank_studies.papers.task_overview import task_overview
from tests.bank.banks import make_bank
from tests.estimation.simulated import shared_bank


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
    assert f"{100 * estimates.column('overall')[1]:.1f} points" in shown
    assert shown.count("<tr>") == 1 + len(estimates.rows())


def test_without_the_libraries_there_is_a_table(estimates, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _environment.cache_clear()
    shown = estimates._repr_html_()
    assert shown.startswith("<table><caption>ScoreEstimates")
    assert "&lt;b&gt;one" in shown


def test_a_bank_shows_what_it_holds_and_the_page_that_its_function_makes():
    bank = make_bank()
    shown = bank._repr_html_().replace("\u00a0", " ")
    assert ">30</p>" in shown
    assert "12" in shown
    assert all(name in shown for name in bank.targets.scenarios)
    assert shown.count("<img") == shown.count('<img src="data:image/svg+xml;base64,') == 1
    page = ib.show(bank)
    assert page.title == bank_page(bank).title
    assert [one.title for one in page.sections] == [one.title for one in bank_page(bank).sections]
    assert ib.show(bank, title="Ours").title == "Ours"


def test_an_audit_begins_as_its_page_does():
    rng = np.random.default_rng(3)
    ability, difficulty = rng.normal(size=(40, 1)), rng.normal(size=25)
    right = (rng.random((40, 25)) < 1.0 / (1.0 + np.exp(difficulty - ability))).astype(float)
    right[:, 3] = 1.0 - right[:, 3]
    items = [f"<i>{k}" for k in range(25)]
    audit = audit_items(ResponseMatrix.create(right, item_ids=items), duplicates=False)
    shown = audit._repr_html_()
    assert "<i>" not in shown
    page = audit_page(audit)
    assert page.lead[1].answers[0].label in shown
    assert shown.count("<table") == 1


def test_a_plan_shows_its_answer_and_its_table():
    found = ib.plan(shared_bank(), half_width=0.2, max_items=20)
    page = ib.show(found)
    assert page.lead[0].text == found.message
    shown = found._repr_html_()
    assert shown.count("<table") == 1


def test_a_selection_shows_ten_items_with_weights_and_its_whole_explanation():
    why = "auto: random. " + "Mean errors of <b>past</b> models, cross-validated. " * 20
    ids = tuple(f"<i>{k}" for k in range(25))
    chosen = Selection(ids, ("part",) * 25, np.full(25, 0.04), "random", "bank-id", explanation=why)
    shown = chosen._repr_html_()
    assert "Selection of 25 questions" in shown
    assert why.strip().replace("<", "&lt;").replace(">", "&gt;") in shown
    assert shown.count("&lt;i&gt;") == 10
    assert shown.count("0.0400") == 10
    assert "The first 10 of 25 rows." in shown
    assert "<i>" not in shown


def test_a_shown_page_writes_itself_or_its_first_chart_by_the_name_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # to bundle it takes seconds
    page = ib.show(make_bank())
    assert page.save(tmp_path / "bank.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for kind, first in (("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")):
        assert page.save(tmp_path / f"bank.{kind}").read_bytes().startswith(first)
    assert page.charts[0].title in (tmp_path / "bank.svg").read_text(encoding="utf-8").replace("\u00a0", " ")
    with pytest.raises(ParameterError, match=r"must end in"):
        page.save(tmp_path / "bank.doc")


def test_a_page_without_charts_is_no_picture(tmp_path):
    chosen = Selection(("item",), ("part",), np.ones(1), "random", "bank-id")
    with pytest.raises(ParameterError, match=r"has no chart to save as 'chosen\.png'"):
        ib.show(chosen).save(tmp_path / "chosen.png")
    with pytest.raises(
        ParameterError, match=r"Selection has no figure to plot\. show\(\.\.\.\) gives its page\. to_polars"
    ):
        chosen.plot()


def test_estimates_are_drawn_with_their_intervals_the_highest_first(estimates):
    (data,) = estimates.plot().data
    order = np.argsort(-estimates["overall"].value)
    assert data.columns["name"] == [estimates.model_ids[k] for k in order]
    assert data.columns["low"] == estimates["overall"].low[order].tolist()
    one = estimate(make_bank(), dict.fromkeys(make_bank().item_ids[:9], 1), method="p-irt", interval="model-based")
    assert sorted(one.plot().data[0].columns["name"]) == sorted(estimates.targets)


def test_charts_alone_are_a_page_and_a_notebook_keeps_their_table():
    result = dimensionality(make_bank().responses, candidates=(1,))
    page = ib.show(result)
    assert page.title == page.charts[0].title == dimensionality_chart(result).title
    assert result._repr_html_().startswith("<table><caption>")


def test_tasks_are_drawn_with_their_costs_where_these_are_known():
    bank = make_bank(with_extras=True)
    costs, alike = ib.show(task_overview(bank.responses, cost="tokens")).charts
    assert "costs" in costs.title
    assert ib.show(task_overview(bank.responses)).charts[0].title == alike.title


def test_a_comparison_shows_itself_without_the_items_that_decide():
    bank = make_bank()
    answers = ResponseMatrix.create(bank.responses.responses[:2], model_ids=["a", "b"], item_ids=bank.item_ids)
    found = compare(bank, answers, method="paired", target="all")
    whole = comparison_page(found, bank, answers)
    assert ib.show(found).sections == whole.sections[:-1]
    assert dict(ib.show(found).provenance)["Bank"] == bank.bank_id


def test_what_has_no_page_is_told_what_has_one():
    with pytest.raises(ParameterError, match=r"can be shown \(Bank, Comparison, .*ScoreEstimates.*\), got dict"):
        ib.show({})
