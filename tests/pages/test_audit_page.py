import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.auditing.item_audit_names import REASONS
from itembank.diagnostics import audit_items
from itembank.pages.audit_page import TONES, audit_page
from itembank.pages.blocks import Chart, Table
from itembank.pages.pictures import coloured
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers, make_faulty
from tests.pages.reading import answers, of_kind, rows, table, titles, words

pytestmark = pytest.mark.usefixtures("without_library")


@pytest.fixture(scope="module")
def audit():
    matrix = make_faulty()
    models = matrix.models.with_columns(family=pl.Series(["<i>x</i>", "y"] * 50))
    items = matrix.items.with_columns(question=pl.lit("<b>What?</b> ") + pl.col("item_id"))
    known = [f"item-{j}" for j in range(1, 13)]
    return audit_items(ResponseMatrix.create(matrix.responses, models=models, items=items), known=known, by="family")


@pytest.fixture(scope="module")
def page(audit):
    return audit_page(audit, command="itembank check responses.parquet")


def test_the_table_holds_flagged_items_and_their_number_and_reasons_stand_everywhere(audit, page):
    items = table(page, "Flagged questions")
    assert list(items.data.columns["item"]) == audit.flagged["item_id"].to_list()
    assert None not in list(items.data.columns["evidence"])
    menus = [column.name for column in items.columns if column.has_menu]
    assert {"reason", "scenario"} <= set(menus)
    (first, second) = answers(page)
    assert (first.value, second.value) == (str(audit.flagged.height), "2")
    assert second.words == "1 solved by no model (dead), 1 by all (saturated)"
    told = {row[0]: row[1:] for row in rows(table(page, "Reasons to read a question"))}
    assert told == {
        name: [str(count), REASONS[name].replace("item", "question")]
        for name, count in audit.to_dict()["flagged"].items()
    }
    html = page.html()
    assert ("&lt;b&gt;What?&lt;/b&gt; item-" in html, "<b>What" in html) == (True, False)
    assert "<i>x" not in html


def test_the_picture_draws_all_items_in_colours_that_tell_them_apart(audit, page):
    (chart,) = of_kind(page, Chart)
    assert chart.filters is table(page, "Flagged questions")
    assert {"item_rest", "probability"} <= set(chart.filters.data.columns)  # what a rectangle filters by
    drawn = chart.data[0].columns
    assert sorted(drawn["item"]) == sorted(audit.table["item_id"])
    assert {"dead", "saturated", "no reason"} <= set(drawn["reason"])
    scale = chart.spec["layer"][0]["encoding"]["color"]["scale"]
    assert set(scale["domain"]) == set(drawn["reason"])
    assert len(set(TONES.values())) == len(TONES) == len(REASONS) + 1
    assert all(coloured(one) != one for one in TONES.values())


def test_known_labels_and_groups_have_sections_and_texts_are_asked_for(page, audit):
    assert "--items" not in table(page, "Flagged questions").note
    values, _ = make_answers(n_models=30, n_items=40)
    values[:, 3] = 1.0 - values[:, 3]
    without = audit_page(audit_items(ResponseMatrix.create(values), duplicates=False))
    assert "itembank import --items FILE" in table(without, "Flagged questions").note
    assert titles(page) == ["Questions", "Questions known to be faulty", "Models by family"]
    assert "12 questions were known to be faulty" in words(page)
    few = replace(audit, labels={**audit.labels, "first": {}})  # fewer questions than any number that is told of
    assert ("Of its ranking," in words(page), "Of its ranking," in words(audit_page(few))) == (True, False)
    assert {row[0] for row in rows(table(page, "Scores by family"))} == {"<i>x</i>", "y"}


def test_items_that_nobody_answered_have_no_numbers_and_where_none_is_flagged_no_table():
    values = make_faulty(n_items=20).responses.copy()
    values[:, 5] = np.nan
    audit = audit_items(ResponseMatrix.create(values), duplicates=False)
    page = audit_page(audit)
    assert "item-6" in set(of_kind(page, Chart)[0].data[0].columns["item"])
    assert "nan" not in page.html()
    assert "duplicate" not in [row[0] for row in rows(table(page, "Reasons to read a question"))]  # not looked for
    values, _ = make_answers(n_models=40, n_items=8, seed=3)
    audit = audit_items(ResponseMatrix.create(values), duplicates=False)
    assert audit.flagged.height == 0
    page = audit_page(audit)
    assert (answers(page)[0].value, of_kind(page, Table)) == ("0", [])
    assert page.html()


def test_of_very_many_items_the_page_draws_and_lists_the_first(audit, monkeypatch):
    monkeypatch.setattr(sys.modules["itembank.pages.audit_page"], "MOST_ROWS", 4)
    page = audit_page(audit)
    held = table(page, "Flagged questions")
    assert list(held.data.columns["item"]) == audit.flagged["item_id"].to_list()[:4]
    assert f"{audit.flagged.height - 4} flagged question" in held.note
    (chart,) = of_kind(page, Chart)
    n_plain = audit.table["reason"].null_count()
    assert f"{n_plain - 4} questions without a reason" in chart.note
    assert list(chart.data[0].columns["reason"]).count("no reason") == 4
