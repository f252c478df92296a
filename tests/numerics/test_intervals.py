import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import stdtrit
from scipy.stats import norm, t

from itembank.estimation.calibrated_scores import PastEstimates
from itembank.numerics import intervals

REPEATS = 4_000
"""Standard error of a coverage near 0.95: 0.0034."""


def coverage(rng, n_models, level, draw):
    """Share of new errors inside intervals from `n_models` exchangeable ones."""
    scale, new_scale = rng.lognormal(-4.0, 0.5, (n_models, REPEATS)), rng.lognormal(-4.0, 0.5, (1, REPEATS))
    errors, new_errors = scale * draw((n_models, REPEATS)), new_scale * draw((1, REPEATS))
    half = intervals.calibrated_half_widths(errors, scale, new_scale, level=level)
    return np.mean(np.abs(new_errors) <= half)


@pytest.mark.parametrize(("n_models", "level"), [(39, 0.95), (50, 0.95), (99, 0.9), (20, 0.5)])
def test_coverage_is_the_finite_sample_one_whatever_the_errors_are_like(rng, n_models, level):
    """``ceil((n + 1) level) / (n + 1)`` exactly: split conformal prediction needs exchangeable errors alone."""
    expected = np.ceil((n_models + 1) * level) / (n_models + 1)
    found = coverage(rng, n_models, level, lambda shape: rng.standard_t(3, shape))
    assert found == pytest.approx(expected, abs=0.02 if level == 0.5 else 0.012)


@pytest.mark.parametrize("n_models", [2, 18, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 12))])
def test_with_few_models_the_quantile_is_student_s_and_safe_for_normal_errors(rng, n_models):
    found = coverage(rng, n_models, 0.95, rng.standard_normal)
    assert 0.94 < found < 0.999


def out_of_fold(errors, scale):
    return PastEstimates(np.zeros(errors.shape), errors, scale, scale)


def typical(errors, scale=1.0, *, level):
    return out_of_fold(errors[:, None], np.ones((errors.size, 1)) * np.reshape(scale, (-1, 1))).typical_half_width(
        level=level
    )


def test_the_half_width_is_that_of_the_typical_model_and_knows_nothing_of_a_folds_own_errors(rng):
    assert typical(rng.normal(size=50_000), level=0.9) == pytest.approx(norm.ppf(0.95), rel=0.02)
    # 19 errors: the 95 % interval reaches to the largest
    assert typical(np.arange(1.0, 20.0), level=0.95) == pytest.approx(19.0)
    assert typical(np.append(np.arange(1.0, 20.0), np.nan), level=0.9) == pytest.approx(18.0)
    scale = rng.uniform(0.5, 2.0, 20_000)
    found = typical(scale * rng.normal(size=20_000), scale, level=0.9)
    assert found == pytest.approx(norm.ppf(0.95) * np.median(scale), rel=0.03)
    errors, scale, fold = 0.02 * rng.standard_normal((40, 1)), np.full((40, 1), 0.02), np.arange(40) % 4
    errors[fold == 1] *= 10.0
    found = out_of_fold(errors, scale).half_widths_out_of_fold(fold, level=0.95)
    others = intervals.calibrated_half_widths(errors[fold != 1], scale[fold != 1], scale[:1], level=0.95)[0, 0]
    assert_allclose(found[fold == 1], others)
    assert found[fold == 2].min() > 3.0 * others


def test_few_and_many_models_by_hand_and_a_level_beyond_the_errors(rng):
    errors, scale = np.array([[0.02], [-0.01], [0.03]]), np.array([[0.01], [0.01], [0.02]])
    root_mean_square = np.sqrt((4.0 + 1.0 + 2.25) / 3.0)
    expected = t.ppf(0.975, 2) * root_mean_square * np.sqrt(4.0 / 3.0) * 0.05
    found = intervals.calibrated_half_widths(errors, scale, np.array([[0.05]]), level=0.95)
    assert_allclose(found, [[expected]])
    # nineteen errors: the 95 % quantile is the largest; the half-width follows the new model's own scale
    ratios, scale = np.linspace(0.1, 1.9, 19)[:, None], np.linspace(0.01, 0.02, 19)[:, None]
    errors = ratios * scale * np.where(np.arange(19) % 2, 1.0, -1.0)[:, None]
    for level, ratio in ((0.95, 1.9), (0.5, 1.0)):
        found = intervals.calibrated_half_widths(errors, scale, np.array([[0.01], [0.03]]), level=level)
        assert_allclose(found[:, 0], ratio * np.array([0.01, 0.03]))
    errors, scale = np.append(0.01 * rng.standard_normal(29), 0.2)[:, None], np.full((30, 1), 0.01)
    found = intervals.calibrated_half_widths(errors, scale, scale[:1], level=0.99)
    assert found[0, 0] == pytest.approx(0.2)
    assert intervals.calibrated_half_widths(errors, scale, scale[:1], level=0.9)[0, 0] < 0.05
    errors, scale = 0.02 * rng.standard_normal((40, 2)), rng.lognormal(-4.0, 0.3, (40, 2))
    partial = errors.copy()
    partial[::2, 1] = np.nan
    found = intervals.calibrated_half_widths(partial, scale, scale[:3], level=0.9)
    assert_allclose(found[:, 0], intervals.calibrated_half_widths(errors, scale, scale[:3], level=0.9)[:, 0])
    partial[1:39, 1] = np.nan
    assert np.isnan(intervals.calibrated_half_widths(partial, scale, scale[:3], level=0.9)[:, 1]).all()


@pytest.mark.parametrize("n_models", [5, 18, 19, 40, 200])
def test_a_higher_level_is_never_narrower(rng, n_models):
    errors, scale = 0.02 * rng.standard_normal((n_models, 3)), rng.lognormal(-4.0, 0.3, (n_models, 3))
    widths = [
        intervals.calibrated_half_widths(errors, scale, scale[:1], level=level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)
    ]
    assert np.all(np.diff(widths, axis=0) >= 0.0)


def test_models_that_answered_everything_neither_spoil_nor_get_a_width(rng):
    errors, scale = 0.02 * rng.standard_normal((40, 1)), np.full((40, 1), 0.02)
    errors[:3], scale[:3] = 1e-16, 0.0
    found = intervals.calibrated_half_widths(errors, scale, np.array([[0.02], [0.0]]), level=0.95)
    assert 0.02 < found[0, 0] < 0.08
    assert found[1, 0] == pytest.approx(1e-3 * found[0, 0])  # the scale counts as a thousandth of the typical one
    # where all models answered everything, errors of 1e-16 over a scale of zero stay what they are
    for n_models in (12, 40):
        errors, scale = np.full((n_models, 1), 1e-16), np.zeros((n_models, 1))
        assert np.all(intervals.calibrated_half_widths(errors, scale, np.zeros((2, 1)), level=0.95) < 1e-14)


def test_intervals_are_cut_to_what_is_possible_and_scored_by_width_and_what_misses_lack(rng):
    known, unseen = np.array([[0.1, 0.3, 0.5]]), np.array([[0.2, 0.7, 0.0]])
    low, high = intervals.cut_to_possible(np.array([[-0.1, 0.4, 0.45]]), np.array([[0.5, 0.6, 0.55]]), known, unseen)
    assert_allclose(low, [[0.1, 0.4, 0.5]])
    assert_allclose(high, [[0.3, 0.6, 0.5]])
    low, high = intervals.cut_to_possible(*np.full((2, 1, 1), np.nan), np.array([[0.1]]), np.array([[0.5]]))
    assert np.isnan([low, high]).all()
    errors, scale = rng.standard_normal(60), np.ones(60)
    half = intervals.calibrated_half_widths(errors[:, None], scale[:, None], scale[:1, None], level=0.95)[0, 0]
    by_hand = np.mean([2.0 * half + 40.0 * max(abs(error) - half, 0.0) for error in errors])
    assert intervals.interval_scores(errors, scale).mean() == pytest.approx(by_hand)
    assert np.isnan(intervals.interval_scores(np.full(60, np.nan), scale)).all()


def test_quantiles_are_those_of_tables():
    """Two-sided 95 % and 90 %, from any table of Student's t."""
    assert intervals.normal_reach(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert intervals.normal_quantile(0.8) == pytest.approx(0.841621, abs=1e-6)
    assert intervals.t_reach(0.95, 5.0) == pytest.approx(2.570582, abs=1e-6)
    assert_allclose(intervals.t_reach(0.9, np.array([1.0, 30.0])), [6.313752, 1.697261], atol=1e-6)
    assert intervals.t_reach(0.95, np.inf) == intervals.normal_reach(0.95)
    assert intervals.t_quantile(0.8, 10.0) == pytest.approx(0.879058, abs=1e-6)


@pytest.mark.parametrize("degrees", [*np.geomspace(0.5, 1e6, 40), 1.0, 2.0, 1e12, np.inf])
def test_one_quantile_and_a_few_are_those_of_scipy_to_thirteen_digits(degrees):
    """Which many are."""
    probabilities = np.concatenate([tails := np.geomspace(1e-6, 0.45, 30), [0.5], 1.0 - tails])
    found = [intervals.t_quantile(float(one), degrees) for one in probabilities]
    assert_allclose(found, t.ppf(probabilities, degrees), rtol=1e-13, atol=1e-15)
    assert_allclose(intervals.t_quantile(0.975, np.full((2, 3), degrees)), t.ppf(0.975, degrees), rtol=1e-13)
    assert_allclose(intervals.t_quantile(0.975, np.full(60, degrees)), t.ppf(0.975, degrees), rtol=1e-13)


def test_quantiles_and_probabilities_at_the_edges_are_those_of_scipy():
    for one, degrees in ((1e-300, 0.5), (1.0, 3.0), (0.0, 3.0), (0.9, 0.01), (0.9, 0.0), (0.9, np.nan), (1e-40, 0.5)):
        assert_allclose(intervals.t_quantile(one, degrees), stdtrit(degrees, one), rtol=1e-13)
    assert intervals.t_quantile(0.9, np.zeros(0)).shape == (0,)
    some = np.append(np.geomspace(1e-300, 0.5, 60), [0.6, 0.975, 1.0 - 1e-12, 0.0, 1.0])
    assert_allclose([intervals.normal_quantile(float(one)) for one in some], norm.ppf(some), rtol=1e-13)
    some = np.linspace(-12.0, 8.0, 77)
    assert_allclose([intervals.normal_probability(one) for one in some], norm.cdf(some), rtol=1e-13)


@pytest.mark.parametrize(("degrees", "law"), [(np.inf, norm()), (4.0, t(4))])
def test_what_an_interval_is_of_lies_above_its_own_end_with_half_of_what_the_level_leaves(degrees, law):
    def above(limit, value, low, high):
        return float(intervals.probability_above(np.array([limit]), value, low, high, level=0.9, degrees=degrees)[0])

    assert above(0.4, 0.5, 0.4, 0.7) == pytest.approx(0.95)
    assert above(0.7, 0.5, 0.4, 0.7) == pytest.approx(0.05)
    assert above(0.5, 0.5, 0.4, 0.7) == 0.5
    assert above(0.45, 0.5, 0.4, 0.7) == pytest.approx(law.cdf(0.5 * law.ppf(0.95)))
    assert [above(limit, 0.5, 0.5, 0.5) for limit in (0.4, 0.5, 0.6)] == [1.0, 0.5, 0.0]
    assert np.isnan(above(np.nan, 0.5, 0.4, 0.6))
