from dataclasses import replace

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.readers.compute import training_compute
from itembank.scaling.pretraining.decision_study import OUR_METHODS, SIX_METHODS, DecisionMethod, decision_curves
from itembank.scaling.pretraining.law_spec import TwoStep
from itembank.scaling.pretraining.method_specs import ItemResponseLaw, PretrainingSettings
from tests.scaling.simulated_suite import simulated_suite

METHODS = {
    "2PL probability": DecisionMethod("probability", ItemResponseLaw(shape="line")),
    "traditional probability": DecisionMethod("probability", TwoStep(n_starts=4)),
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
    published = {label: method.law for label, method in SIX_METHODS.items() if "PL" in label}
    assert len(SIX_METHODS) == 6
    assert {(law.pooling, law.shape, law.gap) for law in published.values()} == {("none", "line", "none")}
    with_gap = OUR_METHODS["2PL with gap probability"].law
    assert replace(with_gap, gap="none") == published["2PL probability"]
