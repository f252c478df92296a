import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel

import itembank as ib
from itembank.bank.bank_files import save_bank
from itembank.bank.selections import Selection
from itembank.comparison.compare import compare
from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.pairs import model_pairs
from itembank.comparison.with_bank import pair_variance
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, held, new_models, shared_bank
from tests.estimation.test_estimands import attempted

pytestmark = pytest.mark.usefixtures("few_folds")

N_ITEMS = 60


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=40, n_items=N_ITEMS)


def new_responses(bank, n_models=4, *, n_items=30, seed=3):
    """Responses of new models to a random part of the bank's items."""
    rng = np.random.default_rng(seed)
    chances = probability(bank.parameters, rng.normal(size=(n_models, bank.calibration.n_dims)))
    values = (rng.random(chances.shape) < chances).astype(float)
    matrix = ResponseMatrix.create(values, model_ids=[f"new/{k}" for k in range(n_models)], items=bank.responses.items)
    return matrix.take(items=np.sort(rng.permutation(bank.n_items)[:n_items]))


@pytest.mark.parametrize("method", ["auto", "paired", "gp-irt", "weighted"])
def test_swapping_the_models_turns_everything_round(bank, method):
    matrix = new_responses(bank)
    one = compare(bank, matrix, models=["new/0", "new/2"], method=method, target="all")
    two = compare(bank, matrix, models=["new/2", "new/0"], method=method, target="all")
    assert one.method == ("stacked" if method == "auto" else method)
    np.testing.assert_allclose(one.difference.value, -two.difference.value, atol=1e-12)
    np.testing.assert_allclose(one.difference.low, -two.difference.high, atol=1e-12)
    np.testing.assert_allclose(one.tests.probability_b_better, 1.0 - two.tests.probability_b_better, atol=1e-12)
    np.testing.assert_allclose(one.tests.p_value, two.tests.p_value)
    np.testing.assert_array_equal(one.pairs.only_a_right, two.pairs.only_b_right)


@pytest.mark.parametrize("method", ["auto", "paired", "gp-irt"])
def test_models_that_answered_alike_are_equal(bank, method):
    matrix = new_responses(bank, 2)
    row = compare(bank, having(matrix, ..., matrix.responses[[0, 0]]), method=method).rows()[0]
    assert row["low"] <= 0.0 <= row["high"]
    found = [row[name] for name in ("difference", "probability_b_better", "p_value", "mcnemar_p")]
    assert found == pytest.approx([0.0, 0.5, 1.0, 1.0], abs=1e-12)
    assert (row["only_a_right"], row["only_b_right"]) == (0, 0)


@pytest.mark.parametrize("n_models", [8, 40])
@pytest.mark.parametrize("answers", [(1.0, 1.0), (0.0, 1.0), (0.5, 1.0)])
def test_part_of_the_items_never_gives_certainty(n_models, answers):
    """Models that differ on no shared item, or on all alike, have no spread: the rest may still go otherwise."""
    bank = make_bank(n_models=n_models, n_items=N_ITEMS)
    matrix = new_responses(bank, 2)
    row = compare(bank, having(matrix, ..., np.array(answers)[:, None]), method="paired").rows()[0]
    assert row["difference"] == pytest.approx(answers[1] - answers[0])
    if n_models < 15:
        by_one_more_of_each = np.sqrt((1 - matrix.n_items / N_ITEMS) * 2 / (matrix.n_items + 2) ** 2)
        assert row["standard_error"] == pytest.approx(by_one_more_of_each)
    assert min(row["high"] - row["low"], row["smallest_detectable_difference"]) > 1e-3
    assert row["p_value"] > 0.0


def test_all_items_give_the_exact_difference(bank):
    matrix = new_responses(bank, 3, n_items=N_ITEMS)
    found = compare(bank, matrix, target="all", estimand="run")
    scores = bank.targets.with_overall(bank.targets.scenario_means(matrix.responses))
    first, second = model_pairs(3)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(found.difference, name), scores[second] - scores[first], atol=1e-9)
    assert np.all(found.tests.probability_b_better[scores[second] > scores[first] + 1e-9] == 1.0)


def test_the_interval_leaves_out_zero_when_the_p_value_says_so(bank):
    found = compare(bank, new_responses(bank, 12), target="all", spec=ComparisonSpec(level=0.8))
    is_significant = found.tests.p_value < 0.2
    assert 0 < is_significant.sum() < is_significant.size
    np.testing.assert_array_equal(is_significant, (found.difference.low > 0.0) | (found.difference.high < 0.0))
    np.testing.assert_array_equal(found.tests.probability_b_better > 0.5, found.difference.value > 0.0)
    one_sided = np.minimum(found.tests.probability_b_better, 1.0 - found.tests.probability_b_better)
    np.testing.assert_allclose(found.tests.p_value, 2.0 * one_sided, atol=1e-12)
    assert np.all(found.tests.p_holm >= found.tests.p_value)


def test_a_higher_level_and_power_need_more(bank):
    choices = [{"level": 0.8}, {"level": 0.95}, {"level": 0.8, "power": 0.9}]
    found = [compare(bank, new_responses(bank, 2), method="paired", **one) for one in choices]
    widths = [(one.difference.high - one.difference.low)[0, 0] for one in found]
    assert widths[0] == widths[2] < widths[1]
    assert found[2].tests.smallest_detectable_difference[0, 0] > found[0].tests.smallest_detectable_difference[0, 0]


def test_few_calibration_models_leave_the_paired_t_test():
    few = make_bank(n_models=8, n_items=N_ITEMS)
    matrix = new_responses(few, 2)
    matrix = matrix.take(items=np.flatnonzero((matrix.items["scenario"] == "math").to_numpy()))
    found, n, size = compare(few, matrix, target="math"), matrix.n_items, int(few.targets.scenario_sizes[0])
    assert (found.method, found.interval_kind) == ("paired", "classical")
    error = np.std(matrix.responses[1] - matrix.responses[0], ddof=1) / np.sqrt(n) * np.sqrt(1 - n / size)
    value, standard_error, _, high = np.array(found.difference)[:, 0, 0]
    assert (standard_error, high - value) == pytest.approx((error, student.ppf(0.975, n - 1) * error))
    assert found.reference.paired_t_p[0, 0] == pytest.approx(ttest_rel(*matrix.responses).pvalue)


def test_models_that_answered_unlike_past_ones_are_named_and_known_worse(bank):
    matrix = new_responses(bank, 3)
    # the hardest items right, the easiest wrong: no past model answered so
    means = np.nanmean(bank.responses.responses, axis=0)[bank.responses.item_indices(matrix.item_ids)]
    found = compare(bank, having(matrix, 2, means < np.median(means)))
    assert "new/2" in found.flagged_models
    flagged = next(row for row in found.rows() if (row["model_a"], row["model_b"]) == ("new/1", "new/2"))
    assert flagged["typicality_b"] == found.typicality.typicality[2] < 0.1
    assert "model_b answered unlike most past models" in flagged["note"]
    assert found.notes == ()
    assert flagged["standard_error"] > 1.02 * compare(bank, matrix).rows()[2]["standard_error"]
    assert compare(bank, matrix, method="paired").rows()[0]["typicality_a"] is None


def test_different_items_widen_the_interval_and_say_so(bank):
    matrix = new_responses(bank, 2)
    apart = having(matrix, ([[0], [1]], [np.arange(8), np.arange(8, 16)]))
    row, usual = compare(bank, apart).rows()[0], compare(bank, matrix).rows()[0]
    assert row["standard_error"] > usual["standard_error"]
    assert ("different items" in row["note"], usual["note"]) == (True, "")
    assert (row["n_items_a"], row["n_items_b"], row["n_shared_items"]) == (22, 22, 14)


def test_errors_are_learned_on_the_items_that_at_least_half_of_the_models_answered(bank):
    matrix = having(new_responses(bank, 4), ([1, 2, 3, 2, 3, 3], [0, 0, 0, 1, 1, 2]))
    assert ComparedModels.create(bank, matrix, None, "overall").common().tolist() == [False, *[True] * 29]


def test_rows_and_ranking_hold_every_pair_and_model_once(bank):
    found = compare(bank, new_responses(bank, 5), target=["overall", "law"])
    rows = found.rows()
    assert len({(row["model_a"], row["model_b"], row["target"]) for row in rows}) == len(rows) == 20
    ranking = found.ranking.rows()
    assert [row["rank"] for row in ranking] == [1, 2, 3, 4, 5] * 2
    assert sorted(row["model_id"] for row in ranking[:5]) == [f"new/{k}" for k in range(5)]
    assert np.all(np.diff([row["score"] for row in ranking[:5]]) <= 0.0)
    matrix = new_responses(bank, 2)
    found = compare(bank, having(matrix, ..., np.clip(matrix.responses, 0.2, 0.7)))
    assert np.isnan(found.reference.mcnemar_p).all()
    assert np.isfinite([found.reference.paired_t_p, found.tests.p_value]).all()


def test_a_model_far_better_is_in_a_group_of_its_own(bank):
    matrix = new_responses(bank, 4)
    values = matrix.responses * (np.arange(30) % 3 == 0)
    values[2] = 1.0
    first, second, *_ = compare(bank, having(matrix, ..., values)).ranking.rows()
    assert (first["model_id"], first["n_in_group"], second["group"]) == ("new/2", 1, 2)


def random_sample(bank, items):
    """A selection of these items of a table that says that chance chose them."""
    weights = np.ones(items.height)
    return Selection(tuple(items["item_id"]), tuple(items["scenario"]), weights, "random", bank.bank_id)


def test_only_the_items_of_the_selection_count_and_missing_ones_are_told_once(bank):
    matrix = new_responses(bank, 2)
    found = compare(bank, matrix, selection=random_sample(bank, matrix.items[:12]), method="paired")
    cut = compare(bank, matrix.take(items=np.arange(12)), method="paired")
    assert found.pairs.n_shared_items[0, 0] == 12
    np.testing.assert_allclose(found.difference.value, cut.difference.value)
    with pytest.warns(DataWarning, match="of the 30 items") as told:
        compare(bank, matrix, selection=random_sample(bank, bank.responses.items[:30]))
    assert len(told) == 1


def test_other_items_and_another_process_need_no_other_factors(bank, tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "user"))
    save_bank(bank, tmp_path / "bank")
    compare(tmp_path / "bank", new_responses(bank, 2, n_items=20))
    expected = compare(bank, new_responses(bank, 2, n_items=30)).difference
    for name in ("fit_factor_model", "measure_discrepancy"):
        monkeypatch.setattr(f"itembank.bank.norms.{name}", lambda *_, **__: pytest.fail("fitted again"))
    found = compare(tmp_path / "bank", new_responses(bank, 2, n_items=30)).difference
    np.testing.assert_allclose(found.low, expected.low, rtol=1e-9)


@pytest.mark.parametrize(
    ("choices", "error", "text"),
    [
        ({"models": ["new/0", "new/9"]}, DataError, "new/9"),
        ({"models": ["new/0", "new/0"]}, ParameterError, "named once"),
        ({"models": ["new/0"]}, ParameterError, "at least two models"),
        ({"target": "history"}, ParameterError, "history"),
        ({"target": []}, ParameterError, "target"),
        ({"method": "magic"}, ParameterError, "paired"),
        ({"level": 1.0}, ParameterError, "level must be between 0 and 1"),
        ({"level": float("nan")}, ParameterError, "level"),
        ({"power": 0.0}, ParameterError, "power must be between 0 and 1"),
        ({"estimand": "expected"}, ParameterError, "'expected' is now called 'repeated': repeated runs"),
        ({"levle": 0.9}, ParameterError, r"got 'levle'\. Did you mean 'level'\?"),
    ],
)
def test_what_cannot_be_compared_is_refused(bank, choices, error, text):
    with pytest.raises(error, match=text):
        compare(bank, new_responses(bank, 3), **choices)


def test_fewer_than_ten_past_models_need_items_that_chance_drew():
    whole, chosen, new = chosen_and_run(9, 0)
    for method in ("auto", "gp-irt"):
        with pytest.raises(DataError, match=r"'v-optimal' chose need past models, but 9 past models are too few"):
            compare(whole, new, selection=chosen, method=method)
    drawn = ib.select(whole, 20, rng=0)
    (row,) = compare(whole, new, models=new.model_ids[:2], selection=drawn).rows()
    assert (row["method"], row["interval"], row["note"]) == ("design-based", "design", "")
    (row,) = compare(whole, new.take(items=new.item_indices(drawn.item_ids)), models=new.model_ids[:2]).rows()
    assert (row["method"], row["interval"]) == ("paired", "classical")
    assert "items as a random sample, since 9 past models are too few" in row["note"]
    everything = ib.select(whole, 150, method=ib.selectors.AnchorCorrectness(allow_degenerate=True), rng=0)
    assert compare(whole, new, selection=everything, estimand="run").is_exact


def test_raw_differences_are_of_items_that_chance_drew():
    whole, chosen, new = chosen_and_run(30, 0)
    with pytest.raises(DataError, match=r"'v-optimal' chose are not raw ones.*take another method than 'paired'"):
        compare(whole, new, selection=chosen, method="paired")
    drawn = ib.select(whole, 20, rng=0)
    (row,) = compare(whole, new, models=new.model_ids[:2], selection=drawn, method="paired").rows()
    assert (row["method"], row["interval"]) == ("paired", "classical")
    assert row["note"] == "the intervals take the items as a random sample"
    assert row["difference"] == pytest.approx(row["raw_difference"])


def test_models_of_other_items_and_repeated_runs_without_attempts_are_refused(bank):
    apart = having(new_responses(bank, 3), ([[0], [1]], [np.arange(15), np.arange(15, 30)]))
    with pytest.raises(DataError, match=r"new/0 and new/1.*same selection"):
        compare(bank, apart)
    with pytest.raises(DataError, match="repeated attempts"):
        compare(shared_bank(), new_models(shared_bank()), estimand="repeated")


def true_differences(found, score):
    """Of all pairs that were compared, as a column."""
    return (score[found.pairs.second] - score[found.pairs.first])[:, None]


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
@pytest.mark.parametrize(
    ("method", "n_items", "missing"),
    [("auto", 20, 0), ("paired", 20, 0), ("auto", 60, 0), ("auto", 40, 0.1), ("auto", 40, 0.5), ("paired", 40, 0.1)],
)
def test_intervals_cover_true_differences(method, n_items, missing):
    inside, rejected = [], []
    for seed in range(12):
        whole = make_bank(n_models=60, n_items=240, seed=seed)
        answers, rng = new_responses(whole, 24, n_items=240, seed=seed + 100), np.random.default_rng(seed)
        answered = answers.take(items=np.sort(rng.permutation(240)[:n_items]))
        if missing:
            answered = having(answered, rng.random(answered.responses.shape) < missing)
        found = compare(whole, answered, method=method)
        truth = true_differences(found, answers.responses @ whole.targets.overall_weights)
        inside.append(held(found.difference, truth).mean())
        rejected.append(np.mean((found.tests.p_value < 0.05) & (np.sign(found.difference.value) != np.sign(truth))))
    assert 0.93 <= np.mean(inside) <= (0.985 if missing else 0.99)
    assert np.mean(rejected) < 0.025


def chosen_and_run(n_models, seed, *, method="v-optimal", shift=0.0):
    """A bank of few past models, 20 items that it chose, and what new models, better or worse, answered to all."""
    rng = np.random.default_rng(seed)
    slopes, places = rng.lognormal(0.0, 0.5, 150), rng.normal(0.0, 1.2, 150)
    ability = rng.normal(size=n_models + 12) + shift * (np.arange(n_models + 12) >= n_models)
    right = rng.random((ability.size, 150)) < 1.0 / (1.0 + np.exp(-slopes * (ability[:, None] - places)))
    every = ResponseMatrix.create(right.astype(float), item_ids=[f"q{k:03d}" for k in range(150)])
    whole = ib.calibrate(every.take(models=np.arange(n_models)))
    return whole, ib.select(whole, 20, method=method, rng=0), every.take(models=np.arange(n_models, ability.size))


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
@pytest.mark.parametrize(("n_models", "shift"), [(10, 0.0), (12, -2.0), (14, 2.0)])
def test_few_past_models_do_not_take_chosen_items_for_a_random_sample(n_models, shift):
    """Also for models that are worse, or better, than past ones; the raw difference would err by twice as much."""
    inside, errors, raw = [], [], []
    for seed in range(24):
        whole, chosen, new = chosen_and_run(n_models, seed, shift=shift)
        found, score = compare(whole, new, selection=chosen), new.responses.mean(axis=1)
        truth = true_differences(found, score)
        inside.append(held(found.difference, truth).mean())
        errors.append(np.mean(np.abs(found.difference.value - truth)))
        raw.append(np.mean(np.abs(found.pairs.raw_difference - truth)))
        estimates = ib.estimate(whole, new, selection=chosen).value[:, -1]
        np.testing.assert_allclose(found.difference.value, true_differences(found, estimates), atol=1e-9)
    assert np.mean(inside) > 0.93
    assert np.mean(raw) > 1.3 * np.mean(errors)


def test_runs_of_two_models_are_independent():
    bank = shared_bank()
    answers, _, _ = attempted(bank, 5, n_models=3)
    found = pair_variance(bank, Asked.of(bank, answers, None).observations, answers)
    # the variances of the three models, from those of their three pairs
    single = np.linalg.solve([[1, 1, 0], [1, 0, 1], [0, 1, 1]], found[:, -1])
    rates, weights = answers.responses, bank.targets.target("overall").weights
    np.testing.assert_allclose(single, (rates * (1.0 - rates) / 4.0) @ weights**2, rtol=0.3)


def test_models_that_answered_everything_differ_for_certain_only_in_this_run():
    bank = shared_bank()
    answers, _, _ = attempted(bank, 5, n_models=4)
    spread = {}
    for estimand in ("run", "repeated", "questions"):
        found = compare(bank, answers, method="paired", estimand=estimand)
        spread[estimand] = found.difference.high - found.difference.low
        assert found.rows()[0]["estimand"] == estimand
    assert np.all(spread["run"] == 0.0)
    assert np.all(np.minimum(spread["repeated"], spread["questions"]) > 0.0)


def full_runs(bank, n_models=4):
    return new_responses(bank, n_models, n_items=bank.n_items)


def test_full_runs_are_compared_for_questions_like_these_by_a_paired_t(bank):
    """Per scenario, put together with the scenarios' weights; the bank's past models have no say."""
    matrix = having(full_runs(bank), ..., np.random.default_rng(1).random((4, N_ITEMS)))
    found = compare(bank, matrix, target="all")
    assert (found.estimand, found.is_exact) == ("questions", False)
    variance = 0.0
    for t, weight in enumerate(bank.targets.scenario_weights):
        one, other = matrix.responses[:2, bank.targets.scenario_index == t]
        test = ttest_rel(other, one)
        ends = test.confidence_interval(0.95)
        assert (found.difference.low[0, t], found.difference.high[0, t]) == pytest.approx((ends.low, ends.high))
        assert found.tests.p_value[0, t] == pytest.approx(test.pvalue)
        variance += weight**2 * np.var(other - one, ddof=1) / one.size
    assert found.difference.standard_error[0, -1] == pytest.approx(np.sqrt(variance))


def test_nearly_full_runs_are_no_exact_ones(bank):
    matrix = full_runs(bank, 2)
    full, gaps = compare(bank, matrix), compare(bank, matrix.take(items=np.arange(1, N_ITEMS)))
    assert (full.estimand, gaps.estimand) == ("questions", "questions")
    widths = [(one.difference.high - one.difference.low)[0, 0] for one in (full, gaps)]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    half = matrix.take(items=np.arange(0, N_ITEMS, 2))
    run, questions = compare(bank, half), compare(bank, half, estimand="questions")
    assert run.estimand == "run"
    np.testing.assert_array_equal(run.difference.value, questions.difference.value)
    assert np.all(questions.difference.standard_error > run.difference.standard_error)


@pytest.mark.filterwarnings("ignore:items of .* are not skill")  # past models answer by chance
@pytest.mark.parametrize("attempts", [1, 4])
def test_the_same_two_full_runs_have_the_interval_of_a_gate(attempts):
    """Without a bank, with one of one scenario, and in a gate: also of answers that hardly differ, or not at all."""
    rng = np.random.default_rng(attempts)
    bank = ib.calibrate(ResponseMatrix.create((rng.random((12, 80)) < 0.6).astype(float)))
    rates = rng.beta(1.0, 0.7, 80)
    for changes in (0, 1, 12, 60):
        counts = rng.binomial(attempts, rates)[None].repeat(2, axis=0)
        places = rng.choice(80, changes, replace=False)
        counts[1, places] = attempts - counts[1, places]
        both = ResponseMatrix.from_counts(counts, np.full((2, 80), attempts), model_ids=["a", "b"])
        one, other = (both.take(models=np.array([row])) for row in (0, 1))
        for estimand in ("run", "questions") if attempts == 1 else ("run", "repeated", "questions"):
            gate = ib.gate(one, other, estimand=estimand)
            assert gate.estimand == estimand
            alone = compare(one, other, estimand=estimand)
            found = [alone, compare(both, estimand=estimand)]
            # a bank's item model says how answers vary from run to run, and rare changes of graded answers have no
            # floor with a bank
            if estimand == "run" or (estimand == "questions" and (attempts == 1 or changes in {0, 60})):
                found.append(compare(bank, both, estimand=estimand))
            for scores in (each.difference for each in found):
                ends = scores.value[0, 0], scores.low[0, 0], scores.high[0, 0]
                assert ends == pytest.approx((gate.difference, gate.low, gate.high), abs=1e-8)
            assert alone.is_exact == (estimand == "run")
        assert compare(one, other).difference.low == pytest.approx(ib.gate(one, other).low)


def test_of_this_run_nothing_is_tested(bank):
    found = compare(bank, full_runs(bank), estimand="run")
    assert (found.is_exact, found.is_clear.any()) == (True, False)
    assert np.isnan([found.tests.p_value, found.tests.smallest_detectable_difference]).all()
    rows = found.ranking.rows()
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in rows)
    scores = np.sort(found.ranking.score[:, 0])[::-1]
    assert [row["rank_low"] for row in rows] == (1 + np.searchsorted(-scores, -scores - 1e-9)).tolist()
