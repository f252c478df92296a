"""Tables whose columns have other names than ours, and responses with percent signs."""

import ast
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import put, read, read_text, refused, refuses, warns, write_frame


@pytest.mark.parametrize("header", ["instance_id,resolved", "task_id,passed", "Task ID,Solved", "item_id,pass"])
def test_rarer_names_count_where_no_usual_one_is(tmp_path, header):
    matrix = warns("as response|these are the results of one: 'r'", read_text, tmp_path, f"{header}\nx,1\ny,0\n")
    assert (matrix.model_ids, matrix.item_ids, matrix.responses.tolist()) == (["r"], ["x", "y"], [[1.0, 0.0]])
    with pytest.warns(DataWarning, match="'model' as model_id, 'question' as item_id, 'score' as response"):
        matrix = read_text(tmp_path, "model,question,score,task_id,resolved\na,q,0.5,x,1\n")
    assert (matrix.item_ids, matrix.responses.tolist()) == (["q"], [[0.5]])


@pytest.mark.parametrize("header", ["Model,Question ID,Correct", "llm,problem_id,SCORE", "model name,item,response"])
def test_usual_names_are_read_and_told(tmp_path, header):
    model, item, response = header.split(",")
    says = f"read the column '{model}' as model_id, '{item}' as item_id" + (
        "" if response == "response" else f", '{response}' as response"
    )
    matrix = warns(says, read_text, tmp_path, f"{header},note\na,1,1,x\na,2,0,y\n")
    assert (matrix.model_ids, matrix.item_ids, matrix.responses.tolist()) == (["a"], ["1", "2"], [[1.0, 0.0]])


def test_which_of_several_columns_is_taken(tmp_path):
    rows = [{"Model": "a", "Question": 1, "Correct": True}, {"Model": "a", "Question": 2, "Correct": False}]
    found = warns("read the column", read_text, tmp_path, "\n".join(map(json.dumps, rows)), "r.jsonl")
    assert found.item_ids == ["1", "2"]
    text = "model_id,item_id,response,score,question\na,x,1,0,why\n"
    assert read_text(tmp_path, text).responses.tolist() == [[1.0]]
    assert read_text(tmp_path, text, response_column="score").responses.tolist() == [[0.0]]
    assert read_text(tmp_path, text, columns={"response": "score"}).responses.tolist() == [[0.0]]
    with pytest.warns(DataWarning, match="'question_id' as item_id"):
        matrix = read_text(tmp_path, "model,question_id,question,correct\na,1,Why?,1\na,2,Why?,0\n")
    assert matrix.item_ids == ["1", "2"]
    table = "model,task_id,completion,result,passed\na,1,x,passed,1\na,2,y,timed out,0\n"
    assert warns("'passed' as response", read_text, tmp_path, table).responses.tolist() == [[1, 0]]
    with pytest.warns(DataWarning, match="'result' as response"):
        assert read_text(tmp_path, "model,task_id,result,success\na,1,1,0\na,2,0,1\n").responses.tolist() == [[1, 0]]
    # The Item Response Warehouse calls a person id
    with pytest.warns(DataWarning, match="'id' as model_id, 'item' as item_id, 'resp' as response"):
        matrix = read_text(tmp_path, "id,item,resp\n1,i1,0\n1,i2,1\n2,i1,1\n2,i2,0\n")
    assert (matrix.model_ids, matrix.item_ids) == (["1", "2"], ["i1", "i2"])
    assert matrix.responses.tolist() == [[0, 1], [1, 0]]
    with pytest.warns(DataWarning, match="'llm' as model_id"):  # and a row has an id where models have a name
        assert read_text(tmp_path, "id,llm,item,resp\n1,m,i1,0\n2,m,i2,1\n").model_ids == ["m"]
    # Two models were one, called as the file
    with pytest.warns(DataWarning, match="'model' as model_id"):
        matrix = read_text(tmp_path, "model,q,r\na,x,1\nb,x,0\n", columns={"item_id": "q", "response": "r"})
    assert matrix.model_ids == ["a", "b"]


@pytest.mark.parametrize(("text", "ids"), [
    ("Model,x,y\na,1,0\nb,0,1\n", (["a", "b"], ["x", "y"])),
    ("question,a,b\nx,1,0\ny,0,1\n", (["a", "b"], ["x", "y"])),
])  # fmt: skip
def test_one_usual_name_makes_a_wide_table(tmp_path, text, ids):
    matrix = warns("read the column", read_text, tmp_path, text)
    assert (matrix.model_ids, matrix.item_ids) == ids


@pytest.mark.parametrize("header", ["llm,model,question,correct", "llm,thing,correct"])
def test_what_is_not_clear_is_asked_for(tmp_path, header):
    row = ",".join(["1"] * header.count(",") + ["1"])
    refuses("there must be a column model_id or item_id", read_text, tmp_path, f"{header}\n{row}\n")


def test_shares_of_a_hundred_are_read_and_words_with_signs_are_not(tmp_path):
    text = "model_id,item_id,response\na,x,100%\na,y,55.5 %\n"
    for choices in ({}, {"max_response": 100.0}):
        with pytest.warns(DataWarning) as caught:
            matrix = read_text(tmp_path, text, **choices)
        assert matrix.responses[0].tolist() == pytest.approx([1.0, 0.555])
        assert any("read percentages (such as '100%') as shares of 1" in str(one.message) for one in caught)
    found = warns("read percentages", read_text, tmp_path, "model_id,x,y\na,10%,20%\n")
    assert found.responses.tolist() == [[0.1, 0.2]]
    with pytest.raises(DataError, match=r"'100%' 1 time\. Write all responses with a percent sign, or none"):
        read_text(tmp_path, "model_id,item_id,response\na,x,100%\na,y,1\n")
    table = "model_id,item_id,grade\na,1,CORRECT\na,2,CORRECT\na,3,MADE_UP\na,4,CORRECT\na,5,ABSTAINED\n"
    program = '. + {response: (.["grade"] == "CORRECT")}'
    says = f"If all but 'CORRECT' are wrong, add (without --column response=grade): --jq '{program}'"
    assert says in refused(tmp_path, table, columns={"response": "grade"})
    assert says in refused(tmp_path, table, columns={"response": "grade"}, true_value="correct")
    pytest.importorskip("jq", reason="needs the extra jq")
    assert read_text(tmp_path, table, jq=program).responses.tolist() == [[1.0, 1.0, 0.0, 1.0, 0.0]]
    text = "model_id,item_id,response\na,x,They sell 75% of the cakes\na,y,It is [1] or so\na,z,Nobody knows\n"
    says = refused(tmp_path, text)
    assert "percent" not in says
    assert "if these are answers and another column says whether they are right" in says
    text = "item_id,category,a,b\nx,math,1,0\ny,math,0,1\nz,law,1,1\nw,law,0,0\n"
    says = "If 'category' is the scenario of an item, add: --column scenario=category"
    with pytest.raises(DataError, match=says), command_line_words():
        read_text(tmp_path, text)
    assert set(read_text(tmp_path, text, columns={"scenario": "category"}).items["scenario"]) == {"math", "law"}


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n", "model_id,x\na,words\n", "model_id,item_id,other\na,b,1\n", "model_id,item_id,response\na,b,55\n"],
)
def test_messages_speak_one_language(tmp_path, text):
    in_python = refuses(".", read_text, tmp_path, text)
    with pytest.raises(DataError) as on_command_line, command_line_words():
        read_text(tmp_path, text)
    assert "--" not in in_python
    assert "--" in str(on_command_line.value)
    assert not re.search(r"columns=|models=|max_response=", str(on_command_line.value))


def test_tables_of_a_folder_are_told_from_what_is_known_of_models_and_items(tmp_path):
    for name, text in {
        "past.csv": "model_id,item_id,response\na,x,1\na,y,0\n", "wide.csv": "model_id,x,y\nb,1,0\n",
        "rows.jsonl": '{"model_id": "c", "item_id": "x", "response": 1}\n', "models.csv": "model_id,maker\na,org\n",
        "items.csv": "item_id,n_options\nx,4\n", "questions.csv": "question,difficulty\nx,0.5\n",
    }.items():  # fmt: skip
        put(tmp_path / name, text)
    many = pl.DataFrame({"model_id": ["d"], **{f"q{k}": [1.0] for k in range(40)}})
    many.write_parquet(tmp_path / "many.parquet")
    many.with_columns(pl.lit("words").alias(f"q{k}") for k in range(7, 12)).write_parquet(tmp_path / "not.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = read(tmp_path)
    assert (sorted(matrix.model_ids), matrix.n_items) == (["a", "b", "c", "d"], 42)


def test_items_and_models_of_a_wide_table(tmp_path):
    matrix = read(put(tmp_path / "r.csv", "item_id,scenario,subscenario,a,b\nx,math,sums,1,0\ny,law,,,1\n"))
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [0, 1]])
    assert matrix.items.rows() == [("x", "math", "sums"), ("y", "law", None)]
    path = put(tmp_path / "r.csv", "model_id,seconds,seed,x\na,1,0,1\n")
    assert warns("'seed' may tell of models", read, path).item_ids == ["seconds", "seed", "x"]
    matrix = read(put(tmp_path / "r.csv", "llm,x,y\na,50,100\n"), columns={"model_id": "llm"}, max_response=100)
    np.testing.assert_array_equal(matrix.responses, [[0.5, 1.0]])
    matrix = warns("1 row repeats", read_responses, put(tmp_path / "r.csv", "model_id,x,y\na,1,\nb,1,1\na,1,0\n"))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, 1]])
    (tmp_path / "r.csv").write_text("item_id,,m\na,word,1\nb,2,0\n")
    refuses(r"must hold the responses of a model, got 1 that hold something else: '' ", read, tmp_path / "r.csv")
    (tmp_path / "t.csv").write_text("model_id,sum,mean,total\na,1,0,1\nb,0,1,1\n")
    assert read(tmp_path / "t.csv", format="wide-models").item_ids == ["sum", "mean", "total"]
    path = put(tmp_path / "t.csv", "model_id,sum,mean,total\na,1,1,1\nb,0,0,0\n")
    assert read(path, format="wide-models").n_items == 3
    table = "model_id,x,y,difficulty\na,1,0,1\nb,0,0,0\nc,1,1,0\nd,0,1,1\n"
    assert "difficulty" in read_text(tmp_path, table, format="wide-models").item_ids
    for text in (
        "model_id,x,y,all\na,1,0,1\nb,0,0,0\nc,1,1,0\nd,0,1,1\n",
        "item_id,a,b,c\nall,1,0,1\nx,1,1,0\ny,0,0,1\n",
    ):
        assert "all" in read_text(tmp_path, text).item_ids
    found = warns("'✓' as right", read_text, tmp_path, "item_id,a,b\n1,✓,✗\n2,✗,✓\n")
    assert found.responses.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_items_named_like_a_pattern_are_items(tmp_path, ending):
    """Polars takes a name from ^ to $ for a pattern of names: such an item would be left out without a word."""
    table = pl.DataFrame({"model_id": ["a", "b"], "^x$": [1, 0], "x": [0, 0], "^.*$": [1, 1]})
    matrix = read(write_frame(table, tmp_path / f"r.{ending}"))
    assert (matrix.item_ids, matrix.responses.tolist()) == (["^x$", "x", "^.*$"], [[1, 0, 1], [0, 0, 1]])
    words = {"^x$": ["yes", "no"], "count": ["no", "no"], "^.*$": ["yes", "error"]}  # polars counts into `count`
    path = write_frame(pl.DataFrame({"model_id": ["a", "b"], **words}), tmp_path / f"words.{ending}")
    matrix = warns("'yes' as right|lost answers", read, path, category=Warning, missing_values=("none",))
    assert matrix.item_ids == ["^x$", "count", "^.*$"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, 1], [0, 0, np.nan]])


@pytest.mark.parametrize("name", ["^x$", "*", "y"])
def test_a_column_called_as_a_pattern_is_read_as_any_other_or_refused(tmp_path, name):
    """Polars answers whatever is asked of a column ^x$ for those that match, and drops all columns for a *."""
    path, table = tmp_path / "r.parquet", pl.DataFrame({"model_id": ["a"], "item_id": ["q"], name: [[1, 0]]})
    table.write_parquet(path)
    models = tmp_path / "models.csv"
    pl.DataFrame({"model_id": ["a"], name: [1], "z": [2]}).write_csv(models)
    if name == "^x$":
        for build in (lambda: ReadingSpec(where={name: "1"}), lambda: read_responses(path, models=models)):
            refuses(r"no column may be called \^\.\.\.\$", build, error=ValueError)
        return
    with pytest.warns(DataWarning, match="each value of the lists"):
        matrix = read_responses(path, models=models, spec=ReadingSpec(columns={"response": name}, repeats="mean"))
    assert (matrix.responses.tolist(), matrix.models.columns) == ([[0.5]], ["model_id", name, "z"])
    pl.DataFrame({"model_id": ["a", "b"], "q": [1, 0], name: ["u", "v"]}).write_csv(tmp_path / "w.csv")
    assert read(tmp_path / "w.csv", where={name: "v"}).responses.tolist() == [[0.0]]


@pytest.mark.parametrize("name", ["{model}", "[1] model", "[model]"])
def test_a_header_that_begins_with_a_bracket_is_no_json(tmp_path, name):
    assert read_text(tmp_path, f"{name},item_id,response\na,x,1\n", columns={"model_id": name}).model_ids == ["a"]


def test_items_and_models_that_nobody_asked_are_left_out(tmp_path):
    (tmp_path / "r.csv").write_text("model_id,x,y,z\nnew,1,,0\n")
    with pytest.warns(DataWarning, match="1 of 'new'"):  # what the table of one model leaves empty was asked
        assert read(tmp_path / "r.csv").item_ids == ["x", "y", "z"]
    (tmp_path / "r.csv").write_text("model_id,x,y,z\nnew,1,,0\nother,1,,1\n")
    with pytest.warns(DataWarning, match="1 of 3 items have no answer by any model and are left out: 'y'"):
        assert read(tmp_path / "r.csv").item_ids == ["x", "z"]
    table = "item_id,scenario,a,b\nx,s,1,0\ny,t,,\nz,t,,\n"
    assert warns("'y', 'z'. So all of 't' is gone, and no score counts it", read_text, tmp_path, table).n_items == 1
    (tmp_path / "r.csv").write_text("model_id,x,y\na,1,0\nb,,\n")
    with pytest.warns(DataWarning, match="1 of 2 models have no answer to any item and are left out: 'b'"):
        assert read(tmp_path / "r.csv").model_ids == ["a"]
    refuses("at least one response, got none", read_responses, put(tmp_path / "r.csv", "model_id,x,y\na,,\n"))


def test_a_header_longer_than_the_limit_of_the_csv_module(tmp_path):
    names = [f"item-{k:06d}" for k in range(15_000)]  # 180,000 characters: one field for the wrong separators
    pl.DataFrame([["a", *([1] * len(names))]], schema=["model_id", *names], orient="row").write_csv(tmp_path / "r.csv")
    assert read(tmp_path / "r.csv").item_ids == names


ONE_MODEL = ("item_id,correct", "question,passed", "Question ID, Score", "item_id, response", "id_of,item_id,n,resp")


@pytest.mark.filterwarnings("ignore:.*read the column")
@pytest.mark.parametrize("header", ONE_MODEL)
def test_a_table_of_items_and_one_usual_response_is_of_one_model(tmp_path, header):
    """They were a model called 'correct', which joined that of another file."""
    for name, first in (("gpt4", 1), ("claude", 4)):
        rows = [(*["z"] * (header.count(",") - 1), first + k, k % 2) for k in range(3)]
        if header.startswith("id_of"):
            rows = [("z", first + k, "n", k % 2) for k in range(3)]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    for paths in ([tmp_path / "gpt4.csv", tmp_path / "claude.csv"], tmp_path):
        matrix = warns("no column names a model", read_responses, paths)
        found = dict(zip(matrix.model_ids, np.nansum(matrix.responses, axis=1).tolist(), strict=True))
        assert (found, matrix.n_items, matrix.observed.sum()) == ({"gpt4": 1.0, "claude": 1.0}, 6, 6)


@pytest.mark.filterwarnings("ignore:.*read the column")
def test_a_scenario_beside_items_and_responses_is_no_model(tmp_path):
    """It was advised to take the scenario, or the error, for the model."""
    matrix = warns("results of one: 'r'", read_text, tmp_path, "question_id,scenario,score,error\n1,s,1,\n2,t,0,\n")
    assert matrix.items["scenario"].to_list() == ["s", "t"]
    table = pl.DataFrame({"question": [1], "scenario": ["s"], "score": [1], "error": [None]})
    with pytest.raises(DataError, match="all are of one model, add: --model-id NAME"), command_line_words():
        read(table)


ONES, OTHERS = "item_id,correct\n1,1\n2,0\n", "item_id,correct\n3,1\n4,1\n"


@pytest.mark.parametrize(("files", "models"), [
    ({"gpt4/results.csv": ONES, "claude/results.csv": OTHERS}, {"gpt4": 2, "claude": 2}),
    ({"gpt4/1/results.csv": ONES, "claude/1/results.csv": ONES}, {"gpt4": 2, "claude": 2}),
    ({f"{task}/{m}.csv": text for task, text in (("x", ONES), ("y", OTHERS)) for m in "ab"}, {"a": 4, "b": 4}),
    ({f"{m}/{task}.csv": text for task, text in (("x", ONES), ("y", OTHERS)) for m in "ab"}, {"a": 4, "b": 4}),
    ({f"{m}/{task}.csv": ONES for task in "xy" for m in "ab"}, {}),
    ({"a/r.csv": ONES, "a/r.jsonl": '{"item_id": 1, "response": 0}'}, {}),
])  # fmt: skip
def test_files_of_one_name_are_of_several_models_if_their_folders_tell_them_apart(tmp_path, files, models):
    paths = [put(tmp_path / name, text) for name, text in files.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if not models:
            refuses("must differ in the name of the file, or of its folder", read_responses, paths)
            return
        matrix = read(paths)
    assert dict(zip(matrix.model_ids, matrix.observed.sum(axis=1).tolist(), strict=True)) == models


def test_separators_blanks_and_commas_too_many(tmp_path):
    for text in ("model_id, item_id, scenario , response\na,007,s,1\n", "item_id, scenario,a,b\n007,s,1,0\n"):
        matrix = read_text(tmp_path, text)
        assert (matrix.item_ids, matrix.items["scenario"].to_list()) == (["007"], ["s"])
    (tmp_path / "items.csv").write_text(" item_id, scenario\n007,t\n")
    with pytest.warns(DataWarning, match="scenario of 1 items differs"):
        assert read_responses(tmp_path / "r.csv", items=tmp_path / "items.csv").item_ids == ["007"]
    assert read_text(tmp_path, "model_id|item_id|response\na|x,y;z|0.5\n").item_ids == ["x,y;z"]
    assert read_text(tmp_path, "model_id,arc|x|1,arc|x|2\na,0,1\n").item_ids == ["arc|x|1", "arc|x|2"]
    assert read_text(tmp_path, "model_id,item_id,response,,\na,x,1,,\n").responses.tolist() == [[1]]
    for key in ("model_id", "item_id"):
        assert read_text(tmp_path, f"{key},a,b,\nx,1,0,\ny,0,0,\n").responses.sum() == 1
    assert read_text(tmp_path, "item_id,a,b,,\n1,1,0,,\n2,0,1,,\n").n_models == 2
    table = "item_id,a,b,,\n1,1,0,,1\n2,0,1,,0\n"
    assert "got 1 without. Name those that hold something; to leave them out, add: --drop" in refused(tmp_path, table)
    assert read_text(tmp_path, table, drop_columns=("Unnamed: 4",)).n_models == 2


VERDICTS = "model,question_id,response,label,is_correct\n"
ANSWERS = VERDICTS + "a,1,1,1,1\na,2,1,0,0\na,3,0,0,1\nb,1,0,1,0\nb,2,0,0,1\nb,3,1,0,0\n"


@pytest.mark.filterwarnings("ignore:.*read the column")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("words", [False, True])
def test_an_answer_is_not_taken_for_a_verdict_that_is_beside_it(tmp_path, ending, words):
    """Answers of 0 and 1, or true and false, were scored in place of the verdicts."""
    frame = pl.read_csv(ANSWERS.encode())
    frame = frame.with_columns(pl.col("is_correct", "response").cast(pl.Boolean)) if words else frame
    path = write_frame(frame, tmp_path / f"r.{ending}")
    refuses(r"'response' must agree with 'is_correct' .* for 'a' item '2'\.", read_responses, path)
    assert read(path, columns={"response": "is_correct"}).responses.sum() == 3
    assert read(path, columns={"response": "response"}).responses.tolist()[0] == [1, 1, 0]


@pytest.mark.parametrize(
    "rows", ["a,x,1,1\na,y,0,0\n", "a,x,0.9,True\na,y,0.6,False\n", "a,x,1,B\na,y,0,A\n", "a,x,1,\na,y,0,0\n"]
)
def test_a_verdict_that_agrees_is_no_news(tmp_path, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_text(tmp_path, f"model_id,item_id,response,correct\n{rows}").n_items == 2


@pytest.mark.parametrize("ending", [".csv", ".jsonl.gz"])
def test_models_are_called_as_their_files_with_every_dot(tmp_path, ending):
    """Names cut at their first dot made one model of these two."""
    frame = pl.DataFrame({"item_id": ["q1", "q2"], "response": [1, 0]})
    for name in ("Qwen2.5-7B", "Qwen2.5-72B"):
        write_frame(frame, tmp_path / f"{name}{ending}")
    matrix = warns("the results of one in each file: 'Qwen2.5-72B', 'Qwen2.5-7B'", read, sorted(tmp_path.iterdir()))
    assert sorted(matrix.model_ids) == ["Qwen2.5-72B", "Qwen2.5-7B"]


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_decimal_commas(tmp_path, separator):
    """As R's write.csv2 and spreadsheets of half the world write numbers."""
    rows = [("a", "x", "0,875", "1,5"), ("a", "y", "1", "12,25"), ("b", "x", "0", "1,125"), ("b", "y", ",5", "2")]
    text = "\n".join(separator.join(f'"{one}"' for one in row) for row in rows)
    (tmp_path / "r.csv").write_text(separator.join(("model_id", "item_id", "response", "seconds")) + "\n" + text + "\n")
    matrix = read(tmp_path / "r.csv")
    assert matrix.responses.tolist() == [[0.875, 1.0], [0.0, 0.5]]
    assert matrix.costs["seconds"].tolist() == [[1.5, 12.25], [1.125, 2.0]]
    with pytest.warns(DataWarning, match="read percentages"):
        assert read_text(tmp_path, 'model_id,x,y\na,"12,5 %","50 %"\n').responses.tolist() == [[0.125, 0.5]]


@pytest.mark.parametrize("values", [("0,1", "1,0"), ("1,1", "0,0")])
def test_commas_that_may_part_two_attempts_are_refused(tmp_path, values):
    """As decimals 0,1 is a tenth, as attempts a half."""
    text = f'model_id,item_id,response\na,x,"{values[0]}"\na,y,"{values[1]}"\n'
    refuses("If they are two attempts, write a row for each; if not: Write numbers with a", read_text, tmp_path, text)
    assert read_text(tmp_path, "model_id;item_id;response\na;x;1,0\na;y;0,0\n").responses.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("values", [('"1,234"', '"0"'), ('"0,5"', '"0.5"'), ('"1,234,567"', '"1"')])
def test_commas_that_may_be_thousands_are_refused(tmp_path, values):
    with pytest.raises(DataError, match=r"Write numbers with a decimal point, and nothing between thousands\.$"):
        read_text(tmp_path, f"model_id,item_id,response\na,x,{values[0]}\na,y,{values[1]}\n")


def test_a_line_of_too_many_or_too_few_fields_is_named(tmp_path):
    says = r"line 4 has more fields than the first one, 4 and not 3: 'a,y,0,875'. A comma within a value .0,5. needs"
    refuses(says, read_text, tmp_path, 'model_id,item_id,response\na,"x\nx",1\na,y,0,875\n')
    with pytest.raises(DataError, match="line 3 has more fields than the first one, 4 and not 3: 'b,1,0,1'"):
        read_text(tmp_path, "model_id,x,y\na,0,1\nb,1,0,1\n")
    few = "line 3 has fewer fields than the first one, 2 and not 3: 'b,1'. What it lacks"
    assert np.isnan(warns(few, read_text, tmp_path, "model_id,x,y\na,0,1\nb,1\n").responses).sum() == 1
    with pytest.warns(DataWarning) as caught:
        assert read_text(tmp_path, "model_id,item_id,response,note\na,x,1,\nb,x\na,y,1\nb,y,0,n\n").n_items == 2
    assert "line 3 has fewer fields than the first one, 2 and not 4: 'b,x'" in str(caught[0].message)


@pytest.mark.parametrize(("text", "says"), [
    ("a,x,1\nb,x,0\n", r"got columns 'a', 'x', '1'\. '1' may be no name: if the first line is a row, put one before"),
    ("system,0,1\na,0,1\n", r"'0' may be no name: .* Say which column names the model"),
    ("a,1,0,1\nb,1,1,0\n", r"more than once: '1'\. '1' may be no name: if the first line is a row, put one before it:"),
    ("model_id item_id response\na x 1\n", "by commas, tabs or semicolons, not by blanks"),
])  # fmt: skip
def test_a_table_without_names_or_separators_is_told(tmp_path, text, says):
    refuses(says, read_text, tmp_path, text)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [(("win", "tie", "loss"), [1, 0.5, 0]), (("Won", "draw", "LOST"), [1, 0.5, 0]), (("W", "L", "T"), [1, 0, 0.5])],
)
def test_wins_ties_and_losses(tmp_path, words, numbers):
    rows = "".join(f"a,q{place},{word}\n" for place, word in enumerate(words))
    with pytest.warns(DataWarning, match=f"read '{words[0]}' as 1, '{words[1]}' as {numbers[1]:g}|read .*{words[0]}"):
        assert read_text(tmp_path, f"model_id,item_id,response\n{rows}").responses.tolist() == [numbers]


@pytest.mark.filterwarnings("ignore:.*(without a response|have no response|as response\\.$)")
@pytest.mark.parametrize("column", ["response", "score"])
def test_lists_are_attempts(tmp_path, column):
    lists = [[1, 0, None], [], None, [1]]
    frame = pl.DataFrame(
        {"model_id": ["a"] * 4, "item_id": list("wxyz"), column: lists}, schema_overrides={column: pl.List(pl.Int64)}
    )
    frame.write_parquet(tmp_path / "r.parquet")
    frame.write_ndjson(tmp_path / "r.jsonl")
    for path in (tmp_path / "r.parquet", tmp_path / "r.jsonl"):
        with pytest.warns(DataWarning, match=f"each value of the lists in '{column}' as the response of one attempt"):
            matrix = read(path, repeats="count")
        np.testing.assert_array_equal(matrix.responses, [[0.5, np.nan, np.nan, 1.0]])
        assert matrix.n_trials.tolist() == [[2, 0, 0, 1]]


@pytest.mark.parametrize("layout", ["model_id,item_id,response\nm,x,{}\nm,y,{}\n", "model_id,x,y\nm,{},{}\n"])
def test_sums_that_miss_the_ends_by_their_last_digits_are_at_the_ends(tmp_path, layout):
    (tmp_path / "t.csv").write_text(layout.format(sum([0.1] * 3) / 0.3 + 2e-16, -1e-17))
    assert read(tmp_path / "t.csv").responses.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("key", ["model_id", "item_id"])
def test_a_column_of_other_numbers_beside_right_and_wrong_ones_is_named(key, tmp_path):
    """What is known of each model became an item, and the difficulty of each item a model."""
    names = [f"c{number}" for number in range(10)]
    lines = [f"{row},{0.1 * row + 0.1},{','.join(str((row + one) % 2) for one in range(10))}" for row in range(4)]
    (tmp_path / "w.csv").write_text("\n".join([",".join([key, "hardness", *names]), *lines]))
    warns(r"but 'hardness' mostly something between, .* To leave out what is none: drop_", read, tmp_path / "w.csv")
    read(tmp_path / "w.csv", drop_columns=("hardness",))
    if key == "item_id":
        warns("answers, but 'hardness' mostly", read_text, tmp_path, "item_id,m,n,hardness\na,1,0,0.3\nb,0,1,0.9\n")
        judges = "item_id,judge_a,judge_b,judge_c\na,1,0,0.3\nb,0,1,0.9\n"  # one of whom grades
        assert read_text(tmp_path, judges).responses.tolist() == [[1, 0], [0, 1], [0.3, 0.9]]
    lines = [f"{row},{credit},{','.join('0101010101')}" for row, credit in enumerate((0.5, 0, 1))]  # partial credit
    assert read_text(tmp_path, "\n".join([",".join([key, "hard", *names]), *lines])).responses.sum() == 16.5


def test_models_and_scenarios_on_another_scale_are_told_before_and_after_all_are_divided(tmp_path):
    """Whoever obeyed had the model of shares a hundred times too low."""
    rows = [(model, item, f"s{item}", share) for model in "ab" for item, share in enumerate((0.3, 0.6, 0.9))]
    schema = ["model_id", "item_id", "scenario", "response"]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    for name, is_far, far, near in (("model_id", "b", "'b'", "'a'"), ("scenario", "s2", "'s2'", "'s0', 's1'")):
        mixed = table.with_columns(pl.col("response") * pl.when(pl.col(name) == is_far).then(100).otherwise(1))
        path = write_frame(mixed, tmp_path / "r.csv")
        refuses(f"Only {far} goes beyond 1, and what divides all would shrink {near}", read, path)
        says = f"no response of {near} is more than 1 of 100, and some of {far} are"
        assert warns(says, read, path, max_response=100).n_items == 3
    path = write_frame(table.with_columns(pl.col("response") * 100), tmp_path / "r.csv")
    np.testing.assert_allclose(read(path, max_response=100).responses, [[0.3, 0.6, 0.9]] * 2)


def test_columns_on_another_scale_are_named(tmp_path):
    marks = "\n".join(f"{name},4,{5 - k},{20 + k},0.5" for k, name in enumerate("abcd"))
    says = refused(tmp_path, f"model_id,x,y,age,share\n{marks}\n")
    assert "2 of 4 columns end elsewhere than the rest: 'age' at 23, 'share' at 0.5. To leave these out" in says
    assert "--drop-column age --drop-column share" in says
    left = refused(tmp_path, f"model_id,x,y,age,share\n{marks}\n", drop_columns=("age", "share"))
    assert "If marks end at 5, add: --max-response 5" in left
    hard_and_easy = "model_id,q1,q2,q3\na,0,3,3\nb,3,3,2\nc,0,2,3\nd,1,0,0\n"
    assert "end elsewhere" not in refused(tmp_path, hard_and_easy)


@pytest.mark.parametrize(("table", "says"), [
    ("item_id,model,topic,rank\n1,a,x,1\n1,b,x,0\n", "add: --column model_id=model --column response=rank"),
    ("item_id,x,y\n1,1,0\n1,0,1\n", "add: --column model_id=... --column response=..."),
    ("item_id,scenario,x,y\n1,s,1,0\n1,t,0,1\n", "add: --column model_id=... --column response=...\nIf 'scenario' t"),
    ("model_id,about,mark\na,x,1\na,y,0\n,x,1\n", "add: --column item_id=about --column response=mark"),
    ("model_id,org,q,r\na,x,1,0\na,y,0,1\n",
        "add: --column item_id=org --column response=...\nIf 'org' tells them apart, add: --column model_id=org+m"),
])  # fmt: skip
def test_a_row_of_a_table_whose_ids_come_again_may_be_one_response(tmp_path, table, says):
    message = refused(tmp_path, table)
    assert f"have several rows. If a row is one response, {says}" in message
    assert "--drop-column" not in message


LEADERBOARD = "Each model has one row: if that is its score on a whole benchmark, bring the results of each item."
LETTERS = "'q1', 'q2' hold letters. If they were answered, write 1 where the letter is right"


@pytest.mark.parametrize(("table", "says"), [
    ("model_id,acc,acc,f1,f1\n,mean,std,mean,std\na,1,0,1,0\n", "make one line of both"),
    ("item_id,a,b\n1,1,0\n2,1,1\n3,0,1\n4,1,0\nAccuracy (%),75,50\n",
        "1 of 5 rows end above the rest: 'Accuracy (%)' at 75. Delete them"),
    ("rank,model,score\n1,a,0.9\n2,b,0.8\n", LEADERBOARD),
    ("model,question_id,confidence\na,1,0.9\na,2,0.8\n", "--column response=..."),
    ("model_id,q1,q2,total\na,A,C,1\nb,B,D,0\n", LETTERS),
])  # fmt: skip
def test_what_a_table_may_be_is_said(tmp_path, table, says):
    assert says in refused(tmp_path, table)


@pytest.mark.parametrize(("table", "says"), [
    ("question,ground_truth,model_answer\nq,Paris,It is Paris.\nr,four,I think 4\n", "To compare"),
    ("rank,model,score\n1,a,0.9\n2,a,0.8\n", LEADERBOARD),
    ("item_id,a,b\n1,1/2,2/2\n2,1/2,2/2\n3,1/2,2/2\n4,1/2,1/2\n", "scenario="),
])  # fmt: skip
def test_what_a_table_is_not_is_not_said(tmp_path, table, says):
    assert says not in refused(tmp_path, table)


@pytest.mark.parametrize(("rows", "named"), [
    ("Average,0.667,0.333,0.333\nStd,0.471,0.471,0.471\n", "'Average', 'Std'"),
    ("std,0.577,0.577,0.577\n", "'std'"), ("difficulty,0.333,0.667,0.667\n", "'difficulty'"),
])  # fmt: skip
def test_rows_of_means_and_spreads_are_no_items(tmp_path, rows, named):
    says = refused(tmp_path, f"item_id,a,b,c\n1,1,0,0\n2,1,0,1\n3,0,1,0\n{rows}")
    assert f"each item must have responses of its own, got {named}, which holds the means or sums" in says


@pytest.mark.parametrize("name", ["run_id", "Scenario ID", "sampleKey.id", "caseId", "id"])
def test_the_one_column_that_is_called_an_id_may_name_items(tmp_path, name):
    table = f"model,{name},grid,correct\na,1,x,1\na,2,x,0\n"
    told = f"add: --column {'item_id=' + name if ' ' not in name else repr('item_id=' + name)}"
    assert refused(tmp_path, table).endswith(told)
    rows = {"rows": [{"model": "a", name: "1", "correct": True, "error": None}]}
    key = f".{name}" if name.replace("_", "").isalnum() else f'.["{name}"]'
    says = f".rows[] | . + {{model_id: .model, item_id: {key}, response: .correct}}"
    assert says in refused(tmp_path, json.dumps(rows), "r.json")


def test_the_models_own_answers_and_highest_marks_are_told_from_verdicts(tmp_path):
    table = "model,question_id,score,max_score\na,1,1,2\na,2,0,4\na,3,1,1\n"
    program = ". + {model_id: .model, item_id: .question_id, response: ((.score | tonumber) / (.max_score | tonumber))}"
    says = refused(tmp_path, table)
    assert f"got 1 and 2. To divide, add: --jq '{program}'; if 'score' alone is the response, add: --column" in says
    found = warns("as item_id", read_text, tmp_path, table, columns={"response": "score"})
    assert found.responses.tolist() == [[1, 0, 1]]
    with pytest.warns(DataWarning, match="as item_id"):  # shares already
        assert read_text(tmp_path, table.replace("a,3,1,", "a,3,0.5,")).n_items == 3
    pytest.importorskip("jq", reason="needs the extra jq")
    assert read_text(tmp_path, table, jq=program).responses.tolist() == [[0.5, 0, 1]]
    table = "model,question_id,result,label\na,1,1,1\na,2,0,0\na,3,1,0\n"
    program = ". + {model_id: .model, item_id: .question_id, response: (.result == .label)}"
    with pytest.warns(DataWarning) as warned:
        assert read_text(tmp_path, table).responses.tolist() == [[1, 0, 1]]
    assert any(f"what a model answered, add: jq='{program}'" in str(one.message) for one in warned)
    pytest.importorskip("jq", reason="needs the extra jq")
    assert read_text(tmp_path, table, jq=program).responses.tolist() == [[1, 1, 0]]


@pytest.mark.parametrize(("name", "total"), [("n_tests", 9), ("total", 0.2), ("max_score", 1), ("max_score", 0)])
def test_a_total_beside_right_and_wrong_is_no_highest_mark(tmp_path, name, total):
    table = f"model,question_id,score,{name}\na,1,1,{total}\na,2,0,{total}\n"
    assert warns("as item_id", read_text, tmp_path, table).responses.tolist() == [[1, 0]]
    assert "got 7 and 9. To divide" in refused(tmp_path, f"model,question_id,score,{name}\na,1,7,9\na,2,0,9\n")


def test_a_score_beside_a_label_may_be_a_probability(tmp_path):
    rows = "\n".join(f"{k},{k % 2},0.{k + 1}" for k in range(6))
    table = f"item_id,y,score\n{rows}\n"
    with pytest.warns(DataWarning) as caught:
        read_text(tmp_path, table)
    (program,) = re.findall("is the probability of 1, add: jq=(['\"])(.*)\\1; if not", str(caught[0].message))
    pytest.importorskip("jq", reason="needs the extra jq")
    made = read_text(tmp_path, table, jq=program[1])
    np.testing.assert_allclose(made.responses, [[0.9, 0.2, 0.7, 0.4, 0.5, 0.6]])


def test_rows_that_were_taken_back_and_broken_outputs_can_be_left_out(tmp_path):
    table = "model_id,item_id,response,deleted_at,output\na,x,1,,4\na,y,0,2026-01-01,5\na,z,0,,API Error: HTTP 429\n"
    with pytest.warns(DataWarning, match="'API Error: HTTP 429' as 'output'.* add: jq=") as caught:
        assert read_text(tmp_path, table, where={"deleted_at": ""}).item_ids == ["x", "z"]
    pytest.importorskip("jq", reason="needs the extra jq")
    said = next(str(one.message) for one in caught if "jq=" in str(one.message))
    program = ast.literal_eval(said.rpartition("add: jq=")[2])
    matrix = warns("", read_text, tmp_path, table, jq=program)
    assert (matrix.responses[0, :2].tolist(), matrix.lost.in_words) == ([1.0, 0.0], "1 harness error")


@pytest.mark.parametrize("value", ["3/5", "2 of 4"])
def test_counts_of_attempts_are_no_words_for_right_and_wrong(tmp_path, value):
    said = refused(tmp_path, f"model_id,item_id,response\na,x,{value}\na,y,0/5\n")
    assert "If these are shares, divide them, or write two columns of a long table, n_correct and n_trials" in said


def test_folders_may_be_models_and_files_tasks(tmp_path):
    for model in "ab":
        for task in ("arc", "gsm"):
            put(tmp_path / model / f"{task}.csv", f"question_id,score\n0,{int(model == 'a')}\n1,{int(task == 'arc')}\n")
    with command_line_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = refuses("If folders are models, and files tasks, add: --jq", read, tmp_path)
    pytest.importorskip("jq", reason="needs the extra jq")
    program = re.findall("--jq '(.*)' --prefix-scenario", said)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = read(tmp_path, jq=program, prefix_scenario=True)
    assert (matrix.model_ids, matrix.item_ids) == (["a", "b"], ["arc/0", "arc/1", "gsm/0", "gsm/1"])
    assert matrix.responses.tolist() == [[1, 1, 1, 0], [0, 1, 0, 0]]


def test_numbers_that_passed_and_failed_are_divided_by_their_sum(tmp_path):
    table = "model_id,item_id,passed,failed\na,x,1,3\na,y,1,0\n"
    said = refused(tmp_path, table.replace("passed", "correct").replace("failed", "wrong"))
    assert "'correct' must be right or wrong, and may be a number beside 'wrong'" in said
    verdicts = "model_id,item_id,passed,failed\na,x,0,3\na,y,1,0\n"  # what failed is a number of tests
    assert warns("read the column 'passed'", read_text, tmp_path, verdicts).responses.tolist() == [[0.0, 1.0]]
    pytest.importorskip("jq", reason="needs the extra jq")
    program = re.findall("add: --jq '(.*?)'; if", refused(tmp_path, table))[0]
    assert read_text(tmp_path, table, jq=program).responses.tolist() == [[0.25, 1.0]]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("agent,task,reward", "--column model_id=agent --column item_id=task"),
        ("Agent Name,task,trial,reward", "--column 'model_id=Agent Name' --column item_id=task"),
        ("agent,instance_id,resolved", "--column model_id=agent. A table"),
        ("agent,system,instance_id,resolved", "--column model_id=.... A table"),
    ],
)
def test_names_that_may_be_ours_are_advised_and_not_taken_unasked(tmp_path, header, words):
    row = ",".join("1" * header.count(","))
    (tmp_path / "runs.csv").write_text(f"{header}\na,{row}\nb,{row}\n")
    with command_line_words(), pytest.raises(DataError) as refusal:
        read_responses(tmp_path / "runs.csv")
    assert words in str(refusal.value)
