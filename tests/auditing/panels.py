"""Simulated answers with known faults."""

import functools

import numpy as np
from scipy.special import expit

from itembank.responses.responses import ResponseMatrix
from tests.estimation.simulated import new_models, small_bank


def make_answers(*, n_models=60, n_items=120, seed=0, ease=1.0):
    """Answers of one ability, (n_models, n_items), and the abilities."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(n_models)
    p = expit(1.5 * theta[:, None] + ease + rng.standard_normal(n_items))
    return (rng.random(p.shape) < p).astype(float), theta


def make_faulty(*, n_models=100, n_items=120, seed=0):
    """Two scenarios; items 0 to 4 have wrong keys, item 5 is solved by nobody, 6 by all, and 7 repeats item 8."""
    rng = np.random.default_rng(seed + 1)
    values, _ = make_answers(n_models=n_models, n_items=n_items, seed=seed)
    values[:, :5] = (1.0 - values[:, :5]) * (rng.random((n_models, 5)) < 0.8)
    values[:, 5], values[:, 6] = 0.0, 1.0
    values[:, 8] = (expit(1.5 * rng.standard_normal(n_models)) > 0.5).astype(float)
    values[:, 7] = values[:, 8]
    return ResponseMatrix.create(values, scenarios=[f"part {j % 2}" for j in range(n_items)])


@functools.cache
def bank():
    return small_bank(n_models=60, n_items=120, seed=3)


@functools.cache
def clean(n_models=6, seed=4):
    return new_models(bank(), n_models, seed)
