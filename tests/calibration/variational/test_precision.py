import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import beta, betabinom

from itembank.calibration.fits import FitData
from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import BetaRule, Few, make_table
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.passes import logit_moments
from itembank.calibration.variational.precision import learn, log_prior
from itembank.numerics.quadrature import THREE_NODES
from tests.calibration.simulated import random_posterior

N_MODELS, N_ITEMS = 12, 15
GROUPS = np.zeros(1, dtype=np.int64)


def drawn(family, *, seed=0):
    rng = np.random.default_rng(seed)
    responses, trials = rng.beta(2.0, 2.0, (N_MODELS, N_ITEMS)), None
    if family == "beta-binomial":
        trials = rng.integers(3, 30, responses.shape).astype(float)
        responses = rng.binomial(trials.astype(int), responses) / trials
    kind = {"family": family, "n_trials": trials, "precision_index": np.zeros(N_ITEMS, dtype=np.int64)}
    data = FitData(responses, None, np.zeros(N_ITEMS), **kind)
    return make_blocks(data, single_precision=False), random_posterior(N_MODELS, N_ITEMS, 1, seed=seed)


def expected(blocks, posterior, log_density):
    """Expectation of a function of (logits, values, weights) by the three nodes, summed over cells."""
    total = 0.0
    for part, mean, variance in logit_moments(blocks, posterior):
        weights = None if blocks.weights is None else blocks.weights[part]
        for place, weight in THREE_NODES:
            total += weight * log_density(mean + place * np.sqrt(3 * variance), blocks.values[part], weights).sum()
    return total


def best(blocks, posterior, density):
    def loss(log_precision):
        precision = np.exp(log_precision)
        prior = log_prior(np.array([precision]))
        return -prior - expected(blocks, posterior, lambda x, y, n: density(x, y, n, precision))

    found = minimize_scalar(loss, bounds=(-4.0, 6.0), method="bounded", options={"xatol": 1e-8}).x
    bend = (loss(found + 0.05) - 2 * loss(found) + loss(found - 0.05)) / 0.05**2
    return found, bend


def in_scenarios(n):
    """Probabilities of items in scenarios of their own, a third of them missing."""
    rng = np.random.default_rng(3)
    logits, phi = rng.normal(size=(N_MODELS, 1)) + rng.normal(size=n), rng.uniform(3.0, 60.0, n)
    responses = rng.beta(expit(logits) * phi, expit(-logits) * phi).clip(1e-4, 1 - 1e-4)
    observed = (rng.uniform(size=responses.shape) < 2 / 3).astype(float)
    data = FitData(responses, observed, np.zeros(n), family="beta", precision_index=np.arange(n))
    return make_blocks(data, single_precision=False), random_posterior(N_MODELS, n, 1, seed=3)


def test_many_small_scenarios_have_the_precisions_that_each_alone_has():
    (blocks, posterior), groups = in_scenarios(40), np.arange(40)
    tables, (log_precision, doubt, acceleration, error) = (
        learn(blocks, posterior, BetaRule(tuple(made for _ in groups)), groups)
        for made in (make_table(9.0, 0.0, np.dtype(np.float64)), Few(9.0, 0.0))
    )
    assert len(list(blocks.parts())) == 1
    assert log_precision == pytest.approx(tables[0], abs=1e-4)
    assert error == pytest.approx(tables[3], rel=1e-3)
    assert acceleration == pytest.approx(tables[2], rel=1e-4)
    assert not doubt.any()


def test_a_precision_at_the_end_of_its_step_stays_there():
    blocks, posterior = in_scenarios(4)
    for start, far in ((1e-2, 2.0), (1e6, -2.0)):
        log_precision = learn(blocks, posterior, BetaRule((Few(start, 0.0),) * 4), np.arange(4))[0]
        assert log_precision == pytest.approx(np.log(start) + far, abs=1e-6)


def test_the_histogram_finds_the_best_precision_of_probabilities_and_some_of_the_cells_tell_about_the_same():
    blocks, posterior = drawn("beta")
    rule = BetaRule((make_table(4.0, 0.0, np.dtype(np.float64)),))
    log_precision, doubt, acceleration, error = learn(blocks, posterior, rule, GROUPS)

    def density(logits, values, _, precision):
        chances = expit(logits)
        return beta.logpdf(expit(values), chances * precision, (1 - chances) * precision)

    exact, bend = best(blocks, posterior, density)
    assert log_precision[0] == pytest.approx(exact, abs=1e-4)
    assert doubt[0] == 0.0
    # items and abilities take up some of the spread: fewer cells are left to tell of phi
    assert error[0] ** -2 * acceleration[0] == pytest.approx(bend, rel=1e-3)
    whole, part = (learn(blocks, posterior, rule, GROUPS, most_cells=cells) for cells in (10**6, 96))
    assert part[1, 0] > 0.0
    assert abs(part[0, 0] - whole[0, 0]) < 4 * part[1, 0]


def test_steps_lead_to_the_best_precision_of_counts_each_by_a_factor_of_e_at_most():
    blocks, posterior = drawn("beta-binomial")

    def density(logits, values, trials, precision):
        chances = expit(logits)
        return betabinom.logpmf(np.round(values * trials), trials, chances * precision, (1 - chances) * precision)

    exact, _ = best(blocks, posterior, density)
    rule = BetaBinomialRule(np.array([3.0]), np.zeros(1))
    for _ in range(12):
        rule = rule.with_precision(np.exp(learn(blocks, posterior, rule, GROUPS)[0]))
    assert np.log(rule.precision[0]) == pytest.approx(exact, abs=1e-3)
    for far in (-4.0, 4.0):
        start = np.log(3.0) + far
        rule = BetaBinomialRule(np.exp([start]), np.zeros(1))
        assert learn(blocks, posterior, rule, GROUPS)[0][0] == pytest.approx(start - np.sign(far), abs=1e-12)
