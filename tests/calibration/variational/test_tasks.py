from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational.ascent import ascend
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.scale import rescale
from itembank.calibration.variational.updates import (
    divergence,
    item_prior_divergence,
    start_tasks,
    task_divergence,
    update_item_prior,
)
from itembank.errors import ParameterError
from itembank.estimation.folds import spec_of
from itembank.progress import silent
from itembank.responses.responses import ResponseMatrix
from tests.calibration.simulated import random_posterior, simulate, tell_apart
from tests.calibration.variational.test_ascent import begin

TASKS = np.arange(60) % 7


def with_tasks(posterior, index, *, rounds=1):
    prior = replace(posterior.item_prior, tasks=start_tasks(index, posterior.n_dims + 1))
    posterior = replace(posterior, item_prior=prior)
    for _ in range(rounds):
        posterior = update_item_prior(posterior)
    return posterior


def simulate_tasks(n_models, n_tasks, n_items, *, seed):
    """Tasks whose items ask for the same mixture of two abilities, nearly."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, 2))
    index = np.repeat(np.arange(n_tasks), n_items)
    centre = np.column_stack([rng.normal(1.0, 1.0, (n_tasks, 2)), rng.normal(0.0, 1.5, n_tasks)])
    items = centre[index] + 0.3 * rng.normal(size=(index.size, 3))
    chances = expit(theta @ items[:, :2].T + items[:, 2])
    responses = (rng.random(chances.shape) < chances).astype(float)
    tell_apart(responses, np.ones(responses.shape, dtype=bool), theta)
    return chances, FitData(responses, None, np.zeros(index.size), task_index=index)


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
@pytest.mark.parametrize("is_nested", [False, True])
def test_the_bound_never_falls(rule, is_nested):
    blocks, start = begin(simulate(25, 60, n_dims=3, missing=0.1, seed=1).data, 3, is_nested=is_nested)
    found = ascend(blocks, with_tasks(start, TASKS), rule, tolerance=1e-11, max_sweeps=50, progress=silent)
    assert len(found.history) > 8
    assert np.diff(found.history).min() >= 0.0


@pytest.mark.parametrize("is_nested", [False, True])
def test_what_tasks_say_is_at_its_best_given_the_items(is_nested):
    posterior = with_tasks(replace(random_posterior(20, 60, 2), is_nested=is_nested), TASKS, rounds=60)
    best = divergence(posterior)
    prior, tasks = posterior.item_prior, posterior.item_prior.tasks
    for name in ("mean", "mean_variance", "shape", "rate"):
        for factor in (0.99, 1.01):
            changed = replace(prior, **{name: getattr(prior, name) * factor})
            assert divergence(replace(posterior, item_prior=changed)) >= best
    for name in ("mean", "variance", "shape", "rate"):
        for factor in (0.99, 1.01):
            changed = replace(prior, tasks=replace(tasks, **{name: getattr(tasks, name) * factor}))
            assert divergence(replace(posterior, item_prior=changed)) >= best


def test_divergence_of_centres_against_draws():
    """``E[log q(gamma) - log N(gamma; mu, 1 / tau)]`` over draws of gamma, mu and tau."""
    prior = with_tasks(random_posterior(20, 60, 2), TASKS).item_prior
    tasks, rng = prior.tasks, np.random.default_rng(0)
    size = (20_000, *tasks.mean.shape)
    gamma = rng.normal(tasks.mean, np.sqrt(tasks.variance), size)
    mu = rng.normal(prior.mean, np.sqrt(prior.mean_variance), (size[0], 1, 3))
    tau = rng.gamma(tasks.shape, 1.0 / tasks.rate, (size[0], 1, 3))
    log_q = -0.5 * ((gamma - tasks.mean) ** 2 / tasks.variance + np.log(tasks.variance))
    log_p = -0.5 * (tau * (gamma - mu) ** 2 - np.log(tau))
    draws = (log_q - log_p).sum(axis=1)
    error = draws.std(axis=0) / np.sqrt(size[0])
    assert np.all(np.abs(task_divergence(prior, tasks) - draws.mean(axis=0)) < 4.5 * error)
    assert item_prior_divergence(with_tasks(random_posterior(20, 60, 2), TASKS)) > 0.0


def test_rescaling_keeps_the_tasks_and_does_not_lower_the_bound():
    posterior = with_tasks(random_posterior(20, 60, 3), TASKS)
    moved = rescale(posterior)
    assert divergence(moved) <= divergence(update_item_prior(posterior))
    np.testing.assert_array_equal(moved.item_prior.tasks.index, TASKS)


def test_chances_are_closer_with_few_models_and_many_alike():
    errors = []
    for seed in range(2):
        chances, data = simulate_tasks(20, 12, 20, seed=seed)
        for one in (data, replace(data, task_index=None)):
            found = fit_variational(one, Variational("mirt", 2), progress=silent)
            errors.append(
                np.sqrt(np.mean((expit(found.abilities @ found.loadings.T + found.intercept) - chances) ** 2))
            )
    assert np.all(np.array(errors[::2]) < 0.8 * np.array(errors[1::2]))


def test_a_subset_first_leads_to_the_same_place(monkeypatch):
    _, data = simulate_tasks(30, 6, 20, seed=4)
    spec = Variational("mirt", 2, tolerance=1e-6, single_precision=False)
    whole = fit_variational(data, spec, progress=silent)
    monkeypatch.setattr("itembank.calibration.variational.fit.SUBSET_SIZE", 60)
    staged = fit_variational(data, spec, progress=silent)
    assert staged.history[-1] == pytest.approx(whole.history[-1], rel=1e-5)


def test_tasks_are_scenarios_and_subscenarios_and_the_bank_remembers():
    _, data = simulate_tasks(30, 4, 15, seed=5)
    names = {"scenario": ["a", "a", "b", "b"], "subscenario": ["x", "y", "x", None]}
    table = {name: np.repeat(np.array(values, dtype=object), 15).tolist() for name, values in names.items()}
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(60)], **table})
    responses = ResponseMatrix.create(data.responses, items=items)
    spec = Variational("mirt", 2, by_task=True)
    made = calibrate(responses, spec)
    kernel = fit_variational(data, spec, progress=silent)
    np.testing.assert_allclose(made.parameters.loadings, kernel.loadings, atol=1e-4)
    assert spec_of(made) == replace(spec, family="bernoulli")
    assert not np.allclose(made.parameters.loadings, calibrate(responses, Variational("mirt", 2)).parameters.loadings)


def test_one_common_slope_has_no_tasks():
    with pytest.raises(ParameterError, match="by_task"):
        Variational("1pl", by_task=True)
