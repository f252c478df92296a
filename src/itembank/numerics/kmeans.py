"""Weighted k-means; the one place where scikit-learn is imported."""

import warnings
from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Clustering:
    """Points in at most as many clusters as were asked for, none of them empty.

    Attributes
    ----------
    centroids : (n_clusters, n_features)
        Weighted mean of each cluster.
    labels : (n_points,)
        Cluster of each point.
    inertia : float
        Weighted sum of squared distances to the centroids, the objective of k-means.
    """

    centroids: FloatArray
    labels: IntArray
    inertia: float


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_restarts: int = 10,
) -> Clustering:
    """Cluster points by weighted k-means (k-means++ starts, Lloyd's iterations), the best of several starts.

    The same generator state gives the same clusters on any number of cores: threads are limited to one,
    since the order of a parallel sum can move a point that lies between two clusters.

    Parameters
    ----------
    points : (n_points, n_features)
    weights : (n_points,)
        Positive; only their ratios matter.
    n_clusters : int
        Fewer come back when there are fewer distinct points.
    rng : Generator
    n_restarts : int
        Starts to try; the smallest inertia wins.
    """
    distinct, distinct_labels = np.unique(points, axis=0, return_inverse=True)
    if distinct.shape[0] <= n_clusters:
        return Clustering(distinct, distinct_labels.reshape(-1).astype(np.int64), 0.0)
    labels = _lloyd_labels(points, weights / weights.mean(), n_clusters, rng, n_restarts)
    _, labels = np.unique(labels, return_inverse=True)  # an empty cluster is dropped
    centroids = cluster_means(points, weights, labels)
    inertia = float(weights @ squared_distances_to_own(points, centroids, labels))
    return Clustering(centroids, labels.astype(np.int64), inertia)


def cluster_means(points: FloatArray, weights: FloatArray, labels: IntArray) -> FloatArray:
    """Weighted mean of the points of each cluster, (n_clusters, n_features)."""
    membership = np.zeros((int(labels.max()) + 1, points.shape[0]))
    membership[labels, np.arange(points.shape[0])] = weights
    result: FloatArray = (membership @ points) / membership.sum(axis=1, keepdims=True)
    return result


def squared_distances_to_own(points: FloatArray, centroids: FloatArray, labels: IntArray) -> FloatArray:
    """Squared distance of each point to the centroid of its cluster, (n_points,)."""
    result: FloatArray = np.sum((points - centroids[labels]) ** 2, axis=1)
    return result


def nearest_centroid(points: FloatArray, centroids: FloatArray) -> IntArray:
    """Index of the centroid nearest to each point, (n_points,)."""
    cross = points @ centroids.T  # (n_points, n_clusters)
    # |x|^2 is the same for every centroid, so it can be left out of the comparison
    result: IntArray = np.argmin(np.sum(centroids**2, axis=1) - 2.0 * cross, axis=1)
    return result


def _lloyd_labels(
    points: FloatArray, weights: FloatArray, n_clusters: int, rng: np.random.Generator, n_restarts: int
) -> IntArray:
    from sklearn.cluster import KMeans  # noqa: PLC0415
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    seed = int(rng.integers(2**31 - 1))
    estimator = KMeans(n_clusters, n_init=n_restarts, random_state=seed, copy_x=True)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # nearly equal points may leave a cluster empty; the caller drops it
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: IntArray = estimator.fit(points, sample_weight=weights).labels_
    return labels
