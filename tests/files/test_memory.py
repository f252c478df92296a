import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.files import memory
from itembank.files.memory import GIBIBYTE, allowing, check_matrix_fits, most_memory, most_text
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import read, refuses


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(memory, "_machine_memory", lambda: 24.0 * GIBIBYTE)


def test_sixty_thousand_time_stamps_are_refused_before_anything_is_made():
    """The review's case: 26.8 GiB, from a table of 1.6 MB."""
    n_rows = 60_000
    table = pl.DataFrame({"model_id": range(n_rows), "item_id": range(n_rows), "response": np.ones(n_rows)})
    caught = refuses(".", read, table)
    assert caught.startswith(
        "the table: 60,000 models x 60,000 items with 60,000 responses: density 0.0017 %; this asks for 26.8 GiB of "
        "memory, of which 12 may be taken. Do the ids hold a time stamp or a row number?"
    )
    refuses(r"of which 1\.86 may be taken", read, table, max_memory=2e9)


@pytest.mark.parametrize(
    ("n_models", "n_items", "n_responses", "n_arrays", "fits"),
    [
        (1_000, 100_000, 100_000_000, 3, True),  # 2.2 GiB of full matrices
        (20_000, 10_000, 100_000, 1, False),  # 1.5 GiB, all but empty
        (2_000, 10_000, 10_000, 1, True),  # as empty, and small
        (100_000, 100_000, 5_000_000_000, 1, False),  # 75 GiB, half full
    ],
)
def test_what_fits(n_models, n_items, n_responses, n_arrays, fits):
    if fits:
        check_matrix_fits("file", n_models, n_items, n_responses, n_arrays)
    else:
        refuses("this asks for", check_matrix_fits, "file", n_models, n_items, n_responses, n_arrays)


def test_what_is_allowed_goes_before_what_is_usual():
    with allowing(100.0 * GIBIBYTE):
        assert most_memory() == 100.0 * GIBIBYTE
        check_matrix_fits("file", 60_000, 60_000, 60_000, 1)
        assert most_text(1_000) == 25.0 * GIBIBYTE
    assert (most_memory(), most_text(10**9)) == (12.0 * GIBIBYTE, 3.0 * GIBIBYTE)
    assert (most_text(1_000), most_text(2_000_000)) == (2**28, 500_000_000)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_an_allowance_is_a_number_of_bytes(wrong):
    refuses("max_memory, in bytes, must be a finite number > 0", ReadingSpec, max_memory=wrong, error=ParameterError)


def test_this_machine_has_memory(monkeypatch):
    monkeypatch.undo()
    assert 2**27 < memory._machine_memory() < 2**50
