from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from itembank_scaling.compute import training_compute
from itembank_scaling.pretraining.by_hand import logit_lines
from itembank_scaling.pretraining.law_results import HeldOutForecasts, closer_by_hand, closest_law
from itembank_scaling.pretraining.law_specs import BY_HAND, PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from tests.scaling.simulated_suite import simulated_suite


def held_out(errors):
    """Forecasts of a law's short name and one row of errors a scenario, at rising computes."""
    rows = [
        {"scenario": f"s{i}", "recipe": "r", "law": law, "largest_flops": 1.0, "flops": 10.0**j, "error": error}
        for law, scenarios in errors.items()
        for i, scenario in enumerate(scenarios)
        for j, error in enumerate(scenario)
    ]
    return HeldOutForecasts(pl.DataFrame(rows), level=0.95)


def test_the_closer_law_comes_first_by_errors_that_count_as_one_a_scenario():
    found = held_out({"irsl": [[0.1, -0.12, 0.14]], "sigmoid": [[-0.02, 0.03, -0.01]], "two-step": [[0.2, 0.2, 0.2]]})
    name, reason = closest_law(("irsl", "sigmoid", "two-step"), found)
    assert name == "sigmoid"
    assert reason == "sigmoid was 6.0 times closer than irsl on the held-out sizes (2.0 against 12.0 points)."
    # one of five scenarios is much better, another a little worse: many forecasts of one are no more evidence
    same, better = [[0.1]] * 4, [[0.1], [0.13], [0.1], [0.1], [0.01] * 40]
    worse = [*same, [0.1] * 40]
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": worse, "sigmoid": better}))[0] == "irsl"
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": worse[1:], "sigmoid": better[1:]}))[0] == "sigmoid"


def test_the_first_law_stays_within_the_standard_error():
    """Differences of 0.1, 0 and -0.07: their mean 0.01 is less than its standard error, 0.0493 by hand."""
    found = held_out({"irsl": [[0.2, 0.1, 0.03]], "sigmoid": [[0.1, 0.1, 0.1]]})
    name, reason = closest_law(("irsl", "sigmoid"), found)
    assert name == "irsl"
    assert "sigmoid was closer than irsl on the held-out sizes (10.0 against 11.0 points)" in reason
    assert "by no more than the standard error of the difference (4.9 points): irsl stays first." in reason
    assert closest_law(("sigmoid", "irsl"), found) == (
        "sigmoid",
        "sigmoid was 1.1 times closer than irsl on the held-out sizes (10.0 against 11.0 points).",
    )


def test_laws_are_compared_on_what_both_forecast_and_one_forecast_tells_nothing():
    found = held_out({"irsl": [[0.1, 0.1, 0.1]], "sigmoid": [[0.0, 0.0, 0.2]], "two-step": [[0.08, 0.08, 0.08]]})
    assert closest_law(("irsl", "sigmoid", "two-step"), found)[0] == "two-step"
    found = held_out({"irsl": [[0.1, 0.1], [0.9, 0.9]], "sigmoid": [[0.2, 0.21]]})
    assert closest_law(("irsl", "sigmoid"), found)[0] == "irsl"
    assert closest_law(("irsl", "sigmoid"), held_out({"irsl": [[0.5]], "sigmoid": [[0.1]]}))[0] == "irsl"
    name, reason = closest_law(("irsl", "sigmoid"), held_out({"irsl": [[0.5, 0.4]], "sigmoid": [[0.0, 0.0]]}))
    assert name == "sigmoid"
    assert reason.startswith("sigmoid was closer than irsl")


@pytest.mark.parametrize("errors", [None, {"irsl": [[0.1]]}, {"irsl": [[0.1]], "sigmoid": [[]]}])
def test_without_a_rival_nothing_is_said(errors):
    found = None if errors is None else held_out(errors)
    assert closest_law(("irsl", "sigmoid"), found) == ("irsl", "")


def test_what_a_person_draws_is_named_where_it_was_closer():
    laws = held_out({"irsl": [[0.1, -0.1]], "trend": [[0.02, 0.02]]})
    both = replace(laws, by_hand=held_out({"last-score": [[0.2, 0.2]], "last-line": [[0.05, -0.05]]}))
    text = "the forecast by hand, last-line, was 2.0 times closer than irsl (5.0 against 10.0 points)"
    assert closer_by_hand("irsl", both) == text
    assert closer_by_hand("trend", both) == closer_by_hand("irsl", laws) == closer_by_hand("irsl", None) == ""


def test_the_line_is_that_of_least_squares_through_the_last_three_logits(rng):
    x, y = np.sort(rng.uniform(20.0, 30.0, (4, 6)), axis=1), rng.uniform(0.1, 0.9, (4, 6))
    y[1, 4:] = np.nan
    lines = logit_lines(x, y)
    for number, last in enumerate((6, 4, 6, 6)):
        part = slice(last - 3, last)
        line = np.polyfit(x[number, part], logit(y[number, part]), 1)
        found = lines(np.array([31.0]))[0][number, 0]
        assert found == pytest.approx(expit(np.polyval(line, 31.0)), rel=1e-9)


@pytest.fixture(scope="module")
def checked():
    suite = simulated_suite(np.random.default_rng(1), n_recipes=3, n_items=24, n_checkpoints=1, n_sizes=5)
    compute = training_compute(suite.models)
    settings = PretrainingSettings(laws=("last-score",), n_checked=2)
    return suite, pretraining_law(suite.accuracy, compute, settings=settings)


def test_the_last_score_is_that_of_the_largest_model(checked):
    suite, law = checked
    for one in law.scenarios:
        scores = law.forecast(one.scenario, "last-score")
        largest = [one.scores.observed[suite.recipes == number][-1] for number in range(3)]
        np.testing.assert_allclose(scores.score[:, 0], largest)
        assert (scores.low < scores.score).all()


def test_what_is_drawn_by_hand_stands_below_the_laws_of_every_check(checked):
    law = checked[1]
    rows = law.comparison()
    assert [row["law"] for row in rows] == list(BY_HAND)
    assert law.held_out.by_hand.table["law"].unique().to_list() == ["last-line"]
    part = law.held_out.by_hand.table
    assert rows[1]["error"] == pytest.approx(np.abs(part["score"] - part["actual"]).mean())
    assert np.isnan(rows[1]["widening"])
    assert law.held_out.beside_by_hand.table.height == law.held_out.table.height + part.height
