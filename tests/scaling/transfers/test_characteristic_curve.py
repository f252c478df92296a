import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta

from itembank.irt.parameters import ItemParameters
from itembank.scaling.transfers.characteristic_curve import item_curves, logit_curves, mean_curves

PLAIN = ItemParameters.create(np.array([[1.0], [2.0], [0.5]]), np.array([0.3, -1.0, 0.0]))
OVERDISPERSED = ItemParameters.create(
    PLAIN.loadings, PLAIN.intercept, family="beta-binomial", precision=np.array([0.5, 3.0, 40.0])
)
THETA = np.array([-1.0, 0.0, 2.5])


def test_pass_at_k_without_precision_is_the_papers_equation_4():
    p = expit(THETA[:, None] * PLAIN.loadings[:, 0] + PLAIN.intercept)
    np.testing.assert_allclose(item_curves(PLAIN, THETA, 1), p)
    np.testing.assert_allclose(item_curves(PLAIN, THETA, 7), 1 - (1 - p) ** 7)


def test_pass_at_k_with_precision_is_the_mean_over_the_cells_beta():
    found = item_curves(OVERDISPERSED, THETA, 5)
    p = item_curves(OVERDISPERSED, THETA, 1)
    for i, j in ((0, 0), (1, 1), (2, 2)):
        cell = beta(p[i, j] * OVERDISPERSED.precision[j], (1 - p[i, j]) * OVERDISPERSED.precision[j])
        # by parts, as the density may be endless at the ends: E[1 - (1-p)^5] = int 5 (1-p)^4 P(p' > p) dp
        expected = quad(lambda x, cell=cell: 5 * (1 - x) ** 4 * cell.sf(x), 0, 1, limit=200)[0]
        assert found[i, j] == pytest.approx(expected, rel=1e-6)


def test_means_are_over_the_items_that_count():
    counted = np.array([[True, True, True], [True, False, False], [False, True, True]])
    found = mean_curves(PLAIN, THETA, (1, 3), counted)
    for column, k in enumerate((1, 3)):
        curves = item_curves(PLAIN, THETA, k)
        expected = [curves[row][counted[row]].mean() for row in range(3)]
        np.testing.assert_allclose(found[:, column], expected)


def test_slopes_are_those_of_the_logit():
    counted = np.ones((3, 3), dtype=bool)
    value, slope = logit_curves(PLAIN, THETA, (1, 4), counted)
    at = [logit(mean_curves(PLAIN, THETA + step, (1, 4), counted)) for step in (-1e-5, 0.0, 1e-5)]
    np.testing.assert_allclose(value, at[1])
    np.testing.assert_allclose(slope, (at[2] - at[0]) / 2e-5, rtol=1e-5)


def test_one_items_logit_is_its_line():
    one = PLAIN.take(np.array([1]))
    value, slope = logit_curves(one, THETA, (1,), np.ones((3, 1), dtype=bool))
    np.testing.assert_allclose(value[:, 0], 2.0 * THETA - 1.0)
    np.testing.assert_allclose(slope, 2.0, rtol=1e-6)
