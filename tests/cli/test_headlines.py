"""Mean win rates and external scores on the command line; what is estimated is tested in tests/estimation."""

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank
from itembank.responses.response_files import write_responses
from tests.bank.banks import make_bank
from tests.cli.conftest import new_results

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, fitted_bank):
    """A bank that keeps an external score, and two new models."""
    folder = tmp_path_factory.mktemp("headlines")
    bank = make_bank()
    board = 20.0 + 60.0 * bank.responses.responses.mean(axis=1)
    pl.DataFrame({"model_id": bank.responses.model_ids, "board": board}).write_csv(folder / "board.csv")
    write_responses(new_results().take(items=np.arange(0, 30, 2)), folder / "new.parquet")
    return folder


@pytest.fixture(scope="module")
def bank_with_board(folder, fitted_bank):
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415
    from itembank.banks import add_scores  # noqa: PLC0415

    save_bank(add_scores(load_bank(fitted_bank), folder / "board.csv", ["board"]), folder / "bank")
    return folder / "bank"


def rows_of(outcome):
    assert outcome.code == 0, outcome.err
    return outcome.json["rows"]


@pytest.mark.parametrize("target", ["board", "mean_win_rate"])
def test_a_score_takes_the_place_of_the_overall_one(run, folder, bank_with_board, target):
    outcome = run("-v", "estimate", bank_with_board, folder / "new.parquet", "--target", target, "--format", "json")
    rows = rows_of(outcome)
    assert [row["target"] for row in rows][:4] == ["math", "code", "law", target]
    assert all(0.0 <= row["low"] <= row["estimate"] <= row["high"] <= 1.0 for row in rows)
    assert {row["interval"] for row in rows} == {"calibrated"}
    said = {"board": "known of 12 past models", "mean_win_rate": "share of the 12 past models"}
    assert said[target] in outcome.err
    assert f"errors of '{target}'" in outcome.err


def test_tables_and_pages_name_the_score(run, folder, bank_with_board):
    page = folder / "page.html"
    shown = run.ok("estimate", bank_with_board, folder / "new.parquet", "--target", "board", "--report", page)
    assert "board" in shown.out
    text = page.read_text(encoding="utf-8")
    assert "of 12 past models (" in text
    assert "--target board" in text
    assert "itembank plan" not in text  # no draw gives that score an interval


def test_selections_name_the_score_that_they_were_tried_on(run, folder, bank_with_board):
    outcome = run.ok("select", bank_with_board, "-n", 9, "--target", "board", "-o", folder / "s.json")
    assert "interval of 'board': about ±" in outcome.err
    refused = run("select", bank_with_board, "-n", 9, "--target", "board", "--method", "random")
    assert refused.code == 2
    assert "goes with --method auto" in refused.err


def test_a_bank_says_which_external_scores_it_keeps(run, bank_with_board, fitted_bank):
    assert run.json("info", bank_with_board)["external_scores"] == ["board"]
    assert "external_scores" not in run.json("info", fitted_bank)


def test_unknown_names_are_told_what_there_is(run, folder, bank_with_board):
    outcome = run("estimate", bank_with_board, folder / "new.parquet", "--target", "bord")
    assert outcome.code == 1
    assert "mean_win_rate" in outcome.err
    assert "Did you mean 'board'?" in outcome.err
