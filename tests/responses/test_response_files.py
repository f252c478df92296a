import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from polars.testing import assert_frame_equal

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.responses import opening
from itembank.responses.response_files import is_response_file, write_responses
from itembank.responses.responses import ResponseMatrix
from tests.readers.reading import read, refuses

IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
COSTS = st.sampled_from(["input_tokens", "output_tokens", "cost_usd", "seconds"])


def assert_same(got, expected):
    np.testing.assert_array_equal(got.responses, expected.responses)
    assert_frame_equal(got.models, expected.models)
    assert_frame_equal(got.items, expected.items)
    assert (got.n_trials is None) == (expected.n_trials is None)
    if expected.n_trials is not None:
        np.testing.assert_array_equal(got.n_trials, expected.n_trials)
        assert got.n_trials.dtype == np.int64
    assert list(got.costs) == list(expected.costs)
    for unit, cost in expected.costs.items():
        np.testing.assert_array_equal(got.costs[unit], cost)


@st.composite
def matrices(draw):
    """Any matrix: missing cells, empty models and items, trials, costs (also of missing cells), tables of any type."""
    model_ids = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    item_ids = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    shape = (len(model_ids), len(item_ids))
    numbers = st.one_of(st.sampled_from([0.0, 1.0, np.nan]), st.floats(0, 1))
    amounts = st.one_of(st.just(np.nan), st.floats(0, 1e9))
    of_items = {
        "scenario": draw(st.lists(IDS, min_size=shape[1], max_size=shape[1])),
        "subscenario": draw(st.lists(st.none() | IDS, min_size=shape[1], max_size=shape[1])),
        "n_options": draw(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=shape[1], max_size=shape[1])),
    }
    return ResponseMatrix.create(
        draw(hnp.arrays(float, shape, elements=numbers, fill=st.nothing())),
        models=pl.DataFrame(
            {"model_id": model_ids, "day": draw(st.lists(st.dates(), min_size=shape[0], max_size=shape[0]))}),
        items=pl.DataFrame({"item_id": item_ids, **of_items},
            schema_overrides={"subscenario": pl.String, "n_options": pl.Int64}),
        n_trials=draw(st.none() | hnp.arrays(np.int64, shape, elements=st.integers(1, 99))),
        costs={unit: draw(hnp.arrays(float, shape, elements=amounts,
                    fill=st.nothing())) for unit in draw(st.lists(COSTS, unique=True, max_size=3))},
    )  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(matrix=matrices())
def test_write_then_read_is_identity(matrix, tmp_path):
    write_responses(matrix, tmp_path / "r.parquet")
    models, items = (np.flatnonzero(matrix.observed.any(axis=axis)) for axis in (1, 0))
    if not models.size:
        refuses("at least one response, got none", read, tmp_path / "r.parquet")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # which names what is left out
        back = read(tmp_path / "r.parquet")
    assert_same(back, matrix.take(models=models, items=items))


def test_the_file_is_a_plain_long_table_for_everybody_else(tmp_path):
    matrix = ResponseMatrix.create(
        np.array([[1.0, np.nan], [0.5, 0.0]]),
        scenarios=["math", "law"],
        costs={"seconds": np.array([[1.0, 2.0], [np.nan, 3.0]])},
    )
    write_responses(matrix, tmp_path / "r.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    first = {"model_id": "model-1", "item_id": "item-1", "scenario": "math", "subscenario": None, "response": 1.0}
    second = first | {"item_id": "item-2", "scenario": "law", "response": None}
    assert (table[:2], len(table)) == ([first | {"seconds": 1.0}, second | {"seconds": 2.0}], 4)


def test_the_same_responses_make_the_same_file_and_a_failed_write_leaves_it(tmp_path, monkeypatch):
    matrix = ResponseMatrix.create(np.array([[1.0, 0.0]]))
    write_responses(matrix, tmp_path / "a.parquet")
    write_responses(read(tmp_path / "a.parquet"), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    write_responses(matrix, tmp_path / "r.parquet")
    before = (tmp_path / "r.parquet").read_bytes()

    def fail(*_arguments, **_options):
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    refuses("disk full", write_responses, matrix, tmp_path / "r.parquet", error=OSError)
    assert (tmp_path / "r.parquet").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "r.parquet"]


def flipped(content, place, bit):
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def test_no_flipped_bit_reads_as_other_responses(tmp_path):
    """Each is refused, or changes nothing of the data."""
    rng = np.random.default_rng(3)
    items = pl.DataFrame({"item_id": list("abcdef"), "scenario": ["x", "y"] * 3, "weight": rng.random(6)})
    matrix = ResponseMatrix.create(
        rng.random((5, 6)), items=items, n_trials=rng.integers(1, 9, (5, 6)), costs={"seconds": rng.random((5, 6))}
    )
    path, broken = tmp_path / "r.parquet", tmp_path / "broken.parquet"
    write_responses(matrix, path)
    content = path.read_bytes()
    n_refused = 0
    for place in rng.integers(0, len(content), 150).tolist():
        broken.write_bytes(flipped(content, place, int(rng.integers(8))))
        try:
            back = read(broken)
        except DataError:
            n_refused += 1
        else:
            assert_same(back, matrix)
    assert n_refused > 130


def test_response_files_of_an_earlier_release_are_read_and_told_from_other_parquet(tmp_path):
    matrix = ResponseMatrix.create(np.array([[1.0, 0.5]]))
    write_responses(matrix, tmp_path / "r.parquet")
    rewritten(tmp_path / "r.parquet")
    assert "itembank.digest" not in pl.read_parquet_metadata(tmp_path / "r.parquet")
    assert_same(read(tmp_path / "r.parquet"), matrix)
    write_responses(ResponseMatrix.create(np.array([[1.0]])), tmp_path / "r.parquet")
    pl.read_parquet(tmp_path / "r.parquet").write_parquet(tmp_path / "plain.parquet")
    assert is_response_file(tmp_path / "r.parquet")
    assert not is_response_file(tmp_path / "plain.parquet")
    assert read(tmp_path / "plain.parquet").model_ids == ["model-1"]


def test_a_response_file_that_another_program_changed_is_refused(tmp_path):
    path = tmp_path / "r.parquet"
    write_responses(ResponseMatrix.create(np.array([[1.0, 0.5]])), path)
    metadata = {key: value for key, value in pl.read_parquet_metadata(path).items() if key != "ARROW:schema"}
    pl.read_parquet(path).head(1).write_parquet(path, metadata=metadata)
    refuses(r"is not the one that was written.*import the results again", read, path)


@pytest.mark.parametrize("name", ["r.csv", "r", "folder.parquet"])
def test_where_no_response_file_can_stand(name, tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(ParameterError, match=r"must end in \.parquet|is a folder"):
        write_responses(ResponseMatrix.create(np.array([[1.0]])), tmp_path / name)


def rewritten(path, **metadata):
    """Write the file again with other metadata."""
    known = {
        key: value
        for key, value in pl.read_parquet_metadata(path).items()
        if key not in {"ARROW:schema", "itembank.digest"}
    }
    frame = pl.read_parquet(path)
    frame.write_parquet(path, metadata={key: value for key, value in (known | metadata).items() if value is not None})


@pytest.mark.parametrize(("metadata", "message"), [
    ({"itembank.schema_version": "2"}, "must have schema version 1, got '2'.*release of itembank that wrote it"),
    ({"itembank.items": "!!"}, "does not fit together"),
    ({"itembank.models": None}, "does not fit together"),
])  # fmt: skip
def test_metadata_of_another_release_or_damaged(metadata, message, tmp_path):
    write_responses(ResponseMatrix.create(np.array([[1.0]])), tmp_path / "r.parquet")
    rewritten(tmp_path / "r.parquet", **metadata)
    refuses(message, read, tmp_path / "r.parquet")


CHATTING = """
import os, sys
import polars as pl
from itembank.responses import opening

def panic(file):
    os.write(2, b"thread 'main' panicked at ...\\n")
    raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

def warned(file):
    os.write(2, b"worth knowing\\n")
    return 1

try:
    opening.quiet(panic)(None)
except Exception as error:
    print(type(error).__name__, error)
print(opening.quiet(warned)(None))
"""


def test_a_panic_is_an_ordinary_error_and_is_not_told_on_the_terminal():
    done = subprocess.run([sys.executable, "-c", CHATTING], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("ComputeError it is damaged. Copy it again.\n1\n", "worth knowing\n")


def test_damaged_parquet_is_refused_whatever_is_damaged_and_other_errors_come_through(tmp_path, capfd):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"name": ["a", "b", "c"] * 30, "number": range(90)}).write_parquet(path)
    content = path.read_bytes()
    for start in range(0, len(content) - 40, 40):
        path.write_bytes(content[:start] + bytes(40) + content[start + 40 :])
        try:
            opening.read_parquet(path)
        except pl.exceptions.PolarsError:
            continue
    assert "panicked" not in capfd.readouterr().err
    with pytest.raises(FileNotFoundError):
        opening.read_parquet(tmp_path / "absent.parquet")


@pytest.mark.parametrize(("file", "name"), [
    ("gpt-3.5-turbo.json", "gpt-3.5-turbo"), ("Qwen2.5-7B.jsonl.gz", "Qwen2.5-7B"), ("m.CSV.ZST", "m"),
    ("v1.eval", "v1"), ("outputs.2.zip", "outputs.2"), ("a.eval.json", "a.eval"), ("llama-3.1", "llama-3.1"),
    (".json", ".json"),
])  # fmt: skip
def test_only_known_endings_are_taken_off_the_name_of_a_file(file, name):
    assert opening.name_without_ending(Path(file)) == name


def test_another_program_s_table_is_not_overwritten(tmp_path):
    """A table that was imported to its own name was gone, with all that is not read."""
    path = tmp_path / "r.parquet"
    pl.DataFrame({"model_id": ["a"], "item_id": ["x"], "response": [1], "note": ["kept"]}).write_parquet(path)
    responses = read(path)
    with pytest.raises(ParameterError, match=r"r\.parquet is no response file, and is not overwritten"):
        write_responses(responses, path)
    assert pl.read_parquet(path)["note"].to_list() == ["kept"]
    path.unlink()
    for _ in range(2):
        write_responses(responses, path)
