"""Anchor points: one item for each cluster of similar items, weighted by what it represents (tinyBenchmarks 3.2)."""

from collections.abc import Callable

import numpy as np

from itembank.bank.banks import Bank
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.kmeans import nearest_centroid, squared_distances_to_own, weighted_kmeans
from itembank.numerics.splits import first_of_each
from itembank.numerics.ties import first_largest, rounded
from itembank.selection.pools import Choice, ItemPools, ScenarioPool
from itembank.selection.selector_specs import AnchorSpec

NO_SPREAD = 1e-6
"""A feature with a smaller spread counts as constant; dividing by the spread would only magnify rounding errors."""


def anchors_on_correctness(pools: ItemPools, spec: AnchorSpec) -> list[Choice]:
    """Cluster items that the past models answered alike."""
    return _anchors(pools, spec, lambda pool: correctness_features(pools.bank, pool, standardise=spec.standardise))


def anchors_on_parameters(pools: ItemPools, spec: AnchorSpec) -> list[Choice]:
    """Cluster items with similar parameters."""
    return _anchors(pools, spec, lambda pool: irt_features(pools.bank, pool, standardise=spec.standardise))


def _anchors(pools: ItemPools, spec: AnchorSpec, features: Callable[[ScenarioPool], FloatArray]) -> list[Choice]:
    return pools.each(
        lambda pool, n_items: choose_anchors(pool, features(pool), n_items, pools.rng, n_restarts=spec.n_restarts)
    )


def spread(features: FloatArray, pool: ScenarioPool) -> FloatArray:
    """Weighted standard deviation of each feature (n_pool, n_features) over the candidates, (n_features,)."""
    weights = pool.weights * pool.is_candidate
    weights = weights / weights.sum()
    result: FloatArray = np.sqrt(weights @ (features - weights @ features) ** 2)
    return result


def correctness_features(
    bank: Bank,
    pool: ScenarioPool,
    *,
    standardise: bool,  # Give every model's responses the same variance over the candidates
) -> FloatArray:
    """Responses of the past models to the items of a scenario, (n_pool, n_models) (tinyBenchmarks 3.2).

    A missing response becomes the item model's probability for that model and item: a mean over the
    models that did answer would say more of who answered than of the item.
    """
    bank.check_responses("Anchor points on correctness need")
    responses = bank.responses.of_items(pool.items)
    missing = np.isnan(responses)
    if missing.any():
        fitted = probability(bank.parameters.take(pool.items), bank.calibration.abilities)
        responses = np.where(missing, fitted, responses)
    features: FloatArray = np.ascontiguousarray(responses.T, dtype=np.float64)
    if not standardise:
        return features
    scale = spread(features, pool)
    return features / np.where(scale > NO_SPREAD, scale, 1.0)


def irt_features(
    bank: Bank,
    pool: ScenarioPool,
    *,
    # Scale the intercept to variance 1 over the candidates, and the loadings, all by one number, to total variance 1.
    # A scale for each dimension would make clusters depend on how ability is rotated, and give dimensions that hardly
    # matter the same say as the first.
    standardise: bool,
) -> FloatArray:
    """Return the loadings and intercept of the items of a scenario, (n_pool, n_dims + 1) (tinyBenchmarks 3.2, 4.1)."""
    parameters = bank.parameters
    features: FloatArray = np.column_stack([parameters.loadings[pool.items], parameters.intercept[pool.items]])
    if not standardise:
        return features
    scale = spread(features, pool)
    scale[:-1] = np.sqrt(np.sum(scale[:-1] ** 2))
    return features / np.where(scale > NO_SPREAD, scale, 1.0)


def latent_features(model: FactorModel) -> FloatArray:
    """Return the mean and the loadings of every item, (n_items, n_factors + 1).

    The squared distance of two items is then what the factor model expects of the squared difference of their
    responses by one model, their own noise left out:
    ``E[(y_i - y_j)^2] = (m_i - m_j)^2 + |L_i - L_j|^2 + s_i + s_j``. No feature needs another scale.
    """
    return np.column_stack([model.mean, model.loadings])


def choose_anchors(
    pool: ScenarioPool,
    # (n_pool, n_features): What makes items similar, already on the scale on which distances are to be measured
    features: FloatArray,
    n_items: int,  # Anchors wanted; at most the number of candidates
    rng: np.random.Generator,
    *,
    n_restarts: int,  # Starts of k-means; the smallest inertia wins
) -> Choice:
    """Cluster the candidates of a scenario and take from each cluster the item nearest its centroid.

    The weight of an anchor is the target weight of all items of its cluster (tinyBenchmarks 3.2, App. A). Items that
    may not be chosen (excluded, or answered the same way by every model) take no part in the clustering but
    their weight counts: each joins the cluster with the nearest centroid, so that an item everybody gets
    right is represented by an easy anchor. Where fewer clusters than asked for exist (items with equal
    features), clusters get several anchors that share their weight.
    """
    candidates = np.flatnonzero(pool.is_candidate)
    candidate_features = features[candidates]
    clusters = weighted_kmeans(candidate_features, pool.weights[candidates], n_items, rng, n_restarts=n_restarts)
    # items that may not be chosen join the nearest cluster; the candidates keep the cluster that k-means gave them
    labels = nearest_centroid(features, clusters.centroids)
    labels[candidates] = clusters.labels
    mass = np.bincount(labels, weights=pool.weights).astype(np.float64)
    distances = squared_distances_to_own(candidate_features, clusters.centroids, clusters.labels)
    anchors, n_sharing = _representatives(distances, clusters.labels, mass, n_items)
    return Choice(candidates[anchors], (mass / n_sharing)[clusters.labels[anchors]])


def _representatives(
    distances: FloatArray, labels: IntArray, mass: FloatArray, n_items: int
) -> tuple[IntArray, IntArray]:
    """Return the points nearest their centroid, `n_items` in all, and the number of anchors in each cluster."""
    sizes = np.bincount(labels)
    counts = np.ones(sizes.shape[0], dtype=np.int64)
    # only where there are fewer clusters than items wanted: the next anchor goes where one represents the most weight
    for _ in range(n_items - sizes.shape[0]):
        # -1 for a cluster whose items all are anchors: any weight, zero included, is above it
        room = np.where(counts < sizes, mass / counts, -1.0)
        counts[first_largest(room)] += 1
    # items of equal answers are equally near to the centroid: the first by id is taken on every processor
    order = np.lexsort((rounded(distances), labels))
    return first_of_each(order, labels, counts), counts


def weighted_by_nearest(
    pool: ScenarioPool,
    features: FloatArray,  # (n_pool, n_features): What makes items similar
    chosen: IntArray,  # (n_chosen,): Positions within the pool, each once
) -> Choice:
    """Give each chosen item the target weight of the items of the scenario that are nearest to it.

    This is the weighting of anchor points (tinyBenchmarks 3.2), with the chosen items in place of centroids. A chosen
    item represents itself; the weight of an item that is equally near to several is divided between them.
    """
    if chosen.shape[0] == 0:
        return Choice(chosen, np.zeros(0))
    chosen_features = features[chosen]
    # |x|^2 is the same for every chosen item, so it can be left out of the comparison
    distances = np.sum(chosen_features**2, axis=1) - 2.0 * (features @ chosen_features.T)  # (n_pool, n_chosen)
    # distances that agree to rounding are equal, else ties would depend on the machine
    tolerance = 1e-9 * (1.0 + np.abs(distances).max())
    membership = (distances <= distances.min(axis=1, keepdims=True) + tolerance).astype(np.float64)
    # also where another chosen item has the same features: each must keep a weight of its own
    membership[chosen] = np.eye(chosen.shape[0])
    weights: FloatArray = pool.weights @ (membership / membership.sum(axis=1, keepdims=True))
    return Choice(chosen, weights)
