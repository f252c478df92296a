import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.regression import Side, compare, side_of, table

ROOT = Path(__file__).parents[2]


def test_the_other_version_is_a_checkout_an_interpreter_or_a_revision():
    with side_of(str(ROOT)) as there:
        assert there == Side(sys.executable, ROOT / "src")
    with side_of(sys.executable) as there:
        assert there == Side(sys.executable, None)
    with pytest.raises(SystemExit, match="revision of this repository, got 'no'"), side_of("no"):
        pass


def test_sides_take_turns_the_first_round_does_not_count_and_what_every_other_says_is_named(monkeypatch):
    order = []

    def seconds(side, compiled):
        order.append((side.python, compiled.name))
        return {"call": float(len(order)), f"only {side.python}": 0.0}

    monkeypatch.setattr(Side, "seconds", seconds)
    found = compare(Side("a", None), Side("b", None), 2)
    assert [name for name, _ in order] == ["a", "b", "b", "a", "a", "b"]
    assert set(order) == {("a", "here"), ("b", "there")}
    assert found["only a"][1].size == 0
    assert "is not there" in list(table(found))[2]
    assert found["call"][0].tolist() == [4.0, 5.0]
    assert found["call"][1].tolist() == [3.0, 6.0]
    found = {
        "same": (np.array([1.0, 1.4]), np.array([1.0, 1.0])),
        "slower": (np.array([1.2, 1.4]), np.array([1.0, 1.0])),
        "faster": (np.array([0.5, 0.6]), np.array([1.0, 1.0])),
    }
    lines = list(table(found))[1:]
    assert [line.split(")")[1].strip() for line in lines] == ["", "slower", "faster"]
    assert "1.20  (1.20 to 1.40)" in lines[1]
