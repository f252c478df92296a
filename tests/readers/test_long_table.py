import warnings

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.test_table import read, refused


def frame(**columns):
    return pl.DataFrame({"model_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], **columns})


def test_counts_make_the_response():
    matrix = read_responses(frame(n_correct=[1, 0, 3], n_trials=[4, 2, 3]))
    np.testing.assert_array_equal(matrix.responses, [[0.25, 0], [1, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 2], [3, 0]])


def test_counts_refine_a_rounded_response():
    matrix = read_responses(frame(response=[0.33, 1.0, 0.67], n_correct=[1, 1, 2], n_trials=[3, 1, 3]))
    np.testing.assert_array_equal(matrix.responses[:, 0], [1 / 3, 2 / 3])


def test_counts_say_nothing_of_another_response_column():
    table = frame(response=[1.0, 1.0, 1.0], strict=[0.0, 1.0, 0.0], n_correct=[1, 1, 1], n_trials=[1, 1, 1])
    matrix = read_responses(table, spec=ReadingSpec(response_column="strict"))
    np.testing.assert_array_equal(matrix.responses, [[0, 1], [0, np.nan]])


def test_unknown_trials_count_as_one_and_a_missing_response_has_none():
    with (
        pytest.warns(DataWarning, match="count as one trial each"),
        pytest.warns(DataWarning, match="1 of 2 models have no answer to any item and are left out: 'b'"),
    ):
        matrix = read_responses(frame(response=[0.5, 1.0, None], n_trials=[None, 5, 7]))
    np.testing.assert_array_equal(matrix.n_trials, [[1, 5]])


def test_columns_of_nothing_are_as_if_absent():
    matrix = read_responses(
        frame(response=[1, 0, 1], n_trials=[None] * 3, cost_usd=[None] * 3, seed=[None] * 3, scenario=[""] * 3)
    )
    assert matrix.n_trials is None
    assert matrix.costs == {}
    assert matrix.items["scenario"].to_list() == ["all", "all"]


@pytest.mark.parametrize("kind", ["frame", "csv", "jsonl", "parquet"])
def test_dollars_of_another_name_are_not_left_out_in_silence(tmp_path, kind):
    table = frame(response=[1, 0, 1], Cost=[0.5, 0.25, 2.0], tokens=[1, 2, 3])
    path = tmp_path / f"results.{kind}"
    if kind != "frame":
        {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}[kind](path)
    with pytest.warns(DataWarning) as found:
        matrix = read_responses(table) if kind == "frame" else read_responses(path)
    (one,) = found
    assert str(one.message).endswith("no dollars are read. If they are in 'Cost', add: columns={'cost_usd': 'Cost'}")
    assert matrix.costs == {}
    spec = ReadingSpec(columns={"cost_usd": "Cost"})
    told = read_responses(table, spec=spec) if kind == "frame" else read_responses(path, spec=spec)
    np.testing.assert_array_equal(told.costs["cost_usd"], [[0.5, 0.25], [2.0, np.nan]])


def test_scenario_and_subscenario_are_the_items_and_gaps_are_filled_from_other_rows():
    table = frame(response=[1, 0, 1], scenario=[None, "law", "math"], subscenario=["", "", "sums"])
    matrix = read_responses(table)
    assert matrix.items.rows() == [("x", "math", "sums"), ("y", "law", None)]


def test_items_without_a_scenario_among_others_go_into_one_of_their_own():
    table = frame(response=[1, 0, 1], scenario=["math", None, "math"])
    with pytest.warns(DataWarning, match="1 of 2 items have no scenario and are put into 'all': 'y'"):
        assert read_responses(table).items["scenario"].to_list() == ["math", "all"]
    assert read_responses(table, spec=ReadingSpec(scenario="law")).items["scenario"].to_list() == ["math", "law"]


def test_a_scenario_put_before_the_id_tells_items_apart():
    table = pl.DataFrame(
        {
            "model_id": ["a", "a", "b", "b"],
            "item_id": ["1", "1", "1", "2"],
            "scenario": ["math", "law", "math", "math"],
            "response": [1, 0, 1, 0],
        }
    )
    with pytest.raises(DataError, match="'1' in 'math' and 'law'"):
        read_responses(table)
    matrix = read_responses(table, spec=ReadingSpec(prefix_scenario=True))
    assert matrix.item_ids == ["math/1", "law/1", "math/2"]
    assert matrix.items["scenario"].to_list() == ["math", "law", "math"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, np.nan], [1, np.nan, 0]])


def test_a_scenario_from_the_spec_is_put_before_ids_too():
    matrix = read_responses(frame(response=[1, 0, 1]), spec=ReadingSpec(prefix_scenario=True, scenario="math"))
    assert matrix.item_ids == ["math/x", "math/y"]
    with pytest.raises(DataError, match="needs a column scenario"):
        read_responses(frame(response=[1, 0, 1]), spec=ReadingSpec(prefix_scenario=True))


def test_the_one_model_of_a_table_may_be_named():
    nameless = frame(response=[1, 0, 1]).drop("model_id")[:2]
    assert read_responses(nameless, spec=ReadingSpec(model_id="new")).model_ids == ["new"]
    renamed = read_responses(frame(response=[1, 0, 1])[:2], spec=ReadingSpec(model_id="new"))
    assert renamed.model_ids == ["new"]


def test_numbers_are_divided_by_their_maximum():
    matrix = read_responses(frame(response=[100.0, 0.0, 12.5]), spec=ReadingSpec(max_response=100))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [0.125, np.nan]])


@pytest.mark.parametrize(
    "dtype", [pl.Float32, pl.Int8, pl.UInt64, pl.Boolean, pl.String, pl.Decimal(10, 2), pl.Categorical]
)
def test_responses_of_any_type_of_number(dtype):
    column = (
        pl.Series("response", ["1", "0", "1"])
        if dtype in (pl.String, pl.Categorical)
        else pl.Series("response", [1, 0, 1])
    )
    matrix = read_responses(frame(response=column.cast(dtype)))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, np.nan]])


COUNT = ReadingSpec(repeats="count")


def table(**columns):
    """Return a table of rows of model a (unless told) and item x (unless told)."""
    n_rows = len(next(iter(columns.values())))
    return pl.DataFrame({"model_id": ["a"] * n_rows, "item_id": ["x"] * n_rows} | columns, strict=False)


@pytest.mark.parametrize("column", ["seed", "epoch"])
def test_attempts_are_counted(column):
    matrix = read_responses(table(response=[1, 0, 1, 1], **{column: [1, 2, 3, 4]}), spec=COUNT)
    np.testing.assert_array_equal(matrix.responses, [[0.75]])
    np.testing.assert_array_equal(matrix.n_trials, [[4]])


def test_attempts_without_seeds_are_counted_too():
    matrix = read_responses(table(response=[1, 1, 1, 0]), spec=COUNT)
    np.testing.assert_array_equal(matrix.responses, [[0.75]])
    np.testing.assert_array_equal(matrix.n_trials, [[4]])


def test_counts_of_counts_add_up():
    frame = table(n_correct=[3, 0, 1], n_trials=[10, 5, 1], seed=[1, 2, 3])
    matrix = read_responses(frame, spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[16]])
    np.testing.assert_array_equal(matrix.responses * 16, [[4]])


def test_single_attempts_are_one_trial_and_missing_ones_none():
    frame = table(item_id=["x", "y"], model_id=["a", "b"], response=[1.0, 0.0])
    matrix = read_responses(frame, spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [np.nan, 0]])


def test_epochs_are_never_averaged_unasked_or_taken_for_copies():
    frame = table(response=[1, 1], epoch=[1, 2], seed=[42, 42])
    with pytest.raises(DataError, match=r"repeated attempts \(several seeds\).*to count them add: repeats='count'"):
        read_responses(frame)
    np.testing.assert_array_equal(read_responses(frame, spec=COUNT).n_trials, [[2]])


def test_copies_of_one_attempt_count_once_and_contradictions_are_refused():
    with pytest.warns(DataWarning, match=r"1 row repeats .* and seed .* give each a seed of its own\.$"):
        matrix = read_responses(table(response=[1, 1, 0], seed=[7, 7, 8]), spec=COUNT)
    np.testing.assert_array_equal(matrix.n_trials, [[2]])
    with pytest.raises(DataError, match="They even have the same seed"):
        read_responses(table(response=[1, 0], seed=[7, 7]), spec=COUNT)


def test_scores_between_right_and_wrong_are_no_counts():
    with pytest.raises(DataError, match=r"must be right or wrong .* got 2 .*'a' item 'x' = 0\.5, 'a' item 'x' = 0\.3"):
        read_responses(table(response=[1, 0.5, 0.3], seed=[1, 2, 3]), spec=COUNT)


def test_a_rate_with_its_trials_is_a_count_when_it_nearly_is():
    frame = table(item_id=["x", "y"], response=[0.33, 0.6667], n_trials=[3, 3])
    matrix = read_responses(frame, spec=COUNT)
    np.testing.assert_array_equal(np.rint(matrix.responses * 3), [[1, 2]])
    np.testing.assert_allclose(matrix.responses * 3, [[1, 2]], atol=1e-15)
    with pytest.raises(DataError, match="no counts"):
        read_responses(table(response=[0.4], n_trials=[3]), spec=COUNT)


def test_every_impossible_count_of_a_table_is_told_at_once():
    frame = pl.DataFrame(
        {
            "model_id": list("abcdefg"),
            "item_id": ["x"] * 7,
            "n_correct": [11.0, -1.0, 2.5, 3.0, 2.0, 0.0, 1.0],
            "n_trials": [10.0, 10.0, 10.0, None, -4.0, 2.5, 0.0],
        }
    )
    with pytest.raises(DataError) as error:
        read_responses(frame)
    text = str(error.value)
    assert "n_correct must come with n_trials, got 1 row with something else: 'd' item 'x' (3 of unknown)" in text
    assert (
        "from 0 to n_trials, got 4 rows with something else: 'a' item 'x' (11 of 10), 'b' item 'x' (-1 of 10)" in text
    )
    assert "'c' item 'x' (2.5 of 10), 'g' item 'x' (1 of 0)" in text
    assert "at least 1 where there is a response, got 2 rows with something else: 'e' item 'x' (-4)" in text


def test_zero_trials_without_a_response_are_missing_and_told():
    frame = table(model_id=["a", "a", "b"], item_id=["x", "y", "y"], n_correct=[2, 0, 1], n_trials=[4, 0, 1])
    with pytest.warns(DataWarning, match="1 row has zero trials and counts as missing: 'a' item 'y'"):
        matrix = read_responses(frame)
    np.testing.assert_array_equal(matrix.responses, [[0.5, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 0], [0, 1]])


def test_zero_trials_with_a_response_are_refused():
    with pytest.raises(DataError, match=r"at least 1 where there is a response, got 1 row .*'a' item 'x' \(0\)"):
        read_responses(table(response=[0.5], n_trials=[0]))


def test_millions_of_trials_stay_exact():
    frame = table(n_correct=[1234567, 1], n_trials=[3720320, 3720319], seed=[1, 2])
    matrix = read_responses(frame, spec=COUNT)
    assert matrix.n_trials.tolist() == [[7440639]]
    assert np.rint(matrix.responses * matrix.n_trials).tolist() == [[1234568.0]]
    np.testing.assert_allclose(matrix.responses * matrix.n_trials, [[1234568.0]], rtol=1e-15)


def test_a_share_of_unknown_trials_among_known_ones_is_told():
    frame = table(item_id=["x", "y", "z"], response=[0.25, 0.4, 1.0], n_trials=[4, None, None])
    with pytest.warns(DataWarning, match="1 responses between 0 and 1 have no n_trials.*'a' item 'y'"):
        matrix = read_responses(frame)
    np.testing.assert_array_equal(matrix.n_trials, [[4, 1, 1]])


def test_trials_of_tasks_that_are_not_read_say_nothing(tmp_path):
    counted = pl.DataFrame(table(item_id=["x", "y"], response=[0.25, 1.0], n_trials=[4, 4], scenario=["t", "t"]))
    shares = pl.DataFrame(table(item_id=["v", "w"], response=[0.3, 0.4], scenario=["u", "u"]))
    counted.write_csv(tmp_path / "t.csv")
    shares.write_csv(tmp_path / "u.csv")
    pl.concat([counted, shares], how="diagonal").write_csv(tmp_path / "both.csv")
    two = [tmp_path / "t.csv", tmp_path / "u.csv"]
    for paths in (tmp_path / "both.csv", two):
        assert read_responses(paths, spec=ReadingSpec(tasks=("u",))).n_trials is None
        assert read_responses(paths, spec=ReadingSpec(exclude_tasks=("u",))).n_trials.tolist() == [[4, 4]]
    with pytest.warns(DataWarning, match=r"u\.csv: 2 responses between 0 and 1 have no n_trials.*'a' item 'v'"):
        np.testing.assert_array_equal(read_responses(two).n_trials, [[4, 4, 1, 1]])


@pytest.mark.parametrize(
    ("values", "program"),
    [
        ("101", ". + {response: (1 - (.wrong | tonumber))}"),
        (("True", "False", "TRUE"), '. + {response: (.wrong | tostring | ascii_downcase == "false")}'),
    ],
)
def test_a_column_of_what_is_wrong_is_turned_round(tmp_path, values, program):
    """A message advised it as the response, so that the worst model was the best, without a word."""
    table = "model,item,wrong\n" + "".join(f"a,{number},{one}\n" for number, one in enumerate(values))
    says = refused(tmp_path, table)
    assert "--column" not in says
    assert says.endswith(f"To turn it round, add: --jq '{program}'")
    with pytest.warns(DataWarning, match="'wrong' is called as what is wrong|read the column") as told:
        assert read(tmp_path, table, columns={"response": "wrong"}).responses.tolist() == [[1, 0, 1]]
    assert f"To turn it round, give instead: jq={program!r}" in str(told.list[-1].message)
    pytest.importorskip("jq")
    with pytest.warns(DataWarning, match="read the column"):
        assert read(tmp_path, table, jq=program).responses.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("column", "told"), [("latency_ms", "ms"), ("durationMs", "Ms"), ("n_items_s", ""), ("wall seconds", "")]
)
def test_costs_whose_name_tells_another_unit_are_told(tmp_path, column, told):
    (tmp_path / "r.csv").write_text(f"model_id,item_id,response,{column}\na,x,1,200\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        matrix = read_responses(tmp_path / "r.csv", spec=ReadingSpec(columns={"seconds": column}))
    assert matrix.costs["seconds"].tolist() == [[200.0]]
    assert [f"{told!r} in its name tells another unit" in str(one.message) for one in found] == [True] * bool(told)


@pytest.mark.parametrize(("seconds", "warned"), [("1.978", True), ("0.978", False), ("1.97", True), ("1.9785", False)])
def test_points_beside_decimal_commas_may_part_thousands(tmp_path, seconds, warned):
    (tmp_path / "r.csv").write_text(f"model_id;item_id;response;seconds\na;x;0,5;{seconds}\na;y;0,25;2.345\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_responses(tmp_path / "r.csv")
    assert ["the points of 'seconds'" in str(one.message) for one in found] == [True] * warned
