"""Scores and abilities from answers alone."""

import numpy as np
import polars as pl
import pytest

from itembank.auditing.item_evidence import adjusted_scores, panel_of
from itembank.errors import DataError
from itembank.responses.responses import ResponseMatrix


def test_scores_of_complete_answers_are_means():
    values = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert adjusted_scores(values, np.ones((2, 3), dtype=bool)).tolist() == pytest.approx([2 / 3, 1 / 3])


def test_scores_of_models_that_answered_other_items_are_those_on_all_items():
    ability, ease = np.array([0.1, 0.3, 0.5, 0.2]), np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    values = ability[:, None] + ease
    observed = np.ones_like(values, dtype=bool)
    observed[0, :3] = observed[1, 3:] = observed[2, 0] = False  # the first model was asked easy items only
    assert adjusted_scores(np.where(observed, values, np.nan), observed) == pytest.approx(values.mean(axis=1), abs=1e-6)
    assert adjusted_scores(values, np.zeros_like(observed)).tolist() == [0.0] * 4


def test_subscenarios_of_enough_items_are_groups_of_their_own():
    names = ["large"] * 20 + ["small"] * 5 + [None] * 5
    items = pl.DataFrame({"item_id": [f"i{j}" for j in range(30)], "scenario": "all", "subscenario": names})
    values = (np.random.default_rng(0).random((9, 30)) < 0.6).astype(float)
    panel = panel_of(ResponseMatrix.create(values, items=items))
    assert panel.theta.shape == (9, 2)
    assert len(set(panel.group[:20])) == 1
    assert len(set(panel.group[20:])) == 1
    assert panel.theta.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert panel.theta.std(axis=0) == pytest.approx([1.0, 1.0])


def test_abilities_by_wrong_answers_are_those_by_right_ones_turned_round():
    values = (np.random.default_rng(0).random((9, 30)) < 0.8).astype(float)
    right, wrong = (panel_of(ResponseMatrix.create(one)).theta for one in (values, 1.0 - values))
    np.testing.assert_allclose(wrong, -right, atol=1e-12)


def test_an_audit_needs_five_models():
    with pytest.raises(DataError, match="at least 5 models with answers, got 4"):
        panel_of(ResponseMatrix.create(np.eye(4)))
