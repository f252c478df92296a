import warnings

import pytest

from itembank.errors import DataError, DataWarning, warn
from itembank.scaling.transfer.warned_once import warned_once


@warned_once()
def clip_three_times():
    for number in (3, 17, 1e-6):
        warn(f"{number} of 9 are clipped", DataWarning)
    warn("another", DataWarning)


@warned_once()
def fail():
    warn("explains", DataWarning)
    raise DataError("fails")


@warned_once()
def warn_as_numpy_does():
    warnings.simplefilter("always")
    for number in range(2):
        warnings.warn(f"{number} of numpy", RuntimeWarning, stacklevel=1)


@warned_once()
def say_nothing():
    return 7


def test_warnings_that_differ_in_numbers_are_one():
    with pytest.warns(DataWarning) as caught:
        clip_three_times()
    assert [str(one.message) for one in caught] == ["3 of 9 are clipped (The same in 2 other fits.)", "another"]


def test_an_error_passes_after_its_warnings():
    with pytest.warns(DataWarning, match="explains"), pytest.raises(DataError, match="fails"):
        fail()


def test_warnings_of_others_stay_as_they_are():
    with pytest.warns(RuntimeWarning) as caught:
        warn_as_numpy_does()
    assert [str(one.message) for one in caught] == ["0 of numpy", "1 of numpy"]


def test_nothing_is_said_of_nothing():
    assert say_nothing() == 7
