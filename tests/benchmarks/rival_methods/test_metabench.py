"""Smooth regression on sub-score and ability, and its curves against scipy's smoothing spline and quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline, make_smoothing_spline

from itembank_rivals.additive import fit_penalised, make_smooth, roughness, smooth_columns
from itembank_rivals.metabench import predict_metabench


def problem(rng, n_train=200, n_new=50, n_columns=30):
    """Score a curved function of ability; responses to few items."""
    ability = rng.normal(size=n_train + n_new)
    chance = 1.0 / (1.0 + np.exp(-ability[:, None] - rng.normal(size=n_columns)))
    responses = (rng.random(chance.shape) < chance).astype(float)
    scores = np.column_stack([0.5 + 0.4 * np.tanh(2.0 * ability), 0.3 + 0.2 * np.sin(1.5 * ability)])
    estimate = ability[:, None] + rng.normal(0.0, 0.1, (n_train + n_new, 1))
    one, two = slice(0, n_train), slice(n_train, None)
    return responses[one], scores[one], responses[two], scores[two], estimate[one], estimate[two]


def test_recovers_curved_scores_and_a_linear_relation_exactly(rng):
    train, scores, new, truth, known, asked = problem(rng)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    lines = np.column_stack([np.ones(200), train.mean(axis=1), known])
    linear = np.column_stack([np.ones(50), new.mean(axis=1), asked]) @ np.linalg.lstsq(lines, scores)[0]
    assert np.abs(found - truth).mean() < 0.04
    assert np.abs(found - truth).mean() < 0.8 * np.abs(linear - truth).mean()
    train, _, new, _, known, asked = problem(rng, n_train=12)
    scores = 0.1 + 0.6 * train.mean(axis=1, keepdims=True)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[:, 0], 0.1 + 0.6 * new.mean(axis=1), atol=1e-9)


def test_few_models_fall_back_to_lines_and_to_the_mean_as_does_nothing_answered(rng):
    train, scores, new, truth, known, asked = problem(rng, n_train=12)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    assert np.abs(found - truth).mean() < 0.7 * np.abs(scores.mean(axis=0) - truth).mean()
    few = predict_metabench(train[:4], scores[:4], new, train_abilities=known[:4], new_abilities=asked)
    np.testing.assert_allclose(few, np.tile(scores[:4].mean(axis=0), (50, 1)))
    train, scores, new, _, known, asked = problem(rng, n_train=30)
    new[0] = np.nan
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[0], scores.mean(axis=0))


def test_sub_scores_follow_each_targets_weights(rng):
    train, _, new, _, known, asked = problem(rng, n_train=15)
    weights = np.zeros((30, 3))
    weights[:10, 0], weights[10:, 1] = 2.0, rng.uniform(0.5, 2.0, 20)  # the third has no items of its own
    scores, expected = (
        np.column_stack([one[:, :10].mean(axis=1), one @ weights[:, 1] / weights[:, 1].sum(), one.mean(axis=1)])
        for one in (train, new)
    )
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked, column_weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("holed", [True, False])
def test_a_column_that_a_model_did_not_answer_is_as_if_absent_for_it(rng, holed):
    train, scores, new, _, known, asked = problem(rng, n_train=60)
    if holed:
        train[rng.random(train.shape) < 0.1] = np.nan
        scores[:5, 0] = np.nan
    gone = new.copy()
    gone[:20, 3] = np.nan
    found = predict_metabench(train, scores, gone, train_abilities=known, new_abilities=asked)
    kept = np.delete(np.arange(30), 3)
    without = predict_metabench(train[:, kept], scores, new[:, kept], train_abilities=known, new_abilities=asked)
    whole = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[:20], without[:20], atol=1e-10)
    np.testing.assert_allclose(found[20:], whole[20:], atol=1e-10)


def test_roughness_and_knots_are_those_of_natural_splines_through_quantiles(rng):
    knots, values = np.sort(rng.normal(size=7)), rng.normal(size=7)
    spline = CubicSpline(knots, values, bc_type="natural")
    expected = quad(lambda z: spline(z, 2) ** 2, knots[0], knots[-1], points=knots[1:-1], epsabs=1e-10, limit=200)[0]
    assert values @ roughness(knots) @ values == pytest.approx(expected, rel=1e-8)
    x = np.linspace(3.0, 9.0, 21)
    expected = np.quantile((x - x.mean()) / x.std(), np.linspace(0.0, 1.0, 6))
    np.testing.assert_allclose(make_smooth(x, 6).knots, expected, atol=1e-12)
    x = np.array([0.1, 0.1 + 1e-17, 0.2, 0.3, 0.3 + 1e-16, 0.3 - 1e-16])
    assert make_smooth(x, 6).knots.size == 3
    assert smooth_columns(make_smooth(np.array([0.0, 1.0, 1.0, 0.0]), 8), np.array([0.0, 2.0])).shape == (2, 1)
    np.testing.assert_array_equal(smooth_columns(make_smooth(np.full(4, 0.3), 8), np.array([0.3, 0.9])), 0.0)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_one_axis_with_every_knot_equals_scipys_smoothing_spline(rng, penalty):
    x = np.cumsum(rng.uniform(0.5, 2.0, 40))
    x = (x - x.mean()) / x.std()
    y = np.sin(2.0 * x) + rng.normal(0.0, 0.2, 40)
    smooth = make_smooth(x, 40)
    design = np.column_stack([np.ones(40), smooth_columns(smooth, x)])
    groups = np.array([-1, -1] + [0] * 38)
    coefficients, _ = fit_penalised(design, y, groups, (np.array([penalty]),))
    at = np.linspace(x[0] - 1.0, x[-1] + 1.0, 50)
    found = np.column_stack([np.ones(50), smooth_columns(smooth, at)]) @ coefficients
    reference = make_smoothing_spline(x, y, lam=penalty)
    inside = (at >= x[0]) & (at <= x[-1])
    np.testing.assert_allclose(found[inside], reference(at[inside]), atol=1e-6)
    straight = reference(x[-1]) + (at - x[-1]) * reference(x[-1], 1)  # scipy's own ends are cubic
    np.testing.assert_allclose(found[at > x[-1]], straight[at > x[-1]], atol=1e-6)


def test_recovers_a_sine_and_a_line(rng):
    x, noise = rng.uniform(-2.0, 2.0, (400, 2)), 0.1
    y = np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] + rng.normal(0.0, noise, 400)
    smooths = [make_smooth(x[:, axis], 12) for axis in range(2)]
    n = [1 + smooth.curves.shape[1] for smooth in smooths]
    groups = np.array([-1, -1, *[0] * (n[0] - 1), -1, *[1] * (n[1] - 1)])
    grids = (400 * np.logspace(-5, 3, 9),) * 2
    design = np.column_stack([np.ones(400), *[smooth_columns(s, x[:, a]) for a, s in enumerate(smooths)]])
    coefficients, penalties = fit_penalised(design, y, groups, grids)
    at = np.linspace(-1.9, 1.9, 60)
    sine = smooth_columns(smooths[0], at) @ coefficients[1 : 1 + n[0]]
    line = smooth_columns(smooths[1], at) @ coefficients[1 + n[0] :]
    gap = sine - np.sin(2.0 * at)
    assert np.abs(gap - gap.mean()).max() < 0.06
    assert np.abs(np.diff(line) / np.diff(at) - 0.5).max() < 0.05
    assert penalties[0] < penalties[1]  # the line is found to be smoother


def test_the_criterion_is_gcv_by_brute_force(rng):
    design, y = np.column_stack([np.ones(30), rng.normal(size=(30, 6))]), rng.normal(size=30)
    groups, grid = np.array([-1, 0, 0, 0, 1, 1, 1]), np.logspace(-2, 3, 6)
    _, penalties = fit_penalised(design, y, groups, (grid, grid))

    def criterion(a, b):
        hat = design @ np.linalg.solve(design.T @ design + np.diag([0.0, a, a, a, b, b, b]), design.T)
        return ((y - hat @ y) ** 2).sum() / (30 - 1.4 * np.trace(hat)) ** 2

    assert all(criterion(*penalties) <= criterion(a, penalties[1]) + 1e-12 for a in grid)
    assert all(criterion(*penalties) <= criterion(penalties[0], b) + 1e-12 for b in grid)
