import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist, squareform

from itembank.irt.linear_gaussian import FactorModel
from itembank.selection.anchors import choose_anchors, latent_features, spread, weighted_by_nearest
from itembank.selection.pools import ScenarioPool

WEIGHTS = np.array([0.1, 0.1, 0.2, 0.25, 0.05, 0.3])
POINTS = np.array([[0.0, 0.0], [0.2, 0.0], [0.1, 0.1], [5.0, 5.0], [5.1, 5.0], [9.0, 0.0]])


def pool(weights=None, is_candidate=None, n_items=6):
    weights = np.full(n_items, 1.0 / n_items) if weights is None else np.asarray(weights)
    is_candidate = np.ones(n_items, dtype=bool) if is_candidate is None else np.asarray(is_candidate)
    return ScenarioPool(np.arange(n_items), weights, is_candidate)


def weight_of(choice):
    return dict(zip(choice.chosen.tolist(), choice.weights.tolist(), strict=True))


def test_each_group_is_represented_by_its_middle_with_its_weight_which_equal_ones_share(rng):
    found = weight_of(choose_anchors(pool(WEIGHTS), POINTS, 3, rng, n_restarts=5))
    assert found == pytest.approx({2: 0.4, 3: 0.3, 5: 0.3})
    found = weight_of(choose_anchors(pool(WEIGHTS), POINTS, 6, rng, n_restarts=5))
    assert found == pytest.approx(dict(enumerate(WEIGHTS)))
    allowed = [True, True, True, False, True, True]
    found = weight_of(choose_anchors(pool(is_candidate=allowed), POINTS, 3, rng, n_restarts=5))
    assert found == pytest.approx({2: 3 / 6, 4: 2 / 6, 5: 1 / 6})
    points = np.repeat([[0.0], [1.0]], [4, 2], axis=0)
    choice = choose_anchors(pool(), points, 4, rng, n_restarts=5)
    assert len(set(choice.chosen.tolist())) == 4
    first = choice.chosen < 4
    # the group of 4/6 has the heavier share, so it gets the second anchor first, then 2/6 against 2/6 is a tie
    assert choice.weights[first].sum() == pytest.approx(4 / 6)
    assert choice.weights[~first].sum() == pytest.approx(2 / 6)


def test_spread_and_distances_are_the_expected_ones(rng):
    points, weights = rng.normal(size=(6, 2)), WEIGHTS
    allowed = np.array([True, True, False, True, True, False])
    centre = np.average(points[allowed], axis=0, weights=weights[allowed])
    expected = np.sqrt(np.average((points[allowed] - centre) ** 2, axis=0, weights=weights[allowed]))
    assert_allclose(spread(points, pool(weights, allowed)), expected)
    model = FactorModel(rng.random(6), rng.normal(size=(6, 2)), np.full(6, 0.3))
    drawn = model.mean + rng.normal(size=(200_000, 2)) @ model.loadings.T
    expected = np.mean((drawn[:, :, None] - drawn[:, None, :]) ** 2, axis=0)
    assert_allclose(squareform(pdist(latent_features(model), "sqeuclidean")), expected, rtol=0.02)


def test_weighted_sums_over_well_separated_groups_are_exact(rng):
    """Anchors of groups whose members answer alike give the full score itself."""
    group = np.repeat(np.arange(5), [3, 9, 4, 20, 14])
    responses = (rng.random((30, 5)) < 0.5).astype(float)[:, group]
    weights = rng.dirichlet(np.ones(50))
    choice = choose_anchors(pool(weights, n_items=50), responses.T, 5, rng, n_restarts=5)
    assert_allclose(responses[:, choice.chosen] @ choice.weights, responses @ weights)


def test_each_item_gives_its_weight_to_the_nearest_chosen_one():
    everything = pool(WEIGHTS)
    choice = weighted_by_nearest(everything, POINTS, np.array([4, 1]))
    assert choice.chosen.tolist() == [4, 1]
    # the item at (9, 0) is nearer to (5.1, 5) than to (0.2, 0)
    assert_allclose(choice.weights, [0.25 + 0.05 + 0.3, 0.1 + 0.1 + 0.2])
    points = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]])
    choice = weighted_by_nearest(everything, points, np.array([0, 3, 5]))
    shared = (0.1 + 0.2) / 2
    assert_allclose(choice.weights, [0.1 + shared, 0.25 + shared, 0.05 + 0.3])
    assert weighted_by_nearest(everything, POINTS, np.zeros(0, dtype=np.int64)).weights.shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_looking_at_every_pair(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(50))
    chosen = rng.choice(50, 7, replace=False)
    expected = np.zeros(7)
    for point, weight in zip(points, weights, strict=True):
        expected[np.argmin([np.linalg.norm(point - points[item]) for item in chosen])] += weight
    assert_allclose(weighted_by_nearest(pool(weights, n_items=50), points, chosen).weights, expected)
