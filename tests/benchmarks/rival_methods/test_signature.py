"""Nearest neighbours and forests on the response signature against scikit-learn's."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from itembank_rivals.signature import predict_k_nearest, predict_random_forest, principal_components


def problem(rng, n_train=60, n_columns=8, n_new=7):
    """Responses between 0 and 1, so that no two distances are the same."""
    ability = rng.normal(size=(n_train + n_new, 2))
    responses = 1.0 / (1.0 + np.exp(-ability @ rng.normal(size=(2, n_columns)) - rng.normal(size=n_columns)))
    scores = 1.0 / (1.0 + np.exp(-ability @ np.array([[1.0, 0.2], [0.0, 1.0]])))
    scores = np.clip(scores + rng.normal(0.0, 0.1, scores.shape), 0.0, 1.0)
    return responses[:n_train], scores[:n_train], responses[n_train:]


@pytest.mark.parametrize("n_neighbours", [1, 5, 60])
def test_given_number_of_neighbours_equals_sklearn(rng, n_neighbours):
    train, scores, new = problem(rng)
    found = predict_k_nearest(train, scores, new, n_neighbours=n_neighbours, n_components=None)
    expected = KNeighborsRegressor(n_neighbours).fit(train, scores).predict(new)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_neighbours_on_components_and_components_equal_sklearns(rng):
    train, scores, new = problem(rng)
    reference = make_pipeline(PCA(3, svd_solver="full"), KNeighborsRegressor(4)).fit(train, scores)
    found = predict_k_nearest(train, scores, new, n_neighbours=4, n_components=3)
    np.testing.assert_allclose(found, reference.predict(new), atol=1e-12)
    train, new = rng.normal(size=(30, 8)), rng.normal(size=(5, 8))
    reference = PCA(3, svd_solver="full").fit(train)
    found = principal_components(train, new, 3)
    np.testing.assert_allclose(np.abs(found[0]), np.abs(reference.transform(train)), atol=1e-10)
    np.testing.assert_allclose(np.abs(found[1]), np.abs(reference.transform(new)), atol=1e-10)
    train = np.repeat(rng.normal(size=(9, 1)), 4, axis=1)
    assert principal_components(train, train[:2], 3)[1].shape == (2, 1)
    assert principal_components(np.ones((9, 4)), np.ones((2, 4)), 3)[1].shape == (2, 0)


def test_chosen_number_of_neighbours_is_best_left_out(rng):
    train, scores, new = problem(rng, n_train=40)
    errors = []
    for k in range(1, 26):
        fitted = KNeighborsRegressor(k, algorithm="brute").fit(train, scores)
        others = fitted.kneighbors(return_distance=False)  # without points asked for, none is its own neighbour
        errors.append(((scores[others].mean(axis=1) - scores) ** 2).mean(axis=0))
    best = np.argmin(errors, axis=0)
    assert np.all(best < 24)
    expected = [KNeighborsRegressor(k + 1).fit(train, scores[:, j]).predict(new) for j, k in enumerate(best.tolist())]
    found = predict_k_nearest(train, scores, new, n_components=None)
    np.testing.assert_allclose(found, np.column_stack(expected), atol=1e-12)


def test_each_score_takes_the_components_that_predict_it_best_left_out(rng):
    """One score is common to all columns, the other is what two of many columns say."""
    ability = rng.uniform(size=(250, 1))
    responses = (rng.random((250, 42)) < np.hstack([np.tile(ability, 40), np.full((250, 2), 0.5)])).astype(float)
    responses[:, :40] /= 6.0  # so that the two decide how far models are from each other
    scores = np.column_stack([ability[:, 0], 0.2 + 0.6 * responses[:, 40] * responses[:, 41]])
    train, new = slice(0, 150), slice(150, None)

    def error(**choice):
        found = predict_k_nearest(responses[train], scores[train], responses[new], **choice)
        return np.abs(found - scores[new]).mean(axis=0)

    fixed = np.array([error(n_components=n) for n in (2, 10, None)])
    np.testing.assert_allclose(error(), fixed.min(axis=0), rtol=0.1)
    assert fixed[:, 0].argmin() != fixed[:, 1].argmin()


def test_neighbours_are_compared_on_what_the_new_model_answered(rng):
    train, scores, new = problem(rng)
    new[rng.random(new.shape) < 0.3] = np.nan
    found = predict_k_nearest(train, scores, new, n_neighbours=4, n_components=None)
    for row in range(new.shape[0]):
        distance = np.nanmean((train - new[row]) ** 2, axis=1)
        np.testing.assert_allclose(found[row], scores[np.argsort(distance)[:4]].mean(axis=0))


@pytest.mark.parametrize("n_components", [None, 5])
def test_a_column_that_no_new_model_answered_is_as_if_absent(rng, n_components):
    train, scores, new = problem(rng)
    train[0, 2] = np.nan
    holed = new.copy()
    holed[:, 3] = np.nan

    def forest(a, b):
        return predict_random_forest(a, scores, b, seed=1, n_trees=20, n_components=n_components)

    kept = np.delete(np.arange(8), 3)
    np.testing.assert_array_equal(forest(train, holed), forest(train[:, kept], new[:, kept]))
    np.testing.assert_array_equal(
        predict_k_nearest(train, scores, holed), predict_k_nearest(train[:, kept], scores, new[:, kept])
    )


def test_forest_on_components_finds_what_all_columns_tell_together_and_on_columns_what_sklearn_finds(rng):
    train, scores, new = problem(rng)
    options = {"n_trees": 15, "n_components": None}
    reference = RandomForestRegressor(15, random_state=3).fit(train, scores)
    found = predict_random_forest(train, scores, new, seed=3, **options)
    np.testing.assert_allclose(found, reference.predict(new), atol=1e-12)
    assert np.any(found != predict_random_forest(train, scores, new, seed=4, **options))
    ability = rng.uniform(size=(300, 1))
    responses = (rng.random((300, 80)) < ability).astype(float)
    train, new = slice(0, 100), slice(100, None)

    def error(n_components):
        known = responses[train], ability[train], responses[new]
        found = predict_random_forest(*known, seed=0, n_components=n_components)
        return np.abs(found - ability[new]).mean()

    assert error(20) < 0.8 * error(None)
    assert error(20) < 1.3 * np.abs(responses[new].mean(axis=1, keepdims=True) - ability[new]).mean()


def test_scores_of_some_models_are_unknown_and_nothing_answered_gives_their_mean(rng):
    train, scores, new = problem(rng)
    scores[:20, 1] = np.nan
    found = predict_k_nearest(train, scores, new)
    np.testing.assert_allclose(found[:, [1]], predict_k_nearest(train[20:], scores[20:, [1]], new))
    forest = predict_random_forest(train, scores, new, seed=0, n_trees=10)
    alone = predict_random_forest(train[20:], scores[20:, [1]], new, seed=0, n_trees=10)
    np.testing.assert_allclose(forest[:, [1]], alone)
    train, scores, new = problem(rng)
    new[:] = np.nan
    expected = np.tile(scores.mean(axis=0), (7, 1))
    np.testing.assert_allclose(predict_k_nearest(train, scores, new), expected)
    np.testing.assert_allclose(predict_random_forest(train, scores, new, seed=0), expected)
