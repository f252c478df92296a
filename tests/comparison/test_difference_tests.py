import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel

from itembank.comparison.difference_tests import holm, mcnemar_exact, paired_t, standardised
from itembank.comparison.pairs import paired_differences


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
