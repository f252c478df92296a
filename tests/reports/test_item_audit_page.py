"""The page of an audit: complete, escaped, and without anything from elsewhere."""

import re

import numpy as np
import polars as pl

from itembank.data.responses import ResponseMatrix
from itembank.diagnostics import audit_items
from itembank.reports.item_audit_page import item_audit_page
from tests.diagnostics.panels import make_faulty


def test_the_page_lists_flagged_items_groups_and_known_labels():
    matrix = make_faulty()
    models = matrix.models.with_columns(family=pl.Series(["<i>x</i>", "y"] * 50))
    audit = audit_items(
        ResponseMatrix.create(matrix.responses, models=models, items=matrix.items),
        known=[f"item-{j}" for j in range(1, 13)],
        by="family",
    )
    page = item_audit_page(audit)
    flagged = audit.table.filter(pl.col("reason").is_not_null())["item_id"].to_list()
    assert re.findall(r'<td class="id">(item-\d+)</td>', page) == flagged
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert "<i>" not in page
    assert "12 items; AUC" in page


def test_items_that_nobody_answered_have_no_numbers():
    values = make_faulty(n_items=20).responses.copy()
    values[:, 5] = np.nan
    audit = audit_items(ResponseMatrix.create(values))
    row = audit.table.filter(item_id="item-6").row(0, named=True)
    assert (row["n_models"], row["mean"], row["reason"]) == (0, None, None)
    assert "nan" not in item_audit_page(audit)
