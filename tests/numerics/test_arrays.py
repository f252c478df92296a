import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit
from scipy.stats import rankdata

from itembank.numerics.arrays import effective_items, mean_where_known
from itembank.numerics.stable import sigmoid_pair, sigmoid_slope, sigmoid_terms, softplus
from itembank.numerics.symmetric import MATRICES_AT_ONCE, inverse_and_log_determinant, packed_products, unpack
from itembank.numerics.ties import average_ranks, clearly_best, first_largest, first_smallest, id_order, rounded


@pytest.mark.parametrize("axis", [0, 1])
def test_the_mean_is_over_what_is_known_along_an_axis(axis):
    values = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [3.0, np.nan, 0.5]])
    expected = [[2.0, np.nan, 0.25], [0.5, np.nan, 1.75]][axis]
    assert_array_equal(mean_where_known(values, axis), expected)


def test_effective_items_by_hand():
    assert effective_items(np.full(8, 0.125)) == pytest.approx(8.0)
    assert effective_items(np.array([0.5, 0.25, 0.25])) == pytest.approx(1 / 0.375)
    assert np.isnan(effective_items(np.zeros(3)))


WIDE = np.concatenate([-np.logspace(3, -12, 60), [0.0], np.logspace(-12, 3, 60)])


def test_softplus_and_sigmoids_of_both_signs_agree_with_scipy():
    assert_allclose(softplus(WIDE), -log_expit(-WIDE), rtol=1e-14)
    rising, falling = sigmoid_pair(WIDE)
    assert_allclose(rising, expit(WIDE), rtol=1e-14)
    assert_allclose(falling, expit(-WIDE), rtol=1e-14)
    assert_allclose(sigmoid_slope(WIDE), expit(WIDE) * expit(-WIDE), rtol=1e-14)


def test_the_slope_keeps_its_digits_where_one_minus_sigmoid_has_none():
    # sigmoid(50) rounds to 1, so sigmoid (1 - sigmoid) would be 0.
    assert_allclose(sigmoid_slope(np.array([50.0, -50.0])), np.exp(-50.0), rtol=1e-14)
    assert sigmoid_slope(np.array([np.inf]))[0] == 0.0


@given(st.floats(-700.0, 700.0))
def test_sigmoid_terms_agree_with_each_alone(x):
    below, sigmoid, slope = sigmoid_terms(np.array([x]))
    assert_allclose(below, softplus(np.array([x])), rtol=1e-14)
    assert_allclose(sigmoid, expit(x), rtol=1e-14)
    assert_allclose(slope, sigmoid_slope(np.array([x])), rtol=1e-13)


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_unpacked_products_are_the_outer_products(rng, n_dims):
    vectors = rng.normal(size=(7, n_dims))
    packed = packed_products(vectors)
    assert packed.shape == (7, n_dims * (n_dims + 1) // 2)
    assert_array_equal(unpack(packed, n_dims), vectors[:, :, None] * vectors[:, None, :])


def test_weighted_sum_of_packed_products_is_the_weighted_gram_matrix(rng):
    vectors, weights = rng.normal(size=(9, 3)), rng.normal(size=(4, 9))
    expected = np.stack([vectors.T @ np.diag(row) @ vectors for row in weights])
    assert_allclose(unpack(weights @ packed_products(vectors), 3), expected, atol=1e-13)


@pytest.mark.parametrize("size", [1, 3, 8, 9])
def test_inverses_and_determinants_are_those_of_lapack(rng, size):
    roots = rng.normal(size=(MATRICES_AT_ONCE + 3, size + 2, size))
    matrices = roots.swapaxes(1, 2) @ roots
    inverse, log_determinant = inverse_and_log_determinant(matrices)
    assert_allclose(inverse @ matrices, np.broadcast_to(np.eye(size), matrices.shape), atol=1e-6)
    assert_allclose(log_determinant, np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=1e-9)


def test_of_values_that_differ_by_rounding_the_first_is_taken(rng):
    values = rng.normal(size=(50, 9))
    values[:, 6] = values.max(axis=1) + 1.0
    values[:, 3] = values[:, 6] * (1.0 - 1e-9)
    assert_array_equal(first_largest(values), 3)
    assert_array_equal(first_smallest(-values), 3)
    values[:, 3] = values[:, 6] * (1.0 - 1e-5)
    assert_array_equal(first_largest(values), 6)
    assert first_largest(np.array([-np.inf, -2.0, -1.0])) == 2
    assert first_largest(np.array([-np.inf, -np.inf])) == 0
    assert first_largest(np.array([0.0, 0.0])) == 0


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_does_not_matter(rng, scale):
    values = rng.permutation(200) - 50.0
    assert first_largest(scale * values) == np.argmax(values)
    assert_array_equal(np.argsort(rounded(scale * values)), np.argsort(values))


def test_rounded_values_sort_alike_whatever_the_last_digits(rng):
    values = rng.choice([0.25, 1.0 / 3.0, 0.5, 3.0], 100)
    for _ in range(20):
        noisy = values * (1.0 + 1e-15 * rng.normal(size=100))
        assert_array_equal(np.argsort(rounded(noisy), kind="stable"), np.argsort(values, kind="stable"))
    assert_allclose(rounded(values), values, atol=3e-6)
    assert_array_equal(rounded(np.zeros(3)), 0.0)


def test_ids_come_in_one_order_however_they_are_given(rng):
    ids = [f"item/{number}" for number in range(30)]
    shuffled = rng.permutation(ids).tolist()
    assert [shuffled[place] for place in id_order(shuffled)] == sorted(ids)


@pytest.mark.parametrize("values", [[3.0, 1.0, 3.0, 2.0, 3.0, 1.0], [5.0], [2.0, 2.0], [0.3, -1.0, np.inf]])
def test_equal_values_share_the_mean_of_their_ranks(values):
    assert_array_equal(average_ranks(np.array(values)), rankdata(values))


FIRST = np.array([0.08, 0.09, 0.08, 0.09])
SAVING = np.array([0.04, 0.01, 0.03, 0.02])  # mean 0.025, standard error 0.0065


def test_the_first_gives_way_only_to_what_is_known_and_better_by_more_than_the_standard_error():
    doubt = np.std(SAVING, ddof=1) / 2.0
    for shift, best in ((0.99, 0), (1.01, 1)):
        assert clearly_best([FIRST, FIRST - SAVING + SAVING.mean() - shift * doubt]) == best
    assert clearly_best([FIRST, FIRST, FIRST - SAVING]) == 2
    nothing = np.full(4, np.nan)
    assert clearly_best([nothing, FIRST]) == 1
    assert clearly_best([FIRST, np.where([True, False, False, True], np.nan, FIRST - SAVING)]) == 1
    assert clearly_best([nothing, nothing]) == 0
