import contextlib

import pytest

from itembank.errors import DataWarning, shown, warn


def test_a_warning_points_at_the_line_that_led_to_it():
    with pytest.warns(DataWarning, match="odd") as caught:
        warn("odd", DataWarning)
    assert caught[0].filename == __file__


def test_a_decorator_between_changes_nothing():
    decorated = contextlib.contextmanager(lambda: iter([None]))()(warn)
    with pytest.warns(DataWarning) as caught:
        decorated("odd", DataWarning)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a", 3], "'a', '3'"), (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more")],
)
def test_only_the_first_names_are_shown(names, text):
    assert shown(names) == text
