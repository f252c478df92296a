"""Weighted k-means whose clusters are the same on every processor.

Points that lie between two clusters are common where features are right and wrong answers. They go to the first, and
of starts that come to the same the first is taken (`numerics.ties`); all sums are float64.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import RELATIVE, first_largest, first_smallest


@dataclass(frozen=True, slots=True)
class Clustering:
    """Points in at most as many clusters as were asked for, none of them empty."""

    centroids: FloatArray  # (n_clusters, n_features): Weighted mean of each cluster
    labels: IntArray  # (n_points,): Cluster of each point
    inertia: float  # Weighted sum of squared distances to the centroids, the objective of k-means


@one_blas_thread()
def weighted_kmeans(
    points: FloatArray,  # (n_points, n_features)
    weights: FloatArray,  # (n_points,): Positive; only their ratios matter
    n_clusters: int,  # Fewer come back when there are fewer distinct points
    rng: np.random.Generator,
    *,
    n_restarts: int = 10,  # Starts to try; the smallest inertia wins
) -> Clustering:
    """Cluster points by weighted k-means, the best of several starts.

    Starts are k-means++ with a few trials a centre (Arthur and Vassilvitskii 2007), iterations Lloyd's.
    """
    seen: set[bytes] = set()
    for point in points + 0.0:  # zero of either sign is the same
        seen.add(point.tobytes())
        if len(seen) > n_clusters:
            break
    if len(seen) <= n_clusters:
        distinct, distinct_labels = np.unique(points, axis=0, return_inverse=True)
        return Clustering(distinct, distinct_labels.reshape(-1).astype(np.int64), 0.0)
    middle = points.mean(axis=0, dtype=np.float64)  # distances by differences of squares keep their digits there
    centred = points - middle
    means = ClusterMeans(centred, weights, n_clusters)
    tried = [_lloyd(means, start) for start in _starts(centred, weights, n_clusters, n_restarts, rng)]
    best = tried[int(first_smallest(np.array([one.inertia for one in tried])))]
    return Clustering(best.centroids + middle, best.labels, best.inertia)


class ClusterMeans:
    """Weighted means of the points (n_points, n_features) of each cluster, for one labelling of them after the other.

    No cluster may be empty.
    """

    def __init__(self, points: FloatArray, weights: FloatArray, n_clusters: int) -> None:
        self.points, self.weights = points, weights
        n_points = points.shape[0]
        places, labels = np.arange(n_points + 1), np.zeros(n_points, dtype=np.int64)
        # One entry a column, the weight in the row of the point's cluster; its product adds up in the points' order.
        self.membership = scipy.sparse.csc_array((weights, labels, places), shape=(n_clusters, n_points))

    def of(self, labels: IntArray) -> FloatArray:
        """Return the means for this cluster of each point, (n_points,): (n_clusters, n_features)."""
        self.membership.indices[:] = labels
        totals = np.bincount(labels, self.weights, self.membership.shape[0])
        result: FloatArray = (self.membership @ self.points) / totals[:, None]
        return result


def squared_distances_to_own(points: FloatArray, centroids: FloatArray, labels: IntArray) -> FloatArray:
    """Squared distance of each point to the centroid of its cluster, (n_points,)."""
    result: FloatArray = np.sum((points - centroids[labels]) ** 2, axis=1)
    return result


def nearest_centroid(points: FloatArray, centroids: FloatArray) -> IntArray:
    """Index of the centroid nearest to each point, the first of several, (n_points,)."""
    return first_smallest(_relative_distances(points, centroids))


def _relative_distances(points: FloatArray, centroids: FloatArray) -> FloatArray:
    """Squared distances less ``|x|^2``, which is the same for every centroid, (n_points, n_clusters)."""
    result: FloatArray = points @ centroids.T
    result *= -2.0
    result += np.sum(centroids**2, axis=1)
    return result


def _starts(
    points: FloatArray, weights: FloatArray, n_clusters: int, n_restarts: int, rng: np.random.Generator
) -> FloatArray:
    """Points far from each other, (n_restarts, n_clusters, n_features): each the best of a few drawn by distance.

    The restarts go on together, and draw what they would one after the other.
    """
    # As many candidates a centre as scikit-learn draws.
    n_trials = 2 + int(np.log(n_clusters))
    uniform = rng.random((n_restarts, 1 + (n_clusters - 1) * n_trials))
    lengths = np.sum(points**2, axis=1)
    # Squared distance, as a fraction of the largest squared length, that counts as none: only rounding set them apart.
    no_distance = 1e-12
    nothing = no_distance * lengths.max()
    restarts = np.arange(n_restarts)
    chosen = np.empty((n_restarts, n_clusters), dtype=np.int64)
    first = _draw(np.broadcast_to(weights, (n_restarts, weights.shape[0])), uniform[:, :1])
    chosen[:, 0] = first[:, 0]
    nearest = _squared_distances(points, lengths, first, nothing)[:, 0]  # (n_restarts, n_points)
    for number, drawn in enumerate(np.split(uniform[:, 1:], n_clusters - 1, axis=1) if n_clusters > 1 else (), start=1):
        candidates = _draw(weights * nearest, drawn)
        closer = np.minimum(nearest[:, None], _squared_distances(points, lengths, candidates, nothing))
        best = first_smallest(closer @ weights)
        chosen[:, number] = candidates[restarts, best]
        nearest = closer[restarts, best]
    return points[chosen]


def _draw(masses: FloatArray, uniform: FloatArray) -> IntArray:
    """Draw points with probability proportional to their masses (n, n_points), by uniform numbers (n, n_drawn)."""
    total = np.cumsum(masses, axis=1)
    wanted = uniform * total[:, -1:]
    drawn = [np.searchsorted(row, one, side="right") for row, one in zip(total, wanted, strict=True)]
    # Rounding may take the product up to the total itself, beyond the last point.
    result: IntArray = np.minimum(drawn, masses.shape[1] - 1)
    return result


def _squared_distances(points: FloatArray, lengths: FloatArray, places: IntArray, nothing: float) -> FloatArray:
    """Squared distances of all points from some of them, (..., n_places, n_points); zero below `nothing`."""
    # A matrix product instead of n_places times n_points differences; what cancels is cut off at `nothing`.
    products = points[places] @ points.T
    products *= 2.0
    distances: FloatArray = lengths + lengths[places][..., None]
    distances -= products
    distances[distances <= nothing] = 0.0
    return distances


def _lloyd(means: ClusterMeans, centroids: FloatArray) -> Clustering:
    """Assign points and move centroids in turn until no point moves; an empty cluster takes the farthest point."""
    points, weights = means.points, means.weights
    assigned = _Assignment(points)
    # No point has the label -1, so the first round never counts as "no point moved".
    labels: IntArray = np.full(points.shape[0], -1)
    # Never reached in trials: Lloyd's rounds ended after 8 to 101 with up to 10,000 points and 100 clusters.
    max_iterations = 300
    for _ in range(max_iterations):
        nearest = assigned.nearest(centroids)
        counts = np.bincount(nearest, minlength=centroids.shape[0])
        if counts.min() == 0:
            distances = weights * squared_distances_to_own(points, centroids, nearest)
            for empty in np.flatnonzero(counts == 0).tolist():
                farthest = int(first_largest(np.where(counts[nearest] > 1, distances, -np.inf)))
                counts[nearest[farthest]] -= 1
                nearest[farthest], counts[empty], distances[farthest] = empty, 1, 0.0
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        centroids = means.of(labels)
    inertia = float(weights @ squared_distances_to_own(points, centroids, labels))
    return Clustering(centroids, labels, inertia)


class _Assignment:
    """Nearest centroids of points, found anew only where the centroids moved far enough to change them (Hamerly 2010).

    Each point has an upper bound on the distance to its own centroid, and a lower bound on the distance to every other.
    When the centroids move, the first grows by the move of the own centroid and the second falls by the largest move.
    While the bounds are further apart than what counts as equal (`numerics.ties`), the point stays.
    """

    def __init__(self, points: FloatArray) -> None:
        self.points = points
        self.lengths = np.sqrt(np.sum(points**2, axis=1))
        self.labels: IntArray = np.zeros(points.shape[0], dtype=np.int64)
        self.own, self.other = np.full(points.shape[0], np.inf), np.zeros(points.shape[0])
        self.centroids: FloatArray | None = None

    def nearest(self, centroids: FloatArray) -> IntArray:
        """Index of the centroid nearest to each point, as `nearest_centroid`."""
        if self.centroids is not None:
            moved = np.sqrt(np.sum((centroids - self.centroids) ** 2, axis=1))
            # Triangle inequality: a distance changes by at most the move of its centroid.
            self.own += moved[self.labels]
            self.other -= moved.max()
        self.centroids = centroids
        farthest = self.lengths + np.sqrt(np.sum(centroids**2, axis=1).max())  # no centroid is further away
        # Distances within RELATIVE of the largest count as equal, and none that `_find` compares is above farthest^2
        # (they lack |x|^2): the squared bounds must differ by more. Twice leaves room for their own rounding.
        certain = (self.other > 0.0) & (self.other**2 - self.own**2 > 2.0 * RELATIVE * farthest**2)
        rows = np.flatnonzero(~certain)
        squared = _relative_distances(self.points[rows], centroids)
        labels = first_smallest(squared)
        places, lengths = np.arange(rows.size), self.lengths[rows] ** 2
        self.labels[rows] = labels
        self.own[rows] = np.sqrt(np.maximum(squared[places, labels] + lengths, 0.0))
        squared[places, labels] = np.inf
        self.other[rows] = np.sqrt(np.maximum(squared.min(axis=1) + lengths, 0.0))
        return self.labels.copy()
