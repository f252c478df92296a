"""Reading wide tables a part at a time gives what reading whole tables gives."""

import warnings
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from itembank import ReadingSpec
from itembank.errors import ItembankError
from itembank.readers import coded, table_files
from itembank.readers.collecting import find_sources
from itembank.readers.read import read_coded
from itembank.responses.coded_responses import CodedResponses
from tests.readers.test_coded import assert_same, both, written

N_ROWS = 20


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(table_files, "ROWS_AT_ONCE", 8)
    monkeypatch.setattr(table_files, "CELLS_AT_ONCE", 3 * N_ROWS)
    monkeypatch.setattr(coded, "CELLS_AT_ONCE", 15)
    monkeypatch.setattr(table_files, "BYTES_AT_ONCE", 200)


def wide(key="model_id", n_columns=7, **more):
    """Right and wrong of 20 rows, with some cells missing."""
    rng = np.random.default_rng(5)
    values = np.where(rng.random((N_ROWS, n_columns)) < 0.1, np.nan, rng.random((N_ROWS, n_columns)) < 0.5)
    columns = {f"column {k}": pl.Series(values[:, k], nan_to_null=True) for k in range(n_columns)}
    return pl.DataFrame({key: [f"row {k}" for k in range(N_ROWS)], **columns, **more})


def with_row(table, row, **other):
    """The table with one of its rows again at the end."""
    again = table[row].with_columns(**{name: pl.lit(value) for name, value in other.items()})
    return pl.concat([table, again], how="vertical_relaxed")


TABLES = {
    "models": (wide(), True),
    "items": (wide("item_id"), True),
    "whole numbers as ids": (wide().with_columns(model_id=pl.arange(N_ROWS)), True),
    "shares": (wide(more=[k / 40 for k in range(N_ROWS)]), True),
    "scenarios": (wide("item_id", scenario=["a", "b"] * 10, subscenario=[None, "c"] * 10), True),
    "two scenarios of a number": (wide("item_id", scenario=[1, 2] * 10), True),
    "numbers called scenario": (wide(scenario=[0, 1] * 10), True),
    "text called scenario": (wide(scenario=["a", "b"] * 10), False),
    "a model twice": (with_row(wide(), 3), True),
    "a model with two answers": (with_row(wide(), 3, **{"column 1": 0.5}), False),
    "an item twice": (with_row(wide("item_id"), 3), False),
    "an item twice at once": (wide("item_id").with_columns(item_id=pl.Series(["x", "x", *map(str, range(18))])), False),
    "words": (wide(more=["correct", "incorrect"] * 10), False),
    "words for missing": (wide(more=["NA", "1", "", "true"] * 5), True),
    "percentages": (wide(more=[50.0] * N_ROWS), False),
    "an empty model": (pl.concat([wide(), pl.DataFrame({"model_id": ["none"]})], how="diagonal"), False),
    "an empty item": (wide(more=pl.Series([None] * N_ROWS, dtype=pl.Float64)), False),
    "no id": (wide().with_columns(model_id=pl.when(pl.col("model_id") != "row 9").then("model_id")), False),
    "a column without a name": (wide().rename({"column 4": ""}), False),
    "ids alone": (wide().select("model_id"), False),
    "no rows": (wide()[:0], False),
}


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".parquet of many columns"])
@pytest.mark.parametrize("name", TABLES)
def test_parts_of_a_wide_table_give_what_the_whole_gives(monkeypatch, tmp_path, name, kind):
    monkeypatch.setattr(table_files, "MANY_COLUMNS", 3 if kind.endswith("columns") else 1000)
    table, is_plain = TABLES[name]
    path = written(table, tmp_path / f"table{kind.split()[0]}")
    assert_same(*both(monkeypatch, path))
    found = None
    with warnings.catch_warnings(), suppress(ItembankError):
        warnings.simplefilter("ignore")
        found = read_coded(find_sources([path], ReadingSpec()), ReadingSpec())
    assert isinstance(found, CodedResponses) == is_plain


@pytest.mark.parametrize(
    "choices",
    [
        {"format": "wide-items", "columns": {"item_id": "model_id"}},
        {"format": "wide-models", "columns": {"item_id": "other"}},
        {"format": "wide-models", "columns": {"seed": "other"}},
        {"format": "long"},
        {"max_response": 2.0},
        {"repeats": "last"},
        {"missing": "forbid"},
        {"prefix_scenario": True},
    ],
)
def test_every_choice_is_as_for_the_whole(monkeypatch, tmp_path, choices):
    monkeypatch.setattr(table_files, "MANY_COLUMNS", 3)
    path = written(with_row(wide(), 5, **{"column 1": 1.0}), tmp_path / "table.parquet")
    assert_same(*both(monkeypatch, path, spec=ReadingSpec(**choices)))


def test_long_and_wide_tables_are_joined(monkeypatch, tmp_path):
    long = wide().unpivot(index="model_id", variable_name="item_id", value_name="response")
    other = wide("item_id", scenario=["a"] * N_ROWS).rename(lambda name: name.replace("column", "another"))
    tables = [
        long.with_columns(pl.col("model_id") + "!"),
        wide(),
        other,
        wide().with_columns(pl.col("model_id") + "?"),
        other.rename(lambda name: name.replace("another", "third")),
    ]
    for suffix in (".csv", ".parquet"):
        paths = [written(table, tmp_path / f"{k}{suffix}") for k, table in enumerate(tables)]
        assert_same(*both(monkeypatch, paths))


def test_a_file_without_rows_is_refused_among_others(monkeypatch, tmp_path):
    paths = [written(table, tmp_path / f"{k}.parquet") for k, table in enumerate((wide(), wide()[:0]))]
    assert_same(*both(monkeypatch, paths))
