import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm, rankdata

from itembank.errors import ParameterError
from itembank.numerics import splits
from itembank.numerics.arrays import effective_items, mean_where_known
from itembank.numerics.quadrature import THREE_NODES, log_sum_exp, normal_grid
from itembank.numerics.stable import sigmoid, sigmoid_pair, sigmoid_slope, sigmoid_terms, softplus
from itembank.numerics.symmetric import MATRICES_AT_ONCE, inverse_and_log_determinant, packed_products, unpack
from itembank.numerics.ties import average_ranks, clearly_best, first_largest, first_smallest, id_order, rounded


@pytest.mark.parametrize("axis", [0, 1])
def test_the_mean_is_over_what_is_known_along_an_axis(axis):
    values = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [3.0, np.nan, 0.5]])
    expected = [[2.0, np.nan, 0.25], [0.5, np.nan, 1.75]][axis]
    assert_array_equal(mean_where_known(values, axis), expected)


def test_effective_items_by_hand_and_ids_in_one_order_however_they_are_given(rng):
    ids = [f"item/{number}" for number in range(30)]
    shuffled = rng.permutation(ids).tolist()
    assert [shuffled[place] for place in id_order(shuffled)] == sorted(ids)
    assert effective_items(np.full(8, 0.125)) == pytest.approx(8.0)
    assert effective_items(np.array([0.5, 0.25, 0.25])) == pytest.approx(1 / 0.375)
    assert np.isnan(effective_items(np.zeros(3)))


WIDE = np.concatenate([-np.logspace(3, -12, 60), [0.0], np.logspace(-12, 3, 60)])


def test_softplus_and_sigmoids_of_both_signs_agree_with_scipy():
    assert_allclose(softplus(WIDE), -log_expit(-WIDE), rtol=1e-14)
    assert_allclose(sigmoid_pair(WIDE), [expit(WIDE), expit(-WIDE)], rtol=1e-14)
    assert_allclose(sigmoid(WIDE), expit(WIDE), rtol=1e-14)
    assert_allclose(sigmoid_slope(WIDE), expit(WIDE) * expit(-WIDE), rtol=1e-14)
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
def test_unpacked_products_are_the_outer_products_and_their_weighted_sum_the_gram_matrix(rng, n_dims):
    vectors = rng.normal(size=(7, n_dims))
    packed = packed_products(vectors)
    assert packed.shape == (7, n_dims * (n_dims + 1) // 2)
    assert_array_equal(unpack(packed, n_dims), vectors[:, :, None] * vectors[:, None, :])
    weights = rng.normal(size=(4, 7))
    expected = np.stack([vectors.T @ np.diag(row) @ vectors for row in weights])
    assert_allclose(unpack(weights @ packed, n_dims), expected, atol=1e-13)


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


def test_grids_are_those_of_the_normal_density():
    places, weights = np.array(THREE_NODES).T
    found = [weights @ (places * np.sqrt(3.0)) ** power for power in range(6)]
    assert_allclose(found, [1.0, 0.0, 1.0, 0.0, 3.0, 0.0], atol=1e-15)
    nodes, log_weights = normal_grid(61, bounds=(-6.0, 6.0), n_dims=1)
    density = norm.pdf(nodes[:, 0])
    assert_allclose(np.exp(log_weights), density / density.sum(), rtol=1e-13)
    nodes, log_weights = normal_grid(31, bounds=(-6.0, 6.0), n_dims=2)
    weights = np.exp(log_weights)
    assert nodes.shape == (961, 2)
    assert_allclose(weights @ nodes, 0.0, atol=1e-15)
    assert_allclose(nodes.T @ (weights[:, None] * nodes), np.eye(2), atol=1e-6)
    # the fourth moment of a cut normal is the first to show a wrong tail
    assert_allclose(weights @ nodes[:, 0] ** 4, 3.0, atol=1e-4)


@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_trapezoid_error_is_the_stated_one(ratio):
    # a likelihood of width s and spacing h = s / ratio, wherever it stands between two nodes
    spacing, width = 0.1, 0.1 * ratio
    nodes, _ = normal_grid(121, bounds=(-6.0, 6.0), n_dims=1)
    distance = (nodes[:, 0, None] - np.linspace(0.0, spacing, 41)) / width
    sums = np.exp(-0.5 * distance**2).sum(axis=0) * spacing
    error = np.abs(sums / (width * np.sqrt(2.0 * np.pi)) - 1.0).max()
    assert_allclose(error, 2.0 * np.exp(-2.0 * np.pi**2 * ratio**2), rtol=0.01)


def test_log_sum_exp_where_plain_exponentials_underflow():
    values = np.random.default_rng(1).normal(size=(7, 11)) - 1500.0
    assert_allclose(log_sum_exp(values), logsumexp(values, axis=1), rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_nodes": 1}, "at least 2 nodes"),
        ({"n_nodes": 11, "bounds": (2.0, -2.0)}, "increasing bounds"),
        ({"n_nodes": 1001, "n_dims": 2}, "at most 1,000,000 nodes"),
    ],
)
def test_impossible_grids_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        normal_grid(**arguments)


def test_splits_test_every_row_once_and_rounds_are_dealt_in_different_orders(rng):
    fold = rng.integers(0, 4, 30)
    fold[:4] = np.arange(4)
    found = splits.splits_of(fold)
    assert len(found) == 4
    assert_array_equal(np.sort(np.concatenate([split.test for split in found])), np.arange(30))
    for number, split in enumerate(found):
        assert set(fold[split.test]) == {number}
        assert_array_equal(np.union1d(split.train, split.test), np.arange(30))
        assert np.intersect1d(split.train, split.test).size == 0
        assert np.all(np.diff(split.train) > 0)
    split = splits.Split.of(np.array([False, True, True, False]))
    assert (split.train.tolist(), split.test.tolist()) == ([0, 3], [1, 2])
    order = np.array([3, 0, 4, 1, 2])
    whole, small = splits.first_tested(order, 2), splits.first_tested(order, 2, 1)
    assert (whole.test.tolist(), whole.train.tolist()) == ([0, 3], [1, 2, 4])
    assert (small.test.tolist(), small.train.tolist()) == ([0, 3], [4])
    rounds = splits.dealt_out(np.arange(200), 5, rng).reshape(40, 5)
    assert len(np.unique(rounds, axis=0)) > 20
    assert np.bincount(splits.random_folds(23, 5, rng)).tolist() == [5, 5, 5, 4, 4]
    assert splits.dealt_out(np.array([2, 0, 1, 4, 3]), 2).tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize(("n", "n_folds"), [(20, 5), (23, 5), (7, 10)])
def test_with_chance_each_round_of_an_order_has_every_fold_once(n, n_folds, rng):
    order = rng.permutation(n)
    fold = splits.dealt_out(order, n_folds, rng)
    for start in range(0, n, n_folds):
        part = fold[order[start : start + n_folds]].tolist()
        assert len(set(part)) == len(part)
        assert set(part) <= set(range(n_folds))


def test_the_first_of_each_group_are_those_that_a_loop_would_take(rng):
    assert splits.places_within(np.array([3, 0, 1, 2])).tolist() == [0, 1, 2, 0, 0, 1]
    group, order, counts = rng.integers(0, 5, 60), rng.permutation(60)[:45], np.array([0, 3, 100, 1, 5])
    expected = [row for k in range(5) for row in [row for row in order if group[row] == k][: counts[k]]]
    assert splits.first_of_each(order, group, counts).tolist() == expected
