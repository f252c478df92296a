"""Run by `pytest` where the package is installed."""

import numpy as np
import polars as pl
import pytest

import itembank as ib


def test_items_of_the_mid_range_are_chosen_by_name():
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=(60, 1)), np.linspace(-3.0, 3.0, 50)  # of 60 past models and 50 items
    answers = rng.random((60, 50)) < 1.0 / (1.0 + np.exp(difficulty - ability))
    rows = [(f"m{i}", f"q{j:02}", float(answers[i, j])) for i in range(60) for j in range(50)]
    responses = ib.read_responses(pl.DataFrame(rows, schema=["model_id", "item_id", "response"], orient="row"))
    bank = ib.calibrate(responses)
    chosen = ib.select(bank, 10, method="mid-range", rng=0)
    shares = answers.mean(axis=0)[[int(item[1:]) for item in chosen.item_ids]]
    assert ((shares >= 0.3) & (shares <= 0.7)).all()
    assert chosen.weights.sum() == pytest.approx(1.0)
