"""Past models that are listed twice, and past models that teach nothing of what was not answered."""

import numpy as np
import polars as pl
import pytest

from itembank.banks import add_scores
from itembank.calibration.build import build_bank
from itembank.estimation.estimate import estimate
from itembank.responses.responses import ResponseMatrix

ITEMS = [f"q{number:03d}" for number in range(100)]


def simulated(ability, difficulty, rng):
    return (ability[:, None] - difficulty > rng.logistic(size=(ability.size, difficulty.size))) * 1.0


@pytest.mark.filterwarnings("ignore:.* models answer like another one", "ignore:.* models answered unlike")
@pytest.mark.parametrize("n_times", [2, 3])
def test_intervals_hold_where_every_past_model_is_listed_more_than_once(n_times):
    """Before copies were left out together, none of these 60 intervals held: all had width zero."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=100)
    past = np.tile(simulated(rng.normal(size=20), difficulty, rng), (n_times, 1))
    new = simulated(rng.normal(size=60), difficulty, rng)
    answered = np.sort(rng.permutation(100)[:25])
    bank = build_bank(ResponseMatrix.create(past, item_ids=ITEMS))
    found = estimate(bank, ResponseMatrix.create(new[:, answered], item_ids=[ITEMS[item] for item in answered]))
    truth = new.mean(axis=1)
    assert np.mean((found.low[:, -1] <= truth) & (truth <= found.high[:, -1])) >= 0.85
    plain = np.abs(new[:, answered].mean(axis=1) - truth).mean()
    assert np.abs(found.value[:, -1] - truth).mean() < 1.1 * plain
    assert np.median(found.high - found.low) < 0.8


@pytest.mark.filterwarnings("ignore:.* models answer like another one")
def test_an_external_score_is_learnt_without_copies_too():
    """The copies of a model that is left out are not in the bank of its fold: nor may their scores be."""
    rng = np.random.default_rng(1)
    difficulty = rng.normal(size=100)
    past = simulated(rng.normal(size=30), difficulty, rng)
    bank = build_bank(ResponseMatrix.create(np.concatenate([past, past[:2]]), item_ids=ITEMS))
    final = pl.DataFrame(
        {"model_id": bank.responses.model_ids, "final": np.sqrt(bank.responses.responses.mean(axis=1))}
    )
    new = simulated(rng.normal(size=20), difficulty, rng)
    responses = ResponseMatrix.create(new[:, :40], item_ids=ITEMS[:40])
    found = estimate(add_scores(bank, final, ["final"]), responses, target="final")
    truth = np.sqrt(new.mean(axis=1))
    assert np.mean((found.low[:, -1] <= truth) & (truth <= found.high[:, -1])) >= 0.8


@pytest.mark.filterwarnings("ignore:.*answered unlike")
@pytest.mark.parametrize("method", ["stacked", "p-irt", "gp-irt", "factor", "weighted", "ridge"])
def test_no_interval_has_width_zero_while_answers_are_unknown(method):
    """Past models solved all items or none, so that none was ever estimated wrongly."""
    past = np.repeat([[0.0], [1.0]], 15, axis=0) * np.ones(40)
    new = np.array([np.ones(20), np.zeros(20), np.repeat([1.0, 0.0], 10)])
    bank = build_bank(ResponseMatrix.create(past))
    items = bank.item_ids
    found = estimate(bank, ResponseMatrix.create(new, item_ids=items[:20]), method=method)
    assert np.all(found.high - found.low > 0.02)
    everything = estimate(bank, ResponseMatrix.create(past[[0, 20]], item_ids=items), method=method)
    np.testing.assert_array_equal(everything.high, everything.low)
