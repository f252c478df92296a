import numpy as np
import pytest
from scipy.stats import rankdata

from itembank.numerics.ties import average_ranks, clearly_best, first_largest, first_smallest, id_order, rounded


def test_of_values_that_differ_by_rounding_the_first_is_taken(rng):
    values = rng.normal(size=(50, 9))
    values[:, 6] = values.max(axis=1) + 1.0
    values[:, 3] = values[:, 6] * (1.0 - 1e-9)
    np.testing.assert_array_equal(first_largest(values), 3)
    np.testing.assert_array_equal(first_smallest(-values), 3)
    values[:, 3] = values[:, 6] * (1.0 - 1e-5)
    np.testing.assert_array_equal(first_largest(values), 6)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_does_not_matter(rng, scale):
    values = rng.permutation(200) - 50.0
    assert first_largest(scale * values) == np.argmax(values)
    np.testing.assert_array_equal(np.argsort(rounded(scale * values)), np.argsort(values))


def test_what_is_not_allowed_is_not_equal_to_anything():
    assert first_largest(np.array([-np.inf, -2.0, -1.0])) == 2
    assert first_largest(np.array([-np.inf, -np.inf])) == 0
    assert first_largest(np.array([0.0, 0.0])) == 0


def test_rounded_values_sort_alike_whatever_the_last_digits(rng):
    values = rng.choice([0.25, 1.0 / 3.0, 0.5, 3.0], 100)
    for _ in range(20):
        noisy = values * (1.0 + 1e-15 * rng.normal(size=100))
        np.testing.assert_array_equal(np.argsort(rounded(noisy), kind="stable"), np.argsort(values, kind="stable"))
    np.testing.assert_allclose(rounded(values), values, atol=3e-6)
    np.testing.assert_array_equal(rounded(np.zeros(3)), 0.0)


def test_ids_come_in_one_order_however_they_are_given(rng):
    ids = [f"item/{number}" for number in range(30)]
    shuffled = rng.permutation(ids).tolist()
    assert [shuffled[place] for place in id_order(shuffled)] == sorted(ids)


@pytest.mark.parametrize("values", [[3.0, 1.0, 3.0, 2.0, 3.0, 1.0], [5.0], [2.0, 2.0], [0.3, -1.0, np.inf]])
def test_equal_values_share_the_mean_of_their_ranks(values):
    np.testing.assert_array_equal(average_ranks(np.array(values)), rankdata(values))


FIRST = np.array([0.08, 0.09, 0.08, 0.09])
SAVING = np.array([0.04, 0.01, 0.03, 0.02])  # mean 0.025, standard error 0.0065


def test_the_first_gives_way_only_to_what_is_better_by_more_than_the_standard_error():
    doubt = np.std(SAVING, ddof=1) / 2.0
    for shift, best in ((0.99, 0), (1.01, 1)):
        assert clearly_best([FIRST, FIRST - SAVING + SAVING.mean() - shift * doubt]) == best
    assert clearly_best([FIRST, FIRST, FIRST - SAVING]) == 2


def test_what_is_unknown_does_not_count():
    nothing = np.full(4, np.nan)
    assert clearly_best([nothing, FIRST]) == 1
    assert clearly_best([FIRST, np.where([True, False, False, True], np.nan, FIRST - SAVING)]) == 1
    assert clearly_best([nothing, nothing]) == 0
