import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank_studies.simulation import simulate as kernel
from itembank_studies.simulation.simulation_specs import SimulationSpec


@pytest.mark.parametrize(("n_items", "n_tasks"), [(109_564, 163), (7, 7), (1000, 3), (50, 20), (10_000, 160), (9, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_sizes_sum_to_the_items_and_none_is_too_small(n_items, n_tasks, seed):
    sizes = kernel.task_sizes(SimulationSpec(n_items=n_items, n_tasks=n_tasks), np.random.default_rng(seed))
    assert sizes.sum() == n_items
    assert sizes.min() >= (30 if n_items >= 60 * n_tasks else max(1, n_items // (2 * n_tasks)))


def test_sizes_and_ids_are_those_of_the_published_table_and_items_have_the_moments_of_the_spec():
    """WILD's Table 4: from 30 to 11,866 items, and the median of the tasks that it lists lies near 250."""
    drawn = [kernel.task_sizes(SimulationSpec(), np.random.default_rng(seed)) for seed in range(20)]
    assert {int(sizes.min()) for sizes in drawn} == {30}
    assert 200 < np.mean([np.median(sizes) for sizes in drawn]) < 300
    assert 7_000 < np.median([sizes.max() for sizes in drawn]) < 16_000
    spec = SimulationSpec()
    assert (spec.n_models, spec.n_items, spec.n_tasks, spec.n_dims) == (65, 109_564, 163, 3)
    items = kernel.simulate(SMALL, 0).responses.items
    assert items["item_id"][0] == "task-1/001"
    assert items["item_id"].to_list() == sorted(items["item_id"].to_list())
    assert (items["item_id"].str.split("/").list.first() == items["scenario"]).all()
    spec = SimulationSpec(n_items=200_000, n_tasks=400)
    tasks = kernel.draw_tasks(spec, np.random.default_rng(0))
    parameters, relative_difficulty = kernel.draw_items(spec, tasks, np.random.default_rng(1))
    slope = parameters.loadings[:, 0]
    specific = parameters.loadings[:, 1:] / slope[:, None] - tasks.profile[tasks.of_item]
    difficulty = -parameters.intercept / slope - tasks.difficulty[tasks.of_item]
    # tolerances are five standard errors of each moment
    assert np.mean(np.log(slope)) == pytest.approx(0.0, abs=5 * 0.5 / np.sqrt(200_000))
    assert np.std(np.log(slope)) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(400_000))
    assert np.std(specific) == pytest.approx(0.3, abs=5 * 0.3 / np.sqrt(1_200_000))
    assert np.std(difficulty) == pytest.approx(1.5, abs=5 * 1.5 / np.sqrt(400_000))
    np.testing.assert_allclose(difficulty, relative_difficulty, atol=1e-12)
    assert tasks.difficulty.mean() == pytest.approx(-0.6, abs=5 / np.sqrt(400))
    assert tasks.difficulty.std() == pytest.approx(1.0, abs=5 / np.sqrt(800))
    assert tasks.profile.std() == pytest.approx(0.45, abs=5 * 0.45 / np.sqrt(2400))


def test_items_stand_task_by_task_and_without_specific_abilities_one_dimension_is_left():
    tasks = kernel.draw_tasks(SimulationSpec(n_items=1000, n_tasks=6), np.random.default_rng(0))
    assert (np.bincount(tasks.of_item) == tasks.sizes).all()
    assert (tasks.of_item[tasks.first_item] == np.arange(6)).all()
    assert (np.diff(tasks.of_item) >= 0).all()
    spec = SimulationSpec(n_items=50, n_tasks=2, n_dims=0, guessing=0.25)
    parameters, _ = kernel.draw_items(spec, kernel.draw_tasks(spec, np.random.default_rng(0)), np.random.default_rng(1))
    assert parameters.loadings.shape == (50, 1)
    assert (parameters.lower_asymptote == 0.25).all()


def items(n_items=300, seed=0):
    rng = np.random.default_rng(seed)
    return ItemParameters.create(rng.normal(size=(n_items, 2)), rng.normal(size=n_items), 0.2)


def test_true_scores_are_mean_probabilities_and_responses_do_not_depend_on_the_blocks(monkeypatch):
    theta = np.random.default_rng(1).normal(size=(7, 2))
    _, scores = kernel.draw_answers(items(), theta, np.array([0, 100, 101]), np.random.default_rng(2))
    chances = probability(items(), theta)
    expected = np.column_stack([chances[:, :100].mean(axis=1), chances[:, 100], chances[:, 101:].mean(axis=1)])
    np.testing.assert_allclose(scores, expected, rtol=1e-13)
    theta, first = np.random.default_rng(1).normal(size=(7, 2)), np.array([0, 100])
    whole = kernel.draw_answers(items(), theta, first, np.random.default_rng(2))
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 150)
    for one, other in zip(whole, kernel.draw_answers(items(), theta, first, np.random.default_rng(2)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_as_many_are_right_and_missing_as_their_probability_says():
    theta = np.random.default_rng(1).normal(size=(2000, 2))
    responses, _ = kernel.draw_answers(items(), theta, np.array([0]), np.random.default_rng(2))
    chances = probability(items(), theta)
    bins = np.digitize(chances, np.linspace(0.2, 1.0, 9)[1:-1])
    for one in range(8):
        told, p = responses[bins == one], chances[bins == one]
        error = np.sqrt((p * (1 - p)).sum()) / len(p)
        assert abs(told.mean() - p.mean()) < 4.5 * error
    missing = kernel.draw_missing(200, 3000, 0.3, np.random.default_rng(0))
    assert missing.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 600_000))
    missing = kernel.draw_missing(4, 50, 0.99, np.random.default_rng(0))
    assert not missing.all(axis=0).any()
    assert not missing.all(axis=1).any()
    missing = kernel.draw_missing(50, 2, 0.99, np.random.default_rng(0))
    assert not missing.all(axis=1).any()


def drawn(spec, seed=0):
    tasks = kernel.draw_tasks(spec, np.random.default_rng(seed))
    _, relative_difficulty = kernel.draw_items(spec, tasks, np.random.default_rng(seed + 1))
    costs = kernel.draw_costs(spec, tasks, relative_difficulty, np.random.default_rng(seed + 2))
    return tasks, relative_difficulty, costs


def test_the_dearest_task_takes_sixty_times_the_cheapest_in_whole_tokens():
    levels = kernel.task_levels(SimulationSpec(), np.random.default_rng(0))
    assert levels.min() == pytest.approx(120.0)
    assert levels.max() / levels.min() == pytest.approx(60.0)
    assert kernel.task_levels(SimulationSpec(n_tasks=1), np.random.default_rng(0)).tolist() == [120.0]
    _, _, costs = drawn(SimulationSpec(n_models=5, n_items=400, n_tasks=8, cheapest_task_tokens=1.0))
    for tokens in costs.values():
        np.testing.assert_array_equal(tokens, np.rint(tokens))
        assert tokens.min() == 1.0


def test_task_means_spreads_and_difficulty_are_those_of_the_spec():
    """Every factor has mean 1, so tasks of many items and many models come out at their level."""
    spec = SimulationSpec(n_models=200, n_items=60_000, n_tasks=6, size_spread=0.0)
    tasks, _, costs = drawn(spec)
    total = (costs["input_tokens"] + costs["output_tokens"]).mean(axis=0)
    means = np.array([total[tasks.of_item == task].mean() for task in range(6)])
    levels = kernel.task_levels(spec, np.random.default_rng(2).spawn(2)[0].spawn(3)[0])
    np.testing.assert_allclose(means / levels, 1.0, atol=0.12)  # 200 models of verbosity 0.5: standard error 0.04
    spec = SimulationSpec(n_models=400, n_items=3000, n_tasks=1, cheapest_task_tokens=1e6)
    _, relative_difficulty, costs = drawn(spec)
    log_output = np.log(costs["output_tokens"])
    by_model, by_item = log_output.mean(axis=1), log_output.mean(axis=0)
    rest = log_output - by_model[:, None] - by_item + log_output.mean()
    slope, _ = np.polyfit(relative_difficulty, by_item, 1)
    assert by_model.std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(800))
    assert rest.std() == pytest.approx(0.4, abs=0.005)
    assert slope == pytest.approx(0.25, abs=5 * 0.5 / np.sqrt(3000) / 1.5)
    assert np.std(by_item - slope * relative_difficulty) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(6000))
    log_input = np.log(costs["input_tokens"])
    assert log_input.mean(axis=0).std() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(6000))
    assert log_input.mean(axis=1).std() == pytest.approx(0.1, abs=5 * 0.1 / np.sqrt(800))


SMALL = SimulationSpec(n_models=12, n_items=600, n_tasks=7)


def same(one, other):
    np.testing.assert_array_equal(one.responses.responses, other.responses.responses)
    np.testing.assert_array_equal(one.truth.parameters.loadings, other.truth.parameters.loadings)
    np.testing.assert_array_equal(one.truth.abilities, other.truth.abilities)


def test_the_same_seed_gives_the_same_data_with_fewer_costs_or_more_models_and_gaps_change_no_other():
    one, other = kernel.simulate(SMALL, 5), kernel.simulate(SMALL, np.random.default_rng(5))
    same(one, other)
    for unit, tokens in one.responses.costs.items():
        np.testing.assert_array_equal(tokens, other.responses.costs[unit])
    assert (kernel.simulate(SMALL, 6).responses.responses != one.responses.responses).any()
    without = kernel.simulate(dataclasses.replace(SMALL, has_costs=False), 5)
    same(without, kernel.simulate(SMALL, 5))
    assert without.responses.costs == {}
    few, many = kernel.simulate(SMALL, 5), kernel.simulate(dataclasses.replace(SMALL, n_models=30), 5)
    np.testing.assert_array_equal(few.truth.parameters.intercept, many.truth.parameters.intercept)
    np.testing.assert_array_equal(few.truth.abilities, many.truth.abilities[:12])
    np.testing.assert_array_equal(few.responses.responses, many.responses.responses[:12])
    whole, gaps = (kernel.simulate(dataclasses.replace(SMALL, missing=m), 5).responses for m in (0.0, 0.4))
    told = gaps.observed
    assert 0.5 < told.mean() < 0.7
    np.testing.assert_array_equal(gaps.responses[told], whole.responses[told])
    for unit, tokens in gaps.costs.items():
        np.testing.assert_array_equal(np.isnan(tokens), ~told)
        np.testing.assert_array_equal(tokens[told], whole.costs[unit][told])


def test_true_scores_lie_around_those_of_the_responses_and_the_chance_of_guessing_is_reached():
    made = kernel.simulate(SimulationSpec(n_models=40, n_items=4000, n_tasks=10), 1)
    scenario = made.responses.items["scenario"].to_numpy()
    for task, name in enumerate(made.truth.task_names):
        here = scenario == name
        observed, true = made.responses.responses[:, here].mean(axis=1), made.truth.task_scores[:, task]
        assert np.abs(observed - true).max() < 5 * 0.5 / np.sqrt(here.sum())
        assert np.corrcoef(observed, true)[0, 1] > 0.9
    made = kernel.simulate(SimulationSpec(n_models=2000, n_items=200, n_tasks=2, guessing=0.5, mean_difficulty=9.0), 0)
    assert made.responses.items["chance"].unique().to_list() == [0.5]
    assert made.responses.responses.mean() == pytest.approx(made.truth.task_scores.mean(), abs=0.01)
    assert 0.5 < made.responses.responses.mean() < 0.52
    assert "chance" not in kernel.simulate(SMALL, 0).responses.items.columns


@pytest.mark.slow
def test_scores_of_the_published_shape_vary_as_published():
    """WILD B.1: the first component has almost 70 % of the variance between task scores, and up to three stand out."""
    shares, degenerate = [], []
    for seed in range(4):
        made = kernel.simulate(rng=seed)
        first = np.unique(made.responses.items["scenario"].to_numpy(), return_index=True)[1]
        scores = np.add.reduceat(made.responses.responses, first, axis=1) / np.diff(np.append(first, 109_564))
        values = np.linalg.eigvalsh(np.corrcoef(scores.T))[::-1]
        shares.append(values[:5] / values.sum())
        degenerate.append(np.mean(np.ptp(made.responses.responses, axis=0) == 0.0))
    means = np.mean(shares, axis=0)
    assert 0.62 < means[0] < 0.76
    assert means[3] > 3 * means[4]  # the general and three specific abilities, then noise
    assert np.mean(degenerate) < 0.05


def test_written_beside_the_responses_then_read_is_identity_and_other_files_are_refused(tmp_path):
    truth = kernel.simulate(SimulationSpec(n_models=4, n_items=60, n_tasks=3, guessing=0.2, missing=0.1), 0).truth
    kernel.save_truth(truth, tmp_path / "a" / "r.truth.safetensors")
    again = kernel.load_truth(tmp_path / "a" / "r.truth.safetensors")
    assert (again.spec, again.task_names) == (truth.spec, truth.task_names)
    np.testing.assert_array_equal(again.abilities, truth.abilities)
    np.testing.assert_array_equal(again.task_scores, truth.task_scores)
    for field in dataclasses.fields(truth.parameters):
        np.testing.assert_array_equal(getattr(again.parameters, field.name), getattr(truth.parameters, field.name))
    assert kernel.truth_path(Path("a/b.parquet")) == Path("a/b.truth.safetensors")
    from safetensors.numpy import save_file  # noqa: PLC0415

    save_file({"abilities": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(DataError, match="must hold the truth of a simulation, schema version 1"):
        kernel.load_truth(tmp_path / "other")
    (tmp_path / "cut").write_bytes(b"\x10\x00\x00")
    with pytest.raises(DataError, match="cannot be read"):
        kernel.load_truth(tmp_path / "cut")
    path = tmp_path / "r.truth.safetensors"
    kernel.save_truth(kernel.simulate(SimulationSpec(n_models=3, n_items=20, n_tasks=2), 0).truth, path)
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with pytest.raises(DataError, match="its bytes are not those that were written"):
        kernel.load_truth(path)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"n_models": 0}, "n_models must be a whole number >= 1, got 0"),
        ({"n_dims": -1}, "n_dims must be a whole number >= 0, got -1"),
        ({"n_items": 5, "n_tasks": 6}, "n_items must be at least n_tasks = 6, got 5"),
        ({"guessing": 1.0}, "guessing must be at least 0 and below 1, got 1.0"),
        ({"missing": -0.1}, "missing must be at least 0 and below 1"),
        ({"missing": math.nan}, "missing must be a finite number, got nan"),
        ({"task_cost_ratio": 0.5}, "task_cost_ratio must be at least 1, got 0.5"),
        ({"cheapest_task_tokens": 0.0}, "cheapest_task_tokens must be at least 1"),
        ({"item_cost_spread": -1.0}, "item_cost_spread must be at least 0"),
        ({"slope_spread": "wide"}, "slope_spread must be a finite number, got 'wide'"),
    ],
)
def test_impossible_choices_are_named(choice, message):
    with pytest.raises(ParameterError, match=message):
        SimulationSpec(**choice)
