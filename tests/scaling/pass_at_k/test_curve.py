import numpy as np
import pytest
from scipy.stats import beta

from itembank_scaling.pass_at_k.cell_posterior import CellPosterior, expected_failure
from itembank_scaling.pass_at_k.curve import (
    counted_curves,
    curves_above,
    posterior_curves,
    set_means,
    true_curves,
)
from itembank_scaling.pass_at_k.kernels import KnownAbove

K = np.array([1.0, 10.0, 100.0])
DRAWS = {"level": 0.9, "n_draws": 4000}


def mixture(alpha, beta_, weights):
    """A posterior whose abilities do not matter here."""
    n = len(weights)
    return CellPosterior(
        np.array(alpha), np.array(beta_), np.array(weights), np.zeros((n, 1)), np.zeros(n), np.zeros(2)
    )


POSTERIOR = mixture([[0.5, 3.0, 0.02], [1.0, 4.0, 0.1]], [[60.0, 40.0, 50.0], [55.0, 30.0, 50.0]], [0.3, 0.7])


def sampled_rates(posterior, n, rng):
    """Plain draws of all pass rates."""
    chosen = rng.choice(posterior.weights.size, size=n, p=posterior.weights)
    return rng.beta(posterior.alpha[chosen], posterior.beta[chosen])


def test_counted_methods_take_each_item_by_itself():
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


def test_items_without_samples_leave_no_value():
    n, c = np.array([4, 0]), np.array([1, 0])
    for method in ("plug-in", "jeffreys", "unbiased"):
        found = counted_curves(method, n, c, np.array([1.0]), np.array([[True, True], [True, False], [False, False]]))
        assert np.isnan(found[[0, 2], 0]).all()
        assert found[1, 0] > 0.0


def test_set_means_of_plain_numbers():
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    sets = np.array([[True, False, True], [True, True, False]])
    np.testing.assert_array_equal(set_means(values, sets), [[3.0, 4.0], [2.0, np.nan]])


def test_truth_is_empty_where_it_would_rest_on_a_guess():
    every = np.ones((1, 2), dtype=bool)
    n, k = np.array([1000, 100]), np.array([100.0, 500.0])
    solved = true_curves(n, np.array([0, 60]), k, every)
    np.testing.assert_allclose(solved, [[0.5, 0.5]], atol=1e-12)
    unsolved = true_curves(n, np.array([0, 1]), k, every)
    assert unsolved[0, 0] == pytest.approx(0.5)
    assert np.isnan(unsolved[0, 1])


def test_a_fifth_of_a_percent_may_rest_on_a_guess():
    """One item, right in 5 of 100 samples: beyond them all k samples fail with 0.95^k."""
    found = true_curves(np.array([100]), np.array([5]), np.array([118.0, 130.0]), np.ones((1, 1), dtype=bool))
    assert np.isnan(found[0, 0])  # 0.00235
    assert found[0, 1] == pytest.approx(1.0 - 0.95**130)  # 0.00127


def test_posterior_mean_and_interval_are_those_of_plain_draws():
    found = posterior_curves(POSTERIOR, K, **DRAWS, rng=np.random.default_rng(0))
    rates = sampled_rates(POSTERIOR, 200_000, np.random.default_rng(1))
    means = np.stack([(1 - (1 - rates) ** k).mean(axis=1) for k in K], axis=1)
    np.testing.assert_allclose(found.mean, means.mean(axis=0), atol=4 * means.std(axis=0).max() / 200_000**0.5)
    np.testing.assert_allclose(found.low, np.quantile(means, 0.05, axis=0), atol=0.01)
    np.testing.assert_allclose(found.high, np.quantile(means, 0.95, axis=0), atol=0.01)
    np.testing.assert_allclose(found.failure, ((1 - rates) ** 100).mean(axis=0), atol=0.003)


def test_expected_failure_of_one_beta_is_its_moment():
    one = mixture([[2.0]], [[3.0]], [1.0])
    np.testing.assert_allclose(expected_failure(one, np.array([1.0, 2.0])), [[0.6, 0.6 * 4 / 6]], rtol=1e-14)


def check_given(known, holds, k=K):
    """Compare with the plain draws of all pass rates for which `holds`, (n_draws,)."""
    found = curves_above(POSTERIOR, known, k, **DRAWS, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    rates = sampled_rates(POSTERIOR, 1_000_000, rng)
    rates = rates[holds(rates, rng)]
    assert len(rates) > 5_000
    means = np.stack([(1 - (1 - rates) ** one).mean(axis=1) for one in k], axis=1)
    np.testing.assert_allclose(found.mean, means.mean(axis=0), atol=5 * means.std(axis=0).max() / len(rates) ** 0.5)
    np.testing.assert_allclose(found.low, np.quantile(means, 0.05, axis=0), atol=0.02)
    np.testing.assert_allclose(found.high, np.quantile(means, 0.95, axis=0), atol=0.02)


def test_above_a_floor_is_what_draws_above_it_give():
    known = KnownAbove(0.004, np.full(3, np.nan))
    check_given(known, lambda rates, rng: (rates >= 0.004).all(axis=1))


def test_a_right_one_among_unseen_samples_is_what_draws_of_them_give():
    """Of the first item nothing more is known; of ten further samples of the others one at least was right."""
    known = KnownAbove(0.004, np.array([0.0, 10.0, 10.0]))
    check_given(known, lambda rates, rng: (rng.binomial(10, rates[:, 1:]) > 0).all(axis=1))


def test_both_kinds_of_knowledge_go_together():
    known = KnownAbove(0.01, np.array([np.nan, 3.0, np.nan]))
    check_given(
        known,
        lambda rates, rng: (rates[:, [0, 2]] >= 0.01).all(axis=1) & (rng.binomial(3, rates[:, 1]) > 0),
    )


def test_a_floor_above_all_mass_gives_the_floor():
    far = mixture([[1.0, 5.0]], [[1e7, 5.0]], [1.0])
    found = curves_above(far, KnownAbove(0.01, np.full(2, np.nan)), K, **DRAWS, rng=np.random.default_rng(0))
    known = beta(5.0, 5.0).expect(lambda p: 1 - (1 - p) ** 10)
    assert found.mean[1] == pytest.approx(0.5 * (1 - 0.99**10) + 0.5 * known, rel=1e-6)


def test_one_right_sample_of_an_item_that_hardly_has_any():
    """The rate is then that of a Beta with one more success."""
    rare = mixture([[1e-6]], [[50.0]], [1.0])
    found = curves_above(rare, KnownAbove(0.005, np.array([10.0])), K, **DRAWS, rng=np.random.default_rng(0))
    np.testing.assert_allclose(
        found.mean, [beta(1.0, 59.0).expect(lambda p, k=k: 1 - (1 - p) ** k) for k in K], rtol=1e-1
    )
    assert found.low[0] < found.mean[0] < found.high[0]


@pytest.mark.parametrize("known", [KnownAbove(1e-300, np.full(3, np.nan)), KnownAbove(0.1, np.zeros(3))])
def test_knowing_nothing_changes_nothing(known):
    plain = posterior_curves(POSTERIOR, K, **DRAWS, rng=np.random.default_rng(3))
    found = curves_above(POSTERIOR, known, K, **DRAWS, rng=np.random.default_rng(3))
    np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-6)
