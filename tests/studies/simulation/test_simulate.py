import dataclasses

import numpy as np
import pytest

from itembank.studies.simulation.simulate import simulate
from itembank.studies.simulation.simulation_specs import SimulationSpec

SMALL = SimulationSpec(n_models=12, n_items=600, n_tasks=7)


def same(one, other):
    np.testing.assert_array_equal(one.responses.responses, other.responses.responses)
    np.testing.assert_array_equal(one.truth.parameters.loadings, other.truth.parameters.loadings)
    np.testing.assert_array_equal(one.truth.abilities, other.truth.abilities)


def test_the_same_seed_gives_the_same_data():
    one, other = simulate(SMALL, 5), simulate(SMALL, np.random.default_rng(5))
    same(one, other)
    for unit, tokens in one.responses.costs.items():
        np.testing.assert_array_equal(tokens, other.responses.costs[unit])
    assert (simulate(SMALL, 6).responses.responses != one.responses.responses).any()


def test_costs_change_no_response():
    without = simulate(dataclasses.replace(SMALL, has_costs=False), 5)
    same(without, simulate(SMALL, 5))
    assert without.responses.costs == {}


def test_more_models_answer_the_same_items():
    few, many = simulate(SMALL, 5), simulate(dataclasses.replace(SMALL, n_models=30), 5)
    np.testing.assert_array_equal(few.truth.parameters.intercept, many.truth.parameters.intercept)
    np.testing.assert_array_equal(few.truth.abilities, many.truth.abilities[:12])
    np.testing.assert_array_equal(few.responses.responses, many.responses.responses[:12])


def test_gaps_take_responses_and_costs_away_and_change_no_other():
    whole, gaps = simulate(SMALL, 5).responses, simulate(dataclasses.replace(SMALL, missing=0.4), 5).responses
    told = gaps.observed
    assert 0.5 < told.mean() < 0.7
    np.testing.assert_array_equal(gaps.responses[told], whole.responses[told])
    for unit, tokens in gaps.costs.items():
        np.testing.assert_array_equal(np.isnan(tokens), ~told)
        np.testing.assert_array_equal(tokens[told], whole.costs[unit][told])


def test_true_scores_lie_around_those_of_the_responses():
    made = simulate(SimulationSpec(n_models=40, n_items=4000, n_tasks=10), 1)
    scenario = made.responses.items["scenario"].to_numpy()
    for task, name in enumerate(made.truth.task_names):
        here = scenario == name
        observed, true = made.responses.responses[:, here].mean(axis=1), made.truth.task_scores[:, task]
        assert np.abs(observed - true).max() < 5 * 0.5 / np.sqrt(here.sum())
        assert np.corrcoef(observed, true)[0, 1] > 0.9


def test_the_chance_of_guessing_is_known_and_reached():
    made = simulate(SimulationSpec(n_models=2000, n_items=200, n_tasks=2, guessing=0.5, mean_difficulty=9.0), 0)
    assert made.responses.items["chance"].unique().to_list() == [0.5]
    assert made.responses.responses.mean() == pytest.approx(made.truth.task_scores.mean(), abs=0.01)
    assert 0.5 < made.responses.responses.mean() < 0.52
    assert "chance" not in simulate(SMALL, 0).responses.items.columns


def test_ids_say_the_task_and_stand_in_order():
    items = simulate(SMALL, 0).responses.items
    assert items["item_id"][0] == "task-1/001"
    assert items["item_id"].to_list() == sorted(items["item_id"].to_list())
    assert (items["item_id"].str.split("/").list.first() == items["scenario"]).all()


@pytest.mark.slow
def test_scores_of_the_published_shape_vary_as_published():
    """WILD B.1: the first component has almost 70 % of the variance between task scores, and up to three stand out."""
    shares, degenerate = [], []
    for seed in range(4):
        made = simulate(rng=seed)
        first = np.unique(made.responses.items["scenario"].to_numpy(), return_index=True)[1]
        scores = np.add.reduceat(made.responses.responses, first, axis=1) / np.diff(np.append(first, 109_564))
        values = np.linalg.eigvalsh(np.corrcoef(scores.T))[::-1]
        shares.append(values[:5] / values.sum())
        degenerate.append(np.mean(np.ptp(made.responses.responses, axis=0) == 0.0))
    means = np.mean(shares, axis=0)
    assert 0.62 < means[0] < 0.76
    assert means[3] > 3 * means[4]  # the general and three specific abilities, then noise
    assert np.mean(degenerate) < 0.05
