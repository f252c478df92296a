import numpy as np
import pytest
from scipy.special import expit, logit

from itembank_scaling.compute import training_compute
from itembank_scaling.pretraining.by_hand import logit_lines
from itembank_scaling.pretraining.law_specs import BY_HAND, PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from tests.scaling.simulated_suite import simulated_suite


def test_the_line_is_that_of_least_squares_through_the_last_three_logits(rng):
    x, y = np.sort(rng.uniform(20.0, 30.0, (4, 6)), axis=1), rng.uniform(0.1, 0.9, (4, 6))
    y[1, 4:] = np.nan
    lines = logit_lines(x, y)
    for number, last in enumerate((6, 4, 6, 6)):
        part = slice(last - 3, last)
        line = np.polyfit(x[number, part], logit(y[number, part]), 1)
        found = lines.predict(np.array([31.0]))[0][number, 0]
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
