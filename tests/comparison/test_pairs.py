import numpy as np
import pytest

from itembank.comparison.pairs import model_pairs, paired_differences, shared_counts


def simple(responses, *, size=1000):
    """Pairs of models on one scenario of equal weights."""
    n = responses.shape[1]
    return paired_differences(responses, np.ones(n), np.zeros(n, dtype=int), np.array([size]), np.ones((1, 1)))


def test_one_scenario_is_the_textbook_paired_standard_error(rng):
    responses = rng.random((4, 25))
    found = simple(responses, size=60)
    for pair, (a, b) in enumerate(zip(*model_pairs(4), strict=True)):
        d = responses[b] - responses[a]
        assert found.difference[pair, 0] == pytest.approx(d.mean())
        assert found.variance_of_many[pair, 0] == pytest.approx(d.var(ddof=1) / 25)
        assert found.variance[pair, 0] == pytest.approx(d.var(ddof=1) / 25 * (1 - 25 / 60))
        assert (found.n_shared[pair, 0], found.degrees[pair, 0]) == (25, 24)


def test_a_scenario_with_one_shared_item_takes_a_degree_of_freedom():
    responses = np.array([[1.0, 0.0, 1.0, 1.0, np.nan], [0.0, 0.0, 1.0, 0.0, 1.0]])
    found = paired_differences(
        responses, np.ones(5), np.array([0, 0, 0, 1, 1]), np.array([9, 9]), np.array([[0.5, 0.5]])
    )
    assert (found.n_shared[0, 0], found.degrees[0, 0]) == (4, 2)


def test_missing_cells_weights_and_scenarios_against_a_loop(rng):
    n_models, n_columns = 5, 40
    responses = (rng.random((n_models, n_columns)) < 0.6).astype(float)
    responses[rng.random(responses.shape) < 0.3] = np.nan
    weights, scenario = rng.random(n_columns) + 0.1, np.arange(n_columns) % 3
    sizes, target_weights = np.array([30, 20, 50]), np.array([[0.0, 1.0, 0.0], [0.2, 0.5, 0.3]])
    found = paired_differences(responses, weights, scenario, sizes, target_weights)
    for pair, (a, b) in enumerate(zip(*model_pairs(n_models), strict=True)):
        means, variances, counts = [], [], []
        for j in range(3):
            shared = (scenario == j) & ~np.isnan(responses[a]) & ~np.isnan(responses[b])
            d, w, n = (responses[b] - responses[a])[shared], weights[shared], shared.sum()
            means.append(np.average(d, weights=w))
            spread = np.sum(w**2 * (d - means[-1]) ** 2) / w.sum() ** 2
            variances.append(spread * n / (n - 1) * (1 - n / sizes[j]))
            counts.append(n)
        assert found.difference[pair] == pytest.approx(target_weights @ means)
        assert found.variance[pair] == pytest.approx(target_weights**2 @ variances)
        assert found.n_shared[pair].tolist() == [counts[1], sum(counts)]
        assert found.degrees[pair].tolist() == [counts[1] - 1, sum(counts) - 3]


def test_discordant_items_are_counted(rng):
    responses = np.array([[1.0, 1.0, 0.0, np.nan, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0]])
    found = simple(responses)
    assert (found.only_a[0, 0], found.only_b[0, 0], found.n_shared[0, 0]) == (2, 1, 4)


def test_all_items_leave_no_sampling_error(rng):
    found = simple(rng.random((3, 12)), size=12)
    assert found.variance == pytest.approx(0.0)
    assert np.all(found.variance_of_many > 0.0)


def test_a_scenario_without_shared_items_leaves_the_target_unknown():
    responses = np.array([[1.0, np.nan, 0.0], [1.0, 1.0, np.nan]])
    found = paired_differences(
        responses, np.ones(3), np.array([0, 0, 1]), np.array([5, 5]), np.array([[1.0, 0.0], [0.5, 0.5]])
    )
    assert found.difference[0, 0] == 0.0
    assert np.isnan(found.difference[0, 1])


def test_a_single_shared_item_still_has_a_spread():
    found = simple(np.array([[1.0], [0.0]]), size=10)
    assert found.variance[0, 0] == pytest.approx(1.0 * 0.9)


def test_shared_counts():
    observed = np.array([[True, True, False], [True, False, True], [False, False, True]])
    assert shared_counts(observed).tolist() == [1, 0, 1]
