import json

import numpy as np
import pytest

from itembank.bank.costs import CostUnit
from itembank.errors import DataError, ParameterError
from itembank.selection.criteria import CRITERIA, Fisher, VOptimality
from itembank.selection.greedy import Constraints
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.session_spec import SessionSpec

RICH = SessionSpec(
    VOptimality(per_cost=True),
    cost=CostUnit("tokens", 0.25),
    target={"a": 1, "b": 2.5},
    budget=Budget(10, {"tokens": 3}),
    stopping=Stopping(0.3, {"overall": 0.02}, Decision(model="other"), 0.9, 5),
    constraints=Constraints({"x": 1}, 4, ("a",), 3),
    n_start=3,
    seed=2**70,
)


ONE, HALF = np.int64(1), np.float64(0.5)
OF_NUMPY = SessionSpec(
    Fisher(),
    budget=Budget(ONE, {"tokens": HALF}),
    stopping=Stopping(HALF, {"overall": HALF}, Decision("math", HALF), min_items=ONE),
    n_start=ONE,
    seed=ONE,
)


@pytest.mark.parametrize("settings", [RICH, OF_NUMPY, *(SessionSpec(kind()) for kind in CRITERIA.kinds.values())])
def test_json_keeps_settings_whole(settings):
    assert SessionSpec.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    "change",
    [
        {"criterion": {"name": "best"}},
        {"criterion": {"name": "fisher", "of": "score"}},
        {"budget": {"n_days": 1}},
        {"n_start": -1},
        {"seed": "x"},
        {"target": {"a": -1.0}},
        {"cost": {"name": ""}},
        {"constraints": {"at_least": -1, "at_most": None, "excluded": [], "randomesque": 1}},
    ],
)
def test_plain_data_that_are_no_settings_are_refused(change):
    with pytest.raises(DataError):
        SessionSpec.from_dict({**RICH.to_dict(), **change})


def test_a_field_too_few_or_too_many_is_refused():
    plain = RICH.to_dict()
    for odd in ({**plain, "mood": "good"}, {name: one for name, one in plain.items() if name != "seed"}):
        with pytest.raises(DataError, match="fields"):
            SessionSpec.from_dict(odd)


@pytest.mark.parametrize("target", [{}, {"a": 0.0}, {"a": float("nan")}, {"a": 1.0, "b": -1.0}])
def test_weights_of_a_target_must_be_weights(target):
    with pytest.raises(ParameterError, match="weights of a target"):
        SessionSpec(Fisher(), target=target)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(0),
        lambda: Budget(costs={"tokens": 0}),
        lambda: Budget(costs={"tokens": "many"}),
        lambda: Stopping(ability_error=0.0),
        lambda: Stopping(half_width={"overall": -0.1}),
        lambda: Stopping(level=1.0),
        lambda: Stopping(min_items=-1),
        Decision,
        lambda: Decision(threshold=0.5, model="a"),
        lambda: Decision(threshold=1.5),
        lambda: Decision(threshold=0.5, confidence=0.5),
        lambda: Decision(threshold=0.5, confidence=1.0),
    ],
)
def test_impossible_limits_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_a_half_width_alone_is_of_the_overall_score_in_its_scale():
    assert Stopping(half_width=0.05) == Stopping(half_width={"overall": 0.05})
    for bad in (0, 5.0, True, "0.05", None):
        with pytest.raises(ParameterError, match="half-width of 'overall' must be a number above 0 and below 1"):
            Stopping(half_width=bad)
    with pytest.raises(ParameterError, match=r"below 1, got 3\. Scores run from 0 to 1: 3 points are 0\.03"):
        Stopping(half_width={"overall": 3})


def test_rules_are_those_that_are_given():
    rules = [
        Stopping(),
        Stopping(ability_error=0.1),
        Stopping(half_width=0.1),
        Stopping(decision=Decision("math", 0.0)),
    ]
    assert [rule.has_rules for rule in rules] == [False, True, True, True]
    assert [rule.needs_scores for rule in rules[1:]] == [False, True, True]
