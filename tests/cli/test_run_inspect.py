"""What `itembank run inspect` refuses before it needs Inspect."""

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Say which items to run"),
        (("-n", 3, "--adaptive"), "Say which items to run"),
        (("-n", 3, "--batch", 4), "--batch goes with --adaptive"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, fitted_bank, tmp_path, words, message):
    outcome = run("run", "inspect", fitted_bank, "task.py", *words, "-o", tmp_path / "run")
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert not (tmp_path / "run").exists()
