"""Wide tables: a column a model, or an item, and what beside them is neither."""

import re
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataWarning, command_line_words
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import put, read, read_text, refused, refuses, warns, write_frame


@pytest.mark.parametrize("layout", ["wide-models", "wide-items"])
def test_real_wide_data_agrees_with_the_long_file(layout, shared_dir, tmp_path):
    folder = shared_dir / "data" / "mmlu-pro"
    wide = pl.read_parquet(folder / "wide_uint8.parquet")
    models = [name for name in wide.columns if name != "item_id"]
    wide = wide.with_columns(pl.col(models).replace(255, None))  # the file marks a missing response by 255
    if layout == "wide-models":
        wide = wide.transpose(include_header=True, header_name="model_id", column_names="item_id")
    got = read(write_frame(wide, tmp_path / "wide.parquet"))
    expected = read(folder / "responses.parquet")
    expected = expected.take(models=expected.model_indices(got.model_ids), items=expected.item_indices(got.item_ids))
    np.testing.assert_array_equal(got.responses, expected.responses)
    assert got.responses.shape == (34, 12032)


@pytest.mark.parametrize("folder", [False, True])
def test_rows_and_columns_of_a_wide_table_are_chosen(tmp_path, folder):
    """Rows that were not asked for counted, and what they were chosen by was an item."""
    text = "model_id,run,note,q1,q2\na,first,n,1,0\na,second,n,0,1\nb,first,n,1,1\nb,second,n,0,0\n"
    (tmp_path / "r.csv").write_text(text)
    spec = ReadingSpec(where={"run": "first"}, drop_columns=("note",))
    matrix = read_responses(tmp_path if folder else tmp_path / "r.csv", spec=spec)
    assert (matrix.item_ids, matrix.responses.tolist()) == (["q1", "q2"], [[1, 0], [1, 1]])


@pytest.mark.parametrize(("table", "columns", "ids"), [
    ("org,model,q1,q2\nx,s,1,0\ny,s,1,1\n", {"model_id": "org+model"}, ["x + s", "y + s"]),
    ("scenario,item_id,a,b\nm,1,1,1\nn,1,0,1\n", {"item_id": "scenario+item_id"}, ["m/1", "n/1"]),
])  # fmt: skip
def test_ids_of_rows_are_joined_of_columns_that_hold_no_responses(tmp_path, table, columns, ids):
    """The columns that an id was made of were refused as responses, and once they were dropped so was the id."""
    matrix = read_text(tmp_path, table, columns=columns)
    assert ids in (matrix.model_ids, matrix.item_ids)
    assert matrix.responses.sum() == 3
    if "item_id" in columns:
        assert "give instead: --column item_id=scenario+item_id" in refused(tmp_path, table, prefix_scenario=True)


WIDE = pl.DataFrame({"q1": [1, 0, 1], "q2": [0, 0, 1]})


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "...1", "X", "rownames", "__index_level_0__"])
def test_names_of_rows_are_the_models(tmp_path, name):
    """R's write.csv and pandas write them into a first column without a name of its own."""
    WIDE.clone().insert_column(0, pl.Series(name, ["a", "b", "c"])).write_csv(tmp_path / "r.csv", quote_style="always")
    words = "the first column, which has no name" if not name else f"the first column, '{name}'"
    with pytest.warns(DataWarning, match=rf"read {words}, as model_id\. If a row is an item, add: format='wide-items'"):
        matrix = read(tmp_path / "r.csv")
    assert (matrix.model_ids, matrix.item_ids) == (["a", "b", "c"], ["q1", "q2"])
    np.testing.assert_array_equal(matrix.responses, WIDE.to_numpy())
    turned = warns("as item_id", read, tmp_path / "r.csv", format="wide-items")
    np.testing.assert_array_equal(turned.responses, matrix.responses.T)


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index"])
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_rows_are_no_item(tmp_path, name, first):
    """The first two rows' numbers are in [0, 1], so that such a column was an item."""
    frame = WIDE.head(2).insert_column(0, pl.Series("model_id", ["a", "b"]))
    frame.insert_column(0, pl.Series(name, [first, first + 1])).write_csv(tmp_path / "r.csv")
    with pytest.warns(DataWarning, match=f"left out the column '{name}', which numbers the rows"):
        assert read(tmp_path / "r.csv").item_ids == ["q1", "q2"]


def test_rows_are_numbered_and_lists_shown(tmp_path):
    frame = (
        WIDE.clone().insert_column(0, pl.Series("model_id", ["a", "b", "c"])).with_columns(index=pl.Series([1, 0, 0]))
    )
    assert read(write_frame(frame, tmp_path / "r.csv")).item_ids == ["q1", "q2", "index"]
    (tmp_path / "r.csv").write_text("Unnamed: 0.1,Unnamed: 0,model_id,x,y\n0,0,a,1,0\n1,1,b,0,1\n")
    assert warns("'Unnamed: 0.1', 'Unnamed: 0', which numbers the", read, tmp_path / "r.csv").item_ids == ["x", "y"]
    pl.DataFrame({"model_id": ["a", "b"], "x": [[1, 0], [0]], "y": [[1], [1]]}).write_parquet(tmp_path / "r.parquet")
    refuses(r"'\[1, 0\]' 1 time.* must be so in every row of a long table", read_responses, tmp_path / "r.parquet")


def test_answers_verdicts_and_measures_are_no_models(tmp_path):
    table = "question_id,label,prediction\n1,0,0\n2,1,1\n3,1,0\n"
    program = ". + {model_id: $stem, item_id: .question_id, response: (.prediction == .label)}"
    assert f"To compare 'prediction' with 'label', add: --jq '{program}'\n" in refused(tmp_path, table)
    with pytest.warns(DataWarning, match=r"as item_id\. Other columns are read as models: 'label', 'prediction'\."):
        assert read_text(tmp_path, table, format="wide-items").n_models == 2
    pytest.importorskip("jq", reason="needs the extra jq")
    assert read_text(tmp_path, table, jq=program).responses.tolist() == [[1.0, 1.0, 0.0]]
    assert "(.pred == .y_true)" in refused(tmp_path, "id,y_true,pred\n1,0,0\n")
    assert "((.pred | tonumber) == (.label | tonumber))" in refused(tmp_path, "item,label,pred\n1,0.0,0\n2,1.0,1\n")
    assert "(.answer == .expected)" in refused(tmp_path, "model,item,expected,answer\na,1,x,x\n")
    assert "To compare" not in refused(tmp_path, "id,expected,answer,correct\n1,x,x,1\n")
    table = "item_id,a,b,patch,why\n1,resolved,unresolved,0,x\n2,unresolved,resolved,1,y\n3,resolved,resolved,0,z\n"
    assert "'a', 'b' say in words what is right. To leave these out, add: --drop-column patch" in refused(
        tmp_path, table
    )
    with pytest.warns(DataWarning, match="'resolved' as right"):
        assert read_text(tmp_path, table, drop_columns=("patch", "why")).responses.tolist() == [[1, 0, 1], [0, 1, 1]]
    says = refused(tmp_path, "item_id,a,b\n1,yes,no\n2,?,yes\n3,no,no\n4,no,no\n5,no,yes\n6,no,no\n")
    assert "missing, add: --missing '?'" in says
    assert not any(one in says for one in ("To leave these out", "is the scenario"))
    table = "question_id,a_correct,a_confidence,b_correct,b_latency\n1,1,0.9,0,0.5\n2,0,0.8,1,0.7\n"
    assert "add: --drop-column a_confidence --drop-column b_latency" in refused(tmp_path, table)
    assert warns("as item_id", read_text, tmp_path, table, drop_columns=("a_confidence", "b_latency")).n_models == 2
    assert read_text(tmp_path, "item_id,gpt-low-cost,gpt\n1,1,0\n2,0,1\n").n_models == 2
    assert read_text(tmp_path, "item_id,gpt-realtime,gpt-4o\n1,0.5,1\n2,1,0.3\n").n_models == 2
    assert "'gpt time'. To leave" in refused(tmp_path, "item_id,gpt time,gpt-4o\n1,0.5,1\n2,1,0.3\n")
    says = refused(tmp_path, "task_id,reward,success\n1,0.5,1\n2,0.1,0\n")
    assert "Some are called as responses: 'reward', 'success'. To take one, add: --column response=..." in says
    with pytest.warns(DataWarning, match=r"'recall_at_1', 'answer f1' are called as metrics, and are read as items"):
        assert read_text(tmp_path, "model_id,recall_at_1,answer f1\na,0.5,0.4\nb,0.6,0.7\n").n_items == 2
    assert read_text(tmp_path, "model_id,f1,q2\na,0.5,0.4\nb,0.6,0.7\n").n_items == 2
    assert read_text(tmp_path, "model_id,recall_1,recall_2\na,0,1\nb,1,0\n").n_items == 2
    for item in ("question_id", "item_id"):
        table = f"{item},correct,gpt4,claude\n1,1,0,1\n2,0,1,1\n"
        says = r"'gpt4', 'claude' may be models.* add: --as wide-items; if 'correct' alone"
        assert re.search(says, refused(tmp_path, table))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # which column is read as item_id
            assert sorted(read_text(tmp_path, table, format="wide-items").model_ids) == ["claude", "correct", "gpt4"]
    with pytest.warns(DataWarning, match="no column names a model"):
        assert read_text(tmp_path, table, columns={"response": "correct"}).responses.tolist() == [[1.0, 0.0]]
    with pytest.warns(DataWarning) as caught:
        read_text(tmp_path, "item_id,correct,gpt4,is_final,topic\n1,1,0,1,x\n2,0,1,1,y\n")
    assert any("'gpt4' may be a model, which is not read" in str(one.message) for one in caught)


@pytest.mark.parametrize(
    "head", ["item_id,acc", "doc_id,acc,acc_norm", "item_id,Accuracy,other", "item_id,pass@1,0-shot"]
)
def test_metrics_of_one_model_are_no_models(tmp_path, head):
    """Files of two models were one model called acc."""
    for model in "ab":
        put(
            tmp_path / f"{model}.csv",
            f"{head}\n" + "".join(f"{model}{k},1{',0' * (head.count(',') - 1)}\n" for k in "xy"),
        )
    metric = head.split(",")[1]
    with command_line_words(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # which column is read as item_id
        says = refuses("Some are called as responses", read, [tmp_path / "a.csv", tmp_path / "b.csv"])
    assert f"add: --column response={'...' if head[-4:] in {'norm', 'shot'} else metric}\nIf all are models" in says
    matrix = warns(
        "no column|read the column", read, [*map(tmp_path.joinpath, ("a.csv", "b.csv"))], columns={"response": metric}
    )
    assert (matrix.model_ids, matrix.n_items) == (["a", "b"], 4)


@pytest.mark.parametrize("model", ["", "model,"])
def test_attempts_that_are_columns(tmp_path, model):
    row = "a," * bool(model)
    table = f"{model}question_id,run1,run_2\n{row}1,1,0\n{row}2,1,1\n"
    own = ".model" if model else "$stem"
    program = f". + {{model_id: {own}, item_id: .question_id, response: [.run1, .run_2]}}"
    assert f"To read 'run1', 'run_2' as attempts, add: --jq '{program}' --repeats count" in refused(tmp_path, table)
    pytest.importorskip("jq", reason="needs the extra jq")
    matrix = warns("read each value of the lists", read_text, tmp_path, table, jq=program, repeats="count")
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5, 1.0]], [[2, 2]])


@pytest.mark.parametrize("name", ["label", "ground_truth", "prediction"])
def test_right_answers_beside_models_are_none(tmp_path, name):
    table = f"question_id,{name},a,b\n1,1,1,0\n2,0,1,1\n"
    assert f"add: --drop-column {name}\n" in refused(tmp_path, table)
    assert read_text(tmp_path, table, format="wide-items", columns={"item_id": "question_id"}).n_models == 3


@pytest.mark.parametrize(("key", "name", "values"), [
    ("item_id", "weight", "11"), ("item_id", "Difficulty", ("0.3", "0.5")), ("item_id", "has_image", "01"),
    ("item_id", "fold", "01"), ("item_id", "a_stderr", ("0.1", "0.2")), ("model_id", "temperature", ("0.7", "0")),
    ("model_id", "score", ("0.4", "0.6")), ("model_id", "cost_usd", ("0.1", "0.2")), ("model_id", "is_chat", "10"),
])  # fmt: skip
def test_what_is_known_of_things_is_told_where_it_counts_as_responses(tmp_path, key, name, values):
    """Weights of items were a model that is right everywhere, and the temperature of models an item, in silence."""
    table = f"{key},{name},a,b\n1,{values[0]},0.5,1\n2,{values[1]},0,0.5\n"
    other, told = ("item", "models") if key == "model_id" else ("model", "items")
    layout = f"wide-{told}"
    says = f"'{name}' may tell of {told}, and count as {other}s. If they do, add: drop_columns=.'{name}',.; if not, "
    is_measure = key == "item_id" and name == "a_stderr"  # which is refused as the model's own
    if is_measure:
        assert "--drop-column a_stderr" in refused(tmp_path, table)
    else:
        assert warns(f"{says}format='{layout}'", read_text, tmp_path, table).responses.size == 6
    assert read_text(tmp_path, table, format=layout).responses.size == 6
    assert read_text(tmp_path, table, drop_columns=(name,)).responses.size == 4


@pytest.mark.parametrize(
    "name", ["best", "Majority vote", "oracle", "human expert", "best-of-3", "any_correct", "agree"]
)
def test_what_is_no_single_model_is_named(tmp_path, name):
    for table in (f"item_id,a,b,{name}\nx,1,0,1\ny,0,0,1\n", f"model_id,x,y\na,1,0\nb,0,0\n{name},1,1\n"):
        says = f"{name!r} may be several models, people or chance, and count as models.* add: drop_columns="
        assert warns(says, read_text, tmp_path, table).n_models == 3


@pytest.mark.parametrize("name", ["Human-Like-7B", "oracle@2.0", "bestmodel-x", "n", "7"])
def test_names_of_models_raise_no_alarm(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_text(tmp_path, f"item_id,a,b,{name}\nx,1,0,1\ny,0,0,1\n").n_models == 3


@pytest.mark.parametrize("name", ["weight", "Difficulty", "max", "Max Points", "answer key"])
def test_a_row_that_tells_of_items_is_no_model(tmp_path, name):
    """It was a model with the weights for answers, and marks were divided by the largest of all."""
    table = f"model_id,x,y\na,1,0\nb,0,1\n{name},0.5,1\n"
    assert f"got {name!r}, which may tell of items. Delete it" in refused(tmp_path, table)
    assert read_text(tmp_path, table, format="wide-models").n_models == 3
    if name != "answer key":  # a model may be called so that is right and wrong
        assert read_text(tmp_path, table.replace("0.5", "0")).n_models == 3


def test_functions_are_called_as_flags_are_and_are_items(tmp_path):
    names = ["has_close_elements", "add", "is_prime", "is_prime0", "n_queens", "sort", "use_map"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_text(tmp_path, f"model_id,{','.join(names)}\na,1,0,1,0,1,0,1\nb,0,1,0,1,0,1,0\n")
    warns("'use_tools' may tell of models", read_text, tmp_path, "model_id,use_tools,x,y\na,1,0,1\nb,0,1,1\n")
    warns("'Mean win rate' may tell of", read_text, tmp_path, "model_id,Mean win rate,x\na,0.5,0.1\nb,0.6,1\n")


def test_means_in_tenths_are_no_item(tmp_path):
    rows = "\n".join(f"q{k},{int(k < 7)},{int(k % 3 == 0)}" for k in range(11))
    assert "got 'Acc.', which holds the means" in refused(tmp_path, f"item_id,a,b\n{rows}\nAcc.,0.6,0.4\n")


def test_answers_of_many_models_are_compared_with_the_right_ones(tmp_path):
    pytest.importorskip("jq", reason="needs the extra jq")
    letters = "question_id,n,gold,a,b\n1,7,A,A,B\n2,8,B,C,B\n3,9,C,C,A\n"
    for table in (letters, "question_id,truth,a,b\n1,1,1,0\n2,0,1,0\n3,1,1,0\n"):
        (program,) = re.findall(r"to compare with '\w+', add: --jq '(.*)'", refused(tmp_path, table))
        made = read_text(tmp_path, table, jq=program)
        assert (made.model_ids, made.item_ids) == (["a", "b"], ["1", "2", "3"])
        assert made.responses.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_versions_of_models_raise_no_alarm(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_text(tmp_path, "item_id,llama-3,llama-3.1,qwen2,qwen2.5\nx,1,0,1,0\ny,0,1,1,0\n")


def test_a_column_that_came_twice_and_rows_of_runs_are_told(tmp_path):
    warns("'q1.1' may be columns whose name came twice", read_text, tmp_path, "model_id,q1,q1.1,q2\na,1,0,1\nb,1,1,1\n")
    table = "model_id,run,q1,q2\na,0,1,0\na,1,0,1\nb,0,1,1\nb,1,0,0\n"
    warns("'run' may tell of models, and count as items", read_text, tmp_path, table, repeats="mean")
    says = "'turn', 'tstamp' may tell of items, and count as models"
    warns(says, read_text, tmp_path, "item_id,turn,tstamp\n1,1,1\n2,1,1\n")


def test_marks_from_one_have_no_zero_and_an_item_may_have_ones_alone(tmp_path):
    table = "model_id,q1,q2,q3\na,1,5,4\nb,1,2,5\nc,1,3,2\n"
    assert "--drop-column" not in refused(tmp_path, table)
    assert "'q1' at 1. To leave these out" in refused(tmp_path, table.replace("b,1", "b,0"))
