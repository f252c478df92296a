"""The page of an audit: worst first, reasons explained, groups and known labels, everything escaped."""

import sys

import numpy as np
import polars as pl
import pytest

from itembank.data.responses import ResponseMatrix
from itembank.diagnostics import audit_items
from itembank.diagnostics.item_audit_names import REASONS
from itembank.pages import audit_page
from itembank.pages.blocks import Chart
from tests.diagnostics.panels import make_faulty
from tests.pages.reading import of_kind, rows, table, titles, words


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """Leave the charts' library out of pages: to bundle it takes seconds, and it has tests of its own."""
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")


@pytest.fixture(scope="module")
def audit():
    matrix = make_faulty()
    models = matrix.models.with_columns(family=pl.Series(["<i>x</i>", "y"] * 50))
    items = matrix.items.with_columns(question=pl.lit("<b>What?</b> ") + pl.col("item_id"))
    return audit_items(
        ResponseMatrix.create(matrix.responses, models=models, items=items),
        known=[f"item-{j}" for j in range(1, 13)],
        by="family",
    )


@pytest.fixture(scope="module")
def page(audit):
    return audit_page(audit, command="itembank audit responses.parquet")


def test_flagged_items_come_first_in_the_order_of_the_audit(audit, page):
    items = table(page, "Items, the worst first")
    flagged = audit.table.filter(pl.col("reason").is_not_null())["item_id"].to_list()
    assert list(items.data.columns["item"])[: len(flagged)] == flagged
    assert len(items.data) == audit.table.height
    assert set(list(items.data.columns["reason"])[len(flagged) :]) == {"none"}
    menus = [column.name for column in items.columns if column.has_menu]
    assert {"reason", "scenario"} <= set(menus)


def test_every_reason_is_counted_and_explained(audit, page):
    told = {row[0]: row[1:] for row in rows(table(page, "Reasons to look at an item"))}
    assert told == {name: [str(count), REASONS[name]] for name, count in audit.counts.items()}


def test_the_picture_filters_the_table_and_says_its_numbers(audit, page):
    (chart,) = of_kind(page, Chart)
    assert chart.filters is table(page, "Items, the worst first")
    likely = int((audit.table["probability"] >= 0.5).sum())
    assert chart.title.startswith(f"{likely} items of 120")


def test_known_labels_and_groups_have_sections(page):
    assert titles(page) == ["Items", "Items known to be bad", "Models by family"]
    assert "12 items were known to be bad" in words(page)
    assert {row[0] for row in rows(table(page, "Scores by family"))} == {"<i>x</i>", "y"}


def test_names_and_texts_are_escaped(page):
    html = page.html()
    assert "&lt;b&gt;What?&lt;/b&gt; item-" in html
    assert "<b>What" not in html
    assert "<i>x" not in html


def test_items_that_nobody_answered_have_no_numbers():
    values = make_faulty(n_items=20).responses.copy()
    values[:, 5] = np.nan
    audit = audit_items(ResponseMatrix.create(values), duplicates=False)
    page = audit_page(audit)
    told = {row[0]: row for row in rows(table(page, "Items, the worst first"))}["item-6"]
    assert "–" in told
    assert "nan" not in page.html()
    assert "duplicate" not in [row[0] for row in rows(table(page, "Reasons to look at an item"))]  # not looked for


def test_of_very_many_items_the_page_holds_the_flagged_ones_and_the_first(audit, monkeypatch):
    monkeypatch.setattr(sys.modules["itembank.pages.audit_page"], "MOST_ROWS", 20)
    flagged = audit.table["reason"].count()
    held = table(audit_page(audit), "Items, the worst first")
    assert len(held.data) == max(flagged, 20)
    assert "-o FILE.csv writes all" in held.note
