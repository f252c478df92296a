"""Scores of many questions that came without the number of these."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import itembank as ib
import itembank_living
from itembank.bank.arguments import as_new_responses
from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import DataWarning
from itembank.pages.bank_page import bank_page
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import ASSUMED_QUESTIONS, COLUMN, assumed_questions, with_assumed_sizes, with_usual_sizes
from tests.readers.reading import warns

pytestmark = pytest.mark.usefixtures("few_folds")
N_MODELS, N_BENCHMARKS, REPORTED = 60, 30, 9


@pytest.fixture(scope="module")
def board():
    """Published scores of made-up models, nine of thirty each, rather the good ones; and the means of all thirty."""
    rng = np.random.default_rng(0)
    ability, hard = rng.normal(size=(N_MODELS, 1)), rng.normal(0, 1.2, N_BENCHMARKS)
    chance = 1 / (1 + np.exp(-rng.lognormal(0, 0.4, N_BENCHMARKS) * (ability - hard)))
    size = np.broadcast_to(rng.choice([100, 200, 500], N_BENCHMARKS), chance.shape)
    right = rng.binomial(size, chance)
    liking = 0.8 * np.log(chance / (1 - chance)) + rng.gumbel(size=chance.shape)
    is_told = liking >= np.sort(liking, axis=1)[:, [-REPORTED]]
    names = [f"benchmark-{number}" for number in range(N_BENCHMARKS)]
    scores = ResponseMatrix.create(np.where(is_told, right / size, np.nan), item_ids=names, scenarios=names)
    sized = ResponseMatrix.from_counts(
        np.where(is_told, right, 0), np.where(is_told, size, 0), item_ids=names, scenarios=names
    )
    return scores, sized, chance.mean(axis=1)


@pytest.fixture(scope="module")
def bank(board):
    with pytest.warns(DataWarning, match="540 scores came without numbers of questions, and count as 100 each"):
        return ib.calibrate(board[0], ib.calibrations.Variational("2pl"))


def overall_errors(bank, responses, truth):
    return np.abs(ib.estimate(bank, responses, method="p-irt").column("overall") - truth)


def test_scores_without_sizes_are_estimated_nearly_as_well_as_with_them(board, bank):
    """They were made binary, as if each were one answer: the mean error was 12.9 points."""
    scores, sized, truth = board
    found = warns("540 .* count as 100 each, as those of past models do", overall_errors, bank, scores, truth).mean()
    known = overall_errors(ib.calibrate(sized, ib.calibrations.Variational("2pl")), sized, truth).mean()
    assert known < 0.01
    assert found < 1.5 * known


def test_a_bank_says_what_it_assumed_in_its_files_and_on_its_page(bank, tmp_path, run):
    save_bank(bank, tmp_path / "bank")
    read = load_bank(tmp_path / "bank")
    assert assumed_questions(read.responses.items) == ASSUMED_QUESTIONS
    assert "count as 100 each, an assumption" in bank_page(read).html()
    assert run("info", tmp_path / "bank", "--format", "json").json["assumed_questions"] == ASSUMED_QUESTIONS


def test_calibrate_and_estimate_say_so_on_the_command_line(board, tmp_path, run):
    scores = board[0]
    rows = [
        {"model_id": model, "item_id": item, "scenario": item, "response": value}
        for model, values in zip(scores.model_ids, scores.responses, strict=True)
        for item, value in zip(scores.item_ids, values, strict=True)
        if not np.isnan(value)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "scores.csv")
    made = run("calibrate", tmp_path / "scores.csv", "-o", tmp_path / "bank", "--dims", 1, "--format", "json")
    assert made.json["rows"][0]["assumed_questions"] == ASSUMED_QUESTIONS
    assert "count as 100 each, an assumption" in made.err
    found = run("estimate", tmp_path / "bank", tmp_path / "scores.csv", "--format", "json")
    assert all("count as 100 each" in one["note"] for one in found.json["rows"])


@pytest.mark.filterwarnings("ignore:items of .* are not skill")
def test_items_of_one_scenario_are_marks_and_not_scores_of_benchmarks():
    """Marks of judges and the like stay as they are; where none is 0 or 1, calibration says what it takes as right."""
    marks = ResponseMatrix.create(np.random.default_rng(0).uniform(0.05, 0.95, (20, 12)))
    assert with_assumed_sizes(marks) is marks
    with pytest.warns(DataWarning, match="If they are scores of whole benchmarks"):
        assert fit_item_model(marks).thresholds


def test_known_numbers_and_single_answers_stay():
    names = ["a", "b", "c"]
    answers = ResponseMatrix.create(np.array([[1.0, 0.0, 1.0]]), scenarios=names)
    assert with_assumed_sizes(answers) is answers
    trials = np.array([[200, 1, 1], [0, 1, 1]])
    values = np.array([[0.47, 1.0, 0.3], [np.nan, 0.0, 1.0]])
    found = with_assumed_sizes(ResponseMatrix.create(values, scenarios=names, n_trials=trials))
    # of the item that has a score without a number, 1.0 is one of as many questions
    np.testing.assert_array_equal(found.n_trials, [[200, 1, ASSUMED_QUESTIONS], [0, 1, ASSUMED_QUESTIONS]])
    assert found.items[COLUMN].to_list() == [0, 0, ASSUMED_QUESTIONS]
    assert with_assumed_sizes(found) is found


def test_a_new_score_without_a_size_counts_as_many_as_past_ones_of_the_item(board, bank):
    """It counted as one trial, without a word."""
    sized = board[1]
    with pytest.warns(DataWarning, match="1 score came without a number of questions, and counts as "):
        found = with_usual_sizes(ResponseMatrix.create(np.array([[0.47, 1.0]]), item_ids=sized.item_ids[:2]), sized)
    np.testing.assert_array_equal(found.n_trials, [[np.median(sized.n_trials[:, 0][sized.n_trials[:, 0] > 0]), 1]])
    for one in (bank, itembank_living.without_responses(bank)):
        found = warns("count as 100 each", as_new_responses, one, {"benchmark-0": 0.4, "benchmark-1": 1.0})
        np.testing.assert_array_equal(found.n_trials, [[100, 100]])
    scores = board[0]
    inside = dataclasses.replace(scores, responses=np.clip(scores.responses, 0.01, 0.99))
    assert fit_item_model(inside, ib.calibrations.Variational("2pl", family="beta")).parameters.family == "beta"
