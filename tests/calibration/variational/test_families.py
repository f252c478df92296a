from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import beta, betabinom

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.fits import FitData
from itembank.calibration.variational.beta_binomial_cells import BetaBinomialRule
from itembank.calibration.variational.beta_cells import BetaRule, Few, make_table
from itembank.calibration.variational.blocks import make_blocks
from itembank.calibration.variational.cells import jaakkola_jordan, normal_expectation
from itembank.calibration.variational.fit import fit_variational
from itembank.calibration.variational.passes import ability_statistics, item_statistics, logit_moments
from itembank.calibration.variational.precision import learn, log_prior
from itembank.numerics.quadrature import THREE_NODES
from itembank.progress import silent
from tests.calibration.simulated import random_posterior
from tests.numerics.compare import alike

EXACT = Variational("2pl", tolerance=1e-7, single_precision=False)
CLOSE = replace(EXACT, tolerance=1e-5)
"""For what needs no more digits: ten times as strict as the tests ask."""
PRECISIONS = np.array([15.0, 60.0])
"""So that hardly a probability is clipped."""


def truth(n_models, n_items, *, seed, steep=0.3):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    theta = (theta - theta.mean()) / theta.std()
    slope, intercept = rng.lognormal(0.1, steep, n_items), rng.normal(0.0, 1.2, n_items)
    return rng, theta, slope, intercept, expit(theta[:, None] * slope + intercept)


def drawn(family, n_models=60, n_items=100, *, seed=0, missing=0.0, most_trials=20):
    """Data of a family, half of the items of one precision and half of another."""
    rng, theta, slope, intercept, chances = truth(n_models, n_items, seed=seed)
    index, trials = (np.arange(n_items) % 2).astype(np.int64), None
    if family in {"beta", "beta-binomial"}:
        chances = rng.beta(*(np.maximum(one * PRECISIONS[index], 1e-9) for one in (chances, 1 - chances)))
    responses = np.clip(chances, 1e-6, 1 - 1e-6)
    if family in {"binomial", "beta-binomial"}:
        trials = rng.integers(1, most_trials + 1, chances.shape).astype(float)
        responses = rng.binomial(trials.astype(int), chances) / trials
    observed = rng.random(chances.shape) >= missing
    responses = np.where(observed, responses, 0.0)
    trials = None if trials is None else trials * observed
    kind = {"family": family, "n_trials": trials, "precision_index": index}
    return (theta, slope, intercept), FitData(responses, observed if missing else None, np.zeros(n_items), **kind)


def fit(data, spec=EXACT):
    return fit_variational(data, replace(spec, family=data.family), progress=silent)


def logits(found):
    return found.abilities @ found.loadings.T + found.intercept


def standardised(found, slope, intercept):
    """How far slopes and intercepts lie from the truth, in their standard errors."""
    errors = np.column_stack([found.loadings[:, 0] - slope, found.intercept - intercept])
    return errors / np.sqrt(np.einsum("ijj->ij", found.item_covariance))


FAMILIES = pytest.mark.parametrize("family", ["binomial", "beta", "beta-binomial"])


@FAMILIES
def test_the_bound_rises_and_truth_is_found(family):
    (theta, slope, intercept), data = drawn(family, missing=0.1, seed=1)
    found = fit(data, CLOSE)
    assert found.converged
    assert np.diff(found.history).min(initial=0.0) >= 0.0
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.995
    assert np.sqrt(np.mean(standardised(found, slope, intercept) ** 2)) == pytest.approx(1.0, abs=0.25)
    if found.precision is not None:
        away = (np.log(found.precision[:2]) - np.log(PRECISIONS)) / found.log_precision_error[:2]
        assert np.abs(away).max() < 3.5
        assert found.log_precision_error[:2].max() < 0.15


@pytest.mark.parametrize("family", ["binomial", "beta-binomial"])
def test_one_trial_a_response_is_right_or_wrong(family):
    _, data = drawn("binomial", 40, 50, seed=2, most_trials=1, missing=0.2)
    plain = fit(replace(data, family="bernoulli", n_trials=None, precision_index=None))
    found = fit(replace(data, family=family), replace(EXACT, precision=5.0))
    tolerance = 1e-10 if family == "binomial" else 3e-3  # other steps lead to the same optimum
    assert_allclose(found.loadings, plain.loadings, atol=tolerance)
    assert_allclose(logits(found), logits(plain), atol=5 * tolerance)
    of_precision = 0.0 if family == "binomial" else log_prior(np.full(2, 5.0))
    assert found.history[-1] - of_precision == pytest.approx(plain.history[-1], abs=1e-2)


@pytest.mark.parametrize("rule", [jaakkola_jordan, normal_expectation])
def test_counts_say_what_as_many_single_answers_say(rule):
    """Of one item to abilities, and of one model to items."""
    rng, _, _, _, chances = truth(7, 9, seed=3)
    answers = (rng.random((4, *chances.shape)) < chances).astype(float)
    counts = FitData(answers.mean(axis=0), None, np.zeros(9), family="binomial", n_trials=np.full(chances.shape, 4.0))
    of_items, of_models = (
        FitData(np.hstack(answers), None, np.zeros(36)),
        FitData(np.vstack(answers), None, np.zeros(9)),
    )
    counted, of_items, of_models = (make_blocks(one, single_precision=False) for one in (counts, of_items, of_models))
    posterior, models = random_posterior(7, 9, 2, seed=4), np.tile(np.arange(7), 4)
    found = ability_statistics(counted, posterior, rule)
    repeated = ability_statistics(of_items, posterior.take_items(np.tile(np.arange(9), 4)), rule)
    alike(found, repeated, "precision", rtol=1e-10)
    alike(found, repeated, "linear", rtol=1e-9, atol=1e-10)
    spread = posterior.abilities_spread.take(models)
    widened = replace(posterior, ability_mean=posterior.ability_mean[models], abilities_spread=spread)
    found, repeated = item_statistics(counted, posterior, rule), item_statistics(of_models, widened, rule)
    alike(found, repeated, "precision likelihood", rtol=1e-10)
    alike(found, repeated, "linear", rtol=1e-9, atol=1e-10)


@FAMILIES
def test_missing_cells_are_as_if_never_asked(family):
    _, data = drawn(family, 30, 40, seed=5, missing=0.3)
    filled = replace(data, responses=np.where(data.observed, data.responses, 0.75))
    spec = replace(EXACT, tolerance=1e-3)
    found, other = fit(data, spec), fit(filled, spec)
    alike(found, other, "loadings abilities", rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["beta", "beta-binomial"])
def test_items_keep_their_order_whatever_precision_they_share(family):
    _, data = drawn(family, 30, 40, seed=6)
    order = np.argsort(data.precision_index, kind="stable")
    rough = replace(EXACT, tolerance=1e-4)
    found, sorted_first = fit(data, rough), fit(data.take_items(order), rough)
    assert_allclose(found.loadings[order], sorted_first.loadings, rtol=1e-8)
    assert_array_equal(found.precision[order], sorted_first.precision)


def test_known_guessing_of_probabilities():
    rng, theta, slope, intercept, chances = truth(80, 60, seed=7)
    lower = np.repeat([0.0, 0.25], 30)
    chances = lower + (1 - lower) * chances
    responses = np.clip(rng.beta(50 * chances, 50 * (1 - chances)), 1e-6, 1 - 1e-6)
    data = FitData(responses, None, lower, family="beta", precision_index=np.zeros(60, dtype=np.int64))
    found = fit(data, CLOSE)
    assert_allclose(found.precision, 50.0, rtol=0.1)
    assert np.abs(found.intercept - intercept).mean() < 0.12
    assert np.corrcoef(found.loadings[:, 0], slope)[0, 1] > 0.95
    assert np.corrcoef(found.abilities[:, 0], theta)[0, 1] > 0.995


def test_no_right_answer_of_thousands_is_a_low_chance_not_an_endless_one():
    rng, theta, slope, _, _ = truth(40, 80, seed=8)
    chances = expit(theta[:, None] * slope + rng.normal(-9.0, 2.0, 80))
    trials = np.full(chances.shape, 10_000.0)
    shapes = np.maximum(300 * chances, 1e-12), 300 * (1 - chances)
    responses = rng.binomial(10_000, rng.beta(*shapes)) / trials
    assert (responses == 0.0).mean() > 0.5
    kind = {"family": "beta-binomial", "n_trials": trials, "precision_index": np.zeros(80, dtype=np.int64)}
    found = fit(FitData(responses, None, np.zeros(80), **kind))
    assert found.converged
    is_known = chances > 1e-4
    assert np.abs(logits(found) - np.log(chances / (1 - chances)))[is_known].mean() < 0.3
    assert found.intercept.min() > -25.0
    assert np.log(found.precision[0] / 300) == pytest.approx(0.0, abs=4 * found.log_precision_error[0])


def test_large_data_are_expanded_about_the_mean_and_begun_with_a_part_of_the_items_to_the_same_end(monkeypatch):
    _, data = drawn("beta", 40, 60, seed=10)
    whole = fit(data, CLOSE)
    with monkeypatch.context() as patched:
        patched.setattr("itembank.calibration.variational.fit.LARGE", 0)
        expanded = fit(data, CLOSE)
    alike(expanded, whole, "loadings intercept", atol=0.02)
    alike(expanded, whole, "precision", rtol=0.01)
    monkeypatch.setattr("itembank.calibration.variational.fit.SUBSET_SIZE", 40)
    staged = fit(data, CLOSE)
    assert staged.history[-1] == pytest.approx(whole.history[-1], abs=1.0)
    alike(staged, whole, "precision", rtol=1e-3)


def test_positive_slopes():
    _, data = drawn("beta", 30, 40, seed=11)
    data.responses[:, :3] = 1.0 - data.responses[:, :3]
    free, kept = fit(data, CLOSE), fit(data, replace(CLOSE, positive_discrimination=True))
    assert free.loadings[:3].max() < -0.2
    assert kept.loadings.min() > 0.0
    assert kept.history[-1] < free.history[-1]


@pytest.mark.slow
@FAMILIES
def test_intervals_hold_the_truth(family):
    """Of probabilities, where none was clipped: a clipped one is far less likely by a density than it was drawn."""
    z, of_precision = [], []
    for seed in range(12):
        (_, slope, intercept), data = drawn(family, 80, 150, seed=100 + seed)
        found = fit(data, replace(EXACT, tolerance=1e-6))
        is_whole = ((data.responses > 1e-6) & (data.responses < 1 - 1e-6)).all(axis=0) | (family != "beta")
        z.append(standardised(found, slope, intercept)[is_whole])
        if found.precision is not None:
            of_precision.append(np.log(found.precision[:2] / PRECISIONS) / found.log_precision_error[:2])
    held = np.mean(np.abs(np.concatenate(z)) < 1.96)
    assert held == pytest.approx(0.95, abs=0.025)
    if of_precision:
        assert np.sqrt(np.mean(np.square(of_precision))) < 1.5


GROUPS = np.zeros(1, dtype=np.int64)


def laid_out(family, seed=0):
    rng = np.random.default_rng(seed)
    responses, trials = rng.beta(2.0, 2.0, (12, 15)), None
    if family == "beta-binomial":
        trials = rng.integers(3, 30, responses.shape).astype(float)
        responses = rng.binomial(trials.astype(int), responses) / trials
    kind = {"family": family, "n_trials": trials, "precision_index": np.zeros(15, dtype=np.int64)}
    data = FitData(responses, None, np.zeros(15), **kind)
    return make_blocks(data, single_precision=False), random_posterior(12, 15, 1, seed=seed)


def expectation(blocks, posterior, log_density):
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
        return -prior - expectation(blocks, posterior, lambda x, y, n: density(x, y, n, precision))

    found = minimize_scalar(loss, bounds=(-4.0, 6.0), method="bounded", options={"xatol": 1e-8}).x
    bend = (loss(found + 0.05) - 2 * loss(found) + loss(found - 0.05)) / 0.05**2
    return found, bend


def in_scenarios(n):
    """Probabilities of items in scenarios of their own, a third of them missing."""
    rng = np.random.default_rng(3)
    logits, phi = rng.normal(size=(12, 1)) + rng.normal(size=n), rng.uniform(3.0, 60.0, n)
    responses = rng.beta(expit(logits) * phi, expit(-logits) * phi).clip(1e-4, 1 - 1e-4)
    observed = (rng.uniform(size=responses.shape) < 2 / 3).astype(float)
    data = FitData(responses, observed, np.zeros(n), family="beta", precision_index=np.arange(n))
    return make_blocks(data, single_precision=False), random_posterior(12, n, 1, seed=3)


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
    blocks, posterior = laid_out("beta")
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
    blocks, posterior = laid_out("beta-binomial")

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
