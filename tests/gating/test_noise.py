"""Runs of the same set-up with known chance: the noise that is found, the margin that holds, items against repeats."""

import numpy as np
import pytest

import itembank as ib
from itembank.gating.gate import GatePair
from itembank.gating.gate_spec import GateSpec
from itembank.gating.noise import advice, more_items_or_repeats, self_test
from tests.gating.test_gate import changed, run_of


def two_runs(rng, n=2000):
    """Two runs of one set-up, and the probabilities behind them."""
    p = np.clip(rng.beta(0.3, 0.2, n), 0.001, 0.999)
    one, other = (rng.random((2, n)) < p).astype(float)
    return one, other, p


def test_noise_is_parted_into_data_and_trial():
    one, other, p = two_runs(np.random.default_rng(0))
    found = self_test(GatePair.of(run_of(one), run_of(other)), GateSpec())
    assert found.trial_variance == pytest.approx(np.mean(p * (1 - p)), rel=0.1)
    assert found.data_variance == pytest.approx(np.var(p), rel=0.1)
    assert found.low < 0.0 < found.high
    assert [row["noise"].split(":")[0] for row in found.floor()] == ["data", "trial", "both"]


def test_the_margin_that_is_held_is_held():
    """Of 400 further pairs of runs: how many fail and pass at that margin, by real gates, and as was forecast."""
    rng = np.random.default_rng(1)
    one, other, p = two_runs(rng, 1000)
    pair = GatePair.of(run_of(one), run_of(other))
    spec, verdicts = GateSpec(margin=self_test(pair, GateSpec()).margin_held), []
    for _ in range(400):
        again = (rng.random((2, 1000)) < p).astype(float)
        verdicts.append(ib.gate(run_of(again[0]), run_of(again[1]), spec=spec).verdict)
    row = next(row for row in self_test(pair, spec).rows() if row["margin"] == spec.margin)
    assert np.mean([one == "fail" for one in verdicts]) < 0.03
    assert np.mean([one == "pass" for one in verdicts]) == pytest.approx(row["passed"], abs=0.06)
    # a self-test of two different models would promise nothing
    assert "not the same set-up" in self_test(GatePair.of(*changed(100, 10)), GateSpec()).sentence


BETTER = {  # of 100 and of all 400 items
    "repeated": ("more items", "more repeats"),
    "run": ("more items", "neither more items nor more repeats"),
    "questions": ("more items", "more items tell more: 800 items with 4 attempts"),
}


@pytest.mark.parametrize("estimand", BETTER)
@pytest.mark.parametrize("n_asked", [100, 400])
def test_more_items_or_more_repeats(estimand, n_asked):
    """With items left, or others like them, these tell more; else repeats do, by half of the variance of chance."""
    rng = np.random.default_rng(2)
    p = np.clip(rng.beta(0.5, 0.5, (2, 400)), 0.01, 0.99)
    one, other = [
        ib.ResponseMatrix.from_counts(rng.binomial(4, row)[None], np.full((1, 400), 4), model_ids=[name])
        for row, name in zip(p, "ab", strict=True)
    ]
    other = other.take(items=rng.choice(400, n_asked, replace=False))
    found, pair = ib.gate(one, other, estimand=estimand), GatePair.of(one, other)
    rows = more_items_or_repeats(pair, found)
    assert advice(rows).lower().startswith(BETTER[estimand][n_asked > 100])
    now, repeats = (rows[place]["half_width"] for place in (0, -1))
    assert now == pytest.approx((found.high - found.low) / 2)
    chance = np.mean(p * (1 - p), axis=1).sum() / 4
    if (estimand, n_asked) == ("repeated", 400):
        assert now == pytest.approx(1.96 * np.sqrt(chance / 400), rel=0.1)
        assert repeats == pytest.approx(now / np.sqrt(2))
    if estimand == "questions":
        spread = np.nanvar(pair.candidate - pair.baseline, ddof=1)
        assert repeats == pytest.approx(now * np.sqrt(1 - chance / 2 / spread), rel=0.03)
        assert rows[1]["half_width"] == pytest.approx(now / np.sqrt(2), rel=0.02)


def test_without_repeats_nothing_is_advised():
    """One attempt each says nothing of chance, nor do means of graded attempts."""
    means, trials = np.random.default_rng(3).random((2, 1, 50)), np.full((1, 50), 4)
    graded = [ib.ResponseMatrix.create(one, n_trials=trials) for one in means]
    for runs in (changed(10, 10), graded):
        assert more_items_or_repeats(GatePair.of(*runs), ib.gate(*runs)) == []
    for call in (ib.gate, ib.compare):
        with pytest.raises(ib.errors.DataError, match="or means of graded ones"):
            call(*graded, estimand="repeated")
