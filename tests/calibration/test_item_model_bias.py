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


def items_of(scenarios, subscenarios, **columns):
    ids = [str(i) for i in range(len(scenarios))]
    return pl.DataFrame({"item_id": ids, "scenario": list(scenarios), "subscenario": list(subscenarios), **columns})


def bias_of(responses, spec=None, seed=0):
    targets = ScoreTargets.create(responses.items)
    return item_model_bias(responses, spec or Variational(), targets, rng=np.random.default_rng(seed))


def test_error_is_the_mean_over_models_of_weighted_mean_differences(rng):
    targets = ScoreTargets.create(items_of("ab" * 6, "xxy" * 4, weight=rng.random(12)), within="custom")
    columns = np.array([11, 0, 3, 5, 6, 7, 1, 2])
    responses, predicted = rng.random((5, 8)), rng.random((5, 8))
    responses[rng.random((5, 8)) < 0.3] = np.nan
    hidden = np.array([True, True, False, True, True, True, True, False])
    expected = []
    for j in range(2):
        errors = []
        for model in range(5):
            cells = np.flatnonzero(hidden & (targets.scenario_index[columns] == j) & ~np.isnan(responses[model]))
            if cells.size:
                away = predicted[model, cells] - responses[model, cells]
                errors.append(abs(np.average(away, weights=targets.weights[columns[cells]])))
        expected.append(np.mean(errors))
    found = mean_absolute_error(score_errors(responses, predicted, hidden, targets, columns))
    assert_allclose(found, expected)
    two = ScoreTargets.create(items_of("ab", ["", ""]))  # of one no item is hidden
    errors = score_errors(np.ones((3, 2)), np.zeros((3, 2)), np.array([True, False]), two, np.arange(2))
    assert_array_equal(mean_absolute_error(errors), [1.0, np.nan])


def test_of_a_true_item_model_only_noise_is_left_and_a_wrong_one_has_a_larger_bias():
    """With 200 hidden items a scenario the error is about that of a mean of 200 coin flips, E|x| = 0.8 sd."""
    responses = simulated(60, 1200, 1, seed=1)
    bias = bias_of(responses)
    noise = 0.8 * np.sqrt(np.mean(responses.responses.mean(axis=0)) * 0.2 / 200)
    assert np.all((bias > 0.3 * noise) & (bias < 2.0 * noise))
    responses = simulated(80, 600, 3, seed=2)
    specs = Variational(tolerance=1e-4), Variational("mirt", n_dims=3, tolerance=1e-4)
    one, three = (bias_of(responses, spec) for spec in specs)
    assert one.mean() > 2.0 * three.mean()


def test_the_generator_decides_the_split():
    responses = simulated(30, 120, 1, seed=3, share_missing=0.2)
    one, again, other = (bias_of(responses, seed=seed) for seed in (0, 0, 1))
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
        bias_of(responses, spec)
    assert tolerances == [1e-4, 0.01, JointMAP().tolerance]


@pytest.mark.parametrize("n_models", [3, MINIMUM_FOR_BIAS - 1])
def test_few_models_leave_it_unmeasured(n_models):
    assert np.isnan(bias_of(simulated(n_models, 60, 1, seed=4))).all()
    assert not np.isnan(bias_of(simulated(MINIMUM_FOR_BIAS, 60, 1, seed=4))).any()


def changed(responses, values):
    return ResponseMatrix.create(values, items=responses.items, models=responses.models)


def test_items_that_half_of_the_models_never_saw_are_left_out_and_a_half_without_information_unmeasured():
    responses = simulated(16, 90, 1, seed=5)
    values = responses.responses.copy()
    values[1:, :30] = np.nan  # one model alone saw these
    assert not np.isnan(bias_of(changed(responses, values))).any()
    responses = simulated(10, 12, 1, seed=6)
    values = np.ones_like(responses.responses)
    values[0, 0] = 0.0  # some half of the models answers everything alike
    assert any(np.isnan(bias_of(changed(responses, values), seed=seed)).all() for seed in range(6))


def test_response_variance_is_the_mean_sample_variance_and_follows_the_target_weights(rng):
    matrix = simulated(5, 30, 1, seed=7, share_missing=0.2)
    responses, scenario, targets = matrix.responses, np.arange(30) % 3, ScoreTargets.create(matrix.items)
    expected = [np.mean([np.nanvar(row[scenario == j], ddof=1) for row in responses]) for j in range(3)]
    assert_allclose(response_variance(ResponseMatrix.create(responses), targets), expected)
    # draws with the target's probabilities have this variance: weights (1/2, 1/4, 1/4)
    targets = ScoreTargets.create(items_of("sss", "xyy"), within="macro")
    found = response_variance(ResponseMatrix.create(np.array([[1.0, 0.0, 0.5]])), targets)
    mean = 0.5 + 0.125
    spread = 0.5 * (1 - mean) ** 2 + 0.25 * mean**2 + 0.25 * (0.5 - mean) ** 2
    assert_allclose(found, [spread / (1.0 - 0.375)])
    targets = ScoreTargets.create(items_of("a", [""]))
    assert_array_equal(response_variance(ResponseMatrix.create(np.array([[1.0], [0.0]])), targets), [0.0])
