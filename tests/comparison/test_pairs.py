import dataclasses

import numpy as np
import pytest
from scipy.stats import binomtest, kurtosis, norm, t, ttest_rel
from scipy.stats import t as student

from itembank.comparison.compare import compare
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.difference_tests import (
    Evidence,
    error_variance,
    holm,
    intervals_and_tests,
    learn_errors,
    least_variance,
    mcnemar_exact,
    paired_t,
    past_errors,
    standardised,
)
from itembank.comparison.pairs import (
    PairedDifferences,
    PairErrorModel,
    finite_quantile,
    fit_pair_errors,
    model_pairs,
    paired_differences,
    shared_counts,
)
from itembank.estimation.asked import Asked
from itembank.estimation.calibrated_scores import PastEstimates
from itembank.estimation.estimator_specs import GPIRT, Factor
from itembank.numerics.newton import fit_variance
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.estimation.simulated import having


def simple(responses, *, size=1000):
    """Pairs of models on one scenario of equal weights."""
    n = responses.shape[1]
    return paired_differences(responses, np.ones(n), np.zeros(n, dtype=int), np.array([size]), np.ones((1, 1)))


def test_all_items_leave_no_sampling_error(rng):
    responses = rng.random((4, 25))
    found = simple(responses, size=60)
    for pair, (a, b) in enumerate(zip(*model_pairs(4), strict=True)):
        d = responses[b] - responses[a]
        assert found.difference[pair, 0] == pytest.approx(d.mean())
        assert found.variance_of_many[pair, 0] == pytest.approx(d.var(ddof=1) / 25)
        assert found.variance[pair, 0] == pytest.approx(d.var(ddof=1) / 25 * (1 - 25 / 60))
        assert (found.n_shared[pair, 0], found.degrees[pair, 0]) == (25, 24)
    found = simple(rng.random((3, 12)), size=12)
    assert (found.variance, found.variance_of_many.min() > 0.0) == (pytest.approx(0.0), True)


def test_few_shared_items_leave_a_spread_or_the_target_unknown():
    responses = np.array([[1.0, 0.0, 1.0, 1.0, np.nan], [0.0, 0.0, 1.0, 0.0, 1.0]])
    index, sizes = np.array([0, 0, 0, 1, 1]), np.array([9, 9])
    found = paired_differences(responses, np.ones(5), index, sizes, np.array([[0.5, 0.5]]))
    assert (found.n_shared[0, 0], found.degrees[0, 0]) == (4, 2)
    responses, weights = np.array([[1.0, np.nan, 0.0], [1.0, 1.0, np.nan]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    found = paired_differences(responses, np.ones(3), np.array([0, 0, 1]), np.array([5, 5]), weights)
    np.testing.assert_array_equal(found.difference[0], [0.0, np.nan])
    assert simple(np.array([[1.0], [0.0]]), size=10).variance[0, 0] == pytest.approx(1.0 * 0.9)


def test_missing_cells_weights_and_scenarios_against_a_loop(rng):
    n_models, n_columns = 5, 40
    responses = (rng.random((n_models, n_columns)) < 0.6).astype(float)
    responses[rng.random(responses.shape) < 0.3] = np.nan
    weights, scenario = rng.random(n_columns) + 0.1, np.arange(n_columns) % 3
    sizes, target_weights = np.array([30, 20, 50]), np.array([[0.0, 1.0, 0.0], [0.2, 0.5, 0.3]])
    found = paired_differences(responses, weights, scenario, sizes, target_weights)
    for pair, (a, b) in enumerate(zip(*model_pairs(n_models), strict=True)):
        means, variances, counts, units, flips = [], [], [], [], []
        for j in range(3):
            shared = (scenario == j) & ~np.isnan(responses[a]) & ~np.isnan(responses[b])
            d, w, n = (responses[b] - responses[a])[shared], weights[shared], shared.sum()
            means.append(np.average(d, weights=w))
            spread = np.sum(w**2 * (d - means[-1]) ** 2) / w.sum() ** 2
            variances.append(spread * n / (n - 1) * (1 - n / sizes[j]))
            counts.append(n)
            units.append(np.sum(w**2) / w.sum() ** 2 * n / (n - 1))
            flips.append([np.average(d < 0.0, weights=w), np.average(d > 0.0, weights=w)])
        assert found.difference[pair] == pytest.approx(target_weights @ means)
        assert found.variance[pair] == pytest.approx(target_weights**2 @ variances)
        assert found.unit[pair] == pytest.approx(target_weights**2 @ units)
        np.testing.assert_allclose([found.fell[pair], found.rose[pair]], (target_weights @ flips).T)
        assert found.n_shared[pair].tolist() == [counts[1], sum(counts)]
        assert found.degrees[pair].tolist() == [counts[1] - 1, sum(counts) - 3]


def test_discordant_and_shared_items_are_counted(rng):
    found = simple(np.array([[1.0, 1.0, 0.0, np.nan, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0]]))
    assert (found.only_a[0, 0], found.only_b[0, 0], found.n_shared[0, 0]) == (2, 1, 4)
    observed = np.array([[True, True, False], [True, False, True], [False, False, True]])
    assert shared_counts(observed).tolist() == [1, 0, 1]


def line(disagreement):
    return np.column_stack([np.ones_like(disagreement), disagreement])


def test_fit_variance_recovers_a_line_that_never_falls_with_disagreement(rng):
    disagreement, noise = rng.uniform(0.1, 2.0, 60_000), rng.normal(size=60_000) ** 2
    rising, falling = (0.3 + 0.5 * disagreement) * noise, (3.0 - disagreement) * noise
    assert fit_variance(rising, line(disagreement)) == pytest.approx((0.3, 0.5), rel=0.06)
    constant, slope = fit_variance(falling, line(disagreement))
    assert (slope, constant) == (0.0, pytest.approx(falling.mean()))


def test_fit_variance_is_the_likelihood_optimum(rng):
    disagreement = rng.uniform(0.1, 2.0, 500)
    squared = (0.3 + 0.5 * disagreement) * rng.normal(size=500) ** 2
    constant, slope = fit_variance(squared, line(disagreement))

    def deviance(a, b):
        variance = a + b * disagreement
        return np.sum(np.log(variance) + squared / variance)

    best = deviance(constant, slope)
    for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)):
        assert deviance(constant + 1e-3 * a, slope + 1e-3 * b) > best - 1e-9


def independent_errors(n_models, rng):
    """Errors of models, a disagreement that tells nothing, and the pairs."""
    first, second = model_pairs(n_models)
    return rng.normal(size=n_models), np.ones(first.shape[0]), first, second


def test_normal_errors_have_the_normal_quantile_at_the_level(rng):
    model = fit_pair_errors(*independent_errors(500, rng), level=0.9)
    assert model.quantile == pytest.approx(norm.ppf(0.95), rel=0.05)
    assert model.constant + model.slope == pytest.approx(2.0, rel=0.15)
    assert model.scale == pytest.approx(1.0, rel=0.05)
    model = fit_pair_errors(*independent_errors(60, rng), level=0.9)
    assert model.scale * student.ppf(0.95, model.degrees) == pytest.approx(model.quantile)


def test_tails_are_as_heavy_as_those_of_the_errors(rng):
    _, disagreement, first, second = independent_errors(60, rng)
    errors = student.ppf((np.arange(60) + 0.5) / 60, 3)
    both = np.concatenate([errors[first] - errors[second], errors[second] - errors[first]])
    model = fit_pair_errors(errors, disagreement, first, second, level=0.9)
    # the excess kurtosis of a Student distribution is 6 / (degrees - 4)
    assert model.degrees == pytest.approx(4.0 + 6.0 / kurtosis(both), rel=1e-6)
    assert 4.0 < model.degrees < 59.0


def test_the_quantile_is_that_of_as_many_independent_errors_as_say_as_much(rng):
    errors, (first, second) = rng.standard_t(3, 30), model_pairs(30)
    sizes = np.abs(errors[first] - errors[second])
    inside = sizes <= np.quantile(sizes, 0.7)
    of_models = [inside[(first == model) | (second == model)].mean() for model in range(30)]
    n = 0.7 * 0.3 / (4.0 * np.var(of_models, ddof=1) / 30)
    assert 30 / 4 < n < 60
    expected = np.quantile(sizes, 0.7 * (n + 1.0) / n)
    assert finite_quantile(sizes, first, second, 30, level=0.7) == pytest.approx(expected, rel=1e-9)
    errors, _, first, second = independent_errors(20, rng)
    absolute = np.abs(errors[first] - errors[second])
    assert np.quantile(absolute, 0.9) < finite_quantile(absolute, first, second, 20, level=0.9) <= absolute.max()


def test_the_error_follows_both_models_and_what_they_have_in_common(rng):
    """Errors that are sums of a model's own part and its group's: the difference within a group has no group part."""
    n = 400
    own, group = rng.uniform(0.5, 2.0, n), np.arange(n) % 2
    errors = own * rng.normal(size=n) + np.where(group, 1.5, -1.5)
    first, second = model_pairs(n)
    independent, apart = own[first] ** 2 + own[second] ** 2, (group[first] != group[second]).astype(float)
    model = fit_pair_errors(errors, apart, first, second, independent=independent, level=0.9)
    assert model.constant == pytest.approx(1.0, rel=0.2)
    assert model.slope == pytest.approx(9.0, rel=0.2)  # (1.5 + 1.5)^2


def test_no_errors_leave_the_classical_variance_and_no_disagreement_is_no_trouble(rng):
    first, second = model_pairs(30)
    about = {"first": first, "second": second, "level": 0.95}
    model = fit_pair_errors(np.zeros(30), np.ones(first.size), **about)
    assert (model.constant, model.slope, model.degrees) == (0.0, 1.0, 29.0)
    assert model.quantile == pytest.approx(student.ppf(0.975, 29))
    errors, nothing = rng.normal(size=30), np.zeros(first.size)
    model = fit_pair_errors(errors, nothing, **about)
    assert model.constant > 0.0
    assert np.isfinite(model.quantile)
    # scores of these items, not of the past ones'
    assert fit_pair_errors(errors, nothing, independent=nothing, **about).constant == 0.0


def test_of_few_models_the_quantile_is_at_least_that_of_student():
    """Of twelve errors of one size no difference is as large as Student's quantile with eleven degrees says."""
    first, second = np.triu_indices(12, 1)
    model = fit_pair_errors(np.tile([1.0, -1.0], 6), np.zeros(first.size), first, second, level=0.95)
    assert model.quantile == pytest.approx(student.ppf(0.975, 11) * np.sqrt(13 / 12), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_models", [16, 40, 150])
def test_intervals_cover_new_pairs(n_models):
    """Errors share what items do: models in clusters, whose disagreement is small within a cluster."""
    rng, inside = np.random.default_rng(n_models), []
    for _ in range(400):
        own, common = rng.normal(size=n_models + 2), rng.normal(size=2)
        kind, (first, second) = np.arange(n_models + 2) % 2, model_pairs(n_models)
        errors, spread = 0.5 * own + common[kind] * 1.0, rng.chisquare(3, n_models + 2) / 3.0
        errors = errors * np.sqrt(spread)
        disagreement = 0.2 + 1.0 * (kind[first] != kind[second]) + 0.5 * (spread[first] + spread[second])
        model = fit_pair_errors(errors[:n_models], disagreement, first, second, level=0.9)
        new = 0.2 + 1.0 * (kind[-1] != kind[-2]) + 0.5 * (spread[-1] + spread[-2])
        inside.append(abs(errors[-1] - errors[-2]) <= model.quantile * np.sqrt(model.constant + model.slope * new))
    assert np.mean(inside) > 0.9 - 3 * np.sqrt(0.09 / 400)


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
    found = standardised(np.array([0.1, -0.1, 0.0, 0.2]), np.array([0.0, 0.0, 0.0, 0.1]))
    assert found.tolist() == [np.inf, -np.inf, 0.0, 2.0]


def test_holm_by_hand():
    p = np.array([[0.01, 0.5], [0.04, np.nan], [0.03, 0.02], [0.005, 0.3]])
    np.testing.assert_allclose(holm(p), [[0.03, 0.6], [0.06, np.nan], [0.06, 0.06], [0.02, 0.6]])
    assert holm(np.array([[0.7], [0.9]])).ravel().tolist() == [1.0, 1.0]


def test_paired_t_is_scipys(rng):
    responses = rng.random((2, 15))
    pairs = simple(responses)
    found = paired_t(pairs.difference, pairs.variance_of_many, pairs.degrees)
    assert found[0, 0] == pytest.approx(ttest_rel(*responses).pvalue)


def test_the_error_of_a_difference_lies_between_that_on_the_same_and_on_other_items():
    """``a (s_a^2 + s_b^2) + b V`` on the same items, ``s_a^2 + s_b^2`` on others, by their fraction between."""
    sizes, nothing = np.array([[0.03], [0.04]]), np.zeros((1, 1))
    variance, apart = 0.05, 0.03**2 + 0.04**2
    together, errors = 0.5 * apart + 2.0 * variance, PairErrorModel(0.5, 2.0, 1.9, 8.0, 0.95, 0.05)
    for n_shared, expected in ((10, together), (5, together / 3.0 + apart * 2.0 / 3.0), (0, apart)):
        number, known = np.array([[n_shared]]), (nothing, np.full((1, 1), variance), *[nothing] * 5)
        pairs = PairedDifferences(*known, number, number, nothing, nothing)
        counts = np.array([[10], [10]]), np.array([100])
        assert error_variance(pairs, *counts, sizes, errors, target=0) == pytest.approx([expected])


def test_intervals_by_hand_turn_round_with_their_limits():
    numbers = ([0.9, 0.3], [0.02**2, 0.0], [0.0, 0.0], [0.0, 0.1], [0.9, 0.4], [9.0, 9.0], [1.3, 1.0])
    found = Evidence(*(np.array(one)[:, None] for one in numbers), is_of_run=True)
    scores, _ = intervals_and_tests(found, ComparisonSpec())
    half = np.array([1.3 * t.ppf(0.975, 9) * 0.02, 0.0])
    np.testing.assert_allclose(scores.low[:, 0], found.difference[:, 0] - half)
    np.testing.assert_allclose(scores.high[:, 0], found.difference[:, 0] + half)
    np.testing.assert_allclose(scores.standard_error[:, 0], [0.02, 0.0], atol=1e-12)
    # a difference that no item shows is not impossible
    assert least_variance(np.array([8, 0]), 10) == pytest.approx([0.2 * 2.0 / 100.0, 2.0 / 4.0])
    limited = found._replace(least=0.88, most=0.91)
    np.testing.assert_allclose(np.array(limited.turned.bounds(0.95))[:, 0], [[-0.91], [-0.88]])


def test_errors_of_pairs_are_learnt_from_models_whose_errors_are_known(rng):
    size = rng.uniform(0.01, 0.1, (20, 1))
    errors, (first, second) = size * rng.normal(size=(20, 1)), model_pairs(20)
    disagreement, errors[3] = rng.random((first.size, 1)) * 0.01, np.nan
    (found,) = learn_errors(PastEstimates(0.0 * size, errors, size, size), disagreement, np.array([0]), level=0.95)
    usable = (first != 3) & (second != 3)
    independent = (size[first, 0] ** 2 + size[second, 0] ** 2)[usable]
    about = np.delete(errors[:, 0], 3), disagreement[usable, 0], *model_pairs(19)
    assert found == fit_pair_errors(*about, independent=independent, level=0.95)


pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=40, n_items=150)


def errors_of(bank, selection, spec):
    asked = Asked.of_past(bank, selection)
    return past_errors(asked, np.ones(asked.observations.positions.size, dtype=bool), spec)


def test_of_many_models_500_from_first_to_last_are_taken():
    many = make_bank(n_models=600, n_items=60)
    drawn = select(many, 60, method="random", rng=0)
    answers = Asked.of_past(many, drawn).observations.responses
    places = [np.flatnonzero((answers == row).all(axis=1))[0] for row in errors_of(many, drawn, GPIRT())[1]]
    assert (len(places), places[0], places[-1]) == (500, 0, 599)
    assert np.diff(places).max() == 2


def test_where_the_selection_says_how_every_fold_chooses_its_own_items_which_widens_intervals():
    few = make_bank(n_models=30, n_items=150, seed=2)
    chosen = select(few, 20, method="v-optimal", rng=0)
    both = (chosen, dataclasses.replace(chosen, recipe=None))
    (honest, by_honest), (flattered, by_flattered) = (errors_of(few, one, Factor()) for one in both)
    assert honest.error[:, -1].std() > 1.3 * flattered.error[:, -1].std()
    np.testing.assert_array_equal(by_honest, by_flattered)
    items = few.responses.items[few.responses.item_indices(chosen.item_ids)]
    matrix = ResponseMatrix.create((np.random.default_rng(0).random((2, 20)) < 0.5).astype(float), items=items)
    wide, narrow = (compare(few, matrix, selection=one, method="factor").difference for one in both)
    assert (wide.high - wide.low)[0, 0] > 1.2 * (narrow.high - narrow.low)[0, 0]


def test_standard_errors_differ_by_model_and_are_as_large_as_the_errors_and_unknown_scores_teach_nothing(bank):
    found, _ = errors_of(bank, select(bank, 20, method="anchor-correctness", rng=0), GPIRT())
    assert np.ptp(found.standard_error[:, -1]) > 0.0
    np.testing.assert_allclose(np.mean((found.error / found.standard_error) ** 2, axis=0), 1.0)
    few, more = (having(bank, (slice(n, None), slice(50, None))) for n in (9, 30))
    assert errors_of(few, select(few, 20, method="random", rng=0), GPIRT()) is None
    found, _ = errors_of(more, select(more, 20, method="random", rng=0), GPIRT())
    assert (found.error.shape[0], np.isnan(found.error).any()) == (30, False)
    small = make_bank(n_models=9)
    assert errors_of(small, select(small, 6, method="random", rng=0), GPIRT()) is None
