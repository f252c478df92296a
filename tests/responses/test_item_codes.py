"""Right and wrong answers in a byte each, items first."""

import numpy as np
import pytest

from itembank.responses import item_codes
from itembank.responses.item_codes import MISSING, ItemCodes, codes_of

RESPONSES = np.array([[1, 0, np.nan, 1, 1], [1, 0, 0, np.nan, 0], [1, np.nan, 1, 0, 1]], dtype=float)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(item_codes, "CELLS_AT_ONCE", 6)
    monkeypatch.setattr(item_codes, "ITEMS_AT_ONCE", 2)


def test_codes_are_items_first_and_come_back_as_numbers():
    codes = codes_of(RESPONSES)
    assert codes.cells[2].tolist() == [MISSING, 0, 1]
    assert (codes.n_items, codes.n_models, codes.n_cells) == (5, 3, 15)
    np.testing.assert_array_equal(codes.responses(), RESPONSES)


def test_answers_are_counted():
    counts = codes_of(RESPONSES).counts()
    assert counts.right.tolist() == [3, 0, 1, 1, 2]
    assert counts.answered.tolist() == [3, 2, 2, 2, 3]
    assert counts.answered_by.tolist() == [4, 4, 4]
    assert counts.is_degenerate.tolist() == [True, True, False, False, False]
    assert not counts.is_complete
    assert codes_of(RESPONSES[:, [0, 4]]).counts().is_complete


def test_some_of_the_items_share_the_cells():
    codes = codes_of(RESPONSES)
    some = codes.take(np.array([4, 2, 0]))
    assert some.cells is codes.cells
    np.testing.assert_array_equal(some.take(np.array([True, False, True])).responses(), RESPONSES[:, [4, 0]])
    np.testing.assert_array_equal(some.block(slice(1, 3)), codes.cells[[2, 0]])


def test_a_mapped_file_is_read_where_it_lies(tmp_path):
    path = tmp_path / "codes"
    codes_of(RESPONSES).cells.tofile(path)
    mapped = ItemCodes(np.memmap(path, np.uint8, "r", shape=(5, 3)))
    np.testing.assert_array_equal(mapped.responses(), RESPONSES)
