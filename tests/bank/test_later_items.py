"""Items that came after some past models, harder than the others: what is known of these models' scores."""

import numpy as np
import polars as pl

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.responses.responses import ResponseMatrix

N_MODELS, N_OLD, N_ITEMS, N_LATER = 60, 40, 100, 18


def world():
    """Answers to all items, and which came later: the hardest, which old models did not answer."""
    rng = np.random.default_rng(5)
    ability, difficulty = rng.normal(size=(N_MODELS, 1)), np.sort(rng.normal(size=N_ITEMS))
    answers = (rng.random((N_MODELS, N_ITEMS)) < 1.0 / (1.0 + np.exp(difficulty - ability))).astype(float)
    given = answers.copy()
    given[:N_OLD, -N_LATER:] = np.nan
    items = pl.DataFrame({"item_id": [f"{k:03d}" for k in range(N_ITEMS)], "scenario": ["s"] * N_ITEMS})
    return answers, ResponseMatrix.create(given, model_ids=[f"m{k}" for k in range(N_MODELS)], items=items)


def test_scores_of_models_that_lack_the_hard_items_are_not_too_high():
    answers, given = world()
    bank = calibrate(given, Variational(item_model="2pl", n_dims=1), rng=0)
    truth, known = answers.mean(axis=1), bank.known_scores
    plain = (np.nanmean(given.responses, axis=1) - truth)[:N_OLD]
    error = (known.value[:, -1] - truth)[:N_OLD]
    assert 0.0 < error.mean() < 0.25 * plain.mean()
    # what is said of the errors is as large as they are
    assert 0.6 < np.sqrt(np.mean(error**2) / known.variance[:N_OLD, -1].mean()) < 1.4
    np.testing.assert_allclose(known.value[N_OLD:, -1], truth[N_OLD:], atol=1e-12)
    np.testing.assert_array_equal(bank.models["overall"].to_numpy(), known.value[:, -1])
