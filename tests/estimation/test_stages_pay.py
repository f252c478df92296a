"""Stages in simulations with known truth: what they gain, and how often intervals hold."""

import functools

import numpy as np
import polars as pl
import pytest

from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.estimate import estimate
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from tests.estimation.simulated import full_scores

pytestmark = pytest.mark.slow

N_PAST, N_NEW, N_ITEMS, N_CHOSEN, SEEDS = 80, 60, 240, 36, range(5)


@functools.cache
@one_blas_thread()
def tried(seed):
    """Errors and coverage of new models by one batch and in two stages.

    One ability rules, items are sharp and abilities far apart: an item that tells much of one model tells nothing of
    most others.
    """
    rng = np.random.default_rng([seed, 9])
    theta, difficulty = 1.5 * rng.normal(size=N_PAST + N_NEW), 1.8 * rng.normal(size=N_ITEMS)
    slope = rng.lognormal(0.8, 0.2, N_ITEMS)
    p = 1.0 / (1.0 + np.exp(-slope * (theta[:, None] - difficulty)))
    responses = (rng.random(p.shape) < p).astype(float)
    items = pl.DataFrame({"item_id": [f"i{i}" for i in range(N_ITEMS)], "scenario": ["all"] * N_ITEMS})
    past, new = (
        ResponseMatrix.create(rows, model_ids=[f"{kind} {row}" for row in range(len(rows))], items=items)
        for kind, rows in (("past", responses[:N_PAST]), ("new", responses[N_PAST:]))
    )
    bank = build_bank(past, Variational(item_model="2pl", n_dims=1), rng=0)
    batch, routing = (select(bank, N_CHOSEN, method="v-optimal", stages=stages, rng=0) for stages in (1, 2))
    truth = full_scores(bank, new)[:, -1]
    of_batch = estimate(bank, new.take(items=new.item_indices(batch.item_ids)), selection=batch)
    errors, held = [np.abs(of_batch.value[:, -1] - truth)], []
    in_stages = np.zeros(N_NEW)
    for row in range(N_NEW):
        model = new.take(models=np.array([row]))
        found = estimate(bank, model, selection=next_stage(bank, routing, model))
        in_stages[row] = abs(found.value[0, -1] - truth[row])
        held.append(found.low[0, -1] <= truth[row] <= found.high[0, -1])
    return np.stack([*errors, in_stages]), np.array(held)


def test_two_stages_come_closer_than_one_batch_where_one_ability_rules():
    errors = np.concatenate([tried(seed)[0] for seed in SEEDS], axis=1).mean(axis=1)
    assert errors[1] < 0.85 * errors[0]


def test_intervals_after_two_stages_hold_as_often_as_they_say():
    held = np.concatenate([tried(seed)[1] for seed in SEEDS])
    assert 0.92 < held.mean() < 0.998
