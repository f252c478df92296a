import dataclasses
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import ConvergenceWarning
from itembank.estimation.regressions import predict_ridge, predict_task_mean_eb
from itembank_studies.prediction.prepared import (
    HeldOut,
    predict_item_model,
    predict_ridge_tasks,
    predict_task_mean,
    task_means,
)
from tests.studies.prediction.simulated import MIRT, make_responses

RESPONSES = make_responses()


def test_task_means_by_hand():
    values = np.array([[0.1, 0.3, 0.5, 0.7], [1.0, 0.0, 9.0, 1.0]])
    observed = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    found = task_means(values, observed, np.array([0, 0, 2, 2]), 3)
    np.testing.assert_allclose(found, [[0.2, np.nan, 0.6], [0.5, np.nan, 1.0]])
    assert np.isnan(task_means(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0, dtype=int), 3)).all()


def test_the_mean_of_a_task_is_drawn_to_the_training_models(rng):
    """WILD eq. 15 by hand: mu = (0.5, 0.8), lambda = 5; task 0 has answers 1, 1, 0, task 1 none."""
    answers, train = np.array([[1.0, 1.0, 0.0]]), np.array([[0.4, 0.7], [0.6, 0.9]])
    task = np.zeros(3, dtype=int)
    np.testing.assert_allclose(predict_task_mean(task, answers, train, strength=5.0), [[4.5 / 8.0, 0.8]])
    np.testing.assert_allclose(predict_task_mean(task, answers, train), [[2.0 / 3.0, 0.8]])
    scores, answers = rng.random((7, 3)), (rng.random((4, 9)) < 0.6).astype(float)
    answers[rng.random(answers.shape) < 0.3] = np.nan
    task = np.repeat([0, 1, 2], 3)
    expected = predict_task_mean_eb(
        np.column_stack([scores, scores.mean(axis=1)]),
        answers,
        scenario_index=task,
        scenario_weights=np.full(3, 1.0 / 3.0),
    )
    np.testing.assert_allclose(predict_task_mean(task, answers, scores, strength=5.0), expected[:, :3])


def test_each_model_can_have_its_own_items(rng):
    answers, train = (rng.random((3, 5)) < 0.5).astype(float), rng.random((6, 4))
    tasks = rng.integers(4, size=(3, 5))
    found = predict_task_mean(tasks, answers, train, strength=2.0)
    for row in range(3):
        own = predict_task_mean(tasks[row], answers[[row]], train, strength=2.0)
        np.testing.assert_allclose(found[row], own[0])
    responses = (rng.random((6, 20)) < 0.5).astype(float)
    items = np.array([rng.permutation(20)[:5] for _ in range(3)])
    items[0, 3:] = -1
    ridge = predict_ridge_tasks(items, answers, responses, train)
    np.testing.assert_allclose(ridge[0], predict_ridge(responses[:, items[0, :3]], train, answers[:1, :3])[0])
    np.testing.assert_allclose(ridge[2], predict_ridge(responses[:, items[2]], train, answers[[2]])[0])


@pytest.fixture(scope="module")
def calibration():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 18 models bound no slope
        return fit_item_model(RESPONSES.take(models=np.arange(18)), MIRT.spec(2))


def test_item_model_predictions_are_means_at_the_posterior_mode(calibration):
    """Against an independent optimiser, for items common to all and for each model's own."""
    items, held_out = np.arange(0, 40, 3), np.arange(100, 144)
    task = np.repeat([0, 1], [20, 24])
    new = RESPONSES.responses[18:21]
    target = HeldOut(held_out, task, 2, np.ones((3, held_out.size)))
    found = predict_item_model(calibration, items, new[:, items], target)
    parameters, prior = calibration.parameters, calibration.prior
    precision = np.linalg.inv(prior.covariance)
    for row in range(3):

        def loss(theta, row=row):
            x = parameters.loadings[items] @ theta + parameters.intercept[items]
            sign = 2.0 * new[row, items] - 1.0
            gap = theta - prior.mean
            return -log_expit(sign * x).sum() + 0.5 * gap @ precision @ gap

        theta = minimize(loss, prior.mean, tol=1e-10).x
        p = expit(parameters.loadings[held_out] @ theta + parameters.intercept[held_out])
        np.testing.assert_allclose(found[row], [p[:20].mean(), p[20:].mean()], atol=1e-5)
    own = np.stack([items, items, np.where(np.arange(items.size) < 5, items, -1)])
    answers = np.where(own >= 0, np.take_along_axis(new, np.maximum(own, 0), axis=1), np.nan)
    separate = predict_item_model(calibration, own, answers, target)
    np.testing.assert_allclose(separate[:2], found[:2], atol=1e-8)
    few = predict_item_model(calibration, items[:5], new[:, items[:5]], target)
    np.testing.assert_allclose(separate[2], few[2], atol=1e-8)


def test_a_count_is_so_many_answers():
    """k right of n to one item say what n answers to items like it say: by hand, and for each model's own items."""
    counts = make_responses(kind="count")
    options = {**MIRT.options, "family": "binomial"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 18 models bound no slope
        calibration = fit_item_model(
            counts.take(models=np.arange(18)), dataclasses.replace(MIRT, options=options).spec(2)
        )
    items, new, trials = np.array([1, 30]), counts.responses[[20]], counts.n_trials[[20]]
    target = HeldOut(np.arange(100, 144), np.zeros(44, dtype=int), 1, np.ones((1, 44)))
    found = predict_item_model(calibration, items, new[:, items], target, n_trials=trials[:, items].astype(float))
    repeated = np.repeat(items, trials[0, items])
    right = np.concatenate([np.arange(n) < round(y * n) for y, n in zip(new[0, items], trials[0, items], strict=True)])
    apart = predict_item_model(calibration, repeated, right[None].astype(float), target)
    np.testing.assert_allclose(found, apart, atol=1e-7)
    own = predict_item_model(calibration, items[None], new[:, items], target, n_trials=trials[:, items].astype(float))
    np.testing.assert_allclose(own, found, atol=1e-9)


def test_predictions_are_over_what_the_model_answered(calibration):
    held_out, observed = np.arange(100, 144), np.ones((1, 44))
    observed[0, 1:] = 0.0
    target = HeldOut(held_out, np.zeros(44, dtype=int), 1, observed)
    alone = HeldOut(held_out[:1], np.zeros(1, dtype=int), 1, np.ones((1, 1)))
    answers = RESPONSES.responses[[20]][:, :9]
    found = predict_item_model(calibration, np.arange(9), answers, target)
    np.testing.assert_allclose(found, predict_item_model(calibration, np.arange(9), answers, alone))
