import math

import pytest

from itembank.errors import ParameterError
from itembank.sessions.limits import Budget, Decision, Stopping


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(0),
        lambda: Budget(2.5),
        lambda: Budget(True),
        lambda: Budget(costs={"tokens": 0}),
        lambda: Budget(costs={"tokens": math.inf}),
        lambda: Budget(costs={"tokens": "many"}),
        lambda: Stopping(ability_error=0.0),
        lambda: Stopping(half_width={"overall": -0.1}),
        lambda: Stopping(half_width={"overall": 3}),
        lambda: Stopping(level=1.0),
        lambda: Stopping(min_items=-1),
        Decision,
        lambda: Decision(threshold=0.5, model="a"),
        lambda: Decision(threshold=1.5),
        lambda: Decision(threshold=math.nan),
        lambda: Decision(threshold=0.5, confidence=0.5),
    ],
)
def test_impossible_limits_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_points_given_for_a_half_width_are_refused_with_the_scale():
    with pytest.raises(
        ParameterError, match=r"above 0 and below 1, got 3\. Scores run from 0 to 1: 0\.03 is three points"
    ):
        Stopping(half_width={"overall": 3})


def test_a_half_width_alone_is_of_the_overall_score():
    assert Stopping(half_width=0.05) == Stopping(half_width={"overall": 0.05})
    assert Stopping(half_width=0.05).half_width == {"overall": 0.05}
    assert Stopping(half_width=0.05).needs_scores
    for bad in (0, 5.0, True, "0.05", None):
        with pytest.raises(ParameterError, match="half-width of 'overall' must be a number above 0 and below 1"):
            Stopping(half_width=bad)


def test_rules_are_those_that_are_given():
    assert not Stopping().has_rules
    assert Stopping(ability_error=0.1).has_rules
    assert not Stopping(ability_error=0.1).needs_scores
    assert Stopping(half_width={"overall": 0.1}).needs_scores
    assert Stopping(decision=Decision(threshold=0.0)).needs_scores
