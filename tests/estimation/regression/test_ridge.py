"""Ridge regression against scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from itembank.estimation.regressions import RELATIVE_PENALTIES, decomposed, predict_ridge


def problem(rng, n_train=40, n_columns=12, n_targets=3, n_new=6):
    """Binary responses whose scores depend on them, away from 0 and 1 so that no prediction is clipped."""
    train, new = (rng.random((n, n_columns)).round() for n in (n_train, n_new))
    scores = 0.5 + (train - 0.5) @ rng.normal(0.0, 0.02, (n_columns, n_targets))
    return train, scores + rng.normal(size=scores.shape) * np.geomspace(0.001, 0.2, n_targets), new


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_given_penalty_equals_sklearn(rng, shape):
    train, scores, new = problem(rng, *shape)
    expected = Ridge(alpha=2.5).fit(train, scores).predict(new)
    np.testing.assert_allclose(predict_ridge(train, scores, new, penalty=2.5), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_leave_one_out_choice_equals_sklearn(rng, shape):
    train, scores, new = problem(rng, *shape)
    unit = ((train - train.mean(axis=0)) ** 2).sum() / train.shape[1]
    reference = RidgeCV(alphas=unit * RELATIVE_PENALTIES, alpha_per_target=True).fit(train, scores)
    assert np.unique(reference.alpha_).size > 1  # else one penalty for all would pass
    np.testing.assert_allclose(predict_ridge(train, scores, new), reference.predict(new), atol=1e-8)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_drawn_to_weights_is_the_mean_under_the_normal_prior_of_coefficients(rng, shape):
    train, scores, new = problem(rng, *shape)
    weights, scenario = rng.uniform(0.5, 2.0, shape[1]), np.arange(shape[1]) % 3
    penalty = 1.5
    roots = np.sqrt(weights / weights.mean())
    prior = np.diag(roots**2) + 30.0**2 * np.outer(roots, roots) / (roots @ roots)
    for name in range(3):
        own = roots * (scenario == name)
        prior += 2.0**2 * np.outer(own, own) / (own @ own)
    centre = train.mean(axis=0)
    a, b = train - centre, new - centre
    gain = b @ prior @ a.T @ np.linalg.inv(a @ prior @ a.T + penalty * np.eye(shape[0]))
    expected = scores.mean(axis=0) + gain @ (scores - scores.mean(axis=0))
    found = predict_ridge(train, scores, new, penalty=penalty, column_weights=weights, scenario_index=scenario)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_one_scenario_adds_nothing_to_the_free_mean(rng):
    train, scores, new = problem(rng)
    alone = predict_ridge(train, scores, new, column_weights=np.ones(12))
    named = predict_ridge(train, scores, new, column_weights=np.ones(12), scenario_index=np.full(12, 4))
    np.testing.assert_array_equal(alone, named)


def test_columns_without_weight_are_left_out_unless_there_are_no_others(rng):
    train, scores, new = problem(rng)
    weights = rng.uniform(0.5, 2.0, 12)
    weights[5:] = 0.0
    new[0, :5] = np.nan
    found = predict_ridge(train, scores, new, column_weights=weights)
    kept = predict_ridge(train[:, :5], scores, new[1:, :5], column_weights=weights[:5])
    np.testing.assert_allclose(found[1:], kept, atol=1e-12)
    rest = predict_ridge(train[:, 5:], scores, new[:1, 5:], column_weights=np.ones(7))
    np.testing.assert_allclose(found[:1], rest, atol=1e-12)


def test_with_few_models_drawing_to_weights_is_better(rng):
    ability = rng.normal(size=(220, 1))
    responses = (rng.random((220, 60)) < 1.0 / (1.0 + np.exp(-ability - rng.normal(size=60)))).astype(float)
    truth = 1.0 / (1.0 + np.exp(-ability))

    def error(**choice):
        found = predict_ridge(responses[:20], truth[:20], responses[20:], **choice)
        return np.abs(found - truth[20:]).mean()

    assert error(column_weights=np.ones(60)) < 0.9 * error()


def test_each_pattern_of_missing_items_is_its_own_regression(rng):
    train, scores, new = problem(rng)
    new[1, :4] = np.nan
    new[3, 6:] = np.nan
    new[4, :4] = np.nan
    found = predict_ridge(train, scores, new, penalty=1.0)
    for row, kept in ((0, slice(None)), (1, slice(4, None)), (3, slice(0, 6)), (4, slice(4, None))):
        expected = Ridge(alpha=1.0).fit(train[:, kept], scores).predict(new[row : row + 1, kept])
        np.testing.assert_allclose(found[row], expected[0], atol=1e-10)


def test_models_without_a_score_are_left_out_for_that_target_alone(rng):
    train, scores, new = problem(rng)
    holed = scores.copy()
    holed[:10, 1] = np.nan
    found = predict_ridge(train, holed, new)
    np.testing.assert_allclose(found[:, [0, 2]], predict_ridge(train, scores[:, [0, 2]], new), atol=1e-12)
    np.testing.assert_allclose(found[:, [1]], predict_ridge(train[10:], scores[10:, [1]], new), atol=1e-12)


def test_nothing_answered_gives_the_mean_score(rng):
    train, scores, new = problem(rng)
    new[2] = np.nan
    np.testing.assert_allclose(predict_ridge(train, scores, new)[2], scores.mean(axis=0))


def test_the_choice_beats_the_largest_and_the_smallest_penalty(rng):
    ability = rng.normal(size=(260, 1))
    responses = (rng.random((260, 60)) < 1.0 / (1.0 + np.exp(-ability - rng.normal(size=60)))).astype(float)
    truth = 1.0 / (1.0 + np.exp(-ability))
    train, new = slice(0, 60), slice(60, None)

    def error(**choice):
        return np.abs(predict_ridge(responses[train], truth[train], responses[new], **choice) - truth[new]).mean()

    assert error() < 0.9 * min(error(penalty=1e-2), error(penalty=1e4))


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (8, 8)])
def test_decomposition_equals_singular_values(rng, shape):
    centred = rng.normal(size=shape)
    centred -= centred.mean(axis=0)
    left, eigenvalues, right = decomposed(centred)
    rank = min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(np.sqrt(eigenvalues), np.linalg.svd(centred, compute_uv=False)[:rank])
    np.testing.assert_allclose(left * np.sqrt(eigenvalues) @ right.T, centred, atol=1e-10)
    np.testing.assert_allclose(left.T @ left, np.eye(rank), atol=1e-10)
    np.testing.assert_allclose(right.T @ right, np.eye(rank), atol=1e-10)
