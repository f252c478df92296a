import numpy as np
import pytest
from scipy.special import ndtri

from itembank.errors import DataError, ParameterError
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank.scaling.pass_at_k.sampling_plan import SamplingPlanSpec, sampling_plan, steps
from itembank.scaling.pass_at_k.specs import PassAtKSpec
from tests.scaling.samples import known_bank, simulated_samples


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=12, n_items=40, n_trials=20)


@pytest.fixture(scope="module")
def plan(samples):
    return sampling_plan(
        samples.responses,
        SamplingPlanSpec(k=100, half_width=0.04),
        bank=known_bank(samples),
        models=["model-1", "model-2"],
    )


def test_a_plan_reaches_what_was_wanted_for_less_than_uniform_sampling(plan):
    for row in plan.summary():
        assert row["half_width_now"] > 0.04
        assert row["is_reached"]
        assert 0.03 < row["half_width_after"] <= 0.04
        assert row["n_more"] < 0.8 * row["n_uniform"]


def test_rows_are_the_items_with_most_to_tell_first(plan):
    one = plan.plans[0]
    rows = [row for row in plan.rows() if row["model_id"] == "model-1"]
    assert sum(row["n_more"] for row in rows) == one.total == one.n_more.sum()
    rates = [row["gain"] / row["n_more"] for row in rows]
    assert rates == sorted(rates, reverse=True)
    # whether an item falls in 100 samples is open where it was never solved, and known where it often was
    assert max(row["n_correct"] for row in rows) <= 2
    assert one.n_more[one.n_correct >= 5].sum() == 0


def test_half_width_now_is_that_of_the_law(plan, samples):
    """The plan's normal interval against the law's draws, before anything is widened."""
    spec = PassAtKSpec(k=(100,), n_draws=4000, interval="model-based")
    law = pass_at_k_law(samples.responses, spec, bank=known_bank(samples), models=["model-1", "model-2"])
    of_law = 0.5 * (law.all_items.high - law.all_items.low)[:, 0]
    np.testing.assert_allclose([one.half_width_now for one in plan.plans], of_law, rtol=0.12)


def test_what_is_precise_needs_nothing_and_what_is_out_of_reach_says_so(samples):
    bank = known_bank(samples)
    easy = sampling_plan(samples.responses, SamplingPlanSpec(k=1, half_width=0.2), bank=bank, models=["model-1"])
    assert (easy.plans[0].total, easy.plans[0].n_uniform, easy.rows()) == (0, 0, [])
    hard = sampling_plan(
        samples.responses, SamplingPlanSpec(k=100, half_width=1e-4, most=30), bank=bank, models=["model-1"]
    ).plans[0]
    assert not hard.is_reached
    assert hard.n_uniform is None
    assert hard.n_more.tolist() == [30] * 40
    assert 1e-4 < hard.half_width_after < hard.half_width_now


def test_unsampled_items_of_a_bank_are_planned_too(samples):
    part = samples.responses.take(items=np.arange(10))
    plan = sampling_plan(part, SamplingPlanSpec(k=10, half_width=0.1), bank=known_bank(samples), models=["model-1"])
    assert len(plan.plans[0].item_ids) == 40
    assert plan.plans[0].n_more[10:].sum() > 0


def test_without_a_bank_the_responses_calibrate(samples):
    plan = sampling_plan(samples.responses, SamplingPlanSpec(k=100, half_width=0.05), models=["model-4"])
    assert plan.plans[0].is_reached
    with pytest.raises(DataError, match="at least 2 models"):
        sampling_plan(samples.responses.take(models=np.arange(1)))


def test_steps_double_up_to_the_most():
    assert steps(1).tolist() == [0, 1]
    assert steps(20).tolist() == [0, 1, 2, 4, 8, 16, 20]


@pytest.mark.parametrize("choices", [{"k": 0}, {"most": 0}, {"half_width": 0.0}, {"half_width": 0.5}, {"level": 0.0}])
def test_specs_check_themselves(choices):
    with pytest.raises(ParameterError, match=next(iter(choices))):
        SamplingPlanSpec(**choices)


@pytest.mark.slow
def test_planned_samples_give_the_promised_precision():
    """Buy what was planned for every model, and look at the interval then."""
    samples = simulated_samples(n_models=30, n_items=60, n_trials=20, seed=3)
    bank = known_bank(samples)
    plan = sampling_plan(samples.responses, SamplingPlanSpec(k=100, half_width=0.04), bank=bank)
    n_more = np.stack([one.n_more for one in plan.plans])
    rng = np.random.default_rng(9)
    trials = 20 + n_more
    correct = np.rint(20 * samples.responses.responses).astype(int) + rng.binomial(n_more, samples.rates)
    scenarios = samples.responses.items["scenario"].to_list()
    bought = ResponseMatrix.create(correct / trials, n_trials=trials, scenarios=scenarios)
    law = pass_at_k_law(bought, PassAtKSpec(k=(100,), n_draws=4000, interval="model-based"), bank=bank)
    half_widths = 0.5 * (law.all_items.high - law.all_items.low)[:, 0]
    promised = np.array([one.half_width_after for one in plan.plans])
    assert 0.85 < np.sqrt(np.mean(half_widths**2) / np.mean(promised**2)) < 1.1
    truth = (1 - (1 - samples.rates) ** 100).mean(axis=1)
    error = law.values("irsl")[:, 0] - truth
    assert np.sqrt(np.mean(error**2)) < 1.3 * 0.04 / ndtri(0.975)
