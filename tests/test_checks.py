import math

import numpy as np
import pytest

from itembank.checks import check_fraction, check_not_negative, check_one_of, check_positive, check_whole
from itembank.errors import ParameterError


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda value: check_whole("n", value, least=1), (1, np.int64(3)), (0, True, 1.0, "1", None)),
        (lambda value: check_whole("n", value, least=1, word="auto"), (2, "auto"), ("automatic", 0)),
        (lambda value: check_positive("n", value), (1, 0.5, np.float32(2)), (0.0, -1, math.inf, math.nan, True, "1")),
        (lambda value: check_positive("n", value, word="auto"), (1, "auto"), (0, "Auto")),
        (lambda value: check_not_negative("n", value), (0, 0.5), (-0.1, math.inf, math.nan, None)),
        (lambda value: check_fraction("n", value), (0.5, np.float64(0.1)), (0.0, 1.0, math.nan, "0.5", False)),
        (lambda value: check_fraction("n", value, whole=True), (0.5, 1.0, 1), (0, 1.1)),
        (lambda value: check_one_of("n", value, ("a", "b")), ("a", "b"), ("c", None, 1)),
    ],
)
def test_what_holds_passes_and_all_else_is_named(check, good, bad):
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(ParameterError) as caught:
            check(value)
        assert str(caught.value).startswith("n must be")
        assert f"got {value!r}" in str(caught.value)


def test_messages_are_in_one_voice():
    for check, arguments, choices, message in (
        (check_whole, ("n_dims", 0), {"least": 1, "word": "auto"}, "a whole number >= 1 or 'auto', got 0."),
        (check_positive, ("penalty", -1), {}, "a finite number > 0, got -1."),
        (check_fraction, ("level", 95), {}, "between 0 and 1, got 95. 95 % is 0.95."),
        (check_fraction, ("mixture", 2.0), {"whole": True}, "above 0 and at most 1, got 2.0."),
        (check_one_of, ("of", "x", ("a", "b")), {}, "one of 'a', 'b', got 'x'."),
    ):
        with pytest.raises(ParameterError) as caught:
            check(*arguments, **choices)
        assert str(caught.value) == f"{arguments[0]} must be {message}"
    with pytest.raises(ParameterError, match=r"between 0 and 1, got 3\. Scores run from 0 to 1: 3 points are 0\.03\.$"):
        check_fraction("margin", 3, is_score=True)
