import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec


def test_one_row_an_item_may_tell_scenario_and_subscenario(tmp_path):
    (tmp_path / "r.csv").write_text("item_id,scenario,subscenario,a,b\nx,math,sums,1,0\ny,law,,,1\n")
    matrix = read_responses(tmp_path / "r.csv")
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [0, 1]])
    assert matrix.items.rows() == [("x", "math", "sums"), ("y", "law", None)]


def test_items_called_like_our_optional_columns_are_items_of_a_table_of_one_row_a_model(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,seconds,seed,x\na,1,0,1\n")
    assert read_responses(tmp_path / "r.csv").item_ids == ["seconds", "seed", "x"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_items_named_like_a_pattern_are_items(tmp_path, ending):
    """Polars takes a name from ^ to $ for a pattern of names: such an item would be left out without a word."""
    path = tmp_path / f"r.{ending}"
    table = pl.DataFrame({"model_id": ["a", "b"], "^x$": [1, 0], "x": [0, 0], "^.*$": [1, 1]})
    {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}[ending](path)
    matrix = read_responses(path)
    assert matrix.item_ids == ["^x$", "x", "^.*$"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, 1], [0, 0, 1]])


def test_a_table_without_the_usual_id_name(tmp_path):
    (tmp_path / "r.csv").write_text("llm,x,y\na,50,100\n")
    spec = ReadingSpec(columns={"model_id": "llm"}, max_response=100)
    matrix = read_responses(tmp_path / "r.csv", spec=spec)
    np.testing.assert_array_equal(matrix.responses, [[0.5, 1.0]])


def test_a_model_in_two_rows_is_joined_where_they_agree(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,x,y\na,1,\nb,1,1\na,1,0\n")
    with pytest.warns(DataWarning, match="1 rows repeat"):
        matrix = read_responses(tmp_path / "r.csv")
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, 1]])


def test_empty_items_of_new_models_may_be_dropped_or_kept(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,x,y,z\nnew,1,,0\n")
    assert read_responses(tmp_path / "r.csv", spec=ReadingSpec(empty="drop")).item_ids == ["x", "z"]
    assert read_responses(tmp_path / "r.csv", spec=ReadingSpec(empty="keep")).item_ids == ["x", "y", "z"]


def test_empty_models_are_dropped_with_a_warning(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,x,y\na,1,0\nb,,\n")
    with pytest.warns(DataWarning, match="1 models without any response are left out: 'b'"):
        assert read_responses(tmp_path / "r.csv", spec=ReadingSpec(empty="drop")).model_ids == ["a"]
    (tmp_path / "r.csv").write_text("model_id,x,y\na,,\n")
    with pytest.raises(DataError, match="at least one response, got none"):
        read_responses(tmp_path / "r.csv", spec=ReadingSpec(empty="drop"))


def test_a_header_longer_than_the_limit_of_the_csv_module(tmp_path):
    names = [f"item-{k:06d}" for k in range(15_000)]  # 180,000 characters: one field for the wrong separators
    pl.DataFrame([["a", *([1] * len(names))]], schema=["model_id", *names], orient="row").write_csv(tmp_path / "r.csv")
    assert read_responses(tmp_path / "r.csv").item_ids == names


@pytest.mark.parametrize("layout", ["wide-models", "wide-items"])
def test_real_wide_data_agrees_with_the_long_file(layout, shared_dir, tmp_path):
    folder = shared_dir / "data" / "mmlu-pro"
    wide = pl.read_parquet(folder / "wide_uint8.parquet")
    models = [name for name in wide.columns if name != "item_id"]
    wide = wide.with_columns(pl.col(models).replace(255, None))  # the file marks a missing response by 255
    if layout == "wide-models":
        wide = wide.transpose(include_header=True, header_name="model_id", column_names="item_id")
    wide.write_parquet(tmp_path / "wide.parquet")
    got = read_responses(tmp_path / "wide.parquet")
    expected = read_responses(folder / "responses.parquet")
    expected = expected.take(models=expected.model_indices(got.model_ids), items=expected.item_indices(got.item_ids))
    np.testing.assert_array_equal(got.responses, expected.responses)
    assert got.responses.shape == (34, 12032)


def test_a_column_without_a_name_is_refused_like_any_other(tmp_path):
    (tmp_path / "r.csv").write_text("item_id,,m\na,word,1\nb,2,0\n")
    with pytest.raises(DataError, match=r"must hold the responses of a model, got 1 that hold something else: '' "):
        read_responses(tmp_path / "r.csv")
