from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.pooled_regression import FeatureValues, pooled_regression
from itembank.calibration.variational.ascent import ascend
from itembank.calibration.variational.bound import divergence
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.covariates import covariate_divergence, start_covariates
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.scale import rescale
from itembank.calibration.variational.updates import update_item_prior
from itembank.progress import silent
from tests.calibration.simulated import random_posterior, simulate, tell_apart
from tests.calibration.variational.test_ascent import begin


def features_of(n_items, *, seed=0):
    """A number, and four categories."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.normal(size=n_items), np.eye(4)[rng.integers(0, 4, n_items)]])
    return FeatureValues(values, np.array([0, 1, 1, 1, 1]))


def with_features(posterior, features, *, rounds=1):
    posterior = replace(posterior, item_prior=replace(posterior.item_prior, covariates=start_covariates(features)))
    for _ in range(rounds):
        posterior = update_item_prior(posterior)
    return posterior


def simulate_known(n_models, n_items, *, seed, slope=0.4):
    """Items whose intercepts follow the number and the categories, half of their variance unexplained."""
    rng = np.random.default_rng(seed)
    theta, features = rng.normal(size=(n_models, 1)), features_of(n_items, seed=seed)
    weights = np.array([1.0, -0.9, -0.3, 0.3, 0.9])
    intercept = 0.3 + features.values @ weights + rng.normal(0.0, 0.8, n_items)
    chances = expit(theta * np.exp(slope * rng.normal(size=n_items)) + intercept)
    responses = (rng.random(chances.shape) < chances).astype(float)
    tell_apart(responses, np.ones(responses.shape, dtype=bool), theta)
    return intercept, weights, chances, FitData(responses, None, np.zeros(n_items), features=features)


def chances_by(fit):
    return expit(fit.abilities @ fit.loadings.T + fit.intercept)


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
@pytest.mark.parametrize("kind", [{}, {"is_nested": True}, {"has_common_slope": True}])
def test_the_bound_never_falls(rule, kind):
    n_dims = 3 if kind.get("is_nested") else 1
    blocks, start = begin(simulate(25, 60, n_dims=n_dims, missing=0.1, seed=1).data, n_dims, **kind)
    start = with_features(start, features_of(60))
    found = ascend(blocks, start, rule, tolerance=1e-11, max_sweeps=40, progress=silent)
    assert len(found.history) > 8
    assert np.diff(found.history).min() >= 0.0


@pytest.mark.parametrize("is_nested", [False, True])
def test_weights_and_precisions_are_at_their_best_given_the_items(is_nested):
    posterior = with_features(replace(random_posterior(20, 60, 2), is_nested=is_nested), features_of(60), rounds=200)
    best, prior = divergence(posterior), posterior.item_prior
    known = prior.covariates
    for factor in (0.99, 1.01):
        for name in ("mean", "mean_variance", "shape", "rate"):
            changed = replace(prior, **{name: getattr(prior, name) * factor})
            assert divergence(replace(posterior, item_prior=changed)) >= best
        for name in ("weights", "weight_covariance", "precision"):
            changed = replace(prior, covariates=replace(known, **{name: getattr(known, name) * factor}))
            assert divergence(replace(posterior, item_prior=changed)) >= best - 1e-9


def test_divergence_of_weights_against_draws():
    known = with_features(random_posterior(20, 60, 2), features_of(60)).item_prior.covariates
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(known.weights, known.weight_covariance, 40_000)
    away = draws - known.weights
    log_q = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(known.weight_covariance), away)
    log_q -= 0.5 * np.linalg.slogdet(known.weight_covariance)[1]
    tau = known.precision[known.column]
    ratio = log_q + 0.5 * np.sum(tau * draws**2 - np.log(tau), axis=1)
    assert covariate_divergence(known) == pytest.approx(ratio.mean(), abs=4.5 * ratio.std() / 200.0)


def test_rescaling_does_not_lower_the_bound():
    posterior = with_features(random_posterior(20, 60, 3), features_of(60))
    assert divergence(rescale(posterior)) <= divergence(update_item_prior(posterior))


def test_chances_are_closer_with_few_models():
    for seed in range(2):
        *_, chances, data = simulate_known(12, 250, seed=seed)
        errors = [
            np.sqrt(np.mean((chances_by(fit_variational(one, Variational(), progress=silent)) - chances) ** 2))
            for one in (data, replace(data, features=None))
        ]
        assert errors[0] < 0.95 * errors[1]


@pytest.mark.parametrize(("item_model", "slope"), [("1pl", 0.0), ("2pl", 0.4)])
def test_with_many_models_intercepts_are_those_of_the_mixed_model_of_the_true_ones(item_model, slope):
    intercept, weights, _, data = simulate_known(1500, 80, seed=3, slope=slope)
    fit = fit_variational(data, Variational(item_model), progress=silent)
    variances = fit.item_covariance[:, -1, -1]
    found = pooled_regression(fit.intercept, variances, data.features)
    known = pooled_regression(intercept, np.zeros(80), data.features)
    assert np.abs(found.weights - known.weights).max() < 0.12
    assert found.residual_variance == pytest.approx(known.residual_variance, rel=0.15)
    assert np.abs(found.weights - weights)[0] < 3.0 * np.sqrt(found.weight_covariance[0, 0])


def test_what_says_nothing_changes_next_to_nothing():
    data = simulate(30, 120, seed=5).data
    plain = fit_variational(data, Variational(), progress=silent)
    idle = fit_variational(replace(data, features=features_of(120, seed=6)), Variational(), progress=silent)
    assert np.abs(chances_by(idle) - chances_by(plain)).mean() < 0.01


def test_a_subset_first_leads_to_the_same_place(monkeypatch):
    *_, data = simulate_known(30, 120, seed=4)
    whole = fit_variational(data, Variational(), progress=silent)
    monkeypatch.setattr("itembank.calibration.variational.fit.SUBSET_SIZE", 60)
    staged = fit_variational(data, Variational(), progress=silent)
    assert staged.history[-1] == pytest.approx(whole.history[-1], rel=1e-5)


def test_probabilities_and_counts_follow_them_too():
    *_, chances, data = simulate_known(8, 80, seed=7)
    rng = np.random.default_rng(7)
    trials = np.full(chances.shape, 3.0)
    counts = replace(data, responses=rng.binomial(3, chances) / 3.0, family="binomial", n_trials=trials)
    densities = rng.beta(6.0 * chances, 6.0 * (1.0 - chances)).clip(1e-5, 1.0 - 1e-5)
    probabilities = replace(data, responses=densities, family="beta", precision_index=np.zeros(80, dtype=int))
    for one in (counts, probabilities):
        fit = fit_variational(one, Variational(family=one.family), progress=silent)
        found = pooled_regression(fit.intercept, fit.item_covariance[:, -1, -1], data.features)
        assert abs(found.weights[0] - 1.0) < 0.35
        assert np.diff(found.weights[1:]).min() > 0.0
