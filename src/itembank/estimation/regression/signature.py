"""Prediction from the response signature: models that responded alike score alike (DISCO, arXiv 2510.07959)."""

import numpy as np

from itembank.estimation.regression.missing import Block, blocks, solve_blocks
from itembank.numerics.arrays import FloatArray, IntArray

MOST_NEIGHBOURS = 50


def predict_k_nearest(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    n_neighbours: int | None = None,
) -> FloatArray:
    """Mean score of the calibration models nearest in mean squared difference of responses.

    Nothing missing is filled in: two models are compared on the items that both answered.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    n_neighbours : int or None
        None takes, for each target, the number up to `MOST_NEIGHBOURS` with the least squared error of the
        calibration models left out one at a time, on the items that the new model answered.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    result = np.full((new_responses.shape[0], train_scores.shape[1]), np.nan)
    for block in blocks(train_scores, new_responses):
        train = train_responses[np.ix_(block.train, block.columns)]
        scores = train_scores[np.ix_(block.train, block.targets)]
        new = new_responses[np.ix_(block.new, block.columns)]
        result[np.ix_(block.new, block.targets)] = _k_nearest(train, scores, new, n_neighbours)
    return np.asarray(np.clip(result, 0.0, 1.0))


def _k_nearest(train: FloatArray, scores: FloatArray, new: FloatArray, n_neighbours: int | None) -> FloatArray:
    """Prediction for complete new responses, (n_new, n_targets)."""
    n_models, n_targets = scores.shape
    distances = _distances(new, train)
    if n_neighbours is None:
        best = _best_count(_distances(train, train), scores, min(MOST_NEIGHBOURS, n_models))
    else:
        best = np.full(n_targets, min(n_neighbours, n_models) - 1)
    chosen = _running_means(distances, scores, int(best.max()) + 1)[:, best, np.arange(n_targets)]
    is_alone = np.isinf(distances).all(axis=1, keepdims=True)  # nothing in common with anybody
    return np.where(is_alone, scores.mean(axis=0), chosen)


def _distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Mean squared difference over the columns that both rows have, (n_first, n_second); infinite without any."""
    has_first, has_second = ~np.isnan(first), ~np.isnan(second)
    a, b = np.where(has_first, first, 0.0), np.where(has_second, second, 0.0)
    mask_a, mask_b = has_first.astype(np.float64), has_second.astype(np.float64)
    total = (a * a) @ mask_b.T - 2.0 * (a @ b.T) + mask_a @ (b * b).T
    count = mask_a @ mask_b.T
    infinite = np.full(count.shape, np.inf)
    return np.asarray(np.divide(np.maximum(total, 0.0), count, out=infinite, where=count > 0.0))


def _running_means(distances: FloatArray, scores: FloatArray, most: int) -> FloatArray:
    """Mean score of the 1, 2, ... `most` nearest, (n_rows, most, n_targets); ties go to the earlier model."""
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :most]
    result: FloatArray = np.cumsum(scores[nearest], axis=1) / np.arange(1, most + 1)[:, None]
    return result


def _best_count(among: FloatArray, scores: FloatArray, most: int) -> IntArray:
    """Position of the number of neighbours that predicts left-out models best, (n_targets,)."""
    n_models = scores.shape[0]
    if n_models < 3:  # two models cannot say how many to take
        return np.full(scores.shape[1], most - 1)
    apart = among.copy()
    np.fill_diagonal(apart, np.inf)
    others = min(most, n_models - 1)
    errors = ((_running_means(apart, scores, others) - scores[:, None, :]) ** 2).mean(axis=0)
    result: IntArray = errors.argmin(axis=0)
    return result


def predict_random_forest(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    rng: np.random.Generator,
    n_trees: int = 100,
    n_components: int | None = 20,
) -> FloatArray:
    """Prediction by a random forest on the principal components of the responses, all scores at once.

    New models are fitted by their pattern of missing items, each from the items they answered: a forest a pattern,
    which takes a tenth of a second and more.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    rng : Generator
        Grows the trees.
    n_trees : int
    n_components : int or None
        At most so many principal components; None gives the trees the responses themselves.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    seed = int(rng.integers(2**31))  # one for all patterns, so that other new models change nothing

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:  # noqa: ARG001
        if train.shape[1] == 0 or train.shape[0] < 2:
            return np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        if n_components is not None:
            train, new = _components(train, new, n_components)
        return _forest(train, scores, new, n_trees=n_trees, seed=seed)

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _forest(train: FloatArray, scores: FloatArray, new: FloatArray, *, n_trees: int, seed: int) -> FloatArray:
    """Forest prediction (n_new, n_targets) from complete arrays."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - heavy

    # every split sees all components: the first holds most of what there is to know, and is missed otherwise
    forest = RandomForestRegressor(n_estimators=n_trees, max_features=1.0, random_state=seed, n_jobs=1)
    forest.fit(train, scores if scores.shape[1] > 1 else scores[:, 0])
    result: FloatArray = forest.predict(new).reshape(new.shape[0], -1)
    return result


def _components(train: FloatArray, new: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Both on the leading principal components of the calibration models."""
    from sklearn.decomposition import PCA  # noqa: PLC0415 - heavy

    n_kept = min(n_components, train.shape[0] - 1, train.shape[1])
    analysis = PCA(n_components=n_kept, svd_solver="full").fit(train)
    return analysis.transform(train), analysis.transform(new)
