import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.read import responses_from_frame
from itembank.readers.reading_specs import ReadingSpec


def frame(**columns):
    return pl.DataFrame({"model_id": ["a", "a", "b"], "item_id": ["x", "y", "x"], **columns})


def test_counts_make_the_response():
    matrix = responses_from_frame(frame(n_correct=[1, 0, 3], n_trials=[4, 2, 3]))
    np.testing.assert_array_equal(matrix.responses, [[0.25, 0], [1, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 2], [3, 0]])


def test_counts_refine_a_rounded_response():
    matrix = responses_from_frame(frame(response=[0.33, 1.0, 0.67], n_correct=[1, 1, 2], n_trials=[3, 1, 3]))
    np.testing.assert_array_equal(matrix.responses[:, 0], [1 / 3, 2 / 3])


def test_counts_say_nothing_of_another_response_column():
    table = frame(response=[1.0, 1.0, 1.0], strict=[0.0, 1.0, 0.0], n_correct=[1, 1, 1], n_trials=[1, 1, 1])
    matrix = responses_from_frame(table, spec=ReadingSpec(response_column="strict"))
    np.testing.assert_array_equal(matrix.responses, [[0, 1], [0, np.nan]])


def test_unknown_trials_count_as_one_and_a_missing_response_has_none():
    with pytest.warns(DataWarning, match="1 of 3 rows"), pytest.warns(DataWarning, match="count as one trial each"):
        matrix = responses_from_frame(
            frame(response=[0.5, 1.0, None], n_trials=[None, 5, 7]), spec=ReadingSpec(empty="keep")
        )
    np.testing.assert_array_equal(matrix.n_trials, [[1, 5], [0, 0]])


def test_columns_of_nothing_are_as_if_absent():
    matrix = responses_from_frame(
        frame(response=[1, 0, 1], n_trials=[None] * 3, cost_usd=[None] * 3, seed=[None] * 3, scenario=[""] * 3)
    )
    assert matrix.n_trials is None
    assert matrix.costs == {}
    assert matrix.items["scenario"].to_list() == ["all", "all"]


def test_scenario_and_subscenario_are_the_items_and_gaps_are_filled_from_other_rows():
    table = frame(response=[1, 0, 1], scenario=[None, "law", "math"], subscenario=["", "", "sums"])
    matrix = responses_from_frame(table)
    assert matrix.items.rows() == [("x", "math", "sums"), ("y", "law", None)]


def test_items_without_a_scenario_among_others_go_into_one_of_their_own():
    table = frame(response=[1, 0, 1], scenario=["math", None, "math"])
    with pytest.warns(DataWarning, match="1 of 2 items have no scenario and are put into 'all': 'y'"):
        assert responses_from_frame(table).items["scenario"].to_list() == ["math", "all"]
    assert responses_from_frame(table, spec=ReadingSpec(scenario="law")).items["scenario"].to_list() == ["math", "law"]


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
        responses_from_frame(table)
    matrix = responses_from_frame(table, spec=ReadingSpec(prefix_scenario=True))
    assert matrix.item_ids == ["math/1", "law/1", "math/2"]
    assert matrix.items["scenario"].to_list() == ["math", "law", "math"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, np.nan], [1, np.nan, 0]])


def test_a_scenario_from_the_spec_is_put_before_ids_too():
    matrix = responses_from_frame(frame(response=[1, 0, 1]), spec=ReadingSpec(prefix_scenario=True, scenario="math"))
    assert matrix.item_ids == ["math/x", "math/y"]
    with pytest.raises(DataError, match="needs a column scenario"):
        responses_from_frame(frame(response=[1, 0, 1]), spec=ReadingSpec(prefix_scenario=True))


def test_the_one_model_of_a_table_may_be_named():
    nameless = frame(response=[1, 0, 1]).drop("model_id")[:2]
    assert responses_from_frame(nameless, spec=ReadingSpec(model_id="new")).model_ids == ["new"]
    renamed = responses_from_frame(frame(response=[1, 0, 1])[:2], spec=ReadingSpec(model_id="new"))
    assert renamed.model_ids == ["new"]


def test_numbers_are_divided_by_their_maximum():
    matrix = responses_from_frame(frame(response=[100.0, 0.0, 12.5]), spec=ReadingSpec(max_response=100))
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
    matrix = responses_from_frame(frame(response=column.cast(dtype)))
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [1, np.nan]])
