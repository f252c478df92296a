import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError
from itembank.responses.responses import ResponseMatrix
from itembank_studies.papers.task_overview import task_overview


@pytest.fixture(scope="module")
def responses():
    """Two pairs of tasks, each pair after its own ability; the third model has no answers to the last task."""
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(30, 2))
    chance = 1.0 / (1.0 + np.exp(-2.0 * np.repeat(ability[:, [0, 1, 0, 1]], 40, axis=1)))
    answers = (rng.random(chance.shape) < chance).astype(float)
    answers[2, 120:] = np.nan
    items = pl.DataFrame(
        {
            "item_id": [f"item-{j}" for j in range(160)],
            "scenario": ["one"] * 80 + ["two"] * 80,
            "subscenario": np.repeat(["a", "b", "a", "b"], 40),
            "letter": [*np.repeat(["w", "x", "y"], 40), *([None] * 40)],
        }
    )
    cost = np.broadcast_to(np.repeat([1.0, 2.0, 4.0, 8.0], 40), answers.shape).copy()
    cost[0, :40] = 7.0  # 1.2 on average
    return ResponseMatrix.create(answers, items=items, costs={"output_tokens": cost})


def test_scores_costs_and_correlations_by_hand(responses):
    found = task_overview(responses, by="subscenario", cost="tokens")
    assert found.tasks == ("one/a", "one/b", "two/a", "two/b")
    scores = np.stack([responses.responses[:, 40 * k : 40 * k + 40].mean(axis=1) for k in range(4)], axis=1)
    known = np.delete(scores, 2, axis=0)
    np.testing.assert_allclose(found.score[:3], scores[:, :3].mean(axis=0))
    np.testing.assert_allclose(found.spread[:3], scores[:, :3].std(axis=0))
    np.testing.assert_allclose(found.correlation[:3, :3], np.corrcoef(scores[:, :3].T), atol=1e-12)
    np.testing.assert_allclose(found.correlation[3, :3], np.corrcoef(known.T)[3, :3], atol=1e-12)
    np.testing.assert_allclose(found.cost, [1.2, 2.0, 4.0, 8.0])
    assert found.n_models.tolist() == [30, 30, 30, 29]
    assert found.n_models_of_pair[3].tolist() == [29, 29, 29, 29]
    assert found.cost_ratio == pytest.approx(8.0 / 1.2)
    # Fisher 1915: tanh(atanh r -+ 1.96 / sqrt(n - 3))
    z = np.arctanh(found.correlation[0, 1]) + 1.959964 / np.sqrt(27)
    assert found.upper[0, 1] == pytest.approx(np.tanh(z), abs=1e-6)


def test_alike_tasks_are_neighbours_items_without_one_belong_to_none_and_what_cannot_be_compared_is_refused(responses):
    found = task_overview(responses, by="subscenario")
    names = [row["task"] for row in found.rows()]
    alike = {frozenset({"one/a", "two/a"}), frozenset({"one/b", "two/b"})}
    assert {frozenset(names[:2]), frozenset(names[2:])} == alike
    assert {row["task"]: row["most_alike"] for row in found.rows()}["one/b"] == "two/b"
    assert "cost" not in found.rows()[0]
    assert {frozenset((pair["task"], pair["other_task"])) for pair in found.pairs()[:2]} == alike
    found = task_overview(responses, by="letter")
    assert found.tasks == ("w", "x", "y")
    assert found.n_items.tolist() == [40, 40, 40]
    with pytest.raises(DataError, match="the task of an item needs the column 'topic'"):
        task_overview(responses, by="topic")
    with pytest.raises(DataError, match="at least two tasks are needed, got 1"):
        task_overview(responses.take(items=np.arange(40)), by="scenario")
    with pytest.raises(DataError, match="at least 4 models, got 3"):
        task_overview(responses.take(models=np.arange(3)))
    with pytest.raises(DataError, match="cost unit must be one of"):
        task_overview(responses, cost="cost_usd")
