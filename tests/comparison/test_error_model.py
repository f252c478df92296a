import numpy as np
import pytest
from scipy.stats import kurtosis, norm
from scipy.stats import t as student

from itembank.comparison.pairs import finite_quantile, fit_pair_errors, fit_variance, model_pairs


def line(disagreement):
    return np.column_stack([np.ones_like(disagreement), disagreement])


def test_fit_variance_recovers_a_line(rng):
    disagreement = rng.uniform(0.1, 2.0, 60_000)
    squared = (0.3 + 0.5 * disagreement) * rng.normal(size=60_000) ** 2
    assert fit_variance(squared, line(disagreement)) == pytest.approx((0.3, 0.5), rel=0.06)


def test_fit_variance_never_falls_with_disagreement(rng):
    disagreement = rng.uniform(0.1, 2.0, 20_000)
    squared = (3.0 - disagreement) * rng.normal(size=20_000) ** 2
    constant, slope = fit_variance(squared, line(disagreement))
    assert slope == 0.0
    assert constant == pytest.approx(squared.mean())


def test_fit_variance_is_the_likelihood_optimum(rng):
    disagreement = rng.uniform(0.1, 2.0, 500)
    squared = (0.3 + 0.5 * disagreement) * rng.normal(size=500) ** 2
    constant, slope = fit_variance(squared, line(disagreement))

    def deviance(a, b):
        variance = a + b * disagreement
        return np.sum(np.log(variance) + squared / variance)

    step = 1e-3
    best = deviance(constant, slope)
    for a, b in ((step, 0), (-step, 0), (0, step), (0, -step), (step, -step), (-step, step)):
        assert deviance(constant + a, slope + b) > best - 1e-9


def independent_errors(n_models, rng):
    """Errors of models, a disagreement that tells nothing, and the pairs."""
    first, second = model_pairs(n_models)
    return rng.normal(size=n_models), np.ones(first.shape[0]), first, second


def test_normal_errors_have_the_normal_quantile(rng):
    model = fit_pair_errors(*independent_errors(500, rng), level=0.9)
    assert model.quantile == pytest.approx(norm.ppf(0.95), rel=0.05)
    assert model.constant + model.slope == pytest.approx(2.0, rel=0.15)
    assert model.scale == pytest.approx(1.0, rel=0.05)


def test_tails_are_as_heavy_as_those_of_the_errors(rng):
    _, disagreement, first, second = independent_errors(60, rng)
    errors = student.ppf((np.arange(60) + 0.5) / 60, 3)
    both = np.concatenate([errors[first] - errors[second], errors[second] - errors[first]])
    model = fit_pair_errors(errors, disagreement, first, second, level=0.9)
    # the excess kurtosis of a Student distribution is 6 / (degrees - 4)
    assert model.degrees == pytest.approx(4.0 + 6.0 / kurtosis(both), rel=1e-6)
    assert 4.0 < model.degrees < 59.0


def test_scale_puts_the_quantile_at_the_level(rng):
    model = fit_pair_errors(*independent_errors(60, rng), level=0.9)
    assert model.scale * student.ppf(0.95, model.degrees) == pytest.approx(model.quantile)


def test_few_models_widen_the_quantile(rng):
    errors, _, first, second = independent_errors(20, rng)
    absolute = np.abs(errors[first] - errors[second])
    corrected = finite_quantile(absolute, first, second, 20, level=0.9)
    assert np.quantile(absolute, 0.9) < corrected <= absolute.max()


def test_the_error_follows_both_models_and_what_they_have_in_common(rng):
    """Errors that are sums of a model's own part and its group's: the difference within a group has no group part."""
    n = 400
    own, group = rng.uniform(0.5, 2.0, n), np.arange(n) % 2
    errors = own * rng.normal(size=n) + np.where(group, 1.5, -1.5)
    first, second = model_pairs(n)
    independent = own[first] ** 2 + own[second] ** 2
    apart = (group[first] != group[second]).astype(float)
    model = fit_pair_errors(errors, apart, first, second, independent=independent, level=0.9)
    assert model.constant == pytest.approx(1.0, rel=0.2)
    assert model.slope == pytest.approx(9.0, rel=0.2)  # (1.5 + 1.5)^2


def test_no_errors_leave_the_classical_variance():
    first, second = model_pairs(30)
    model = fit_pair_errors(np.zeros(30), np.ones(first.shape[0]), first, second, level=0.95)
    assert (model.constant, model.slope, model.degrees) == (0.0, 1.0, 29.0)
    assert model.quantile == pytest.approx(student.ppf(0.975, 29))


def test_disagreement_of_zero_is_no_trouble(rng):
    first, second = model_pairs(30)
    model = fit_pair_errors(rng.normal(size=30), np.zeros(first.shape[0]), first, second, level=0.95)
    assert model.constant > 0.0
    assert np.isfinite(model.quantile)


@pytest.mark.slow
@pytest.mark.parametrize("n_models", [16, 40, 150])
def test_intervals_cover_new_pairs(n_models):
    """Errors share what items do: models in clusters, whose disagreement is small within a cluster."""
    rng = np.random.default_rng(n_models)
    inside, total = 0, 0
    for _ in range(400):
        own, common = rng.normal(size=n_models + 2), rng.normal(size=2)
        kind = np.arange(n_models + 2) % 2
        errors = 0.5 * own + common[kind] * 1.0
        first, second = model_pairs(n_models)
        spread = rng.chisquare(3, n_models + 2) / 3.0
        errors = errors * np.sqrt(spread)
        disagreement = 0.2 + 1.0 * (kind[first] != kind[second]) + 0.5 * (spread[first] + spread[second])
        model = fit_pair_errors(errors[:n_models], disagreement, first, second, level=0.9)
        new = 0.2 + 1.0 * (kind[-1] != kind[-2]) + 0.5 * (spread[-1] + spread[-2])
        inside += abs(errors[-1] - errors[-2]) <= model.quantile * np.sqrt(model.constant + model.slope * new)
        total += 1
    assert inside / total > 0.9 - 3 * np.sqrt(0.09 / total)
