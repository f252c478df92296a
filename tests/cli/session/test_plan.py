"""What `session plan` prints, and what it refuses; the trials themselves are tests/sessions/test_plan_sessions.py's."""

import json

import numpy as np
import pytest

from itembank.sessions import plan_sessions
from itembank.sessions.plan_sessions import Design


@pytest.fixture
def tried(monkeypatch):
    """Ways of asking whose errors are known."""
    once = np.full(12, 0.05)
    errors = {"at once": once, "one by one": once - 0.02 + np.tile([0.001, -0.001], 6)}
    ways = tuple(
        Design(name, lambda question, progress, error=error: error, f"{name}: {{n_items}}")
        for name, error in errors.items()
    )
    monkeypatch.setattr(plan_sessions, "DESIGNS", ways)


@pytest.mark.usefixtures("tried")
def test_the_table_has_errors_in_points_and_says_what_to_take(run, bank_folder):
    outcome = run("session", "plan", bank_folder, "-n", 9)
    assert outcome.code == 0
    assert outcome.err.splitlines()[-1] == "Ask one by one: 2.00 ± 0.03 points closer than at once."
    rows = [line.split() for line in outcome.out.splitlines() if "±" in line and "closer" not in line]
    assert [row[:5] for row in rows] == [["at", "once", "5.00", "±", "0.00"], ["one", "by", "one", "3.00", "±"]]
    assert "this" in rows[1]
    assert "this" not in rows[0]


@pytest.mark.usefixtures("tried")
def test_json_has_errors_of_scores_from_0_to_1(run, bank_folder):
    found = json.loads(run("session", "plan", bank_folder, "-n", 9, "--format", "json").out)
    assert (found["taken"], found["command"], found["n_items"]) == ("one by one", "one by one: 9", 9)
    assert [row["mean_absolute_error"] for row in found["designs"]] == pytest.approx([0.05, 0.03])
    assert found["designs"][1]["gain"] == pytest.approx(0.02)


@pytest.mark.parametrize("options", [(), ("-n", 9, "--half-width", 0.1)])
def test_one_size_must_be_given(run, bank_folder, options):
    outcome = run("session", "plan", bank_folder, *options)
    assert outcome.code == 2
    assert "one of -n N and --half-width W" in outcome.err
