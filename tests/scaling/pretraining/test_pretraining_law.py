import itertools
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from scipy.stats import linregress
from scipy.stats import t as student

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import training_compute
from itembank_scaling.pretraining.law_fitting import Forecast
from itembank_scaling.pretraining.law_inputs import PretrainingData
from itembank_scaling.pretraining.law_results import HeldOutForecasts
from itembank_scaling.pretraining.law_specs import (
    LAWS,
    ItemResponseLaw,
    PretrainingLawSpec,
    PretrainingSettings,
    SigmoidLaw,
    TwoStep,
)
from itembank_scaling.pretraining.pretraining_law import held_out_coverage, observed_means, pretraining_law, size_cuts
from tests.packages import forget
from tests.scaling.simulated_suite import simulated_suite

FEW_STARTS = SigmoidLaw(n_starts=4)
PLAIN = PretrainingSettings(laws=("irsl", TwoStep(n_starts=4), FEW_STARTS), n_checked=0)
IRSL = PretrainingSettings(laws=("irsl",), n_checked=0)
ONE_START = SigmoidLaw(n_starts=1)
"""Quick; how near its curve comes is of no account."""
SIGMOID = PretrainingSettings(laws=(ONE_START,), n_checked=0)
FINITE, UNITS = "target_flops must be finite and > 0", r"within a factor of 1e\+06 .* got 1e\+.*Check the units"
EASY = np.arange(40)
"""Items of one scenario, for tests that need no other."""


@pytest.fixture(scope="module")
def suite():
    return simulated_suite(np.random.default_rng(5), n_items=80, n_checkpoints=2, residual_sd=0.03)


@pytest.fixture(scope="module")
def compute(suite):
    return training_compute(suite.models)


@pytest.fixture(scope="module")
def law(suite, compute):
    return pretraining_law(suite.probability, compute, loss=suite.bits_per_byte, settings=PLAIN)


@pytest.fixture(scope="module")
def checked(suite, compute):
    """A law checked on the two largest sizes, and what was told of its progress."""
    told = []
    settings = PretrainingSettings(laws=(FEW_STARTS, "irsl"))
    law = pretraining_law(suite.probability, compute, settings=settings, progress=lambda *one: told.append(one))
    return law, told


def true_scores(suite, flops):
    """Score of every recipe at a compute, (n_recipes, n_scenarios)."""
    theta = suite.law(np.arange(6), np.log(flops))
    p = expit(suite.loadings * theta[:, None] + suite.intercept)
    return np.stack([p[:, :40].mean(axis=1), p[:, 40:].mean(axis=1)], axis=1)


def test_forecasts_of_ten_times_the_compute_come_near_the_truth_from_abilities_on_the_lines_that_made_them(
    suite, compute, law
):
    truth = true_scores(suite, law.target_flops)
    trends = pretraining_law(suite.probability, compute, settings=replace(IRSL, laws=("trend",)))
    for (number, scenario), by in itertools.product(enumerate(("easy", "hard")), (law, trends)):
        found = by.forecast(scenario)
        assert np.abs(found.score[:, 0] - truth[:, number]).mean() < 0.02
        assert ((found.low[:, 0] < truth[:, number]) & (truth[:, number] < found.high[:, 0])).mean() > 0.8
    assert trends.of_scenario("easy").fitted["trend"].origin < trends.log_flops[trends.is_final].min()
    laws = law.of_scenario("easy").ability_laws
    assert np.corrcoef(law.of_scenario("easy").abilities.theta, suite.theta)[0, 1] > 0.995
    ratio = laws.slope / suite.slopes  # the scale of ability is the calibration's own
    assert np.std(ratio) / np.mean(ratio) < 0.08
    flops = law.target_flops * np.array([0.1, 1.0, 10.0])
    for name in law.names:
        found = law.forecast("hard", name, flops=flops)
        at_middle = (found.high - found.low)[:, :2]
        assert (np.diff(at_middle, axis=1) > 0.0).all()


def test_the_law_as_published_is_equation_3(suite, compute):
    """Least squares of ability on log FLOP, then the mean over items of expit(d (theta - z)); nothing is added."""
    published = ItemResponseLaw("2pl", pooling="none", shape="line", gap="none")
    law = pretraining_law(suite.accuracy, compute, settings=replace(IRSL, laws=(published,)))
    target = np.log(law.target_flops)
    for scenario in ("easy", "hard"):
        found = law.of_scenario(scenario).abilities
        discrimination = found.parameters.loadings[:, 0]
        difficulty = -found.parameters.intercept / discrimination
        own = []
        for recipe in range(6):
            models = np.flatnonzero((law.recipe_index == recipe) & law.is_final)
            line = linregress(law.log_flops[models], found.theta[models])
            theta = line.slope * target + line.intercept
            own.append(expit(discrimination * (theta - difficulty)).mean())
        forecast = law.forecast(scenario)
        np.testing.assert_allclose(forecast.score[:, 0], own, rtol=0.0, atol=1e-10)
        assert (forecast.low[:, 0] < own).all()
        assert (own < forecast.high[:, 0]).all()


def test_a_gap_that_is_carried_is_all_that_it_adds(suite, compute):
    hard = suite.accuracy.take(items=np.arange(40, 80))
    laws = [
        pretraining_law(hard, compute, settings=replace(IRSL, laws=(ItemResponseLaw(gap=gap),)))
        for gap in ("carried", "none")
    ]
    carried, plain = (law.of_scenario("hard").fitted["irsl"] for law in laws)
    assert np.abs(carried.carried).max() > 0.005
    with_gap, without = (law.forecast("hard").score[:, 0] for law in laws)
    np.testing.assert_allclose(with_gap - without, carried.carried, atol=1e-12)
    gaps = plain.abilities.gap[laws[1].is_final]
    assert plain.gap_variance == pytest.approx(np.mean(gaps**2))


def test_right_or_wrong_and_counts_go_through(suite, compute):
    trials = np.full(suite.accuracy.responses.shape, 5)
    p = expit(suite.theta[:, None] * suite.loadings + suite.intercept)
    counts = np.random.default_rng(0).binomial(trials, p) / trials
    counted = replace(suite.accuracy, responses=counts, n_trials=trials)
    truth = true_scores(suite, 10.0 * compute.flops.max())
    settings = replace(PLAIN, laws=("irsl", "two-step", ONE_START))
    for responses in (suite.accuracy, counted):
        law = pretraining_law(responses, compute, settings=settings)
        assert np.abs(law.forecast("hard").score[:, 0] - truth[:, 1]).mean() < 0.06
        assert law.names == ("irsl", "sigmoid")
        assert "needs a loss" in law.message


def test_a_bank_of_other_models_measures_abilities(suite, compute):
    past, new = np.flatnonzero(suite.recipes < 2), np.flatnonzero(suite.recipes >= 2)
    bank = calibrate(suite.probability.take(models=past), Variational("2pl", family="beta", tolerance=1e-4))
    law = pretraining_law(suite.probability.take(models=new), compute, bank=bank, settings=replace(IRSL, n_items=15))
    truth = true_scores(suite, law.target_flops)[2:]
    assert np.abs(law.forecast("hard").score[:, 0] - truth[:, 1]).mean() < 0.04
    assert law.recipes == tuple(f"recipe-{number}" for number in range(2, 6))


def test_calibration_recipes_get_no_law_and_models_without_recipes_one(suite, compute):
    settings = replace(IRSL, calibration_recipes=("recipe-1", "recipe-4"))
    law = pretraining_law(suite.probability.take(items=EASY), compute, settings=settings)
    assert law.recipes == ("recipe-0", "recipe-2", "recipe-3", "recipe-5")
    one = np.flatnonzero(suite.recipes == 0)
    models = suite.models[one].drop("recipe")
    law = pretraining_law(suite.probability.take(models=one, items=EASY), training_compute(models), settings=IRSL)
    assert law.recipes == ("all",)
    assert isinstance(pl.DataFrame(law.rows()), pl.DataFrame)
    assert np.isfinite(law.rows()[0]["score"])


def test_comparison_holds_the_largest_sizes_out_and_the_law_that_was_closest_comes_first(checked):
    law, _ = checked
    rows = {row["law"]: row for row in law.comparison()}
    assert rows["irsl"]["n_forecasts"] == 2 * 6 * (1 + 2)
    assert rows["irsl"]["error"] < 0.5 * rows["sigmoid"]["error"]
    assert law.names == ("sigmoid", "irsl")
    assert law.best == law.to_dict()["best_law"] == law.rows()[0]["law"] == law.comparison()[0]["law"] == "irsl"
    assert law.best_reason.startswith("irsl was ")
    np.testing.assert_array_equal(law.forecast("hard").score, law.forecast("hard", "irsl").score)
    assert replace(law, held_out=None).best == "sigmoid"
    messages, shares = zip(*checked[1], strict=True)
    assert sum("laws of hard (2 of 2)" in text for text in messages) == 1 + 2
    assert any(text.startswith("fitting up to") and "laws of hard" in text for text in messages)
    assert list(shares) == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("times", "text"),
    [(52_345.0, "is about 52,000 times the compute of the largest model"), (1e-2, "ahead, not back"), (50.0, "")],
)
def test_a_target_far_from_the_models_is_doubted(suite, compute, times, text):
    flops = compute.flops.min() if times < 1.0 else compute.flops.max()
    easy = suite.probability.take(items=EASY)
    law = pretraining_law(easy, compute, target_flops=times * flops, settings=SIGMOID)
    said = law.trust() if times > 1.0 else law.message
    assert text in said
    assert bool(text) == ("target" in said.replace("the target is 50 times", ""))


def test_the_largest_run_is_one_that_a_law_is_fitted_to(suite, compute):
    """A lone run of a recipe without a law moved the target, and was called the largest."""
    ids, row = compute.model_ids, int(compute.flops.argmax())
    alone = suite.models.with_columns(
        recipe=pl.when(pl.col("model_id") == ids[row]).then(pl.lit("alone")).otherwise("recipe")
    )
    law = pretraining_law(suite.probability.take(items=EASY), training_compute(alone), settings=SIGMOID)
    fitted = [one for one in law.rows() if np.isfinite(one["score"])]
    assert law.target_flops == pytest.approx(
        10.0 * np.delete(compute.flops, row)[np.delete(compute.is_final, row)].max()
    )
    assert min(one["beyond"] for one in fitted) == pytest.approx(10.0) == law._beyond


@pytest.mark.parametrize(
    ("choices", "error", "words"),
    [
        *(({"target_flops": one}, ParameterError, FINITE) for one in (0.0, -1e20, np.inf, np.nan)),
        *(({"target_flops": one}, ParameterError, UNITS) for one in (1e3, 1e60)),
        ({"loss": np.ones((3, 3))}, DataError, "a row a model and a column an item"),
        ({"loss": np.zeros((84, 80))}, DataError, "finite and > 0"),
    ],
)
def test_targets_and_losses_are_checked(suite, compute, choices, error, words):
    with pytest.raises(error, match=words):
        pretraining_law(suite.probability, compute, **choices)


def test_the_two_step_law_is_for_scenarios_whose_losses_are_known(suite, compute):
    """Numpy warned of an empty row, and said nothing of losses."""
    loss = np.full((84, 80), np.nan)
    loss[:, EASY] = 2.0 - 0.02 * np.arange(84)[:, None]
    settings = PretrainingSettings(laws=(TwoStep(n_starts=1),), n_checked=0)
    law = pretraining_law(suite.probability, compute, loss=loss, settings=settings)
    assert [scenario.scores.scenario for scenario in law.scenarios if scenario.fitted] == ["easy"]


def checked_rows(scenario, errors):
    common = {"law": "irsl", "scenario": scenario, "score": 0.5, "low": 0.4, "high": 0.55, "beyond": 4.0}
    return [{**common, "error": error} for error in errors]


def test_intervals_grow_by_what_they_lacked_of_the_sizes_held_out(law, compute):
    # 0.1 below a truth is twice the half on that side, 0.2 above it is twice the other
    rows = checked_rows("easy", [-0.1, 0.2]) + checked_rows("hard", [-0.05, 0.1])
    found = HeldOutForecasts(pl.DataFrame(rows), level=0.9)
    quantile = student.ppf(0.95, 4)
    widening = found.widening()
    assert widening["irsl", "easy"] == pytest.approx(quantile * np.sqrt(0.5 * (4.0 + 2.5)))
    assert widening["irsl", "hard"] == pytest.approx(quantile * np.sqrt(0.5 * (1.0 + 2.5)))
    checked = replace(law, held_out=found)
    plain, wide = law.forecast("easy", "irsl"), checked.forecast("easy", "irsl")
    reach = widening["irsl", "easy"] * (plain.high - plain.score)
    np.testing.assert_allclose(wide.high - wide.score, np.minimum(reach, 1.0 - wide.score))
    # nothing at the largest size, half as much half-way (in log FLOP) to the shortest distance checked
    at = compute.flops.max() * np.array([1.0, 2.0])
    before, after = law.forecast("easy", "irsl", flops=at), checked.forecast("easy", "irsl", flops=at)
    factor = (after.score - after.low) / (before.score - before.low)
    expected = np.tile([1.0, 0.5 + 0.5 * widening["irsl", "easy"]], (6, 1))
    np.testing.assert_allclose(factor[after.low > 0.0], expected[after.low > 0.0])
    assert (after.low > 0.0).any(axis=0).all()
    rows = checked_rows("easy", [-0.04, 0.09, 0.09]) + checked_rows("hard", [0.01, 0.2])
    assert set(HeldOutForecasts(pl.DataFrame(rows), level=0.8).widening().values()) == {1.0}


def test_recipes_that_get_worse_or_have_too_few_sizes_are_told_and_refused_if_there_are_no_others(suite, compute):
    rows = np.flatnonzero((suite.recipes != 3) | (suite.params < suite.params.min() * 3.0))
    law = pretraining_law(suite.probability.take(models=rows, items=EASY), compute, settings=PLAIN)
    assert "Fewer than 3 sizes, no law: 'recipe-3 (2)'." in law.message
    told = [row for row in law.rows() if row["recipe"] == "recipe-3"]
    assert {row["note"] for row in told} == {"no law: 2 sizes"}
    assert all(np.isnan(row["score"]) for row in told)
    rows = np.flatnonzero(suite.params < suite.params.min() * 3.0)
    with pytest.raises(DataError, match=r"at least 3 sizes of one recipe, got 'recipe-0 \(2\)'"):
        pretraining_law(suite.probability.take(models=rows), compute)
    values = suite.probability.responses.copy()
    own = np.flatnonzero((suite.recipes == 2) & suite.is_final)
    values[own] = values[own[::-1]]
    responses = replace(suite.probability, responses=values).take(items=EASY)
    settings = replace(PLAIN, laws=(ItemResponseLaw(pooling="none"), *PLAIN.laws[1:]))
    law = pretraining_law(responses, compute, settings=settings)
    notes = {row["law"]: row["note"] for row in law.rows() if row["recipe"] == "recipe-2"}
    assert "ability does not rise with compute (slope -" in notes["irsl"]
    assert "the score falls with compute" in notes["sigmoid"]
    assert "the loss rises with compute" in notes["two-step"]


def test_models_of_unknown_compute_are_named_and_banks_of_another_kind_of_responses_told(suite, compute):
    with pytest.raises(DataError, match=r"is not of 1 of 84: 'recipe-0/10000/0'"):
        pretraining_law(suite.probability, compute.take(np.arange(1, 84)))
    with pytest.raises(DataError, match="checked only with a law"):
        held_out_coverage(suite.probability.take(items=EASY), compute, largest=[1e30], settings=IRSL)
    with pytest.raises(DataError, match="needs a loss"):
        pretraining_law(suite.accuracy, compute, settings=replace(IRSL, laws=("two-step",)))
    few = np.arange(12)
    right = calibrate(suite.accuracy.take(models=few, items=few), Variational("2pl"))
    share = calibrate(suite.probability.take(models=few, items=few), Variational("2pl", family="beta"))

    def message(responses, bank):
        return PretrainingData.create(responses, compute, PLAIN, bank=bank).message

    told = "The bank was calibrated on responses that are {} (family '{}'), these are {}"
    assert told.format("right or wrong", "bernoulli", "probabilities") in message(suite.probability, right)
    assert told.format("probabilities", "beta", "right or wrong") in message(suite.accuracy, share)
    assert (message(suite.accuracy, right), message(suite.probability, share)) == ("", "")


def test_scenarios_that_tell_no_ability_leave_the_other_laws(suite, compute):
    values = suite.accuracy.responses.copy()
    values[:, 40:] = 1.0
    responses, both = replace(suite.accuracy, responses=values), replace(IRSL, laws=("irsl", ONE_START))
    law = pretraining_law(responses, compute, settings=both)
    found = {(row["scenario"], row["law"]) for row in law.rows()}
    assert found == {("easy", "irsl"), ("easy", "sigmoid"), ("hard", "sigmoid")}
    assert "Scenario 'hard' has no item response law: at least one item must tell models apart" in law.message
    np.testing.assert_allclose(law.forecast("hard", "sigmoid").score, 1.0, atol=1e-3)
    with pytest.raises(ParameterError, match="abilities need the law 'irsl', fitted in scenario 'hard' are 'sigmoid'"):
        _ = law.of_scenario("hard").abilities
    with pytest.raises(DataError, match="fitted to, got none"):
        pretraining_law(responses.take(items=np.arange(40, 80)), compute, settings=IRSL)
    one = suite.probability.take(items=np.array([3, 50, 60]))
    law = pretraining_law(one, compute, settings=both)
    assert list(law.of_scenario("easy").fitted) == ["sigmoid"]
    assert list(law.of_scenario("hard").fitted) == ["irsl", "sigmoid"]
    assert "items to measure an ability by must be at least 2, got one" in law.message


def test_curves_alone_calibrate_no_items(suite, compute, monkeypatch):
    def refuse(*_args, **_choices):
        raise AssertionError

    monkeypatch.setattr("itembank_scaling.scenario_fits.fit_item_model", refuse)
    law = pretraining_law(suite.probability, compute, settings=replace(SIGMOID, n_checked=1))
    assert law.names == ("sigmoid",)
    with pytest.raises(AssertionError):
        pretraining_law(suite.probability, compute, settings=IRSL)


def test_models_without_a_scenario_do_not_count_there(suite, compute):
    """The laws of a scenario are those of the models with responses alone, and the others stay as they are."""
    values = suite.probability.responses.copy()
    is_without = (suite.recipes == 1) | ((suite.recipes == 4) & (suite.params > np.unique(suite.params)[4]))
    values[np.ix_(is_without, EASY)] = np.nan
    have = suite.probability.take(models=np.flatnonzero(~is_without), items=EASY)
    law, alone = (
        pretraining_law(one, compute, target_flops=1e13, settings=replace(PLAIN, laws=("irsl", ONE_START)))
        for one in (replace(suite.probability, responses=values), have)
    )
    kept = [law.recipes.index(name) for name in alone.recipes]
    for name in ("irsl", "sigmoid"):
        of_both = law.forecast("easy", name).score[kept], alone.forecast("easy", name).score
        np.testing.assert_allclose(*of_both, rtol=1e-6)
        assert np.isnan(law.forecast("easy", name).score[1])
        assert np.isfinite(law.forecast("hard", name).score).all()
    rows = {(row["scenario"], row["recipe"]): row for row in law.rows() if row["law"] == "irsl"}
    assert rows["easy", "recipe-1"]["note"] == "no law: 0 sizes"
    assert rows["easy", "recipe-4"]["n_sizes"] == 5
    assert "Models without responses do not count in a scenario (how many): 'easy (18)'." in law.message


@pytest.mark.parametrize(
    ("spec", "wrong", "word"),
    [
        (PretrainingSettings, {"laws": ()}, "laws"),
        (PretrainingSettings, {"laws": ("irsl", "irsl")}, "laws"),
        (PretrainingSettings, {"laws": ("power",)}, "pre-training law"),
        (PretrainingSettings, {"largest_flops": 0.0}, "largest_flops"),
        (PretrainingSettings, {"fewest_sizes": 1}, "fewest_sizes"),
        (PretrainingSettings, {"n_items": 0}, "n_items"),
        (PretrainingSettings, {"n_checked": -1}, "n_checked"),
        (PretrainingSettings, {"level": 1.0}, "level"),
        (ItemResponseLaw, {"item_model": "3pl"}, "item_model"),
        (ItemResponseLaw, {"family": "normal"}, "family"),
        (ItemResponseLaw, {"pooling": "full"}, "pooling"),
        (ItemResponseLaw, {"shape": "flat"}, "shape"),
        (ItemResponseLaw, {"gap": "all"}, "gap"),
        (TwoStep, {"n_starts": 0}, "n_starts"),
        (TwoStep, {"huber_delta": 0.0}, "huber_delta"),
    ],
)
def test_specs_check_themselves(spec, wrong, word):
    with pytest.raises(ParameterError, match=word):
        spec(**wrong)


def test_nothing_of_the_larger_models_is_used_and_forecasts_stand_beside_what_they_scored(suite, compute):
    """Forecasts from the smaller sizes do not change when the larger models answer otherwise."""
    probability = suite.probability.take(items=EASY)
    data = PretrainingData.create(probability, compute, IRSL)
    cut = size_cuts(data.runs(None)[1], 3)[1]
    values = probability.responses.copy()
    values[compute.flops > cut] = 0.5
    other = replace(probability, responses=values)
    forecasts = [
        held_out_coverage(one, compute, largest=[cut], settings=IRSL).table["score"].to_numpy()
        for one in (probability, other)
    ]
    np.testing.assert_array_equal(*forecasts)
    found = held_out_coverage(suite.probability, compute, settings=replace(IRSL, fewest_sizes=5))
    means = observed_means(suite.probability)
    for row in found.rows()[::17]:
        model = int(np.flatnonzero((compute.flops == row["flops"]) & compute.in_recipe(row["recipe"]))[0])
        assert row["actual"] == pytest.approx(means[row["scenario"]][model])
        assert row["flops"] > row["largest_flops"]
        assert row["is_covered"] == (row["low"] <= row["actual"] <= row["high"])
    assert found.summary()["error"][0] == pytest.approx(np.abs(found.table["error"].to_numpy()).mean())
    assert len(found.decisions()) == 2 * 2  # scenarios x largest sizes fitted


def test_sizes_are_cut_between_those_of_recipes(suite, compute):
    _, runs = PretrainingData.create(suite.probability, compute, PLAIN).runs(None)
    finals = np.unique(compute.flops[compute.is_final])
    np.testing.assert_allclose(size_cuts(runs, 3), np.sqrt(finals[2:-1] * finals[3:]))
    one = replace(compute, recipe=None)  # all models of a size are one recipe's
    _, runs = PretrainingData.create(suite.probability, one, PLAIN).runs(None)
    np.testing.assert_allclose(size_cuts(runs, 3), np.sqrt(finals[2:-1] * finals[3:]))
    assert "--recipe-column" not in runs.message
    assert "recipe_column names another column" in runs.message


@pytest.mark.slow
def test_intervals_cover_larger_models_of_simulated_suites():
    covered = []
    for seed in range(8):
        made = simulated_suite(np.random.default_rng(seed), n_items=80)
        found = held_out_coverage(made.probability, training_compute(made.models), settings=IRSL)
        covered += found.table["is_covered"].to_list()
    assert 0.88 < np.mean(covered) < 0.99


def test_a_law_from_elsewhere_is_fitted_and_shown_like_the_others(suite, compute, monkeypatch):
    @dataclass(frozen=True)
    class Constant(PretrainingLawSpec):
        value: float = 0.5

    @dataclass(frozen=True)
    class Fitted:
        residual: np.ndarray
        value: float

        def forecast(self, log_flops, level):
            return Forecast(*np.full((4, self.residual.size, log_flops.size), self.value))

    def fit(data, spec):
        n_recipes = len(data.runs.recipes)
        return Fitted(np.zeros(n_recipes), spec.value), ("",) * n_recipes

    forget(monkeypatch, LAWS)
    LAWS.register("constant", Constant, fit)
    settings = replace(IRSL, laws=(Constant(0.7),))
    found = pretraining_law(suite.probability.take(items=EASY), compute, settings=settings)
    np.testing.assert_array_equal(found.forecast("easy").score, 0.7)
    assert {row["law"] for row in found.rows()} == {"constant"}


def test_a_warning_of_every_fit_is_given_once():
    suite = simulated_suite(np.random.default_rng(3), n_items=12, n_sizes=5, n_checkpoints=1)
    rates = np.random.default_rng(4).binomial(1, suite.probability.responses)
    n_trials = np.full(rates.shape, 20)  # the same attempt twenty times
    counts = ResponseMatrix.create(rates, n_trials=n_trials, models=suite.models, items=suite.probability.items)
    with pytest.warns() as warned:
        pretraining_law(counts, training_compute(suite.models), settings=PretrainingSettings(laws=("irsl",)))
    told = [str(one.message) for one in warned if "agree more than chance" in str(one.message)]
    assert len([one for one in told if one.startswith("attempts at one item")]) == 1
    assert told[0].endswith("(And 5 more like it.)")  # two scenarios, all sizes and two cuts
