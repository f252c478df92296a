"""Codes of numbers: the numbers come back to the last bit, however many there are."""

import numpy as np
import pytest

from itembank.responses import code_array
from itembank.responses.code_array import MISSING, CodeArray, ItemCodes, codes_of


@pytest.mark.parametrize("n_values", [1, 2, 255, 256, 300, 65_535, 65_536, 70_000])
def test_numbers_come_back_to_the_last_bit(n_values):
    rng = np.random.default_rng(n_values)
    values = rng.random(n_values)
    n_cells = n_values + 50
    rows, columns = np.divmod(rng.permutation(n_cells), 300)
    cells = CodeArray()
    cells.grow(int(rows.max()) + 1, 300)
    for part in np.array_split(np.arange(n_values), 3):  # kinds of codes change between parts
        cells.put(rows[part], columns[part], values[part])
    np.testing.assert_array_equal(cells.get(rows[:n_values], columns[:n_values]), values)
    assert np.isnan(cells.get(rows[n_values:], columns[n_values:])).all()
    assert not cells.is_known(rows[n_values:], columns[n_values:]).any()
    assert int(cells.known(int(rows.max()) + 1, 300).sum()) == n_values
    expected = np.full((int(rows.max()) + 1, 300), np.nan)
    expected[rows[:n_values], columns[:n_values]] = values
    np.testing.assert_array_equal(cells.block(0, expected.shape[0], 300), expected)
    together = CodeArray.of_numbers(expected)
    np.testing.assert_array_equal(together.block(0, expected.shape[0], 300), expected)
    assert together._cells.itemsize == cells._cells.itemsize


def test_right_and_wrong_take_a_byte_and_a_sign_of_zero_is_kept():
    cells = CodeArray()
    place = np.arange(4)
    cells.put(place, place, np.array([0.0, -0.0, 1.0, np.nan]))
    found = cells.get(place, place)
    np.testing.assert_array_equal(np.signbit(found[:3]), [False, True, False])
    assert np.isnan(found[3])
    assert cells._cells.itemsize == 1


def test_cells_stay_where_they_are_when_rows_and_columns_come():
    cells = CodeArray()
    expected = np.full((150, 700), np.nan)
    for k in range(150):
        cells.grow(k + 1, 4 * k + 1)
        cells.put(np.array([k]), np.array([4 * k]), np.array([k / 150]))
        expected[k, 4 * k] = k / 150
    np.testing.assert_array_equal(cells.block(0, 150, 597), expected[:, :597])


def test_a_cell_can_lose_its_value():
    cells = CodeArray()
    one = np.array([0])
    cells.put(one, one, np.array([1.0]))
    cells.put(one, one, np.array([np.nan]))
    assert np.isnan(cells.get(one, one)).all()


RESPONSES = np.array([[1, 0, np.nan, 1, 1], [1, 0, 0, np.nan, 0], [1, np.nan, 1, 0, 1]], dtype=float)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(code_array, "CELLS_AT_ONCE", 6)
    monkeypatch.setattr(code_array, "ITEMS_AT_ONCE", 2)


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
