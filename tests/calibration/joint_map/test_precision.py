"""Joint MAP of probabilities and over-dispersed counts: derivatives, optimum, and precisions."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta, betabinom

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.fits import FitData
from itembank.calibration.joint_map.fit import ascend, fit_joint_map, model_of
from itembank.calibration.joint_map.steps import ability_derivatives, item_derivatives
from itembank.errors import ParameterError
from tests.calibration.joint_map.starting import leading_point


def simulated(family, n_models=20, n_items=12, *, precision=(30.0,), lower=0.0, missing=False, seed=0):
    rng = np.random.default_rng(seed)
    index = np.arange(n_items) % len(precision)
    phi = np.array(precision)[index]
    loadings, intercept = rng.lognormal(0.0, 0.3, n_items), rng.normal(size=n_items)
    mean = lower + (1.0 - lower) * expit(rng.normal(size=(n_models, 1)) * loadings + intercept)
    chances = np.clip(rng.beta(mean * phi, (1.0 - mean) * phi), 1e-6, 1.0 - 1e-6)
    observed = rng.random(mean.shape) > 0.2 if missing else np.ones(mean.shape, dtype=bool)
    n_trials = None
    if family == "beta-binomial":
        trials = rng.integers(5, 60, mean.shape) * observed
        chances, n_trials = rng.binomial(trials, chances) / np.maximum(trials, 1), trials.astype(float)
    responses = np.where(observed, chances, 0.0)
    return FitData(
        responses,
        observed if missing else None,
        np.full(n_items, lower),
        family=family,
        n_trials=n_trials,
        precision_index=index,
    )


def log_likelihood(data, items, abilities, precision):
    """By scipy's distributions; counts up to their binomial coefficients."""
    mean = data.lower_asymptote + (1.0 - data.lower_asymptote) * expit(abilities @ items[:, :-1].T + items[:, -1])
    a, b = mean * precision, (1.0 - mean) * precision
    if data.family == "beta":
        inside = np.where(data.responses > 0.0, data.responses, 0.5)
        cells = beta.logpdf(inside, a, b)
    else:
        cells = betabinom.logpmf(np.rint(data.responses * data.n_trials), data.n_trials, a, b)
        even = np.full(a.shape, 1.0)  # a uniform chance: all counts alike, what is left is the coefficient
        cells = cells - betabinom.logpmf(np.rint(data.responses * data.n_trials), data.n_trials, even, even)
    return np.sum(cells if data.observed is None else cells[data.observed])


CASES = [("beta", 0.0, False), ("beta", 0.2, True), ("beta-binomial", 0.0, True)]


@pytest.mark.parametrize(("family", "lower", "missing"), CASES)
def test_gradients_are_the_slopes_of_the_log_likelihood(family, lower, missing):
    data, rng = simulated(family, 7, 5, lower=lower, missing=missing), np.random.default_rng(1)
    items, abilities, precision = rng.normal(size=(5, 2)), rng.normal(size=(7, 1)), np.linspace(5.0, 50.0, 5)
    model = model_of(data, precision)
    of_items, of_abilities = (one(data, items, abilities, model) for one in (item_derivatives, ability_derivatives))
    assert of_abilities.log_likelihood == pytest.approx(of_items.log_likelihood, rel=1e-12)
    for index in np.ndindex(items.shape):
        step = np.zeros_like(items)
        step[index] = 1e-5
        rise = log_likelihood(data, items + step, abilities, precision)
        rise -= log_likelihood(data, items - step, abilities, precision)
        assert of_items.gradient[index] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-5)
    for index in np.ndindex(abilities.shape):
        step = np.zeros_like(abilities)
        step[index] = 1e-5
        rise = log_likelihood(data, items, abilities + step, precision)
        rise -= log_likelihood(data, items, abilities - step, precision)
        assert of_abilities.gradient[index] == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("family", ["beta", "beta-binomial"])
def test_no_general_optimiser_finds_a_better_point_nearby(family):
    data = simulated(family, 15, 8, missing=True)
    spec = JointMAP(family=family, precision=30.0, tolerance=1e-12, max_iterations=5000)
    model = model_of(data, np.full(8, 30.0))
    path = ascend(data, leading_point(data, spec, model), spec, model)

    def loss(values):
        items, abilities = values[:16].reshape(8, 2), values[16:, None]
        prior = 0.5 * np.sum(abilities**2) + 0.5 * np.sum((items[:, 1] / spec.intercept_sd) ** 2)
        return prior + spec.loading_weight * np.abs(items[:, 0]).sum() - log_likelihood(data, items, abilities, 30.0)

    end = np.concatenate([path.point.items.ravel(), path.point.abilities.ravel()])
    found = minimize(loss, end + 0.02 * np.random.default_rng(0).normal(size=end.size), options={"gtol": 1e-4})
    assert np.all(path.point.items[:, 0] > 0.05)  # away from the corner of the absolute value
    assert loss(end) <= found.fun + 1e-4
    assert np.all(np.diff(path.history) >= -1e-9 * abs(path.history[-1]))


@pytest.mark.parametrize(("family", "item_model"), [("beta", "2pl"), ("beta", "1pl"), ("beta-binomial", "2pl")])
def test_precisions_are_recovered_and_their_errors_honest(family, item_model):
    true, deviations = (8.0, 60.0), []
    for seed in range(2):
        data = simulated(family, 25, 60, precision=true, missing=seed % 2 == 1, seed=seed)
        if item_model == "1pl":  # the simulation has slopes: they add spread, so only the errors' size is looked at
            fit = fit_joint_map(data, JointMAP("1pl", family=family))
            n_cells = data.responses.size / 2.0 * (0.8 if data.observed is not None else 1.0)
            np.testing.assert_allclose(fit.log_precision_error, np.sqrt(2.0 / n_cells), rtol=0.25)
            continue
        fit = fit_joint_map(data, JointMAP(family=family))
        assert fit.converged
        deviations += ((np.log(fit.precision[:2]) - np.log(true)) / fit.log_precision_error[:2]).tolist()
    assert np.sqrt(np.mean(np.square(deviations or [0.0]))) < 2.0


def test_general_item_models_have_no_such_family():
    with pytest.raises(ParameterError, match="'nested' of this method has no family 'beta'"):
        JointMAP("nested", n_dims=3, family="beta")


def test_a_fixed_precision_is_kept_and_has_no_error():
    fit = fit_joint_map(simulated("beta"), JointMAP(family="beta", precision=12.0))
    np.testing.assert_array_equal(fit.precision, 12.0)
    assert fit.log_precision_error is None
