from dataclasses import replace

import polars as pl
import pytest

from itembank_scaling.pretraining.law_results import HeldOutForecasts, closer_by_hand, closest_law


def held_out(errors):
    """Forecasts of a law's short name and one row of errors a scenario, at rising computes."""
    rows = [
        {"scenario": f"s{i}", "recipe": "r", "law": law, "largest_flops": 1.0, "flops": 10.0**j, "error": error}
        for law, scenarios in errors.items()
        for i, scenario in enumerate(scenarios)
        for j, error in enumerate(scenario)
    ]
    return HeldOutForecasts(pl.DataFrame(rows), level=0.95)


def test_a_law_that_is_clearly_closer_comes_first_whatever_the_sign_of_its_errors():
    found = held_out({"irsl": [[0.1, -0.12, 0.14]], "sigmoid": [[-0.02, 0.03, -0.01]], "two-step": [[0.2, 0.2, 0.2]]})
    name, reason = closest_law(("irsl", "sigmoid", "two-step"), found)
    assert name == "sigmoid"
    assert reason == "sigmoid was 6.0 times closer than irsl on the held-out sizes (2.00 against 12.00 points)."


def test_the_first_law_stays_within_the_standard_error():
    """Differences of 0.1, 0 and -0.07: their mean 0.01 is less than its standard error, 0.0493 by hand."""
    found = held_out({"irsl": [[0.2, 0.1, 0.03]], "sigmoid": [[0.1, 0.1, 0.1]]})
    name, reason = closest_law(("irsl", "sigmoid"), found)
    assert name == "irsl"
    assert "sigmoid was closer than irsl on the held-out sizes (10.00 against 11.00 points)" in reason
    assert "by no more than the standard error of the difference (4.93 points): irsl stays first." in reason
    assert closest_law(("sigmoid", "irsl"), found) == (
        "sigmoid",
        "sigmoid was 1.1 times closer than irsl on the held-out sizes (10.00 against 11.00 points).",
    )


def test_a_law_that_is_clearly_closer_is_taken_before_one_that_may_be_closer_still():
    found = held_out({"irsl": [[0.1, 0.1, 0.1]], "sigmoid": [[0.0, 0.0, 0.2]], "two-step": [[0.08, 0.08, 0.08]]})
    assert closest_law(("irsl", "sigmoid", "two-step"), found)[0] == "two-step"


def test_the_errors_of_a_scenario_count_as_one_where_scenarios_are_enough():
    """One of five scenarios is much better, another a little worse: many forecasts of one are no more evidence."""
    same, better = [[0.1]] * 4, [[0.1], [0.13], [0.1], [0.1], [0.01] * 40]
    worse = [*same, [0.1] * 40]
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": worse, "sigmoid": better}))[0] == "irsl"
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": worse[1:], "sigmoid": better[1:]}))[0] == "sigmoid"


def test_laws_are_compared_on_what_both_forecast():
    found = held_out({"irsl": [[0.1, 0.1], [0.9, 0.9]], "sigmoid": [[0.2, 0.21]]})
    assert closest_law(("irsl", "sigmoid"), found)[0] == "irsl"


@pytest.mark.parametrize("errors", [None, {"irsl": [[0.1]]}, {"irsl": [[0.1]], "sigmoid": [[]]}])
def test_without_a_rival_nothing_is_said(errors):
    found = None if errors is None else held_out(errors)
    assert closest_law(("irsl", "sigmoid"), found) == ("irsl", "")


def test_one_forecast_tells_nothing_and_no_error_at_all_is_closer():
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": [[0.5]], "sigmoid": [[0.1]]}))[0] == "irsl"
    name, reason = closest_law(("irsl", "sigmoid"), held_out({"irsl": [[0.5, 0.4]], "sigmoid": [[0.0, 0.0]]}))
    assert name == "sigmoid"
    assert reason.startswith("sigmoid was closer than irsl")


def test_what_a_person_draws_is_named_where_it_was_closer():
    laws = held_out({"irsl": [[0.1, -0.1]], "trend": [[0.02, 0.02]]})
    both = replace(laws, by_hand=held_out({"last-score": [[0.2, 0.2]], "last-line": [[0.05, -0.05]]}))
    text = "the forecast by hand, last-line, was 2.0 times closer than irsl (5.00 against 10.00 points)"
    assert closer_by_hand("irsl", both) == text
    assert closer_by_hand("trend", both) == closer_by_hand("irsl", laws) == closer_by_hand("irsl", None) == ""
