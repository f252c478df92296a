import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.calibration.item_model_bias import (
    MINIMUM_FOR_BIAS,
    item_model_bias,
    mean_absolute_error,
    response_variance,
    score_errors,
)
from itembank.errors import DataError
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


def simulated(n_models, n_items, n_dims, seed, *, share_missing=0.0):
    """Responses whose scenarios each ask for their own ability (n_dims > 1) or for the same one."""
    rng = np.random.default_rng(seed)
    scenario = np.arange(n_items) % 3
    theta = rng.normal(size=(n_models, n_dims))
    x = 1.5 * theta[:, scenario % n_dims] + rng.normal(size=n_items)
    responses = (rng.random(x.shape) < 1.0 / (1.0 + np.exp(-x))).astype(float)
    responses[rng.random(x.shape) < share_missing] = np.nan
    return ResponseMatrix.create(responses, scenarios=[("math", "code", "law")[j] for j in scenario])


def test_error_is_the_mean_over_models_of_weighted_mean_differences(rng):
    items = pl.DataFrame(
        {
            "item_id": [str(i) for i in range(12)],
            "scenario": ["a", "b"] * 6,
            "subscenario": ["x", "x", "y"] * 4,
            "weight": rng.random(12),
        }
    )
    targets = ScoreTargets.create(items, within="custom")
    columns = np.array([11, 0, 3, 5, 6, 7, 1, 2])
    responses, predicted = rng.random((5, 8)), rng.random((5, 8))
    responses[rng.random((5, 8)) < 0.3] = np.nan
    hidden = np.array([True, True, False, True, True, True, True, False])
    expected = []
    for j in range(2):
        errors = []
        for model in range(5):
            cells = [
                c
                for c in range(8)
                if hidden[c] and targets.scenario_index[columns[c]] == j and not np.isnan(responses[model, c])
            ]
            if cells:
                weights = targets.weights[columns[cells]]
                predicted_score = np.average(predicted[model, cells], weights=weights)
                errors.append(abs(predicted_score - np.average(responses[model, cells], weights=weights)))
        expected.append(np.mean(errors))
    found = mean_absolute_error(score_errors(responses, predicted, hidden, targets, columns))
    assert_allclose(found, expected)


def test_a_scenario_without_a_hidden_item_is_not_measured():
    targets = ScoreTargets.create(
        pl.DataFrame({"item_id": ["1", "2"], "scenario": ["a", "b"], "subscenario": ["", ""]})
    )
    found = mean_absolute_error(
        score_errors(np.ones((3, 2)), np.zeros((3, 2)), np.array([True, False]), targets, np.arange(2))
    )
    assert_array_equal(found, [1.0, np.nan])


def test_a_true_item_model_leaves_only_the_noise_of_the_hidden_items():
    """With 200 hidden items a scenario the error is about that of a mean of 200 coin flips, E|x| = 0.8 sd."""
    responses = simulated(60, 1200, 1, seed=1)
    targets = ScoreTargets.create(responses.items)
    bias = item_model_bias(responses, Variational(), targets, rng=np.random.default_rng(0))
    noise = 0.8 * np.sqrt(np.mean(responses.responses.mean(axis=0)) * 0.2 / 200)
    assert np.all((bias > 0.3 * noise) & (bias < 2.0 * noise))


def test_a_wrong_item_model_has_a_larger_bias_than_a_right_one():
    responses = simulated(80, 600, 3, seed=2)
    targets = ScoreTargets.create(responses.items)
    one = item_model_bias(responses, Variational(tolerance=1e-4), targets, rng=np.random.default_rng(0))
    three = item_model_bias(
        responses, Variational("mirt", n_dims=3, tolerance=1e-4), targets, rng=np.random.default_rng(0)
    )
    assert one.mean() > 2.0 * three.mean()


def test_the_generator_decides_the_split():
    responses = simulated(30, 120, 1, seed=3, share_missing=0.2)
    targets = ScoreTargets.create(responses.items)
    one, again, other = (
        item_model_bias(responses, Variational(), targets, rng=np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_variational_fit_stops_early(monkeypatch):
    tolerances = []

    def remember(_, spec, **__):
        tolerances.append(spec.tolerance)
        raise DataError("enough")

    monkeypatch.setattr("itembank.calibration.item_model_bias.fit_item_model", remember)
    responses = ResponseMatrix.create(np.random.default_rng(0).integers(0, 2, (20, 10)).astype(float))
    for spec in (Variational(), Variational(tolerance=0.01), JointMAP()):
        item_model_bias(responses, spec, ScoreTargets.create(responses.items), rng=np.random.default_rng(0))
    assert tolerances == [1e-4, 0.01, JointMAP().tolerance]


@pytest.mark.parametrize("n_models", [3, MINIMUM_FOR_BIAS - 1])
def test_few_models_leave_it_unmeasured(n_models):
    responses = simulated(n_models, 60, 1, seed=4)
    targets = ScoreTargets.create(responses.items)
    bias = item_model_bias(responses, Variational(), targets, rng=np.random.default_rng(0))
    assert np.isnan(bias).all()
    enough = simulated(MINIMUM_FOR_BIAS, 60, 1, seed=4)
    bias = item_model_bias(enough, Variational(), targets, rng=np.random.default_rng(0))
    assert not np.isnan(bias).any()


def test_items_that_half_of_the_models_never_saw_are_left_out():
    responses = simulated(16, 90, 1, seed=5)
    values = responses.responses.copy()
    values[1:, :30] = np.nan  # one model alone saw these
    sparse = ResponseMatrix.create(values, items=responses.items, models=responses.models)
    targets = ScoreTargets.create(sparse.items)
    bias = item_model_bias(sparse, Variational(), targets, rng=np.random.default_rng(0))
    assert not np.isnan(bias).any()


def test_a_half_without_information_leaves_it_unmeasured():
    responses = simulated(10, 12, 1, seed=6)
    values = np.ones_like(responses.responses)
    values[0, 0] = 0.0  # some half of the models answers everything alike
    same = ResponseMatrix.create(values, items=responses.items, models=responses.models)
    targets = ScoreTargets.create(same.items)
    results = [item_model_bias(same, Variational(), targets, rng=np.random.default_rng(seed)) for seed in range(6)]
    assert any(np.isnan(bias).all() for bias in results)


def test_response_variance_is_the_mean_sample_variance(rng):
    responses = simulated(5, 30, 1, seed=7, share_missing=0.2).responses
    scenario = np.arange(30) % 3
    targets = ScoreTargets.create(simulated(5, 30, 1, seed=7).items)
    expected = [np.mean([np.nanvar(row[scenario == j], ddof=1) for row in responses]) for j in range(3)]
    assert_allclose(response_variance(ResponseMatrix.create(responses), targets), expected)


def test_response_variance_follows_the_target_weights(rng):
    """Draws with the target's probabilities have this variance: weights (1/2, 1/4, 1/4)."""
    items = pl.DataFrame({"item_id": list("abc"), "scenario": ["s"] * 3, "subscenario": ["x", "y", "y"]})
    targets = ScoreTargets.create(items, within="macro")
    found = response_variance(ResponseMatrix.create(np.array([[1.0, 0.0, 0.5]])), targets)
    mean = 0.5 + 0.125
    spread = 0.5 * (1 - mean) ** 2 + 0.25 * mean**2 + 0.25 * (0.5 - mean) ** 2
    assert_allclose(found, [spread / (1.0 - 0.375)])


def test_a_single_response_has_no_variance():
    targets = ScoreTargets.create(pl.DataFrame({"item_id": ["1"], "scenario": ["a"], "subscenario": [""]}))
    assert_array_equal(response_variance(ResponseMatrix.create(np.array([[1.0], [0.0]])), targets), [0.0])
