"""Prediction from the response signature: models that responded alike score alike (DISCO, arXiv 2510.07959)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from itembank.checks import check_whole
from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.point_methods import Known
from itembank.estimation.regressions import Block, decomposed, solve_blocks
from itembank.methods import Method
from itembank.numerics.arrays import FloatArray

MOST_NEIGHBOURS = 50
COMPONENTS = (2, 10, None)
"""Candidates for the number of principal components to measure distance in; None: the responses themselves."""


@dataclass(frozen=True, slots=True)
class KNearest(PointSpec):
    """Mean score of the calibration models that responded most alike (DISCO, arXiv 2510.07959).

    Attributes
    ----------
    n_neighbours : int or 'leave-one-out'
        'leave-one-out' takes what predicts left-out calibration models best, each score its own.
    n_components : int, None or 'leave-one-out'
        Principal components of the responses in which models are compared; None compares the responses themselves.
    """

    n_neighbours: int | Literal["leave-one-out"] = "leave-one-out"
    n_components: int | Literal["leave-one-out"] | None = "leave-one-out"

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_neighbours", self.n_neighbours, least=1, word="leave-one-out")
        if self.n_components is not None:
            check_whole("n_components", self.n_components, least=1, word="leave-one-out")

    @property
    def learns_scores(self) -> bool:
        """It does."""
        return True


@dataclass(frozen=True, slots=True)
class RandomForest(PointSpec):
    """Random forest on the principal components of the responses (DISCO, arXiv 2510.07959).

    Attributes
    ----------
    n_trees : int
    n_components : int or None
        Principal components of the responses that the trees see; None gives them the responses themselves. DISCO
        takes 256; on two leaderboards more than 20 cost time and brought little.
    seed : int
        Of the forest: the same seed gives the same estimates.
    """

    n_trees: int = 100
    n_components: int | None = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_trees", self.n_trees, least=1)
        if self.n_components is not None:
            check_whole("n_components", self.n_components, least=1)
        check_whole("seed", self.seed, least=0)

    @property
    def learns_scores(self) -> bool:
        """It does."""
        return True


def by_k_nearest(known: Known, spec: KNearest) -> FloatArray:
    """Mean score of the calibration models that responded most alike."""
    count = None if spec.n_neighbours == "leave-one-out" else spec.n_neighbours
    return predict_k_nearest(*known.for_regression(), n_neighbours=count, n_components=spec.n_components)


def by_random_forest(known: Known, spec: RandomForest) -> FloatArray:
    """Random forest on the principal components of the responses."""
    return predict_random_forest(
        *known.for_regression(), n_trees=spec.n_trees, n_components=spec.n_components, seed=spec.seed
    )


KNN = Method(KNearest, by_k_nearest)
RANDOM_FOREST = Method(RandomForest, by_random_forest)


def predict_k_nearest(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    n_neighbours: int | None = None,
    n_components: int | Literal["leave-one-out"] | None = "leave-one-out",
) -> FloatArray:
    """Mean score of the calibration models nearest on the principal components of the responses.

    With few calibration models no two agree on every item, and what they do not share drowns what they do: then few
    components often say more than the responses. New models are compared on the items they answered, pattern by
    pattern.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    n_neighbours : int or None
        None takes, for each target, the number up to `MOST_NEIGHBOURS` with the least squared error of the
        calibration models left out one at a time.
    n_components : int, None or 'leave-one-out'
        At most so many principal components; None compares the responses themselves; 'leave-one-out' takes, for each
        target, the best of `COMPONENTS`.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    candidates = COMPONENTS if n_components == "leave-one-out" else (n_components,)

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:  # noqa: ARG001
        result = np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        if train.shape[0] < 3 or not _varies(train):  # two models cannot say which to take
            return result
        least = np.full(scores.shape[1], np.inf)
        for candidate in candidates:
            a, b = (train, new) if candidate is None else principal_components(train, new, candidate)
            predicted, errors = _k_nearest(a, scores, b, n_neighbours)
            is_better = errors < least
            result[:, is_better], least = predicted[:, is_better], np.minimum(least, errors)
        return result

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def principal_components(train: FloatArray, new: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Project both on the leading principal components of `train`, at most so many, (n, n_components)."""
    centre = train.mean(axis=0)
    _, _, directions = decomposed(train - centre)
    return (train - centre) @ directions[:, :most], (new - centre) @ directions[:, :most]


def _varies(train: FloatArray) -> bool:
    """Whether any column tells the calibration models apart."""
    return bool((train != train[:1]).any())


def _k_nearest(
    train: FloatArray, scores: FloatArray, new: FloatArray, n_neighbours: int | None
) -> tuple[FloatArray, FloatArray]:
    """Prediction (n_new, n_targets), and the mean squared error of left-out models (n_targets,)."""
    targets = np.arange(scores.shape[1])
    most = min(MOST_NEIGHBOURS if n_neighbours is None else n_neighbours, train.shape[0])
    apart = _distances(train, train)
    np.fill_diagonal(apart, np.inf)
    left_out = _running_means(apart, scores, min(most, train.shape[0] - 1))
    errors = ((left_out - scores[:, None, :]) ** 2).mean(axis=0)  # (most, n_targets)
    best = errors.argmin(axis=0) if n_neighbours is None else np.full(targets.size, most - 1)
    predicted = _running_means(_distances(new, train), scores, int(best.max()) + 1)[:, best, targets]
    return predicted, errors[np.minimum(best, errors.shape[0] - 1), targets]


def _distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Squared distances of rows, (n_first, n_second)."""
    a, b = (first**2).sum(axis=1), (second**2).sum(axis=1)
    result: FloatArray = a[:, None] + b - 2.0 * (first @ second.T)
    return result


def _running_means(distances: FloatArray, scores: FloatArray, most: int) -> FloatArray:
    """Mean score of the 1, 2, ... `most` nearest, (n_rows, most, n_targets); ties go to the earlier model."""
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :most]
    result: FloatArray = np.cumsum(scores[nearest], axis=1) / np.arange(1, most + 1)[:, None]
    return result


def predict_random_forest(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    n_trees: int = 100,
    n_components: int | None = 20,
    seed: int = 0,
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
    n_trees : int
    n_components : int or None
        At most so many principal components; None gives the trees the responses themselves.
    seed : int
        Of the trees, the same for every pattern, so that other new models change nothing.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:  # noqa: ARG001
        if train.shape[0] < 3 or not _varies(train):
            return np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        if n_components is not None:
            train, new = principal_components(train, new, n_components)
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
