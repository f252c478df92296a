"""Items of a task in a bank, their samples and estimates, and which Inspect fits; these tests need none."""

import math
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import polars as pl
import pytest

from itembank.errors import DataError, IntegrityError, MissingDependencyError
from itembank.responses.error_kinds import KINDS
from itembank.responses.prompts import PROMPT_SETTINGS, TASK_NAME, settings_text
from itembank.sessions.events import Failed, Told
from itembank_harnesses.inspect import samples as module
from itembank_harnesses.inspect.samples import answer_of, check_release, matrix_of, samples_by_item, task_items
from itembank_harnesses.readers.inspect_samples import Sample, content_hash
from tests.harnesses.inspect.conftest import simulated_bank


@pytest.fixture(scope="module")
def bank(few_folds):
    return simulated_bank([content_hash(f"Question {number}", "x") for number in range(1, 13)])


def samples(n_samples=12, text="Question"):
    return [
        SimpleNamespace(id=None, input=f"{text} {number}", target="x", choices=None, metadata=None)
        for number in range(1, n_samples + 1)
    ]


def test_a_task_is_found_by_its_name_or_as_the_only_one(bank):
    assert task_items(bank, "quiz").items["3"] == "quiz/3"
    assert task_items(bank, "pack/Q_uiz").task == task_items(bank, "quiz_mini").task == "quiz"
    names = pl.when(pl.col("sample_id") == "3").then(pl.lit("joy")).otherwise("task").alias("task")
    two = replace(bank, responses=bank.responses.with_tables(items=bank.responses.items.with_columns(names)))
    with pytest.raises(DataError, match=r"of the task 'quizz', got the tasks 'quiz', 'joy'.*Did you mean 'quiz'"):
        task_items(two, "quizz")
    names = pl.lit(settings_text({TASK_NAME: "pack/old"})).alias(PROMPT_SETTINGS)
    responses = replace(bank.responses, items=bank.responses.items.with_columns(names))
    renamed = replace(bank, responses=responses)
    assert task_items(renamed, "old").task == task_items(renamed, "pack/old").task == "quiz"


def test_samples_without_ids_are_numbered_as_inspect_does(bank):
    known = task_items(bank, "quiz")
    found = samples_by_item(bank, known, samples(), ["quiz/2", "quiz/12"])
    assert [(item, one.id) for item, one in found.items()] == [("quiz/2", 2), ("quiz/12", 12)]
    with pytest.raises(IntegrityError, match="1 of 2 that are in none: 'quiz/12'"):
        samples_by_item(bank, known, samples(11), ["quiz/2", "quiz/12"])
    with pytest.raises(IntegrityError, match="1 of 1 of task 'quiz' with another content: 'quiz/2'"):
        samples_by_item(bank, known, samples(text="Query"), ["quiz/2"])


def epoch(failure=0, **costs):
    return Sample(1, 1, {}, None, failure, costs)


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ([0.4], Told("quiz/1", 0.4)),
        ([1.0, 0.0, 1.0], Told("quiz/1", 2 / 3, 2, 3)),
        ([1.0, 0.5], Told("quiz/1", 0.75)),
        ([float("nan"), 1.0], Told("quiz/1", 1.0)),
        ([float("nan")], Failed("quiz/1", reason="error")),
        ([], Failed("quiz/1", reason="not run")),
    ],
)
def test_epochs_make_one_answer(responses, expected):
    assert answer_of("quiz/1", [epoch(2) for _ in responses], responses) == expected


def test_costs_are_those_of_all_epochs_and_unknown_where_one_is():
    answer = answer_of("quiz/1", [epoch(output_tokens=5.0, seconds=1.0), epoch(output_tokens=7.0)], [1.0, 0.0])
    assert answer.costs == {"output_tokens": 12.0}


@pytest.fixture(scope="module")
def long_bank(few_folds):
    return simulated_bank([f"content {number}" for number in range(30)])


def test_epochs_are_counts_of_trials_and_without_a_score_lost(long_bank):
    matrix = matrix_of(long_bank, {"quiz/1": [1.0, 0.0, 1.0], "quiz/2": [0.0]}, "m")
    assert matrix.n_trials.tolist() == [[3, 1]]
    assert matrix.responses[0] == pytest.approx([2 / 3, 0.0])
    answers = {"quiz/1": [1.0, math.nan], "quiz/2": [math.nan], "quiz/3": [0.0]}
    matrix = matrix_of(long_bank, answers, "m", {"quiz/2": KINDS.index("time-out")})
    assert matrix.lost.n.tolist() == [[1, 1, 0]]
    assert matrix.lost.in_words == "1 without a response, 1 time-out"
    assert matrix.with_errors("wrong").responses[0] == pytest.approx([0.5, 0.0, 0.0])


def test_the_package_is_named_where_inspect_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(MissingDependencyError, match=r"pip install inspect_ai$"):
        check_release()


@pytest.mark.parametrize(
    ("version", "is_fit"),
    [("0.3.249", False), ("0.3.250", True), ("0.3.285.dev4+gabc", True), ("0.4.0", True), ("0.2.999", False)],
)
def test_a_release_that_cannot_be_fed_samples_is_refused(monkeypatch, version, is_fit):
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setattr(module, "version", lambda _name: version)
    if is_fit:
        check_release()
    else:
        with pytest.raises(MissingDependencyError, match=rf"0\.3\.250 or newer, got {version}.*itembank import"):
            check_release()
