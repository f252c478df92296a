import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, DataWarning, ParameterError
from itembank_scaling.compute import training_compute
from itembank_scaling.transfers import correlations as kernel
from itembank_scaling.transfers.convergent import cluster_order, convergent_validity, correlate_abilities
from tests.scaling.two_scenarios import simulated


@pytest.fixture(scope="module")
def made():
    return simulated(np.random.default_rng(3), n_models=120, n_scenarios=3, correlation=0.8)


@pytest.fixture(scope="module")
def found(made):
    return convergent_validity(made[0], compute=training_compute(made[0].models, made[0].model_ids))


def test_correlations_are_those_of_the_true_abilities(found, made):
    truth = np.corrcoef(made[1].T)
    off = ~np.eye(3, dtype=bool)
    assert np.all(found.observed.value[off] < truth[off] + 0.02)
    np.testing.assert_allclose(found.disattenuated.value[off], truth[off], atol=0.06)
    assert np.all((found.observed.lower < found.observed.value)[off])
    assert np.all((found.observed.value < found.observed.upper)[off])
    np.testing.assert_array_equal(found.observed.value, found.observed.value.T)
    for column in range(3):
        assert np.corrcoef(found.theta[:, column], made[1][:, column])[0, 1] > 0.9
        expected = np.corrcoef(found.theta[:, column], made[1][:, column])[0, 1] ** 2
        assert found.reliability[column] == pytest.approx(expected, abs=0.05)


def test_beyond_compute_is_the_partial_correlation_and_rows_say_it_all(found, made):
    log_flops = np.log10(made[0].models["flops"].to_numpy())
    r = np.corrcoef([found.theta[:, 0], found.theta[:, 1], log_flops])
    partial = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert found.beyond_compute.value[0, 1] == pytest.approx(partial, abs=1e-10)
    assert found.beyond_compute.value[0, 1] < found.observed.value[0, 1]
    rows = json.loads(json.dumps(found.rows()))
    assert len(rows) == 3
    assert rows[0]["correlation"] >= rows[1]["correlation"] >= rows[2]["correlation"]
    i, j = (found.scenarios.index(rows[0][name]) for name in ("first", "second"))
    assert rows[0]["disattenuated_lower"] == found.disattenuated.lower[i, j]
    summary = json.loads(json.dumps(found.to_dict()))
    assert (summary["n_models"], summary["n_scenarios"], summary["interval"]) == (120, 3, "fisher")


def test_a_scenario_owes_nothing_to_another_and_models_without_it_are_missing_there_only(made, found):
    alone = convergent_validity(made[0].take(items=np.arange(120)))  # without the third scenario
    np.testing.assert_array_equal(alone.theta, found.theta[:, :2])
    responses = made[0].responses.copy()
    responses[:5, :60] = np.nan
    found = convergent_validity(replace(made[0], responses=responses))
    assert np.isnan(found.theta[:5, 0]).all()
    assert not np.isnan(found.theta[:, 1:]).any()
    assert found.n_models_of_pair.tolist() == [[115, 115, 115], [115, 120, 120], [115, 120, 120]]


def test_groups_widen_the_interval_and_scenarios_that_agree_stand_side_by_side():
    # ten checkpoints of each of twelve runs are the same model, and say no more than twelve models
    rng = np.random.default_rng(0)
    theta = np.repeat(rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=12), 10, axis=0)
    given = {"scenarios": ("a", "b"), "model_ids": tuple(f"m{i}" for i in range(120)), "level": 0.95}
    groups = [f"run {i // 10}" for i in range(120)]
    errors = np.zeros((120, 2))
    alone = correlate_abilities(theta, errors, **given, rng=rng)
    together = correlate_abilities(theta, errors, **given, groups=groups, rng=rng)
    assert (alone.interval, together.interval, together.n_groups) == ("fisher", "bootstrap", 12)
    assert together.observed.value[0, 1] == alone.observed.value[0, 1]
    widths = [one.observed.upper[0, 1] - one.observed.lower[0, 1] for one in (alone, together)]
    assert widths[1] > 2.0 * widths[0]
    value = np.array([[1, 0.1, 0.9, 0.2], [0.1, 1, 0.2, 0.8], [0.9, 0.2, 1, 0.1], [0.2, 0.8, 0.1, 1]])
    order = cluster_order(value).tolist()
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    found = kernel.square(np.array([1.0, 2.0, 3.0]), 3, diagonal=0.0)
    np.testing.assert_array_equal(found, [[0, 1, 2], [1, 0, 3], [2, 3, 0]])


def test_a_scenario_that_cannot_be_fitted_is_left_out_and_what_cannot_be_done_is_said(made):
    responses = made[0].responses.copy()
    responses[:, :60] = 1.0
    with pytest.warns(DataWarning, match="'s0' is left out"):
        found = convergent_validity(replace(made[0], responses=responses))
    assert found.scenarios == ("s1", "s2")
    for choice, few, error, said in (
        ({}, {"models": np.arange(3)}, DataError, "at least 4 models, got 3"),
        ({}, {"items": np.arange(60)}, DataError, "two scenarios or more"),
        ({"spec": Variational("mirt", n_dims=2)}, {}, ParameterError, "one dimension"),
        ({"groups": ["a"]}, {}, ParameterError, "one group a model"),
        ({"level": 1.0}, {}, ParameterError, "level"),
    ):
        with pytest.raises(error, match=said):
            convergent_validity(made[0].take(**few), **choice)


@pytest.mark.slow
def test_intervals_cover_the_true_correlation():
    rng = np.random.default_rng(1)
    hits = {"fisher": 0, "bootstrap": 0}
    given = {"scenarios": ("a", "b"), "model_ids": tuple(map(str, range(40))), "level": 0.95, "rng": rng}
    for _ in range(300):
        theta = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=40)
        for kind, groups in (("fisher", None), ("bootstrap", list(map(str, range(40))))):
            found = correlate_abilities(theta, np.zeros((40, 2)), **given, groups=groups)
            hits[kind] += found.observed.lower[0, 1] <= 0.8 <= found.observed.upper[0, 1]
    assert 0.92 <= hits["fisher"] / 300 <= 0.98
    assert 0.89 <= hits["bootstrap"] / 300 <= 0.98  # percentiles are a little narrow at 40 models


def with_holes(rng, shape=(40, 4)):
    values = rng.normal(size=shape) + rng.normal(size=(shape[0], 1))
    values[rng.random(shape) < 0.1] = np.nan
    return values


def test_correlations_are_scipys_over_the_models_that_have_both_as_are_fishers_intervals(rng):
    values = with_holes(rng)
    found = kernel.correlations(values)
    for place, (i, j) in enumerate(zip(*kernel.pairs(4), strict=True)):
        both = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
        assert found[place] == pytest.approx(stats.pearsonr(values[both, i], values[both, j]).statistic, abs=1e-12)
        assert kernel.pair_counts(values)[place] == both.sum()
    values = with_holes(rng)
    times = rng.integers(0, 4, size=40)
    repeated = np.repeat(values, times, axis=0)
    weighted = kernel.weighted_correlations(values, times[None].astype(float))[0]
    np.testing.assert_allclose(weighted, kernel.correlations(repeated), atol=1e-12)
    values = rng.normal(size=(30, 2))
    np.testing.assert_allclose(kernel.correlations(values + 1e6), kernel.correlations(values), rtol=1e-6)
    values = np.column_stack([np.arange(5.0), np.full(5, 2.0)])
    assert np.isnan(kernel.correlations(values)).all()
    x, y = rng.normal(size=(2, 25))
    y = y + x
    interval = stats.pearsonr(x, y).confidence_interval(0.9)
    low, high = kernel.fisher_interval(kernel.correlations(np.column_stack([x, y])), np.array([25]), 0.9)
    assert (low[0], high[0]) == pytest.approx((interval.low, interval.high), abs=1e-12)
    low, high = kernel.fisher_interval(np.array([0.5]), np.array([3]), 0.95)
    assert np.isnan(low[0])
    assert np.isnan(high[0])


def test_relatives_are_drawn_together_and_the_bootstrap_agrees_with_fisher_on_normal_data(rng):
    groups = np.array([0, 0, 1, 2, 2, 2])
    weights = kernel.resampling_weights(groups, 200, rng)
    assert np.array_equal(weights[:, 0], weights[:, 1])
    assert np.array_equal(weights[:, 3], weights[:, 5])
    assert np.all(weights[:, [0, 2, 3]].sum(axis=1) == 3.0)
    np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.25)
    values = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=400)
    weights = kernel.resampling_weights(np.arange(400), 2000, rng)
    low, high = kernel.quantile_interval(kernel.weighted_correlations(values, weights), 0.95)
    fisher = kernel.fisher_interval(kernel.correlations(values), np.array([400]), 0.95)
    assert low[0] == pytest.approx(fisher[0][0], abs=0.02)
    assert high[0] == pytest.approx(fisher[1][0], abs=0.02)


def test_reliability_is_the_share_of_variance_shown_and_disattenuation_finds_the_truths_correlation(rng):
    truth = rng.normal(size=200_000)
    noise_variance = 0.5
    observed = truth + np.sqrt(noise_variance) * rng.normal(size=truth.size)
    mean, error = observed / (1 + noise_variance), np.sqrt(noise_variance / (1 + noise_variance))
    found = kernel.reliabilities(mean[:, None], np.full((truth.size, 1), error))
    assert found[0] == pytest.approx(np.corrcoef(truth, mean)[0, 1] ** 2, abs=0.01)
    assert found[0] == pytest.approx(1 / (1 + noise_variance), abs=0.01)
    truth = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=100_000)
    variance = np.array([0.5, 1.0])
    mean = (truth + np.sqrt(variance) * rng.normal(size=truth.shape)) / (1 + variance)
    errors = np.broadcast_to(np.sqrt(variance / (1 + variance)), truth.shape)
    factor = kernel.attenuation(kernel.reliabilities(mean, errors))
    assert kernel.correlations(mean)[0] < 0.6
    assert kernel.correlations(mean)[0] / factor[0] == pytest.approx(0.8, abs=0.01)
    assert np.isnan(kernel.attenuation(np.array([0.9, 0.1]))).all()
    np.testing.assert_allclose(kernel.attenuation(np.array([0.9, 0.4])), [0.6])
