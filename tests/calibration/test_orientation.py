import numpy as np
import pytest
from numpy.testing import assert_allclose

from itembank.calibration.fits import Fit, standardise
from itembank.irt.parameters import AbilityPrior

ARRAYS = ("loadings", "intercept", "item_covariance", "abilities", "ability_covariance")


def _standardised(*arrays):
    return standardise(Fit(*arrays, AbilityPrior.standard(3), True, 1, "", np.zeros(1)))


def _problem(seed, n_models=30, n_items=40, n_dims=3):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_items, n_dims + 1, n_dims + 1))
    spread = 0.3 * rng.normal(size=(n_models, n_dims, n_dims))
    return (
        rng.normal(size=(n_items, n_dims)),
        rng.normal(size=n_items),
        factors @ factors.transpose(0, 2, 1),
        2.0 * rng.normal(size=(n_models, n_dims)) @ rng.normal(size=(n_dims, n_dims)) + 1.5,
        spread @ spread.transpose(0, 2, 1),
    )


@pytest.mark.parametrize("n_dims", [1, 3])
def test_predicted_logits_do_not_change(n_dims):
    before = _problem(1, n_dims=n_dims)
    after = _standardised(*before)
    assert_allclose(
        after.abilities @ after.loadings.T + after.intercept, before[3] @ before[0].T + before[1], atol=1e-12
    )


def test_variance_of_each_logit_is_that_of_the_moved_ability():
    loadings, intercept, item_covariance, abilities, ability_covariance = _problem(2)
    after = _standardised(loadings, intercept, item_covariance, abilities, ability_covariance)
    from_ability = np.einsum("id,lde,ie->li", loadings, ability_covariance, loadings)
    assert_allclose(
        np.einsum("id,lde,ie->li", after.loadings, after.ability_covariance, after.loadings), from_ability, rtol=1e-10
    )
    design = np.column_stack([abilities, np.ones(len(abilities))])
    moved = np.column_stack([after.abilities, np.ones(len(abilities))])
    assert_allclose(
        np.einsum("la,iab,lb->li", moved, after.item_covariance, moved),
        np.einsum("la,iab,lb->li", design, item_covariance, design),
        rtol=1e-9,
    )


def test_abilities_have_mean_zero_and_total_covariance_one_on_principal_axes():
    after = _standardised(*_problem(3))
    assert_allclose(after.abilities.mean(axis=0), 0.0, atol=1e-12)
    total = np.cov(after.abilities.T, bias=True) + after.ability_covariance.mean(axis=0)
    assert_allclose(total, np.eye(3), atol=1e-12)
    gram = after.loadings.T @ after.loadings
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    assert np.all(np.diff(np.diag(gram)) < 0.0)
    assert np.all(after.loadings.sum(axis=0) > 0.0)


def test_result_does_not_depend_on_the_scale_and_axes_of_the_input():
    loadings, intercept, item_covariance, abilities, ability_covariance = _problem(4)
    first = _standardised(loadings, intercept, item_covariance, abilities, ability_covariance)
    rng = np.random.default_rng(5)
    turn, shift = rng.normal(size=(3, 3)), rng.normal(size=3)  # theta = shift + turn theta'
    item_map = np.eye(4)
    item_map[:3, :3], item_map[3, :3] = turn.T, shift
    back = np.linalg.inv(turn)
    second = _standardised(
        loadings @ turn,
        intercept + loadings @ shift,
        item_map @ item_covariance @ item_map.T,
        (abilities - shift) @ back.T,
        back @ ability_covariance @ back.T,
    )
    for name in ARRAYS:
        assert_allclose(getattr(first, name), getattr(second, name), atol=1e-9)


def test_a_dimension_that_nobody_uses_keeps_its_prior_variance():
    loadings, intercept, item_covariance, abilities, ability_covariance = _problem(6)
    loadings[:, 2], abilities[:, 2], ability_covariance[:, 2, :], ability_covariance[:, :, 2] = (0.0, 0.0, 0.0, 0.0)
    ability_covariance[:, 2, 2] = 1.0
    after = _standardised(loadings, intercept, item_covariance, abilities, ability_covariance)
    assert_allclose(after.loadings[:, 2], 0.0, atol=1e-12)
    assert_allclose(after.ability_covariance[:, 2, 2], 1.0, atol=1e-10)
