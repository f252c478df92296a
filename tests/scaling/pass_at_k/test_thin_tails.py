import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, log_expit
from scipy.stats import norm

from itembank.irt.parameters import AbilityPrior
from itembank_scaling.pass_at_k.cell_posterior import Counts, PrecisionPrior, cell_posterior
from itembank_scaling.pass_at_k.kernels import KnownAbove, plug_in_pass_at_k
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.specs import PassAtKSpec
from itembank_scaling.pass_at_k.thin_tails import SPREADS, STRETCH, thin_tailed_draws
from tests.scaling.samples import known_bank, simulated_samples

K = np.array([1.0, 20.0, 100.0, 1000.0])
COUNTS = Counts(np.array([20, 20, 20, 400, 0, 20] * 5), np.array([0, 1, 20, 3, 0, 0] * 5))
KNOWN = KnownAbove(0.004, np.array([0.0, np.nan, 0.0, 0.0, 0.0, 200.0] * 5))


@pytest.mark.parametrize("known", [None, KNOWN])
def test_means_and_spreads_are_those_of_fine_integrals(known):
    """One ability for certain; with each spread, as likely as the others beforehand, an integral over every rate."""
    parameters = simulated_samples(n_models=2, n_items=30).parameters
    prior = AbilityPrior(np.zeros(1), np.array([[1e-8]]))
    rng = np.random.default_rng(0)
    posterior = cell_posterior(parameters, prior, PrecisionPrior(2.0, 0.5), COUNTS, rng=rng)
    every, problem = np.ones(30, dtype=bool), (parameters, prior, COUNTS)
    drawn = thin_tailed_draws(problem, posterior, every, known, K, n_draws=20_000, rng=rng)

    z = np.linspace(-8.0, 8.0, 20_001)
    evidence, means, squares = np.zeros(6), np.zeros((6, 30, 4)), np.zeros((6, 30, 4))
    for i, (n, c) in enumerate(zip(*COUNTS, strict=True)):
        x = parameters.intercept[i] * STRETCH[:, None] + SPREADS[:, None] * z
        chance = norm.pdf(z) * np.exp(c * log_expit(x) + (n - c) * log_expit(-x))
        if known is not None and np.isnan(known.n_unseen[i]):
            chance *= expit(x) > known.floor
        elif known is not None and known.n_unseen[i]:
            chance *= plug_in_pass_at_k(expit(x), known.n_unseen[i])
        evidence += np.log(chance.sum(axis=1))
        solved = plug_in_pass_at_k(expit(x)[:, :, None], K)
        means[:, i], squares[:, i] = (
            np.einsum("sz,szk->sk", chance / chance.sum(axis=1, keepdims=True), part) for part in (solved, solved**2)
        )
    weights = np.exp(evidence - evidence.max()) / np.exp(evidence - evidence.max()).sum()
    mean = weights @ means.mean(axis=1)
    within = weights @ (squares - means**2).sum(axis=1) / 30**2
    between = weights @ (means.mean(axis=1) - mean) ** 2
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.003)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(within + between), rtol=0.05)


@pytest.mark.parametrize("shape", ["beta", "logit-normal", "in part never"])
def test_intervals_cover_whatever_the_shape_of_pass_rates(shape):
    """Every model is asked at once, with 20 samples of an item; items and abilities are known."""
    base = simulated_samples(n_models=30, n_items=100, n_trials=20, seed=3)
    rng, rates = np.random.default_rng(7), base.rates
    if shape == "logit-normal":
        logits = base.abilities[:, None] + base.parameters.intercept
        rates = expit(STRETCH[2] * logits + SPREADS[2] * rng.normal(size=logits.shape))
    elif shape == "in part never":
        rates = np.where(rng.random(rates.shape) < 0.15, 0.0, rates)
    base = dataclasses.replace(
        base, responses=dataclasses.replace(base.responses, responses=rng.binomial(20, rates) / 20)
    )
    spec = PassAtKSpec(k=(40, 100, 200, 1000), methods=("irsl",), interval="model-based", n_draws=200)
    law = pass_at_k_law(base.responses, spec, bank=known_bank(base))
    rates = rates[[int(name.removeprefix("model-")) - 1 for name in law.model_ids]]
    truth = plug_in_pass_at_k(rates[:, :, None], law.k).mean(axis=1)
    low, high = law.all_items.low, law.all_items.high
    held = (low <= truth) & (truth <= high)
    assert held.mean() > 0.9
    assert np.mean(high - low) < 0.4


def test_few_draws_are_of_all_spreads():
    """Of a hundred, none was of the widest spreads: pass@k at k of 1,000 was 3 points higher than by many draws."""
    parameters = simulated_samples(n_models=2, n_items=30).parameters
    problem = parameters, AbilityPrior(np.zeros(1), np.eye(1)), Counts(np.full(30, 5), np.repeat([0, 3], [20, 10]))
    posterior = cell_posterior(*problem[:2], PrecisionPrior(1.0, 1.0), problem[2], rng=np.random.default_rng(0))
    means = [
        thin_tailed_draws(
            problem, posterior, np.ones(30, dtype=bool), None, K, n_draws=n, rng=np.random.default_rng(1)
        ).mean(axis=0)
        for n in (100, 12_800)
    ]
    np.testing.assert_allclose(*means, atol=0.008)


def test_low_ends_do_not_fall_with_k():
    """That of k = 50 was 0 where that of k = 10 was 0.95: a factor on the logit, far from a mean near 1."""
    samples = simulated_samples(n_models=12, n_items=30, n_trials=20, seed=3)
    law = pass_at_k_law(samples.responses, PassAtKSpec(k=(10, 30, 50, 100), methods=("irsl",), n_draws=200))
    assert np.all(np.diff(law.all_items.low, axis=-1) >= 0.0)


def test_ends_beyond_the_samples_hold_what_samples_show_whether_or_not_that_is_asked():
    responses = simulated_samples(n_models=12, n_items=30, n_trials=20).responses
    few, more = (
        pass_at_k_law(responses, PassAtKSpec(k=k, methods=("irsl",), n_draws=200), rng=0).all_items
        for k in ((100, 1000), (20, 100, 1000))
    )
    np.testing.assert_allclose(few.low, more.low[:, 1:])
    assert (few.low >= more.low[:, :1]).all()


def test_thousands_of_items_are_worked_on_in_blocks():
    """4,000 items took 420 MB."""
    n_items = 4000
    parameters = simulated_samples(n_models=2, n_items=n_items).parameters
    problem = parameters, AbilityPrior(np.zeros(1), np.eye(1)), Counts(*np.tile([[5], [2]], n_items))
    posterior = cell_posterior(*problem[:2], PrecisionPrior(1.0, 1.0), problem[2], rng=np.random.default_rng(0))
    tracemalloc.start()
    rng = np.random.default_rng(0)
    thin_tailed_draws(problem, posterior, np.ones(n_items, dtype=bool), None, K, n_draws=100, rng=rng)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
