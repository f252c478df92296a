import numpy as np
import pytest

from itembank.errors import DataWarning
from itembank.readers.public.read_public import check_published
from itembank.responses.responses import ResponseMatrix


@pytest.fixture
def matrix():
    values = np.array([[1.0, 0.0, 1.0, np.nan], [0.0, 0.0, 0.5, 1.0]])
    return ResponseMatrix.create(values, model_ids=["a", "b"], scenarios=["s", "s", "t", "t"])


def test_scores_that_agree_say_nothing(matrix):
    published = [("a", "s", 0.5), ("a", "t", 1.0), ("b", None, 0.375), ("other", None, 0.9), ("a", "u", 0.1)]
    check = check_published(matrix, published, tolerance=1e-12)
    assert (check.n_compared, check.largest, check.differing) == (3, 0.0, ())


def test_models_that_differ_are_named_with_both_scores(matrix):
    published = [("a", "s", 0.6), ("b", "t", 0.75)]
    with pytest.warns(DataWarning, match=r"1 of 2 scores differ .*'a' on s: 0.5000, published 0.6000"):
        check = check_published(matrix, published, tolerance=0.05)
    assert [one.model_id for one in check.differing] == ["a"]
    assert check.largest == pytest.approx(0.1)


def test_rounding_is_no_difference(matrix):
    assert not check_published(matrix, [("b", "t", 0.7504)], tolerance=5e-4).differing


def test_nothing_to_compare_with(matrix):
    check = check_published(matrix, [], tolerance=0.1)
    assert check.n_compared == 0
    assert np.isnan(check.largest)
