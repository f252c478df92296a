import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel

from itembank.comparison.difference_tests import bootstrap_intervals, holm, mcnemar_exact, paired_t, standardised
from itembank.comparison.pairs import model_pairs, paired_differences


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (0, 1), (1, 9), (5, 5), (12, 40), (300, 210)])
def test_mcnemar_is_the_exact_binomial_test(only_a, only_b):
    found = mcnemar_exact(np.array(float(only_a)), np.array(float(only_b)))
    expected = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert found == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand_and_on_the_approval_ratings():
    # 2 (C(10,0) + C(10,1)) / 2^10, and Agresti's 1,600 Britons, of whom 86 and 150 changed their minds:
    # R's exact2x2 gives 3.716e-05
    assert mcnemar_exact(np.array(1.0), np.array(9.0)) == pytest.approx(22 / 1024)
    assert mcnemar_exact(np.array(86.0), np.array(150.0)) == pytest.approx(3.716e-5, rel=1e-3)


def test_holm_by_hand():
    p = np.array([[0.01, 0.5], [0.04, np.nan], [0.03, 0.02], [0.005, 0.3]])
    expected = [[0.03, 0.6], [0.06, np.nan], [0.06, 0.06], [0.02, 0.6]]
    np.testing.assert_allclose(holm(p), expected)


def test_holm_stays_at_one_or_below():
    assert holm(np.array([[0.7], [0.9]])).ravel().tolist() == [1.0, 1.0]


def test_paired_t_is_scipys(rng):
    responses = rng.random((2, 15))
    pairs = paired_differences(responses, np.ones(15), np.zeros(15, int), np.array([99]), np.ones((1, 1)))
    found = paired_t(pairs.difference, pairs.variance_of_many, pairs.degrees)
    assert found[0, 0] == pytest.approx(ttest_rel(responses[0], responses[1]).pvalue)


def test_no_error_decides():
    found = standardised(np.array([0.1, -0.1, 0.0, 0.2]), np.array([0.0, 0.0, 0.0, 0.1]))
    assert found.tolist() == [np.inf, -np.inf, 0.0, 2.0]


def bootstrapped(responses, rng, **choices):
    n = responses.shape[1]
    given = {"scenario_index": np.zeros(n, int), "target_weights": np.ones((1, 1)), "n_samples": 4000, "level": 0.95}
    first, second = model_pairs(responses.shape[0])
    return bootstrap_intervals(responses, first, second, weights=np.ones(n), rng=rng, **{**given, **choices})


def test_bootstrap_has_the_standard_error_of_the_mean(rng):
    responses = rng.random((2, 200))
    low, high = bootstrapped(responses, rng)
    d = responses[1] - responses[0]
    assert (low[0, 0] + high[0, 0]) / 2 == pytest.approx(d.mean(), abs=0.005)
    assert (high[0, 0] - low[0, 0]) / 2 == pytest.approx(1.96 * d.std() / np.sqrt(200), rel=0.05)


def test_bootstrap_draws_within_scenarios(rng):
    # each scenario has one difference only: nothing varies
    scenario = np.repeat([0, 1], 20)
    responses = np.vstack([np.zeros(40), np.where(scenario == 0, 1.0, 0.0)])
    low, high = bootstrapped(responses, rng, scenario_index=scenario, target_weights=np.array([[0.25, 0.75]]))
    assert low[0, 0] == pytest.approx(0.25)
    assert high[0, 0] == pytest.approx(0.25)


def test_bootstrap_uses_shared_items_only(rng):
    responses = rng.random((3, 40))
    responses[0, :20] = np.nan
    responses[1, 25:] = np.nan
    low, high = bootstrapped(responses, rng)
    d = (responses[1] - responses[0])[20:25]
    assert d.min() <= low[0, 0] < d.mean() < high[0, 0] <= d.max()


def test_bootstrap_is_the_same_for_the_same_seed():
    responses = np.random.default_rng(0).random((3, 30))
    one, two = (bootstrapped(responses, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
