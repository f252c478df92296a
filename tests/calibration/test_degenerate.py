import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit

from itembank.calibration.calibration_specs import JointMAP
from itembank.calibration.families import find_degenerate, put_back
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.fits import Fit, PreparedResponses
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior
from itembank.responses.responses import ResponseMatrix


def make_fit(rng, *, n_models=30, n_items=12, n_dims=2, common_slope=None):
    loadings = (
        rng.lognormal(0.0, 0.4, (n_items, n_dims)) if common_slope is None else np.full((n_items, 1), common_slope)
    )
    size = loadings.shape[1] + 1
    abilities = rng.normal(size=(n_models, size - 1))
    covariances = np.tile(0.1 * np.eye(size), (n_items, 1, 1)), np.tile(0.1 * np.eye(size - 1), (n_models, 1, 1))
    prior = AbilityPrior.standard(size - 1)
    return Fit(
        loadings, rng.normal(size=n_items), covariances[0], abilities, covariances[1], prior, True, 1, "", np.zeros(1)
    )


def with_degenerate(fit, rng, columns):
    """Responses to the fitted items (which do not matter) with degenerate columns put at the end."""
    varied = np.zeros((fit.abilities.shape[0], fit.loadings.shape[0]))
    varied[rng.integers(varied.shape[0], size=varied.shape[1]), np.arange(varied.shape[1])] = 1.0
    return np.column_stack([varied, *columns])


def prepared(responses, is_degenerate):
    return PreparedResponses("bernoulli", responses, None, {}, is_degenerate)


def test_items_of_one_response_are_found():
    responses = np.array([[1.0, 0.0, 1.0, np.nan], [1.0, 0.0, 0.0, 1.0], [np.nan, 0.0, 1.0, np.nan]])
    assert_array_equal(find_degenerate(responses), [True, True, False, True])


@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_a_degenerate_item_has_the_mode_of_its_posterior(lower):
    rng = np.random.default_rng(1)
    fit = make_fit(rng)
    right = np.ones(30)
    right[5:20] = np.nan
    responses = with_degenerate(fit, rng, [right])
    asymptotes = np.zeros(13)
    asymptotes[12] = lower
    parameters, _ = put_back(fit, prepared(responses, np.arange(13) == 12), asymptotes)

    fitted = np.column_stack([fit.loadings, fit.intercept])
    precision = np.linalg.inv(np.cov(fitted.T) + 1e-6 * np.eye(3))
    design = np.column_stack([fit.abilities, np.ones(30)])[~np.isnan(right)]

    def objective(beta):
        distance = beta - fitted.mean(axis=0)
        share = 1.0 / (1.0 + np.exp(-design @ beta))
        return 0.5 * distance @ precision @ distance - np.sum(np.log(lower + (1.0 - lower) * share))

    expected = minimize(objective, fitted.mean(axis=0), method="BFGS", options={"gtol": 1e-8}).x
    found = np.append(parameters.loadings[12], parameters.intercept[12])
    assert_allclose(found, expected, atol=1e-5)
    assert parameters.lower_asymptote[12] == lower


def test_what_nobody_solved_is_improbable_for_them_and_less_so_for_stronger_models():
    rng = np.random.default_rng(2)
    fit = make_fit(rng, n_dims=1)
    parameters, _ = put_back(
        fit, prepared(with_degenerate(fit, rng, [np.zeros(30)]), np.arange(13) == 12), np.zeros(13)
    )
    chances = probability(parameters, np.array([[0.0], [3.0], [6.0]]))[:, 12]
    assert chances[0] < 0.1
    assert np.all(np.diff(chances) > 0.05)


def test_fitted_items_keep_their_parameters_and_order():
    rng = np.random.default_rng(3)
    fit = make_fit(rng)
    responses = with_degenerate(fit, rng, [np.zeros(30), np.ones(30)])
    order = np.array([13, *range(5), 12, *range(5, 12)])
    parameters, covariance = put_back(fit, prepared(responses[:, order], order >= 12), np.zeros(14))
    fitted = np.flatnonzero(order < 12)
    assert_array_equal(parameters.loadings[fitted], fit.loadings)
    assert_array_equal(parameters.intercept[fitted], fit.intercept)
    assert_array_equal(covariance[fitted], fit.item_covariance)
    assert parameters.intercept[0] > parameters.intercept[6]  # all right above all wrong


def test_a_common_slope_stays_common():
    rng = np.random.default_rng(4)
    fit = make_fit(rng, common_slope=1.3)
    parameters, _ = put_back(
        fit, prepared(with_degenerate(fit, rng, [np.zeros(30)]), np.arange(13) == 12), np.zeros(13)
    )
    assert parameters.loadings[12, 0] == pytest.approx(1.3, abs=1e-4)


def test_one_fitted_item_is_prior_enough():
    rng = np.random.default_rng(5)
    fit = make_fit(rng, n_items=1)
    parameters, covariance = put_back(
        fit, prepared(with_degenerate(fit, rng, [np.ones(30)]), np.arange(2) == 1), np.zeros(2)
    )
    assert np.isfinite(parameters.loadings).all()
    assert np.all(np.linalg.eigvalsh(covariance[1]) > 0.0)


def test_the_majority_is_predicted_for_every_model_on_request():
    """WILD A.1: (n + 1/2) / (n + 1) for n equal answers, whatever the ability."""
    rng = np.random.default_rng(0)
    responses = (rng.random((20, 12)) < 0.5).astype(float)
    responses[:, 3], responses[:, 7] = 1.0, 0.0
    responses[:5, 7] = np.nan
    found = fit_item_model(ResponseMatrix.create(responses), JointMAP("nested", n_dims=2, degenerate="majority"))
    parameters = found.parameters
    assert_array_equal(found.is_degenerate, np.isin(np.arange(12), [3, 7]))
    assert_array_equal(parameters.loadings[[3, 7]], 0.0)
    assert_allclose(expit(parameters.intercept[[3, 7]]), [20.5 / 21.0, 0.5 / 16.0])
    # the binomial information of n + 1 answers about a logit is (n + 1) p (1 - p)
    variance = found.item_covariance[[3, 7], -1, -1]
    assert_allclose(1.0 / variance, [21.0 * (20.5 * 0.5) / 21.0**2, 16.0 * (15.5 * 0.5) / 16.0**2])
