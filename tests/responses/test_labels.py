"""Names as numbers: the same whatever holds the names, and wide enough for every pair."""

import numpy as np
import polars as pl
import pytest

from itembank.responses.labels import come_again, first_told, names_of, number_of_pair, numbered

NAMES = ["b", None, "a", "b", "", "c", "a"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["", "a", "b", "c", "unused"])])
def test_names_are_numbered_as_they_first_appear(dtype):
    pl.Series(["z", "c", "y"], dtype=pl.Categorical)  # codes of Polars are in no order of ours
    column = pl.Series(NAMES, dtype=dtype)
    assert names_of(column).to_list() == ["b", "a", "", "c"]
    assert numbered(column).tolist() == [0, -1, 1, 0, 2, 3, 1]
    assert numbered(column).dtype == np.int32
    assert numbered(column, pl.Series(["x", "c", "", "a", "b"])).tolist() == [4, -1, 3, 4, 2, 1, 3]


@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_has_no_names(values):
    column = pl.Series(values, dtype=pl.String)
    assert names_of(column).len() == 0
    assert numbered(column).tolist() == [-1] * len(values)


def test_pairs_beyond_two_billion_have_numbers_of_their_own():
    one, other = (np.array(index, dtype=np.int32) for index in ([99_999, 42_949], [99_999, 67_295]))
    assert number_of_pair(one, other, 100_000).tolist() == [9_999_999_999, 4_294_967_295]


def test_the_first_name_of_a_group_is_told_and_the_rows_that_differ():
    group, column = np.array([1, 0, 1, 1, 2]), pl.Series(["a", None, None, "b", "a"])
    names, differing = first_told(group, 4, column)
    assert names.to_list() == [None, "a", "a", None]
    assert differing.tolist() == [3]


@pytest.mark.parametrize("n_numbers", [5, 60, 100_000])
def test_numbers_that_come_again_are_counted_among_those_marked(n_numbers):
    rng = np.random.default_rng(n_numbers)
    for share in (0.3, 1.0):
        number, among = rng.integers(n_numbers, size=60), rng.random(60) < share
        expected = [bool(m) and int(np.sum(number[among] == one)) > 1 for one, m in zip(number, among, strict=True)]
        assert come_again(number, n_numbers, among).tolist() == expected
