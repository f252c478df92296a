"""The difference from answers to the first items that a bank draws: right on average, and its error known."""

import numpy as np
import pytest

from itembank.gating.with_bank import bank_look, drawn_order
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

N_ITEMS, N_ANSWERS = 300, 60


@pytest.mark.parametrize(
    ("part_alike", "most_error", "most_stated"),  # of the error that the mean of the differences would have
    [(0.95, 1.15, 1.3), (0.6, 1.0, 1.0), (0.0, 0.85, 0.85)],
)
def test_the_baseline_tells_as_much_as_the_candidate_is_like_it(part_alike, most_error, most_stated):
    """Of a near copy all but what changed is known; of half a copy less; of another model what the bank says."""
    bank = make_bank(n_models=40, n_items=N_ITEMS)
    rng = np.random.default_rng(1)
    chance = probability(bank.parameters, np.zeros((1, bank.calibration.n_dims)))[0]
    errors, stated, plain = [], [], []
    for _ in range(40):
        baseline, again = (rng.random((2, N_ITEMS)) < chance).astype(float)
        candidate = np.where(rng.random(N_ITEMS) < part_alike, baseline, again)
        first = drawn_order(bank, rng)[:N_ANSWERS]
        seen = np.full(N_ITEMS, np.nan)
        seen[first] = candidate[first]
        pair = ResponseMatrix.create(np.stack([baseline, seen]), model_ids=["base", "new"], items=bank.responses.items)
        look = bank_look(bank, pair)
        errors.append(look.difference - (candidate - baseline) @ bank.targets.overall_weights)
        stated.append(look.variance)
        plain.append(np.var(candidate - baseline) * (1.0 / N_ANSWERS - 1.0 / N_ITEMS))
    error, stated, plain = np.sqrt([np.mean(np.square(errors)), np.mean(stated), np.mean(plain)])
    assert error < most_error * plain
    assert stated < most_stated * plain
    assert abs(np.mean(errors)) < 3.0 * error / np.sqrt(40)
    assert 0.75 * error < stated  # of near copies it is at least Tango's
