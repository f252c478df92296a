"""Every method, family and law gives the numbers it gave when `values.json` was written."""

import json
from pathlib import Path

import pytest

from tests.cli.contract.every_option import commands
from tests.snapshot.calls import CALLS, NOT_HERE
from tests.snapshot.compare import changes, kept
from tests.snapshot.record import record
from tests.snapshot.verbs import VERBS

VALUES = Path(__file__).parent / "values.json"
DIGITS = 5
"""Kernels of the BLAS differ by less, but for these calls."""
FEWER_DIGITS = {"spread_over_starts": 2, "pretrain": 3}
"""By a part of call and place. The two-step law converges slowly. With AVX-512 its starts end apart by another
thousandth."""
OTHERS = {"calibrate mml-counts": "few models: acceleration stops after 13 or after 250 steps, at about the same items"}
"""Calls that another processor answers otherwise, and why."""


def digits_of(call, place):
    """Return how many digits of a number hold on every processor."""
    return next((digits for part, digits in FEWER_DIGITS.items() if part in f"{call}: {place}"), DIGITS)


@pytest.mark.slow
def test_the_numbers_are_those_kept():
    """After a change that is meant: python scripts/snapshot.py write tests/snapshot/values.json."""
    known, found = json.loads(VALUES.read_text(encoding="utf-8"))["calls"], record()
    for digits in {DIGITS, *FEWER_DIGITS.values()}:
        before, after = (
            {
                call: {place: value for place, value in values.items() if digits_of(call, place) == digits}
                for call, values in calls.items()
                if call not in OTHERS
            }
            for calls in (known, found)
        )
        assert changes(before, after, digits=digits) == []


def test_every_command_is_called_or_has_a_reason_and_what_was_kept_is_of_the_calls_of_today():
    known = {command for command in commands() if command and not command.startswith("import ")}
    called = {command for command in known if any(f"{words} ".startswith(f"{command} ") for words in CALLS.values())}
    assert known - called == set(NOT_HERE)
    assert set(json.loads(VALUES.read_text(encoding="utf-8"))["calls"]) == {*CALLS, *VERBS}


def test_what_differs_is_named():
    before = {"estimate": {"value": 0.5, "gone": 1.0, "ids": "abc"}, "old": {}}
    after = {"estimate": {"value": 0.5 + 1e-7, "new": 1.0, "ids": "abd"}, "late": {}}
    of_call = [f"estimate: {words}" for words in ("gone: gone", "new: new", "ids: abc became abd")]
    assert changes(before, after, digits=5) == ["old: gone", *of_call, "late: new"]
    assert "estimate: value: 0.5 became 0.5000001" in changes(before, after, digits=8)


def test_writing_again_keeps_numbers_that_only_rounding_moved():
    before = {"estimate": {"value": 0.5, "other": 1.0, "ids": "abc", "gone": 1.0}, "old": {}}
    after = {"estimate": {"value": 0.5 + 1e-13, "other": 1.1, "ids": "abd", "new": 2.0}, "late": {"value": 1.0}}
    found = kept(before, after, digits=12)
    assert found == after | {"estimate": after["estimate"] | {"value": 0.5}}
