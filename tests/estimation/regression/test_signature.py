"""Nearest neighbours and forests on the response signature against scikit-learn's."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from itembank.estimation.regression.signature import predict_k_nearest, predict_random_forest


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
    expected = KNeighborsRegressor(n_neighbours).fit(train, scores).predict(new)
    np.testing.assert_allclose(predict_k_nearest(train, scores, new, n_neighbours=n_neighbours), expected, atol=1e-12)


def test_chosen_number_of_neighbours_is_best_left_out(rng):
    train, scores, new = problem(rng)
    best = []
    for target in range(2):
        errors = [
            ((cross_val_predict(KNeighborsRegressor(k), train, scores[:, target], cv=LeaveOneOut())
              - scores[:, target]) ** 2).mean()
            for k in range(1, 26)
        ]  # fmt: skip
        best.append(int(np.argmin(errors)) + 1)
    assert max(best) < 25
    expected = np.column_stack(
        [KNeighborsRegressor(k).fit(train, scores[:, j]).predict(new) for j, k in enumerate(best)]
    )
    np.testing.assert_allclose(predict_k_nearest(train, scores, new), expected, atol=1e-12)


def test_neighbours_are_compared_on_what_both_answered(rng):
    train, scores, new = problem(rng)
    train[rng.random(train.shape) < 0.2] = np.nan
    new[rng.random(new.shape) < 0.3] = np.nan
    found = predict_k_nearest(train, scores, new, n_neighbours=4)
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
        return predict_random_forest(a, scores, b, rng=np.random.default_rng(1), n_trees=20, n_components=n_components)

    kept = np.delete(np.arange(8), 3)
    np.testing.assert_array_equal(forest(train, holed), forest(train[:, kept], new[:, kept]))
    np.testing.assert_array_equal(
        predict_k_nearest(train, scores, holed), predict_k_nearest(train[:, kept], scores, new[:, kept])
    )


def test_forest_equals_sklearn_and_repeats_itself(rng):
    train, scores, new = problem(rng)
    seed = int(np.random.default_rng(3).integers(2**31))
    options = {"n_trees": 15, "n_components": None}
    reference = RandomForestRegressor(15, random_state=seed).fit(train, scores)
    found = predict_random_forest(train, scores, new, rng=np.random.default_rng(3), **options)
    np.testing.assert_allclose(found, reference.predict(new), atol=1e-12)
    assert np.any(found != predict_random_forest(train, scores, new, rng=np.random.default_rng(4), **options))


def test_forest_on_components_finds_what_all_columns_tell_together(rng):
    ability = rng.uniform(size=(300, 1))
    responses = (rng.random((300, 80)) < ability).astype(float)
    train, new = slice(0, 100), slice(100, None)

    def error(n_components):
        found = predict_random_forest(
            responses[train], ability[train], responses[new], rng=np.random.default_rng(0), n_components=n_components
        )
        return np.abs(found - ability[new]).mean()

    assert error(20) < 0.8 * error(None)
    assert error(20) < 1.3 * np.abs(responses[new].mean(axis=1, keepdims=True) - ability[new]).mean()


def test_scores_of_some_models_are_unknown(rng):
    train, scores, new = problem(rng)
    scores[:20, 1] = np.nan
    found = predict_k_nearest(train, scores, new)
    np.testing.assert_allclose(found[:, [1]], predict_k_nearest(train[20:], scores[20:, [1]], new))
    forest = predict_random_forest(train, scores, new, rng=np.random.default_rng(0), n_trees=10)
    alone = predict_random_forest(train[20:], scores[20:, [1]], new, rng=np.random.default_rng(0), n_trees=10)
    np.testing.assert_allclose(forest[:, [1]], alone)


def test_nothing_answered_gives_the_mean_score(rng):
    train, scores, new = problem(rng)
    new[:] = np.nan
    expected = np.tile(scores.mean(axis=0), (7, 1))
    np.testing.assert_allclose(predict_k_nearest(train, scores, new), expected)
    np.testing.assert_allclose(predict_random_forest(train, scores, new, rng=np.random.default_rng(0)), expected)
