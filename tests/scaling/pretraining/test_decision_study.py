from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import DataError, ParameterError
from itembank_scaling.compute import training_compute
from itembank_scaling.pretraining.decision_study import OUR_METHODS, SIX_METHODS, decision_curves, mean_over_splits
from itembank_scaling.pretraining.law_results import decision_accuracy
from itembank_scaling.pretraining.law_specs import ItemResponseLaw, PretrainingSettings, TwoStep
from tests.scaling.simulated_suite import simulated_suite


def test_the_same_share_of_every_split_goes_into_one_mean():
    table = pl.DataFrame(
        {
            "split": [0, 0, 1, 1],
            "scenario": ["easy"] * 4,
            "law": ["irsl"] * 4,
            "share_of_target": [0.4, 0.1, 0.9, 0.1],
            "decision_accuracy": [1.0, np.nan, 0.5, np.nan],
        }
    )
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


def test_rounding_orders_no_recipes():
    """0.1 + 0.2 is not 0.3 in doubles, and counts of samples are shares such as these."""
    tied, apart = np.array([0.1 + 0.2, 0.3]), np.array([0.2, 0.4])
    assert np.isnan(decision_accuracy(apart, tied))
    assert decision_accuracy(tied, apart) == 0.5


def test_recipes_without_a_forecast_are_left_out_and_lengths_must_agree():
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
    return simulated_suite(
        np.random.default_rng(2),
        n_items=40,
        n_sizes=4,
        n_checkpoints=1,
        levels=[0.5, -2.5, 1.5, -0.5, 2.5, -1.5],
        slope_sd=0.0,
        residual_sd=0.02,
    )


def curves(suite, **choices):
    responses = {"accuracy": suite.accuracy, "probability": suite.probability}
    given = {"methods": METHODS, "n_splits": 2, "settings": PretrainingSettings(fewest_sizes=2, n_items=15), **choices}
    return decision_curves(responses, training_compute(suite.models), loss=suite.bits_per_byte, **given)


@pytest.fixture(scope="module")
def decisions(suite):
    return curves(suite, actual="probability")


def test_recipes_that_are_far_apart_are_put_in_order(decisions):
    irsl = decisions.filter(law="2PL probability")
    assert irsl["decision_accuracy"].mean() > 0.9
    assert set(decisions["n_recipes"]) == {4}  # of six recipes two calibrate the items
    assert set(irsl.select("split", "scenario").rows()) == {(s, name) for s in (0, 1) for name in ("easy", "hard")}
    assert decisions["share_of_target"].is_between(0.0, 1.0, closed="none").all()


def test_metrics_and_recipes_must_be_there(suite):
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
