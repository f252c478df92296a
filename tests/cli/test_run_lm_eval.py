"""What `itembank run lm-eval` refuses before it needs lm_eval."""

import sys

import pytest

MODEL = ("--", "--model", "hf", "--model_args", "pretrained=org/m")


@pytest.fixture(autouse=True)
def _without_lm_eval(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)


def test_without_lm_eval_the_package_is_named(run, fitted_bank, tmp_path):
    outcome = run("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", *MODEL)
    assert outcome.code == 1
    assert "pip install 'lm_eval>=0.4.5,<0.6'" in outcome.err
