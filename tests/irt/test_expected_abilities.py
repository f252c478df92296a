import numpy as np
import pytest
from scipy.integrate import quad

from itembank.errors import ParameterError
from itembank.irt.ability_specs import METHODS, ExpectedAPosteriori
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import AbilityPrior, ItemParameters
from tests.irt.scores import log_likelihood, simulate


def moments_by_adaptive_integration(parameters, responses, mode, deviation):
    def density(theta):
        at = np.array([[theta]])
        return np.exp(log_likelihood(parameters, at, responses)[0] - theta**2 / 2.0 - reference)

    reference = log_likelihood(parameters, np.array([[mode]]), responses)[0] - mode**2 / 2.0
    low, high = mode - 12.0 * deviation, mode + 12.0 * deviation
    total, first, second = (
        quad(lambda t, k=k: (t - mode) ** k * density(t), low, high, epsabs=0, epsrel=1e-11, limit=400)[0]
        for k in range(3)
    )
    mean = first / total
    return mode + mean, second / total - mean**2


@pytest.mark.parametrize("n_items", [3, 60, 1500])
@pytest.mark.parametrize("lower", [0.0, 0.25])
def test_moments_are_those_of_adaptive_integration(rng, n_items, lower):
    # 1,500 items give posteriors far narrower than the spacing of the common grid.
    parameters, responses = simulate(rng, 4, n_items, 1, lower)
    found = eap_abilities(parameters, responses, AbilityPrior.standard(1))
    mode = map_abilities(parameters, responses, AbilityPrior.standard(1))
    assert found.converged.all()
    for row in range(4):
        mean, variance = moments_by_adaptive_integration(
            parameters, responses[row : row + 1], mode.theta[row, 0], mode.standard_errors[row, 0]
        )
        assert found.theta[row, 0] == pytest.approx(mean, abs=1e-6)
        assert found.covariance[row, 0, 0] == pytest.approx(variance, rel=1e-5)


def test_a_posterior_outside_the_common_grid_is_followed(rng):
    parameters = ItemParameters.create(np.full((4000, 1), 1.0), np.full(4000, -9.0))
    responses = (rng.random((1, 4000)) < 0.5).astype(float)
    found = eap_abilities(parameters, responses, AbilityPrior.standard(1))
    mode = map_abilities(parameters, responses, AbilityPrior.standard(1))
    assert mode.theta[0, 0] > 8.0
    assert found.theta[0, 0] == pytest.approx(mode.theta[0, 0], abs=1e-3)
    assert found.converged.all()


def test_a_grid_that_was_asked_for_is_kept_and_says_when_it_is_too_coarse(rng):
    parameters, responses = simulate(rng, 3, 2000, 1)
    responses[1, 5:], responses[2, 80:] = np.nan, np.nan
    prior = AbilityPrior.standard(1)
    found = eap_abilities(parameters, responses, prior, n_quadrature=41)
    np.testing.assert_array_equal(found.converged, [False, True, True])
    # of the last the standard deviation is about one spacing, which is enough
    assert 0.8 < found.standard_errors[2, 0] / 0.3 < 1.2
    exact = eap_abilities(parameters, responses, prior)
    np.testing.assert_allclose(found.theta[1:], exact.theta[1:], atol=1e-4)
    assert abs(found.theta[0, 0] - exact.theta[0, 0]) > 1e-3


def test_own_nodes_in_two_dimensions_agree_with_a_fine_grid(rng):
    parameters, responses = simulate(rng, 3, 250, 2)
    prior = AbilityPrior(np.array([0.2, -0.1]), np.array([[1.2, 0.5], [0.5, 0.9]]))
    automatic = eap_abilities(parameters, responses, prior)
    fine = eap_abilities(parameters, responses, prior, n_quadrature=121)
    assert np.max(fine.standard_errors) < 0.2  # narrower than the automatic grid's spacing
    np.testing.assert_allclose(automatic.theta, fine.theta, atol=1e-7)
    np.testing.assert_allclose(automatic.covariance, fine.covariance, atol=1e-7)


def test_more_than_two_dimensions_are_refused(rng):
    parameters, responses = simulate(rng, 3, 10, 3)
    with pytest.raises(ParameterError, match="one or two abilities, got 3"):
        eap_abilities(parameters, responses, AbilityPrior.standard(3))


def test_short_names_and_specs_are_equal_and_unknown_ones_refused():
    for name, kind in METHODS.kinds.items():
        spec = METHODS.resolve(name)
        assert isinstance(spec, kind)
        assert METHODS.resolve(spec) is spec
    with pytest.raises(ParameterError, match=r"one of 'ml', 'map', 'eap', 'wle', got 'mle'"):
        METHODS.resolve("mle")


@pytest.mark.parametrize("options", [{"n_quadrature": 1}, {"bounds": (3.0, 3.0)}, {"bounds": (4.0, -4.0)}])
def test_impossible_grids_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        ExpectedAPosteriori(**options)
