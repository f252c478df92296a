import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses
from tests.readers.bad_files import LONG, lines


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(LONG + "a,007,1\nb,x,0\nb,007,1\na,x,1\n")
    return path


def write(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_columns_join_by_id_and_keep_their_types(results, tmp_path, suffix):
    frame = pl.DataFrame(
        {
            "item_id": ["extra", "x", "007"],
            "scenario": ["none", "law", "math"],
            "n_options": [2, 4, 5],
            "chance": [0.5, 0.25, None],
            "is_hard": [True, False, True],
            "text": ["t", "u", None],
        }
    )
    path = tmp_path / f"items.{suffix}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[suffix](path)
    models = write(tmp_path, "models.csv", "model_id,organisation\nb,B\na,A\n")
    matrix = read_responses(results, models=models, items=path)
    assert matrix.models.rows() == [("a", "A"), ("b", "B")]
    assert matrix.items.rows() == [("007", "math", None, 5, None, True, None), ("x", "law", None, 4, 0.25, False, "u")]
    assert matrix.items.schema["n_options"] == pl.Int64


def test_items_that_are_not_in_the_table_have_empty_columns_with_a_warning(results, tmp_path):
    items = write(tmp_path, "items.csv", "item_id,n_options\nx,4\n")
    with pytest.warns(DataWarning, match="1 of 2 items are not in the table of items and have empty columns: '007'"):
        assert read_responses(results, items=items).items["n_options"].to_list() == [None, 4]


def test_a_table_of_other_models_is_refused(results, tmp_path):
    with pytest.raises(DataError, match=r"none of the 2 models of .*results.csv is in .*, which has 'c'"):
        read_responses(results, models=write(tmp_path, "models.csv", "model_id\nc\n"))


def test_what_stands_with_the_responses_wins_with_a_warning_and_gaps_are_filled(tmp_path):
    path = write(tmp_path, "r.csv", "model_id,item_id,response,scenario\na,x,1,math\na,y,1,\na,z,1,law\n")
    items = write(tmp_path, "items.csv", "item_id,scenario\nx,maths\ny,code\nz,law\n")
    with pytest.warns(DataWarning, match=r"of 1 items differs .*'math' for 'x'\) and the table of items \('maths'\)"):
        assert read_responses(path, items=items).items["scenario"].to_list() == ["math", "code", "law"]


def test_text_in_place_of_true_or_false_says_nothing(results, tmp_path):
    known = write(tmp_path, "models.csv", "model_id,is_final\na,true\nb,false\n")
    write_responses(read_responses(results, models=known), tmp_path / "r.parquet")
    damaged = write(tmp_path, "damaged.csv", "model_id,is_final\na,true\nb,fal\n")
    assert read_responses(tmp_path / "r.parquet", models=damaged).models["is_final"].to_list() == [True, False]


def test_the_scenario_nobody_named_gives_way_to_the_table_of_items(results, tmp_path):
    write_responses(read_responses(results), tmp_path / "r.parquet")
    items = write(tmp_path, "items.csv", "item_id,scenario\nx,law\n007,math\n")
    assert read_responses(tmp_path / "r.parquet", items=items).items["scenario"].to_list() == ["math", "law"]
    assert read_responses(tmp_path / "r.parquet", scenario="one").items["scenario"].to_list() == ["one", "one"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "items.csv",
            "id,scenario\nx,law\n",
            r"items\.csv: there must be a column 'item_id'; there are 'id', 'scenario'",
        ),
        (
            "items.csv",
            "item_id,n\nx,1\nx,2\n007,1\n",
            r"items\.csv: item_id must be unique, got 1 id more than once: 'x'",
        ),
        ("items.csv", "item_id,n\n,1\nx,2\n", "item_id must not be empty, got 1 row without: row 1"),
        ("items.csv", "", r"items\.csv: the file is empty"),
        ("items.jsonl", lines({"item_id": 7}, {"item_id": "x"}), "item_id must have one type"),
        ("items.jsonl", '{"item_id": "x"', r"items\.jsonl: line 1"),
    ],
)
def test_wrong_tables(results, tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_responses(results, items=write(tmp_path, name, text))


def test_ids_of_two_types_between_table_and_responses(tmp_path):
    pl.DataFrame({"model_id": [1], "item_id": ["x"], "response": [1]}).write_parquet(tmp_path / "r.parquet")
    pl.DataFrame({"model_id": ["1"]}).write_parquet(tmp_path / "models.parquet")
    with pytest.raises(DataError, match=r"model_id must have one type, got whole numbers in .* and text in the"):
        read_responses(tmp_path / "r.parquet", models=tmp_path / "models.parquet")
    models = write(tmp_path, "models.csv", "model_id,size\n1,7\n")  # a CSV has no types
    assert read_responses(tmp_path / "r.parquet", models=models).models.rows() == [("1", 7)]


@pytest.mark.filterwarnings("ignore:.*differ from another in case")  # models of accounts that were renamed
@pytest.mark.parametrize(
    ("name", "shape", "n_responses"),
    [
        ("openllm1_core", (600, 1537), 922_200),
        ("mmlu-pro", (34, 12032), 407_338),
        ("swebench_verified", (100, 500), 50_000),
        ("swebench_bashonly_cost", (24, 500), 12_000),
        ("llmonkeys_pythia", (81, 258), 19_370),
        ("bfcl_v1", (56, 1700), 95_200),
    ],
)
def test_real_data_is_read_whole(shared_dir, name, shape, n_responses):
    folder = shared_dir / "data" / name
    matrix = read_responses(folder / "responses.parquet", models=folder / "models.csv", items=folder / "items.csv")
    assert matrix.responses.shape == shape
    assert int(matrix.observed.sum()) == n_responses
    raw = pl.read_parquet(folder / "responses.parquet")
    means = raw.group_by(pl.col("model_id").cast(pl.String)).agg(pl.col("response").cast(pl.Float64).mean())
    expected = dict(means.iter_rows())
    for row, model in enumerate(matrix.model_ids[:20]):
        observed = matrix.observed[row]
        assert matrix.responses[row, observed].mean() == pytest.approx(expected[model], abs=1e-7)


def test_real_data_whose_scenario_differs_from_the_table_of_items(shared_dir):
    folder = shared_dir / "data" / "alpacaeval2"
    with pytest.warns(DataWarning, match="scenario of 805 items differs"):
        matrix = read_responses(folder / "responses.parquet", items=folder / "items.csv", models=folder / "models.csv")
    assert matrix.items["scenario"].unique().to_list() == ["alpaca_eval_2"]
    assert int((~matrix.observed).sum()) == 10


def test_real_data_whose_items_stand_in_two_scenarios(shared_dir):
    path = shared_dir / "data" / "livecodebench" / "responses.parquet"
    with pytest.raises(DataError, match="got more for 479 items: 'codeexecution/sample_0' in 'codeexecution' and"):
        read_responses(path)
    matrix = read_responses(path, spec=ReadingSpec(prefix_scenario=True))
    assert matrix.n_items == 2689 + 479
    assert int(matrix.observed.sum()) == 107_447
