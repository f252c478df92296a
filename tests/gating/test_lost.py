"""Answers that the baseline or the candidate lost: what they count as, and what they do to a verdict."""

import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.responses.lost_answers import LostAnswers
from tests.bank.banks import make_bank
from tests.gating.test_gate import run_of

TIME_OUT = 3


def lost_run(answers, lost, name, **more):
    """Responses of one model that lost the answers to some items."""
    n = np.zeros((1, answers.size), dtype=np.int64)
    n[0, lost] = 1
    return run_of(np.where(n[0] > 0, np.nan, answers), name, lost=LostAnswers(n, n * TIME_OUT), **more)


def pair(n_lost=36, n_lost_baseline=0):
    """Two runs of 400 items that differ by one answer, and lost the first, or the last ones."""
    answers = (np.arange(400) % 4 > 0).astype(float)
    other = np.where(np.arange(400) == 201, 0.0, answers)
    return lost_run(answers, np.arange(400 - n_lost_baseline, 400), "old"), lost_run(other, np.arange(n_lost), "new")


def filled(run, value):
    """Give the lost answers by hand."""
    return run_of(np.where(np.isnan(run.responses[0]), value, run.responses[0]), run.model_ids[0])


def test_losses_that_turn_a_pass_leave_it_undecided_and_every_door_says_so():
    found = ib.gate(*pair(), margin=0.03)
    assert (found.verdict, found.exit_code) == ("undecided", 3)
    assert found.lost.ways["missing"] == (pytest.approx(-1 / 364), "pass")
    assert found.lost.ways["wrong"] == (pytest.approx(-28 / 400), "fail")
    assert "It lost 36 of 400 answers, and they decide" in found.sentence
    assert "-0.3 without them (PASS), -7.0 with them as wrong (FAIL)" in found.sentence
    assert found.notes[0].startswith("the candidate lost 36 of 400 answers (36 time-outs)")
    told = found.to_dict()
    assert (told["n_lost_candidate"], told["n_lost_baseline"], told["errors"]) == (36, 0, "missing")
    assert (told["if_lost_are_wrong"], told["verdict_if_lost_are_wrong"]) == (pytest.approx(-0.07), "fail")
    assert (found.rows()[0]["n_lost_candidate"], ib.gate(*pair(), margin=0.2).verdict) == (36, "pass")
    found = ib.gate(*pair(36, 25), margin=0.03, errors="bounds")
    assert "It lost 36 of 400 answers and the baseline lost 25 of 400 answers, and they decide: " in found.sentence


@pytest.mark.parametrize("lost", [np.arange(36), np.arange(0, 240, 4)], ids=["first", "hard"])
@pytest.mark.parametrize("errors", ["missing", "wrong", "bounds"])
def test_lost_answers_are_no_choice_of_items(lost, errors):
    """All items were run: to run others that are drawn, as for a part of them, would not help."""
    one, whole = pair(n_lost=0)
    notes = ib.gate(one, lost_run(whole.responses[0], lost, "new"), margin=0.2, errors=errors).notes
    assert [note.split(" lost ")[0] for note in notes] == ["the candidate"]
    part = np.setdiff1d(np.arange(400), lost)
    assert "gate start draws" in ib.gate(one, whole.take(items=part), margin=0.2).notes[0]


@pytest.mark.parametrize("n_lost_baseline", [0, 25])
def test_the_policies_give_what_answers_by_hand_give(n_lost_baseline):
    one, other = pair(n_lost_baseline=n_lost_baseline)
    wrong, by_hand = ib.gate(one, other, errors="wrong"), ib.gate(filled(one, 0.0), filled(other, 0.0))
    assert (wrong.looks, wrong.verdict) == (by_hand.looks, by_hand.verdict)
    bounds = ib.gate(one, other, errors="bounds", margin=0.03)
    worst, best = (ib.gate(filled(one, 1.0 - end), filled(other, end), margin=0.03) for end in (0.0, 1.0))
    assert (bounds.low, bounds.high) == (worst.low, best.high)
    assert (bounds.last.by_miss[0], bounds.last.by_alarm[1]) == (worst.last.by_miss[0], best.last.by_alarm[1])
    assert (worst.verdict, best.verdict, bounds.verdict) == ("fail", "pass", "undecided")
    assert ib.gate(one, other, errors="bounds", margin=0.2).verdict == "pass"
    kept = np.flatnonzero(one.observed[0] & other.observed[0])
    plain, by_hand = ib.gate(one, other, margin=0.2), ib.gate(one.take(items=kept), other.take(items=kept), margin=0.2)
    assert plain.looks == by_hand.looks


def test_equal_losses_of_both_turn_nothing_and_a_failure_stays_one_unless_losses_turn_it():
    _, other = pair(n_lost=36)
    found = ib.gate(lost_run((np.arange(400) % 4 > 0).astype(float), np.arange(36), "old"), other, margin=0.03)
    assert found.verdict == "pass"  # there are no extra losses of the candidate
    assert "the candidate lost 36 of 400 answers (36 time-outs) and the baseline lost 36 of 400" in found.notes[0]
    answers, places = np.ones(400), np.arange(400)
    low = np.where((places >= 100) & (places < 160), 0.0, 1.0)
    assert ib.gate(run_of(answers, "old"), lost_run(low, np.arange(5), "new")).verdict == "fail"
    one = lost_run(answers, np.arange(300, 360), "old")  # of which the candidate lost none
    assert ib.gate(one, run_of(low, "new")).verdict == "fail"


def test_more_losses_than_are_allowed_pass_nothing():
    one, other = pair(n_lost=8)
    assert ib.gate(one, other, margin=0.2, max_lost=0.02).verdict == "pass"
    for errors in ("missing", "wrong", "bounds"):
        found = ib.gate(one, other, margin=0.2, max_lost=0.015, errors=errors)
        assert (found.verdict, found.lost.reason) == ("undecided", "too many")
        assert "It would pass, but 2 % of one side's answers were lost, more than max_lost 0.015" in found.sentence
    with pytest.raises(ib.errors.ParameterError, match="max_lost must be a share between 0 and 1, got 5"):
        ib.gate(one, other, max_lost=5)


def test_results_that_count_lost_answers_differently_are_refused_as_is_a_candidate_that_lost_everything():
    one, other = pair(n_lost_baseline=5)
    with pytest.raises(ib.errors.DataError, match=r"got missing and wrong\. Say which: errors="):
        ib.gate(one, other.with_errors("wrong"))
    assert ib.gate(one, other.with_errors("wrong"), errors="wrong").lost.errors == "wrong"
    with pytest.raises(ib.errors.DataError, match="lost all 400"):
        ib.gate(*pair(n_lost=400))
    assert ib.gate(*pair(n_lost=400), errors="wrong").verdict == "fail"


def test_nearly_full_runs_say_what_absent_rows_do():
    one, _ = pair(0)
    kept = np.random.default_rng(1).permutation(400)[:350]
    found = ib.gate(one, one.with_tables(models=pl.DataFrame({"model_id": ["new"]})).take(items=kept), margin=0.05)
    assert found.verdict == "pass"
    assert "no row of 50 of the baseline's 400 items" in found.notes[-1]


def test_with_a_bank():
    bank = make_bank(n_models=24)
    answers, items = bank.responses.responses[0], {"items": bank.responses.items}
    one, other = run_of(answers, "old", **items), lost_run(answers, np.flatnonzero(answers)[:12], "new", **items)
    found = ib.gate(one, other, bank=bank, margin=0.03)
    by_hand = ib.gate(one, run_of(np.nan_to_num(other.responses[0]), "new", **items), bank=bank, margin=0.03)
    assert found.lost.ways["wrong"] == (by_hand.difference, by_hand.verdict)
    assert ib.gate(one, other, bank=bank, errors="wrong").looks == by_hand.looks
    table = bank.responses.items.with_columns(pl.lit("wrong").alias("lost_as"))
    strict = replace(bank, responses=replace(bank.responses, items=table))
    told = ib.gate(one, other, bank=strict, margin=0.03)
    assert (told.lost.errors, told.looks) == ("wrong", by_hand.looks)
    assert ib.gate(one, other, bank=strict, margin=0.03, errors="missing").looks == found.looks
    plans = [ib.start_gate(one, bank=given, margin=0.1).spec.errors for given in (bank, strict)]
    assert plans == [None, "wrong"]


def test_in_stages_missing_answers_are_run_again_and_others_count():
    one, other = pair(n_lost=60)
    plan = ib.start_gate(one, margin=0.05, seed=1)
    with pytest.raises(ib.errors.DataError, match=r"Answers were lost: 60 time-outs\. To count what was lost: errors="):
        plan.look(other)
    wrong, by_hand = plan.with_errors("wrong").look(other), plan.look(filled(other, 0.0))
    assert (wrong.looks, wrong.verdict, wrong.lost.candidate.n) == (by_hand.looks, by_hand.verdict, 60)
    bounds, best = plan.with_errors("bounds").look(other), plan.look(filled(other, 1.0))
    assert (bounds.low, bounds.high) == (by_hand.low, best.high)
    assert (by_hand.verdict, best.verdict, bounds.verdict) == ("fail", "pass", "undecided")
    assert "they decide" in bounds.sentence
    assert bounds.difference == ib.gate(one, other, estimand="run").difference


def test_in_stages_both_cases_are_shown_at_the_same_look():
    """Each stops at a look of its own; that one case would have stopped is not said of both."""
    one, other = pair(n_lost=60)
    plan, looks = ib.start_gate(one, margin=0.1, seed=3, errors="bounds"), set()
    for n in plan.sizes:
        some = other.item_indices(plan.order[:n])
        found = plan.look(other.take(items=some))
        cases = [plan.look(filled(other, value).take(items=some)) for value in (0.0, 1.0)]
        assert (found.n_items, [look.n_items for look in found.looks]) == (n, [m for m in plan.sizes if m <= n])
        assert len(found.notes) == 1
        looks.add(tuple(case.last.n_items for case in cases))
        for case, end in zip(cases, ("low", "high"), strict=True):
            for look, together in zip(case.looks, found.looks, strict=False):
                assert getattr(look, end) == getattr(together, end)
    assert any(one != other for one, other in looks)


def test_a_plan_is_about_what_the_baseline_answered_or_counts_its_losses(tmp_path):
    one, other = pair(n_lost=0, n_lost_baseline=40)
    with pytest.warns(ib.errors.DataWarning, match="about the 360 items that it answered"):
        plan = ib.start_gate(one, margin=0.05)
    assert len(plan.order) == 360
    plan.save(tmp_path / "gate")
    found = type(plan).load(tmp_path / "gate").look(other)
    assert (found.n_total, found.lost.baseline.n, found.difference) == (360, 40, pytest.approx(-1 / 360))
    wrong = ib.start_gate(one, margin=0.05, errors="wrong")
    assert (len(wrong.order), wrong.look(other).difference) == (400, pytest.approx(29 / 400))
    with pytest.raises(ib.errors.DataError, match="needs all answers of the baseline, and 40 were lost"):
        ib.start_gate(one, margin=0.05, errors="bounds")


AGENT = """
case $1 in item-1[0-9][0-9]) echo "timed out" >&2; exit 3;; esac
echo 1
"""


def test_a_command_that_fails_counts_by_the_policy(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = {"model_id": ["old"] * 200, "item_id": [f"item-{k}" for k in range(200)], "response": [1] * 200}
    pl.DataFrame(table).write_csv("base.csv")
    (tmp_path / "agent.sh").write_text(AGENT)
    run.ok("gate", "start", "base.csv", "--margin", 0.08, "-o", "gate")
    how = ("gate", "next", "gate", "--command", "sh agent.sh {item_id}", "--model-id", "new", "--retries", 0)
    plain = run(*how)
    assert plain.code == 5
    assert "To count what was lost: --errors wrong or bounds" in plain.err
    wrong = run(*how, "--errors", "wrong", "--format", "json")
    assert (wrong.code, wrong.json["verdict"], wrong.json["errors"]) == (1, "fail", "wrong")
    assert wrong.json["n_lost_candidate"] > 0
    shutil.rmtree("gate")
    run("gate", "start", "base.csv", "--margin", 0.08, "-o", "gate", "--errors", "bounds")
    bounds = run(*how, "--format", "json")
    assert (bounds.code, "they decide" in bounds.json["sentence"]) == (3, True)


def test_the_command_line_refuses_what_results_cannot_tell(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one, name in zip(pair(), ("a.parquet", "b.parquet"), strict=True):
        ib.write_responses(one, name)
    assert run("gate", "a.parquet", "b.parquet", "--margin", 0.03).code == 3
    assert run("gate", "a.parquet", "b.parquet", "--margin", 0.03, "--errors", "wrong").code == 1
    done = run("gate", "a.parquet", "b.parquet", "--margin", 0.2, "--max-lost", 0.05, "--github", "--junit", "g.xml")
    assert (done.code, "more than --max-lost 0.05" in done.out) == (3, True)
    assert "36 time-outs" in (tmp_path / "g.xml").read_text()


def test_the_files_of_the_complaint(run, shared_dir):
    """36 of 200 answers lost to time-outs: as wrong it is -15.0 (-20.8 to -9.8), FAIL."""
    files = [shared_dir / "inputs" / "01-gate-lost-answers" / name for name in ("base.csv", "cand.csv")]
    plain = run("gate", *files, "--margin", 0.05)
    assert (plain.code, "36 of 200" in plain.out) == (3, True)
    wrong = run("gate", *files, "--margin", 0.05, "--errors", "wrong")
    assert (wrong.code, "by 15 points (73.5 -> 58.5, 95 % interval -20.8 to -9.8)" in wrong.out) == (1, True)


def test_a_run_that_stopped_is_judged_by_the_rule_for_what_it_lost_on_the_way():
    answers = np.random.default_rng(1).permutation((np.arange(1000) < 600).astype(float))
    one, other = run_of(answers, "old"), lost_run(answers, np.arange(100, 103), "new")
    assert ib.gate(one, other, margin=0.1).passed
    stopped = ib.gate(one, other.take(items=np.arange(300)), margin=0.1)
    assert (stopped.verdict, stopped.is_chosen) == ("undecided", True)
    assert "if these 297 of 1,000 items were a random sample" in stopped.sentence
    other = lost_run(0.0 * answers, np.arange(200), "new").take(items=np.arange(600))
    for errors, verdict in (("missing", "undecided"), ("wrong", "fail")):  # at best 60 -> 60, and 60 -> 40
        assert ib.gate(one, other, margin=0.1, errors=errors).verdict == verdict


def test_stages_by_bounds_say_what_is_exact_and_that_lost_answers_are_not_the_same():
    """A baseline's lost answers that count as wrong leave nothing to bound."""
    answers = (np.arange(200) % 4 > 0).astype(float)
    plan = ib.start_gate(lost_run(answers, np.arange(5), "base"), margin=0.05, errors="wrong").with_errors("bounds")
    assert plan.look(run_of(answers, "cand")).last.is_exact
    whole = ib.start_gate(run_of(answers, "base"), margin=0.05, errors="bounds")
    found = whole.look(lost_run(answers, np.arange(2), "cand"))
    assert (found.passed, "the same answers" in found.sentence) == (True, False)
