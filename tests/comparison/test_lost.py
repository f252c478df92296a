"""Answers that models lost: what differences and rankings make of them."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import itembank as ib
from itembank.comparison.without_bank import joined
from itembank.responses.lost_answers import LostAnswers
from tests.bank.banks import make_bank

TIME_OUT = 3
NAMES = ("low", "middle", "high")


def models(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers of three models to 300 items, and which of them were lost."""
    rng = np.random.default_rng(seed)
    answers = (rng.random((3, 300)) < np.array([[0.3], [0.5], [0.8]])).astype(float)
    lost = np.zeros(answers.shape, dtype=bool)
    lost[1, :20] = lost[2, 10:60] = True
    return answers, lost


def with_losses(answers: np.ndarray, lost: np.ndarray, **more: object) -> ib.ResponseMatrix:
    n = lost.astype(np.int64)
    told = LostAnswers(n, n * TIME_OUT)
    return ib.ResponseMatrix.create(np.where(lost, np.nan, answers), model_ids=NAMES, lost=told, **more)


def by_hand(answers: np.ndarray, lost: np.ndarray, values: list[float], **more: object) -> ib.ResponseMatrix:
    """Give each model's lost answers a value."""
    filled = np.where(lost, np.array(values)[:, None], answers)
    return ib.ResponseMatrix.create(filled, model_ids=NAMES, **more)


@pytest.mark.parametrize("estimand", ["questions", "run"])
def test_the_policies_give_what_answers_by_hand_give(estimand: str) -> None:
    answers, lost = models()
    given = with_losses(answers, lost)
    plain = ib.compare(by_hand(answers, lost, [np.nan] * 3), estimand=estimand)
    wrong = ib.compare(by_hand(answers, lost, [0.0] * 3), estimand=estimand)
    found = {errors: ib.compare(given, errors=errors, estimand=estimand) for errors in ("missing", "wrong", "bounds")}
    for errors, other in (("missing", plain), ("wrong", wrong)):
        np.testing.assert_array_equal(found[errors].difference, other.difference)
        np.testing.assert_array_equal(found[errors].tests.p_holm, other.tests.p_holm)
    for one in found.values():
        np.testing.assert_array_equal(one.lost.if_wrong, wrong.difference.value)
        assert one.lost.n.tolist() == [0, 20, 50]
    bounds = found["bounds"]
    np.testing.assert_array_equal(bounds.difference.value, plain.difference.value)
    for k, (a, b) in enumerate(zip(bounds.pairs.first, bounds.pairs.second, strict=True)):
        values = np.full((2, 3), 0.5)
        values[:, a], values[:, b] = (1.0, 0.0), (0.0, 1.0)
        worst, best = (ib.compare(by_hand(answers, lost, one), estimand=estimand).difference for one in values.tolist())
        assert bounds.difference.low[k, 0] == pytest.approx(worst.low[k, 0])
        assert bounds.difference.high[k, 0] == pytest.approx(best.high[k, 0])


def test_bounds_are_clear_only_where_both_ends_are() -> None:
    answers, lost = models()
    found = ib.compare(with_losses(answers, lost), errors="bounds")
    tests, difference = found.tests, found.difference
    includes_zero = (difference.low <= 0.0) & (difference.high >= 0.0)
    np.testing.assert_array_equal(tests.p_value < 0.05, ~includes_zero)
    np.testing.assert_array_equal(tests.p_holm < 0.05, (tests.joint_low > 0.0) | (tests.joint_high < 0.0))
    same = ib.compare(with_losses(answers[[1, 1, 1]], lost), errors="bounds")
    assert (same.tests.p_value == 1.0).all()
    assert (same.tests.probability_b_better == 0.5).all()
    assert set(same.ranking.group.ravel()) == {1}


def test_records_and_notes_say_them() -> None:
    answers, lost = models()
    found = ib.compare(with_losses(answers, lost))
    assert found.notes[0].startswith("high lost 50 answers (50 time-outs), middle lost 20 answers (20 time-outs)")
    row = found.rows()[0]
    assert (row["n_lost_a"], row["n_lost_b"], row["errors"]) == (0, 20, "missing")
    assert row["if_lost_are_wrong"] == pytest.approx(float(found.lost.if_wrong[0, 0]))
    assert "20 time-outs" in row["note"]
    assert {one["model_id"]: one["n_lost"] for one in found.ranking_rows()} == {"low": 0, "middle": 20, "high": 50}
    none = ib.compare(by_hand(answers, lost, [0.0] * 3)).rows()[0]
    assert (none["n_lost_a"], none["errors"], none["if_lost_are_wrong"]) == (0, None, None)


def test_files_of_one_model_each_keep_what_they_lost() -> None:
    answers, lost = models()
    whole = with_losses(answers, lost)
    parts = [whole.take(models=np.array([row])) for row in range(3)]
    np.testing.assert_array_equal(joined(parts).lost.n, lost)
    assert joined(parts[:1] * 2).lost is None
    with pytest.raises(ib.errors.DataError, match="got missing and wrong"):
        joined([parts[1], parts[2].with_errors("wrong")])
    assert joined([parts[1], parts[2].with_errors("wrong")], "bounds").lost.errors == "bounds"


@pytest.mark.parametrize("method", ["paired", "p-irt"])
def test_with_a_bank(method: str, tmp_path: Path) -> None:
    bank = make_bank(n_models=24)
    answers = bank.responses.responses[:3]
    lost = np.zeros(answers.shape, dtype=bool)
    lost[1, :4] = True
    items = {"items": bank.responses.items}
    given = with_losses(answers, lost, **items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ib.errors.DataWarning)
        how = {"method": method, "estimand": "run"}
        wrong = ib.compare(bank, by_hand(answers, lost, [0.0] * 3, **items), **how)
        found, bounds = (ib.compare(bank, given, errors=errors, **how) for errors in ("wrong", "bounds"))
        ib.write_responses(given, tmp_path / "given.parquet")
        listed = ib.compare(bank, [tmp_path / "given.parquet"], errors="wrong", **how)
    np.testing.assert_array_equal(listed.difference.value, found.difference.value)
    np.testing.assert_allclose(found.difference.value, wrong.difference.value)
    assert (bounds.difference.low <= wrong.difference.low + 1e-9).all()
    assert bounds.lost.n.tolist() == [0, 4, 0]


def test_the_command_line(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = with_losses(*models())
    for row, name in enumerate(NAMES):
        ib.write_responses(whole.take(models=np.array([row])), f"{name}.parquet")
    plain = run("compare", "middle.parquet", "high.parquet")
    assert "high lost 50 answers (50 time-outs), middle lost 20" in plain.err
    assert "--errors wrong or bounds" in plain.err
    wrong = run("compare", "middle.parquet", "high.parquet", "--errors", "wrong", "--format", "json")
    assert wrong.json["rows"][0]["errors"] == "wrong"
    bounds = run.ok("compare", *(f"{name}.parquet" for name in NAMES), "--errors", "bounds", "--ranking")
    assert "The intervals hold whichever of them were right" in bounds.err
