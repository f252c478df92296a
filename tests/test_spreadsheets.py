"""CSV files for people: what a spreadsheet would run is made text, numbers and all else stay."""

import csv

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.spreadsheets import guarded, unguarded, write_guarded_csv


@pytest.mark.parametrize(
    "text", ["=HYPERLINK(0)", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "=", "-1-1"]
)
def test_formulas_have_an_apostrophe(text):
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("value", ["-0.5", "+1e-3", "-inf", "plain", "a=b", "", "'quoted'", " -x", -1.5, None, True])
def test_numbers_and_other_texts_stay(value):
    assert guarded(value) is value


@given(st.text())
def test_no_cell_begins_a_formula_and_none_is_lost(text):
    found = guarded(text)
    assert found[:1] not in {"=", "@", "\t", "\r"}
    if not text.startswith("'"):
        assert unguarded(found) == text


def test_tables_are_guarded_with_the_names_of_their_columns(tmp_path):
    table = pl.DataFrame({"=id": ["-a", "b", None], "value": [-1.5, 2.0, None]})
    write_guarded_csv(table, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["'=id", "value"], ["'-a", "-1.5"], ["b", "2.0"], ["", ""]]
