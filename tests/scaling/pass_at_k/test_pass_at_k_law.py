import dataclasses

import numpy as np
import pytest

from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k.kernels import plug_in_pass_at_k, unbiased_pass_at_k
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.specs import METHODS, PassAtKSpec
from tests.scaling.samples import known_bank, simulated_samples

SMALL = PassAtKSpec(k=(1, 10, 100), n_draws=200, interval="model-based")
COUNTED = ("jeffreys", "plug-in", "unbiased")


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=12, n_items=40, n_trials=400, scenarios=("math", "code"))


@pytest.fixture(scope="module")
def law(samples):
    spec = dataclasses.replace(SMALL, budget=20, minimum_pass_rate=0.005)
    return pass_at_k_law(samples.responses, spec, bank=known_bank(samples), models=["model-3", "model-7"], rng=1)


def test_a_curve_for_each_model_and_scenario_in_rows_that_tell_all_and_tails_of_what_fails_most(law):
    assert law.scenarios == ("math", "math", "code", "code")
    assert law.model_ids == ("model-3", "model-7", "model-3", "model-7")
    assert law.all_items.n_items.tolist() == [20] * 4
    assert law.fewest_samples.tolist() == [20] * 4
    assert np.all(law.n_trials.sum(axis=1) == 400)
    rows = law.rows()
    assert len(rows) == 4 * 3 * len(METHODS)
    first = rows[0]
    assert (first["model_id"], first["scenario"], first["k"], first["method"]) == ("model-3", "math", 1, "irsl")
    assert first["low"] < first["pass_at_k"] < first["high"]
    assert first["negative_log"] == pytest.approx(-np.log(first["pass_at_k"]))
    assert [row["is_forecast"] for row in rows if row["method"] == "irsl"][:3] == [False, False, True]
    assert np.isnan(rows[1]["low"])
    tail = [row for row in law.tail(40) if (row["model_id"], row["scenario"]) == ("model-3", "math")]
    assert len(tail) == 20
    assert sum(row["share"] for row in tail) == pytest.approx(1.0)
    failures = [row["failure"] for row in tail]
    assert np.all(np.diff(failures) <= 2e-6 * failures[0])  # equals, but for rounding, stand in the order of the items
    assert 1.0 - np.mean(failures) == pytest.approx(law.values("irsl")[0, 2], rel=1e-9)
    assert tail[0]["n_correct"] == 0


def test_the_truth_is_what_all_samples_say_and_counted_methods_see_the_budget_alone(law, samples):
    counts = np.rint(samples.responses.responses * 400).astype(int)
    at = np.array(samples.responses.items["scenario"].to_list()) == "code"
    wanted = unbiased_pass_at_k(400, counts[6, at][:, None], law.k).mean(axis=0)
    np.testing.assert_allclose(law.all_items.truth[3], wanted, rtol=1e-12)
    kept = counts[6, at] / 400 >= 0.005
    assert law.kept_items.n_items[3] == kept.sum() < 20
    wanted = unbiased_pass_at_k(400, counts[6, at][kept][:, None], law.k).mean(axis=0)
    np.testing.assert_allclose(law.kept_items.truth[3], wanted, rtol=1e-12)
    counts = law.n_correct[1]
    used = law.n_trials[1] > 0
    rates = counts[used] / 20
    np.testing.assert_allclose(law.values("plug-in")[1], plug_in_pass_at_k(rates[:, None], law.k).mean(axis=0))
    smooth = (counts[used] + 0.5) / 21
    np.testing.assert_allclose(law.values("jeffreys")[1], plug_in_pass_at_k(smooth[:, None], law.k).mean(axis=0))
    assert np.isnan(law.values("unbiased")[:, 2]).all()
    assert any("unbiased estimate has no value" in text for text in law.notes)


def test_errors_are_those_of_the_values_also_where_no_sample_solved_anything(law):
    errors = {row["method"]: row for row in law.errors()}
    difference = np.abs(law.values("irsl") - law.all_items.truth)
    assert errors["irsl"]["error"] == pytest.approx(difference.mean())
    of_logs = np.abs(np.log(law.values("jeffreys")) - np.log(law.all_items.truth))
    assert errors["jeffreys"]["error_of_negative_log"] == pytest.approx(of_logs.mean())
    assert errors["unbiased"]["share_known"] == pytest.approx(2 / 3)
    inside = (law.all_items.low <= law.all_items.truth) & (law.all_items.truth <= law.all_items.high)
    assert errors["irsl"]["coverage"] == pytest.approx(inside.mean())
    for moved in (-1e-12, 1e-12):  # an end of the interval is inside whatever rounding says
        truth = law.all_items.truth
        ends = dataclasses.replace(law.all_items, low=truth + moved, high=truth + moved)
        (row,) = [row for row in dataclasses.replace(law, all_items=ends).errors() if row["method"] == "irsl"]
        assert row["coverage"] == 1.0
    nothing = dataclasses.replace(law.all_items, truth=np.zeros_like(law.all_items.truth))
    errors = {row["method"]: row for row in dataclasses.replace(law, all_items=nothing).errors()}
    assert errors["jeffreys"]["error"] == pytest.approx(law.values("jeffreys").mean())
    assert errors["unbiased"]["share_known"] == pytest.approx(2 / 3)
    assert np.isnan([errors["irsl"]["error_of_negative_log"], errors["irsl"]["coverage"]]).all()


def test_the_same_seed_gives_the_same_law_in_any_order_of_items(samples):
    spec = dataclasses.replace(SMALL, budget=20)
    first, second, third = (
        pass_at_k_law(samples.responses, spec, bank=known_bank(samples), models=["model-1"], rng=seed)
        for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.all_items.values, second.all_items.values)
    assert np.any(first.n_correct != third.n_correct)
    order = np.random.default_rng(0).permutation(40)
    spec, bank = dataclasses.replace(SMALL, methods=COUNTED), known_bank(samples)
    plain = pass_at_k_law(samples.responses, spec, bank=bank)
    mixed = pass_at_k_law(samples.responses.take(items=order), spec, bank=bank)
    np.testing.assert_allclose(mixed.all_items.values, plain.all_items.values, rtol=1e-12)
    assert mixed.item_ids == plain.item_ids


def test_without_a_budget_nothing_is_compared_and_without_a_bank_the_responses_calibrate(samples):
    law = pass_at_k_law(samples.responses, SMALL, bank=known_bank(samples), models=["model-1"])
    assert law.all_items.truth is None
    assert law.errors() == []
    np.testing.assert_allclose(law.values("irsl"), law.values("unbiased"), atol=0.02)
    spec = dataclasses.replace(SMALL, budget=20, methods=("irsl", "plug-in"))
    law = pass_at_k_law(samples.responses, spec)
    errors = {row["method"]: row["error"] for row in law.errors()}
    assert errors["irsl"] < 0.7 * errors["plug-in"]
    assert len(law.model_ids) == 24


def test_unsampled_items_of_a_bank_can_be_counted(samples):
    part = samples.responses.take(items=np.arange(0, 40, 4))  # ten items of 'math'
    bank = known_bank(samples)
    few = pass_at_k_law(part, SMALL, bank=bank, models=["model-2"])
    whole = pass_at_k_law(part, dataclasses.replace(SMALL, include_unsampled=True), bank=bank, models=["model-2"])
    assert (few.scenarios, whole.scenarios) == (("math",), ("math",))
    assert (few.all_items.n_items[0], whole.all_items.n_items[0]) == (10, 20)
    assert np.isnan(whole.values("plug-in")).all()
    math = np.array(samples.responses.items["scenario"].to_list()) == "math"
    truth = plug_in_pass_at_k(samples.rates[1, math][:, None], whole.k).mean(axis=0)
    assert np.all((whole.all_items.low[0] < truth) & (truth < whole.all_items.high[0]))


def test_a_scenario_that_cannot_be_calibrated_is_told(samples):
    """Only one model has samples of 'code'."""
    is_lost = (samples.responses.items["scenario"].to_numpy() == "code") & (np.arange(12) > 0)[:, None]
    rates, trials = np.where(is_lost, np.nan, samples.responses.responses), np.where(is_lost, 0, 400)
    part = dataclasses.replace(samples.responses, responses=rates, n_trials=trials)
    with pytest.warns(DataWarning, match="scenario 'code' has no item model: .*at least 2 models"):
        law = pass_at_k_law(part, SMALL)
    at = law.scenarios.index("code")
    assert np.isnan(law.values("irsl")[at]).all()
    assert not np.isnan(law.values("plug-in")[at]).any()
    with pytest.raises(DataError, match="Give the samples of other models too, or a bank"):
        pass_at_k_law(samples.responses.take(models=np.arange(1)), SMALL)
    counted = dataclasses.replace(SMALL, methods=("plug-in",))
    assert len(pass_at_k_law(samples.responses.take(models=np.arange(1)), counted).model_ids) == 2


@pytest.mark.parametrize(
    ("spec", "models", "error", "words"),
    [
        ({"budget": 401}, None, DataError, "budget must be at most the samples there are"),
        ({}, ["model-1", "nobody"], DataError, "'nobody'"),
        ({"methods": ("unbiased",), "k": (1, 500)}, None, ParameterError, "k = 500 with as few as 400.*'irsl'"),
    ],
)
def test_what_cannot_be_asked_is_refused(samples, spec, models, error, words):
    with pytest.raises(error, match=words):
        pass_at_k_law(samples.responses, dataclasses.replace(SMALL, **spec), bank=known_bank(samples), models=models)


def test_banks_that_know_no_pass_rates_are_refused(samples):
    with pytest.raises(ParameterError, match="made binary"):
        pass_at_k_law(samples.responses, SMALL, bank=known_bank(samples, thresholds={"math": 0.5}))
    without = dataclasses.replace(samples.responses, n_trials=None)
    bank = dataclasses.replace(known_bank(samples), responses=without)
    with pytest.raises(DataError, match=r"got bank true of family 'bernoulli'.*n_correct and n_trials"):
        pass_at_k_law(samples.responses, SMALL, bank=bank)
    with pytest.raises(DataError, match="'item-40'"):
        smaller = dataclasses.replace(known_bank(samples), responses=samples.responses.take(items=np.arange(39)))
        pass_at_k_law(samples.responses, SMALL, bank=smaller)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"k": ()}, "k must be"),
        ({"k": (0, 3)}, "k must be"),
        ({"methods": ("irsl", "magic")}, "'magic'"),
        ({"methods": ()}, "got none"),
        ({"minimum_pass_rate": 1.0}, "minimum_pass_rate"),
        ({"level": 1.0}, "level"),
        ({"budget": 0}, "budget"),
        ({"n_draws": 10}, "n_draws"),
        ({"interval": "design"}, "interval"),
    ],
)
def test_specs_check_themselves(choices, words):
    with pytest.raises(ParameterError, match=words):
        PassAtKSpec(**choices)


@pytest.mark.slow
@pytest.mark.parametrize("with_bank", [True, False])
def test_intervals_hold_and_irsl_beats_the_others(with_bank):
    """Against the true pass rates, not the samples: fifty of each item, pass@k up to ten thousand."""
    samples = simulated_samples(n_models=60, n_items=100, n_trials=50, seed=8)
    spec = PassAtKSpec(item_model=Variational("1pl", family="beta-binomial"), interval="model-based")
    law = pass_at_k_law(samples.responses, spec, bank=known_bank(samples) if with_bank else None)
    truth = plug_in_pass_at_k(samples.rates[:, :, None], law.k).mean(axis=1)
    held = (law.all_items.low <= truth) & (truth <= law.all_items.high)
    assert 0.90 <= held.mean() <= 0.99
    error = {method: np.abs(law.values(method) - truth).mean() for method in METHODS}
    assert error["irsl"] < 0.3 * min(error["plug-in"], error["jeffreys"], error["irsl-plug-in"])
    assert abs((law.values("irsl") - truth).mean()) < 0.01


def test_one_model_alone_needs_no_other():
    """A Beta of the model's own items: its pass@k is that of the Beta they were drawn from, items or not."""
    alone = simulated_samples(n_models=4, n_items=300, n_trials=30, difficulty=0.0, precision=1e6, seed=3)
    rng = np.random.default_rng(0)
    rates = rng.beta(0.3, 2.0, (1, 300))
    counts = rng.binomial(30, rates)
    matrix = dataclasses.replace(alone.responses.take(models=np.arange(1)), responses=counts / 30)
    law = pass_at_k_law(matrix, PassAtKSpec(k=(1, 30, 1000), methods=("beta-binomial", "plug-in")))
    truth = plug_in_pass_at_k(rates[0][:, None], law.k).mean(axis=0)
    np.testing.assert_allclose(law.values("beta-binomial")[0], truth, atol=0.03)
    assert law.values("plug-in")[0, 2] < truth[2] - 0.1


def test_beyond_the_samples_the_low_end_counts_no_unsolved_item():
    """2PL with a fifth of the items impossible: ten samples cannot tell these from rates of one in a thousand."""
    rng = np.random.default_rng(4)
    n_models, n_items, n_trials = 10, 60, 10
    logit = rng.normal(size=(n_models, 1)) * rng.lognormal(0.2, 0.3, n_items) - rng.normal(0.0, 2.5, n_items)
    rates = np.where(rng.random(n_items) < 0.2, 0.0, 1.0 / (1.0 + np.exp(-logit)))
    correct = rng.binomial(n_trials, rates)
    trials = np.full(correct.shape, n_trials)
    trials[:, :20], correct[:, :20] = 40, rng.binomial(40, rates[:, :20])
    responses = ResponseMatrix.create(correct / trials, n_trials=trials)
    law = pass_at_k_law(responses, PassAtKSpec(k=(10, 40, 41, 1000), methods=("irsl",), n_draws=200))
    seen, seen_of_few = correct > 0, (correct > 0) & (trials == n_trials)
    most = np.maximum(seen.mean(axis=1), law.all_items.low[:, 1])  # as pass@k does not fall
    assert np.all(law.all_items.low[:, 2:] <= most[:, None] + 1e-12)
    assert np.all(law.all_items.low[:, 1] <= seen_of_few.mean(axis=1) + 1 / 3 + 1e-12)  # 40 are not beyond 40
    assert np.any(law.all_items.low[:, 1] > seen.mean(axis=1) + 0.02)
    truth = plug_in_pass_at_k(rates[:, :, None], law.k).mean(axis=1)
    held = (law.all_items.low <= truth + 1e-9) & (truth <= law.all_items.high + 1e-9)
    assert held[:, 3].mean() >= 0.9  # .2 where low ends rest on the item model alone
    assert any("counts the item as unsolved" in text for text in law.notes)
    assert "counts the item as unsolved" in str(law.to_dict())
    assert "counts the item as unsolved" in repr(law)


def test_samples_of_other_models_reach_as_far_as_their_number():
    """Models with 5,000 samples show what intervals must be up to k = 1,000; beyond, unsolved items count as such."""
    samples = simulated_samples(n_models=20, n_items=40, n_trials=5000, precision=4.0)
    rates, trials = samples.responses.responses.copy(), samples.responses.n_trials.copy()
    trials[:2] = 10
    rates[:2] = np.random.default_rng(2).binomial(10, samples.rates[:2]) / 10
    responses = dataclasses.replace(samples.responses, responses=rates, n_trials=trials)
    spec = PassAtKSpec(k=(1000, 1001), methods=("irsl",), n_draws=200)
    law = pass_at_k_law(responses, spec, models=["model-1", "model-2"])
    seen = (rates[:2] > 0.0).mean(axis=1)
    assert np.all(law.all_items.low[:, 0] > seen + 0.02)
    np.testing.assert_array_equal(*law.all_items.low.T)  # as pass@k does not fall
    alone = pass_at_k_law(responses, dataclasses.replace(spec, k=(1001,)), models=["model-1", "model-2"])
    np.testing.assert_allclose(alone.all_items.low[:, 0], seen, atol=1e-12)
    truth = plug_in_pass_at_k(samples.rates[:2, :, None], law.k).mean(axis=1)
    assert np.all((law.all_items.low <= truth) & (truth <= law.all_items.high))
