"""Precision of drawn items: by enumeration of all draws, by simulation, and by closed forms."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm, t

from itembank.estimation.design_based import design_based_estimates
from itembank.irt.bernoulli import probability
from itembank.planning.precision import Prospect, answer_variances, draw_freedom, expected_half_width
from itembank.responses.responses import ResponseMatrix
from itembank.selection.drawn import inclusion_probabilities, shares_of_draw, systematic_sample
from itembank.selection.select import select
from itembank.selection.selector_specs import Drawn
from tests.bank.banks import make_bank, with_family


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=30, n_items=120)


def prospect(bank, **choices):
    return Prospect.of(bank, bank.targets.overall_weights, **choices)


def test_the_variance_is_the_mean_over_all_draws():
    """Every start of a systematic sample between two steps of its sums gives the same draw."""
    bank = make_bank(n_models=12, n_items=9)
    weights, variances = bank.targets.overall_weights, answer_variances(bank)
    pi = inclusion_probabilities(
        shares_of_draw(bank, Drawn()), bank.targets.scenario_index, 4, certain=np.zeros(9, dtype=bool)
    )

    class Fixed:
        def random(self):
            return self.start

    generator, order = Fixed(), np.argsort(bank.targets.scenario_index, kind="stable")
    starts = np.unique([0.0, 1.0, *(np.cumsum(pi[order]) % 1.0)])
    total, often = 0.0, np.zeros(9)
    for low, high in pairwise(starts):
        generator.start = (low + high) / 2.0
        chosen = systematic_sample(pi, order, generator)
        often[chosen] += high - low
        total += (high - low) * np.sum((1.0 - pi[chosen]) * (weights / pi)[chosen] ** 2 * variances[chosen])
    np.testing.assert_allclose(often, pi, atol=1e-9)
    counts = (1.0 - pi) * (weights / pi) ** 2
    reach = t.ppf(0.975, draw_freedom(counts, pi))
    assert prospect(bank).at(4).half_width == pytest.approx(min(reach * np.sqrt(total), 0.5), rel=1e-6)


def test_equal_items_have_the_variance_of_the_textbook(bank):
    """Items alike in all make a simple random sample, of (1 - n / N) s^2 / n with n - 1 degrees of freedom."""
    shares = np.full(120, 1.0 / 120)
    alike = dataclasses.replace(
        prospect(bank), shares=shares, weights=shares, overall_weights=shares, variances=np.full(120, 0.2)
    )
    alike = dataclasses.replace(alike, scenario_index=np.zeros(120, dtype=np.int64))
    variance = (1.0 - 40 / 120) * 0.2 / 40
    found = alike.at(40)
    assert found.half_width == pytest.approx(t.ppf(0.975, 39) * np.sqrt(variance))
    reach = t.ppf(0.975, 39) + t.ppf(0.8, 39)
    assert found.detectable_difference == pytest.approx(reach * np.sqrt(2.0 * variance))
    noisy = dataclasses.replace(alike, chance=0.001).at(40)
    assert noisy.half_width == pytest.approx(np.hypot(found.half_width, norm.ppf(0.975) * np.sqrt(0.001)))


def test_answers_vary_as_they_do_when_abilities_are_known(bank):
    """Over the prior of abilities the mean of p (1 - p), by simulation; of pass rates as much less as they vary."""
    prior = bank.calibration.prior
    theta = np.random.default_rng(0).multivariate_normal(prior.mean, prior.covariance, 4000)
    p = probability(bank.parameters, theta)
    np.testing.assert_allclose(answer_variances(bank), np.mean(p * (1.0 - p), axis=0), atol=0.01)
    rates = with_family(make_bank(n_models=20, n_items=30), "beta")
    assert answer_variances(rates).mean() < answer_variances(make_bank(n_models=20, n_items=30)).mean()


def test_half_widths_come_true_for_models_like_past_ones(bank):
    """New models of the same kind: mean half-width of many draws and models."""
    rng, prior = np.random.default_rng(1), bank.calibration.prior
    p = probability(bank.parameters, rng.multivariate_normal(prior.mean, prior.covariance, 40))
    new = ResponseMatrix.create((rng.random(p.shape) < p).astype(float), items=bank.responses.items)
    for n_items in (20, 50):
        found, said = [], []
        for seed in range(10):
            chosen = select(bank, n_items, method="drawn", rng=seed)
            scores = design_based_estimates(bank, new, chosen)
            found.append(np.mean(scores.high[:, -1] - scores.low[:, -1]) / 2.0)
            said.append(expected_half_width(bank, chosen, level=0.95))
        expected = prospect(bank).at(n_items).half_width
        assert expected == pytest.approx(np.mean(found), rel=0.08)
        assert expected == pytest.approx(np.mean(said), rel=0.03)


def test_two_models_on_the_same_items_differ_by_about_what_is_said(bank):
    """The error of a difference of two models that are like past ones."""
    rng, prior, errors = np.random.default_rng(2), bank.calibration.prior, []
    p = probability(bank.parameters, rng.multivariate_normal(prior.mean, prior.covariance, 40))
    responses = (rng.random(p.shape) < p).astype(float)
    new, truth = ResponseMatrix.create(responses, items=bank.responses.items), responses @ bank.targets.overall_weights
    for seed in range(40):
        found = design_based_estimates(bank, new, select(bank, 30, method="drawn", rng=seed)).value[:, -1] - truth
        errors.append(found[::2] - found[1::2])
    said = prospect(bank).at(30)
    spread = said.detectable_difference / (t.ppf(0.975, 25) + t.ppf(0.8, 25))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread, rel=0.1)  # 1.04 of it from 120 draws
    shares = said.half_width / said.detectable_difference
    assert shares == pytest.approx(norm.ppf(0.975) / (norm.ppf(0.975) + norm.ppf(0.8)) / np.sqrt(2.0), rel=0.02)


def test_items_chosen_without_chance_have_no_half_width_of_a_draw(bank):
    assert np.isnan(expected_half_width(bank, select(bank, 10, method="v-optimal", rng=0), level=0.95))
