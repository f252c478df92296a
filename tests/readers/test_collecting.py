"""Files read in several processes give what they give in one, and their errors speak the words of the caller."""

from functools import partial

import joblib
import pytest

from itembank.errors import DataError, command_line_words, remedy
from itembank.files.memory import allowing, most_memory
from itembank.readers.collecting import collect


def length(files, number):
    if number % 3 == 1:
        raise DataError(f"{number} is bad: {remedy('python', '--command-line')}")
    return number, files[number], most_memory()


def test_processes_change_nothing():
    read = partial(length, {k: 10 * k for k in range(7)})
    said = []
    with allowing(1e6), command_line_words():
        here = collect(range(7), read, lambda *_: None, name=str, in_processes=True)
        with joblib.parallel_config(n_jobs=2):
            elsewhere = collect(range(7), read, lambda *one: said.append(one), name=str, in_processes=True)
    assert elsewhere == here
    assert here[1] == ["1 is bad: --command-line", "4 is bad: --command-line"]
    assert here[0][0] == (0, 0, 1e6)
    assert said[-1] == ("reading files (7 of 7)", 1.0)
    assert [share for _, share in said] == pytest.approx([k / 7 for k in range(8)])
