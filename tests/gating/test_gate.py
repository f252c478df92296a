"""Verdicts from results that are there, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.selections import Selection
from itembank.gating.gate import _log_choices, verdict_at
from itembank.gating.gate_spec import GateSpec
from itembank.gating.results import Look
from tests.bank.banks import make_bank
from tests.comparison.test_compare import new_responses


def run_of(answers, name="model", **more):
    """Responses of one model."""
    return ib.ResponseMatrix.create(np.asarray(answers, dtype=float)[None], model_ids=[name], **more)


def changed(falls, rises, n=1000):
    """Return a baseline with 600 of 1,000 right, and a candidate with so many falls and rises."""
    one = (np.arange(n) < 0.6 * n).astype(float)
    other = np.where(np.arange(n) < falls, 0.0, np.where(np.arange(n) >= n - rises, 1.0, one))
    return run_of(one, "old"), run_of(other, "new")


@pytest.mark.parametrize(
    ("falls", "rises", "spec", "verdict"),
    [
        (20, 20, GateSpec(margin=0.02), "pass"),
        (100, 10, GateSpec(margin=0.02), "fail"),
        (30, 10, GateSpec(margin=0.02), "undecided"),
        (0, 100, GateSpec(margin=0.02), "pass"),
        (0, 100, GateSpec(margin=0.02, both_sides=True), "fail"),
        (35, 0, GateSpec(margin=0.03), "fail"),
        (35, 0, GateSpec(margin=0.03, tolerance=0.03), "undecided"),
        (35, 0, GateSpec(margin=0.03, tolerance=0.03, estimand="run"), "fail"),
        (20, 20, GateSpec(margin=0.02, miss=0.0001), "undecided"),
    ],
)
def test_verdict_follows_from_the_bounds(falls, rises, spec, verdict):
    found = ib.gate(*changed(falls, rises), spec=spec)
    assert (found.verdict, found.right_to_wrong, found.wrong_to_right) == (verdict, falls, rises)
    assert found.difference == pytest.approx((rises - falls) / 1000)
    assert found.sentence.startswith(verdict.upper())
    assert found.exit_code == {"pass": 0, "fail": 1, "undecided": 3}[verdict]


@pytest.mark.parametrize("rounding", [-3e-17, 0.0, 7e-18])
def test_a_drop_of_the_margin_fails_however_it_is_rounded(rounding):
    """Sums of weights 1/n end at -0.04999999999999999; a rise counts alike, and just inside the margin passes."""
    for sign, both_sides in ((-1.0, False), (-1.0, True), (1.0, True)):
        spec = GateSpec(margin=0.05, both_sides=both_sides)
        for d, verdict in ((sign * (0.05 + rounding), "fail"), (sign * 0.0499, "pass")):
            assert verdict_at(Look(300, d, d, d, (d, d), (d, d), is_exact=True), spec) == verdict
        by_miss = tuple(sorted((sign * (0.05 + rounding), sign * 0.01)))
        assert verdict_at(Look(300, sign * 0.03, *by_miss, by_miss, by_miss), spec) == "undecided"
    spec = GateSpec(margin=0.05, tolerance=0.05)
    limit = -0.05 + rounding  # proved to be no more than the tolerance
    assert verdict_at(Look(300, -0.06, -0.07, limit, (-0.07, limit), (-0.07, limit)), spec) == "undecided"


@pytest.mark.parametrize(
    ("falls", "rises", "n", "spec"),
    [
        (30, 20, 1000, GateSpec(margin=0.02)),
        (0, 0, 50, GateSpec(margin=0.01)),  # of few changes the bound goes as 1/n
        (10, 5, 500, GateSpec(margin=0.015)),
        (120, 40, 1000, GateSpec(margin=0.08, tolerance=0.065)),
    ],
)
def test_it_says_how_many_more_items_decide(falls, rises, n, spec):
    """A gate with so many more items, that change as often, decides; one with three quarters of them does not."""
    found = ib.gate(*changed(falls, rises, n), spec=spec)
    assert found.verdict == "undecided"
    for part, is_decided in ((1.25, True), (0.75, False)):
        m = n + round(part * found.items_to_decide)
        again = ib.gate(*changed(round(falls * m / n), round(rises * m / n), m), spec=spec)
        assert (again.verdict != "undecided") == is_decided


@pytest.mark.parametrize(("estimand", "more"), [("run", 77), ("questions", 85)])
def test_of_a_sample_it_says_how_many_of_the_rest_decide(estimand, more):
    old, same = changed(0, 0, 2000)
    same, order = replace(same, costs={"usd": np.full((1, 2000), 0.5)}), np.random.default_rng(1).permutation(2000)
    found = ib.gate(old, same.take(items=order[:50]), estimand=estimand)
    assert (found.items_to_decide, found.cost_to_decide) == (more, {"usd": more / 2})
    for n, verdict in ((more - 1, "undecided"), (more, "pass")):
        assert ib.gate(old, same.take(items=order[: 50 + n]), estimand=estimand).verdict == verdict


def test_it_asks_for_no_more_items_than_there_are():
    old, new = changed(30, 20)
    found = ib.gate(old, new)
    assert "more items" not in found.sentence
    assert "All 1,000 items were run: only more questions, repeated runs or a wider margin can decide" in found.sentence
    of = "questions like these: what other questions of this kind would show (--estimand)"
    assert ("Difference of", of) in found.facts
    found = ib.gate(old, new.take(items=np.random.default_rng(1).choice(1000, 800, replace=False)))
    short = f"About {found.items_to_decide:,} more items would decide it, and only 200 are left."
    assert found.sentence.endswith(f"{short} For the difference of these two runs alone: estimand='run'.")


def test_a_pass_names_the_bound_that_decided_it():
    found = ib.gate(*changed(20, 20), margin=0.011)
    assert found.low < -0.011 < found.last.by_miss[0]
    assert "new is at most 1.1 points worse (one-sided 95 % bound, margin 1.1 points)" in found.sentence
    assert "Score 60.0 -> 60.0, difference +0.0" in found.sentence
    both = ib.gate(*changed(20, 25), margin=0.03, both_sides=True)
    assert f"differs by at most {np.ceil(1e3 * both.last.by_miss[1]) / 10:g} points" in both.sentence
    assert "PASS: new is better (one" in ib.gate(*changed(0, 100)).sentence


def test_both_scores_and_a_proved_drop_are_said():
    worse = ib.gate(*changed(20, 0), margin=0.05)
    most = f"{np.ceil(1e3 * -worse.last.by_miss[0]) / 10:g}"
    assert worse.sentence.startswith(f"PASS: new is worse, by at most {most} points (one-sided 95 % bound")
    assert "Score 60.0 -> 58.0, difference -2.0" in worse.sentence
    failed = ib.gate(*changed(100, 0))
    assert "new is worse than old by 10 points (60.0 -> 50.0, 95 %" in failed.sentence
    assert "by -2.0 points (60.0 -> 58.0," in ib.gate(*changed(40, 20)).sentence
    assert (failed.to_dict()["baseline_score"], failed.to_dict()["candidate_score"]) == (0.6, pytest.approx(0.5))
    old, _ = changed(0, 0)
    nothing = ib.gate(old, run_of(np.zeros(993), "new", items=old.items[7:]))  # 593 / 993 less as much: -3e-16
    assert "(59.7 -> 0.0," in nothing.sentence
    again = ib.gate(old, run_of(old.responses[0], "again"))
    assert again.sentence.endswith("It gave the same answers as old to all 1,000 items.")
    assert again.last.by_miss[0] < 0.0


def test_a_gate_is_neither_true_nor_false():
    failed, same, unsure = (ib.gate(*changed(*one)) for one in ((100, 0), (0, 0), (30, 10)))
    with pytest.raises(TypeError, match=r"its verdict is 'fail': ask gate\.passed"):
        bool(failed)
    assert (failed.passed, same.passed, unsure.passed) == (False, True, False)


def test_choices_may_be_given_by_name():
    pair = changed(35, 0)
    assert ib.gate(*pair, margin=0.03).to_dict() == ib.gate(*pair, spec=GateSpec(margin=0.03)).to_dict()
    assert ib.gate(*pair, spec=GateSpec(margin=0.03), tolerance=0.03).verdict == "undecided"
    assert ib.start_gate(pair[0], margin=0.03, max_items=500).sizes[-1] == 500
    for wrong, error, says in (
        ({"margn": 0.03}, ib.errors.ParameterError, r"got 'margn'\. Did you mean 'margin'\?"),
        ({"estimand": "expected"}, ib.errors.ParameterError, "'expected' is now called 'questions'"),
        ({"estimand": "repeated"}, ib.errors.DataError, "got one at each"),
    ):
        with pytest.raises(error, match=says):
            ib.gate(*pair, **wrong)


def test_some_items_stand_for_all_of_the_baseline_and_a_selection_limits_both():
    old, new = changed(20, 20)
    some = new.take(items=np.random.default_rng(1).choice(1000, 400, replace=False))
    found, run = (ib.gate(old, some, margin=0.05, estimand=one) for one in ("questions", "run"))
    assert (found.n_items, found.n_total, found.estimand) == (400, 1000, "questions")
    assert found.low < 0.0 < found.high
    assert run.high - run.low < found.high - found.low < 0.05
    # also where the candidate ran others than the baseline: the verdict is about the selection alone
    chosen = Selection(tuple(old.item_ids[:300]), ("all",) * 300, np.full(300, 1 / 300), "by hand", "")
    both = old.take(items=np.arange(900)), new.take(items=np.arange(1, 1000))
    found = ib.gate(*both, selection=chosen)
    assert (found.n_items, found.n_total, found.right_to_wrong, found.wrong_to_right) == (299, 300, 19, 0)
    with pytest.raises(ib.errors.DataError, match="got 100 of 999 that the"):
        ib.gate(*both)


def test_items_that_were_not_drawn_by_chance_are_noticed():
    scenarios = ["a"] * 500 + ["b"] * 500
    old, new = (ib.ResponseMatrix.create(one.responses, scenarios=scenarios) for one in changed(20, 20))
    found = ib.gate(old, new.take(items=np.arange(100)))
    together, first, second = found.notes
    assert "the 100 items are next to each other in the baseline's file, from 1 to 100 of 1000" in together
    assert together in found.to_dict()["notes"]
    assert "the baseline scores 100.0 on these and 60.0 on all 1000" in first
    assert "no item of 1 scenario" in second
    for places in (np.arange(600, 640), np.delete(np.arange(300, 500), [3, 50, 51])):
        assert "next to each other" in ib.gate(old, new.take(items=places)).notes[0]
    rng = np.random.default_rng(0)
    for n in [20, 30, 100, 500, 700] * 10:
        assert ib.gate(old, new.take(items=rng.choice(1000, n, replace=False))).notes == ()
    mixed, ran = old.take(items=rng.permutation(1000)), new.take(items=np.arange(500))
    assert "ran whole scenarios, which is no random draw" in ib.gate(mixed, ran).notes[-1]


def test_a_run_that_stopped_neither_passes_nor_fails():
    """Nor do other items that are no random sample; a verdict holds if it is so whatever all others are."""
    old, new = changed(20, 20)
    order = np.random.default_rng(1).permutation(1000)  # right and wrong answers along the whole file
    old, new = old.take(items=order), new.take(items=order)
    first = ib.gate(old, new.take(items=np.arange(300)), margin=0.1)
    assert (first.verdict, first.exit_code) == ("undecided", 3)
    assert "if these 300 of 1,000 items were a random sample, and they are not" in first.sentence
    assert any("next to each other" in note for note in first.notes)
    drawn = ib.gate(old, new.take(items=np.random.default_rng(2).choice(1000, 300, replace=False)), margin=0.1)
    assert (drawn.verdict, drawn.notes) == ("pass", ())
    nearly = ib.gate(old, new.take(items=np.arange(980)), margin=0.1)
    assert (nearly.passed, "next to each other" in nearly.notes[0]) == (True, True)
    kept = np.delete(np.arange(1000), np.flatnonzero(old.responses[0] * new.responses[0])[:38])  # time-outs, say
    for estimand, verdict in (("run", "pass"), ("questions", "undecided")):  # -3.8 if they are wrong, -5.3 at worst
        found = ib.gate(old, new.take(items=kept), margin=0.05, estimand=estimand)
        assert (found.verdict, "hardly a random sample" in found.notes[0]) == (verdict, True)
        assert ("Proved" in dict(found.facts)) == found.passed
    turned = ib.ResponseMatrix.create(1.0 - new.responses, model_ids=["new"], items=new.items)
    for n, verdict in ((700, "undecided"), (900, "fail")):  # with all others right it drops by 2, and by 14 points
        found = ib.gate(old, turned.take(items=np.arange(n)), margin=0.1)
        assert (found.verdict, found.is_chosen) == (verdict, verdict == "undecided")
        assert ("It would fail if these 700 of 1,000 items were" in found.sentence) == found.is_chosen
    right = run_of(np.ones(300), "new", items=old.items[:300])
    better, both = (ib.gate(old, right, margin=0.1, both_sides=one) for one in (False, True))
    assert [(one.verdict, one.is_chosen) for one in (better, both)] == [("undecided", True)] * 2
    assert ("It would pass" in better.sentence, "It would fail" in both.sentence) == (True, True)
    # the chances of a choice rest on the number of ways to choose
    assert _log_choices(4, 12) == pytest.approx(np.log(math.comb(12, 4)))


@pytest.mark.usefixtures("few_folds")
def test_a_bank_gives_the_difference_of_compare():
    bank = make_bank(n_models=40, n_items=60)
    selection, answers = ib.select(bank, 20, rng=0), new_responses(bank, 2, n_items=60)
    answers = answers.take(items=answers.item_indices(selection.item_ids))
    one, other = (answers.take(models=np.array([row])) for row in (0, 1))
    found = ib.gate(one, other, bank=bank, selection=selection)
    compared = np.array(ib.compare(bank, answers, selection=selection).difference)[[0, 2, 3], 0, -1]
    assert (found.difference, found.low, found.high) == pytest.approx(tuple(compared))


def test_plain_data_have_the_keys_that_are_promised():
    record = ib.gate(*changed(20, 20)).to_dict()
    assert record["schema_version"] == "itembank.gate/1"
    assert {"verdict", "difference", "low", "high", "n_items", "flips"} <= set(record)
    assert record["flips"] == {"right_to_wrong": 20, "wrong_to_right": 20, "share": 0.04}


def test_repeats_narrow_what_is_asked_over_runs():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.4, 400)

    def runs(n_trials):
        return ib.ResponseMatrix.from_counts(rng.binomial(n_trials, p)[None], np.full((1, 400), n_trials))

    widths = [found.high - found.low for found in (ib.gate(runs(k), runs(k), estimand="repeated") for k in (2, 8))]
    truth = [1.96 * np.sqrt(2 * np.mean(p * (1 - p)) / k / 400) for k in (2, 8)]
    assert np.array(widths) / 2 == pytest.approx(truth, rel=0.25)


def _with(matrix, **columns):
    return matrix.with_tables(items=matrix.items.with_columns(**columns))


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (run_of(np.ones(3), item_ids=["x", "y", "z"]), "share none of 4 and 3"),
        (run_of(np.ones(5)), "1 of 5 that the baseline did not run"),
        (ib.ResponseMatrix.create(np.ones((2, 4))), "must be one model, got 2"),
        (_with(run_of(np.ones(4)), content_hash=pl.lit("b")), "same items, got 4 with another content"),
        (_with(run_of(np.ones(4)), prompt_hash=pl.lit("q")), "is as good as the baseline's"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_but_another_prompt_may_be_the_question(candidate, words):
    baseline = _with(run_of(np.ones(4)), content_hash=pl.lit("a"), prompt_hash=pl.lit("p"))
    with pytest.raises(ib.errors.DataError, match=words):
        ib.gate(baseline, candidate)
    one, other = (_with(run_of(np.ones(400)), prompt_hash=pl.lit(text)) for text in ("p", "q"))
    assert ib.gate(one, other, allow_mixed_prompts=True).verdict == "pass"


@pytest.mark.parametrize(
    "choices", [{"margin": 0.0}, {"margin": 2}, {"miss": 0.6}, {"tolerance": 0.05}, {"growth": 1.0}, {"first_look": 1}]
)
def test_choices_that_mean_nothing_are_refused(choices):
    with pytest.raises(ib.errors.ParameterError, match=next(iter(choices))):
        GateSpec(**choices)


def test_names_of_strangers_are_shown_harmless():
    found = ib.gate(run_of(np.ones(500), "a\x1b[2J"), run_of(np.ones(500), "b\n\x1b"))
    assert not {"\x1b", "\n"} & set(found.sentence)
