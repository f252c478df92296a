from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import linregress

from itembank_scaling.pretraining.ability_law import fit_ability_laws
from itembank_scaling.pretraining.law_fitting import growth_of_errors, interval_factor


def simulated(rng, *, n_recipes=6, n_sizes=7, slope_sd=0.03, residual_sd=0.1, error_sd=0.05):
    x = np.tile(np.linspace(20.0, 32.0, n_sizes), (n_recipes, 1))
    slopes, levels = 0.35 + slope_sd * rng.standard_normal((n_recipes, 1)), 0.3 * rng.standard_normal((n_recipes, 1))
    true = levels + slopes * (x - 26.0) + residual_sd * rng.standard_normal(x.shape)
    return x, true, true + error_sd * rng.standard_normal(x.shape), np.full(x.shape, error_sd**2)


def test_alone_a_recipe_gets_the_line_of_least_squares_in_which_all_its_sizes_weigh_alike(rng):
    x, _, y, _ = simulated(rng)
    laws = fit_ability_laws(x, y, np.zeros_like(y), pooling="none", shape="line")
    for number in range(6):
        line, covariance = np.polyfit(x[number], y[number], 1), np.cov(x[number], ddof=0)
        assert [laws.slope[number], laws.intercept[number]] == pytest.approx(line)
        assert laws.slope_error[number] ** 2 == pytest.approx(laws.residual_variance / (7 * covariance), rel=1e-6)
    residuals = y - laws.predict(x[0])[0]
    assert laws.residual_variance == pytest.approx(np.sum(residuals**2) / (6 * 5), rel=1e-6)
    x, _, y, _ = simulated(rng)
    v = np.full(y.shape, 0.01)
    v[:, 0] = 0.5  # the smallest model's ability is hardly known: the line of least squares takes it as the others
    y[0, 0], v[0, 0] = np.nan, np.nan
    laws = fit_ability_laws(x, y, v, pooling="none", shape="line")
    for number in range(6):
        own = np.isfinite(y[number])
        line = linregress(x[number, own], y[number, own])
        assert [laws.slope[number], laws.intercept[number]] == pytest.approx([line.slope, line.intercept], rel=1e-10)
        weights = (x[number, own] - x[number, own].mean()) / np.sum((x[number, own] - x[number, own].mean()) ** 2)
        variance = np.sum(weights**2 * (v[number, own] + laws.residual_variance))
        assert laws.slope_error[number] ** 2 == pytest.approx(variance, rel=1e-9)


def test_errors_of_slopes_are_those_of_a_mixture_over_bends_and_known_ones_no_variance(rng):
    """Mean variance and variance of means (law of total variance)."""
    x, _, y, v = simulated(rng)
    laws = replace(fit_ability_laws(x, y, v), weights=np.array([0.25, 0.75]))
    slopes, within = np.array([[0.3], [0.5]]), np.array([[0.01], [0.03]])
    coefficients, covariance = np.zeros((2, 1, 2)), np.zeros((2, 1, 2, 2))
    coefficients[..., 1], covariance[..., 1, 1] = slopes, within
    error = replace(laws, coefficients=coefficients, covariance=covariance).slope_error
    assert error**2 == pytest.approx(0.25 * 0.01 + 0.75 * 0.03 + 0.25 * 0.15**2 + 0.75 * 0.05**2)
    x, true, _, _ = simulated(rng, residual_sd=0.0)
    laws = fit_ability_laws(x, true + 0.1 * rng.standard_normal(7), np.zeros(x.shape), pooling="none", shape="line")
    assert laws.degrees_of_freedom == pytest.approx(7 - 2)
    x, _, y, _ = simulated(rng, residual_sd=0.0, error_sd=0.01)
    assert fit_ability_laws(x, y, np.full(y.shape, 0.1**2), pooling="none").residual_variance == 0.0


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_order_does_not_matter_and_two_runs_of_a_compute_are_fitted_like_any_points(rng, pooling):
    x, _, y, v = simulated(rng)
    first = fit_ability_laws(x, y, v, pooling=pooling)
    recipes, sizes = rng.permutation(6), rng.permutation(7)
    second = fit_ability_laws(x[recipes][:, sizes], y[recipes][:, sizes], v[recipes][:, sizes], pooling=pooling)
    np.testing.assert_allclose(second.coefficients, first.coefficients[:, recipes], rtol=1e-6)
    assert second.drift == pytest.approx(first.drift, rel=1e-5, abs=1e-9)
    x, _, y, v = simulated(rng, n_sizes=8)
    x = np.repeat(x[:, :4], 2, axis=1)
    laws = fit_ability_laws(x, y, v, pooling=pooling, shape="line")
    assert np.isfinite(laws.drift)
    assert np.isfinite(laws.predict(np.array([34.0]))[1]).all()
    if pooling == "none":
        residual = laws.residual_variance + v[0]
        line = np.polyfit(x[0], y[0], 1, w=1.0 / np.sqrt(residual))
        assert [laws.slope[0], laws.intercept[0]] == pytest.approx(line)


def test_pooled_lines_lie_nearer_to_the_truth_and_pooling_goes_by_the_number_of_recipes_and_sizes(rng):
    errors, spreads = [], []
    for _ in range(20):
        x, true, y, v = simulated(rng, n_recipes=10, slope_sd=0.02)
        kept = np.where(np.arange(7) < 4, y, np.nan)
        laws = {name: fit_ability_laws(x, kept, v, pooling=name) for name in ("none", "partial")}
        spreads.append([np.std(law.slope) for law in laws.values()])
        errors.append([np.mean((law.predict(x[0])[0][:, 6] - true[:, 6]) ** 2) for law in laws.values()])
    alone, pooled = np.mean(spreads, axis=0)
    assert pooled < 0.8 * alone
    alone, pooled = np.mean(errors, axis=0)
    assert pooled < 0.8 * alone
    x, _, y, v = simulated(rng, n_recipes=3)  # the abilities of all sizes are known equally well
    pooled, alone = (fit_ability_laws(x, y, v, pooling=name) for name in ("partial", "none"))
    np.testing.assert_allclose(pooled.coefficients, alone.coefficients, rtol=1e-9)
    x, _, y, v = simulated(rng)
    y[2] = np.nan
    for pooling in ("none", "partial"):
        laws = fit_ability_laws(x, y, v, pooling=pooling)
        assert np.isnan(laws.coefficients[:, 2]).all()
        assert np.isnan(laws.predict(np.array([33.0]))[0][2, 0])
        assert np.isfinite(np.delete(laws.coefficients, 2, axis=1)).all()
    x, _, y, v = simulated(rng)
    y[2, 1:] = np.nan
    laws = fit_ability_laws(x, y, v, pooling="partial")
    others = np.delete(laws.slope, 2)
    assert others.min() < laws.slope[2] < others.max()
    assert laws.slope_error[2] > np.delete(laws.slope_error, 2).max()


def test_uncertainty_grows_beyond_the_largest_size_and_with_a_bend(rng):
    x, _, y, v = simulated(rng)
    variance = fit_ability_laws(x, y, v).predict(np.array([32.0, 34.0, 38.0]))[1]
    assert (np.diff(variance, axis=1) > 0.0).all()
    distances = np.array([1.0, 2.0, 3.0])
    assert growth_of_errors(0.4 * distances**2, np.zeros(3), distances) == pytest.approx(0.4)
    assert growth_of_errors(0.4 * distances**2 + 0.1, np.full(3, 0.1), distances) == pytest.approx(0.4)
    assert growth_of_errors(np.full(3, 0.01), np.full(3, 0.02), distances) == 0.0
    assert growth_of_errors(np.empty(0), np.empty(0), np.empty(0)) == 0.0
    x, _, y, v = simulated(rng, residual_sd=0.01, error_sd=0.01)
    bent = y - 0.01 * (x - 20.0) ** 2
    assert fit_ability_laws(x, bent, v, shape="line").drift > 10.0 * fit_ability_laws(x, y, v, shape="line").drift


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["none", "partial"])
@pytest.mark.parametrize("n_recipes", [4, 12])
def test_intervals_cover_what_larger_models_reach(rng, pooling, n_recipes):
    covered = []
    for _ in range(150):
        x, true, y, v = simulated(rng, n_recipes=n_recipes)
        laws = fit_ability_laws(x[:, :4], y[:, :4], v[:, :4], pooling=pooling)
        mean, variance = laws.predict(x[0, 4:])
        half = interval_factor(0.95, laws.degrees_of_freedom) * np.sqrt(variance)
        covered.append(np.mean(np.abs(true[:, 4:] - mean) < half))
    assert 0.92 < np.mean(covered) < 0.985
