import numpy as np
import pytest

from itembank.studies.simulation.simulation_specs import SimulationSpec
from itembank.studies.simulation.tasks import draw_items, draw_tasks, task_sizes


@pytest.mark.parametrize(("n_items", "n_tasks"), [(109_564, 163), (7, 7), (1000, 3), (50, 20), (10_000, 160), (9, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_sizes_sum_to_the_items_and_none_is_too_small(n_items, n_tasks, seed):
    sizes = task_sizes(SimulationSpec(n_items=n_items, n_tasks=n_tasks), np.random.default_rng(seed))
    assert sizes.sum() == n_items
    assert sizes.min() >= (30 if n_items >= 60 * n_tasks else max(1, n_items // (2 * n_tasks)))


def test_sizes_are_those_of_the_published_table():
    """WILD's Table 4: from 30 to 11,866 items, and the median of the tasks that it lists lies near 250."""
    drawn = [task_sizes(SimulationSpec(), np.random.default_rng(seed)) for seed in range(20)]
    assert {int(sizes.min()) for sizes in drawn} == {30}
    assert 200 < np.mean([np.median(sizes) for sizes in drawn]) < 300
    assert 7_000 < np.median([sizes.max() for sizes in drawn]) < 16_000


def test_items_have_the_moments_of_the_spec():
    spec = SimulationSpec(n_items=200_000, n_tasks=400)
    tasks = draw_tasks(spec, np.random.default_rng(0))
    items = draw_items(spec, tasks, np.random.default_rng(1))
    slope = items.parameters.loadings[:, 0]
    specific = items.parameters.loadings[:, 1:] / slope[:, None] - tasks.profile[tasks.of_item]
    difficulty = -items.parameters.intercept / slope - tasks.difficulty[tasks.of_item]
    # tolerances are five standard errors of each moment
    assert np.mean(np.log(slope)) == pytest.approx(0.0, abs=5 * 0.5 / np.sqrt(200_000))
    assert np.std(np.log(slope)) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(400_000))
    assert np.std(specific) == pytest.approx(0.3, abs=5 * 0.3 / np.sqrt(1_200_000))
    assert np.std(difficulty) == pytest.approx(1.5, abs=5 * 1.5 / np.sqrt(400_000))
    np.testing.assert_allclose(difficulty, items.relative_difficulty, atol=1e-12)
    assert tasks.difficulty.mean() == pytest.approx(-0.6, abs=5 / np.sqrt(400))
    assert tasks.difficulty.std() == pytest.approx(1.0, abs=5 / np.sqrt(800))
    assert tasks.profile.std() == pytest.approx(0.45, abs=5 * 0.45 / np.sqrt(2400))


def test_items_stand_task_by_task():
    tasks = draw_tasks(SimulationSpec(n_items=1000, n_tasks=6), np.random.default_rng(0))
    assert (np.bincount(tasks.of_item) == tasks.sizes).all()
    assert (tasks.of_item[tasks.first_item] == np.arange(6)).all()
    assert (np.diff(tasks.of_item) >= 0).all()


def test_without_specific_abilities_one_dimension_is_left():
    spec = SimulationSpec(n_items=50, n_tasks=2, n_dims=0, guessing=0.25)
    parameters = draw_items(spec, draw_tasks(spec, np.random.default_rng(0)), np.random.default_rng(1)).parameters
    assert parameters.loadings.shape == (50, 1)
    assert (parameters.lower_asymptote == 0.25).all()
