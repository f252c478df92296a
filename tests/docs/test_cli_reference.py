import importlib
import re
from pathlib import Path

import click
import pytest

from itembank.cli.main import cli, sections

COMMANDS = [name for commands in sections().values() for name in commands]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    return importlib.import_module("make_cli_reference").reference()


def test_every_command_and_option_is_there(page):
    for name in COMMANDS:
        assert f"`itembank {name}`" in page
        command = cli.get_command(click.Context(cli), name)
        section = page.split(f"### `itembank {name}`")[1].split("\n### ")[0]
        for option in (one for one in command.params if isinstance(one, click.Option) and not one.hidden):
            assert all(f"`{spelling}`" in section for spelling in option.opts)


def test_every_option_has_a_help_text():
    def options(command, path):
        for one in command.params:
            if isinstance(one, click.Option):
                yield f"{path} {one.opts[0]}", one.help
        for name, child in getattr(command, "commands", {}).items():
            yield from options(child, f"{path} {name}")

    for name in COMMANDS:
        for spelling, text in options(cli.get_command(click.Context(cli), name), name):
            assert text, f"{spelling} has no help"


def test_every_key_is_explained_once_for_each_meaning(page):
    keys, described = page.split("## JSON")[1].split("### What keys mean")
    described, units = described.split("### Units")
    lines = [line.split(":")[0] for line in described.splitlines() if line.startswith("- ")]
    assert len(set(lines)) == len(lines)
    assert {line.split("`")[1] for line in lines} == set(
        re.findall("`([^`]+)`", re.sub("(?m)^#.*|Printed by.*|In `.*?`:", "", keys.split("unit.")[1]))
    )
    assert {line.rpartition("(")[2].rstrip(")") for line in lines} <= {
        line[2:].split(":")[0] for line in units.splitlines()
    }
