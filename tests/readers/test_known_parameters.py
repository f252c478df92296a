"""What is known of items and models, and item parameters of others against the formulas of their programs."""

import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.irt.bernoulli import probability
from itembank.readers.known_parameters import read_known_parameters
from itembank.readers.read import read_responses
from itembank.responses.response_files import write_responses
from itembank_harnesses.readers.pickled_arrays import read_pickled
from tests.readers.bad_files import LONG, lines
from tests.readers.reading import put, read, refuses, write_frame
from tests.readers.tiny_benchmarks import tiny_benchmarks, write_tiny_benchmarks


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    return put(path, LONG + "a,007,1\nb,x,0\nb,007,1\na,x,1\n")


def write(tmp_path, name, text):
    return put(tmp_path / name, text)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_columns_join_by_id_and_keep_their_types(results, tmp_path, suffix):
    frame = pl.DataFrame(
        {"item_id": ["extra", "x", "007"], "scenario": ["none", "law", "math"], "n_options": [2, 4, 5],
            "chance": [0.5, 0.25, None], "is_hard": [True, False, True], "text": ["t", "u", None]}
    )  # fmt: skip
    path = write_frame(frame, tmp_path / f"items.{suffix}")
    models = write(tmp_path, "models.csv", "model_id,organisation\nb,B\na,A\n")
    matrix = read_responses(results, models=models, items=path)
    assert matrix.models.rows() == [("a", "A"), ("b", "B")]
    assert matrix.items.rows() == [("007", "math", None, 5, None, True, None), ("x", "law", None, 4, 0.25, False, "u")]
    assert matrix.items.schema["n_options"] == pl.Int64


def test_tables_of_some_or_of_other_items_and_models(results, tmp_path):
    items = write(tmp_path, "items.csv", "item_id,n_options\nx,4\n")
    with pytest.warns(DataWarning, match="1 of 2 items are not in the table of items and have empty columns: '007'"):
        assert read_responses(results, items=items).items["n_options"].to_list() == [None, 4]
    with pytest.raises(DataError, match=r"none of the 2 models of .*results.csv is in .*, which has 'c'"):
        read_responses(results, models=write(tmp_path, "models.csv", "model_id\nc\n"))
    known = write(tmp_path, "models.csv", "model_id,is_final\na,true\nb,false\n")
    write_responses(read_responses(results, models=known), tmp_path / "r.parquet")
    damaged = write(tmp_path, "damaged.csv", "model_id,is_final\na,true\nb,fal\n")
    assert read_responses(tmp_path / "r.parquet", models=damaged).models["is_final"].to_list() == [True, False]
    write_responses(read(results), tmp_path / "r.parquet")
    items = write(tmp_path, "items.csv", "item_id,scenario\nx,law\n007,math\n")
    assert read_responses(tmp_path / "r.parquet", items=items).items["scenario"].to_list() == ["math", "law"]
    assert read_responses(tmp_path / "r.parquet", scenario="one").items["scenario"].to_list() == ["one", "one"]


def test_what_stands_with_the_responses_wins_and_ids_have_one_type(tmp_path):
    path = write(tmp_path, "r.csv", "model_id,item_id,response,scenario\na,x,1,math\na,y,1,\na,z,1,law\n")
    items = write(tmp_path, "items.csv", "item_id,scenario\nx,maths\ny,code\nz,law\n")
    with pytest.warns(DataWarning, match=r"of 1 items differs .*'math' for 'x'\) and the table of items \('maths'\)"):
        assert read_responses(path, items=items).items["scenario"].to_list() == ["math", "code", "law"]
    pl.DataFrame({"model_id": [1], "item_id": ["x"], "response": [1]}).write_parquet(tmp_path / "r.parquet")
    pl.DataFrame({"model_id": ["1"]}).write_parquet(tmp_path / "models.parquet")
    with pytest.raises(DataError, match=r"model_id must have one type, got whole numbers in .* and text in the"):
        read_responses(tmp_path / "r.parquet", models=tmp_path / "models.parquet")
    models = write(tmp_path, "models.csv", "model_id,size\n1,7\n")  # a CSV has no types
    assert read_responses(tmp_path / "r.parquet", models=models).models.rows() == [("1", 7)]


@pytest.mark.parametrize(("name", "text", "message"), [
    ("items.csv", "id,scenario\nx,law\n", r"there must be a column 'item_id'; there are 'id', 'scenario'. Rename"),
    ("items.csv", "item_id,n\nx,1\nx,2\n007,1\n", r"items\.csv: item_id must be unique, got 1 id more than once: 'x'"),
    ("items.csv", "item_id,n\n,1\nx,2\n", "item_id must not be empty, got 1 row without: row 1"),
    ("items.csv", "", r"items\.csv: the file is empty"),
    ("items.jsonl", lines({"item_id": 7}, {"item_id": "x"}), "item_id must have one type"),
    ("items.jsonl", '{"item_id": "x"', r"items\.jsonl: line 1"),
])  # fmt: skip
def test_wrong_tables(results, tmp_path, name, text, message):
    refuses(message, read_responses, results, items=write(tmp_path, name, text))


@pytest.mark.filterwarnings("ignore:.*differ from another in case")  # models of accounts that were renamed
@pytest.mark.parametrize(("name", "shape", "n_responses"), [
    ("openllm1_core", (600, 1537), 922_200), ("mmlu-pro", (34, 12032), 407_338),
    ("swebench_verified", (100, 500), 50_000), ("swebench_bashonly_cost", (24, 500), 12_000),
    ("llmonkeys_pythia", (81, 258), 19_370), ("bfcl_v1", (56, 1700), 95_200),
])  # fmt: skip
def test_real_data_is_read_whole(shared_dir, name, shape, n_responses):
    folder = shared_dir / "data" / name
    matrix = read_responses(folder / "responses.parquet", models=folder / "models.csv", items=folder / "items.csv")
    assert (matrix.responses.shape, int(matrix.observed.sum())) == (shape, n_responses)
    raw = pl.read_parquet(folder / "responses.parquet")
    means = raw.group_by(pl.col("model_id").cast(pl.String)).agg(pl.col("response").cast(pl.Float64).mean())
    expected = dict(means.iter_rows())
    for row, model in enumerate(matrix.model_ids[:20]):
        observed = matrix.observed[row]
        assert matrix.responses[row, observed].mean() == pytest.approx(expected[model], abs=1e-7)


def test_real_data_with_scenarios_that_differ(shared_dir):
    folder = shared_dir / "data" / "alpacaeval2"
    with pytest.warns(DataWarning, match="scenario of 805 items differs"):
        matrix = read_responses(folder / "responses.parquet", items=folder / "items.csv", models=folder / "models.csv")
    assert (matrix.items["scenario"].unique().to_list(), int((~matrix.observed).sum())) == (["alpaca_eval_2"], 10)
    path = shared_dir / "data" / "livecodebench" / "responses.parquet"
    refuses("got more for 479 items: 'codeexecution/sample_0' in 'codeexecution' and", read, path)
    matrix = read(path, prefix_scenario=True)
    assert (matrix.n_items, int(matrix.observed.sum())) == (2689 + 479, 107_447)


THETA = np.array([[-1.0, 0.4], [0.7, 1.5]])
PY_IRT = {"diff": [0.5, -1.0], "disc": [1.5, 0.8], "item_ids": {"0": "x", "1": "y"}, "subject_ids": {}, "ability": [0]}


def curve(a, b, lower=0.0, upper=1.0):
    """Chance of success in the first dimension, (n_models, n_items)."""
    return lower + (np.asarray(upper) - lower) * expit(np.asarray(a) * (THETA[:, :1] - np.asarray(b)))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("ours.csv", "item_id,difficulty,discrimination\nx,0.5,1.5\ny,-1,0.8\n", curve([1.5, 0.8], [0.5, -1.0])),
        ("rasch.csv", "question,difficulty\nx,0.5\ny,-1\n", curve(1.0, [0.5, -1.0])),
        ("fluid.csv", ",a,b\nx,1.5,0.5\ny,0.8,-1\n", curve([1.5, 0.8], [0.5, -1.0])),
        ("catr.csv", "item_id,a,b,c,d\nx,1.5,0.5,0.2,0.9\ny,1,0,0,1\n", curve([1.5, 1], [0.5, 0], [0.2, 0], [0.9, 1])),
        (
            "mirt.csv",
            '"","a1","a2","d","g","u"\n"x",1.5,-0.3,0.5,0.2,0.9\n"y",0.8,1,-1,0,1\n',
            np.array([0.2, 0]) + np.array([0.7, 1]) * expit(THETA @ [[1.5, 0.8], [-0.3, 1]] + [0.5, -1.0]),
        ),
        (
            "bank.jsonl",
            '{"item_id": "x", "loading_1": 1.5, "loading_2": 2, "intercept": 0}\n'
            '{"item_id": "y", "loading_1": 1, "loading_2": 0, "intercept": -1}\n',
            expit(THETA @ [[1.5, 1], [2, 0]] + [0.0, -1.0]),
        ),
        (
            "beside.csv",  # a bank's own table: its difficulty is not another slope's
            "item_id,loading_1,intercept,difficulty\nx,1.5,-0.75,0.5\ny,0.8,0.8,-1\n",
            curve([1.5, 0.8], [0.5, -1.0]),
        ),
        ("a1.csv", "item_id,a1,b,guess\nx,1.5,0.5,0.2\ny,0.8,-1,0\n", curve([1.5, 0.8], [0.5, -1.0], [0.2, 0])),
        ("csv2.csv", '"";"a";"b"\n"x";1,5;0,5\n"y";0,8;-1\n', curve([1.5, 0.8], [0.5, -1.0])),
        ("1pl.json", json.dumps({**PY_IRT, "disc": None, "irt_model": "1pl"}), curve(1.0, [0.5, -1.0])),
        ("2pl.json", json.dumps({**PY_IRT, "irt_model": "2pl"}), curve([1.5, 0.8], [0.5, -1.0])),
        (
            "3pl.json",
            json.dumps({**PY_IRT, "irt_model": "3pl", "lambdas": [0.2, 0.1]}),
            curve([1.5, 0.8], [0.5, -1.0], [0.2, 0.1]),
        ),
        (
            "4pl.json",
            json.dumps({**PY_IRT, "irt_model": "4pl", "lambdas": [0.9, 0.8]}),
            curve([1.5, 0.8], [0.5, -1.0], upper=[0.9, 0.8]),
        ),
    ],
)
def test_layouts_of_others_give_the_chances_their_programs_mean(tmp_path, name, content, expected):
    items, parameters = read_known_parameters(put(tmp_path / name, content))
    assert items["item_id"].to_list() == ["x", "y"]
    np.testing.assert_allclose(probability(parameters, THETA[:, : parameters.n_dims]), expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "content", "words"), [
    ("t.csv", "item_id,hardness\nx,1\n", r"got the columns 'item_id', 'hardness'. Columns of a table of items"),
    ("t.csv", "item_id,a1,a2,b\nx,1,1,1\n", "item parameters must be named"),
    ("t.csv", "item_id,a1,a3,d\nx,1,1,1\n", "item parameters must be named"),
    ("t.csv", "item_id,a,b\nx,1,\ny,1,inf\n", "b must be a finite number for every item, and is not for 'x', 'y'"),
    ("t.jsonl", '{"item_id": "x", "b": [1, 2]}\n', "b must be a finite number for every item"),
    ("t.csv", "item_id,b,c\nx,1,1\n", "0 <= lower < upper <= 1, and do not for 'x'"),
    ("t.csv", "a,b\n1,1\n", "there must be a column 'item_id'"),
    ("p.json", json.dumps({**PY_IRT, "diff": [[0.5, 1], [0, 1]]}), "one number an item. Of several abilities"),
    ("p.json", json.dumps({**PY_IRT, "disc": [0.5, -0.1]}), "disc must be above 0, and is not"),
    ("p.json", json.dumps({**PY_IRT, "diff": [0.5]}), "one number an item"),
    ("p.json", json.dumps({**PY_IRT, "diff": ["x", {}]}), "must be"),
])  # fmt: skip
def test_what_is_no_layout_of_parameters_is_refused(tmp_path, name, content, words):
    refuses(words, read_known_parameters, put(tmp_path / name, content))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_tiny_benchmarks_are_read_as_their_own_code_reads_them(tmp_path, protocol):
    path = tmp_path / "tinyBenchmarks.pkl"
    content = write_tiny_benchmarks(path, protocol)["lb"]
    items, parameters = read_known_parameters(path, "lb")
    position = {
        f"{name}/{n}": where for name, all_of in content["scenarios_position"].items() for n, where in enumerate(all_of)
    }
    tiny = [f"{task}/{n}" for task in ("tinyTruthfulQA", "tinyArc") for n in range(10)]
    assert items["item_id"].to_list()[:20] == tiny
    position |= dict(zip(tiny, content["seen_examples"], strict=True))
    order = [position[item] for item in items["item_id"]]
    assert sorted(order) == [*range(70)]
    theta = np.random.default_rng(1).normal(size=(1, 3, 1))
    theirs = expit((content["irt_parameters"]["A"] * theta - content["irt_parameters"]["B"]).sum(axis=1))
    np.testing.assert_allclose(probability(parameters, theta[:, :, 0])[0], theirs[0, order], rtol=1e-12)
    weight = items.filter(scenario="arc")["selection_weight"].drop_nulls().to_numpy()
    np.testing.assert_array_equal(weight, content["examples_weights"]["arc"])
    np.testing.assert_allclose(
        items.group_by("scenario", "subscenario").agg(pl.sum("weight"))["weight"].sort(), [15, 15, 20, 20]
    )
    with pytest.raises(ParameterError, match=r"got 'arc'. There are 'lb' \(scenarios 'truthfulqa', 'arc'\); 'mmlu'"):
        read_known_parameters(path, "arc")


class Runs:
    """Runs something where it is unpickled."""

    def __reduce__(self):
        return Path.write_text, (Path("was-run"), "yes")


def nested(depth):
    """Return lists within lists, two of each: 2^depth in all, in a few bytes."""
    found = [0]
    for _ in range(depth):
        found = [found, found]
    return found


def with_positions(positions):
    content = tiny_benchmarks()
    content["mmlu"]["scenarios_position"]["mmlu"] = positions
    return pickle.dumps(content, protocol=4)


def spoiled(change):
    content = tiny_benchmarks()
    change(content["mmlu"])
    return pickle.dumps(content, protocol=4)


def whole_is_in_two_parts(one):
    one["subscenarios_position"]["mmlu"]["again"] = one["scenarios_position"]["mmlu"]


WHOLE = pickle.dumps(tiny_benchmarks(), protocol=4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps(Runs()), "it names"),
        (b"\x80\x04cos\nsystem\n(S'touch was-run'\ntR.", "it names os.system"),
        (b"\x80\x04(S'touch was-run'\nios\nsystem\n.", "it has the opcode STRING"),
        (pickle.dumps({"mmlu": {"scenarios_position": np.array([Runs()], dtype=object)}}, protocol=4), "it names"),
        (WHOLE[: len(WHOLE) // 2], "cannot be read"),
        (b"\x80\x04.", "opcodes do not fit"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x00.", "cannot be read"),  # bytes of 72 petabytes
        (pickle.dumps({"a": "b"}, protocol=4), "must hold benchmarks"),
        (with_positions(nested(60)), "there must be numbers where others are"),
        (with_positions([0, 1, 10**9]), "positions must be from 0"),
        (with_positions([0, 0, 1]), "positions must be whole numbers, each once"),
        (spoiled(lambda one: one["irt_parameters"]["A"].fill(np.nan)), "parameters must be finite"),
        (spoiled(lambda one: one["examples_weights"].update(mmlu=np.ones(1))), "must have a weight"),
        (spoiled(lambda one: one["examples_weights"]["mmlu"].fill(0.0)), "must have a weight"),
        (spoiled(whole_is_in_two_parts), "an item must be in one subscenario"),
        (WHOLE.replace(b"\x8c\x02f8", b"\x8c\x04i4,("), "its arrays must be of numbers"),
    ],
)
def test_a_hostile_pickle_is_refused_and_nothing_in_it_runs(tmp_path, monkeypatch, content, words):
    monkeypatch.chdir(tmp_path)
    Path("tinyBenchmarks.pkl").write_bytes(content)
    refuses(words, read_known_parameters, "tinyBenchmarks.pkl", "mmlu")
    assert not Path("was-run").exists()


def test_what_a_pickle_repeats_costs_no_memory(tmp_path):
    # a million arrays of the same megabyte: put together they would take 8 TB
    array = pickle.dumps(np.zeros(10**6, dtype=np.uint8), protocol=5)[:-1]  # without STOP
    (tmp_path / "bomb.pkl").write_bytes(array + b"\x94" + b"]\x94" + b"".join(b"h\x00a" for _ in range(10**5)) + b".")
    assert len(read_pickled(tmp_path / "bomb.pkl")) == 10**5
