import numpy as np
import pytest

from itembank.studies.simulation.costs import draw_cost_parts, draw_costs, task_levels
from itembank.studies.simulation.simulation_specs import SimulationSpec
from itembank.studies.simulation.tasks import draw_items, draw_tasks


def drawn(spec, seed=0):
    tasks = draw_tasks(spec, np.random.default_rng(seed))
    items = draw_items(spec, tasks, np.random.default_rng(seed + 1))
    parts = draw_cost_parts(spec, tasks, items, np.random.default_rng(seed + 2))
    return tasks, items, parts, draw_costs(spec, parts, np.random.default_rng(seed + 3))


def test_the_dearest_task_takes_sixty_times_the_cheapest():
    levels = task_levels(SimulationSpec(), np.random.default_rng(0))
    assert levels.min() == pytest.approx(120.0)
    assert levels.max() / levels.min() == pytest.approx(60.0)
    assert task_levels(SimulationSpec(n_tasks=1), np.random.default_rng(0)).tolist() == [120.0]


def test_tokens_are_whole_and_at_least_one():
    _, _, _, costs = drawn(SimulationSpec(n_models=5, n_items=400, n_tasks=8, cheapest_task_tokens=1.0))
    for tokens in costs.values():
        np.testing.assert_array_equal(tokens, np.rint(tokens))
        assert tokens.min() == 1.0


def test_task_means_are_the_levels_that_were_drawn():
    """Every factor has mean 1, so tasks of many items and many models come out at their level."""
    spec = SimulationSpec(n_models=200, n_items=60_000, n_tasks=6, size_spread=0.0)
    tasks, _, _, costs = drawn(spec)
    total = (costs["input_tokens"] + costs["output_tokens"]).mean(axis=0)
    means = np.array([total[tasks.of_item == task].mean() for task in range(6)])
    levels = task_levels(spec, np.random.default_rng(2).spawn(3)[0])
    np.testing.assert_allclose(means / levels, 1.0, atol=0.12)  # 200 models of verbosity 0.5: standard error 0.04


def test_spreads_and_difficulty_are_those_of_the_spec():
    spec = SimulationSpec(n_models=400, n_items=3000, n_tasks=1, cheapest_task_tokens=1e6)
    _, items, _, costs = drawn(spec)
    log_output = np.log(costs["output_tokens"])
    by_model, by_item = log_output.mean(axis=1), log_output.mean(axis=0)
    rest = log_output - by_model[:, None] - by_item + log_output.mean()
    slope, _ = np.polyfit(items.relative_difficulty, by_item, 1)
    assert by_model.std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(800))
    assert rest.std() == pytest.approx(0.4, abs=0.005)
    assert slope == pytest.approx(0.25, abs=5 * 0.5 / np.sqrt(3000) / 1.5)
    assert np.std(by_item - slope * items.relative_difficulty) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(6000))
    log_input = np.log(costs["input_tokens"])
    assert log_input.mean(axis=0).std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(6000))
    assert log_input.mean(axis=1).std() == pytest.approx(0.1, abs=5 * 0.1 / np.sqrt(800))
