import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec


def table(*rows, columns=("model_id", "item_id", "response")):
    return pl.DataFrame(list(rows), schema=list(columns), orient="row")


def test_the_mean_of_attempts_counts_them():
    frame = table(("a", "x", 1), ("a", "x", 0), ("a", "x", 1), ("a", "y", 1), ("b", "x", 0), ("b", "y", None))
    with pytest.warns(DataWarning, match="lost answers count as missing, not wrong: 1 of 'b'"):
        matrix = read_responses(frame, spec=ReadingSpec(repeats="mean"))
    np.testing.assert_allclose(matrix.responses, [[2 / 3, 1], [0, np.nan]])
    np.testing.assert_array_equal(matrix.n_trials, [[3, 1], [1, 0]])


def test_the_mean_weighs_by_trials_and_costs_are_of_one_attempt():
    columns = ("model_id", "item_id", "response", "n_trials", "seed", "seconds", "cost_usd")
    frame = table(("a", "x", 1.0, 3, 0, 2.0, None), ("a", "x", 0.0, 1, 1, 4.0, 1.5), columns=columns)
    matrix = read_responses(frame, spec=ReadingSpec(repeats="mean"))
    np.testing.assert_allclose(matrix.responses, [[0.75]])
    np.testing.assert_array_equal(matrix.n_trials, [[4]])
    assert {unit: cost[0, 0] for unit, cost in matrix.costs.items()} == {"seconds": 3.0, "cost_usd": 1.5}


def test_the_last_attempt_may_be_taken():
    frame = table(("a", "x", 1), ("a", "y", 1), ("a", "x", 0.25), ("b", "x", 0), ("a", "x", None))
    matrix = read_responses(frame, spec=ReadingSpec(repeats="last"))
    assert matrix.lost is None  # the pair has an answer
    np.testing.assert_array_equal(matrix.responses, [[0.25, 1], [0, np.nan]])


@pytest.mark.parametrize(
    ("column", "values", "last"),
    [
        ("epoch", [2, 10, 1], 1),
        ("run", ["run2", "run10", "run1"], 1),
        ("timestamp", ["2026-01-02T10:00:00Z", "2026-01-02T11:00:00.5Z", "2025-12-31T12:00:00Z"], 1),
        ("created_at", ["2026-01-02 10:00", "2026-01-02 11:00", "2025-12-31 12:00"], 1),
        ("created_at", ["2026-01-02T10:00+01:00", "2026-01-02T11:00+00:00", "2025-12-31T12:00Z"], 2),
        ("date", ["12/31/2025", "01/02/2026", "01/01/2026"], 2),
        ("attempt", [1, 2, 2], 2),
        ("seed", [2, 10, 1], 2),
    ],
)
def test_a_column_tells_the_last_attempt_if_it_has_an_order(column, values, last, tmp_path):
    rows = [("a", "x", k / 4, value) for k, value in enumerate(values)]
    frame = table(*rows, ("b", "y", 1, values[0]), columns=("model_id", "item_id", "response", column))
    frame.write_csv(tmp_path / "r.csv")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*numbers repeated attempts", DataWarning)
        for matrix in (
            read_responses(frame, spec=ReadingSpec(repeats="last")),
            read_responses(tmp_path / "r.csv", spec=ReadingSpec(repeats="last")),
        ):
            np.testing.assert_array_equal(matrix.responses, [[last / 4, np.nan], [np.nan, 1]])


def test_copies_with_one_seed_count_once_before_the_mean():
    columns = ("model_id", "item_id", "response", "seed")
    frame = table(("a", "x", 1, 7), ("a", "x", 1, 7), ("a", "x", 0, 8), columns=columns)
    with pytest.warns(DataWarning, match="1 row repeats"):
        matrix = read_responses(frame, spec=ReadingSpec(repeats="mean"))
    np.testing.assert_array_equal(matrix.responses, [[0.5]])
    np.testing.assert_array_equal(matrix.n_trials, [[2]])


def test_seeds_of_single_attempts_are_no_repeats():
    columns = ("model_id", "item_id", "response", "seed")
    matrix = read_responses(table(("a", "x", 1, 7), ("a", "y", 0, 8), columns=columns))
    np.testing.assert_array_equal(matrix.responses, [[1, 0]])
    assert matrix.n_trials is None


def test_equal_responses_of_unequal_trials_are_no_copies():
    columns = ("model_id", "item_id", "response", "n_trials")
    with pytest.raises(DataError, match=r"'a' item 'x' = 0.5 and 0.5"):
        read_responses(table(("a", "x", 0.5, 2), ("a", "x", 0.5, 10), columns=columns))


def test_some_rows_with_a_seed_and_some_without_are_refused_even_for_a_mean():
    columns = ("model_id", "item_id", "response", "seed")
    frame = table(("a", "x", 1, 7), ("a", "x", 0, None), columns=columns)
    with pytest.raises(DataError, match="only some have a seed"):
        read_responses(frame, spec=ReadingSpec(repeats="mean"))


def test_a_cost_without_response_is_kept_and_gives_way_to_a_row_with_one():
    columns = ("model_id", "item_id", "response", "seconds")
    frame = table(
        ("a", "x", None, 9.0), ("a", "x", 1, None), ("a", "y", None, 3.0), ("b", "y", 1, 1.0), columns=columns
    )
    with pytest.warns(DataWarning, match="1 of 'a' .1 without a response"):
        matrix = read_responses(frame)
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [np.nan, 1]])
    np.testing.assert_array_equal(matrix.costs["seconds"], [[np.nan, 3], [np.nan, 1]])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 4), st.integers(1, 5)), min_size=1
    )
)
def test_the_mean_is_that_of_a_plain_loop(rows):
    attempts = [(model, item, min(right, tried), tried) for model, item, right, tried in rows]
    frame = table(*attempts, columns=("model_id", "item_id", "n_correct", "n_trials"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = read_responses(frame, spec=ReadingSpec(repeats="mean"))
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
