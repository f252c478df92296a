import shlex
from dataclasses import dataclass
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from itembank.cli.command import SESSION, under_headings
from itembank.cli.options import typed
from itembank.cli.signatures import WholeNumbers, argument, option, verb


def test_an_option_of_reading_leads_to_import(run, tmp_path):
    outcome = run("estimate", tmp_path, "new.csv", "--metric", "acc")
    assert outcome.code == 2
    assert "itembank import FILES --metric ..." in outcome.err
    assert "import" not in run("info", tmp_path, "--metric", "acc").err


def test_a_choice_without_an_option_leads_to_its_file(run, tmp_path):
    for words, line in {
        ("replay", tmp_path, "new.csv", "--threshold", "0.7"): "stopping.decision = {threshold = ...} in a file",
        ("run", "lm-eval", tmp_path, "--target", "java"): 'target = "..." in a file, and give --session FILE.toml',
        ("import", "new.csv", "--filter", "x"): 'filter_name = ["..."] in a file, and give --spec FILE.toml',
    }.items():
        outcome = run(*words)
        assert outcome.code == 2
        assert line in outcome.err
    assert "--scenario: write" not in run("calibrate", "new.csv", "--scenario", "x").err


def test_a_pattern_without_a_match_is_told(run, tmp_path):
    outcome = run("import", tmp_path / "*.json", "-o", tmp_path / "r.parquet")
    assert outcome.code == 2
    assert "no file matches" in outcome.err


@verb("try")
def command(
    *,
    column: Annotated[str | None, option("Of a table.", heading=SESSION)],
    limits: Annotated[dict, {"Limits": {"most": option("At most.", type=int), "least": option("At least.", type=int)}}],
    seed: Annotated[int | None, "Of everything random."],
):
    """A command whose options stand under two headings, one of them of sessions."""
    click.echo([column, limits, seed])


def test_options_stand_under_their_headings_and_those_of_sessions_last():
    sections = under_headings(command, click.Context(command))
    names = {heading: [one.opts[-1] for one in options] for heading, options in sections.items()}
    assert names == {"Options": ["--seed", "--help"], "Limits": ["--most", "--least"], SESSION: ["--column"]}
    text = CliRunner().invoke(command, ["--help"]).output
    assert [text.index(f"{heading}:") for heading in names] == sorted(text.index(f"{heading}:") for heading in names)
    assert "--column: see itembank session start --help" in text
    assert "Of a table." not in text


def test_options_of_a_group_come_as_one_mapping():
    out = CliRunner().invoke(command, ["--most", "3", "--seed", "4"]).output
    assert out.strip() == "[None, {'most': 3, 'least': None}, 4]"


def test_types_and_defaults_are_those_of_the_signature():
    found = []

    @verb("try")
    def signed(
        *,
        files: Annotated[tuple[str, ...], argument()],
        other: Annotated[str | None, argument()],
        n_items: Annotated[int, option("A count.", "-n", "--n-items")] = 3,
        how: Annotated[Literal["fast", "slow"], "How."] = "slow",
        many: Annotated[tuple[float, ...], "Many."],
        is_on: Annotated[bool, option("A flag.", "--on")],
        name: Annotated[str, "Must be given."],
    ):
        found.append((files, other, n_items, how, many, is_on, name))

    done = CliRunner().invoke(signed, ["a", "b", "--name", "c"])
    assert (done.exit_code, found.pop()) == (0, (("a",), "b", 3, "slow", (), False, "c"))
    CliRunner().invoke(
        signed, ["a", "b", "-n", "5", "--how", "fast", "--many", "1", "--many", "2.5", "--on", "--name", "c"]
    )
    assert found.pop() == (("a",), "b", 5, "fast", (1.0, 2.5), True, "c")
    for words, missing in ((["a", "b"], "--name"), (["--name", "c"], "FILES...")):
        done = CliRunner().invoke(signed, words)
        assert done.exit_code == 2
        assert f"Missing {'option' if missing == '--name' else 'argument'} '{missing}'" in done.output


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

    fields = {
        "count": option("A count.", of=Spec),
        "weight": option("A weight.", of=Spec),
        "size": option("A size.", of=Spec),
        "scale": option("A scale.", of=Spec),
        "tags": option("A tag.", "--tag", of=Spec),
        "has_costs": option("Costs.", "--costs/--no-costs", of=Spec),
        "is_forced": option("Force.", "--force", of=Spec),
        "k": option("Samples.", of=Spec, type=WholeNumbers(), default="1"),
    }

    @verb("make")
    def command(*, choices: Annotated[dict, fields]):
        found.update(all=choices, typed=typed(choices))

    return found, CliRunner().invoke(command, words)


def test_a_command_without_options_makes_the_default_spec():
    found, _ = given()
    assert Spec(**found["all"]) == Spec()
    assert found["typed"] == {}


def test_options_are_of_the_types_of_their_fields():
    words = shlex.split("--count 5 --weight 2 --size large --scale 0.5 --tag a --tag b --no-costs --force --k 1,1e2")
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


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("merge",), "itembank bank add-models."),
        (("bank", "merge"), "itembank bank add-models."),
        (("help",), "itembank --help."),
        (("score",), "itembank estimate."),
        (("study", "show"), "itembank study table."),
        (("export", "html"), "It is one of ids."),
        (("calibrat",), "Did you mean 'calibrate'?"),
        (("select", "bank", "--n", 5), "Write --n-items N."),
        (("select", "bank", "--json"), "Write --format json."),
        (("estimate", "bank", "new.csv", "--output", "x"), "Write --format csv > FILE.csv."),
        (("estimate", "bank", "new.csv", "--html", "x"), "Write --report FILE.html."),
        (("estimate", "bank", "new.csv", "--items-file", "x"), "Write --selection FILE."),
        (("compare", "a.csv", "b.csv", "--metric", "acc"), "itembank import FILES --metric ..."),
        (("calibrate", "r.parquet", "--n-dims", 2), "Did you mean '--dims'?"),
    ],
)
def test_what_people_type_first_is_answered_with_what_does_it(run, words, advice):
    outcome = run(*words)
    assert outcome.code == 2
    assert advice in " ".join(outcome.err.split())


def test_advice_names_options_that_the_command_has(run):
    told = run("estimate", "bank", "new.csv", "--seed", 3).err.splitlines()[-1]
    assert told == "Error: No such option --seed."


def test_errors_fit_the_terminal_as_notes_do(run, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "bank").touch()
    for words in (("info", tmp_path / "absent"), ("select", tmp_path / "bank", "-n", 5), ("bank", "nothing")):
        outcome = run(*words)
        assert outcome.code
        assert all(len(line) <= 60 or " " not in line.strip() for line in outcome.err.splitlines())
