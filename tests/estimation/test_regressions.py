import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from sklearn.linear_model import Ridge, RidgeCV

from itembank.bank.banks import CONTENT_ORDER
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates, error_inflation, with_sampling_error
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import METHODS, PIRT, Auto, SampleMean, Stacked, Weighted
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.estimation.observations import Observations
from itembank.estimation.regressions import (
    RELATIVE_PENALTIES,
    blocks,
    combined,
    completed,
    decomposed,
    predict_factor,
    predict_ridge,
    predict_task_mean_eb,
    reconciled,
    stack_weights,
)
from itembank.estimation.trials import Expectations, Trial
from itembank.irt.linear_gaussian import FactorModel, fit_factor_model
from itembank.numerics.intervals import calibrated_half_widths
from tests.estimation.simulated import having, shared_bank


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
    weights, scenario, penalty = rng.uniform(0.5, 2.0, shape[1]), np.arange(shape[1]) % 3, 1.5
    roots = np.sqrt(weights / weights.mean())
    prior = np.diag(roots**2) + 30.0**2 * np.outer(roots, roots) / (roots @ roots)
    for name in range(3):
        own = roots * (scenario == name)
        prior += 2.0**2 * np.outer(own, own) / (own @ own)
    centre, mean = train.mean(axis=0), scores.mean(axis=0)
    a, b = train - centre, new - centre
    gain = b @ prior @ a.T @ np.linalg.inv(a @ prior @ a.T + penalty * np.eye(shape[0]))
    expected = mean + gain @ (scores - mean)
    found = predict_ridge(train, scores, new, penalty=penalty, column_weights=weights, scenario_index=scenario)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_columns_and_scenarios_that_add_nothing_are_left_out(rng):
    train, scores, new = problem(rng)
    alone = predict_ridge(train, scores, new, column_weights=np.ones(12))
    named = predict_ridge(train, scores, new, column_weights=np.ones(12), scenario_index=np.full(12, 4))
    np.testing.assert_array_equal(alone, named)
    weights = rng.uniform(0.5, 2.0, 12) * (np.arange(12) < 5)
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
    new[1, :4] = new[3, 6:] = new[4, :4] = np.nan
    found = predict_ridge(train, scores, new, penalty=1.0)
    for row, kept in ((0, slice(None)), (1, slice(4, None)), (3, slice(0, 6)), (4, slice(4, None))):
        expected = Ridge(alpha=1.0).fit(train[:, kept], scores).predict(new[row : row + 1, kept])
        np.testing.assert_allclose(found[row], expected[0], atol=1e-10)


def test_models_without_a_score_or_answer_do_no_harm(rng):
    train, scores, new = problem(rng)
    holed = np.where((np.arange(40) < 10)[:, None] & (np.arange(3) == 1), np.nan, scores)
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
    for one in (left, right):
        np.testing.assert_allclose(one.T @ one, np.eye(rank), atol=1e-10)


def some_model(rng, n_items=14, n_factors=3):
    loadings = rng.normal(0.0, 0.05, (n_items, n_factors))
    return FactorModel(rng.uniform(0.3, 0.7, n_items), loadings, rng.uniform(0.01, 0.05, n_items))


def dense_conditional(model, items, responses, weights):
    """Mean and variance of each weighted sum, from the joint normal distribution of all items."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    cross = covariance[:, items]
    gain = cross @ np.linalg.inv(covariance[np.ix_(items, items)])
    mean, left = model.mean + gain @ (responses - model.mean[items]), covariance - gain @ cross.T
    return weights.T @ mean, np.diag(weights.T @ left @ weights)


@pytest.mark.parametrize("n_factors", [0, 1, 3])
def test_equals_the_conditional_normal_distribution(rng, n_factors):
    model = some_model(rng, n_factors=n_factors)
    weights, positions = rng.dirichlet(np.ones(14), size=3).T, np.array([9, 2, 5, 11, 0])
    responses = rng.random((6, 5))
    responses[[1, 4, 4], [2, 0, 3]] = responses[5] = np.nan
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
    responses, positions, kept = rng.random((4, 6)), np.array([1, 3, 4, 8, 9, 13]), np.delete(np.arange(6), 2)
    responses[:, 2] = np.nan
    found = predict_factor(model, positions, weights, responses)
    expected = predict_factor(model, positions[kept], weights, responses[:, kept])
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.variance, expected.variance)


def test_standardised_errors_have_variance_one_where_the_model_is_true(rng):
    model, factors = some_model(rng, n_items=120, n_factors=2), rng.normal(size=(4000, 2))
    responses = model.mean + factors @ model.loadings.T + rng.normal(size=(4000, 120)) * np.sqrt(model.noise)
    weights = np.full((120, 1), 1.0 / 120.0)
    found = predict_factor(model, np.arange(30), weights, responses[:, :30])
    z = (found.value - responses @ weights) / np.sqrt(found.variance)
    assert abs(z.mean()) < 4.0 / np.sqrt(4000)
    assert abs(z.var() - 1.0) < 4.0 * np.sqrt(2.0 / 4000)


def test_a_fitted_model_beats_the_plain_mean(rng):
    ability, difficulty = rng.normal(size=(300, 1)), rng.normal(0.0, 1.5, 150)
    responses = (rng.random((300, 150)) < 1.0 / (1.0 + np.exp(-1.5 * ability + difficulty))).astype(float)
    model, weights = fit_factor_model(responses[:200]), np.full((150, 1), 1.0 / 150.0)
    truth, new, positions = responses[200:].mean(axis=1), responses[200:, :20], np.arange(20)
    error = np.abs(predict_factor(model, positions, weights, new).value[:, 0] - truth).mean()
    assert error < 0.8 * np.abs(new.mean(axis=1) - truth).mean()


def test_misfit_is_the_squared_mahalanobis_distance_by_item(rng):
    model, positions, responses = some_model(rng), np.array([9, 2, 5, 11, 0]), rng.random((6, 5))
    responses[[1, 4], [2, 0]] = responses[5] = np.nan
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
    scores = np.where(np.arange(3) == 1, np.nan, SCORES)
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
    return responses[:n_train], np.hstack([ability, ability**2])[:n_train], responses[n_train:]


def test_additive_data_are_completed_exactly_and_what_nobody_answered_by_means():
    item, model = np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.1, 0.2, -0.1])
    whole = item + model[:, None]
    holed = whole.copy()
    holed[0, 2] = np.nan  # a model without effect: the item's mean over the others is all there is
    found, known = completed(holed), ~np.isnan(holed)
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
        answered = np.isin(np.arange(5), np.arange(5)[block.columns])
        np.testing.assert_array_equal(~np.isnan(new[block.new]), np.tile(answered, (block.new.size, 1)))
    np.testing.assert_array_equal(count, np.tile([1, 1, 0, 1], (9, 1)))


class EveryEstimator:
    """What tests of estimators inherit, these and those of the rivals'."""

    tolerance = 1e-8

    @pytest.mark.parametrize("n_train", [1, 2, 3, 6])
    def test_few_models_give_finite_scores(self, rng, estimator, n_train):
        train, scores, new = gappy_problem(rng, n_train=n_train)
        new[0] = new[1, :9] = np.nan
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
        found = estimator(train, np.column_stack([scores, np.full(30, np.nan)]), new)
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


pytestmark = pytest.mark.usefixtures("few_folds")

SEEN = np.arange(12)
"""Items that are answered: four of each scenario."""
SINGLES = {name: kind() for name, kind in METHODS.kinds.items() if kind not in {Stacked, Auto}}
MODEL = 8


@pytest.fixture(scope="module")
def bank():
    return dataclasses.replace(shared_bank())  # with folds of its own, as few as those of `changed`


@pytest.fixture(scope="module")
def changed(bank):
    """The same bank, but what one model did on items that are not seen is put in another order.

    Its mean, which decides the folds, stays, and so does the order of content, by which chance decides.
    """
    hidden = bank.responses.responses[MODEL, 12:]
    other = having(bank, (MODEL, slice(12, None)), np.roll(hidden, 1))
    assert np.sum(other.responses.responses[MODEL, 12:] != hidden) >= 6
    other.cache.remember(CONTENT_ORDER, lambda: bank.content_order)
    return other


def answered(bank):
    weights = bank.targets.weights[SEEN]
    return Observations.of_items(bank.responses.responses[:, SEEN], SEEN, weights / weights.sum(), is_random=True)


def tried(bank, spec):
    return try_methods(Asked(bank, answered(bank)), spec.members).by(spec)


@pytest.mark.parametrize("spec", SINGLES.values(), ids=SINGLES)
def test_what_a_model_did_on_items_not_seen_does_not_change_its_own_estimate(bank, changed, spec):
    assert [fold.held_out.tolist() for fold in folds(changed)] == [fold.held_out.tolist() for fold in folds(bank)]
    before, after = tried(bank, spec), tried(changed, spec)
    np.testing.assert_allclose(after.value[MODEL], before.value[MODEL], atol=1e-12)
    np.testing.assert_allclose(after.standard_error[MODEL], before.standard_error[MODEL], atol=1e-12)
    assert np.any(np.abs(after.truth[MODEL] - before.truth[MODEL]) > 0.01)


@pytest.mark.parametrize("name", ["p-irt", "factor", "ridge", "task-mean"])
def test_the_check_above_catches_a_leak(bank, changed, name):
    """With fits that saw every model, what one did on the other items does change its estimate."""
    values = []
    for each in (bank, changed):
        leaky, whole = dataclasses.replace(each), dataclasses.replace(each)
        if name == "p-irt":  # the made-up bank's parameters do not come from its responses: take those of a fit
            other = next(fold for fold in folds(each) if MODEL not in fold.held_out)  # that it took part in
            whole = dataclasses.replace(each, calibration=other.bank.calibration)
        seen = (dataclasses.replace(fold, make_bank=lambda whole=whole: whole) for fold in folds(each))
        leaky.cache.memory["folds"] = tuple(seen)
        values.append(tried(leaky, SINGLES[name]).value[MODEL])
    assert np.max(np.abs(values[1] - values[0])) > 1e-6


def test_estimates_are_those_of_banks_that_have_not_seen_the_model_and_members_together_what_each_is_alone(bank):
    found = tried(bank, PIRT())
    for fold in folds(bank):
        new = bank.responses.take(models=fold.held_out, items=SEEN)
        by_hand = estimate(fold.bank, new, method=PIRT(), interval="model-based")
        np.testing.assert_allclose(found.value[fold.held_out], by_hand.value, atol=1e-12)
        np.testing.assert_allclose(found.standard_error[fold.held_out], by_hand.standard_error, atol=1e-12)
    np.testing.assert_allclose(found.truth, bank.targets.with_overall(bank.scenario_scores))
    np.testing.assert_array_equal(found.error, found.value - found.truth)
    specs = (PIRT(), SampleMean(), Weighted())
    together = try_methods(Asked(bank, answered(bank)), specs)
    for number, spec in enumerate(specs):
        alone = tried(bank, spec)
        np.testing.assert_array_equal(together.single(number).value, alone.value)
        np.testing.assert_array_equal(together.single(number).standard_error, alone.standard_error)
    for number, fold in enumerate(folds(bank)):
        np.testing.assert_array_equal(together.fold[fold.held_out], number)


def made_up(rng, n_models=24):
    """Two methods' errors in four folds."""
    truth = rng.random((n_models, 2))
    values = truth + np.array([0.02, 0.05])[:, None, None] * rng.standard_normal((2, n_models, 2))
    fold = np.arange(n_models) % 4
    certain = np.zeros(truth.shape)  # nothing is moved to agree with the overall score
    expected = Expectations(truth, certain, truth, certain, truth, np.ones(truth.shape))
    return Trial(truth, values, expected, fold, np.ones(1))


def test_stack_weights_of_a_fold_come_from_the_others(rng):
    spec, found = Stacked((PIRT(), Weighted())), made_up(rng)
    inside, truth = found.fold == 2, found.truth.copy()
    truth[inside] += rng.standard_normal(truth[inside].shape)
    other = dataclasses.replace(found, truth=truth)
    np.testing.assert_array_equal(other.by(spec).value == found.by(spec).value, np.tile(inside[:, None], (1, 2)))
    assert not np.allclose(other.weights(spec), found.weights(spec))


def test_stacked_is_between_its_members_and_better_than_the_worse(rng):
    spec, found = Stacked((PIRT(), Weighted())), made_up(rng, 400)
    stacked = found.by(spec)
    assert np.all(stacked.value >= found.values.min(axis=0) - 1e-12)
    assert np.all(stacked.value <= found.values.max(axis=0) + 1e-12)
    errors = np.mean((found.values - found.truth) ** 2, axis=1)
    assert np.all(np.mean(stacked.error**2, axis=0) < errors[0])  # independent errors: the mean is better than the best
    np.testing.assert_allclose(found.weights(spec)[0], 1.0 / (1.0 + (0.02 / 0.05) ** 2), atol=0.04)


def objective(weights, errors, prior_models):
    """What the weights minimise: ``w' (E'E + k D) w``, D the diagonal of ``E'E / n_models``."""
    gram = errors.T @ errors
    return weights @ (gram + prior_models * np.diag(np.diag(gram)) / errors.shape[0]) @ weights


def correlated_errors(rng, n_models=40, n_members=5):
    common = rng.normal(size=(n_models, 1))
    return 0.03 * (common + rng.uniform(0.3, 2.0, n_members) * rng.normal(size=(n_models, n_members)))


@pytest.mark.parametrize("prior_models", [0.01, 10.0, 1000.0])
@pytest.mark.parametrize("n_models", [3, 12, 200])
def test_weights_are_those_of_a_general_solver(rng, n_models, prior_models):
    errors = correlated_errors(rng, n_models)
    found = stack_weights(errors, prior_models=prior_models)
    scale = objective(np.full(5, 0.2), errors, prior_models)
    limits = {"bounds": [(0.0, 1.0)] * 5, "constraints": {"type": "eq", "fun": lambda weights: weights.sum() - 1.0}}
    by, start = {"method": "SLSQP", "options": {"ftol": 1e-14, "maxiter": 500}}, np.full(5, 0.2)
    solved = minimize(lambda weights: objective(weights, errors, prior_models) / scale, start, **by, **limits)
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= 0.0)
    assert objective(found, errors, prior_models) / scale <= solved.fun + 1e-7
    np.testing.assert_allclose(found, solved.x, atol=2e-3)


def test_weights_by_closed_forms(rng):
    errors = correlated_errors(rng)
    inverse = 1.0 / np.mean(errors**2, axis=0)
    np.testing.assert_allclose(stack_weights(errors, prior_models=1e8), inverse / inverse.sum(), rtol=1e-4)
    # with two methods, w_1 = (c_22 - c_12) / (c_11 + c_22 - 2 c_12), c of ``E'E + k D``
    errors = np.array([[0.01, -0.04]])
    c = errors.T @ errors + 3.0 * np.diag(errors[0] ** 2)
    first = (c[1, 1] - c[0, 1]) / (c[0, 0] + c[1, 1] - 2.0 * c[0, 1])
    np.testing.assert_allclose(stack_weights(errors, prior_models=3.0), [first, 1.0 - first], rtol=1e-12)


def test_exact_methods_share_the_weight_and_useless_ones_get_next_to_nothing(rng):
    def weights(*columns, n=30, prior_models=10.0):
        """Of methods with errors of these sizes, or with these errors."""
        errors = [one * rng.normal(size=n) if np.isscalar(one) else one for one in columns]
        return stack_weights(np.column_stack(errors), prior_models=prior_models)

    np.testing.assert_allclose(weights(0.02, 0.02, 0.0), [0.0, 0.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(weights(0.0, 0.0, 0.0, 0.0), 0.25)
    # only the penalty tells exact methods apart from none: rounding must not outweigh it
    np.testing.assert_allclose(weights(0.02, 0.0, 0.0), [0.0, 0.5, 0.5], atol=1e-5)
    with_useless = weights(0.02, 0.02, 0.4, n=100, prior_models=20.0)
    assert with_useless[2] < 0.01
    np.testing.assert_allclose(with_useless[:2], 0.5, atol=0.15)
    error = 0.05 * rng.normal(size=200)
    np.testing.assert_allclose(weights(error, -error, 0.03, n=200, prior_models=1e-3), [0.5, 0.5, 0.0], atol=0.01)


def test_what_has_unknown_errors_is_left_out_and_scale_and_order_do_not_matter(rng):
    errors = correlated_errors(rng)
    weights = stack_weights(errors, prior_models=10.0)
    partial = np.column_stack([errors, np.where(np.arange(40) < 25, np.nan, 0.0)])
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), np.append(weights, 0.0))
    partial = errors.copy()
    partial[[3, 7], [0, 4]] = np.nan
    expected = stack_weights(np.delete(errors, [3, 7], axis=0), prior_models=10.0)
    np.testing.assert_allclose(stack_weights(partial, prior_models=10.0), expected)
    np.testing.assert_allclose(stack_weights(np.full((6, 4), np.nan), prior_models=10.0), 0.25)
    np.testing.assert_allclose(stack_weights(1e-6 * errors, prior_models=10.0), weights, atol=1e-6)
    np.testing.assert_allclose(stack_weights(errors[:, ::-1], prior_models=10.0), weights[::-1], atol=1e-6)


def test_combined_by_hand_with_scenarios_that_are_certain_or_unknown():
    values = np.array([[[0.2], [0.4], [np.nan]], [[0.6], [np.nan], [np.nan]], [[0.9], [0.8], [0.5]]])
    weights = np.array([[0.5], [0.25], [0.25]])
    np.testing.assert_allclose(combined(values, weights)[:, 0], [0.1 + 0.15 + 0.225, (0.2 + 0.2) / 0.75, 0.5])
    assert np.isnan(combined(np.array([[[np.nan]], [[0.5]]]), np.array([[1.0], [0.0]])))
    weights, known, lacking = np.array([0.5, 0.5]), np.array([[0.2, 0.4, 0.5]]), np.array([[np.nan, 0.4, 0.5]])
    np.testing.assert_allclose(reconciled(known, np.array([[0.0, 1.0, 1.0]]), weights), [[0.2, 0.8, 0.5]])
    np.testing.assert_array_equal(reconciled(known, np.zeros((1, 3)), weights), known)
    np.testing.assert_array_equal(reconciled(lacking, np.ones((1, 3)), weights), lacking)


def test_reconciled_scenarios_are_the_nearest_that_make_the_overall_score(rng):
    values, variances, weights = rng.random((5, 4)), rng.uniform(0.5, 2.0, size=(5, 4)), np.array([0.5, 0.3, 0.2])
    found = reconciled(values, variances, weights)
    np.testing.assert_array_equal(found[:, -1], values[:, -1])
    np.testing.assert_allclose(found[:, :-1] @ weights, values[:, -1])
    for row, (start, spread) in enumerate(zip(values[:, :-1], variances[:, :-1], strict=True)):
        limit = {"type": "eq", "fun": lambda x, row=row: x @ weights - values[row, -1]}
        wanted = minimize(lambda x, s=start, v=spread: np.sum((x - s) ** 2 / v), start, constraints=[limit], tol=1e-14)
        np.testing.assert_allclose(found[row, :-1], wanted.x, atol=1e-6)


def nested_means(rng, n_known=160, n_models=600):
    """Means of 80 of 400 answers as estimates; scores are known from some that contain them, of a third from all."""
    answers = (rng.random((n_models, 400)) < rng.uniform(0.3, 0.7, (n_models, 1))).astype(float)
    value, known, truth = (answers[:, :n].mean(axis=1, keepdims=True) for n in (80, n_known, 400))
    known[: n_models // 3] = truth[: n_models // 3]
    variance = (1 - n_known / 400) / n_known * known * (1 - known)
    variance[: n_models // 3] = 0.0
    scale = np.sqrt(truth * (1 - truth))
    return PastEstimates(known, value, scale, scale, variance), value - truth


def test_errors_and_intervals_get_the_size_that_they_have_against_full_scores(rng):
    found, true = nested_means(rng)
    raw = found.value - found.truth
    size, raw_size, true_size = (np.sqrt(np.mean(error[200:] ** 2)) for error in (found.error, raw, true))
    assert raw_size < 0.85 * true_size  # (1/80 - 1/160) / (1/80 - 1/400): 0.79
    assert size == pytest.approx(true_size, rel=0.1)
    np.testing.assert_array_equal(found.error[:200], raw[:200])
    half, of_truth = (
        calibrated_half_widths(error, found.scale, np.full((1, 1), 0.5), level=0.95)[0, 0]
        for error in (found.error, true)
    )
    assert half == pytest.approx(of_truth, rel=0.1)
    ratios = true[3:] / found.scale[3:]  # of the first nothing is known
    true[0], found.scale[1:3] = np.nan, 0.0
    np.testing.assert_allclose(error_inflation(true, found.scale), np.sqrt(np.mean(ratios**2)))


def test_exact_truths_leave_errors_as_they_are_and_unknown_ones_unknown(rng):
    found, _ = nested_means(rng, n_known=400)
    np.testing.assert_array_equal(found.error, found.value - found.truth)
    np.testing.assert_array_equal(dataclasses.replace(found, truth_variance=None).error, found.error)
    error, ones = np.array([[np.nan], [3.0], [4.0], [0.0]]), np.ones((4, 1))
    wanted = error * np.sqrt(1.0 + 5.0 / (25.0 / 3.0))
    np.testing.assert_allclose(with_sampling_error(error, 5.0 * ones, ones), wanted)
