import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError
from itembank.responses.responses import (
    ResponseMatrix,
    check_complete,
    check_enough_models,
    check_models_and_items_have_responses,
)

NAN = np.nan


def test_values_outside_are_named_by_id_with_what_to_do():
    values = np.array([[0.0, 1.5], [NAN, -0.25], [1.0, 1.0]])
    with pytest.raises(DataError) as caught:
        ResponseMatrix.create(values, model_ids=["a", "b", "c"], item_ids=["x", "y"])
    assert str(caught.value) == (
        "response must lie in [0, 1], got 2 values outside for 2 of 3 models: 'a' item 'y' = 1.5, "
        "'b' item 'y' = -0.25. Rescale or drop them."
    )


def test_infinite_values_are_outside_and_only_five_are_named():
    with pytest.raises(DataError, match=r"got 7 values outside .*: 'm' .*item-5' = inf and 2 more\. Rescale"):
        ResponseMatrix.create(np.full((1, 7), np.inf), model_ids=["m"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_ids": ["a", "a"]}, "model_id must be unique, got 1 ids more than once: 'a'"),
        ({"item_ids": ["x", "y", ""]}, "item_id must not be empty"),
        ({"model_ids": ["a"]}, r"responses must have shape \(n_models, n_items\) = \(1, 3\), got \(2, 3\)"),
        ({"n_trials": np.ones((2, 2), dtype=int)}, r"n_trials must have shape .* = \(2, 3\), got \(2, 2\)"),
        ({"costs": {"seconds": np.ones((3, 2))}}, r"seconds must have shape .* got \(3, 2\)"),
        ({"scenarios": ["one"]}, "scenarios must name one scenario an item: 1 for 3 items"),
    ],
)
def test_tables_and_arrays_that_do_not_fit(arguments, message):
    with pytest.raises(DataError, match=message):
        ResponseMatrix.create(np.zeros((2, 3)), **arguments)


def test_all_problems_of_the_ids_are_told_at_once():
    with pytest.raises(DataError, match=r"model_id must be unique.*item_id must be unique.*\[0, 1\]"):
        ResponseMatrix.create(np.full((2, 2), 9.0), model_ids=["a", "a"], item_ids=["x", "x"])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_at_all_is_refused(shape):
    with pytest.raises(DataError, match="at least one model and one item"):
        ResponseMatrix.create(np.zeros(shape))


def test_one_axis_is_refused():
    with pytest.raises(DataError, match=r"two axes .* got shape \(3,\)"):
        ResponseMatrix.create(np.zeros(3))


def test_missing_cells_are_named():
    check_complete(np.zeros((2, 2)), ["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"got 2 missing of 4: 'a' item 'y', 'b' item 'x'\. Run them"):
        check_complete(np.array([[0, NAN], [NAN, 1]]), ["a", "b"], ["x", "y"])
    with pytest.raises(DataError, match=r"got 8 missing of 8: .*'m' item '4' and 3 more"):
        check_complete(np.full((1, 8), NAN), ["m"], [str(k) for k in range(8)])


def test_empty_models_and_items_are_named():
    values = np.array([[NAN, NAN, NAN], [0, NAN, 1]])
    with pytest.raises(DataError, match=r"every model .* none for 1 of 2 models: 'a'.*every item .* 1 of 3 items: 'y'"):
        check_models_and_items_have_responses(values, ["a", "b"], ["x", "y", "z"])


def test_too_few_models_name_how_many_are_needed():
    check_enough_models(5, 5, "this")
    with pytest.raises(DataError, match="this needs at least 5 models, got 4"):
        check_enough_models(4, 5, "this")


def test_model_and_item_tables_keep_other_columns_and_scenarios_default():
    items = pl.DataFrame({"n_options": [4, 5], "item_id": ["x", "y"]})
    matrix = ResponseMatrix.create(np.zeros((1, 2)), items=items)
    assert matrix.items.columns == ["item_id", "scenario", "subscenario", "n_options"]
    assert matrix.items["scenario"].to_list() == ["all", "all"]


def test_counts_make_responses_and_zero_trials_a_missing_one():
    matrix = ResponseMatrix.from_counts(np.array([[3, 0], [2, 5]]), np.array([[4, 0], [2, 10]]), model_ids=["a", "b"])
    np.testing.assert_array_equal(matrix.responses, [[0.75, np.nan], [1.0, 0.5]])
    np.testing.assert_array_equal(matrix.n_trials, [[4, 0], [2, 10]])
    assert matrix.model_ids == ["a", "b"]


@pytest.mark.parametrize(
    ("n_correct", "n_trials", "message"),
    [
        ([[3, 2]], [[2, 2]], r"n_correct must be at most n_trials, got 1 cells above: 3 of 2 at \(0, 0\)"),
        ([[-1, 2]], [[2, 2]], "n_correct must be whole numbers of at least 0, got 1 others"),
        ([[0.5, 2]], [[2, 2]], "n_correct must be whole numbers of at least 0, got 1 others"),
        ([[1, 2]], [[2, np.nan]], "n_trials must be whole numbers of at least 0, got 1 others"),
        ([[1, 2]], [[2], [2]], r"must have one shape, got \(1, 2\) and \(2, 1\)"),
    ],
)
def test_counts_that_cannot_be_are_refused(n_correct, n_trials, message):
    with pytest.raises(DataError, match=message):
        ResponseMatrix.from_counts(np.array(n_correct), np.array(n_trials))


@pytest.mark.parametrize(
    ("n_trials", "message"),
    [
        ([[0, 0]], "at least 1 where there is a response, got 1 cells with less: 'model-1' item 'item-1' = 0"),
        ([[2, -1]], "got 1 cells with less: 'model-1' item 'item-2' = -1"),
        ([[10**9, 0]], "must be below 1,000,000,000, got 1 cells with more: 'model-1' item 'item-1'"),
        ([[2.0, 0.0]], "n_trials must be whole numbers, got an array of float64"),
    ],
)
def test_trials_behind_responses_are_checked(n_trials, message):
    with pytest.raises(DataError, match=message):
        ResponseMatrix.create(np.array([[0.5, np.nan]]), n_trials=np.array(n_trials))
