"""Tables whose columns have other names than ours, and responses with percent signs."""

import json
import re
import warnings

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
    says = "If 'category' tells the scenario of an item, say so: --column scenario=category"
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
