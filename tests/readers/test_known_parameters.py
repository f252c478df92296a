"""Item parameters of others, whatever they call them: each layout against the formula of the program that writes it."""

import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.readers.known_parameters import read_known_parameters
from itembank.readers.pickled_arrays import read_pickled
from tests.readers.tiny_benchmarks import tiny_benchmarks, write_tiny_benchmarks

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
    (tmp_path / name).write_text(content)
    items, parameters = read_known_parameters(tmp_path / name)
    assert items["item_id"].to_list() == ["x", "y"]
    np.testing.assert_allclose(probability(parameters, THETA[:, : parameters.n_dims]), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
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
    ],
)
def test_what_is_no_layout_of_parameters_is_refused(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        read_known_parameters(tmp_path / name)


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
    with pytest.raises(DataError, match=words):
        read_known_parameters("tinyBenchmarks.pkl", "mmlu")
    assert not Path("was-run").exists()


def test_what_a_pickle_repeats_costs_no_memory(tmp_path):
    # a million arrays of the same megabyte: put together they would take 8 TB
    array = pickle.dumps(np.zeros(10**6, dtype=np.uint8), protocol=5)[:-1]  # without STOP
    (tmp_path / "bomb.pkl").write_bytes(array + b"\x94" + b"]\x94" + b"".join(b"h\x00a" for _ in range(10**5)) + b".")
    assert len(read_pickled(tmp_path / "bomb.pkl")) == 10**5
