"""Every method, family and law gives the numbers it gave when `values.json` was written."""

import json
from pathlib import Path

import pytest

from tests.snapshot.compare import changes
from tests.snapshot.record import record

VALUES = Path(__file__).parent / "values.json"
DIGITS = 5
"""Kernels of the BLAS differ by less, but for these calls."""
FEWER_DIGITS = {"pretrain": 2, "pretrain comparison": 2}
"""The two-step law converges slowly: how far its starts end apart differs by a thousandth with AVX-512."""
OTHERS = {
    "estimate random-forest": "trees of scikit-learn split otherwise at ties",
    "estimate knn": "with AVX-512 scikit-learn takes other neighbours of those as near",
    "calibrate mml-counts": "few models: acceleration stops after 13 or after 250 steps, at about the same items",
}
"""Calls that another processor answers otherwise, and why."""


@pytest.mark.slow
def test_the_numbers_are_those_kept():
    """After a change that is meant: python scripts/snapshot.py write tests/snapshot/values.json."""
    known, found = json.loads(VALUES.read_text(encoding="utf-8"))["calls"], record()
    for call in {*known, *found} - set(OTHERS):
        before, after = ({call: calls[call]} if call in calls else {} for calls in (known, found))
        assert changes(before, after, digits=FEWER_DIGITS.get(call, DIGITS)) == []


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
