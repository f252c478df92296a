"""Each model's ability by every method: against R's mirt (README of the golden folder), integrals, grids and forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.special import expit, logit

from itembank.errors import ParameterError
from itembank.irt.abilities import expected_difficulties
from itembank.irt.ability_specs import METHODS, ExpectedAPosteriori
from itembank.irt.answers import gather
from itembank.irt.bernoulli import information_weights, probability
from itembank.irt.binarise import apply_thresholds
from itembank.irt.expected_abilities import eap_abilities
from itembank.irt.families import ResponseModel
from itembank.irt.likelihood_abilities import Jeffreys, ml_abilities, wle_abilities
from itembank.irt.newton import can_stand_side_by_side, map_abilities, map_side_by_side
from itembank.irt.parameters import AbilityPrior, ItemParameters
from tests.irt.golden import CASES, read, read_case
from tests.irt.scores import item_information, log_likelihood, score_function, simulate
from tests.numerics.compare import alike, slopes_by_column

BY_NAME = {
    "MAP": lambda case: map_abilities(case.parameters, case.responses, case.prior),
    "ML": lambda case: ml_abilities(case.parameters, case.responses),
    "WLE": lambda case: wle_abilities(case.parameters, case.responses),
    # mirt's own grid: 121 nodes in one dimension, 31 in the two-dimensional case.
    "EAP": lambda case: eap_abilities(
        case.parameters, case.responses, case.prior, n_quadrature=121 if case.prior.n_dims == 1 else 31
    ),
}
WITHOUT_PAIR = {("free guessing", "ML"), ("free guessing", "WLE")}
PAIRS = [(name, method) for name in CASES for method in BY_NAME if (name, method) not in WITHOUT_PAIR]
GUESSING = pytest.mark.parametrize("lower", [0.0, 0.25])
ONE = AbilityPrior.standard(1)


def log_likelihoods(parameters, grid, responses):
    """Log-likelihood of one model's responses (1, n_items) at every point (n_points, n_dims)."""
    return log_likelihood(parameters, grid, np.repeat(responses, len(grid), axis=0))


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_abilities_and_standard_errors_are_mirts_and_the_polished_ones(shared_dir, name, method):
    case = CASES[name](shared_dir)
    found = BY_NAME[method](case)
    # Polished values are roots to 1e-12; the 3PL WLE among them is flat enough to leave 1e-9.
    assert_allclose(found.theta, case.polished_theta(method), rtol=0, atol=1e-8)
    assert found.converged.all()
    assert_array_equal(found.at_bound, np.isinf(case.polished_theta(method)[:, 0]))
    is_finite = np.isfinite(found.theta)
    # mirt's search stops about 6e-6 from the root, and it takes the Hessian there by differences.
    assert_allclose(found.theta, case.theta(method), rtol=0, atol=1e-12 if method == "EAP" else 1e-5)
    errors, known = found.standard_errors[is_finite], case.standard_errors(method)[is_finite]
    assert_allclose(errors, known, rtol=0, atol=1e-12 if method == "EAP" else 1e-3)
    assert np.isnan(found.standard_errors[~is_finite]).all()


@pytest.mark.parametrize("name", ["known bank 2PL", "known bank 3PL", "missing"])
def test_standard_errors_are_those_of_the_hessian_by_finite_differences(shared_dir, name):
    case = CASES[name](shared_dir)
    theta = case.polished_theta("MAP")
    information = -slopes_by_column(lambda at: score_function(case.parameters, at, case.responses) - at, theta)
    assert_allclose(BY_NAME["MAP"](case).standard_errors, 1.0 / np.sqrt(information[:, 0]), rtol=1e-8)


@pytest.fixture
def two_dimensions(shared_dir):
    return read(shared_dir, "sim_mirt2_confirmatory")


@pytest.mark.parametrize("method", BY_NAME)
def test_two_dimensions(two_dimensions, method):
    case = two_dimensions
    found = BY_NAME[method](case)
    assert_array_equal(np.isfinite(found.theta), np.isfinite(case.theta(method)))
    # With one dimension infinite, mirt searches the other from its limit of 20: 2e-4 off.
    inside = ~found.at_bound
    assert_allclose(found.theta[inside], case.theta(method)[inside], rtol=0, atol=1e-12 if method == "EAP" else 1e-5)
    assert_allclose(found.theta, case.theta(method), rtol=0, atol=1e-3)
    errors, known = found.standard_errors[inside], case.standard_errors(method)[inside]
    assert_allclose(errors, known, rtol=0, atol=1e-12 if method == "EAP" else 1e-3)
    assert np.isnan(found.covariance[~inside]).all()
    assert found.converged.all()


def test_posterior_covariances_in_two_dimensions_and_automatic_nodes(shared_dir, two_dimensions):
    case, (results, _, _) = two_dimensions, read_case(shared_dir, "sim_mirt2_confirmatory")
    expected = np.array([results["eap_acov_first10"][str(row)] for row in range(1, 11)])
    assert_allclose(BY_NAME["EAP"](case).covariance[:10], expected, rtol=0, atol=1e-13)
    automatic = eap_abilities(case.parameters, case.responses, case.prior)
    # 31 nodes a dimension leave the quadrature error that the golden README states.
    assert_allclose(automatic.theta, case.theta("EAP"), rtol=0, atol=1e-3)
    assert automatic.converged.all()


def test_jeffreys_derivatives_agree_with_finite_differences(rng, two_dimensions):
    problem, theta = (
        Jeffreys(gather(two_dimensions.parameters, two_dimensions.responses[:20])),
        rng.normal(size=(20, 2)),
    )
    at = problem.evaluate(theta)
    assert_allclose(at.gradient, slopes_by_column(lambda t: problem.evaluate(t).objective, theta), atol=1e-8)
    assert_allclose(-at.precision, slopes_by_column(lambda t: problem.evaluate(t).gradient, theta), atol=1e-8)


def is_separated(loadings, responses):
    """Whether some direction raises every answer's likelihood and lowers none (a linear programme)."""
    signed = loadings * np.where(responses == 1.0, 1.0, -1.0)[:, None]
    best = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=[(-1, 1)] * loadings.shape[1])
    return -best.fun > 1e-7


@pytest.mark.parametrize(("n_dims", "n_items"), [(1, 4), (2, 8), (3, 12), (6, 20)])
def test_bound_is_found_exactly_where_a_plane_separates_the_answers(rng, n_dims, n_items):
    parameters = ItemParameters.create(rng.normal(size=(n_items, n_dims)), 2.0 * rng.normal(size=n_items))
    theta = 1.5 * rng.normal(size=(150, n_dims))
    responses = (rng.random((150, n_items)) < probability(parameters, theta)).astype(float)
    expected = np.array([is_separated(parameters.loadings, row) for row in responses])
    assert 0 < expected.sum() < 150
    found = ml_abilities(parameters, responses)
    assert_array_equal(found.at_bound, expected)
    assert_array_equal(np.isinf(found.theta).any(axis=1), expected)
    assert found.converged.all()
    assert_allclose(score_function(parameters, found.theta[~expected], responses[~expected]), 0.0, atol=1e-12)


def test_only_the_dimensions_that_grow_are_infinite_with_guessing_also_where_no_answer_asks_for_it(rng):
    # Items of the first dimension all right; the second has its own items, and its own maximum.
    loadings, intercept = np.zeros((20, 2)), rng.normal(size=20)
    loadings[:10, 0], loadings[10:, 1] = 1.0, rng.lognormal(size=10)
    responses = np.concatenate([np.ones(10), np.tile([0.0, 1.0], 5)])[None]
    found = ml_abilities(ItemParameters.create(loadings, intercept), responses)
    alone = ml_abilities(ItemParameters.create(loadings[10:, 1:], intercept[10:]), responses[:, 10:])
    assert found.theta[0, 0] == np.inf
    assert found.theta[0, 1] == pytest.approx(alone.theta[0, 0], abs=1e-7)
    assert found.at_bound[0]
    # Right on the hardest items only: more likely from guessing all than from any ability.
    parameters = ItemParameters.create(np.full((8, 1), 1.5), np.linspace(4.0, -4.0, 8), 0.3)
    responses = (np.arange(8) >= 5).astype(float)[None]
    assert (
        np.argmax(log_likelihoods(parameters, np.linspace(-30.0, 10.0, 4001)[:, None], responses)) == 0
    )  # the premise
    found = ml_abilities(parameters, responses)
    assert found.theta[0, 0] == -np.inf
    assert found.at_bound[0]


@pytest.mark.parametrize("slope", [1.0, -1.0, 1e-3])
def test_all_right_and_all_wrong_go_the_way_of_the_slope(slope):
    parameters = ItemParameters.create(np.full((5, 1), slope), np.arange(5.0))
    found = ml_abilities(parameters, np.array([[1.0] * 5, [0.0] * 5]))
    assert_array_equal(found.theta[:, 0], np.array([np.inf, -np.inf]) * np.sign(slope))
    assert np.isnan(found.standard_errors).all()


@pytest.mark.parametrize("share", [1e-6, 0.3, 1.0 - 1e-6])
def test_near_extreme_fractions_are_finite(share):
    # Probabilities clipped at 1e-6 (IRSL) are not at the bound: the maximum is their logit.
    found = ml_abilities(ItemParameters.create(np.ones((4, 1)), np.zeros(4)), np.full((1, 4), share))
    assert not found.at_bound[0]
    assert found.theta[0, 0] == pytest.approx(logit(share), abs=1e-6)


@GUESSING
def test_maximum_likelihood_is_the_global_maximum(rng, lower):
    parameters = ItemParameters.create(rng.lognormal(0.3, 0.5, (15, 1)), 1.5 * rng.normal(size=15), lower)
    responses = (rng.random((60, 15)) < 0.5).astype(float)
    found = ml_abilities(parameters, responses)
    grid, finite = np.linspace(-40.0, 40.0, 8001)[:, None], ~found.at_bound
    best = np.array([log_likelihoods(parameters, grid, row[None]).max() for row in responses])
    assert finite.sum() > 20
    assert np.all(log_likelihood(parameters, found.theta[finite], responses[finite]) >= best[finite] - 1e-12)


def test_weighted_likelihood_of_equal_items_adds_half_an_answer_to_each_side():
    # For n copies of one item, the Jeffreys penalty is that of (k + 1/2) / (n + 1) (Firth 1993).
    parameters = ItemParameters.create(np.full((12, 1), 2.0), np.full(12, 0.7))
    found = wle_abilities(parameters, (np.arange(12) < np.arange(13)[:, None]).astype(float))
    assert_allclose(found.theta[:, 0], (logit((np.arange(13) + 0.5) / 13) - 0.7) / 2.0, atol=1e-10)
    assert not found.at_bound.any()


@GUESSING
def test_weighted_likelihood_maximises_its_objective(rng, lower):
    parameters = ItemParameters.create(rng.lognormal(0.0, 0.4, (20, 1)), rng.normal(size=20), lower)
    responses = (rng.random((12, 20)) < 0.6).astype(float)
    responses[0], responses[1] = 1.0, 0.0
    found, grid = wle_abilities(parameters, responses), np.linspace(-8.0, 8.0, 400)
    for row in range(12):

        def loss(theta, row=row):
            at = np.array([[theta]])
            information = item_information(parameters, at).sum()
            return -log_likelihood(parameters, at, responses[row : row + 1])[0] - 0.5 * np.log(information)

        coarse = grid[np.argmin([loss(point) for point in grid])]
        near = (coarse - 0.1, coarse + 0.1)
        best = minimize_scalar(loss, bounds=near, method="bounded", options={"xatol": 1e-10})
        # A bounded search on values finds a maximum to about the root of the rounding error.
        assert found.theta[row, 0] == pytest.approx(best.x, abs=1e-6)


def test_weighted_likelihood_solves_warms_equation_without_asymptotes(rng):
    # Warm (1989): score + J / (2 I) = 0 with J = sum p' p'' / (p q) = sum a^3 w (1 - 2 p).
    slope = rng.lognormal(0.0, 0.4, 25)
    parameters = ItemParameters.create(slope[:, None], rng.normal(size=25))
    responses = (rng.random((10, 25)) < 0.6).astype(float)
    theta = wle_abilities(parameters, responses).theta
    weights, p = information_weights(parameters, theta), probability(parameters, theta)
    correction = np.sum(slope**3 * weights * (1.0 - 2.0 * p), axis=1) / (2.0 * np.sum(slope**2 * weights, axis=1))
    assert_allclose(score_function(parameters, theta, responses)[:, 0], -correction, atol=1e-9)


def test_fewer_answers_than_dimensions_measure_nothing(rng):
    parameters = ItemParameters.create(rng.normal(size=(9, 3)), np.zeros(9))
    responses = np.tile(np.tile([0.0, 1.0, 0.5], 3), (2, 1))
    responses[1, 2:] = np.nan
    for found in (ml_abilities(parameters, responses), wle_abilities(parameters, responses)):
        assert_array_equal(found.at_bound, [False, True])
        assert np.isfinite(found.theta[0]).all()
        assert np.isnan(found.theta[1]).all()


@pytest.mark.slow
def test_weighted_likelihood_is_less_biased_than_maximum_likelihood(rng):
    parameters = ItemParameters.create(np.ones((15, 1)), np.linspace(-1.5, 1.5, 15))
    theta = np.full((20000, 1), 1.0)
    responses = (rng.random((20000, 15)) < probability(parameters, theta)).astype(float)
    weighted, plain = wle_abilities(parameters, responses).theta, ml_abilities(parameters, responses)
    bias = plain.theta[~plain.at_bound].mean() - 1.0
    # Monte Carlo error of each mean is about .005; ML here drops its infinities, which flatters it.
    assert abs(weighted.mean() - 1.0) < 0.02 < bias


def moments_by_adaptive_integration(parameters, responses, mode, deviation):
    def log_density(theta):
        return log_likelihood(parameters, np.array([[theta]]), responses)[0] - theta**2 / 2.0

    reference, ends = log_density(mode), (mode - 12.0 * deviation, mode + 12.0 * deviation)

    def inside(theta, k):
        return (theta - mode) ** k * np.exp(log_density(theta) - reference)

    total, first, second = (quad(inside, *ends, (k,), epsabs=0, epsrel=1e-11, limit=400)[0] for k in range(3))
    mean = first / total
    return mode + mean, second / total - mean**2


@pytest.mark.parametrize("n_items", [3, 60, 1500])
@GUESSING
def test_moments_are_those_of_adaptive_integration(rng, n_items, lower):
    # 1,500 items give posteriors far narrower than the spacing of the common grid.
    parameters, responses = simulate(rng, 4, n_items, 1, lower)
    found, mode = eap_abilities(parameters, responses, ONE), map_abilities(parameters, responses, ONE)
    assert found.converged.all()
    for row in range(4):
        near = mode.theta[row, 0], mode.standard_errors[row, 0]
        mean, variance = moments_by_adaptive_integration(parameters, responses[row : row + 1], *near)
        assert found.theta[row, 0] == pytest.approx(mean, abs=1e-6)
        assert found.covariance[row, 0, 0] == pytest.approx(variance, rel=1e-5)


def test_posteriors_outside_the_common_grid_and_narrower_ones_in_two_dimensions_are_followed(rng):
    parameters, responses = simulate(rng, 3, 250, 2)
    prior = AbilityPrior(np.array([0.2, -0.1]), np.array([[1.2, 0.5], [0.5, 0.9]]))
    automatic = eap_abilities(parameters, responses, prior)
    fine = eap_abilities(parameters, responses, prior, n_quadrature=121)
    assert np.max(fine.standard_errors) < 0.2  # narrower than the automatic grid's spacing
    alike(automatic, fine, "theta covariance", atol=1e-7)
    parameters = ItemParameters.create(np.full((4000, 1), 1.0), np.full(4000, -9.0))
    responses = (rng.random((1, 4000)) < 0.5).astype(float)
    found, mode = eap_abilities(parameters, responses, ONE), map_abilities(parameters, responses, ONE)
    assert mode.theta[0, 0] > 8.0
    assert found.theta[0, 0] == pytest.approx(mode.theta[0, 0], abs=1e-3)
    assert found.converged.all()


def test_a_grid_that_was_asked_for_is_kept_and_says_when_it_is_too_coarse(rng):
    parameters, responses = simulate(rng, 3, 2000, 1)
    responses[1, 5:], responses[2, 80:] = np.nan, np.nan
    found = eap_abilities(parameters, responses, ONE, n_quadrature=41)
    assert_array_equal(found.converged, [False, True, True])
    # of the last the standard deviation is about one spacing, which is enough
    assert 0.8 < found.standard_errors[2, 0] / 0.3 < 1.2
    exact = eap_abilities(parameters, responses, ONE)
    assert_allclose(found.theta[1:], exact.theta[1:], atol=1e-4)
    assert abs(found.theta[0, 0] - exact.theta[0, 0]) > 1e-3


@pytest.mark.parametrize("options", [{"n_quadrature": 1}, {"bounds": (3.0, 3.0)}, {"bounds": (4.0, -4.0)}])
def test_impossible_grids_three_dimensions_and_unknown_methods_are_refused(options, rng):
    with pytest.raises(ParameterError, match=next(iter(options))):
        ExpectedAPosteriori(**options)
    with pytest.raises(ParameterError, match="one or two abilities, got 3"):
        eap_abilities(*simulate(rng, 3, 10, 3), AbilityPrior.standard(3))
    for name, kind in METHODS.kinds.items():
        spec = METHODS.resolve(name)
        assert isinstance(spec, kind)
        assert METHODS.resolve(spec) is spec
    with pytest.raises(ParameterError, match=r"one of 'ml', 'map', 'eap', 'wle', got 'mle'"):
        METHODS.resolve("mle")


@GUESSING
def test_gradient_of_the_log_posterior_is_zero(rng, lower):
    parameters, responses = simulate(rng, 30, 60, 4, lower)
    prior = AbilityPrior(np.full(4, 0.5), 0.5 * np.eye(4) + 0.3)
    found = map_abilities(parameters, responses, prior)
    pull = (found.theta - prior.mean) @ np.linalg.inv(prior.covariance)
    assert_allclose(score_function(parameters, found.theta, responses), pull, atol=1e-10)


def test_a_flat_prior_gives_maximum_likelihood_and_the_start_does_not_matter(rng):
    parameters, responses = simulate(rng, 30, 60, 2)
    flat = AbilityPrior(np.zeros(2), 1e12 * np.eye(2))
    alike(map_abilities(parameters, responses, flat), ml_abilities(parameters, responses), "theta", atol=1e-9)
    arguments, start = (*simulate(rng, 10, 40, 3), AbilityPrior.standard(3)), 5.0 * rng.normal(size=(10, 3))
    alike(map_abilities(*arguments, start=start), map_abilities(*arguments), "theta", atol=1e-10)


def test_of_two_modes_the_higher_is_found():
    # Easy steep items failed, hard ones with guessing passed: a mode on each side.
    intercept, lower = np.repeat([6.0, -6.0], 6), np.repeat([0.0, 0.3], 6)
    parameters = ItemParameters.create(np.full((12, 1), 3.0), intercept, lower)
    grid, prior, modes = np.linspace(-6.0, 6.0, 24001)[:, None], AbilityPrior(np.zeros(1), 4.0 * np.eye(1)), set()
    for n_failed in range(7):
        responses = np.concatenate([np.arange(6) >= n_failed, np.ones(6, dtype=bool)]).astype(float)[None]
        log_posterior = log_likelihoods(parameters, grid, responses) - grid[:, 0] ** 2 / 8.0
        found = map_abilities(parameters, responses, prior)
        assert found.converged.all()
        assert found.theta[0, 0] == pytest.approx(grid[np.argmax(log_posterior), 0], abs=3e-4)
        modes.add(bool(found.theta[0, 0] > 0.0))
    assert modes == {True, False}


def test_one_item_with_a_closed_form_and_curves_with_a_chance_to_guess():
    # Ten copies of an item answered right k times: sigmoid(theta) = k / 10 but for the prior's pull.
    parameters = ItemParameters.create(np.ones((10, 1)), np.zeros(10))
    theta = map_abilities(parameters, (np.arange(10) < 7).astype(float)[None], ONE).theta[0, 0]
    assert 7.0 - 10.0 * expit(theta) == pytest.approx(theta, abs=1e-12)
    kinds = {}, {"lower_asymptote": 0.2}, {"family": "beta", "precision": np.ones(2)}
    models = (ResponseModel.of(ItemParameters.create(np.ones((2, 1)), np.zeros(2), **kind)) for kind in kinds)
    assert [can_stand_side_by_side(one) for one in models] == [True, False, False]


@GUESSING
def test_a_weight_counts_like_repeated_responses(rng, lower):
    """Three trials of which two are right are two right responses and a wrong one."""
    parameters, responses = simulate(rng, 6, 20, 3, lower)
    trials, prior = rng.integers(0, 5, responses.shape).astype(float), AbilityPrior.standard(3)
    correct = rng.binomial(trials.astype(int), 0.6).astype(float)
    means = np.divide(correct, trials, out=np.full(trials.shape, np.nan), where=trials > 0)
    found = map_abilities(parameters, means, prior, weights=trials)
    order = np.tile(np.arange(4), 20)
    right, asked = np.repeat(correct, 4, axis=1), np.repeat(trials, 4, axis=1)
    one_by_one = np.where(order < asked, (order < right).astype(float), np.nan)
    expected = map_abilities(parameters.take(np.repeat(np.arange(20), 4)), one_by_one, prior)
    alike(found, expected, "theta", atol=1e-8)
    alike(found, expected, "covariance", rtol=1e-6, atol=1e-10)


def test_weights_of_models_that_answered_few_items_each(rng):
    """With many gaps each model keeps its own list of items, and its own weights."""
    parameters, responses = simulate(rng, 12, 80, 2)
    responses[rng.random(responses.shape) < 0.9] = np.nan
    weights, prior = rng.integers(1, 6, responses.shape).astype(float), AbilityPrior.standard(2)
    together = map_abilities(parameters, responses, prior, weights=weights)
    for row in range(12):
        one = slice(row, row + 1)
        alone = map_abilities(parameters, responses[one], prior, weights=weights[one])
        assert_allclose(together.theta[row], alone.theta[0], atol=1e-8)


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("n_answers", [1, 17])
def test_each_model_has_the_ability_that_it_has_alone(rng, n_dims, n_answers):
    parameters = ItemParameters.create(rng.lognormal(size=(60, n_dims)), rng.normal(size=60))
    positions = np.sort([rng.permutation(60)[:n_answers] for _ in range(5)])
    responses = rng.integers(0, 2, (5, n_answers)).astype(float)
    responses[3] = 1.0  # all right: the prior alone keeps the ability finite
    prior, model = AbilityPrior(rng.normal(size=n_dims), 0.5 * np.eye(n_dims)), ResponseModel.of(parameters)
    own = parameters.loadings[positions], parameters.intercept[positions]
    found = map_side_by_side(*own, responses, model, prior)
    assert found.converged.all()
    for row in range(5):
        alone, one = map_abilities(parameters.take(positions[row]), responses[row : row + 1], prior), found.row(row)
        alike(one, alone, "theta covariance", rtol=1e-12, atol=1e-14)
        assert (one.method, one.n_models) == ("map", 1)


SLOPE, INTERCEPT = np.array([1.2, 0.3, -0.05]), np.array([0.7, -0.4, 1.1])
ROOTS = np.array([[[0.1, 0.0], [0.05, 0.2]], [[0.3, 0.0], [-0.1, 0.3]], [[0.2, 0.0], [0.1, 0.1]]])
COVARIANCE = ROOTS @ ROOTS.swapaxes(1, 2)


def test_the_expected_square_of_the_logit_is_least_at_the_difficulty():
    found = expected_difficulties(SLOPE, INTERCEPT, COVARIANCE)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    for item in range(3):
        drawn = grid @ ROOTS[item].T + [SLOPE[item], INTERCEPT[item]]
        square = minimize_scalar(lambda b, drawn=drawn: weights @ (drawn[:, 0] * b + drawn[:, 1]) ** 2)
        assert found.value[item] == pytest.approx(square.x, abs=1e-6)
        least = square.fun / (weights @ drawn[:, 0] ** 2)
        assert found.standard_error[item] == pytest.approx(np.sqrt(least), rel=1e-8)


def test_difficulties_have_the_delta_methods_error_and_move_with_the_scale_of_ability():
    small = 1e-6 * COVARIANCE[:1]
    found = expected_difficulties(SLOPE[:1], INTERCEPT[:1], small)
    assert found.value[0] == pytest.approx(-0.7 / 1.2, rel=1e-6)
    gradient = np.array([0.7 / 1.2**2, -1.0 / 1.2])
    assert found.standard_error[0] == pytest.approx(np.sqrt(gradient @ small[0] @ gradient), rel=1e-4)
    scale, shift = 1.7, -0.4  # theta' = scale * theta + shift
    change = np.array([[1.0 / scale, 0.0], [-shift / scale, 1.0]])
    moved = np.column_stack([SLOPE, INTERCEPT]) @ change.T
    before = expected_difficulties(SLOPE, INTERCEPT, COVARIANCE)
    after = expected_difficulties(moved[:, 0], moved[:, 1], change @ COVARIANCE @ change.T)
    assert_allclose(after.value, scale * before.value + shift, atol=1e-12)
    assert_allclose(after.standard_error, scale * before.standard_error, rtol=1e-12)


def test_a_response_at_the_threshold_counts_as_right_and_missing_stays_missing():
    assert_array_equal(apply_thresholds(np.array([[0.49, 0.5, 0.51]]), np.full(3, 0.5)), [[0.0, 1.0, 1.0]])
    responses = np.array([[np.nan, 0.3, 0.3], [0.9, np.nan, 0.1]])
    before = responses.copy()
    binary = apply_thresholds(responses, np.array([0.5, np.nan, 0.2]))
    assert_array_equal(binary, [[np.nan, 0.3, 1.0], [1.0, np.nan, 0.0]])
    assert_array_equal(responses, before)
