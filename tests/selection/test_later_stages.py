"""The next items of one model, against dense conditioning, integrals and simulation."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from itembank.errors import DataError
from itembank.irt.bernoulli import probability
from itembank.irt.families import expected_curve
from itembank.irt.linear_gaussian import fit_factor_model
from itembank.irt.parameters import ItemParameters
from itembank.publishing import without_responses
from itembank.selection.later_stages import LocalDesign, LocalModel
from itembank.selection.select import select
from itembank.selection.selector_specs import VOptimal
from tests.bank.banks import make_bank, with_family
from tests.selection.test_v_optimal import dense_variances

THETA, COVARIANCE = np.array([0.6, -0.8]), np.array([[0.5, 0.1], [0.1, 0.8]])
ANSWERED = np.array([3, 10, 17])


pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=24)


def design_of(bank, **choices):
    return LocalDesign.of_bank(bank, VOptimal(**choices), ())


@pytest.mark.parametrize("target", ["balanced", "overall", "law"])
def test_each_item_is_the_best_of_all_by_dense_conditioning(bank, target):
    design = design_of(bank, target=target)
    model = design.local.at(THETA, COVARIANCE)
    found = design.next_items(THETA, COVARIANCE, ANSWERED, 6, asked=ANSWERED)
    chosen = ANSWERED.tolist()
    for item in found.tolist():
        left = {
            candidate: design.importance
            @ dense_variances(model.loadings, model.noise, design.target_weights, [*chosen, candidate])
            for candidate in range(24)
            if candidate not in chosen
        }
        assert left[item] <= min(left.values()) * (1.0 + 1e-9)
        chosen.append(item)


def test_what_was_asked_is_not_asked_again_and_without_any_answer_items_are_chosen_as_well(bank):
    asked = np.array([3, 10, 17, 5])  # 5 was not answered
    found = design_of(bank).next_items(THETA, COVARIANCE, ANSWERED, 40, asked=asked)
    assert sorted([*found.tolist(), *asked.tolist()]) == list(range(24))
    nothing = np.zeros(0, dtype=np.int64)
    assert design_of(bank).next_items(THETA, COVARIANCE, nothing, 4, asked=nothing).size == 4


def test_a_strong_model_is_asked_harder_items_than_a_weak_one(bank):
    hardness = -bank.parameters.intercept
    strong, weak = (
        design_of(bank).next_items(sign * np.ones(2), 0.1 * np.eye(2), ANSWERED, 6, asked=ANSWERED)
        for sign in (1.5, -1.5)
    )
    assert hardness[strong].mean() > hardness[weak].mean() + 0.3


def test_excluded_items_and_those_that_tell_nothing_are_not_chosen_and_a_bank_needs_responses(bank):
    calibration = dataclasses.replace(bank.calibration, is_degenerate=np.arange(24) == 7)
    bank = dataclasses.replace(bank, calibration=calibration)
    design = LocalDesign.of_bank(bank, VOptimal(), (bank.item_ids[11],))
    found = design.next_items(THETA, COVARIANCE, ANSWERED, 40, asked=ANSWERED)
    assert sorted(found.tolist()) == sorted(set(range(24)) - {7, 11, *ANSWERED.tolist()})
    published = without_responses(bank, selections=[select(bank, 9, method="v-optimal")])
    with pytest.raises(DataError, match=r"next stage needs past models' responses.* published without them"):
        design_of(published)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (0.25, 0.95)])
def test_curves_are_integrals_over_ability(lower, upper):
    parameters = ItemParameters.create(np.array([[1.3]]), np.array([-0.4]), lower, upper)
    found = expected_curve(parameters, np.array([0.7]), np.array([0.9]))

    def mean(x):
        return lower + (upper - lower) / (1.0 + np.exp(-x))

    def slope(x):
        return (mean(x + 1e-5) - mean(x - 1e-5)) / 2e-5

    for one, function in zip(found, (mean, slope, lambda x: mean(x) * (1.0 - mean(x))), strict=True):
        expected, _ = quad(lambda x, of=function: of(x) * norm.pdf(x, 0.7, 0.9), -8.0, 9.0)
        assert_allclose(one[0], expected, rtol=1e-3)


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_noise_is_the_variance_of_responses_at_an_ability(family):
    """Simulated with known truth: responses of many models of one ability, where past ones had all abilities."""
    past = make_bank(n_models=400, n_items=40, n_dims=1)
    alike = dataclasses.replace(past.calibration, abilities=np.full((400, 1), 1.5))
    past, new = (with_family(bank, family) for bank in (past, dataclasses.replace(past, calibration=alike)))
    model = design_of(past, discrepancy=0.0).local.at(np.array([1.5]), np.zeros((1, 1)))
    expected = np.sum(model.loadings[:, 1:] ** 2, axis=1) + model.noise
    actual, ordinary = new.responses.responses.var(axis=0), past.responses.responses.var(axis=0)
    assert_allclose(expected.mean(), actual.mean(), rtol=0.15)
    assert np.corrcoef(expected, actual)[0, 1] > 0.85
    assert expected.mean() < 0.7 * ordinary.mean()  # most items are easy for these models: they scatter less


def test_weights_are_those_of_the_nearest_chosen_item_and_sum_to_one_in_each_scenario(bank):
    chosen = np.array([0, 1, 2, 3, 4, 5, 9])
    weights = design_of(bank).weights_of(chosen)
    assert_allclose(np.bincount(bank.targets.scenario_index[chosen], weights=weights), 1.0)
    assert design_of(bank).weights_of(np.arange(24)) == pytest.approx(bank.targets.weights)


def test_missing_responses_of_calibration_models_are_filled_in(bank):
    responses = bank.responses.responses.copy()
    responses[np.random.default_rng(0).random(responses.shape) < 0.2] = np.nan
    gaps = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=responses))
    residual = design_of(gaps).local.residual
    assert np.all(np.isfinite(residual.loadings))
    assert_allclose(residual.noise.mean(), design_of(bank).local.residual.noise.mean(), rtol=0.25)


def test_residuals_are_fitted_in_their_own_unit(bank):
    """A factor model of a linear function of responses is that function of their factor model."""
    found = LocalModel.of_bank(bank, VOptimal()).residual
    direct = fit_factor_model(bank.responses.responses - probability(bank.parameters, bank.calibration.abilities))
    assert_allclose(found.mean, direct.mean, atol=1e-12)
    assert_allclose(found.noise, direct.noise, rtol=1e-9)
    assert_allclose(found.loadings @ found.loadings.T, direct.loadings @ direct.loadings.T, atol=1e-9)
