import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logit

from itembank_scaling.pass_at_k import interval_calibration as kernel
from itembank_scaling.pass_at_k.curve import pass_at_k_curve
from itembank_scaling.pass_at_k.kernels import plug_in_pass_at_k
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.samples import SampledScenario, item_model_of_bank, sample_counts
from itembank_scaling.pass_at_k.specs import PassAtKSpec
from tests.scaling.samples import known_bank, simulated_samples

SPEC = PassAtKSpec(k=(1, 10, 100), methods=("irsl",), budget=20, n_draws=200)


def scenario_of(samples, *, too_sure=1.0):
    """The scenario with its true item model; `too_sure` multiplies the precision that is believed in."""
    counts = sample_counts(samples.responses)
    known = item_model_of_bank(known_bank(samples), np.arange(samples.responses.n_items))
    precision = dataclasses.replace(known.precision, mean=known.precision.mean + np.log(too_sure), sd=0.05)
    columns = np.arange(samples.responses.n_items)
    return SampledScenario("math", columns, counts, counts, dataclasses.replace(known, precision=precision))


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=40, n_items=50, n_trials=2000, seed=11)


def factors_of(scenario, n_rows=40, budget=20):
    given = {"budget": budget, "spec": SPEC, "rng": np.random.default_rng(0)}
    return kernel.interval_factors(scenario, scenario.truth, np.arange(n_rows), **given)


def test_a_true_item_model_needs_little_one_that_is_too_sure_much_and_few_models_tell_nothing(samples):
    honest = factors_of(scenario_of(samples))
    assert (honest.k[0], honest.k[-1], honest.n_models) == (1.0, 400.0, 40)
    assert honest.factors.shape == (2, honest.k.size)
    assert honest.factors[0].max() < 1.6
    # believed to follow the item model ten times as closely as they do: its intervals are far too narrow
    sure = factors_of(scenario_of(samples, too_sure=10.0))
    assert np.median(sure.factors[0]) > 1.5 * np.median(honest.factors[0])
    scenario = scenario_of(samples)
    assert factors_of(scenario, kernel.FEWEST_TRIED - 1) is None
    assert factors_of(scenario, budget=1001) is None


@pytest.mark.parametrize("n_models", [19, 30, 37])
def test_the_quantile_of_some_models_holds_for_one_more(n_models):
    """Of uniform values the quantile's own mean is the probability that a further one is below it."""
    values = np.random.default_rng(n_models).random((20_000, n_models))
    held = np.quantile(values, kernel.share_within(n_models, 0.95), axis=1).mean()
    assert held == pytest.approx(0.95, abs=0.001)  # standard error .0003
    assert np.quantile(values, 0.95, axis=1).mean() < 0.935  # at position .95 (n - 1) + 1 of n + 1
    assert kernel.share_within(kernel.FEWEST_TRIED, 0.95) == 1.0


def test_a_factor_is_how_far_off_the_furthest_is_and_what_is_all_but_certain_has_no_say():
    n = kernel.FEWEST_TRIED
    at, off = logit([*np.linspace(0.1, 0.9, n), 1.0 - 1e-6]), [*np.linspace(-1.5, 2.0, n), 5.0]
    ends = ({"low": a - 1.0, "high": a + 1.0, "truth": a + far} for a, far in zip(at, off, strict=True))
    known = ({name: expit(np.full((1, 1), one)) for name, one in each.items()} for each in ends)
    curves = [SimpleNamespace(values=np.full((1, 1, 1), expit(a)), **each) for a, each in zip(at, known, strict=True)]
    np.testing.assert_allclose(kernel._factors(curves, 0, 0.95), [2.0])


def test_factors_between_and_beyond_the_k_that_were_tried_widen_on_the_logit(samples):
    found = kernel.IntervalFactors(np.array([1.0, 100.0]), np.array([[1.0, 3.0], [np.nan, np.nan]]), 9)
    np.testing.assert_allclose(found.at(np.array([1.0, 10.0, 100.0, 1e6])), [[1.0, 2.0, 3.0, 3.0], [1.0] * 4])
    scenario = scenario_of(samples)
    k = np.array([1.0, 100.0])
    curve = pass_at_k_curve(scenario, 0, k, SPEC, np.random.default_rng(0))
    middle = curve.values[0]
    same = kernel.widened(curve, middle, np.ones((2, 2)))
    np.testing.assert_allclose(same.low, curve.low, rtol=1e-12)
    twice = kernel.widened(curve, middle, np.full((2, 2), 2.0))
    above, twice_above = (logit(one.high) - logit(middle) for one in (curve, twice))
    np.testing.assert_allclose(twice_above, 2.0 * above, rtol=1e-9)
    assert np.all(twice.low < curve.low)
    certain = dataclasses.replace(curve, low=np.zeros((2, 2)), high=np.ones((2, 2)))
    found = kernel.widened(certain, middle, np.full((2, 2), 2.0))
    assert (found.low.max(), found.high.min()) == (0.0, 1.0)


def test_the_law_says_what_its_intervals_rest_on(samples):
    models = ["model-1", "model-2"]
    bank = known_bank(samples)
    plain, made, few = (
        pass_at_k_law(samples.responses, dataclasses.replace(SPEC, **changes), bank=bank, models=models)
        for changes in ({"interval": "model-based"}, {}, {"budget": 1500})
    )
    assert any("rest on the item model" in text for text in plain.notes)
    assert any("as wide as the item model says: 'math' 1." in text for text in made.notes)
    width, of_model = (law.all_items.high - law.all_items.low for law in (made, plain))
    assert np.all(width[:, 0] >= 0.6 * of_model[:, 0])
    assert np.all(width[:, 2] < of_model[:, 2])  # other models show that no second shape is needed at k = 100
    said = " ".join(few.notes)
    assert "rest on the item model, as too few models could tell" in said
    assert "come from the models asked about" not in said  # nor is any k beyond 1,500 samples


def test_models_asked_about_are_tried_with_item_models_that_have_not_seen_them():
    """With 5 of their 50 samples and up to half of these 50: what is found at k = 25 stands for k = 250."""
    few = simulated_samples(n_models=12, n_items=20, n_trials=50)
    scenario, left_out = scenario_of(few), []

    def refit(rows):
        left_out.append(rows.tolist())
        return None if 3 in rows else scenario.item_model

    found = kernel.factors_within(
        scenario, np.arange(12), budget=50, spec=SPEC, rng=np.random.default_rng(0), refit=refit
    )
    assert sorted(row for part in left_out for row in part) == list(range(12))
    assert [len(part) for part in left_out] == [3, 3, 2, 2, 2]
    assert (found.k[0], found.k[-1], found.n_models, found.rest_on) == (10.0, 250.0, 10, "asked")
    assert found.largest_k == 0.0


def test_every_model_asked_at_once_without_samples_to_hide():
    """With one sample of each item none can be hidden: no factor is found."""
    few = simulated_samples(n_models=6, n_items=12, n_trials=2, precision=2.0)
    trials = np.full((6, 12), 2)
    trials[:, 0] = 1
    responses = dataclasses.replace(few.responses, responses=np.ones((6, 12)), n_trials=trials)
    spec = dataclasses.replace(SPEC, budget=None)
    law = pass_at_k_law(responses, spec, bank=known_bank(few))
    assert "as too few models could tell" in " ".join(law.notes)


def test_a_scenario_with_fewer_samples_than_the_model_asked_about_has():
    """Models are tried scenario by scenario: 50 samples can be drawn of 400 in one, where another has 20."""
    base = simulated_samples(n_models=14, n_items=8, n_trials=400, scenarios=("a", "b"))
    trials = np.where(base.responses.items["scenario"].to_numpy() == "a", 400, 20) * np.ones((14, 1), dtype=np.int64)
    trials[0, trials[0] == 400] = 50
    correct = np.random.default_rng(1).binomial(trials, base.rates)
    responses = dataclasses.replace(base.responses, responses=correct / trials, n_trials=trials)
    law = pass_at_k_law(responses, dataclasses.replace(SPEC, budget=None), models=["model-1"])
    assert any("'a' 1." in text and "(13 models)" in text for text in law.notes)
    assert np.all(law.all_items.low <= law.all_items.high)


@pytest.mark.slow
def test_calibrated_intervals_hold_better_where_the_item_model_is_wrong():
    """Half of the items ask for one ability, half for another; the item model knows one."""
    held = {"calibrated": [], "model-based": []}
    for seed in (5, 6):
        rng = np.random.default_rng(seed)
        theta, loadings = rng.normal(size=(60, 2)), np.abs(rng.normal(0.9, 0.5, (60, 2)))
        loadings[:30, 1] = loadings[30:, 0] = 0.0
        rates = 1.0 / (1.0 + np.exp(rng.normal(3.0, 1.5, 60) - 1.5 * theta @ loadings.T))
        base = simulated_samples(n_models=60, n_items=60, n_trials=5000)
        responses = dataclasses.replace(base.responses, responses=rng.binomial(5000, rates) / 5000)
        for interval, found in held.items():
            spec = dataclasses.replace(SPEC, k=(1, 3, 10, 30, 100, 300, 1000), budget=10, interval=interval)
            law = pass_at_k_law(responses, spec, models=[f"model-{i}" for i in range(31, 61)])
            truth = plug_in_pass_at_k(rates[30:, :, None], law.k).mean(axis=1)
            found.append(np.mean((law.all_items.low <= truth) & (truth <= law.all_items.high)))
    assert 0.88 <= np.mean(held["calibrated"]) <= 0.99
    assert np.mean(held["calibrated"]) > np.mean(held["model-based"]) > 0.85  # which takes in both shapes of pass rates


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:items of 'math'. The abilities are not skill")  # one ability of two is none
def test_intervals_hold_with_every_model_asked_at_once():
    """Items of two abilities, or of one as the item model has it; nobody has more samples than those asked about."""
    held = {"one": [], "two": []}
    for seed in range(2):
        rng = np.random.default_rng([seed, 50])
        theta, difficulty = rng.normal(size=(40, 2)), rng.normal(3.0, 1.5, 60)
        of = {"one": theta[:, :1], "two": np.repeat(1.5 * theta, 30, axis=1)}
        for name, found in held.items():
            mean = 1.0 / (1.0 + np.exp(difficulty - of[name]))
            rates = rng.beta(np.maximum(8.0 * mean, 1e-10), 8.0 * (1.0 - mean))
            base = simulated_samples(n_models=40, n_items=60, n_trials=50)
            responses = dataclasses.replace(base.responses, responses=rng.binomial(50, rates) / 50)
            law = pass_at_k_law(responses, dataclasses.replace(SPEC, k=(1, 10, 100, 1000), budget=None, n_draws=400))
            truth = plug_in_pass_at_k(rates[:, :, None], law.k).mean(axis=1)
            found.append(np.mean((law.all_items.low <= truth) & (truth <= law.all_items.high)))
    assert np.mean(held["one"]) > 0.93
    assert np.mean(held["two"]) > 0.93
