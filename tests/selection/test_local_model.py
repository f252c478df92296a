"""V-optimal items for single abilities, against enumeration of what they are defined by."""

import numpy as np
import pytest

from itembank.bank.bank_factors import bank_factor_model
from itembank.errors import ParameterError
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import fit_factor_model
from itembank.selection.local_model import LocalModel, _residual_model, usual_abilities
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select
from itembank.selection.selector_specs import VOptimal
from itembank.selection.v_optimal import wanted_scores
from tests.bank.banks import make_bank
from tests.selection.test_v_optimal import dense_variances


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=24)


@pytest.mark.parametrize("n_abilities", [1, 3])
def test_items_are_the_best_of_all_for_half_the_one_criterion_and_half_the_other(bank, n_abilities):
    spec = VOptimal(minimum_per_scenario=0, n_abilities=n_abilities)
    usual, local = bank_factor_model(bank, discrepancy="auto"), LocalModel.of_bank(bank, spec)
    abilities = bank.calibration.abilities
    order = np.argsort(probability(bank.parameters, abilities) @ bank.targets.overall_weights)
    groups = order.reshape(n_abilities, 30 // n_abilities)
    near = [local.at(abilities[group].mean(axis=0), np.zeros((2, 2))) for group in groups]
    weights, importance = wanted_scores(bank.targets, spec)

    def left(items):
        variances = [importance @ dense_variances(one.loadings, one.noise, weights, items) for one in (usual, *near)]
        return 0.5 * variances[0] + 0.5 * np.mean(variances[1:])

    chosen = []
    for _ in range(6):
        chosen.append(min(set(range(24)) - set(chosen), key=lambda one: left([*chosen, one])))
    assert items_of(bank, 6, spec) == sorted(chosen)


def items_of(bank, n_items, spec):
    return sorted(bank.responses.item_indices(select(bank, n_items, method=spec, rng=0).item_ids).tolist())


def test_without_abilities_the_items_are_those_of_the_factor_model(bank):
    """The criterion by itself, by enumeration: what is chosen by default does not know of the local models."""
    usual = bank_factor_model(bank, discrepancy="auto")
    weights, importance = wanted_scores(bank.targets, VOptimal())
    chosen = []
    for _ in range(6):
        left = {
            one: importance @ dense_variances(usual.loadings, usual.noise, weights, [*chosen, one])
            for one in set(range(24)) - set(chosen)
        }
        chosen.append(min(left, key=left.get))
    assert items_of(bank, 6, VOptimal(minimum_per_scenario=0, n_abilities=0)) == sorted(chosen)


def test_abilities_are_means_of_equal_groups_from_weak_to_strong():
    bank = make_bank(n_models=12, n_items=30, n_dims=1)
    theta = np.sort(bank.calibration.abilities, axis=0)  # one ability, positive slopes: scores have its order
    np.testing.assert_allclose(usual_abilities(bank, 4), theta.reshape(4, 3).mean(axis=1, keepdims=True))
    np.testing.assert_array_equal(usual_abilities(bank, 50), theta)


def test_the_recipe_keeps_the_number_so_that_folds_choose_alike(bank):
    selection = select(bank, 6, method=VOptimal(n_abilities=5), rng=0)
    assert read_recipe(selection).spec == VOptimal(n_abilities=5)


def test_a_number_below_zero_is_refused():
    with pytest.raises(ParameterError, match="n_abilities must be a whole number >= 0, got -1"):
        VOptimal(n_abilities=-1)


def test_residuals_are_fitted_in_their_own_unit():
    """A factor model of a linear function of responses is that function of their factor model."""
    rng = np.random.default_rng(0)
    residual = np.clip(
        rng.normal(size=(40, 2)) @ rng.normal(scale=0.2, size=(2, 60)) + rng.normal(0, 0.1, (40, 60)), -1, 1
    )
    found, direct = _residual_model(residual, VOptimal()), fit_factor_model(residual, n_factors=VOptimal().n_factors)
    np.testing.assert_allclose(found.mean, direct.mean, atol=1e-12)
    np.testing.assert_allclose(found.noise, direct.noise, rtol=1e-9)
    np.testing.assert_allclose(found.loadings @ found.loadings.T, direct.loadings @ direct.loadings.T, atol=1e-9)
