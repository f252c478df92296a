"""Evidence on keys against sums over the grid written out, and simulated faults."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from itembank.auditing.item_evidence import (
    INTERCEPTS,
    NEAREST,
    SLOPES,
    Curves,
    _log_weights,
    _weighed,
    item_evidence,
    rank_quality,
)
from itembank.auditing.panel import panel_of
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers


def test_ratios_are_those_of_marginal_likelihoods_summed_over_the_grid():
    rng = np.random.default_rng(0)
    theta, values = rng.standard_normal(7), (rng.random((7, 2)) < 0.5).astype(float)
    observed = np.array([[True, False]] + [[True, True]] * 6)
    log_prior = rng.standard_normal(SLOPES.size * INTERCEPTS.size)
    log_prior -= logsumexp(log_prior)
    slope, error, intercept, top, _, key_ratio, noise_ratio = _weighed(
        Curves.at(theta), values, observed, log_prior, 1.6
    )
    points = [(a, b) for a in SLOPES for b in INTERCEPTS]
    for item in range(2):
        rows = np.flatnonzero(observed[:, item])
        p = np.array([np.clip(expit(a * theta[rows] + b), NEAREST, 1.0 - NEAREST) for a, b in points])
        is_right = values[rows, item] == 1.0

        def likelihood(p, is_right=is_right):
            return np.log(np.where(is_right, p, 1.0 - p)).sum(axis=1)

        keyed = likelihood(p) + log_prior
        other = logsumexp([*(likelihood(1.0 - p) + log_prior), *(likelihood((1.0 - p) / 3.0) + log_prior)]) - np.log(2)
        flat = np.array([a == 0.0 for a, _ in points])
        unrelated = logsumexp(keyed[flat]) - logsumexp(log_prior[flat])
        posterior = np.exp(keyed - logsumexp(keyed))
        a, b = np.array(points).T
        assert key_ratio[item] == pytest.approx(other - logsumexp(keyed))
        assert noise_ratio[item] == pytest.approx(unrelated - logsumexp(keyed))
        assert slope[item] == pytest.approx(posterior @ a)
        assert error[item] == pytest.approx(np.sqrt(posterior @ (a - posterior @ a) ** 2))
        assert top[item] == pytest.approx(1.6 * (posterior @ a) + posterior @ b)
        assert intercept[item] == pytest.approx(posterior @ b)


def test_the_distribution_of_curves_is_learnt_from_the_items():
    rng = np.random.default_rng(3)
    theta = rng.standard_normal(300)
    slope, ease = 1.2 + 0.3 * rng.standard_normal(400), 0.8 + 1.2 * rng.standard_normal(400)
    p = expit(theta[:, None] * slope + ease)
    values = (rng.random(p.shape) < p).astype(float)
    curve = Curves.at(theta)
    weights = np.exp(_log_weights(values.T @ curve.right + (1.0 - values.T) @ curve.wrong))
    a, b = (one.ravel() for one in np.meshgrid(SLOPES, INTERCEPTS, indexing="ij"))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights @ a, weights @ b) == pytest.approx((1.2, 0.8), abs=0.12)
    assert np.sqrt(weights @ (b - weights @ b) ** 2) == pytest.approx(1.2, abs=0.15)


def test_wrong_keys_are_found_and_missing_answers_do_not_matter_much():
    values, theta = make_answers(n_models=80, n_items=300, seed=2)
    is_bad = np.arange(300) < 15
    rng = np.random.default_rng(5)
    values[:, is_bad] = (1.0 - values[:, is_bad]) * (rng.random((80, 15)) < 1.0 / 3.0)
    found = item_evidence(panel_of(ResponseMatrix.create(values)))
    assert rank_quality(found.key_ratio, is_bad) > 0.97
    assert rank_quality(found.suspicion, is_bad) > 0.9
    sparse = np.where(rng.random(values.shape) < 0.5, values, np.nan)
    half = item_evidence(panel_of(ResponseMatrix.create(sparse)))
    assert rank_quality(half.key_ratio, is_bad) > 0.9
    strong = theta > 1.0
    assert np.corrcoef(expit(found.top_logit), values[strong].mean(axis=0))[0, 1] > 0.85


def test_an_item_without_an_answer_has_the_curve_of_the_average_item():
    values, _ = make_answers(n_models=30, n_items=40)
    values[:, 7] = np.nan
    found = item_evidence(panel_of(ResponseMatrix.create(values)))
    assert found.key_ratio[7] == pytest.approx(0.0, abs=1e-9)
    assert found.noise_ratio[7] == pytest.approx(0.0, abs=1e-9)
