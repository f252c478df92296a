"""How missing responses and scores split a regression into complete ones, and what every estimator does with few."""

import numpy as np
import pytest

from itembank.estimation.regressions import blocks, completed, predict_ridge, predict_task_mean

ESTIMATORS = {
    "task-mean": predict_task_mean,
    "ridge": predict_ridge,
    "ridge to weights": lambda *known: predict_ridge(*known, column_weights=np.ones(known[0].shape[1])),
}


def problem(rng, n_train=30, n_new=6):
    ability = rng.uniform(0.1, 0.9, (n_train + n_new, 1))
    responses = (rng.random((n_train + n_new, 10)) < ability).astype(float)
    scores = np.hstack([ability, ability**2])
    return responses[:n_train], scores[:n_train], responses[n_train:]


def test_additive_data_are_completed_exactly():
    item, model = np.array([0.2, 0.4, 0.6]), np.array([0.0, 0.1, 0.2, -0.1])
    whole = item + model[:, None]
    holed = whole.copy()
    holed[0, 2] = np.nan  # a model without effect: the item's mean over the others is all there is
    found = completed(holed)
    known = ~np.isnan(holed)
    np.testing.assert_array_equal(found[known], whole[known])
    mean = np.array([whole[:, 0].mean(), whole[:, 1].mean(), whole[1:, 2].mean()])
    assert found[0, 2] == pytest.approx(mean[2] + (whole[0, :2] - mean[:2]).mean())


def test_columns_and_models_without_responses_do_no_harm():
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
        train, scores, new = problem(rng, n_train=n_train)
        new[0] = np.nan
        new[1, :9] = np.nan
        found = estimator(train, scores, new)
        assert found.shape == (6, 2)
        assert np.all((found >= 0.0) & (found <= 1.0))
        np.testing.assert_allclose(found[0], scores.mean(axis=0))

    def test_columns_that_say_nothing(self, rng, estimator):
        train, scores, new = problem(rng)
        found = estimator(np.ones_like(train), scores, np.ones_like(new))
        np.testing.assert_allclose(found, np.tile(scores.mean(axis=0), (6, 1)), atol=0.02)

    def test_a_target_that_nobody_has_is_not_a_number(self, rng, estimator):
        train, scores, new = problem(rng)
        holed = np.column_stack([scores, np.full(30, np.nan)])
        found = estimator(train, holed, new)
        assert np.isnan(found[:, 2]).all()
        np.testing.assert_allclose(found[:, :2], estimator(train, scores, new), atol=1e-12)

    def test_other_new_models_change_nothing(self, rng, estimator):
        train, scores, new = problem(rng)
        train[rng.random(train.shape) < 0.1] = np.nan
        new[rng.random(new.shape) < 0.2] = np.nan
        together = estimator(train, scores, new)
        for row in range(6):
            np.testing.assert_allclose(estimator(train, scores, new[[row]])[0], together[row], atol=1e-12)

    def test_order_of_models_and_columns_does_not_matter(self, rng, estimator):
        train, scores, new = problem(rng)
        train = np.clip(train + rng.normal(0.0, 0.01, train.shape), 0.0, 1.0)  # no ties of distance
        rows, columns = rng.permutation(30), rng.permutation(10)
        found = estimator(train[rows][:, columns], scores[rows], new[:, columns])
        np.testing.assert_allclose(found, estimator(train, scores, new), atol=self.tolerance)

    def test_inputs_are_left_alone_and_no_new_models_is_fine(self, rng, estimator):
        known = problem(rng)
        known[0][2, 3] = known[1][1, 1] = known[2][0, 0] = np.nan
        before = [array.copy() for array in known]
        estimator(*known)
        for array, copy in zip(known, before, strict=True):
            np.testing.assert_array_equal(array, copy)
        assert estimator(*known[:2], known[2][:0]).shape == (0, 2)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
class TestEstimators(EveryEstimator):
    pass
