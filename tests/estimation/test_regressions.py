import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge, RidgeCV

from itembank.estimation.regressions import (
    RELATIVE_PENALTIES,
    blocks,
    completed,
    decomposed,
    predict_factor,
    predict_ridge,
    predict_task_mean_eb,
)
from itembank.irt.linear_gaussian import FactorModel, fit_factor_model


def problem(rng, n_train=40, n_columns=12, n_targets=3, n_new=6):
    """Binary responses whose scores depend on them, away from 0 and 1 so that no prediction is clipped."""
    train, new = (rng.random((n, n_columns)).round() for n in (n_train, n_new))
    scores = 0.5 + (train - 0.5) @ rng.normal(0.0, 0.02, (n_columns, n_targets))
    return train, scores + rng.normal(size=scores.shape) * np.geomspace(0.001, 0.2, n_targets), new


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_given_penalty_and_leave_one_out_choice_equal_sklearn(rng, shape):
    train, scores, new = problem(rng, *shape)
    expected = Ridge(alpha=2.5).fit(train, scores).predict(new)
    np.testing.assert_allclose(predict_ridge(train, scores, new, penalty=2.5), expected, atol=1e-10)
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


def test_columns_and_scenarios_that_add_nothing_are_left_out(rng):
    train, scores, new = problem(rng)
    alone = predict_ridge(train, scores, new, column_weights=np.ones(12))
    named = predict_ridge(train, scores, new, column_weights=np.ones(12), scenario_index=np.full(12, 4))
    np.testing.assert_array_equal(alone, named)
    train, scores, new = problem(rng)
    weights = rng.uniform(0.5, 2.0, 12)
    weights[5:] = 0.0
    new[0, :5] = np.nan
    found = predict_ridge(train, scores, new, column_weights=weights)
    kept = predict_ridge(train[:, :5], scores, new[1:, :5], column_weights=weights[:5])
    np.testing.assert_allclose(found[1:], kept, atol=1e-12)
    rest = predict_ridge(train[:, 5:], scores, new[:1, 5:], column_weights=np.ones(7))
    np.testing.assert_allclose(found[:1], rest, atol=1e-12)


def test_drawing_to_weights_helps_few_models_and_the_choice_beats_the_largest_and_the_smallest_penalty(rng):
    ability = rng.normal(size=(260, 1))
    responses = (rng.random((260, 60)) < 1.0 / (1.0 + np.exp(-ability - rng.normal(size=60)))).astype(float)
    truth = 1.0 / (1.0 + np.exp(-ability))

    def error(n_models, **choice):
        found = predict_ridge(responses[:n_models], truth[:n_models], responses[60:], **choice)
        return np.abs(found - truth[60:]).mean()

    assert error(20, column_weights=np.ones(60)) < 0.9 * error(20)
    assert error(60) < 0.9 * min(error(60, penalty=1e-2), error(60, penalty=1e4))


def test_each_pattern_of_missing_items_is_its_own_regression(rng):
    train, scores, new = problem(rng)
    new[1, :4] = np.nan
    new[3, 6:] = np.nan
    new[4, :4] = np.nan
    found = predict_ridge(train, scores, new, penalty=1.0)
    for row, kept in ((0, slice(None)), (1, slice(4, None)), (3, slice(0, 6)), (4, slice(4, None))):
        expected = Ridge(alpha=1.0).fit(train[:, kept], scores).predict(new[row : row + 1, kept])
        np.testing.assert_allclose(found[row], expected[0], atol=1e-10)


def test_models_without_a_score_or_answer_do_no_harm(rng):
    train, scores, new = problem(rng)
    holed = scores.copy()
    holed[:10, 1] = np.nan
    found = predict_ridge(train, holed, new)
    np.testing.assert_allclose(found[:, [0, 2]], predict_ridge(train, scores[:, [0, 2]], new), atol=1e-12)
    np.testing.assert_allclose(found[:, [1]], predict_ridge(train[10:], scores[10:, [1]], new), atol=1e-12)
    new[2] = np.nan
    np.testing.assert_allclose(predict_ridge(train, scores, new)[2], scores.mean(axis=0))


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


def some_model(rng, n_items=14, n_factors=3):
    return FactorModel(
        rng.uniform(0.3, 0.7, n_items), rng.normal(0.0, 0.05, (n_items, n_factors)), rng.uniform(0.01, 0.05, n_items)
    )


def dense_conditional(model, items, responses, weights):
    """Mean and variance of each weighted sum, from the joint normal distribution of all items."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    cross = covariance[:, items]
    gain = cross @ np.linalg.inv(covariance[np.ix_(items, items)])
    mean = model.mean + gain @ (responses - model.mean[items])
    left = covariance - gain @ cross.T
    return weights.T @ mean, np.diag(weights.T @ left @ weights)


@pytest.mark.parametrize("n_factors", [0, 1, 3])
def test_equals_the_conditional_normal_distribution(rng, n_factors):
    model = some_model(rng, n_factors=n_factors)
    weights = rng.dirichlet(np.ones(14), size=3).T
    positions = np.array([9, 2, 5, 11, 0])
    responses = rng.random((6, 5))
    responses[1, 2] = responses[4, 0] = responses[4, 3] = np.nan
    responses[5] = np.nan
    found = predict_factor(model, positions, weights, responses)
    for row in range(6):
        seen = ~np.isnan(responses[row])
        value, variance = dense_conditional(model, positions[seen], responses[row, seen], weights)
        np.testing.assert_allclose(found.value[row], value, atol=1e-12)
        np.testing.assert_allclose(found.variance[row], variance, atol=1e-12)


def test_all_items_observed_give_the_score_itself_and_a_column_that_nobody_answered_is_as_if_absent(rng):
    model, weights, responses = some_model(rng), np.full((14, 1), 1.0 / 14.0), rng.random((4, 14)).round()
    found = predict_factor(model, np.arange(14), weights, responses)
    np.testing.assert_allclose(found.value[:, 0], responses.mean(axis=1))
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-15)
    model, weights, responses = some_model(rng), np.full((14, 1), 1.0 / 14.0), rng.random((4, 6))
    positions = np.array([1, 3, 4, 8, 9, 13])
    responses[:, 2] = np.nan
    found = predict_factor(model, positions, weights, responses)
    kept = np.delete(np.arange(6), 2)
    expected = predict_factor(model, positions[kept], weights, responses[:, kept])
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.variance, expected.variance)


def test_standardised_errors_have_variance_one_where_the_model_is_true(rng):
    model = some_model(rng, n_items=120, n_factors=2)
    factors = rng.normal(size=(4000, 2))
    responses = model.mean + factors @ model.loadings.T + rng.normal(size=(4000, 120)) * np.sqrt(model.noise)
    weights = np.full((120, 1), 1.0 / 120.0)
    found = predict_factor(model, np.arange(30), weights, responses[:, :30])
    z = (found.value - responses @ weights) / np.sqrt(found.variance)
    assert abs(z.mean()) < 4.0 / np.sqrt(4000)
    assert abs(z.var() - 1.0) < 4.0 * np.sqrt(2.0 / 4000)


def test_a_fitted_model_beats_the_plain_mean(rng):
    ability = rng.normal(size=(300, 1))
    difficulty = rng.normal(0.0, 1.5, 150)
    responses = (rng.random((300, 150)) < 1.0 / (1.0 + np.exp(-1.5 * ability + difficulty))).astype(float)
    weights = np.full((150, 1), 1.0 / 150.0)
    model = fit_factor_model(responses[:200])
    positions = np.arange(20)
    truth, new = responses[200:].mean(axis=1), responses[200:, :20]
    error = np.abs(predict_factor(model, positions, weights, new).value[:, 0] - truth).mean()
    assert error < 0.8 * np.abs(new.mean(axis=1) - truth).mean()


def test_misfit_is_the_squared_mahalanobis_distance_by_item(rng):
    model, positions = some_model(rng), np.array([9, 2, 5, 11, 0])
    responses = rng.random((6, 5))
    responses[1, 2] = responses[4, 0] = np.nan
    responses[5] = np.nan
    found = predict_factor(model, positions, np.full((14, 1), 1.0 / 14.0), responses).misfit
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    for row in range(5):
        seen = ~np.isnan(responses[row])
        items = positions[seen]
        distance = responses[row, seen] - model.mean[items]
        dense = distance @ np.linalg.solve(covariance[np.ix_(items, items)], distance) / items.size
        np.testing.assert_allclose(found[row], dense, rtol=1e-10)
    assert np.isnan(found[5])


def test_misfit_is_one_on_average_where_the_model_is_true(rng):
    model, n_models = some_model(rng, n_items=40), 4000
    noise = rng.standard_normal((n_models, 40)) * np.sqrt(model.noise)
    responses = model.mean + rng.standard_normal((n_models, 3)) @ model.loadings.T + noise
    found = predict_factor(model, np.arange(40), np.full((40, 1), 1.0 / 40.0), responses).misfit
    # a chi-square of 40 degrees over 40: standard deviation sqrt(2 / 40), its mean over 4,000 models within 6 errors
    assert abs(found.mean() - 1.0) < 6.0 * np.sqrt(2.0 / 40.0 / n_models)
    np.testing.assert_allclose(found.std(), np.sqrt(2.0 / 40.0), rtol=0.1)


SCORES = np.array([[0.2, 0.6, 0.4], [0.4, np.nan, 0.5], [0.6, 0.8, 0.7]])
SCENARIO = np.array([0, 1, 0, 1, 1, 1])
NEW = np.array([[1.0, 1.0, 1.0, 0.0, 1.0, 1.0], [0.0, np.nan, np.nan, np.nan, np.nan, np.nan]])


def test_empirical_bayes_is_the_mean_of_the_beta_posterior():
    strength, weights = 5.0, np.array([0.25, 0.75])
    found = predict_task_mean_eb(SCORES, NEW, scenario_index=SCENARIO, scenario_weights=weights, strength=strength)
    expected = np.empty((2, 2))
    for model in range(2):
        for scenario, mean in enumerate((0.4, 0.7)):
            own = NEW[model, scenario == SCENARIO]
            own = own[~np.isnan(own)]
            right, wrong = own.sum(), own.size - own.sum()
            expected[model, scenario] = stats.beta(strength * mean + right, strength * (1.0 - mean) + wrong).mean()
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-12)
    np.testing.assert_allclose(found[:, 2], expected @ weights)
    found = predict_task_mean_eb(SCORES, NEW, scenario_index=SCENARIO, scenario_weights=np.array([0.5, 0.5]))
    np.testing.assert_allclose(found[0, :2], [(2.0 + 2.0) / 7.0, (3.0 + 3.5) / 9.0])
    np.testing.assert_allclose(found[1, :2], [(0.0 + 2.0) / 6.0, 0.7])  # nothing of the second: its mean
    scores = SCORES.copy()
    scores[:, 1] = np.nan
    found = predict_task_mean_eb(scores, NEW, scenario_index=SCENARIO, scenario_weights=np.array([1.0, 0.0]))
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_allclose(found[:, 2], found[:, 0])


ESTIMATORS = {
    "ridge": predict_ridge,
    "ridge to weights": lambda *known: predict_ridge(*known, column_weights=np.ones(known[0].shape[1])),
}


def gappy_problem(rng, n_train=30, n_new=6):
    ability = rng.uniform(0.1, 0.9, (n_train + n_new, 1))
    responses = (rng.random((n_train + n_new, 10)) < ability).astype(float)
    scores = np.hstack([ability, ability**2])
    return responses[:n_train], scores[:n_train], responses[n_train:]


def test_additive_data_are_completed_exactly_and_what_nobody_answered_by_means():
    item, model = np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.1, 0.2, -0.1])
    whole = item + model[:, None]
    holed = whole.copy()
    holed[0, 2] = np.nan  # a model without effect: the item's mean over the others is all there is
    found = completed(holed)
    known = ~np.isnan(holed)
    np.testing.assert_array_equal(found[known], whole[known])
    mean = np.array([whole[:, 0].mean(), whole[:, 1].mean(), whole[1:, 2].mean()])
    assert found[0, 2] == pytest.approx(mean[2] + (whole[0, :2] - mean[:2]).mean())
    responses = np.array([[1.0, np.nan, 0.0], [0.0, np.nan, 1.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(completed(responses), [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]])


def test_blocks_cover_every_new_model_and_known_target_once(rng):
    scores, new = rng.random((8, 4)), rng.random((9, 5))
    scores[:3, 1] = scores[:3, 3] = np.nan
    scores[:, 2] = np.nan
    new[rng.random(new.shape) < 0.3] = np.nan
    count = np.zeros((9, 4), dtype=int)
    for block in blocks(scores, new):
        count[np.ix_(block.new, block.targets)] += 1
        assert not np.isnan(scores[np.ix_(block.train, block.targets)]).any()
        answered = np.zeros(5, dtype=bool)
        answered[block.columns] = True
        np.testing.assert_array_equal(~np.isnan(new[block.new]), np.tile(answered, (block.new.size, 1)))
    np.testing.assert_array_equal(count, np.tile([1, 1, 0, 1], (9, 1)))


class EveryEstimator:
    """What tests of estimators inherit, these and those of the rivals'."""

    tolerance = 1e-8

    @pytest.mark.parametrize("n_train", [1, 2, 3, 6])
    def test_few_models_give_finite_scores(self, rng, estimator, n_train):
        train, scores, new = gappy_problem(rng, n_train=n_train)
        new[0] = np.nan
        new[1, :9] = np.nan
        found = estimator(train, scores, new)
        assert found.shape == (6, 2)
        assert np.all((found >= 0.0) & (found <= 1.0))
        np.testing.assert_allclose(found[0], scores.mean(axis=0))

    def test_columns_that_say_nothing(self, rng, estimator):
        train, scores, new = gappy_problem(rng)
        found = estimator(np.ones_like(train), scores, np.ones_like(new))
        np.testing.assert_allclose(found, np.tile(scores.mean(axis=0), (6, 1)), atol=0.02)

    def test_a_target_that_nobody_has_is_not_a_number(self, rng, estimator):
        train, scores, new = gappy_problem(rng)
        holed = np.column_stack([scores, np.full(30, np.nan)])
        found = estimator(train, holed, new)
        assert np.isnan(found[:, 2]).all()
        np.testing.assert_allclose(found[:, :2], estimator(train, scores, new), atol=1e-12)

    def test_other_new_models_change_nothing(self, rng, estimator):
        train, scores, new = gappy_problem(rng)
        train[rng.random(train.shape) < 0.1] = np.nan
        new[rng.random(new.shape) < 0.2] = np.nan
        together = estimator(train, scores, new)
        for row in range(6):
            np.testing.assert_allclose(estimator(train, scores, new[[row]])[0], together[row], atol=1e-12)

    def test_order_of_models_and_columns_does_not_matter(self, rng, estimator):
        train, scores, new = gappy_problem(rng)
        train = np.clip(train + rng.normal(0.0, 0.01, train.shape), 0.0, 1.0)  # no ties of distance
        rows, columns = rng.permutation(30), rng.permutation(10)
        found = estimator(train[rows][:, columns], scores[rows], new[:, columns])
        np.testing.assert_allclose(found, estimator(train, scores, new), atol=self.tolerance)

    def test_inputs_are_left_alone_and_no_new_models_is_fine(self, rng, estimator):
        known = gappy_problem(rng)
        known[0][2, 3] = known[1][1, 1] = known[2][0, 0] = np.nan
        before = [array.copy() for array in known]
        estimator(*known)
        for array, copy in zip(known, before, strict=True):
            np.testing.assert_array_equal(array, copy)
        assert estimator(*known[:2], known[2][:0]).shape == (0, 2)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
class TestEstimators(EveryEstimator):
    pass
