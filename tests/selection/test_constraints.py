import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.selection.greedy import Constraints
from tests.bank.banks import make_bank


@pytest.fixture(scope="module")
def targets():
    """Ten items of each of the scenarios math, code and law."""
    return make_bank().targets


EVERY = np.ones(30, dtype=bool)


def laid_out(constraints, targets, n_items=12, is_candidate=EVERY):
    bounds = constraints.bounds(targets, is_candidate, n_items)
    return bounds.at_least.tolist(), bounds.at_most.tolist()


def test_without_constraints_only_what_there_is_binds(targets):
    assert laid_out(Constraints(), targets) == ([0, 0, 0], [10, 10, 10])
    is_candidate = np.arange(30) != 4  # an item of code
    assert laid_out(Constraints(at_most=10), targets, is_candidate=is_candidate) == ([0, 0, 0], [10, 9, 10])


def test_numbers_are_for_all_scenarios_and_mappings_for_those_they_name(targets):
    assert laid_out(Constraints(2, 5), targets) == ([2, 2, 2], [5, 5, 5])
    assert laid_out(Constraints({"law": 3}, {"math": 1, "code": 0}), targets) == ([0, 0, 3], [1, 0, 10])
    assert laid_out(Constraints(1, {"math": 4}), targets) == ([1, 1, 1], [4, 10, 10])


def test_bounds_that_exactly_fit_are_no_contradiction(targets):
    assert laid_out(Constraints(4, 4), targets, n_items=12) == ([4, 4, 4], [4, 4, 4])
    assert laid_out(Constraints(10), targets, n_items=None) == ([10, 10, 10], [10, 10, 10])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(5), "at_least asks for 15 items in all, and 12 are to be chosen"),
        (Constraints({"law": 3}, 2), r"at_least is above at_most in 'law \(3 > 2\)'"),
        (Constraints(3, {"math": 1, "code": 2}), r"above at_most in 'math \(3 > 1\)', 'code \(3 > 2\)'"),
        (Constraints({"law": 11}), r"above the number of items to choose from in 'law \(11 > 10\)'"),
        (Constraints({"maths": 1}), "at_least must name scenarios of the bank, among 'math', .*, got 'maths'"),
        (Constraints(at_most={"art": 1}), "at_most must name scenarios of the bank, among .*, got 'art'"),
    ],
)
def test_contradictions_are_named(targets, constraints, message):
    with pytest.raises(ParameterError, match=message):
        constraints.bounds(targets, EVERY, 12)


def test_every_contradiction_is_told_at_once(targets):
    with pytest.raises(ParameterError) as caught:
        Constraints({"law": 11, "math": 4}, {"math": 2}).bounds(targets, EVERY, 12)
    message = str(caught.value)
    assert "'math (4 > 2)'" in message
    assert "'law (11 > 10)'" in message
    assert "asks for 15 items in all" in message


def test_excluding_a_scenario_of_which_items_are_wanted_is_a_contradiction(targets):
    with pytest.raises(ParameterError, match=r"above the number of items to choose from in 'math \(1 > 0\)'"):
        Constraints(1).bounds(targets, targets.scenario_index != 0, 12)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"at_least": -1}, "at_least must be a whole number >= 0"),
        ({"at_least": 1.5}, "at_least must be a whole number >= 0"),
        ({"at_least": True}, "at_least must be a whole number >= 0"),
        ({"at_most": {"math": -2}}, "at_most must be a whole number >= 0"),
        ({"randomesque": 0}, "randomesque must be a whole number >= 1"),
        ({"excluded": "math/1"}, "excluded must be a tuple of item ids"),
    ],
)
def test_constraints_check_themselves(choices, message):
    with pytest.raises(ParameterError, match=message):
        Constraints(**choices)
