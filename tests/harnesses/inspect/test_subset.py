"""Runs of a selection inside Inspect."""

import math
from dataclasses import replace

import polars as pl
import pytest

pytest.importorskip("inspect_ai")
from inspect_ai import score

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import DataError, DataWarning, IntegrityError
from itembank.estimation.estimate import estimate
from itembank.planning.select import select
from itembank.responses.prompts import PROMPT_SETTINGS, TASK_NAME, settings_text
from itembank_harnesses.inspect.samples import estimated_metrics
from itembank_harnesses.inspect.tasks import estimating, subset
from tests.harnesses.inspect.running import OF_INSPECT, metrics, run
from tests.harnesses.inspect.toys import Calls, quiz
from tests.readers.logs import read_inspect

pytestmark = OF_INSPECT
WRONG = (3, 5, 8, 13, 14, 17, 20, 21, 22, 24)


@pytest.fixture(scope="module")
def selection(bank_path):
    """Ten items, and their file."""
    chosen = select(load_bank(bank_path), 10)
    chosen.save(bank_path.parent / "selection.json")
    return chosen, str(bank_path.parent / "selection.json")


@pytest.fixture(scope="module")
def log(bank_path, selection, tmp_path_factory):
    Calls.reset(wrong=WRONG)
    done = run(subset("quiz", str(bank_path), selection[1]), tmp_path_factory.mktemp("subset"))
    assert done.status == "success", done.error
    return done


def estimated(bank_path, selection, folder):
    with pytest.warns(DataWarning, match="part of their tasks"):
        responses = read_inspect(folder)
    found = estimate(bank_path, responses, selection=selection)
    return {name: (found.value[0, k], found.low[0, k], found.high[0, k]) for k, name in enumerate(found.targets)}


def test_the_log_holds_the_estimate_of_the_library(log, bank_path, selection):
    expected, found = estimated(bank_path, selection[0], log.location), metrics(log)
    for target in ("quiz", "overall"):
        assert [found[f"{target}{end}"] for end in ("", "_low", "_high")] == pytest.approx(expected[target])


def test_the_chosen_samples_are_run_and_no_others(log, selection):
    assert sorted(f"quiz/{sample.id}" for sample in log.samples) == sorted(selection[0].item_ids)


def test_a_task_that_was_renamed_at_import_is_run_by_its_own_name(bank_path, log, selection, tmp_path):
    bank = load_bank(bank_path)
    names = pl.lit(settings_text({TASK_NAME: "quiz"}), dtype=pl.String).alias(PROMPT_SETTINGS)
    renamed = bank.responses.items.with_columns(pl.lit("game").alias("task"), names)
    save_bank(replace(bank, responses=replace(bank.responses, items=renamed)), tmp_path / "bank")
    Calls.reset(wrong=WRONG)
    done = run(subset("quiz", str(tmp_path / "bank"), selection[1]), tmp_path / "logs")
    assert done.status == "success", done.error
    assert metrics(done) == metrics(log)
    with pytest.warns(DataWarning, match="part of their tasks"):
        assert set(read_inspect(done.location).items["task"]) == {"game"}


def test_scoring_a_log_again_gives_the_same_estimate(log, bank_path):
    again = score(log, estimating(str(bank_path), "quiz"), action="append", display="none")
    names = [one.name for one in again.results.scores]
    assert len(names) == 3
    assert "itembank" in names
    every = estimated_metrics(
        [(one.id, one.scores["itembank"].as_float()) for one in log.samples], bank=str(bank_path), task="quiz"
    )
    assert {name: one.value for name, one in again.results.scores[-1].metrics.items()} == pytest.approx(every)


def test_the_chosen_scorer_is_the_one_of_the_bank(bank_path, selection, tmp_path):
    Calls.reset(wrong=WRONG)
    found = metrics(run(subset("quiz", str(bank_path), selection[1], task_args={"several": True}), tmp_path))
    Calls.reset(wrong=WRONG)
    assert found == metrics(run(subset("quiz", str(bank_path), selection[1]), tmp_path))


def test_a_full_run_with_our_scorer_has_the_true_score(bank_path, tmp_path):
    Calls.reset(wrong=WRONG)
    task = quiz()
    task.scorer = [*task.scorer, estimating(str(bank_path), "quiz", scorer_name="match")]
    found = metrics(run(task, tmp_path))
    assert found["overall"] == pytest.approx(metrics_accuracy := 1 - len(WRONG) / 24, abs=1e-12)
    assert found["overall_low"] == found["overall_high"] == pytest.approx(metrics_accuracy, abs=1e-12)


def test_metrics_of_no_scores_are_unknown(bank_path, selection):
    found = estimated_metrics([(1, math.nan)], bank=str(bank_path), task="quiz", selection=selection[1])
    assert found["n_items"] == 0
    assert all(math.isnan(value) for name, value in found.items() if name != "n_items")


def test_items_of_other_banks_and_tasks_are_refused(bank_path, selection, tmp_path):
    path = tmp_path / "other.json"
    replace(selection[0], item_ids=tuple(f"joy/{number}" for number in range(10))).save(path)
    with pytest.raises(DataError, match="must be in the bank, got 10 that are not"):
        subset("quiz", str(bank_path), str(path))
    with pytest.raises(IntegrityError, match=r"documents of 'quiz', got .* that are in none"):
        subset("quiz", str(bank_path), selection[1], task_args={"size": 3})
