"""Tables whose columns have other names than ours, and responses with percent signs."""

import gzip
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec


def read(folder, text, name="r.csv", **choices):
    (folder / name).write_text(text)
    return read_responses(folder / name, spec=ReadingSpec(**choices))


@pytest.mark.parametrize("header", ["Model,Question ID,Correct", "llm,problem_id,SCORE", "model name,item,response"])
def test_usual_names_are_read_and_told(tmp_path, header):
    model, item, response = header.split(",")
    says = f"read the column '{model}' as model_id, '{item}' as item_id" + (
        "" if response == "response" else f", '{response}' as response"
    )
    with pytest.warns(DataWarning, match=says):
        matrix = read(tmp_path, f"{header},note\na,1,1,x\na,2,0,y\n")
    assert (matrix.model_ids, matrix.item_ids, matrix.responses.tolist()) == (["a"], ["1", "2"], [[1.0, 0.0]])


def test_ids_of_usual_names_in_json_become_text(tmp_path):
    rows = [{"Model": "a", "Question": 1, "Correct": True}, {"Model": "a", "Question": 2, "Correct": False}]
    with pytest.warns(DataWarning, match="read the column"):
        matrix = read(tmp_path, "\n".join(map(json.dumps, rows)), "r.jsonl")
    assert matrix.item_ids == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Model,x,y\na,1,0\nb,0,1\n", (["a", "b"], ["x", "y"])),
        ("question,a,b\nx,1,0\ny,0,1\n", (["a", "b"], ["x", "y"])),
    ],
)
def test_one_usual_name_makes_a_wide_table(tmp_path, text, ids):
    with pytest.warns(DataWarning, match="read the column"):
        matrix = read(tmp_path, text)
    assert (matrix.model_ids, matrix.item_ids) == ids


def test_our_names_and_those_that_were_given_go_before_usual_ones(tmp_path):
    text = "model_id,item_id,response,score,question\na,x,1,0,why\n"
    assert read(tmp_path, text).responses.tolist() == [[1.0]]
    assert read(tmp_path, text, response_column="score").responses.tolist() == [[0.0]]
    assert read(tmp_path, text, columns={"response": "score"}).responses.tolist() == [[0.0]]


@pytest.mark.parametrize("header", ["llm,model,question,correct", "llm,thing,correct"])
def test_what_is_not_clear_is_asked_for(tmp_path, header):
    row = ",".join(["1"] * header.count(",") + ["1"])
    with pytest.raises(DataError, match="there must be a column model_id or item_id"):
        read(tmp_path, f"{header}\n{row}\n")


def test_percentages_are_shares(tmp_path):
    text = "model_id,item_id,response\na,x,100%\na,y,55.5 %\n"
    for choices in ({}, {"max_response": 100.0}):
        with pytest.warns(DataWarning) as caught:
            matrix = read(tmp_path, text, **choices)
        assert matrix.responses[0].tolist() == pytest.approx([1.0, 0.555])
        assert any("read percentages (such as '100%') as shares of 1" in str(one.message) for one in caught)
    with pytest.warns(DataWarning, match="read percentages"):
        assert read(tmp_path, "model_id,x,y\na,10%,20%\n").responses.tolist() == [[0.1, 0.2]]
    with pytest.raises(DataError, match=r"'100%' 1 times\. Write all responses with a percent sign, or none"):
        read(tmp_path, "model_id,item_id,response\na,x,100%\na,y,1\n")


def test_a_column_of_categories_is_named_as_the_scenario_it_may_be(tmp_path):
    text = "item_id,category,a,b\nx,math,1,0\ny,math,0,1\nz,law,1,1\nw,law,0,0\n"
    says = "If 'category' is the scenario of an item, add: --column scenario=category"
    with pytest.raises(DataError, match=says), command_line_words():
        read(tmp_path, text)
    assert set(read(tmp_path, text, columns={"scenario": "category"}).items["scenario"]) == {"math", "law"}


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n", "model_id,x\na,words\n", "model_id,item_id,other\na,b,1\n", "model_id,item_id,response\na,b,55\n"],
)
def test_messages_speak_one_language(tmp_path, text):
    with pytest.raises(DataError) as in_python:
        read(tmp_path, text)
    with pytest.raises(DataError) as on_command_line, command_line_words():
        read(tmp_path, text)
    assert "--" not in str(in_python.value)
    assert "--" in str(on_command_line.value)
    assert not re.search(r"columns=|models=|max_response=", str(on_command_line.value))


def test_tables_of_a_folder_are_told_from_what_is_known_of_models_and_items(tmp_path):
    (tmp_path / "past.csv").write_text("model_id,item_id,response\na,x,1\na,y,0\n")
    (tmp_path / "wide.csv").write_text("model_id,x,y\nb,1,0\n")
    many = pl.DataFrame({"model_id": ["d"], **{f"q{k}": [1.0] for k in range(40)}})
    many.write_parquet(tmp_path / "many.parquet")
    many.with_columns(q7=pl.lit("words")).write_parquet(tmp_path / "not.parquet")
    (tmp_path / "rows.jsonl").write_text('{"model_id": "c", "item_id": "x", "response": 1}\n')
    (tmp_path / "models.csv").write_text("model_id,maker\na,org\n")
    (tmp_path / "items.csv").write_text("item_id,n_options\nx,4\n")
    (tmp_path / "questions.csv").write_text("question,difficulty\nx,0.5\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = read_responses(tmp_path)
    assert sorted(matrix.model_ids) == ["a", "b", "c", "d"]
    assert matrix.n_items == 42


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


@pytest.mark.parametrize("ending", [".csv", ".jsonl.gz"])
def test_models_are_called_as_their_files_with_every_dot(tmp_path, ending):
    """Names cut at their first dot made one model of these two."""
    frame = pl.DataFrame({"item_id": ["q1", "q2"], "response": [1, 0]})
    for name in ("Qwen2.5-7B", "Qwen2.5-72B"):
        if ending == ".csv":
            frame.write_csv(tmp_path / f"{name}.csv")
        else:
            (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(frame.write_ndjson().encode()))
    with pytest.warns(DataWarning, match="the results of one, called 'Qwen2.5-7"):
        matrix = read_responses(sorted(tmp_path.iterdir()))
    assert sorted(matrix.model_ids) == ["Qwen2.5-72B", "Qwen2.5-7B"]
