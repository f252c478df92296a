from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import gamma, multivariate_normal, norm

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.fits import FitData
from itembank.calibration.variational import updates
from itembank.calibration.variational.ascent import ascend
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.scale import rescale
from itembank.calibration.variational.state import ItemPrior
from itembank.errors import ParameterError
from itembank.estimation.folds import spec_of
from itembank.progress import silent
from itembank.responses.responses import ResponseMatrix
from tests.calibration.simulated import random_posterior, simulate, tell_apart
from tests.calibration.variational.test_ascent import begin

TASKS = np.arange(60) % 7


def with_tasks(posterior, index, *, rounds=1):
    tasks = None if index is None else updates.start_tasks(index, posterior.n_dims + 1)
    prior = replace(posterior.item_prior, tasks=tasks)
    posterior = replace(posterior, item_prior=prior)
    for _ in range(rounds):
        posterior = updates.update_item_prior(posterior)
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


@pytest.mark.parametrize(("is_nested", "has_tasks"), [(False, True), (True, True), (False, False)])
def test_what_tasks_and_the_prior_say_is_at_its_best_given_the_items(is_nested, has_tasks):
    index = TASKS if has_tasks else None
    posterior = with_tasks(replace(random_posterior(20, 60, 2), is_nested=is_nested), index, rounds=60)
    best = updates.divergence(posterior)
    prior, tasks = posterior.item_prior, posterior.item_prior.tasks

    def near(part, names):
        return [replace(part, **{name: getattr(part, name) * by}) for name in names.split() for by in (0.99, 1.01)]

    others = [replace(prior, tasks=one) for one in near(tasks, "mean variance shape rate")] if has_tasks else []
    for changed in (*near(prior, "mean mean_variance shape rate"), *others):
        assert updates.divergence(replace(posterior, item_prior=changed)) >= best


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
    assert np.all(np.abs(updates.task_divergence(prior, tasks) - draws.mean(axis=0)) < 4.5 * error)
    assert updates.item_prior_divergence(with_tasks(random_posterior(20, 60, 2), TASKS)) > 0.0


def test_rescaling_keeps_the_tasks_and_does_not_lower_the_bound():
    posterior = with_tasks(random_posterior(20, 60, 3), TASKS)
    moved = rescale(posterior)
    assert updates.divergence(moved) <= updates.divergence(updates.update_item_prior(posterior))
    assert_array_equal(moved.item_prior.tasks.index, TASKS)


def test_chances_are_closer_with_few_models_and_many_alike():
    for seed in range(2):
        chances, data = simulate_tasks(20, 12, 20, seed=seed)
        fits = [
            fit_variational(one, Variational("mirt", 2), progress=silent)
            for one in (data, replace(data, task_index=None))
        ]
        found = [expit(one.abilities @ one.loadings.T + one.intercept) for one in fits]
        by_task, plain = np.sqrt(np.mean((np.array(found) - chances) ** 2, axis=(1, 2)))
        assert by_task < 0.8 * plain


def test_a_subset_first_leads_to_the_same_place(monkeypatch):
    _, data = simulate_tasks(30, 6, 20, seed=4)
    spec, last = Variational("mirt", 2, tolerance=1e-6, single_precision=False), []
    for size in (10**6, 60):
        monkeypatch.setattr("itembank.calibration.variational.fit.SUBSET_SIZE", size)
        last.append(fit_variational(data, spec, progress=silent).history[-1])
    assert last[1] == pytest.approx(last[0], rel=1e-5)


def test_tasks_are_scenarios_and_subscenarios_and_the_bank_remembers():
    _, data = simulate_tasks(30, 4, 15, seed=5)
    names = {"scenario": ["a", "a", "b", "b"], "subscenario": ["x", "y", "x", None]}
    table = {name: np.repeat(np.array(values, dtype=object), 15).tolist() for name, values in names.items()}
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(60)], **table})
    responses = ResponseMatrix.create(data.responses, items=items)
    spec = Variational("mirt", 2, by_task=True)
    made = fit_item_model(responses, spec)
    kernel = fit_variational(data, spec, progress=silent)
    assert_allclose(made.parameters.loadings, kernel.loadings, atol=1e-4)
    assert spec_of(made) == replace(spec, family="bernoulli")
    plain = fit_item_model(responses, Variational("mirt", 2))
    assert not np.allclose(made.parameters.loadings, plain.parameters.loadings)
    with pytest.raises(ParameterError, match="by_task"):
        Variational("1pl", by_task=True)


N_ITEMS = 6


def statistics(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N_ITEMS, 2, 2))
    return root @ root.swapaxes(1, 2) + 0.1 * np.eye(2), rng.normal(size=(N_ITEMS, 2))


def dense(posterior, precision, linear):
    """Natural parameters of slope and intercepts as one dense matrix and vector, the prior included."""
    prior = posterior.item_prior
    whole, right = np.zeros((N_ITEMS + 1, N_ITEMS + 1)), np.zeros(N_ITEMS + 1)
    whole[0, 0], right[0] = precision[:, 0, 0].sum() + 0.1, linear[:, 0].sum()
    whole[0, 1:] = whole[1:, 0] = precision[:, 0, 1]
    whole[np.arange(1, N_ITEMS + 1), np.arange(1, N_ITEMS + 1)] = precision[:, 1, 1] + prior.precision[1]
    right[1:] = linear[:, 1] + prior.precision[1] * prior.mean[1]
    return whole, right


def check(posterior, whole, right):
    covariance = np.linalg.inv(whole)
    mean = covariance @ right
    slope, shared, diagonal = np.full(N_ITEMS, mean[0]), np.full(N_ITEMS, covariance[0, 0]), np.diag(covariance)[1:]
    found = posterior.item_covariance
    assert_allclose(posterior.item_mean, np.column_stack([slope, mean[1:]]), rtol=1e-9)
    assert_allclose([found[:, 0, 0], found[:, 0, 1], found[:, 1, 1]], [shared, covariance[0, 1:], diagonal], rtol=1e-9)


def test_an_update_is_the_dense_solution_and_a_short_step_lies_between_the_natural_parameters():
    start = replace(random_posterior(5, N_ITEMS, 1), has_common_slope=True)
    first, second = statistics(0), statistics(1)
    before = updates.update_common_slope(start, *first, 1.0)
    check(before, *dense(start, *first))
    after = updates.update_common_slope(before, *second, 0.3)
    old, new = dense(start, *first), dense(before, *second)
    check(after, 0.7 * old[0] + 0.3 * new[0], 0.7 * old[1] + 0.3 * new[1])


def test_items_move_to_the_most_probable_point_with_the_least_slope_where_asked_and_are_counted():
    posterior = replace(random_posterior(8, 12, 1), is_positive=True)
    moved = updates.with_positive_slopes(posterior)
    below = posterior.item_mean[:, 0] < updates.LEAST_SLOPE
    assert 0 < below.sum() < 12
    assert_array_equal(moved.item_mean[~below], posterior.item_mean[~below])
    for item in np.flatnonzero(below):
        precision = np.linalg.inv(posterior.item_covariance[item])

        def distance(intercept, item=item, precision=precision):
            away = np.array([updates.LEAST_SLOPE, intercept[0]]) - posterior.item_mean[item]
            return away @ precision @ away

        best = minimize(distance, [0.0], tol=1e-12).x[0]
        assert_allclose(moved.item_mean[item], [updates.LEAST_SLOPE, best], atol=1e-5)
    assert f"{below.sum()} of 12 slopes" in updates.note_of_least_slopes(moved)
    free = replace(posterior, is_positive=False)
    assert updates.with_positive_slopes(free) is free
    assert updates.note_of_least_slopes(free) == ""
    assert updates.note_of_least_slopes(replace(posterior, item_mean=np.abs(posterior.item_mean) + 0.1)) == ""


PRIOR = ItemPrior(
    np.array([0.4, -0.3, 0.1]), np.array([0.02, 0.1, 0.3]), np.array([4.0, 7.0, 2.5]), np.array([2.0, 9.0, 3.0])
)


def kl_by_entropy(mean, covariance, prior_mean, prior_covariance):
    """Minus entropy plus cross entropy, the latter by the expectation of a quadratic."""
    deviation = mean - prior_mean
    inside = np.trace(np.linalg.solve(prior_covariance, covariance + np.outer(deviation, deviation)))
    cross = 0.5 * (inside + np.linalg.slogdet(2 * np.pi * prior_covariance)[1])
    return cross - multivariate_normal(mean, covariance).entropy()


def test_abilities_against_entropies_and_the_whole_is_the_sum_of_its_parts():
    posterior = random_posterior(5, 4, 2)
    abilities = zip(posterior.ability_mean, posterior.ability_covariance, strict=True)
    expected = sum(kl_by_entropy(*one, np.zeros(2), np.eye(2)) for one in abilities)
    assert updates.ability_divergence(posterior) == pytest.approx(expected, rel=1e-10)
    parts = (
        updates.ability_divergence(posterior)
        + updates.item_divergence(posterior).sum()
        + updates.item_prior_divergence(posterior)
    )
    assert updates.divergence(posterior) == pytest.approx(parts)


def test_items_and_parameters_of_the_prior_against_draws_and_integration():
    posterior = replace(random_posterior(5, 4, 2), item_prior=PRIOR)
    rng = np.random.default_rng(0)
    items = list(zip(posterior.item_mean, posterior.item_covariance, strict=True))
    means = rng.normal(PRIOR.mean, np.sqrt(PRIOR.mean_variance), size=(400, 3))
    spreads = 1.0 / rng.gamma(PRIOR.shape, 1.0 / PRIOR.rate, size=(400, 3))
    draws = [
        [kl_by_entropy(*item, mu, np.diag(spread)) for item in items] for mu, spread in zip(means, spreads, strict=True)
    ]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(updates.item_divergence(posterior) - np.mean(draws, axis=0)) < 4.5 * error)
    posterior = random_posterior(5, 4, 2)

    def between(q, p, low, high):
        return quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), low, high, limit=200)[0]

    expected = 0.0
    for mean, variance, shape, rate in zip(PRIOR.mean, PRIOR.mean_variance, PRIOR.shape, PRIOR.rate, strict=True):
        expected += between(norm(mean, np.sqrt(variance)), norm(0.0, np.sqrt(10.0)), -6, 6)
        expected += between(gamma(shape, scale=1.0 / rate), gamma(1.0), 1e-12, 30)
    assert updates.item_prior_divergence(replace(posterior, item_prior=PRIOR)) == pytest.approx(expected, rel=1e-6)
    # of a known mean what is left is that of the precision: the limit of a mean that is known better and better
    known = replace(PRIOR, mean=np.array([0.4, 0.0, 0.1]), mean_variance=np.array([0.02, 0.0, 0.3]))
    free = replace(known, mean_variance=np.array([0.02, 10.0, 0.3]))  # as its own prior: no divergence either
    found = [updates.item_prior_divergence(replace(posterior, item_prior=prior)) for prior in (known, free)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_common_slope_counts_once():
    rng = np.random.default_rng(1)
    n_items = 4
    posterior = replace(random_posterior(6, n_items, 1), has_common_slope=True)
    root = rng.normal(size=(n_items, 2, 2))
    posterior = updates.update_common_slope(posterior, root @ root.swapaxes(1, 2), rng.normal(size=(n_items, 2)), 1.0)
    # the joint covariance of slope and intercepts, from that of each pair
    coupling = np.append(posterior.item_covariance[0, 0, 0], posterior.item_covariance[:, 0, 1])
    joint = np.outer(coupling, coupling) / coupling[0]
    joint[np.arange(1, n_items + 1), np.arange(1, n_items + 1)] = posterior.item_covariance[:, 1, 1]
    mean = np.append(posterior.item_mean[0, 0], posterior.item_mean[:, 1])
    # a known prior: mean 0, precision 1/2
    known = {"mean_variance": np.full(2, 1e-12), "shape": np.full(2, 1e12), "rate": np.full(2, 2e12)}
    tight = replace(posterior.item_prior, **known)
    posterior = replace(posterior, item_prior=tight)
    expected = kl_by_entropy(mean, joint, np.zeros(n_items + 1), np.diag([10.0, *[2.0] * n_items]))
    assert updates.item_divergence(posterior).sum() == pytest.approx(expected, rel=1e-6)
