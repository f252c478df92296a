"""What `itembank run lm-eval` refuses before it needs lm_eval."""

import sys

import pytest

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
    assert "Arguments of lm_eval come last, after two dashes: -- --model" in outcome.err


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
