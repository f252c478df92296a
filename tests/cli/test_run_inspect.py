"""What `itembank run inspect` refuses before it needs Inspect."""

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Say which items to run"),
        (("-n", 3, "--adaptive"), "Say which items to run"),
        (("-n", 3, "--stages", 2, "--batch", 4), "--batch goes with --adaptive"),
        (("--adaptive", "--stages", 2), "--stages goes with -n"),
        (("-n", 3, "--stages", 4), "'4' is not one of '1', '2', '3'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, fitted_bank, tmp_path, words, message):
    outcome = run("run", "inspect", fitted_bank, "task.py", *words, "-o", tmp_path / "run")
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert not (tmp_path / "run").exists()
