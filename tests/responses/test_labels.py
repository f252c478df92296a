"""Names as numbers: the same whatever holds the names, and wide enough for every pair."""

import numpy as np
import polars as pl
import pytest

from itembank.responses.labels import Labels, come_again, join_labels, number_of_pair

NAMES = ["b", None, "a", "b", "", "c", "a"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["", "a", "b", "c", "unused"])])
def test_labels_are_numbered_as_their_names_first_appear(dtype):
    pl.Series(["z", "c", "y"], dtype=pl.Categorical)  # codes of Polars are in no order of ours
    labels = Labels.of(pl.Series(NAMES, dtype=dtype))
    assert labels.names.to_list() == ["b", "a", "", "c"]
    assert labels.index.tolist() == [0, -1, 1, 0, 2, 3, 1]
    assert labels.index.dtype == np.int32
    assert labels.take(np.array([6, 1, 5])).index.dtype == np.int32
    joined = join_labels([labels, Labels.of(pl.Series(["c", "d", None], dtype=pl.String))])
    assert joined.index.tolist() == [*labels.index, 3, 4, -1]
    assert joined.index.dtype == np.int32


@pytest.mark.parametrize("values", [[], [None, None]])
def test_labels_of_nothing(values):
    labels = Labels.of(pl.Series(values, dtype=pl.String))
    assert labels.n_names == 0
    assert labels.index.tolist() == [-1] * len(values)


def test_pairs_beyond_two_billion_have_numbers_of_their_own():
    many = pl.Series("name", [""], dtype=pl.String).new_from_index(0, 100_000)
    one, other = (Labels(many, np.array(index, dtype=np.int32)) for index in ([99_999, 42_949], [99_999, 67_295]))
    assert number_of_pair(one, other).tolist() == [9_999_999_999, 4_294_967_295]


@pytest.mark.parametrize("n_numbers", [5, 60, 100_000])
def test_numbers_that_come_again_are_counted_among_those_marked(n_numbers):
    rng = np.random.default_rng(n_numbers)
    for share in (0.3, 1.0):
        number, among = rng.integers(n_numbers, size=60), rng.random(60) < share
        expected = [bool(m) and int(np.sum(number[among] == one)) > 1 for one, m in zip(number, among, strict=True)]
        assert come_again(number, n_numbers, among).tolist() == expected
