"""Derivatives and information of every family, against differences and expectations over the responses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

from itembank.errors import ParameterError
from itembank.irt import beta, beta_binomial
from itembank.irt.beta import clip_probabilities
from itembank.irt.families import ResponseModel, information_weights, likelihood_terms, response_model
from itembank.irt.family_names import FAMILIES, WITH_PRECISION, Family
from itembank.irt.logistic import asymptotes_of
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray
from tests.irt.scores import differentiate

ASYMPTOTES = [None, asymptotes_of(np.array(0.2), np.array(0.95))]
X = np.array([-6.0, -2.5, -0.7, 0.0, 0.4, 3.0, 5.0])


def model(family: Family, precision: float, asymptotes: object) -> ResponseModel:
    """A family with one precision for all."""
    return response_model(family, asymptotes, np.array(precision) if family in WITH_PRECISION else None)  # type: ignore[arg-type]


def chances(asymptotes: object) -> FloatArray:
    """Probabilities at the points X."""
    p = 1.0 / (1.0 + np.exp(-X))
    return p if asymptotes is None else 0.2 + 0.75 * p


def responses_of(family: Family, n: float) -> FloatArray:
    """Some responses a family can have, (n_responses, 1)."""
    if family == "beta":
        return np.array([[0.0], [1e-4], [0.2], [0.5], [0.97], [1.0]])
    if family == "bernoulli":
        return np.array([[0.0], [1.0], [0.3]])
    return np.array([[0.0], [1.0 / n], [np.floor(n / 2) / n], [1.0]])


@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
@pytest.mark.parametrize("precision", [0.05, 1.0, 12.0, 3000.0])
@pytest.mark.parametrize("n", [1.0, 5.0, 70_000.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_those_of_the_log_likelihood(family, n, precision, asymptotes):
    one, y, trials = model(family, precision, asymptotes), responses_of(family, n), np.array(n)
    terms = one.likelihood_terms(X, y, trials)
    scale = 1.0 + np.sqrt(np.abs(terms.curvature)) + np.abs(terms.curvature) + 1e-4 * n
    assert_array_equal(terms.log_likelihood, one.log_likelihood_terms(X, y, trials))
    slope = differentiate(lambda x: one.log_likelihood_terms(x, y, trials), X)
    assert np.max(np.abs(slope - terms.slope) / scale) < 1e-6
    curvature = differentiate(lambda x: -one.likelihood_terms(x, y, trials).slope, X)
    assert np.max(np.abs(curvature - terms.curvature) / scale) < 1e-6
    weights, first, second = one.information_slopes(X, trials)
    assert_allclose(weights, one.information_weights(X, trials), rtol=1e-13)
    size = 1.0 + weights
    assert np.max(np.abs(differentiate(lambda x: one.information_slopes(x, trials)[0], X) - first) / size) < 1e-6
    assert np.max(np.abs(differentiate(lambda x: one.information_slopes(x, trials)[1], X) - second) / size) < 1e-4


@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
@pytest.mark.parametrize("precision", [0.01, 0.4, 3.0, 40.0, 1e4])
def test_beta_information_is_the_expected_square_of_the_slope(precision, asymptotes):
    p = chances(asymptotes)
    law = beta_distribution(p * precision, (1 - p) * precision)
    u = np.linspace(-1.0, 1.0, 200_001)[:, None] * np.log(1e6 - 1.0)  # y = sigmoid(u) has exponential tails
    y = 1.0 / (1.0 + np.exp(-u))
    mass = law.pdf(y) * y * (1 - y) * (u[1] - u[0])
    mass[[0, -1]] /= 2.0

    def slope(y: FloatArray) -> FloatArray:
        return beta.likelihood_terms(X, y, np.array(precision), asymptotes).slope

    low, high = slope(np.array(0.0)), slope(np.array(1.0))
    inside = np.sum((mass * slope(np.clip(y, 1.2e-6, 1 - 1.2e-6)) ** 2), axis=0)
    expected = inside + law.cdf(1e-6) * low**2 + law.sf(1 - 1e-6) * high**2
    information = beta.information_weights(X, np.array(precision), asymptotes)
    assert_allclose(information, expected, rtol=2e-3)
    far = beta.information_weights(np.array([-40.0, -25.0, 25.0, 40.0]), np.array(20.0))
    assert np.all((far > 0.0) & (far < 1e-4))  # items far too hard or easy tell next to nothing


@pytest.mark.parametrize("precision", [0.05, 3.0, 200.0])
@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
def test_beta_responses_at_the_ends_have_the_chance_of_being_there(precision, asymptotes):
    p = chances(asymptotes)
    law = beta_distribution(p * precision, (1 - p) * precision)
    ours = beta.log_likelihood_terms(X, np.array([[0.0], [1.0]]), np.array(precision), asymptotes)
    expected = np.array([law.logcdf(1e-6), law.logsf(1 - 1e-6)])
    is_known = np.isfinite(expected)  # scipy's chances underflow
    assert is_known.sum() >= 4
    assert_allclose(ours[is_known], expected[is_known], rtol=2e-4, atol=(precision + 1.0) * 1e-6)


@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
@pytest.mark.parametrize("precision", [0.05, 2.0, 300.0])
@pytest.mark.parametrize("n", [1, 2, 30, 256, 257, 1500])
def test_beta_binomial_information_is_the_expected_curvature(n, precision, asymptotes):
    p = chances(asymptotes)
    k = np.arange(n + 1)[:, None]
    mass = betabinom.pmf(k, n, p * precision, (1 - p) * precision)
    curvature = beta_binomial.likelihood_terms(X, k / n, np.array(precision), np.array(float(n)), asymptotes).curvature
    information = beta_binomial.information_weights(X, np.array(precision), np.array(float(n)), asymptotes)
    assert_allclose(information, np.sum(mass * curvature, axis=0), rtol=3e-6, atol=1e-9)


def test_beta_and_beta_binomial_are_scipys_and_trials_add_information_up_to_that_of_the_probability():
    k, n, precision, p = np.arange(13)[:, None], 12, 4.0, chances(None)
    ours = beta_binomial.log_likelihood_terms(X, k / n, np.array(precision), np.array(12.0))
    coefficient = binom.logpmf(k, n, 0.5) + n * np.log(2.0)
    assert_allclose(
        ours + coefficient, betabinom.logpmf(k, n, p * precision, (1 - p) * precision), rtol=1e-11, atol=1e-12
    )
    y, precision = np.array([[0.02], [0.5], [0.9]]), 8.0
    ours = beta.log_likelihood_terms(X, y, np.array(precision))
    assert_allclose(ours, beta_distribution.logpdf(y, p * precision, (1 - p) * precision), rtol=1e-12)
    none, phi = np.array(0.0), np.array(3.0)
    assert_array_equal(model("beta-binomial", 3.0, None).likelihood_terms(X, none, none), 0.0)
    assert_array_equal(beta_binomial.information_weights(X, phi, none), 0.0)
    n = np.array([1.0, 2.0, 10.0, 200.0, 1e4, 1e6, 1e9])[:, None]
    information = beta_binomial.information_weights(X, np.array(6.0), n)
    assert np.all(np.diff(information, axis=0) > 0.0)
    inside = np.abs(X) < 1.0  # further out even a thousand million trials leave a rate of the smallest p unknown
    assert_allclose(information[-1, inside], beta.information_weights(X, np.array(6.0))[inside], rtol=1e-5)


@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
def test_beta_binomial_without_spread_is_binomial(asymptotes):
    y, n = np.array([[0.0], [0.3], [1.0]]), np.array(4e6)
    spread = model("beta-binomial", 1e18, asymptotes)
    pure = model("binomial", 0.0, asymptotes)
    for one, other in zip(spread.likelihood_terms(X, y, n), pure.likelihood_terms(X, y, n), strict=True):
        assert_allclose(one, np.broadcast_to(other, one.shape), rtol=1e-6)
    few = np.array(40.0)
    assert_allclose(spread.information_weights(X, few), pure.information_weights(X, few), rtol=1e-10)


@pytest.mark.parametrize("precision", [1e-2, 1.0, 1e5])
@pytest.mark.parametrize("asymptotes", ASYMPTOTES)
def test_one_beta_binomial_trial_is_bernoulli(precision, asymptotes):
    y = np.array([[0.0], [1.0]])
    one, other = model("beta-binomial", precision, asymptotes), model("bernoulli", 0.0, asymptotes)
    for ours, plain in zip(one.likelihood_terms(X, y), other.likelihood_terms(X, y), strict=True):
        assert_allclose(ours, np.broadcast_to(plain, ours.shape), rtol=1e-9, atol=1e-11)
    assert_array_equal(one.information_weights(X), other.information_weights(X))


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_of_parameters_are_those_of_the_model(family):
    precision = np.array([2.0, 30.0]) if family in WITH_PRECISION else None
    parameters = ItemParameters.create(np.ones((2, 1)), np.zeros(2), 0.1, family=family, precision=precision)
    x, y, n = np.array([[0.3, -1.0]]), np.array([[0.5, np.nan]]), np.array([[4.0, 2.0]])
    terms = likelihood_terms(parameters, x, y, n)
    assert all(np.isfinite(term[0, 0]) for term in terms)
    assert np.isnan(terms.slope[0, 1])
    weights = information_weights(parameters, x, n)
    one = ResponseModel.of(parameters.take(np.array([1])))
    assert_allclose(weights[:, 1:], one.information_weights(x[:, 1:], n[:, 1:]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "beta"}, "needs a precision"),
        ({"family": "binomial", "precision": 2.0}, "have a precision"),
        ({"family": "beta", "precision": np.array([1.0, 0.0, 2.0])}, "positive and finite, got 0.0 for item number 1"),
        ({"family": "poisson"}, "family must be one of"),
    ],
)
def test_parameters_refuse_a_precision_that_does_not_fit(options, message):
    with pytest.raises(ParameterError, match=message):
        ItemParameters.create(np.ones((3, 1)), np.zeros(3), **options)


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_attempts_that_agree_have_finite_terms_far_out(logit):
    """With phi of a hundredth the shape p phi of a far logit would be no number that can be divided by."""
    terms = beta_binomial.likelihood_terms(*(np.array([value]) for value in (logit, 0.5, 0.01, 100.0)))
    assert np.isfinite(terms).all()
    assert np.sign(terms.slope) == -np.sign(logit)


@pytest.mark.parametrize("x", [-700.0, -360.0, -50.0])
def test_a_beta_density_of_a_logit_that_is_far_out_has_its_limits(x):
    """Gamma(a) goes as 1 / a, so that the log-density goes as the logit itself; an ascent may try such logits."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        left, right = (beta.likelihood_terms(*np.array([[one], [y], [5.0]])) for one, y in ((x, 0.3), (-x, 0.7)))
    assert_allclose([left.slope, -right.slope], 1.0, atol=1e-12)
    assert_allclose([left.curvature, right.curvature], 0.0, atol=1e-12)


def test_what_lies_outside_is_clipped_and_counted():
    responses = np.array([[0.0, 1.0, 0.5], [1e-9, np.nan, 1.0]])
    clipped, note = clip_probabilities(responses, 1e-6)
    assert_array_equal(clipped, [[1e-6, 1 - 1e-6, 0.5], [1e-6, np.nan, 1 - 1e-6]])
    assert note == (
        "4 of 5 probabilities lie outside [1e-06, 1 - 1e-06] and are clipped to it (1 are exactly 0, 2 exactly 1)."
    )
    assert responses[0, 0] == 0.0
    assert clip_probabilities(np.array([0.2, 1e-6, np.nan]))[1] == ""
    clipped, _ = clip_probabilities(np.array([0.0, 1.0], dtype=np.float32))
    assert clipped.dtype == np.float32
    assert 0.0 < clipped[0] < clipped[1] < 1.0


@pytest.mark.parametrize(("epsilon", "kind"), [(0.0, float), (0.5, float), (-1.0, float), (1e-9, np.float32)])
def test_an_epsilon_that_clips_nothing_or_everything_is_refused(epsilon, kind):
    with pytest.raises(ParameterError, match="epsilon must lie between 0 and"):
        clip_probabilities(np.array([0.5], dtype=kind), epsilon)
