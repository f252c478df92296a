"""What `itembank run lm-eval` and `itembank export lm-eval-tasks` refuse before they need lm_eval."""

import sys

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection

MODEL = ("--", "--model", "hf", "--model_args", "pretrained=org/m")


@pytest.fixture(autouse=True)
def _without_lm_eval(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Say which items to run"),
        (("-n", 3, "--adaptive"), "Say which items to run"),
        (("-n", 3, "--max-items", 4), "--max-items goes with --adaptive"),
        (("-n", 3, "--half-width", 0.1), "--half-width goes with --adaptive"),
        (("--adaptive", "--stages", 2), "--stages goes with -n"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, fitted_bank, tmp_path, words, message):
    outcome = run("run", "lm-eval", fitted_bank, *words, "-o", tmp_path / "run", *MODEL)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert not (tmp_path / "run").exists()


def test_arguments_of_the_harness_without_the_dashes_are_told_where_they_stand(run, fitted_bank, tmp_path):
    outcome = run("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", "--model", "hf")
    assert outcome.code == 2
    assert "Arguments of lm_eval stand last, after two dashes: -- --model" in outcome.err


def test_a_model_must_have_a_name(run, fitted_bank, tmp_path):
    outcome = run("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", "--", "--model", "hf")
    assert outcome.code == 2
    assert "--model-id NAME" in outcome.err


def test_arguments_that_the_run_decides_are_refused(run, fitted_bank, tmp_path):
    outcome = run("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", *MODEL, "--limit", 5)
    assert outcome.code == 2
    assert "--limit must be left out after the two dashes (--): the items come from the bank." in outcome.err


def test_without_lm_eval_the_package_is_named(run, fitted_bank, tmp_path):
    outcome = run("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", *MODEL)
    assert outcome.code == 1
    assert "pip install 'lm_eval>=0.4.5,<0.6'" in outcome.err


def test_a_bank_that_names_no_metric_cannot_be_exported(run, fitted_bank, tmp_path):
    bank = load_bank(fitted_bank)
    ids = [f"task/{k}" for k in range(3)]
    Selection(tuple(ids), ("task",) * 3, np.ones(3) / 3, "random", bank.bank_id).save(tmp_path / "selection.json")
    words = ("--selection", tmp_path / "selection.json", "-o", tmp_path / "tasks")
    outcome = run("export", "lm-eval-tasks", fitted_bank, *words)
    assert outcome.code == 2
    assert "responses must be a metric that lm_eval logs" in outcome.err
    assert not (tmp_path / "tasks").exists()
