import numpy as np
import pytest

from itembank.selection.anchors import weighted_by_nearest
from itembank.selection.pools import ScenarioPool

POINTS = np.array([[0.0, 0.0], [0.2, 0.0], [0.1, 0.1], [5.0, 5.0], [5.1, 5.0], [9.0, 0.0]])
WEIGHTS = np.array([0.1, 0.1, 0.2, 0.25, 0.05, 0.3])
POOL = ScenarioPool(np.arange(6), WEIGHTS, np.ones(6, dtype=bool))


def test_each_item_gives_its_weight_to_the_nearest_chosen_one():
    choice = weighted_by_nearest(POOL, POINTS, np.array([4, 1]))
    assert choice.chosen.tolist() == [4, 1]
    # the item at (9, 0) is nearer to (5.1, 5) than to (0.2, 0)
    np.testing.assert_allclose(choice.weights, [0.25 + 0.05 + 0.3, 0.1 + 0.1 + 0.2])


def test_equally_near_items_share_and_a_chosen_item_stands_for_itself():
    points = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]])
    choice = weighted_by_nearest(POOL, points, np.array([0, 3, 5]))
    shared = (0.1 + 0.2) / 2
    np.testing.assert_allclose(choice.weights, [0.1 + shared, 0.25 + shared, 0.05 + 0.3])


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_looking_at_every_pair(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(50))
    chosen = rng.choice(50, 7, replace=False)
    expected = np.zeros(7)
    for point, weight in zip(points, weights, strict=True):
        expected[np.argmin([np.linalg.norm(point - points[item]) for item in chosen])] += weight
    pool = ScenarioPool(np.arange(50), weights, np.ones(50, dtype=bool))
    np.testing.assert_allclose(weighted_by_nearest(pool, points, chosen).weights, expected)


def test_nothing_chosen_has_no_weight():
    assert weighted_by_nearest(POOL, POINTS, np.zeros(0, dtype=np.int64)).weights.shape == (0,)
