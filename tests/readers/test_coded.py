"""Reading a part at a time gives what reading whole tables gives: numbers, tables, warnings and errors."""

import gzip
import json
import warnings
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from itembank import ReadingSpec, read_responses, write_responses
from itembank.errors import ItembankError
from itembank.readers import coded, json_files, table_files
from itembank.readers.collecting import find_sources
from itembank.readers.read import read_coded
from itembank.responses.coded_responses import CodedResponses, summary

N_ROWS = 60
N_AT_ONCE = 25


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(table_files, "ROWS_AT_ONCE", N_AT_ONCE)
    monkeypatch.setattr(table_files, "BYTES_AT_ONCE", 500)
    monkeypatch.setattr(json_files, "BYTES_A_BLOCK", 1500)


def plain(n_rows=N_ROWS, **columns):
    """A table of right and wrong, in random order, with an item of no response at the end."""
    rng = np.random.default_rng(3)
    cells = rng.permutation(8 * 15)[:n_rows]
    table = {
        "model_id": [f"model {k // 15}" for k in cells],
        "item_id": [f"item {k % 15}" for k in cells],
        "response": (rng.random(n_rows) < 0.6).astype(int),
    }
    return pl.DataFrame({**table, **columns})


def changed(column, row, value, table=None):
    table = plain() if table is None else table
    values = table[column].to_list()
    values[row] = value
    return table.with_columns(pl.Series(column, values, strict=False))


def again(row, **other):
    """A table with one of its rows a second time, at the end."""
    table = plain()
    row_again = table[row].with_columns(**{name: pl.lit(value) for name, value in other.items()})
    return pl.concat([table, row_again], how="vertical_relaxed")


SHARES = [k / 300 for k in range(N_ROWS)]
GROUPS = ["a", "b", "c"]
TABLES = {
    "plain": plain(),
    "whole numbers as ids": plain().with_columns(pl.col("item_id").str.extract(r"(\d+)").cast(pl.Int64)),
    "categories": plain().with_columns(pl.col("model_id", "item_id").cast(pl.Categorical)),
    "shares": plain(response=SHARES),
    "missing": changed("response", 12, None),
    "words for missing": plain(response=["NA", "1", "0", "nan", "", "true"] * 10),
    "words": plain(response=["correct", "incorrect"] * 30),
    "unknown words": plain(response=["1", "0", "perhaps"] * 20),
    "percentages": plain(response=[100.0 * share for share in SHARES]),
    "negative": changed("response", 50, -1),
    "no model": changed("model_id", 40, None),
    "empty item": changed("item_id", 40, ""),
    "copy": again(3),
    "near copy": pl.concat([plain(response=SHARES), plain(response=SHARES)[5].with_columns(response=SHARES[5] + 1e-8)]),
    "contradiction": again(3, response=1 - plain()["response"][3]),
    "missing again": again(3, response=None),
    "scenarios": plain().with_columns(scenario=pl.col("item_id").str.slice(-1)),
    "some scenarios": plain().with_columns(
        scenario=pl.when(pl.col("item_id") < "item 3").then(pl.lit("one")).otherwise(pl.lit("")),
        subscenario=pl.lit(None, dtype=pl.String),
    ),
    "blank scenarios": plain(scenario=[""] * N_ROWS),
    "two scenarios": plain(scenario=(GROUPS * N_ROWS)[:N_ROWS]),
    "trials": plain(n_trials=[1 + k % 4 for k in range(N_ROWS)], n_correct=[k % 2 for k in range(N_ROWS)]).drop(
        "response"
    ),
    "trials of some": plain(n_trials=[None] * 30 + [4] * 30),
    "no trials known": plain(n_trials=pl.Series([None] * N_ROWS, dtype=pl.Int64)),
    "zero trials": changed("n_trials", 30, 0, plain(n_trials=[2] * N_ROWS)),
    "too many right": changed("n_correct", 30, 5, plain(n_trials=[2] * N_ROWS, n_correct=[2] * N_ROWS)),
    "costs": plain(seconds=[None, 1.5] * 30, input_tokens=[None] * 40 + [7] * 20),
    "costs of a copy": pl.concat([plain(seconds=[1.5] * N_ROWS), plain(seconds=[2.5] * N_ROWS)[9:11]]),
    "bad costs": changed("seconds", 20, -2.0, plain(seconds=[1.5] * N_ROWS)),
    "cost without response": changed("response", 20, None, plain(seconds=[1.5] * N_ROWS)),
    "seeds": plain(seed=list(range(N_ROWS))),
    "attempts": pl.concat([plain(seed=[1] * N_ROWS), plain(seed=[2] * N_ROWS)]),
    "copies with seeds": pl.concat([plain(seed=[1] * N_ROWS), plain(seed=[1] * N_ROWS)[4:6]]),
    "one model empty": changed("response", 0, None, changed("model_id", 0, "nobody")),
    "quotes": plain().with_columns(item_id=pl.col("item_id") + '"a", \n"b"'),
    "nothing": plain().clear(),
    "dates as ids": plain().with_columns(model_id=pl.lit("2026-01-01").str.to_date()),
}
SPECS = {
    "last": {"repeats": "last"},
    "mean": {"repeats": "mean"},
    "count": {"repeats": "count"},
    "complete": {"missing": "forbid"},
    "drop": {"empty": "drop"},
    "keep": {"empty": "keep"},
    "named": {"scenario": "all of it"},
    "little memory": {"max_memory": 100.0},
}


def outcome(paths, **choices):
    """What reading gives, told so that two readings can be compared."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = read_responses(paths, **choices)
        except (ItembankError, OSError) as error:
            return type(error), str(error), [str(one.message) for one in caught]
    return found, [str(one.message) for one in caught]


def assert_same(one, other):
    assert one[1:] == other[1:]
    if isinstance(one[0], type):
        assert one[0] is other[0]
        return
    first, second = one[0], other[0]
    np.testing.assert_array_equal(first.responses, second.responses)
    assert first.models.equals(second.models)
    assert first.items.equals(second.items)
    assert first.items.schema == second.items.schema
    assert (first.n_trials is None) == (second.n_trials is None)
    if first.n_trials is not None:
        np.testing.assert_array_equal(first.n_trials, second.n_trials)
        assert first.n_trials.dtype == second.n_trials.dtype
    assert list(first.costs) == list(second.costs)
    for name, cost in first.costs.items():
        np.testing.assert_array_equal(cost, second.costs[name])


def both(monkeypatch, paths, **choices):
    """Read in parts, and whole."""
    in_parts = outcome(paths, **choices)
    with monkeypatch.context() as patch:
        patch.setattr(coded, "CAN_STREAM", False)
        return in_parts, outcome(paths, **choices)


def written(table, path):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    elif path.suffix == ".jsonl":
        table.write_ndjson(path)
    elif path.suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)
    return path


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("name", TABLES)
def test_parts_give_what_the_whole_gives(monkeypatch, tmp_path, name, kind):
    assert_same(*both(monkeypatch, written(TABLES[name], tmp_path / f"table{kind}")))


@pytest.mark.parametrize("choice", SPECS)
def test_parts_give_what_the_whole_gives_for_every_choice(monkeypatch, tmp_path, choice):
    for name in ("plain", "near copy", "missing again", "one model empty"):
        path = written(TABLES[name], tmp_path / f"{name}.parquet")
        assert_same(*both(monkeypatch, path, spec=ReadingSpec(**SPECS[choice])))


def test_parts_of_a_gzipped_table_give_what_the_whole_gives(monkeypatch, tmp_path):
    assert_same(*both(monkeypatch, written(TABLES["quotes"], tmp_path / "table.csv.gz")))


def json_lines(**values):
    """Lines of 40 responses; `values` maps a key to its value in each line, by number, None for a line without it."""
    rows = []
    for k in range(40):
        row = {"model_id": f"model {k // 10}", "item_id": f"item {k % 10}", "response": k % 3 % 2}
        row |= {key: value(k) for key, value in values.items()}
        rows.append(json.dumps({key: value for key, value in row.items() if value is not ABSENT}) + "\n")
    return "".join(rows)


ABSENT = object()
JSON_LINES = {
    "numbers of all types": (
        json_lines(response=lambda k: None if k == 35 else [True, 1, 0.25, False][k // 10]),
        False,
    ),
    "types that change later": (json_lines(response=lambda k: 1 if k < 30 else 0.1), True),
    "text later": (json_lines(response=lambda k: 1 if k < 30 else "0.1"), False),
    "text in all": (json_lines(response=lambda k: ["1", 0.1][k % 2]), True),
    "ids of two types": (json_lines(item_id=lambda k: k % 10 if k < 20 else str(k % 10)), False),
    "whole numbers as ids": (json_lines(item_id=lambda k: k % 10), True),
    "no ids later": (json_lines(item_id=lambda k: f"item {k % 10}" if k < 30 else None), False),
    "a key that comes later": (json_lines(seconds=lambda k: 0.5 if k > 20 else ABSENT), True),
    "a key that ends": (json_lines(n_trials=lambda k: 2 if k < 20 else ABSENT), False),
    "no responses later": (json_lines(response=lambda k: 1 if k < 30 else ABSENT), False),
    "lists": (json_lines(response=lambda k: 1 if k < 30 else [1]), False),
    "large": (json_lines(response=lambda k: 1 if k < 30 else 2**70), False),
    "cut": (json_lines()[:-9], False),
    "blank lines": (json_lines().replace("\n", "\n\n \n"), True),
    "an array": ("[" + json_lines().rstrip().replace("\n", ",") + "]", True),
    "wide": ("".join(json.dumps({"model_id": f"m{k}", "a": k % 2, "b": 1}) + "\n" for k in range(40)), False),
    "empty": ("\n", False),
}


@pytest.mark.parametrize("name", JSON_LINES)
def test_parts_of_json_lines_give_what_the_whole_gives(monkeypatch, tmp_path, name):
    path = tmp_path / "table.jsonl"
    text, is_plain = JSON_LINES[name]
    path.write_text(text)
    assert_same(*both(monkeypatch, path))
    with warnings.catch_warnings(), suppress(ItembankError):
        warnings.simplefilter("ignore")
        found = None
        found = read_coded(find_sources([path], ReadingSpec()), ReadingSpec())
    assert isinstance(found, CodedResponses) == is_plain


@pytest.mark.parametrize(
    "names",
    [
        ("plain", "plain"),
        ("plain", "costs"),
        ("scenarios", "plain"),
        ("scenarios", "two scenarios"),
        ("some scenarios", "scenarios"),
        ("trials", "plain"),
        ("missing", "missing", "plain", "copy"),
        ("whole numbers as ids", "plain"),
    ],
)
def test_several_files_give_what_they_give_whole(monkeypatch, tmp_path, names):
    own = pl.col("model_id").cast(pl.String)
    paths = [
        written(TABLES[name].with_columns(own + f" {k}"), tmp_path / f"{k}.parquet") for k, name in enumerate(names)
    ]
    assert_same(*both(monkeypatch, paths))


@pytest.mark.parametrize("name", ["plain", "shares", "trials", "costs", "scenarios"])
def test_a_response_file_is_read_and_written_in_parts(monkeypatch, tmp_path, name):
    monkeypatch.setattr("itembank.responses.coded_responses.CELLS_AT_ONCE", 16)
    table = written(TABLES[name], tmp_path / "table.parquet")
    read = read_coded(find_sources([table], ReadingSpec(empty="keep")), ReadingSpec(empty="keep"))
    assert isinstance(read, CodedResponses)
    matrix = read.to_matrix()
    write_responses(read, tmp_path / "codes.parquet")
    write_responses(matrix, tmp_path / "matrix.parquet")
    assert (tmp_path / "codes.parquet").read_bytes() == (tmp_path / "matrix.parquet").read_bytes()
    assert isinstance(
        read_coded(find_sources([tmp_path / "codes.parquet"], ReadingSpec()), ReadingSpec()), CodedResponses
    )
    in_parts, whole = both(monkeypatch, tmp_path / "codes.parquet")
    assert_same(in_parts, whole)
    np.testing.assert_array_equal(in_parts[0].responses, matrix.responses)
    observed = matrix.observed
    found = summary(read)
    assert found.n_responses == observed.sum()
    assert found.mean_response == matrix.responses[observed].mean()
    assert found.is_binary == matrix.is_binary
    assert found.n_trials == (None if matrix.n_trials is None else matrix.n_trials[observed].sum())


def test_plain_tables_are_read_in_parts(tmp_path):
    """The comparisons above would pass if nothing were."""
    for name in ("plain", "shares", "copy", "scenarios", "trials", "costs", "seeds", "quotes"):
        for kind in (".parquet", ".csv", ".jsonl"):
            path = written(TABLES[name], tmp_path / f"table{kind}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert isinstance(read_coded(find_sources([path], ReadingSpec()), ReadingSpec()), CodedResponses), name


def test_progress_tells_rows_and_share(tmp_path):
    said = []
    read_responses(written(plain(), tmp_path / "t.parquet"), progress=lambda *one: said.append(one))
    assert [share for _, share in said] == pytest.approx([0.0, N_AT_ONCE / N_ROWS, 2 * N_AT_ONCE / N_ROWS])
    assert said[0][0] == "reading files (t.parquet)"
    assert said[-1][0] == "reading files (t.parquet, 50 rows)"
