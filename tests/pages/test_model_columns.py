"""Columns that tell a model's date, size and maker are found by name and content."""

import numpy as np
import polars as pl
import pytest

from itembank.pages.bank_models import date_column, group_columns, iso_day, size_column

IDS = ["a", "b", "c"]


def table(**columns):
    return pl.DataFrame({"model_id": IDS, **columns})


def test_dates_are_found_by_content_and_chosen_by_name():
    days = ["2024-01-02", None, "2024-03-04"]
    found = date_column(table(first_seen=["2023-01-01", "2023-01-02", "2023-01-03"], released=days, note=IDS))
    assert found.name == "released"
    assert [iso_day(day) for day in found.values[[0, 2]]] == ["2024-01-02", "2024-03-04"]
    assert date_column(table(note=IDS, date=["2024-01-02"] * 3)) is None  # all the same


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [("params", ["7B", "1.5B", None], [7e9, 1.5e9]), ("size_b", [7.0, 0.0, 70.0], [7.0, 70.0])],
)
def test_sizes_are_numbers_above_zero(name, values, expected):
    found = size_column(table(**{name: values}))
    assert found.name == name
    assert found.values[np.isfinite(found.values)].tolist() == expected


def test_what_only_sounds_like_a_size_is_none():
    assert size_column(table(size=["small", "large", "larger"])) is None
    assert size_column(table(resize=[1.0, 2.0, 3.0])) is None


def test_makers_and_families_are_columns_of_text_with_several_values():
    found = group_columns(table(family=["x", "x", "y"], Organization=["u", "v", "v"], lab=[1, 2, 3]))
    assert [one.name for one in found] == ["Organization", "family"]
    assert found[1].values == ["x", "x", "y"]
    assert group_columns(table(family=["x", "x", "x"], org=["u", "v", "w"])) == []
