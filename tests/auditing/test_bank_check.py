"""Banks checked on models that ran everything: what is compared, and when a bank does not suit; how far one reaches."""

import dataclasses
import datetime

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from itembank.auditing.bank_check import BankCheck, check_bank, judged
from itembank.auditing.outlook import MODELS, outlook
from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.method_trials import try_methods
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from itembank_living.publishing.without_responses import without_responses
from tests.bank.banks import make_bank
from tests.estimation.simulated import having


@pytest.fixture(scope="module")
def everyone():
    return make_bank(n_models=26, n_items=60, n_dims=1, seed=1).responses


@pytest.fixture(scope="module")
def bank(everyone):
    return calibrate(everyone.take(models=np.arange(20)), JointMAP())


@pytest.fixture(scope="module")
def new(everyone):
    return everyone.take(models=np.arange(20, 26))


@pytest.fixture(scope="module")
def check(bank, new):
    return check_bank(bank, new, sizes=[12, 20])


def test_estimates_are_those_of_the_verbs_and_truth_is_the_mean_of_all_items(check, bank, new):
    expected = estimate(bank, new, selection=select(bank, 12, rng=0)).rows()
    rows = [row for row in check.rows() if row["n_chosen"] == 12]
    for name in ("model_id", "target", "n_items", "n_total", "estimate", "low", "high"):
        assert [row[name] for row in rows] == [row[name] for row in expected]
    by_hand = [new.responses[:, new.items["scenario"] == name].mean(axis=1) for name in bank.targets.scenarios]
    truth = np.column_stack([*by_hand, np.mean(by_hand, axis=0)]).ravel()
    np.testing.assert_allclose([row["truth"] for row in rows], truth)
    np.testing.assert_allclose([row["error"] for row in rows], [row["estimate"] for row in rows] - truth)


def test_expected_errors_are_those_of_the_draw_or_those_on_the_banks_own_models(check, bank, new):
    drawn, selection = (select(bank, 20, method=method, rng=0) for method in ("drawn", "v-optimal"))
    of_draw = np.sqrt(2.0 / np.pi) * estimate(bank, new, selection=drawn).standard_error.mean(axis=0)
    trials = try_methods(Asked.of_past(bank, selection), Stacked().members).by(Stacked())
    of_past = np.abs(trials.value - trials.truth).mean(axis=0)
    for one, expected in ((check, of_draw), (check_bank(bank, new, selection=selection), of_past)):
        np.testing.assert_allclose([row["expected_error"] for row in one.rows()[-4:]], expected)


def test_a_bank_suits_models_of_its_own_kind(check):
    assert (check.suits, len(check.verdicts)) == (True, 12)
    within = [one for one in check.verdicts if "is within what the bank expects (" in one]
    outside = set(check.verdicts) - set(within)
    assert len(outside) <= 1
    assert all(
        one.endswith("By chance that is so for 5 of 100 models, often for several at a draw.") for one in outside
    )


def test_all_items_leave_no_error(bank, new):
    checked = check_bank(bank, new, selection=select(bank, 60, method="random", rng=0))
    np.testing.assert_allclose([row["error"] for row in checked.rows()], 0.0, atol=1e-12)
    assert {row["verdict"] for row in checked.rows()} == {"within"}


def test_a_model_unlike_all_others_is_found_out(bank, new):
    easy = bank.responses.responses.mean(axis=0)
    strange = having(new.take(models=np.arange(1)), ..., easy < np.median(easy))
    checked = check_bank(bank, strange, selection=select(bank, 12, method="v-optimal", rng=0))
    row = checked.rows()[-1]
    assert (row["verdict"] == "outside") == (not row["low"] <= row["truth"] <= row["high"])
    assert checked.suits == (row["verdict"] == "within")


def score(*, held, n_chosen=30, target="overall"):
    return {
        "model_id": "m", "target": target, "n_chosen": n_chosen, "n_items": 30, "n_total": 100,
        "truth": 0.5 if held else 0.6, "estimate": 0.52, "low": 0.49, "high": 0.55, "expected_error": 0.02,
    }  # fmt: skip


def checked(*scores):
    table, verdicts = judged(pl.DataFrame(scores), 0.95)
    return BankCheck("b", 0.95, table, tuple(verdicts), ())


@pytest.mark.parametrize("n_models", [1, 2, 5, 20, 100])
def test_as_many_misses_as_chance_allows_are_no_verdict(n_models):
    for n_outside in range(min(n_models, 12) + 1):
        scores = (score(held=number >= n_outside) for number in range(n_models))
        is_rare = binom.sf(n_outside - 1, n_models, 0.05) <= 0.05 + 1e-9
        assert checked(*scores).suits == (not (n_outside and is_rare))


def test_the_overall_score_decides_and_every_number_of_items_for_itself_in_sentences_in_points():
    fine = (score(held=True), score(held=False, target="math"))
    assert checked(*fine).suits
    assert not checked(*fine, score(held=False, n_chosen=100)).suits
    within, outside = checked(score(held=True), score(held=False)).verdicts
    assert within == (
        "m, 30 items: the error of 2.0 points is within what the bank expects (3.0 at 95 %; cross-validated errors "
        "of past models average 2.0)."
    )
    assert "the error of 8.0 points is outside what the bank expects (3.0 at 95 %" in outside
    assert "take more items" in outside
    assert checked(score(held=True), score(held=False)).in_brief == (
        "30 items: 1 of 2 scores are within what the bank expects, and errors average 5.0 points, against 2.0 "
        "expected. Outside: 'm'.",
    )
    assert checked(*[score(held=False)] * 2).in_brief[-1].startswith("More are outside than chance explains")


def dated(given, days):
    """A bank or responses whose models were released on these days."""
    if isinstance(given, ResponseMatrix):
        return given.with_tables(models=given.models.with_columns(released=pl.Series(days)))
    return dataclasses.replace(given, responses=dated(given.responses, days))


def test_hints_tell_of_scores_and_dates_beyond_the_banks(bank, new):
    known = dated(bank, [datetime.date(2024, 1, 1 + day) for day in range(20)])
    best = having(new.take(models=np.arange(2)), 0, 1.0)
    late = dated(best, [datetime.date(2025, 2, 3), datetime.date(2024, 1, 5)])
    hints = check_bank(known, late, selection=select(known, 12, method="random", rng=0)).hints
    first = repr(best.model_ids[0])
    assert [hint.split(" (")[0] for hint in hints] == [
        f"{first}: the overall score is above those of all past models",
        "The newest past model is of 2024-01-20.",
        f"{first}: newer than all past models.",
    ]


def test_scores_of_unfinished_runs_are_unknown_and_no_run_is_refused(bank, new):
    part = having(new, (slice(None), 0))  # one item of the first scenario
    rows = check_bank(bank, part, selection=select(bank, 12, method="random", rng=3)).rows()
    first = bank.targets.scenarios.index(bank.responses.items["scenario"][0])
    assert [row["verdict"] == "unknown" for row in rows[:4]] == [j in {first, 3} for j in range(4)]
    with pytest.raises(DataError, match=r"ran all 60 items.*\(30 missing\)"):
        check_bank(bank, having(new, (slice(None), slice(None, None, 2))))


def test_of_a_model_without_a_chosen_item_nothing_is_said_but_a_warning(bank, new):
    chosen, silent = select(bank, 12, method="random", rng=0), new.model_ids[2]
    with pytest.warns(DataWarning) as said:
        rows = check_bank(bank, having(new, (2, new.item_indices(chosen.item_ids))), selection=chosen).rows()
    assert any(f"no response to the items to be used from '{silent}'" in str(one.message) for one in said)
    assert {row["model_id"] for row in rows} == {*new.model_ids} - {silent}


@pytest.mark.parametrize("choices", [{"sizes": [0]}, {"level": 1.0}])
def test_choices_are_checked(bank, new, choices):
    with pytest.raises(ParameterError):
        check_bank(bank, new, **choices)


def test_of_one_scenario_the_overall_score_is_checked_once():
    chance = 1.0 / (1.0 + np.exp(np.linspace(-2.0, 2.0, 40) - np.linspace(-1.5, 1.5, 26)[:, None]))
    everyone = ResponseMatrix.create((np.random.default_rng(3).random((26, 40)) < chance).astype(float))
    new = everyone.take(models=np.arange(4))
    bank = calibrate(everyone.take(models=np.arange(4, 26)), JointMAP(n_dims=1))
    rows = check_bank(bank, new, sizes=[12]).rows()
    assert [(row["model_id"], row["target"]) for row in rows] == [(name, "overall") for name in new.model_ids]
    np.testing.assert_allclose([row["truth"] for row in rows], new.responses.mean(axis=1))


N_MODELS, N_ITEMS = 80, 400


@pytest.fixture(scope="module")
def simulated():
    """A bank of models with one ability, and the probability of every answer as it was drawn."""
    rng = np.random.default_rng(4)
    theta, difficulty = rng.normal(size=N_MODELS), rng.normal(0.5, 1.5, N_ITEMS)
    slope = rng.lognormal(0.4, 0.3, N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-slope * (theta[:, None] - difficulty)))
    responses = (rng.random(p.shape) < p).astype(float)
    responses[:, :7] = 0.0
    return calibrate(ResponseMatrix.create(responses), Variational(n_dims=1)), theta, difficulty, slope


def test_shares_are_those_of_the_truth_at_the_abilities_of_past_models(simulated):
    bank, theta, difficulty, slope = simulated
    ordered = np.sort(theta)
    middle, top, found = ordered[20:60].mean(), ordered[-20:].mean(), outlook(bank)
    for one, place in zip(found.ahead, (0.0, 1.0, 2.0), strict=True):
        p = 1.0 / (1.0 + np.exp(-slope * (middle + place * (top - middle) - difficulty)))[7:]
        shares = [np.mean((p > 0.1) & (p < 0.9)), np.mean(p >= 0.9), np.mean(p <= 0.1)]
        assert [one.open, one.solved, one.unsolved] == pytest.approx(shares, abs=0.07)
        assert one.open + one.solved + one.unsolved == pytest.approx(1.0)
        assert one.score == pytest.approx(p.mean(), abs=0.05)
    assert [one.models for one in found.ahead] == [row["models"] for row in found.rows()] == list(MODELS)
    assert found.n_never_solved == int((bank.responses.responses.max(axis=0) == 0.0).sum()) >= 7
    assert f"No past model solved {found.n_never_solved} of 400 items." in found.in_words
    assert f"carry {100.0 * found.ahead[0].open:.0f} % of the score" in found.in_words
    assert (found.newest, found.months_old()) == (None, None)


def test_of_counts_any_success_is_a_solution():
    rates = np.random.default_rng(0).binomial(10, np.tile([0.0, 0.2], 5), (20, 10)) / 10
    bank = calibrate(ResponseMatrix.create(rates, n_trials=np.full(rates.shape, 10)), Variational())
    assert outlook(bank).n_never_solved == 5 < int((rates.max(axis=0) <= 0.5).sum())


def test_a_bank_is_as_old_as_its_newest_model_also_when_published_without_answers(tmp_path):
    bank, newest = make_bank(n_models=20), datetime.date(2024, 1, 19)
    known = dated(bank, [None, *(datetime.date(2024, 1, 1 + day) for day in range(19))])
    assert outlook(known).newest == newest
    assert outlook(known).months_old(datetime.date(2025, 1, 18)) == pytest.approx(12.0, abs=0.02)
    save_bank(without_responses(known), tmp_path / "published")
    published = outlook(load_bank(tmp_path / "published"))
    assert (published.newest, published.ahead, published.in_words) == (newest, (), "")
    assert without_responses(bank).newest is None
