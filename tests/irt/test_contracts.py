from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from itembank.estimation.model_abilities import abilities_of
from itembank.irt import answers as layout
from itembank.irt.ability_specs import METHODS
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters

PRIOR = AbilityPrior(np.array([0.3, -0.2]), np.array([[1.5, 0.4], [0.4, 0.8]]))
ASYMPTOTES = {"none": (0.0, 1.0), "both": (0.2, 0.97)}


@pytest.fixture(params=ASYMPTOTES)
def asymptotes(request):
    return ASYMPTOTES[request.param]


@pytest.fixture(params=[1, 2])
def prior(request):
    return AbilityPrior(PRIOR.mean[: request.param], PRIOR.covariance[: request.param, : request.param])


def make(rng, prior, asymptotes, *, n_models=8, n_items=40, share_missing=0.2):
    """Responses that no hyperplane separates (checked by the tests that need it), and their items."""
    shape = (n_items, prior.n_dims)
    loadings = rng.lognormal(0.0, 0.4, shape) * rng.choice([-1.0, 1.0], shape, p=[0.2, 0.8])
    parameters = ItemParameters.create(loadings, rng.normal(size=n_items), *asymptotes)
    theta = rng.multivariate_normal(prior.mean, prior.covariance, n_models)
    responses = (rng.random((n_models, n_items)) < probability(parameters, theta)).astype(float)
    responses[rng.random(responses.shape) < share_missing] = np.nan
    return parameters, responses


def run(method, parameters, responses, prior):
    return abilities_of(parameters, responses, prior, METHODS.resolve(method))


def same(first, second):
    # Ability is found to 1e-12 or so; the covariance is taken one step before, so to the stopping rule's 1e-7.
    assert_allclose(first.theta, second.theta, rtol=0, atol=1e-9)
    assert_allclose(first.covariance, second.covariance, rtol=1e-6)
    assert_array_equal(first.at_bound, second.at_bound)


pytestmark = pytest.mark.parametrize("method", METHODS.kinds)


def test_inputs_are_left_alone_come_in_any_order_and_missing_items_might_as_well_not_be_there(
    rng, method, prior, asymptotes
):
    parameters, responses = make(rng, prior, asymptotes)
    arrays = (responses, parameters.loadings, parameters.intercept, prior.mean)
    before = [array.copy() for array in arrays]
    found = run(method, parameters, responses, prior)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)
    models, items = rng.permutation(8), rng.permutation(40)
    turned = run(method, parameters.take(items), responses[np.ix_(models, items)], prior)
    assert_allclose(turned.theta, found.theta[models], rtol=0, atol=1e-9)
    assert_allclose(turned.covariance, found.covariance[models], rtol=1e-6)
    kept = np.flatnonzero(~np.isnan(responses[0]))
    alone = run(method, parameters.take(kept), responses[:1, kept], prior)
    assert_allclose(alone.theta, found.theta[:1], rtol=0, atol=1e-9)
    assert_allclose(alone.covariance, found.covariance[:1], rtol=1e-6)


def test_items_without_loadings_tell_nothing(rng, method, prior, asymptotes):
    parameters, responses = make(rng, prior, asymptotes)
    loadings, intercept = parameters.loadings.copy(), parameters.intercept.copy()
    loadings[::4] = 0.0
    intercept[::4] *= 1e3
    flat = replace(parameters, loadings=loadings, intercept=intercept)
    kept = np.flatnonzero(loadings.any(axis=1))
    same(run(method, flat, responses, prior), run(method, flat.take(kept), responses[:, kept], prior))


def test_own_item_lists_and_blocks_give_what_one_matrix_gives(rng, method, prior, asymptotes, monkeypatch):
    parameters, responses = make(rng, prior, asymptotes, share_missing=0.6)
    together = run(method, parameters, responses, prior)
    monkeypatch.setattr(layout, "SPARSE_BELOW", 1.1)
    assert not layout.gather(parameters, responses).is_shared
    same(run(method, parameters, responses, prior), together)
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 90)  # two models at once
    same(run(method, parameters, responses, prior), together)


def test_a_fraction_counts_as_that_share_of_right_and_wrong(rng, method, prior, asymptotes):
    # Two copies of every item answered right and wrong weigh as two copies answered 0.5.
    parameters, responses = make(rng, prior, asymptotes, share_missing=0.0)
    twice = parameters.take(np.tile(np.arange(40), 2))
    responses[:, ::3] = 0.5
    split = np.tile(responses, 2)
    split[:, :40][:, ::3], split[:, 40:][:, ::3] = 1.0, 0.0
    same(run(method, twice, split, prior), run(method, twice, np.tile(responses, 2), prior))


def test_the_answer_does_not_depend_on_the_ability_scale(rng, method, prior, asymptotes):
    # theta -> K theta + m; a diagonal K, since the grid of EAP runs along the axes.
    parameters, responses = make(rng, prior, asymptotes)
    change, shift = np.diag([2.5, -0.4][: prior.n_dims]), np.array([30.0, -7.0])[: prior.n_dims]
    loadings = parameters.loadings @ np.linalg.inv(change)
    moved = replace(parameters, loadings=loadings, intercept=parameters.intercept - loadings @ shift)
    moved_prior = AbilityPrior(change @ prior.mean + shift, change @ prior.covariance @ change.T)
    here, there = run(method, parameters, responses, prior), run(method, moved, responses, moved_prior)
    assert_allclose(there.theta, here.theta @ change.T + shift, rtol=0, atol=1e-7)
    assert_allclose(there.covariance, change @ here.covariance @ change.T, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_answered", [0, 1])
def test_a_model_without_informative_answers_has_the_prior_or_nothing(rng, method, prior, asymptotes, n_answered):
    parameters, responses = make(rng, prior, asymptotes)
    parameters.loadings[0] = 0.0
    responses[2] = np.nan
    responses[2, :n_answered] = 1.0  # the item that has no loadings
    for rows in (np.arange(8), np.array([2])):
        found = run(method, parameters, responses[rows], prior)
        place = int(np.flatnonzero(rows == 2)[0])
        if method in {"ml", "wle"}:
            assert np.isnan([*found.covariance[place], found.theta[place]]).all()
            assert (found.at_bound[place], found.converged[place]) == (True, False)
        else:
            assert_allclose(found.theta[place], prior.mean, atol=1e-12)
            assert_allclose(found.covariance[place], prior.covariance, atol=1e-12)
            assert not found.at_bound[place]


def test_extreme_parameters_are_survived(rng, method, prior):
    n_items = 60
    loadings = rng.normal(size=(n_items, prior.n_dims)) * 10.0 ** rng.uniform(-3, 3, (n_items, 1))
    lower = np.where(rng.random(n_items) < 0.5, 0.0, 0.3)
    parameters = ItemParameters.create(loadings, rng.normal(size=n_items) * 100.0, lower)
    found = run(method, parameters, (rng.random((50, n_items)) < 0.5).astype(float), prior)
    assert np.all(np.isfinite(found.theta) | found.at_bound[:, None])
    assert found.converged.mean() > 0.9


def test_abilities_are_recovered_within_their_standard_errors(rng, method, prior, asymptotes):
    parameters, _ = make(rng, prior, asymptotes, n_items=200)
    theta = rng.multivariate_normal(prior.mean, prior.covariance, 300)
    responses = (rng.random((300, 200)) < probability(parameters, theta)).astype(float)
    found = run(method, parameters, responses, prior)
    errors = (found.theta - theta) / found.standard_errors
    # 300 models: standard error of the mean .06, of the standard deviation .04.
    assert np.abs(errors.mean(axis=0)).max() < 0.2
    assert np.abs(errors.std(axis=0) - 1.0).max() < 0.15
