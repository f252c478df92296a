import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import beta, betabinom

from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank_scaling.pass_at_k import cell_posterior as cells
from itembank_scaling.pass_at_k.curve import counted_curves, curves_above, posterior_curves, set_means, true_curves
from itembank_scaling.pass_at_k.kernels import KnownAbove

K = np.array([1.0, 10.0, 100.0])
DRAWS = {"level": 0.9, "n_draws": 4000}


def mixture(alpha, beta_, weights):
    """A posterior whose abilities do not matter here."""
    n = len(weights)
    return cells.CellPosterior(
        np.array(alpha), np.array(beta_), np.array(weights), np.zeros((n, 1)), np.zeros(n), np.zeros(2)
    )


POSTERIOR = mixture([[0.5, 3.0, 0.02], [1.0, 4.0, 0.1]], [[60.0, 40.0, 50.0], [55.0, 30.0, 50.0]], [0.3, 0.7])


def sampled_rates(posterior, n, rng):
    """Plain draws of all pass rates."""
    chosen = rng.choice(posterior.weights.size, size=n, p=posterior.weights)
    return rng.beta(posterior.alpha[chosen], posterior.beta[chosen])


def test_counted_methods_take_each_item_by_itself_and_means_of_sets_are_those_by_hand():
    n, c = np.array([4, 4]), np.array([1, 3])
    sets = np.array([[True, True], [False, True]])
    rate = c / n
    plug = 1 - (1 - rate[:, None]) ** K
    np.testing.assert_allclose(counted_curves("plug-in", n, c, K, sets), [plug.mean(axis=0), plug[1]])
    smooth = 1 - (1 - (c + 0.5)[:, None] / 5.0) ** K
    np.testing.assert_allclose(counted_curves("jeffreys", n, c, K, sets)[1], smooth[1])
    unbiased = counted_curves("unbiased", n, c, np.array([2.0, 5.0]), sets)
    np.testing.assert_allclose(unbiased[:, 0], [(0.5 + 1.0) / 2, 1.0])  # 1 - C(3,2)/C(4,2) and 1 - 0
    assert np.isnan(unbiased[:, 1]).all()
    n, c = np.array([4, 0]), np.array([1, 0])
    for method in ("plug-in", "jeffreys", "unbiased"):
        found = counted_curves(method, n, c, np.array([1.0]), np.array([[True, True], [True, False], [False, False]]))
        assert np.isnan(found[[0, 2], 0]).all()
        assert found[1, 0] > 0.0
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    sets = np.array([[True, False, True], [True, True, False]])
    np.testing.assert_array_equal(set_means(values, sets), [[3.0, 4.0], [2.0, np.nan]])
    one = mixture([[2.0]], [[3.0]], [1.0])
    np.testing.assert_allclose(cells.expected_failure(one, np.array([1.0, 2.0])), [[0.6, 0.6 * 4 / 6]], rtol=1e-14)


def test_truth_is_empty_where_more_than_a_fifth_of_a_percent_would_rest_on_a_guess():
    every = np.ones((1, 2), dtype=bool)
    n, k = np.array([1000, 100]), np.array([100.0, 500.0])
    solved = true_curves(n, np.array([0, 60]), k, every)
    np.testing.assert_allclose(solved, [[0.5, 0.5]], atol=1e-12)
    unsolved = true_curves(n, np.array([0, 1]), k, every)
    assert unsolved[0, 0] == pytest.approx(0.5)
    assert np.isnan(unsolved[0, 1])
    # one item, right in 5 of 100 samples: beyond them all k samples fail with 0.95^k
    found = true_curves(np.array([100]), np.array([5]), np.array([118.0, 130.0]), np.ones((1, 1), dtype=bool))
    assert np.isnan(found[0, 0])  # 0.00235
    assert found[0, 1] == pytest.approx(1.0 - 0.95**130)  # 0.00127


def test_posterior_mean_and_interval_are_those_of_plain_draws_also_where_nothing_more_is_known():
    found = posterior_curves(POSTERIOR, K, **DRAWS, rng=np.random.default_rng(0))
    rates = sampled_rates(POSTERIOR, 200_000, np.random.default_rng(1))
    means = np.stack([(1 - (1 - rates) ** k).mean(axis=1) for k in K], axis=1)
    np.testing.assert_allclose(found.mean, means.mean(axis=0), atol=4 * means.std(axis=0).max() / 200_000**0.5)
    np.testing.assert_allclose(found.low, np.quantile(means, 0.05, axis=0), atol=0.01)
    np.testing.assert_allclose(found.high, np.quantile(means, 0.95, axis=0), atol=0.01)
    np.testing.assert_allclose(found.failure, ((1 - rates) ** 100).mean(axis=0), atol=0.003)
    for nothing in (KnownAbove(1e-300, np.full(3, np.nan)), KnownAbove(0.1, np.zeros(3))):
        above = curves_above(POSTERIOR, nothing, K, **DRAWS, rng=np.random.default_rng(0))
        np.testing.assert_allclose(above.mean, found.mean, rtol=1e-6)


@pytest.mark.parametrize(
    ("floor", "n_unseen"),
    [
        (0.004, [np.nan] * 3),
        (0.004, [0.0, 10.0, 10.0]),  # of the first item nothing more is known
        (0.01, [np.nan, 3.0, np.nan]),
    ],
    ids=["above a floor", "a right one among unseen samples", "both"],
)
def test_what_is_known_of_rates_gives_what_draws_for_which_it_holds_give(floor, n_unseen):
    """Rates are above a floor, or one at least of so many further samples was right."""
    known = KnownAbove(floor, np.array(n_unseen))
    found = curves_above(POSTERIOR, known, K, **DRAWS, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    rates = sampled_rates(POSTERIOR, 1_000_000, rng)
    for item, n in enumerate(n_unseen):
        if n != 0.0:
            rates = rates[rates[:, item] >= floor if np.isnan(n) else rng.binomial(int(n), rates[:, item]) > 0]
    assert len(rates) > 5_000
    means = np.stack([(1 - (1 - rates) ** one).mean(axis=1) for one in K], axis=1)
    np.testing.assert_allclose(found.mean, means.mean(axis=0), atol=5 * means.std(axis=0).max() / len(rates) ** 0.5)
    np.testing.assert_allclose(found.low, np.quantile(means, 0.05, axis=0), atol=0.02)
    np.testing.assert_allclose(found.high, np.quantile(means, 0.95, axis=0), atol=0.02)


def test_a_floor_above_all_mass_gives_the_floor_and_a_right_one_of_a_rare_item_its_beta():
    far = mixture([[1.0, 5.0]], [[1e7, 5.0]], [1.0])
    found = curves_above(far, KnownAbove(0.01, np.full(2, np.nan)), K, **DRAWS, rng=np.random.default_rng(0))
    known = beta(5.0, 5.0).expect(lambda p: 1 - (1 - p) ** 10)
    assert found.mean[1] == pytest.approx(0.5 * (1 - 0.99**10) + 0.5 * known, rel=1e-6)
    # the rate is then that of a Beta with one more success
    rare = mixture([[1e-6]], [[50.0]], [1.0])
    found = curves_above(rare, KnownAbove(0.005, np.array([10.0])), K, **DRAWS, rng=np.random.default_rng(0))
    expected = [beta(1.0, 59.0).expect(lambda p, k=k: 1 - (1 - p) ** k) for k in K]
    np.testing.assert_allclose(found.mean, expected, rtol=1e-1)
    assert found.low[0] < found.mean[0] < found.high[0]


PRIOR = AbilityPrior.standard(1)


def simulated_items(rng, n_items=40):
    return ItemParameters.create(rng.uniform(0.5, 2.0, size=(n_items, 1)), rng.normal(-2.0, 2.0, n_items))


def simulated_rates(rng, parameters, theta, phi):
    mean, rest = cells.mean_rates(parameters, theta)
    return rng.beta(np.maximum(mean * phi, 1e-10), np.maximum(rest * phi, 1e-10))


def by_grid(parameters, precision, counts, k):
    """Posterior mean of pass@k by a product grid over (theta, log phi), with scipy's own distributions."""
    thetas = np.linspace(-5.0, 5.0, 401)
    logs = precision.mean + precision.sd * np.linspace(-5.0, 5.0, 81)
    total, weight = np.zeros(len(k)), 0.0
    for log_phi in logs:
        mean = expit(thetas[:, None] * parameters.loadings[:, 0] + parameters.intercept)
        a, b = mean * np.exp(log_phi), (1.0 - mean) * np.exp(log_phi)
        terms = betabinom.logpmf(counts.n_correct, counts.n_trials, a, b).sum(axis=1)
        density = np.exp(terms - 0.5 * thetas**2 - 0.5 * ((log_phi - precision.mean) / precision.sd) ** 2 + 60.0)
        after_a, after_b = a + counts.n_correct, b + counts.n_trials - counts.n_correct
        for place, samples in enumerate(k):
            failure = np.prod([(after_b + j) / (after_a + after_b + j) for j in range(samples)], axis=0)
            total[place] += density @ (1.0 - failure).mean(axis=1)
        weight += density.sum()
    return total / weight


@pytest.mark.parametrize("n_samples", [0, 3, 40])
def test_expected_failure_agrees_with_a_grid_over_ability_and_precision(n_samples):
    rng = np.random.default_rng(n_samples)
    parameters = simulated_items(rng, 12)
    rates = simulated_rates(rng, parameters, np.array([[0.7]]), 3.0)[0]
    n_trials = np.full(12, n_samples)
    n_trials[:4] = 0  # items that were not sampled
    counts = cells.Counts(n_trials, rng.binomial(n_trials, rates))
    precision, k = cells.PrecisionPrior(np.log(3.0), 0.8), np.array([1, 5, 30])
    posterior = cells.cell_posterior(parameters, PRIOR, precision, counts, n_draws=1024, rng=rng)
    found = 1.0 - cells.expected_failure(posterior, k).mean(axis=0)
    np.testing.assert_allclose(found, by_grid(parameters, precision, counts, k.tolist()), atol=2e-3)
    assert 1.0 / np.sum(posterior.weights**2) > 300  # Kish 1965


def test_draws_and_shapes_are_those_of_closed_forms_and_many_samples_tell_what_they_tell():
    rng = np.random.default_rng(5)
    parameters = simulated_items(rng)
    counts = cells.Counts(np.full(40, 20), rng.binomial(20, 0.2, 40))
    posterior = cells.cell_posterior(parameters, PRIOR, cells.PrecisionPrior(1.0, 0.5), counts, rng=rng)
    k, weights = np.array([1, 10, 1000]), rng.dirichlet(np.ones(40))
    draws = cells.draw_pass_at_k(posterior, k, weights, n_draws=4000, rng=rng)
    np.testing.assert_allclose(draws.mean(axis=0), 1.0 - weights @ cells.expected_failure(posterior, k), atol=0.004)
    rng = np.random.default_rng(10)
    parameters = ItemParameters.create(np.zeros((3, 1)), np.array([-1.0, 0.0, 2.0]))
    counts = cells.Counts(np.array([0, 4, 9]), np.array([0, 1, 9]))
    posterior = cells.cell_posterior(parameters, PRIOR, cells.PrecisionPrior(np.log(2.0), 1e-3), counts, rng=rng)
    phi = np.exp(posterior.log_precision[:, None])
    mean = expit(parameters.intercept)
    expected = beta(mean * phi + counts.n_correct, (1 - mean) * phi + counts.n_trials - counts.n_correct)
    np.testing.assert_allclose(posterior.alpha / (posterior.alpha + posterior.beta), expected.mean())
    rng = np.random.default_rng(6)
    parameters = simulated_items(rng)
    n_trials, n_correct = np.full(40, 50), np.full(40, 10)
    n_trials[0], n_correct[0] = 1_000_000, 123_000
    posterior = cells.cell_posterior(
        parameters, PRIOR, cells.PrecisionPrior(1.0, 1.0), cells.Counts(n_trials, n_correct), rng=rng
    )
    rates = posterior.weights @ (posterior.alpha / (posterior.alpha + posterior.beta))
    assert rates[0] == pytest.approx(0.123, abs=1e-4)
    many = cells.Counts(19_999 * n_trials, 19_999 * n_correct)  # whose log-likelihoods have few digits behind the point
    posterior = cells.cell_posterior(parameters, PRIOR, cells.PrecisionPrior(1.0, 1.0), many, rng=rng)
    assert posterior.weights.sum() == pytest.approx(1.0, abs=1e-12)
    # answers of 0 or all right tell a low precision, whatever the prior's centre
    rng = np.random.default_rng(8)
    parameters = ItemParameters.create(np.ones((200, 1)), np.zeros(200))
    n_correct = np.where(rng.random(200) < 0.5, 0, 10)
    precision = cells.PrecisionPrior(np.log(5.0), 1.5)
    posterior = cells.cell_posterior(parameters, PRIOR, precision, cells.Counts(np.full(200, 10), n_correct), rng=rng)
    assert np.exp(posterior.weights @ posterior.log_precision) < 0.1


def test_precision_prior_finds_how_models_differ():
    rng = np.random.default_rng(7)
    parameters, theta = simulated_items(rng, 300), rng.normal(size=(40, 1))
    phi = np.exp(rng.normal(1.0, 0.7, size=(40, 1)))
    n_trials = np.full((40, 300), 30)
    n_correct = rng.binomial(n_trials, simulated_rates(rng, parameters, theta, phi))
    found = cells.precision_prior(parameters, theta, n_trials, n_correct)
    assert found.mean == pytest.approx(1.0, abs=3 * 0.7 / np.sqrt(40))
    assert found.sd == pytest.approx(0.7, abs=0.25)


@pytest.mark.parametrize("phi", [0.05, 8.6, 300.0])
def test_precision_prior_of_models_that_are_alike_is_their_common_maximum(phi):
    """Most likely single precision of all models, by scipy's own distribution."""
    rng = np.random.default_rng(11)
    parameters, theta = simulated_items(rng, 500), rng.normal(size=(6, 1))
    n_trials = np.full((6, 500), 50)
    n_correct = rng.binomial(n_trials, simulated_rates(rng, parameters, theta, np.full((6, 1), phi)))
    mean = expit(theta * parameters.loadings[:, 0] + parameters.intercept)

    def loss(log_phi):
        a, b = mean * np.exp(log_phi), (1.0 - mean) * np.exp(log_phi)
        return -betabinom.logpmf(n_correct, n_trials, a, b).sum()

    common = minimize_scalar(loss, bounds=(np.log(phi) - 1.0, np.log(phi) + 1.0), method="bounded").x
    found = cells.precision_prior(parameters, theta, n_trials, n_correct)
    assert found.mean == pytest.approx(common, abs=0.02)
    assert found.sd < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [2, 50])
def test_intervals_hold_the_truth_as_often_as_they_say(n_samples):
    rng = np.random.default_rng(9)
    parameters, precision = simulated_items(rng, 60), cells.PrecisionPrior(np.log(4.0), 0.6)
    k, weights, inside = np.array([1, 10, 100]), np.full(60, 1.0 / 60.0), []
    for _ in range(300):
        theta, phi = rng.normal(size=(1, 1)), np.exp(rng.normal(precision.mean, precision.sd))
        rates = simulated_rates(rng, parameters, theta, phi)[0]
        n_trials = np.full(60, n_samples)
        counts = cells.Counts(n_trials, rng.binomial(n_trials, rates))
        posterior = cells.cell_posterior(parameters, PRIOR, precision, counts, rng=rng)
        low, high = np.quantile(
            cells.draw_pass_at_k(posterior, k, weights, n_draws=400, rng=rng), [0.025, 0.975], axis=0
        )
        truth = (1.0 - (1.0 - rates)[:, None] ** k).mean(axis=0)
        inside.append((low <= truth) & (truth <= high))
    coverage = np.mean(inside, axis=0)
    assert np.all(coverage > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300))
