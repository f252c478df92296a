"""Long tables: counts, scenarios, costs, repeated attempts."""

import re
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import read, read_text, refused, refuses, warns, write_frame


def frame(**columns):
    return pl.DataFrame({"model_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], **columns})


def test_counts_make_or_refine_the_response():
    matrix = read(frame(n_correct=[1, 0, 3], n_trials=[4, 2, 3]))
    np.testing.assert_array_equal(matrix.responses, [[0.25, 0], [1, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 2], [3, 0]])
    matrix = read(frame(response=[0.33, 1.0, 0.67], n_correct=[1, 1, 2], n_trials=[3, 1, 3]))
    np.testing.assert_array_equal(matrix.responses[:, 0], [1 / 3, 2 / 3])
    table = frame(response=[1.0, 1.0, 1.0], strict=[0.0, 1.0, 0.0], n_correct=[1, 1, 1], n_trials=[1, 1, 1])
    np.testing.assert_array_equal(read(table, response_column="strict").responses, [[0, 1], [0, np.nan]])
    with (
        pytest.warns(DataWarning, match="each counts as one trial"),
        pytest.warns(DataWarning, match="1 of 2 models have no answer to any item and are left out: 'b'"),
    ):
        matrix = read(frame(response=[0.5, 1.0, None], n_trials=[None, 5, 7]))
    np.testing.assert_array_equal(matrix.n_trials, [[1, 5]])
    nothing = [None] * 3
    matrix = read(frame(response=[1, 0, 1], n_trials=nothing, cost_usd=nothing, seed=nothing, scenario=[""] * 3))
    assert matrix.n_trials is None
    assert (matrix.costs, matrix.items["scenario"].to_list()) == ({}, ["all", "all"])


@pytest.mark.parametrize("kind", ["frame", "csv", "jsonl", "parquet"])
def test_dollars_of_another_name_are_not_left_out_in_silence(tmp_path, kind):
    table = frame(response=[1, 0, 1], Cost=[0.5, 0.25, 2.0], tokens=[1, 2, 3])
    source = table if kind == "frame" else write_frame(table, tmp_path / f"results.{kind}")
    with pytest.warns(DataWarning) as found:
        assert read(source).costs == {}
    (one,) = found
    assert str(one.message).endswith("no dollars are read. If they are in 'Cost', add: columns={'cost_usd': 'Cost'}")
    told = read(source, columns={"cost_usd": "Cost"}).costs["cost_usd"]
    np.testing.assert_array_equal(told, [[0.5, 0.25], [2.0, np.nan]])


def test_scenarios_are_those_of_the_items():
    matrix = read(frame(response=[1, 0, 1], scenario=[None, "law", "math"], subscenario=["", "", "sums"]))
    assert matrix.items.rows() == [("x", "math", "sums"), ("y", "law", None)]
    table = frame(response=[1, 0, 1], scenario=["math", None, "math"])
    with pytest.warns(DataWarning, match="1 of 2 items have no scenario and are put into 'all': 'y'"):
        assert read(table).items["scenario"].to_list() == ["math", "all"]
    assert read(table, scenario="law").items["scenario"].to_list() == ["math", "law"]
    table = pl.DataFrame(
        {"model_id": ["a", "a", "b", "b"], "item_id": ["1", "1", "1", "2"], "scenario": ["math", "law", "math", "math"],
            "response": [1, 0, 1, 0]}
    )  # fmt: skip
    refuses("'1' in 'math' and 'law'", read_responses, table)
    matrix = read(table, prefix_scenario=True)
    assert matrix.item_ids == ["math/1", "law/1", "math/2"]
    assert matrix.items["scenario"].to_list() == ["math", "law", "math"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, np.nan], [1, np.nan, 0]])
    assert read(frame(response=[1, 0, 1]), prefix_scenario=True, scenario="math").item_ids == ["math/x", "math/y"]
    refuses("needs a column scenario", read, frame(response=[1, 0, 1]), prefix_scenario=True)


def test_the_one_model_is_named_and_numbers_are_divided():
    nameless = frame(response=[1, 0, 1]).drop("model_id")[:2]
    assert read(nameless, model_id="new").model_ids == ["new"]
    assert read(frame(response=[1, 0, 1])[:2], model_id="new").model_ids == ["new"]
    matrix = read(frame(response=[100.0, 0.0, 12.5]), max_response=100)
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [0.125, np.nan]])


@pytest.mark.parametrize(
    "dtype", [pl.Float32, pl.Int8, pl.UInt64, pl.Boolean, pl.String, pl.Decimal(10, 2), pl.Categorical]
)
def test_responses_of_any_type_of_number(dtype):
    values = ["1", "0", "1"] if dtype in (pl.String, pl.Categorical) else [1, 0, 1]
    matrix = read(frame(response=pl.Series("response", values).cast(dtype)))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, np.nan]])


COUNT = ReadingSpec(repeats="count")


def table(**columns):
    """Return a table of rows of model a (unless told) and item x (unless told)."""
    n_rows = len(next(iter(columns.values())))
    return pl.DataFrame({"model_id": ["a"] * n_rows, "item_id": ["x"] * n_rows} | columns, strict=False)


@pytest.mark.parametrize("column", ["seed", "epoch"])
def test_attempts_are_counted(column):
    matrix = read_responses(table(response=[1, 0, 1, 1], **{column: [1, 2, 3, 4]}), spec=COUNT)
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.75]], [[4]])


def test_attempts_are_counted_and_never_averaged_unasked():
    matrix = read_responses(table(response=[1, 1, 1, 0]), spec=COUNT)
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.75]], [[4]])
    matrix = read_responses(table(n_correct=[3, 0, 1], n_trials=[10, 5, 1], seed=[1, 2, 3]), spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[16]])
    np.testing.assert_array_equal(matrix.responses * 16, [[4]])
    matrix = read_responses(table(item_id=["x", "y"], model_id=["a", "b"], response=[1.0, 0.0]), spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [np.nan, 0]])
    frame = table(response=[1, 1], epoch=[1, 2], seed=[42, 42])
    refuses(r"repeated attempts \(several seeds\).*to count them add: repeats='count'", read_responses, frame)
    np.testing.assert_array_equal(read_responses(frame, spec=COUNT).n_trials, [[2]])
    with pytest.warns(DataWarning, match=r"1 row repeats .* and seed .* give each a seed of its own\.$"):
        matrix = read_responses(table(response=[1, 1, 0], seed=[7, 7, 8]), spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[2]])
    refuses("They even have the same seed", read_responses, table(response=[1, 0], seed=[7, 7]), spec=COUNT)
    with pytest.raises(DataError, match=r"must be right or wrong .* got 2 .*'a' item 'x' = 0\.5, 'a' item 'x' = 0\.3"):
        read_responses(table(response=[1, 0.5, 0.3], seed=[1, 2, 3]), spec=COUNT)
    matrix = read_responses(table(item_id=["x", "y"], response=[0.33, 0.6667], n_trials=[3, 3]), spec=COUNT)
    np.testing.assert_array_equal(np.rint(matrix.responses * 3), [[1, 2]])
    np.testing.assert_allclose(matrix.responses * 3, [[1, 2]], atol=1e-15)
    refuses("no counts", read_responses, table(response=[0.4], n_trials=[3]), spec=COUNT)


def test_impossible_zero_and_many_trials():
    frame = pl.DataFrame(
        {"model_id": list("abcdefg"), "item_id": ["x"] * 7, "n_correct": [11.0, -1.0, 2.5, 3.0, 2.0, 0.0, 1.0],
            "n_trials": [10.0, 10.0, 10.0, None, -4.0, 2.5, 0.0]}
    )  # fmt: skip
    error = refuses(".", read, frame)
    text = error
    assert "n_correct must come with n_trials, got 1 row with something else: 'd' item 'x' (3 of unknown)" in text
    assert "from 0 to n_trials, got 4 rows with something else: 'a' item 'x' (11 of 10), 'b' item 'x' (-1" in text
    assert "'b' item 'x' (-1 of 10), 'c' item 'x' (2.5 of 10), 'g' item 'x' (1 of 0)" in text
    assert "at least 1 where there is a response, got 2 rows with something else: 'e' item 'x' (-4)" in text
    frame = table(model_id=["a", "a", "b"], item_id=["x", "y", "y"], n_correct=[2, 0, 1], n_trials=[4, 0, 1])
    matrix = warns("1 row has zero trials and counts as missing: 'a' item 'y'", read_responses, frame)
    np.testing.assert_array_equal(matrix.responses, [[0.5, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 0], [0, 1]])
    with pytest.raises(DataError, match=r"at least 1 where there is a response, got 1 row .*'a' item 'x' \(0\)"):
        read(table(response=[0.5], n_trials=[0]))
    matrix = read_responses(table(n_correct=[1234567, 1], n_trials=[3720320, 3720319], seed=[1, 2]), spec=COUNT)
    assert matrix.n_trials.tolist() == [[7440639]]
    assert np.rint(matrix.responses * matrix.n_trials).tolist() == [[1234568.0]]
    np.testing.assert_allclose(matrix.responses * matrix.n_trials, [[1234568.0]], rtol=1e-15)
    frame = table(item_id=["x", "y", "z"], response=[0.25, 0.4, 1.0], n_trials=[4, None, None])
    matrix = warns("1 response between 0 and 1 without n_trials.*'a' item 'y'", read_responses, frame)
    np.testing.assert_array_equal(matrix.n_trials, [[4, 1, 1]])


def test_trials_of_tasks_that_are_not_read_say_nothing(tmp_path):
    counted = pl.DataFrame(table(item_id=["x", "y"], response=[0.25, 1.0], n_trials=[4, 4], scenario=["t", "t"]))
    shares = pl.DataFrame(table(item_id=["v", "w"], response=[0.3, 0.4], scenario=["u", "u"]))
    counted.write_csv(tmp_path / "t.csv")
    shares.write_csv(tmp_path / "u.csv")
    pl.concat([counted, shares], how="diagonal").write_csv(tmp_path / "both.csv")
    two = [tmp_path / "t.csv", tmp_path / "u.csv"]
    for paths in (tmp_path / "both.csv", two):
        assert read(paths, tasks=("u",)).n_trials is None
        assert read(paths, exclude_tasks=("u",)).n_trials.tolist() == [[4, 4]]
    with pytest.warns(DataWarning, match=r"u\.csv: 2 responses between 0 and 1 without n_trials.*'a' item 'v'"):
        np.testing.assert_array_equal(read(two).n_trials, [[4, 4, 1, 1]])


@pytest.mark.parametrize(("values", "program"), [
    ("101", ". + {response: (1 - (.wrong | tonumber))}"),
    (("True", "False", "TRUE"), '. + {response: (.wrong | tostring | ascii_downcase == "false")}'),
])  # fmt: skip
def test_a_column_of_what_is_wrong_is_turned_round(tmp_path, values, program):
    """A message advised it as the response, so that the worst model was the best, without a word."""
    table = "model,item,wrong\n" + "".join(f"a,{number},{one}\n" for number, one in enumerate(values))
    says = refused(tmp_path, table)
    assert "--column" not in says
    assert says.endswith(f"To turn it round, add: --jq '{program}'")
    with pytest.warns(DataWarning, match="'wrong' is called as what is wrong|read the column") as told:
        assert read_text(tmp_path, table, columns={"response": "wrong"}).responses.tolist() == [[1, 0, 1]]
    assert f"To turn it round, give instead: jq={program!r}" in str(told.list[-1].message)
    pytest.importorskip("jq")
    assert warns("read the column", read_text, tmp_path, table, jq=program).responses.tolist() == [[0, 1, 0]]


def test_a_metric_of_what_is_wrong_is_turned_round_and_others_are_not(tmp_path):
    """Word error rates were read as shares of right words, as a column of that name was not."""
    table = (
        "model,item,scenario,Metric Name,value\na,x,speech,wer,0.2\nb,x,speech,wer,0.9\na,y,qa,acc,1\nb,y,qa,acc,0\n"
    )
    with pytest.warns(DataWarning, match="read the column|'wer' is called as what is wrong") as told:
        assert read_text(tmp_path, table).responses.tolist() == [[0.2, 1], [0.9, 0]]
    program = re.search(r"give instead: jq='(.*)'", str(told.list[-1].message))[1]
    pytest.importorskip("jq")
    turned = warns("read the column", read_text, tmp_path, table, jq=program)
    np.testing.assert_allclose(turned.responses, [[0.8, 1], [0.1, 0]])
    assert turned.items["metric"].to_list() == ["1 - wer", "acc"]


def test_a_metric_and_its_column_of_what_is_wrong_are_turned_round_once(tmp_path):
    """Who turned the column was told to turn it again, and `columns` given beside it undid the other way."""
    table = "model_id,item_id,metric,loss\na,x,wer,0.2\nb,x,wer,0.9\n"
    with pytest.warns(DataWarning, match="'wer' is called as what is wrong") as told:
        read_text(tmp_path, table, columns={"response": "loss"})
    assert len(told) == 1
    program = re.search(r"give instead: jq='(.*)'", str(told.list[0].message))[1]
    pytest.importorskip("jq")
    np.testing.assert_allclose(read_text(tmp_path, table, jq=program).responses, [[0.8], [0.1]])


def test_numbered_attempts_are_not_parsed_as_times(tmp_path, monkeypatch):
    """Millions of them took as many seconds as times do, one by one in Python."""
    monkeypatch.setattr("itembank.readers.chosen_rows._time", None)
    for second, first in ((2, 1), (10, 9), ("run 10", "run 9")):
        table = f"model_id,item_id,attempt,response\na,x,{second},1\na,x,{first},0\n"
        found = warns("read it as epoch", read_text, tmp_path, table, repeats="last")
        assert found.responses.tolist() == [[1]]


@pytest.mark.parametrize(
    ("column", "told"), [("latency_ms", "ms"), ("durationMs", "Ms"), ("n_items_s", ""), ("wall seconds", "")]
)
def test_costs_whose_name_tells_another_unit_are_told(tmp_path, column, told):
    (tmp_path / "r.csv").write_text(f"model_id,item_id,response,{column}\na,x,1,200\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        matrix = read(tmp_path / "r.csv", columns={"seconds": column})
    assert matrix.costs["seconds"].tolist() == [[200.0]]
    assert [f"{told!r} in its name tells another unit" in str(one.message) for one in found] == [True] * bool(told)


@pytest.mark.parametrize(("seconds", "warned"), [("1.978", True), ("0.978", False), ("1.97", True), ("1.9785", False)])
def test_points_beside_decimal_commas_may_part_thousands(tmp_path, seconds, warned):
    (tmp_path / "r.csv").write_text(f"model_id;item_id;response;seconds\na;x;0,5;{seconds}\na;y;0,25;2.345\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read(tmp_path / "r.csv")
    assert ["the points of 'seconds'" in str(one.message) for one in found] == [True] * warned


def rows_as_table(*rows, columns=("model_id", "item_id", "response")):
    return pl.DataFrame(list(rows), schema=list(columns), orient="row")


def test_means_last_ones_and_copies_of_attempts():
    frame = rows_as_table(("a", "x", 1), ("a", "x", 0), ("a", "x", 1), ("a", "y", 1), ("b", "x", 0), ("b", "y", None))
    matrix = warns("lost answers count as missing, not wrong: 1 of 'b'", read, frame, repeats="mean")
    np.testing.assert_allclose(matrix.responses, [[2 / 3, 1], [0, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[3, 1], [1, 0]])
    columns = ("model_id", "item_id", "response", "n_trials", "seed", "seconds", "cost_usd")
    frame = rows_as_table(("a", "x", 1.0, 3, 0, 2.0, None), ("a", "x", 0.0, 1, 1, 4.0, 1.5), columns=columns)
    matrix = read(frame, repeats="mean")
    np.testing.assert_allclose(matrix.responses, [[0.75]])
    np.testing.assert_array_equal(matrix.n_trials, [[4]])
    assert {unit: cost[0, 0] for unit, cost in matrix.costs.items()} == {"seconds": 3.0, "cost_usd": 1.5}
    frame = rows_as_table(("a", "x", 1), ("a", "y", 1), ("a", "x", 0.25), ("b", "x", 0), ("a", "x", None))
    matrix = read(frame, repeats="last")
    assert matrix.lost is None  # the pair has an answer
    np.testing.assert_array_equal(matrix.responses, [[0.25, 1], [0, np.nan]])
    columns = ("model_id", "item_id", "response", "seed")
    frame = rows_as_table(("a", "x", 1, 7), ("a", "x", 1, 7), ("a", "x", 0, 8), columns=columns)
    matrix = warns("1 row repeats", read, frame, repeats="mean")
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5]], [[2]])
    matrix = read(rows_as_table(("a", "x", 1, 7), ("a", "y", 0, 8), columns=columns))
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    assert matrix.n_trials is None
    frame = rows_as_table(("a", "x", 1, 7), ("a", "x", 0, None), columns=columns)
    refuses("only some have a seed", read, frame, repeats="mean")
    columns = ("model_id", "item_id", "response", "n_trials")
    frame = rows_as_table(("a", "x", 0.5, 2), ("a", "x", 0.5, 10), columns=columns)
    refuses(r"'a' item 'x' = 0.5 and 0.5", read, frame)
    columns = ("model_id", "item_id", "response", "seconds")
    rows = (("a", "x", None, 9.0), ("a", "x", 1, None), ("a", "y", None, 3.0), ("b", "y", 1, 1.0))
    frame = rows_as_table(*rows, columns=columns)
    matrix = warns("1 of 'a' .1 without a response", read, frame)
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [np.nan, 1]])
    np.testing.assert_array_equal(matrix.costs["seconds"], [[np.nan, 3], [np.nan, 1]])


@pytest.mark.parametrize(("column", "values", "last"), [
    ("epoch", [2, 10, 1], 1), ("run", ["run2", "run10", "run1"], 1),
    ("timestamp", ["2026-01-02T10:00:00Z", "2026-01-02T11:00:00.5Z", "2025-12-31T12:00:00Z"], 1),
    ("created_at", ["2026-01-02 10:00", "2026-01-02 11:00", "2025-12-31 12:00"], 1),
    ("created_at", ["2026-01-02T10:30+01:00", "2026-01-02T10:00+00:00", "2026-01-02 09:45:00 UTC"], 1),
    ("created_at", ["2026-01-02T10:30+01:00", "2026-01-02T10:00", "2026-01-02T09:45Z"], 2),
    ("attempt", [1, 2, 2], 2), ("seed", [2, 10, 1], 2),
])  # fmt: skip
def test_a_column_tells_the_last_attempt_if_it_has_an_order(column, values, last, tmp_path):
    rows = [("a", "x", k / 4, value) for k, value in enumerate(values)]
    frame = rows_as_table(*rows, ("b", "y", 1, values[0]), columns=("model_id", "item_id", "response", column))
    frame.write_csv(tmp_path / "r.csv")
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "(?s).*(numbers repeated attempts|the row that comes last counts)", DataWarning
        )
        for matrix in (read(frame, repeats="last"), read(tmp_path / "r.csv", repeats="last")):
            np.testing.assert_array_equal(matrix.responses, [[last / 4, np.nan], [np.nan, 1]])
    if last == 2 and column != "seed":
        warns(f"those in '{column}' do not: the row that comes last counts", read, frame, repeats="last")


def test_times_that_are_not_understood_order_no_attempts(tmp_path):
    """In the order of the file the attempt of December 31 was the last, in silence but for a note."""
    times = ("1/2/2026 9:05 AM", "12/31/2025 11:59 PM")
    rows = [("a", "x", k, time) for k, time in enumerate(times)]
    frame = rows_as_table(*rows, columns=("model_id", "item_id", "response", "timestamp"))
    says = "got '1/2/2026 9:05 AM' as 'timestamp'. Write them so; .* add: drop_columns=..timestamp"
    refuses(says, read, frame, repeats="last")
    assert read(frame, repeats="last", drop_columns=("timestamp",)).responses.tolist() == [[1.0]]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 4), st.integers(1, 5)), min_size=1
    )
)
def test_the_mean_is_that_of_a_plain_loop(rows):
    attempts = [(model, item, min(right, tried), tried) for model, item, right, tried in rows]
    frame = rows_as_table(*attempts, columns=("model_id", "item_id", "n_correct", "n_trials"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = read(frame, repeats="mean")
    right: dict = {}
    tried: dict = {}
    for model, item, n_correct, n_trials in attempts:
        right[model, item] = right.get((model, item), 0) + n_correct
        tried[model, item] = tried.get((model, item), 0) + n_trials
    for row, model in enumerate(matrix.model_ids):
        for column, item in enumerate(matrix.item_ids):
            n = tried.get((model, item), 0)
            assert matrix.n_trials[row, column] == n
            if n:
                assert matrix.responses[row, column] == pytest.approx(right[model, item] / n)
            else:
                assert np.isnan(matrix.responses[row, column])
