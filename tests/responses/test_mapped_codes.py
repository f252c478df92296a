"""Mapped codes are found in their file, whatever part of it they are."""

import re

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.responses.coded_responses import CodedResponses, binary_codes
from itembank.responses.item_codes import ItemCodes
from itembank.responses.mapped_codes import MappedCodes

CELLS = np.random.default_rng(0).choice(np.array([0, 1, 255], dtype=np.uint8), size=(12, 5))


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "codes"
    file.write_bytes(b"header" + CELLS.tobytes())
    return file


def mapped(path, mode="r"):
    return np.memmap(path, np.uint8, mode, offset=6, shape=CELLS.shape)


def read_elsewhere(codes):
    return MappedCodes.of(codes).open()


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_all_codes_or_some_are_read_from_the_file(path, mode):
    whole = ItemCodes(np.asarray(mapped(path, mode)))
    np.testing.assert_array_equal(read_elsewhere(whole).block(slice(None)), CELLS)
    for some in (whole.span(3, 8), whole.span(3, 8).span(0, 5), whole.take(np.arange(3, 8))):
        np.testing.assert_array_equal(read_elsewhere(some).block(slice(None)), CELLS[3:8])
    few = whole.take(np.array([7, 0, 4])).span(1, 3)
    np.testing.assert_array_equal(read_elsewhere(few).block(slice(None)), CELLS[[0, 4]])


def test_what_was_written_is_in_the_file(path):
    cells = mapped(path, "r+")
    cells[2] = 1
    assert (read_elsewhere(ItemCodes(cells)).block(slice(2, 3)) == 1).all()


def test_responses_of_a_mapped_file_stay_mapped(path):
    codes = binary_codes(CodedResponses.from_item_codes(mapped(path)))
    np.testing.assert_array_equal(read_elsewhere(codes).block(slice(None)), CELLS)


def test_codes_in_memory_are_in_no_file(path):
    for cells in (CELLS, np.array(mapped(path)), mapped(path)[[1, 2]], mapped(path)[:, :3], mapped(path, "c")):
        assert MappedCodes.of(ItemCodes(cells)) is None


def test_a_file_that_has_gone_is_none(path):
    cells = mapped(path)
    path.unlink()
    assert MappedCodes.of(ItemCodes(cells)) is None


def test_a_worker_that_does_not_have_the_file_says_so(path):
    found = MappedCodes.of(ItemCodes(mapped(path)))
    path.write_bytes(b"too short")
    with pytest.raises(DataError, match=r"workers must read the codes .* Put the file where all workers have it"):
        found.open()
    path.unlink()
    with pytest.raises(DataError, match=re.escape(str(path))):
        found.open()
