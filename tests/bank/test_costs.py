import dataclasses

import numpy as np
import pytest

from itembank.bank.costs import CostUnit, as_cost_unit, expected_cost, known_units, response_costs
from itembank.errors import DataError, ParameterError
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

OUTPUT = np.array([[10.0, 20.0, np.nan], [30.0, 40.0, 60.0]])
INPUT = np.array([[100.0, np.nan, 8.0], [100.0, 2.0, 8.0]])


def matrix(**costs):
    return ResponseMatrix.create(np.zeros((2, 3)), item_ids=["a", "b", "c"], costs=costs)


@pytest.fixture
def tokens():
    return matrix(output_tokens=OUTPUT, input_tokens=INPUT, cost_usd=OUTPUT / 1000.0)


def test_tokens_read_count_half_and_either_kind_may_be_absent(tokens):
    expected = [[60.0, np.nan, np.nan], [80.0, 41.0, 64.0]]
    np.testing.assert_array_equal(response_costs(tokens, "tokens"), expected)
    np.testing.assert_array_equal(response_costs(tokens, CostUnit(input_weight=0.0))[1], OUTPUT[1])
    np.testing.assert_array_equal(response_costs(tokens, CostUnit("tokens", 2.0))[1], [230.0, 44.0, 76.0])
    np.testing.assert_array_equal(response_costs(matrix(output_tokens=OUTPUT), "tokens"), OUTPUT)
    np.testing.assert_array_equal(response_costs(matrix(input_tokens=INPUT), "tokens"), 0.5 * INPUT)


def test_any_recorded_cost_is_a_unit_and_tokens_or_the_only_one_is_taken_where_none_is_named(tokens):
    np.testing.assert_array_equal(response_costs(tokens, "cost_usd"), OUTPUT / 1000.0)
    assert known_units(tokens) == ("tokens", "output_tokens", "input_tokens", "cost_usd")
    assert known_units(matrix(seconds=OUTPUT)) == ("seconds",)
    given = matrix(tokens=OUTPUT, input_tokens=INPUT)  # tokens that were counted elsewhere are taken as they are
    np.testing.assert_array_equal(response_costs(given, "tokens"), OUTPUT)
    assert known_units(given) == ("tokens", "input_tokens")
    unit = CostUnit("seconds")
    assert as_cost_unit("seconds") == unit
    assert as_cost_unit(unit) is unit
    assert dataclasses.asdict(unit) == {"name": "seconds", "input_weight": 0.5}


def test_the_expected_cost_is_the_mean_over_the_models_for_which_it_is_known(tokens):
    np.testing.assert_allclose(expected_cost(tokens), [70.0, 41.0, 64.0])
    np.testing.assert_allclose(expected_cost(tokens, "output_tokens"), [20.0, 30.0, 60.0])
    np.testing.assert_allclose(expected_cost(tokens, CostUnit("cost_usd")), [0.02, 0.03, 0.06])
    bank = make_bank(with_extras=True)
    np.testing.assert_array_equal(expected_cost(bank, "tokens"), bank.responses.expected_costs()["output_tokens"])


def test_an_unknown_unit_is_refused_with_the_known_ones(tokens):
    for responses, unit, message in (
        (tokens, "euros", r"must be one of 'tokens', 'output_tokens', .*'cost_usd', got 'euros'"),
        (matrix(), "tokens", "no cost is, got 'tokens'"),
        (matrix(seconds=OUTPUT), "tokens", "must be one of 'seconds', got 'tokens'"),
    ):
        with pytest.raises(DataError, match=message):
            expected_cost(responses, unit)


def test_items_whose_cost_is_unknown_zero_or_negative_are_named_all_at_once():
    costs = np.array([[1.0, np.nan, 0.0, -1.0, np.inf, -3.0, 2.0], [1.0, np.nan, 0.0, 5.0, 1.0, 3.0, np.nan]])
    responses = ResponseMatrix.create(np.zeros((2, 7)), item_ids=list("abcdefg"), costs={"seconds": costs})
    with pytest.raises(DataError) as caught:
        expected_cost(responses, "seconds")
    for words in (
        "above zero in 'seconds'",
        "unknown for every model for 1 of 7: 'b'",
        "negative or infinite for a model for 3 of 7: 'd', 'e', 'f'",
        "zero for 1 of 7: 'c'",
        "exclude the items",
    ):
        assert words in str(caught.value)
    needed = np.isin(list("abcdefg"), ["a", "g"])
    np.testing.assert_array_equal(expected_cost(responses, "seconds", needed=needed)[needed], [1.0, 2.0])


def test_a_unit_checks_itself():
    with pytest.raises(ParameterError, match="must have a name"):
        CostUnit("")
    for weight in (-0.5, float("nan")):
        with pytest.raises(ParameterError, match="input_weight must be a finite number >= 0"):
            CostUnit(input_weight=weight)
