from dataclasses import dataclass
from typing import Literal

import click
import pytest
from click.testing import CliRunner

from itembank.cli.options import WholeNumbers, option, typed

Size = Literal["small", "large"]


@dataclass(frozen=True)
class Spec:
    """A field of every kind that specs have."""

    count: int = 3
    weight: float | None = None
    size: Size | Literal["auto"] = "auto"
    scale: float | Literal["global", "scenario"] = "scenario"
    tags: tuple[str, ...] = ()
    has_costs: bool = True
    is_forced: bool = False
    k: tuple[int, ...] = (1,)


def given(*words):
    """Make a command of all fields; return what it gets, what of that was typed, and how it ends."""
    found = {}

    @click.command()
    @option("--count", "A count.", Spec)
    @option("--weight", "A weight.", Spec)
    @option("--size", "A size.", Spec)
    @option("--scale", "A scale.", Spec)
    @option("--tag tags", "A tag.", Spec)
    @option("--costs/--no-costs has_costs", "Costs.", Spec)
    @option("--force is_forced", "Force.", Spec)
    @option("--k", "Samples.", Spec, type=WholeNumbers(), multiple=False, default="1")
    def command(**choices):
        found.update(all=choices, typed=typed(choices))

    return found, CliRunner().invoke(command, words)


def test_a_command_without_options_makes_the_default_spec():
    found, _ = given()
    assert Spec(**found["all"]) == Spec()
    assert found["typed"] == {}


def test_options_are_of_the_types_of_their_fields():
    words = [
        "--count",
        "5",
        "--weight",
        "2",
        "--size",
        "large",
        "--scale",
        "0.5",
        "--tag",
        "a",
        "--tag",
        "b",
        "--no-costs",
        "--force",
        "--k",
        "1,1e2",
    ]
    wanted = Spec(5, 2.0, "large", 0.5, ("a", "b"), has_costs=False, is_forced=True, k=(1, 100))
    found, _ = given(*words)
    assert Spec(**found["all"]) == Spec(**found["typed"]) == wanted
    assert given("--scale", "global")[0]["typed"] == {"scale": "global"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--count", "2.5"), "is not a valid integer"),
        (("--size", "huge"), "'small', 'large', 'auto'"),
        (("--scale", "wide"), "must be a number or 'global' or 'scenario', got 'wide'"),
        (("--k", "1,2.5"), "must be whole numbers with commas between them, got '1,2.5'"),
        (("--k", "one"), "must be whole numbers"),
    ],
)
def test_other_values_are_refused(words, message):
    found, outcome = given(*words)
    assert (found, outcome.exit_code) == ({}, 2)
    assert message in outcome.output


def test_the_help_shows_defaults_and_choices():
    text = given("--help")[1].output
    assert "[small|large|auto]" in text
    assert "NUMBER|global|scenario" in text
    assert "[default: 3]" in text
    assert "A weight.\n" in text
