from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from itembank.errors import DataError, ParameterError
from itembank_scaling.compute import training_compute
from itembank_scaling.pretraining.by_hand import logit_lines
from itembank_scaling.pretraining.decision_study import OUR_METHODS, SIX_METHODS, decision_curves, mean_over_splits
from itembank_scaling.pretraining.law_results import HeldOutForecasts, closer_by_hand, closest_law, decision_accuracy
from itembank_scaling.pretraining.law_specs import BY_HAND, ItemResponseLaw, PretrainingSettings, TwoStep
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from tests.scaling.simulated_suite import simulated_suite


def test_the_same_share_of_every_split_goes_into_one_mean():
    columns = {"split": [0, 0, 1, 1], "scenario": ["easy"] * 4, "law": ["irsl"] * 4}
    shares, accuracies = [0.4, 0.1, 0.9, 0.1], [1.0, np.nan, 0.5, np.nan]
    table = pl.DataFrame({**columns, "share_of_target": shares, "decision_accuracy": accuracies})
    two = pl.concat([table, table.with_columns(scenario=pl.lit("hard"), decision_accuracy=0.25)])
    means = mean_over_splits(two).filter(scenario="easy").sort("share_of_target")
    np.testing.assert_allclose(means["share_of_target"], [0.1, 0.6])  # the geometric mean of 0.4 and 0.9
    np.testing.assert_array_equal(means["decision_accuracy"], [np.nan, 0.75])  # of what is known
    assert means["n"].to_list() == [2, 2]
    over_scenarios = mean_over_splits(two, by=("law",)).sort("share_of_target")
    np.testing.assert_allclose(over_scenarios["decision_accuracy"], [0.25, (1.0 + 0.5 + 0.25 + 0.25) / 4])
    assert over_scenarios["n"].to_list() == [4, 4]


scores = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=2, max_size=7)


@given(st.data())
def test_is_the_share_of_pairs_in_the_right_order(data):
    actual = data.draw(scores)
    predicted = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=len(actual), max_size=len(actual)))
    worth = []
    for first, second in combinations(range(len(actual)), 2):
        if actual[first] == actual[second]:
            continue
        if predicted[first] == predicted[second]:
            worth.append(0.5)
        else:
            worth.append(float((predicted[first] > predicted[second]) == (actual[first] > actual[second])))
    got = decision_accuracy(np.array(predicted), np.array(actual))
    assert np.isnan(got) if not worth else got == pytest.approx(np.mean(worth))


def test_rounding_orders_no_recipes_and_those_without_a_forecast_are_left_out():
    """0.1 + 0.2 is not 0.3 in doubles, and counts of samples are shares such as these."""
    tied, apart = np.array([0.1 + 0.2, 0.3]), np.array([0.2, 0.4])
    assert np.isnan(decision_accuracy(apart, tied))
    assert decision_accuracy(tied, apart) == 0.5
    assert decision_accuracy(np.array([0.3, np.nan, 0.4]), np.array([0.2, 0.9, 0.1])) == 0.0
    with pytest.raises(ParameterError, match="as long as each other"):
        decision_accuracy(np.zeros(3), np.zeros(2))


METHODS = {
    "2PL probability": ("probability", ItemResponseLaw(shape="line")),
    "traditional probability": ("probability", TwoStep(n_starts=4)),
}


@pytest.fixture(scope="module")
def suite():
    # Recipes lie a whole unit of ability apart. An ability measured on 15 items errs by 0.1, the forecast of the
    # largest size by a line through the two smallest by 0.35, the difference of two such by 0.5: neighbours are
    # exchanged once in forty times, others never.
    levels, few = [0.5, -2.5, 1.5, -0.5, 2.5, -1.5], {"n_items": 40, "n_sizes": 4, "n_checkpoints": 1}
    return simulated_suite(np.random.default_rng(2), **few, levels=levels, slope_sd=0.0, residual_sd=0.02)


def curves(suite, **choices):
    responses = {"accuracy": suite.accuracy, "probability": suite.probability}
    given = {"methods": METHODS, "n_splits": 2, "settings": PretrainingSettings(fewest_sizes=2, n_items=15), **choices}
    return decision_curves(responses, training_compute(suite.models), loss=suite.bits_per_byte, **given)


def test_recipes_that_are_far_apart_are_put_in_order_if_metrics_and_recipes_are_there(suite):
    decisions = curves(suite, actual="probability")
    irsl = decisions.filter(law="2PL probability")
    assert irsl["decision_accuracy"].mean() > 0.9
    assert set(decisions["n_recipes"]) == {4}  # of six recipes two calibrate the items
    assert set(irsl.select("split", "scenario").rows()) == {(s, name) for s in (0, 1) for name in ("easy", "hard")}
    assert decisions["share_of_target"].is_between(0.0, 1.0, closed="none").all()
    with pytest.raises(ParameterError, match="got none for 'brier'"):
        curves(suite, actual="brier")
    with pytest.raises(DataError, match="two recipes at least"):
        curves(suite, n_calibration=5)


def test_the_six_methods_are_the_papers_and_ours_differ_by_the_gap():
    published = {label: law for label, (_, law) in SIX_METHODS.items() if "PL" in label}
    assert len(SIX_METHODS) == 6
    assert {(law.pooling, law.shape, law.gap) for law in published.values()} == {("none", "line", "none")}
    _, with_gap = OUR_METHODS["2PL with gap probability"]
    assert replace(with_gap, gap="none") == published["2PL probability"]


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


def test_the_first_law_stays_within_the_standard_error_of_what_both_forecast():
    """Differences of 0.1, 0 and -0.07: their mean 0.01 is less than its standard error, 0.0493 by hand."""
    found = held_out({"irsl": [[0.2, 0.1, 0.03]], "sigmoid": [[0.1, 0.1, 0.1]]})
    name, reason = closest_law(("irsl", "sigmoid"), found)
    assert name == "irsl"
    assert "sigmoid was closer than irsl on the held-out sizes (10.0 against 11.0 points)" in reason
    assert "by no more than the standard error of the difference (4.9 points): irsl stays first." in reason
    said = "sigmoid was 1.1 times closer than irsl on the held-out sizes (10.0 against 11.0 points)."
    assert closest_law(("sigmoid", "irsl"), found) == ("sigmoid", said)
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


def test_what_a_person_draws_is_a_line_through_the_last_three_logits_and_named_where_it_was_closer(rng):
    laws = held_out({"irsl": [[0.1, -0.1]], "trend": [[0.02, 0.02]]})
    both = replace(laws, by_hand=held_out({"last-score": [[0.2, 0.2]], "last-line": [[0.05, -0.05]]}))
    text = "the forecast by hand, last-line, was 2.0 times closer than irsl (5.0 against 10.0 points)"
    assert closer_by_hand("irsl", both) == text
    assert closer_by_hand("trend", both) == closer_by_hand("irsl", laws) == closer_by_hand("irsl", None) == ""
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


def test_the_last_score_is_that_of_the_largest_model_and_stands_below_the_laws_of_every_check(checked):
    suite, law = checked
    for one in law.scenarios:
        scores = law.forecast(one.scenario, "last-score")
        largest = [one.scores.observed[suite.recipes == number][-1] for number in range(3)]
        np.testing.assert_allclose(scores.score[:, 0], largest)
        assert (scores.low < scores.score).all()
    law = checked[1]
    rows = law.comparison()
    assert [row["law"] for row in rows] == list(BY_HAND)
    assert law.held_out.by_hand.table["law"].unique().to_list() == ["last-line"]
    part = law.held_out.by_hand.table
    assert rows[1]["error"] == pytest.approx(np.abs(part["score"] - part["actual"]).mean())
    assert np.isnan(rows[1]["widening"])
    assert law.held_out.beside_by_hand.table.height == law.held_out.table.height + part.height
