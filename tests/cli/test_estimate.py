import json

import numpy as np
import pytest

from itembank.data.bank_files import load_bank
from itembank.data.response_files import write_responses
from itembank.data.responses import ResponseMatrix
from itembank.data.selections import Selection
from tests.data.banks import make_bank

METHODS = ("mean", "weighted", "p-irt", "gp-irt")


@pytest.fixture
def new_models(tmp_path):
    """Two models that answered every item of the bank."""
    bank = make_bank()
    responses = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    matrix = ResponseMatrix.create(responses, model_ids=["new/a", "new/b"], items=bank.responses.items)
    write_responses(matrix, tmp_path / "new.parquet")
    return matrix, tmp_path / "new.parquet"


@pytest.mark.parametrize("method", METHODS)
def test_rows_have_what_the_readme_promises(run, bank_folder, new_models, tmp_path, method):
    run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json")
    outcome = run(
        "estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json",
        "--method", method, "--level", 0.9, "--format", "json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    assert [(row["model_id"], row["target"]) for row in rows] == [
        (model, target) for model in ("new/a", "new/b") for target in ("math", "code", "law", "overall")
    ]
    for row in rows:
        assert 0.0 <= row["low"] <= row["estimate"] <= row["high"] <= 1.0
        assert (row["level"], row["method"], row["bank"]) == (0.9, method, load_bank(bank_folder).bank_id)
    assert [(row["n_items"], row["n_total"]) for row in rows[:4]] == [(4, 10), (4, 10), (4, 10), (12, 30)]


@pytest.mark.parametrize("method", METHODS)
def test_all_items_give_the_score_itself(run, bank_folder, new_models, method):
    matrix, path = new_models
    rows = json.loads(run("estimate", bank_folder, path, "--method", method, "--format", "json").out)
    overall = [row for row in rows if row["target"] == "overall"]
    for row, expected in zip(overall, matrix.responses.mean(axis=1), strict=True):
        assert row["estimate"] == pytest.approx(expected)
        assert row["low"] == pytest.approx(expected)
        assert row["high"] == pytest.approx(expected)


def test_the_table_shows_interval_items_and_bank(run, bank_folder, new_models, tmp_path):
    run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json")
    outcome = run("estimate", bank_folder, new_models[1], "--selection", tmp_path / "s.json")
    assert load_bank(bank_folder).bank_id in outcome.out
    assert "12/30" in outcome.out
    assert "95 % interval" in outcome.out
    assert "model-based" in outcome.err


def test_win_rate_is_added_on_request(run, bank_folder, new_models):
    rows = json.loads(run("estimate", bank_folder, new_models[1], "--win-rate", "--format", "json").out)
    assert [row["target"] for row in rows[:5]] == ["math", "code", "law", "overall", "mean_win_rate"]


def test_missing_items_of_the_selection_are_said_and_the_rest_used(run, bank_folder, new_models, tmp_path):
    run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json")
    matrix, _ = new_models
    chosen = Selection.load(tmp_path / "s.json")
    partial = matrix.take(items=matrix.item_indices(chosen.item_ids[2:]))
    write_responses(partial, tmp_path / "partial.parquet")
    outcome = run(
        "estimate", bank_folder, tmp_path / "partial.parquet", "--selection", tmp_path / "s.json", "--format", "json"
    )
    assert outcome.code == 0, outcome.err
    assert "of the 12 items of the selection" in outcome.err
    assert "new/a (2)" in outcome.err
    assert json.loads(outcome.out)[3]["n_items"] == 10


def test_items_that_are_not_in_the_bank_are_refused(run, bank_folder, tmp_path):
    stranger = ResponseMatrix.create(np.ones((1, 2)), item_ids=["math/0", "math/9999"], scenarios=["math", "math"])
    write_responses(stranger, tmp_path / "new.parquet")
    outcome = run("estimate", bank_folder, tmp_path / "new.parquet")
    assert (outcome.code, outcome.out) == (1, "")
    assert "math/9999" in outcome.err


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1])
def test_a_level_outside_its_range_is_refused(run, bank_folder, new_models, level):
    outcome = run("estimate", bank_folder, new_models[1], "--level", level)
    assert outcome.code == 2
    assert "level" in outcome.err
