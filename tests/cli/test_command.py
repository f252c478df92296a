from dataclasses import dataclass
from typing import Literal

import click
import pytest
from click.testing import CliRunner

from itembank.cli.command import SESSION, Command, gathered, headed, under_headings
from itembank.cli.options import WholeNumbers, option, typed


def test_an_option_of_reading_leads_to_import(run, tmp_path):
    outcome = run("estimate", tmp_path, "new.csv", "--metric", "acc")
    assert outcome.code == 2
    assert "itembank import FILES --metric ..." in outcome.err
    assert "import" not in run("info", tmp_path, "--metric", "acc").err


def command():
    """A command whose options stand under two headings, one of them of sessions."""

    @click.command("try", cls=Command)
    @headed(SESSION, click.option("--column", help="Of a table."))
    @gathered("limits", headed("Limits", click.option("--most", type=int), click.option("--least", type=int)))
    @click.option("--seed", type=int)
    def made(**given):
        click.echo(sorted(given.items()))

    return made


def test_options_stand_under_their_headings_and_those_of_sessions_last():
    names = {heading: [one.opts[-1] for one in options] for heading, options in _sections().items()}
    assert names == {"Options": ["--seed", "--help"], "Limits": ["--most", "--least"], SESSION: ["--column"]}
    text = CliRunner().invoke(command(), ["--help"]).output
    assert [text.index(f"{heading}:") for heading in names] == sorted(text.index(f"{heading}:") for heading in names)
    assert "--column: see itembank session start --help" in text
    assert "Of a table." not in text


def _sections():
    made = command()
    return under_headings(made, click.Context(made))


def test_gathered_options_come_as_one_mapping():
    out = CliRunner().invoke(command(), ["--most", "3", "--seed", "4"]).output
    assert out.strip() == "[('column', None), ('limits', {'most': 3, 'least': None}), ('seed', 4)]"


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
