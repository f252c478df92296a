"""Headline scores of past models: win rates against each other, and external scores of a table."""

import dataclasses
import itertools

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.headlines import check_external_names, external_names, win_rate_headline, with_external_scores
from itembank.banks import add_scores, with_target
from itembank.errors import BankError, DataError, IntegrityError, ParameterError
from tests.bank.banks import make_bank

MODELS = pl.DataFrame({"model_id": ["a", "b", "c"], "size": [1, 2, 3]})


def test_win_rates_of_past_models_are_those_of_counting_pairs():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (12, 3)) / 4.0  # many ties
    scores[3, 1] = np.nan  # neither ranked nor ranked against
    found = win_rate_headline(scores)
    known = [m for m in range(12) if m != 3]
    for model in known:
        pairs = itertools.product([other for other in known if other != model], range(3))
        wins = [(scores[model, j] > scores[r, j]) + 0.5 * (scores[model, j] == scores[r, j]) for r, j in pairs]
        assert found.past[model] == pytest.approx(np.mean(wins), abs=1e-12)
    assert np.isnan(found.past[3])
    new = np.vstack([rng.random((4, 3)), [0.5, np.nan, 0.5]])
    expected = [np.mean([new[m] > scores[r] for r in known]) for m in range(4)]
    np.testing.assert_allclose(found.win_rates(new)[:4], expected)
    assert np.isnan(found.win_rates(new)[4])
    fewer = found.without([0, 1]).win_rates(new[:1])
    assert fewer[0] == pytest.approx(np.mean([new[0] > scores[r] for r in known[2:]]))


def test_external_scores_join_by_model_and_points_become_fractions():
    table = pl.DataFrame({"model_id": ["c", "a", "z"], "mmlu": [61.0, None, 40.0], "arc": [0.25, 1.0, float("nan")]})
    found = with_external_scores(MODELS, table, ["mmlu", "arc"])
    assert found["model_id"].to_list() == ["a", "b", "c"]
    assert found["score.mmlu"].to_list() == [None, None, 0.61]
    assert found["score.arc"].to_list() == [1.0, None, 0.25]
    assert external_names(found) == ("mmlu", "arc")
    again = with_external_scores(found, table.with_columns(mmlu=pl.lit(10)), ["mmlu"])
    assert again["score.mmlu"].to_list() == [0.1, None, 0.1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"model_id": ["a"], "arc": [0.5]}, "got no 'mmlu'"),
        ({"model_id": ["a", "a"], "mmlu": [0.5, 0.6]}, "one line a model, got more for 'a'"),
        ({"model_id": ["a", "b"], "mmlu": [0.5, 140.0]}, "from 0 to 1, or points up to 100, got '140"),
        ({"model_id": ["a", "b"], "mmlu": [0.5, -0.1]}, "got '-0.1'"),
        ({"model_id": ["a", "b"], "mmlu": ["0.5", "good"]}, "got 'good'"),
        ({"model_id": ["x", "y"], "mmlu": [0.5, 0.4]}, "Check that both name models alike"),
    ],
)
def test_tables_that_hold_no_scores_are_refused(table, message):
    with pytest.raises(DataError, match=message):
        with_external_scores(MODELS, pl.DataFrame(table), ["mmlu"])


def test_a_bank_keeps_external_scores_and_its_items_score(tmp_path):
    bank = make_bank()
    scores = pl.DataFrame({"model_id": bank.responses.model_ids, "board": np.linspace(20.0, 90.0, 12)})
    save_bank(add_scores(bank, scores, ["board"], note="May"), tmp_path / "bank")
    kept = load_bank(tmp_path / "bank")
    assert kept.history.changes[-1].operation == "add-scores"
    view = with_target(kept, "board")
    assert view.targets.names == ("math", "code", "law", "board")
    np.testing.assert_allclose(view.past_scores[:, -1], np.linspace(0.2, 0.9, 12))
    np.testing.assert_array_equal(view.past_scores[:, :-1], kept.past_scores[:, :-1])
    assert (view.bank_id, view.target_digest) == (bank.bank_id, bank.target_digest)
    assert with_target(view, "board") is view
    with pytest.raises(BankError, match=r"asked for 'board'\. Write the bank itself"):
        save_bank(view, tmp_path / "other")
    with pytest.raises(BankError, match="'board'"):
        with_target(kept, "bord")


def test_names_and_numbers_that_give_no_target_are_refused():
    bank = make_bank()
    few = pl.DataFrame({"model_id": bank.responses.model_ids[:5], "board": [0.1] * 5})
    with pytest.raises(DataError, match=r"needs at least 10 past models .*got 5"):
        with_target(add_scores(bank, few, ["board"]), "board")
    for name in ("overall", "mean_win_rate", "law", "all"):
        with pytest.raises(ParameterError, match=f"a name of its own, got {name!r}"):
            check_external_names([name], bank.targets.scenarios)
    with pytest.raises(ParameterError, match="at least one"):
        add_scores(bank, few, [])
    for wrong in ("good", 1.5):
        models = bank.responses.models.with_columns(pl.lit(wrong).alias("score.board"))
        strange = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, models=models))
        with pytest.raises(IntegrityError, match="something else than itembank wrote it"):
            with_target(strange, "board")
