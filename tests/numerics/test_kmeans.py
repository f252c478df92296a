from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.numerics.kmeans import ClusterMeans, _Assignment, _starts, nearest_centroid, weighted_kmeans


def of_clusters(points, weights, labels):
    """Weighted means of the points with each label, and the inertia about them."""
    own = [labels == k for k in np.unique(labels)]
    means = np.array([np.average(points[one], axis=0, weights=weights[one]) for one in own])
    inertia = sum(
        weights[one] @ np.sum((points[one] - mean) ** 2, axis=1) for one, mean in zip(own, means, strict=True)
    )
    return means, inertia


def best_inertia(points, weights, n_clusters):
    """Smallest inertia over every partition, by enumeration."""
    labellings = product(range(n_clusters), repeat=len(points))
    return min(of_clusters(points, weights, np.array(labels))[1] for labels in labellings)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_inertia_is_the_smallest_of_all_partitions(rng, n_clusters):
    points, weights = rng.normal(size=(7, 2)), rng.uniform(0.2, 3.0, 7)
    found = weighted_kmeans(points, weights, n_clusters, rng, n_restarts=50)
    assert found.inertia == pytest.approx(best_inertia(points, weights, n_clusters), rel=1e-10)


def test_centroids_are_weighted_means_and_a_weight_counts_like_that_many_copies(rng):
    points, weights = rng.normal(size=(60, 3)), rng.uniform(0.1, 2.0, 60)
    found = weighted_kmeans(points, weights, 5, rng)
    assert_allclose(found.centroids, of_clusters(points, weights, found.labels)[0])
    assert_array_equal(nearest_centroid(points, found.centroids), found.labels)
    points, weights = rng.normal(size=(30, 4)), rng.uniform(0.1, 2.0, 30)
    means = ClusterMeans(points, weights, 3)
    for labels in (np.arange(30) % 3, rng.permutation(np.arange(30) % 3)):
        assert_allclose(means.of(labels), of_clusters(points, weights, labels)[0])
    points = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 8.0])
    copies = rng.integers(1, 4, 40)
    weighted = weighted_kmeans(points, copies.astype(float), 2, rng)
    repeated = weighted_kmeans(np.repeat(points, copies, axis=0), np.ones(copies.sum()), 2, rng)
    one, other = (clusters.centroids[np.argsort(clusters.centroids[:, 0])] for clusters in (weighted, repeated))
    assert_allclose(one, other)
    assert weighted.inertia == pytest.approx(repeated.inertia)


def test_equal_points_make_one_cluster_and_the_generator_decides_the_others(rng):
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 4, axis=0)
    found = weighted_kmeans(points, np.ones(12), 5, rng)
    assert found.centroids.shape == (3, 2)
    assert found.inertia == 0.0
    assert_array_equal(found.centroids[found.labels], points)
    points = np.repeat([[0.0], [1.0]], 10, axis=0) + 1e-17 * rng.normal(size=(20, 1))
    found = weighted_kmeans(points, np.ones(20), 4, rng)
    assert np.bincount(found.labels, minlength=len(found.centroids)).min() > 0
    found = weighted_kmeans(np.array([[0.0], [-0.0], [1.0]]), np.ones(3), 2, rng)
    assert found.centroids.shape == (2, 1)
    assert found.inertia == 0.0
    points = rng.normal(size=(300, 3))

    def found(seed, **options):
        return weighted_kmeans(points, np.ones(300), 25, np.random.default_rng(seed), **options)

    one, same, other = (found(seed).labels for seed in (5, 5, 6))
    assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert found(0, n_restarts=10).inertia <= found(0, n_restarts=1).inertia


@pytest.mark.parametrize("kind", ["binary", "normal"])
def test_bounds_never_keep_a_point_from_a_nearer_centroid(kind, rng):
    points = 0.1 * rng.normal(size=(300, 6)) if kind == "normal" else rng.integers(0, 2, (300, 6)).astype(float)
    assigned, centroids = _Assignment(points), points[rng.choice(300, 20, replace=False)]
    for step in 0.5 ** np.arange(12):
        assert_array_equal(assigned.nearest(centroids), nearest_centroid(points, centroids))
        centroids = centroids + step * rng.normal(scale=0.1, size=centroids.shape)


def one_start(points, weights, n_clusters, rng):
    """K-means++ with a few trials a centre (Arthur and Vassilvitskii 2007), one restart, step by step."""
    n_trials = 2 + int(np.log(n_clusters))

    def draw(masses, n):
        return np.searchsorted(np.cumsum(masses), rng.random(n) * masses.sum(), side="right")

    def distances(place):
        return np.sum((points - points[place]) ** 2, axis=1)

    chosen = [draw(weights, 1)[0]]
    for _ in range(n_clusters - 1):
        nearest = np.min([distances(place) for place in chosen], axis=0)
        candidates = draw(weights * nearest, n_trials)
        costs = [weights @ np.minimum(nearest, distances(place)) for place in candidates]
        chosen.append(candidates[np.argmin(costs)])
    return points[chosen]


@pytest.mark.parametrize("n_clusters", [1, 2, 7])
def test_restarts_together_begin_where_they_would_one_after_the_other(n_clusters):
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(50, 3)), rng.uniform(0.2, 3.0, 50)
    found = _starts(points, weights, n_clusters, 4, np.random.default_rng(5))
    alone = np.random.default_rng(5)
    assert_array_equal(found, [one_start(points, weights, n_clusters, alone) for _ in range(4)])
