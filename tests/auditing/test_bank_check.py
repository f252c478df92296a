"""Banks checked on models that ran everything: what is compared, and when a bank does not suit."""

import dataclasses
import datetime

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from itembank.auditing.bank_check import BankCheck, check_bank, judged
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.method_trials import try_methods
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank


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
    selection = select(bank, 12, rng=0)
    expected = estimate(bank, new, selection=selection).rows()
    rows = [row for row in check.rows() if row["n_chosen"] == 12]
    for name in ("model_id", "target", "n_items", "n_total", "estimate", "low", "high"):
        assert [row[name] for row in rows] == [row[name] for row in expected]
    by_hand = [new.responses[:, new.items["scenario"] == name].mean(axis=1) for name in bank.targets.scenarios]
    truth = np.column_stack([*by_hand, np.mean(by_hand, axis=0)])
    np.testing.assert_allclose([row["truth"] for row in rows], truth.ravel())
    np.testing.assert_allclose([row["error"] for row in rows], [row["estimate"] for row in rows] - truth.ravel())


def test_expected_errors_of_drawn_items_are_those_of_the_draw(check, bank, new):
    found = estimate(bank, new, selection=select(bank, 20, rng=0))
    last = check.rows()[-4:]
    means = np.sqrt(2.0 / np.pi) * found.standard_error.mean(axis=0)
    np.testing.assert_allclose([row["expected_error"] for row in last], means)


def test_expected_errors_are_those_on_the_banks_own_models(bank, new):
    selection = select(bank, 20, method="v-optimal", rng=0)
    check = check_bank(bank, new, selection=selection)
    stacked = Stacked()
    trials = try_methods(Asked.of_past(bank, selection), stacked.members).by(stacked)
    expected = np.abs(trials.value - trials.truth).mean(axis=0)
    last = check.rows()[-4:]
    np.testing.assert_allclose([row["expected_error"] for row in last], expected)


def test_a_bank_suits_models_of_its_own_kind(check):
    assert check.suits
    assert len(check.verdicts) == 12
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
    """It solves what nobody solves, and fails the rest: the item model cannot expect that."""
    easy = bank.responses.responses.mean(axis=0)
    odd = np.where(easy < np.median(easy), 1.0, 0.0)[None]
    strange = ResponseMatrix.create(odd, models=pl.DataFrame({"model_id": ["odd"]}), items=new.items)
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


def test_the_overall_score_decides_and_every_number_of_items_for_itself():
    fine = (score(held=True), score(held=False, target="math"))
    assert checked(*fine).suits
    assert not checked(*fine, score(held=False, n_chosen=100)).suits


def test_verdicts_are_sentences_in_points():
    within, outside = checked(score(held=True), score(held=False)).verdicts
    assert within == (
        "m, 30 items: the error of 2.0 points is within what the bank expects (3.0 at 95 %; cross-validated errors "
        "of past models average 2.0)."
    )
    assert "the error of 8.0 points is outside what the bank expects (3.0 at 95 %" in outside
    assert "take more items" in outside


def test_hints_tell_of_scores_and_dates_beyond_the_banks(bank, new):
    dates = [datetime.date(2024, 1, 1 + day) for day in range(20)]
    models = bank.responses.models.with_columns(released=pl.Series(dates))
    dated = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, models=models))
    best = new.take(models=np.arange(2))
    answers = best.responses.copy()
    answers[0] = 1.0
    late = [datetime.date(2025, 2, 3), datetime.date(2024, 1, 5)]
    best = dataclasses.replace(best, responses=answers, models=best.models.with_columns(released=pl.Series(late)))
    hints = check_bank(dated, best, selection=select(dated, 12, method="random", rng=0)).hints
    first = repr(best.model_ids[0])
    assert [hint.split(" (")[0] for hint in hints] == [
        f"{first}: the overall score is above those of all past models",
        "The newest past model is of 2024-01-20.",
        f"{first}: newer than all past models.",
    ]


def test_scores_of_unfinished_runs_are_unknown_and_no_run_is_refused(bank, new):
    answers = new.responses.copy()
    answers[:, 0] = np.nan  # one item of the first scenario
    part = dataclasses.replace(new, responses=answers)
    rows = check_bank(bank, part, selection=select(bank, 12, method="random", rng=3)).rows()
    first = bank.targets.scenarios.index(bank.responses.items["scenario"][0])
    assert [row["verdict"] == "unknown" for row in rows[:4]] == [j in {first, 3} for j in range(4)]
    answers[:, ::2] = np.nan
    with pytest.raises(DataError, match=r"ran all 60 items.*\(30 missing\)"):
        check_bank(bank, dataclasses.replace(new, responses=answers))


def test_of_a_model_without_a_chosen_item_nothing_is_said_but_a_warning(bank, new):
    chosen = select(bank, 12, method="random", rng=0)
    answers = new.responses.copy()
    answers[2, new.item_indices(chosen.item_ids)] = np.nan
    silent = new.model_ids[2]
    with pytest.warns(DataWarning) as said:
        rows = check_bank(bank, dataclasses.replace(new, responses=answers), selection=chosen).rows()
    assert any(f"no response to the items to be used from '{silent}'" in str(one.message) for one in said)
    assert {row["model_id"] for row in rows} == {*new.model_ids} - {silent}


@pytest.mark.parametrize("choices", [{"sizes": [0]}, {"level": 1.0}])
def test_choices_are_checked(bank, new, choices):
    with pytest.raises(ParameterError):
        check_bank(bank, new, **choices)


def test_of_one_scenario_the_overall_score_is_checked_once():
    chance = 1.0 / (1.0 + np.exp(np.linspace(-2.0, 2.0, 40) - np.linspace(-1.5, 1.5, 26)[:, None]))
    everyone = ResponseMatrix.create((np.random.default_rng(3).random((26, 40)) < chance).astype(float))
    bank, new = (
        calibrate(everyone.take(models=np.arange(4, 26)), JointMAP(n_dims=1)),
        everyone.take(models=np.arange(4)),
    )
    rows = check_bank(bank, new, sizes=[12]).rows()
    assert [(row["model_id"], row["target"]) for row in rows] == [(name, "overall") for name in new.model_ids]
    np.testing.assert_allclose([row["truth"] for row in rows], new.responses.mean(axis=1))
