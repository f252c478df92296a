"""Every method, family and law gives the numbers it gave when `values.json` was written."""

import json
from pathlib import Path

import pytest

from tests.snapshot.compare import changes
from tests.snapshot.record import record

VALUES = Path(__file__).parent / "values.json"
DIGITS = 5
"""Kernels of the BLAS differ by less."""


@pytest.mark.slow
def test_the_numbers_are_those_kept():
    """After a change that is meant: python scripts/snapshot.py write tests/snapshot/values.json."""
    known = json.loads(VALUES.read_text(encoding="utf-8"))["calls"]
    assert changes(known, record(), digits=DIGITS) == []


def test_what_differs_is_named():
    before = {"estimate": {"value": 0.5, "gone": 1.0, "ids": "abc"}, "old": {}}
    after = {"estimate": {"value": 0.5 + 1e-7, "new": 1.0, "ids": "abd"}, "late": {}}
    assert changes(before, after, digits=5) == [
        "old: gone",
        "estimate: gone: gone",
        "estimate: new: new",
        "estimate: ids: abc became abd",
        "late: new",
    ]
    assert "estimate: value: 0.5 became 0.5000001" in changes(before, after, digits=8)
