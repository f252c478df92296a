"""Files of specs: what is given is of the types of the fields, and what is not is named with its key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from itembank.errors import ParameterError
from itembank.files.spec_files import read_choices
from itembank.methods import MethodTable


@dataclass(frozen=True)
class Part:
    size: int
    name: str = "part"


@dataclass(frozen=True)
class Method:
    strength: float = 1.0


@dataclass(frozen=True)
class Whole:
    count: int = 3
    weight: float | Literal["auto"] | None = None
    is_on: bool = False
    tags: tuple[str, ...] = ()
    bounds: Mapping[str, float] | float = 0.0
    part: Part = field(default_factory=lambda: Part(1))
    method: Method | str = "plain"
    methods: tuple[Method | str, ...] = ()


METHODS = MethodTable("tried", {"plain": Method})
NAMED = {"method": (METHODS, "name"), "methods": (METHODS, "name")}


def read(folder, content):
    path = folder / "spec.toml"
    path.write_text(content)
    return read_choices(path, Whole, NAMED)


def test_values_are_as_the_spec_takes_them(tmp_path):
    content = """
    weight = 2
    is_on = true
    tags = ["a", "b"]
    bounds = {x = 1, y = 2.5}
    part = {size = 4}
    method = {name = "plain", strength = 3}
    methods = ["plain", {name = "plain"}]
    """
    assert read(tmp_path, content) == {
        "weight": 2.0,
        "is_on": True,
        "tags": ("a", "b"),
        "bounds": {"x": 1.0, "y": 2.5},
        "part": Part(4),
        "method": Method(3.0),
        "methods": ("plain", Method()),
    }
    assert read(tmp_path, 'weight = "auto"\nbounds = 3') == {"weight": "auto", "bounds": 3.0}
    assert read(tmp_path, "") == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("counts = 3", "spec.toml: keys of the file must be among 'count', .* got 'counts'. Did you mean 'count'"),
        ("count = 2.5", "spec.toml: count must be a whole number, got 2.5"),
        ("count = true", "count must be a whole number, got True"),
        ("weight = 'all'", "weight must be a number or 'auto', got 'all'"),
        ("tags = 'a'", "tags must be a list, each of it a text, got 'a'"),
        ("tags = [1]", "tags must be a text, got 1"),
        ("bounds.x = 'far'", r"bounds\.x must be a number, got 'far'"),
        ("part = {name = 'x'}", r"\[part\] needs 'size' as well"),
        ("part = {size = 'x'}", r"part\.size must be a whole number"),
        ("part = 3", "part must be a table, got 3"),
        ("method = {name = 'fancy'}", r"method\.name: tried method must be one of 'plain', got 'fancy'"),
        ("method = {strength = 3}", "got None"),
        ("method = {name = 'plain', power = 3}", r"keys of \[method\] must be among 'strength'"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, content, message):
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, content)
