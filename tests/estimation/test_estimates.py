"""Typicality against counting, the binomial distribution, and models that are made unusual on purpose."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student

from itembank.bank.past_models import PastModels
from itembank.errors import DataWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import Scores, Typicality, joined, placed, typicality_among
from itembank.estimation.notes import beyond_past, notes_on_unlike
from itembank.estimation.observations import Observations
from itembank.estimation.own_means import Places, _means, own_means
from itembank.planning.select import select
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from itembank_living.publishing.without_responses import without_responses
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, held, new_models, shared_bank, small_bank

pytestmark = pytest.mark.usefixtures("few_folds")


def test_typicality_is_the_fraction_that_fitted_no_better():
    past, new = np.array([0.5, 1.0, 1.0, 2.0, np.nan]), np.array([0.4, 1.0, 1.5, 3.0, np.nan])
    np.testing.assert_allclose(typicality_among(past, new), [1.0, 0.75, 0.25, 0.0, np.nan])
    assert np.isnan(typicality_among(np.full(12, np.nan), np.ones(3))).all()
    flagged = [Typicality.unknown(3)._replace(typicality=np.array(one)) for one in ([np.nan] * 3, [0.1, 0.05, np.nan])]
    np.testing.assert_array_equal([one.is_flagged for one in flagged], [[False] * 3, [False, True, False]])


def test_months_ahead_count_from_the_newest_past_model():
    bank = shared_bank()
    dates = pl.Series(["2024-01-31", *(["2023-05-01"] * (bank.n_models - 1))])
    dated = dataclasses.replace(bank.responses, models=bank.responses.models.with_columns(date=dates))
    models = pl.DataFrame({"model_id": ["a", "b", "c"], "released": ["2024-07-31", None, "2023-10-31"]})
    responses = dataclasses.replace(bank.responses.take(models=np.arange(3)), models=models)
    dated = dataclasses.replace(bank, responses=dated)
    found = estimate(dated, responses)
    np.testing.assert_allclose(found.typicality.months_ahead, [6.0, np.nan, -3.0], atol=0.03)
    assert [row["months_ahead"] is None for row in found.rows()[:: len(found.targets)]] == [False, True, False]
    assert np.isnan(estimate(bank, responses).typicality.months_ahead).all()


def test_models_that_answer_like_no_other_are_flagged_and_get_wider_intervals(rng):
    bank = shared_bank()
    chance = np.repeat([[1.0], [-1.0]], 6, axis=0) * (bank.responses.responses.mean(axis=0) - 0.5) + 0.5
    names = [f"usual {k}" for k in range(6)] + [f"reversed {k}" for k in range(6)]  # right where others are wrong
    answers = (rng.random(chance.shape) < chance).astype(float)
    seen = rng.permutation(bank.n_items)[: bank.n_items // 2]
    responses = ResponseMatrix.create(answers[:, seen], model_ids=names, items=bank.responses.items[seen])
    found = estimate(bank, responses)
    assert set(found.flagged_models) >= set(names[6:])
    assert np.median(found.typicality.misfit[6:]) > 1.4 * np.median(found.typicality.misfit[:6])
    half = (found.high - found.low)[:, -1]
    assert np.median(half[6:]) > np.median(half[:6])


def numbered(n_models, n_targets, start=0.0):
    """Scores whose every number is another."""
    size = n_models * n_targets
    return Scores(*(start + 100.0 * k + np.arange(size).reshape(n_models, n_targets) for k in range(4)))


def test_groups_of_models_come_together_and_targets_behind_each_other():
    whole = numbered(3, 2)
    parts = [Scores(*(array[rows] for array in whole)) for rows in (slice(0, 1), slice(1, 3))]
    np.testing.assert_array_equal(np.array(joined(parts)), np.array(whole))
    found = placed([(np.array([2]), parts[0]), (np.array([0]), whole.take(np.array([2])))], 3)
    np.testing.assert_array_equal(found.high[[2, 0]], whole.high[[0, 2]])
    mixed = whole.where(np.array([False, True, False]), found)
    assert np.isnan(np.array([found, mixed])[:, :, 1]).all()
    np.testing.assert_array_equal(mixed.low[[0, 2]], whole.low[[0, 2]])
    whole, more = numbered(3, 4), numbered(3, 1, start=0.5)
    both = whole.with_targets(more)
    np.testing.assert_array_equal(np.array(both.targets(slice(0, 4))), np.array(whole))
    np.testing.assert_array_equal(np.array(both.targets(np.array([4]))), np.array(more))


PAST = PastModels(("a", "b", "c"), np.array([0.3, np.nan, 0.6]))


@pytest.fixture(scope="module")
def estimates():
    """Of three models, from twelve items that were not drawn by chance."""
    bank, answers = shared_bank(), np.stack([np.ones(12), np.zeros(12), np.arange(12) % 2])
    new = ResponseMatrix.create(answers, item_ids=bank.item_ids[:12], model_ids=["right", "wrong", "half"])
    return estimate(bank, new)


def with_scores(estimates, *values, typicality=(0.5, 0.5, 0.5), half=0.1):
    value = np.tile(np.array(values)[:, None], len(estimates.targets))
    scores = estimates.scores._replace(value=value, low=value - half, high=value + half)
    typical = Typicality.unknown(3)._replace(typicality=np.array(typicality))
    return dataclasses.replace(estimates, scores=scores, typicality=typical)


def test_each_kind_is_said_once_with_the_drawn_items_that_would_settle_it(estimates):
    made = with_scores(estimates, 0.61, 0.29, 0.5, typicality=(0.5, 0.5, 0.09))
    found = notes_on_unlike(made, PAST, 3)
    assert [(one.kind, *one.models) for one in found] == [("better", "right"), ("worse", "wrong"), ("unlike", "half")]
    how = "and the interval holds for models like these. 12 items drawn by `select` would settle it."
    assert found[0].text == f"better than all 3 past models, {how}"
    assert {one.more.partition(". ")[0].rstrip(".") for one in found} == {"select(bank, 12, method='drawn')"}
    assert found[1].text == f"worse than all 3 past models, {how}"
    assert found[2].text == f"answered unlike nearly all of the 3 past models (typicality below 0.1), {how}"
    unnamed = notes_on_unlike(made, PAST, 3, are_named=False)
    assert "If these items were drawn, give their selection; if not: 12 items drawn by `select`" in unnamed[0].text
    assert unnamed[0].more == "selection=..., or select(bank, 12, method='drawn')."
    none_to_draw = notes_on_unlike(made, PAST, 3, can_draw=False)[0].text
    assert none_to_draw == "better than all 3 past models, and the interval holds for models like these."


def test_a_model_that_no_past_one_beats_on_its_items_is_named_although_its_estimate_is_below_the_best(estimates):
    """Always right, with 40 V-optimal items: 100 points were estimated as 88 +- 8, without a word."""
    past = np.where(np.arange(40)[:, None] < 39, np.arange(12) < np.arange(40)[:, None] / 4, np.nan)
    bank = SimpleNamespace(published=None, responses=ResponseMatrix.create(past))
    rows = np.array([[1.0] * 12, [0.0] * 12, [1.0] * 6 + [0.0] * 6, [1.0] * 5 + [np.nan] * 7])
    new = Observations.of_items(rows, np.arange(12), np.ones(12), is_random=False)
    np.testing.assert_array_equal(beyond_past(bank, new), [1, -1, 0, 0])  # a half of the past models had all five right
    said = notes_on_unlike(with_scores(estimates, 0.6, 0.3, 0.5), PAST, 3, np.array([1, -1, 0]))
    assert [(one.kind, *one.models) for one in said] == [("better", "right"), ("worse", "wrong")]
    assert said[0].text.startswith("on such items no past model did better, and the interval holds for models like")


def test_nothing_is_said_where_an_interval_holds_or_nothing_is_known(estimates):
    assert notes_on_unlike(with_scores(estimates, 0.6, 0.3, 0.5, typicality=(0.1, 0.5, np.nan)), PAST, 3) == []
    apart = with_scores(estimates, 0.9, 0.1, 0.5)
    assert notes_on_unlike(apart, PastModels((), np.zeros(0)), 3) == []
    assert notes_on_unlike(dataclasses.replace(apart, interval_kind="design"), PAST, 3) == []
    # past models themselves are not compared with each other
    assert [one.kind for one in notes_on_unlike(apart, PAST._replace(names=("right", "b", "c")), 3)] == ["worse"]
    (note,) = notes_on_unlike(with_scores(estimates, 0.9, 0.4, 0.5, half=0.0), PAST, 3)
    assert note.text == "better than all 3 past models."  # of a score that is known no interval is spoken of


def test_drawn_items_of_any_model_bring_no_such_note_and_others_do():
    bank, answers = shared_bank(), np.stack([np.ones(20), np.zeros(20)])
    for method, expected in (("drawn", set()), ("v-optimal", {"better", "worse"})):
        selection = select(bank, 20, method=method, rng=0)
        new = ResponseMatrix.create(answers, item_ids=list(selection.item_ids), model_ids=["best", "worst"])
        kinds = {one.kind for one in estimate(bank, new, selection=selection).notes}
        assert kinds & {"better", "worse"} == expected


def test_one_model_is_told_beside_a_plain_random_sample():
    """Wilson's interval of the estimate from as many items of a finite number, as in the books (z = 1.96)."""
    bank, items = shared_bank(), np.arange(0, 30, 3)
    model = new_models(bank).take(models=np.array([0]))
    found = estimate(bank, model.take(items=items))
    p, n = found.value[0, -1], items.size * (bank.n_items - 1) / (bank.n_items - items.size)
    half = 1.96 / (1 + 1.96**2 / n) * np.sqrt(p * (1 - p) / n + 1.96**2 / (4 * n**2))
    assert found.plain_half_width == pytest.approx(half, rel=1e-3)
    words = f"from {items.size} of {bank.n_items} items; a plain random sample would say ±{100 * half:.1f}"
    assert found.sentence.endswith(words)
    # not where all is known, nor of graded answers, which would look worse than they are: grades vary less
    for other in (model, having(model, ..., 0.25 + model.responses / 2.0).take(items=items)):
        found = estimate(bank, other)
        assert (np.isnan(found.plain_half_width), "plain" in found.sentence) == (True, False)


def some_of(bank, answers, columns, **tables):
    """Answers (n_models, n_items) to some of the bank's items."""
    ids, names = [bank.item_ids[column] for column in columns], [f"new-{k}" for k in range(len(answers))]
    return ResponseMatrix.create(answers[:, columns], item_ids=ids, model_ids=names, **tables)


def test_answers_to_all_items_have_their_scores_for_means(rng):
    bank, answers = make_bank(), (rng.random((3, 30)) < 0.6) * 1.0
    found = own_means(bank, some_of(bank, answers, np.arange(30)), level=0.95)
    expected = bank.targets.with_overall(bank.targets.scenario_means(answers))
    np.testing.assert_allclose(np.array(found.scores)[[0, 2, 3]], [expected] * 3, atol=1e-12)
    assert (found.is_complete.all(), found.is_pooled.any()) == (True, False)


def test_a_scenario_of_one_answer_or_none_leaves_one_mean_over_all_answers():
    bank, answers = make_bank(), np.full((2, 30), np.nan)
    answers[0, [0, 3, 1]] = [1.0, 0.0, 1.0]
    answers[1, [0, 3, 1, 4, 2, 5]] = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    found = own_means(bank, some_of(bank, answers, np.arange(30)), level=0.95)
    np.testing.assert_array_equal(found.is_pooled, [True, False])
    assert np.isnan(found.scores.value[0, :-1]).all()
    assert found.scores.value[0, -1] == pytest.approx(2.0 / 3.0)
    np.testing.assert_allclose(found.scores.value[1], [0.5, 1.0, 0.0, 0.5])
    np.testing.assert_array_equal(found.n_answers, [3, 6])


def test_intervals_cover_where_items_are_a_random_draw(rng):
    bank = make_bank(n_items=300)
    answers = (rng.random((200, 300)) < 1.0 / (1.0 + np.exp(-rng.normal(0.8, 1.5, 300)))) * 1.0
    truth, covered = bank.targets.with_overall(bank.targets.scenario_means(answers)), []
    for n_items in (15, 45, 120):
        drawn = np.full(answers.shape, np.nan)
        for row in range(len(answers)):
            columns = rng.choice(300, n_items, replace=False)
            drawn[row, columns] = answers[row, columns]
        found = own_means(bank, some_of(bank, drawn, np.arange(300)), level=0.9).scores
        covered.append(held(found, truth)[:, -1].mean())
    assert 0.85 < min(covered) <= max(covered) < 0.99


def scores_of(answers, level):
    """Of one model, to items of one scenario without end: no finite-population correction."""
    n, size = len(answers), 10**9
    places = Places(np.zeros(n, int), np.full(n, 1 / size), np.array([size]), np.ones(1), True)
    return _means(np.asarray(answers)[None], places, np.ones(1), level)


def test_all_right_and_half_right_have_wilsons_interval_with_the_quantile_of_t():
    for n in (5, 30):
        found, t2 = scores_of(np.ones(n), 0.95), student.ppf(0.975, n - 1) ** 2  # n / (n + z^2), by the quantile of t
        np.testing.assert_allclose(found.low[0], n / (n + t2), rtol=1e-6)
        np.testing.assert_allclose(found.high[0], 1.0)
    found, expected = scores_of(np.tile([0.0, 1.0], 200), 0.9), binomtest(200, 400).proportion_ci(0.9, method="wilson")
    np.testing.assert_allclose([found.low[0, -1], found.high[0, -1]], [expected.low, expected.high], atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.03, 0.3, 0.97])
@pytest.mark.parametrize(("n_scenarios", "n_each"), [(5, 2), (5, 6), (5, 20)])
def test_intervals_of_the_overall_mean_hold(mean, n_scenarios, n_each):
    rng, size, covered = np.random.default_rng(1), 200, []
    index, shares = np.repeat(np.arange(n_scenarios), n_each), np.full(n_scenarios, 1.0 / n_scenarios)
    places = Places(index, np.full(index.size, 1 / size), np.full(n_scenarios, size), shares, True)
    for _ in range(150):
        p = rng.beta(4 * mean, 4 * (1 - mean), (n_scenarios, size))
        y = (rng.random((12, n_scenarios, size)) < p).astype(float)
        found = _means(y[:, :, :n_each].reshape(12, -1), places, np.ones(n_scenarios), 0.95)  # items are exchangeable
        covered.append(held(found, y.mean(axis=(1, 2))[:, None], 1e-9)[:, -1])
    assert np.mean(covered) > 0.93


def test_a_full_run_says_its_own_score_first_and_a_selection_is_estimated_all_the_same(rng):
    bank, answers = small_bank(n_models=30, n_items=60), (rng.random((1, 60)) < 0.5) * 1.0
    full = some_of(bank, answers, np.arange(60))
    score = 100.0 * float(bank.targets.scenario_means(answers)[0] @ bank.targets.scenario_weights)
    assert estimate(bank, full).notes[0].text == f"answered all 60 items: its score is {score:.1f} points."
    chosen = select(bank, 20, method="random")
    found = estimate(bank, full, selection=chosen)
    assert found.notes[0].kind == "own-score"
    assert found.notes[0].text.endswith(" points, and the estimate rests on 20 of them.")
    assert found.rows()[-1]["note"].startswith("Answered all 60 items: its score is")
    some = estimate(bank, full.take(items=full.item_indices(list(chosen.item_ids))), selection=chosen)
    np.testing.assert_array_equal(found.value, some.value)
    assert not any(note.kind == "own-score" for note in some.notes)


def published(*, scenarios=True):
    made = make_bank(n_models=30, n_items=60, n_dims=1)
    bank = dataclasses.replace(made, calibration=dataclasses.replace(made.calibration, thresholds={}, tolerance=1e-3))
    kept = without_responses(bank, selections=[select(bank, 12)], only_chosen=True)
    assert kept.n_items < kept.n_total == 60
    return bank, kept, bank.responses.items.select("item_id", *(["scenario"] if scenarios else []))


@pytest.mark.parametrize("scenarios", [True, False])
def test_a_full_run_of_a_bank_that_keeps_some_items_is_its_score_by_the_number_of_items(scenarios, rng):
    bank, kept, table = published(scenarios=scenarios)
    answers = (rng.random((1, 60)) < 0.5) * 1.0
    found = estimate(kept, ResponseMatrix.create(answers, items=table, model_ids=["new"]))
    expected = bank.targets.with_overall(bank.targets.scenario_means(answers))
    if scenarios:
        np.testing.assert_allclose([found.value, found.low, found.high], [expected] * 3, atol=1e-12)
        np.testing.assert_array_equal(found.n_items[0], found.n_total)
        assert "its score is" in found.notes[0].text
    else:
        assert f"plain mean is {100.0 * answers.mean():.1f} points, but the score is a mean of" in found.notes[0].text
        assert found.n_items[0, -1] == 12


def test_answers_to_items_that_a_published_bank_does_not_have_are_named(rng):
    """The bank finds by itself which of its items were run; a misspelt one was left out without a word."""
    made = make_bank(n_models=30, n_items=60, n_dims=1)
    kept = without_responses(made, selections=[select(made, 12)])
    ids = [*kept.own_selections[0].item_ids, "q-strange"]
    new = ResponseMatrix.create((rng.random((1, 13)) < 0.5) * 1.0, item_ids=ids, model_ids=["new"])
    with pytest.warns(DataWarning, match=r"1 of 13 items are not in bank .* and are left out: 'q-strange'"):
        estimate(kept, new)


@pytest.mark.filterwarnings("ignore:of the 12 items of the selection some")
def test_a_random_part_says_its_mean_beside_the_estimate(rng):
    _, kept, table = published()
    rows = np.sort(rng.choice(60, 40, replace=False))
    part = ResponseMatrix.create((rng.random((1, 40)) < 0.5) * 1.0, items=table[rows], model_ids=["new"])
    found, own = estimate(kept, part), own_means(kept, part, level=0.95)
    (note,) = [one for one in found.notes if one.kind == "own-mean"]
    used = int(found.n_items[0, -1])
    value, low, high = (100.0 * float(one[0, -1]) for one in (own.scores.value, own.scores.low, own.scores.high))
    assert note.text.startswith(f"answered 40 of 60 items, {used} of which count here. If its items are a random draw")
    assert f"mean says {value:.1f} points ({low:.1f} to {high:.1f}), which is" in note.text
    is_narrower = high - low < 100.0 * float(found.high[0, -1] - found.low[0, -1])
    assert ("narrower" if is_narrower else "wider") in note.text
    # what is left of answers that were lost is no random draw
    n = np.zeros((1, 60), dtype=np.int64)
    n[0, ::3] = 1
    values = np.where(n > 0, np.nan, (rng.random((1, 60)) < 0.5) * 1.0)
    part = ResponseMatrix.create(values, items=table, model_ids=["new"], lost=LostAnswers(n, 3 * n))
    assert not [one for one in estimate(kept, part).notes if one.kind == "own-mean"]
    assert [one for one in estimate(kept, part, errors="wrong").notes if one.kind == "own-score"]
