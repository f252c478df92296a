"""Options and commands that documents name exist and belong together, and all are in the reference."""

import functools
import importlib
import re
from pathlib import Path

import click
import pytest

from itembank.cli.main import cli, sections
from itembank.errors import did_you_mean
from itembank_harnesses.harbor import AGENT, OWNED

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for pattern in (
        *("*.md", "contributing/*.md", "docs/*.md", "docs/*.ipynb"),
        *("benchmarks/**/*.md", "examples/**/*.md", "examples/**/*.y*ml"),
    )
    for path in REPOSITORY.glob(pattern)
    if path.name not in {"cli.md", "CHANGELOG.md", "notebook.md"}  # made of the commands; what was true once
)
SOURCES = REPOSITORY / "src" / "itembank"
OPTION = r"(?<![\w-])--[a-z][\w-]+"
CALL = re.compile(r"\bitembank ((?:[a-z][\w-]*)(?:[^\n`|]|\\\n)*)")
QUOTED = re.compile(r"""'[^'\n]*'|"[^"\n]*\"""")
"""What a call quotes: commands of other programs, and values."""
PROGRAMS = r"(?:\S*/)?(?:python3?|pip|pytest|make|git|lm_eval|inspect|harbor|tau2|npx|promptfoo|pre-commit|\S+\.py)\b"
FOREIGN = {
    *("--model", "--model_args", "--log_samples", "--output_path", "--num_fewshot", "--limit", "--samples", "--tasks"),
    *("--apply_chat_template", "--system_instruction", "--batch_size", "--include_path", "--predict_only"),  # lm_eval
    *("--epochs", "--display", "--log-dir", "--no-log-realtime", "--no-fail-on-error"),  # Inspect
    *("--sample-id", "--model-role"),
    *("--instance_ids", "--run-ids", "--dump-eval-details", "--mode", "--include-task-name", "--max-retries"),
    # benchmarks, the tutorials' agent, promptfoo, pre-commit, pip, mini-SWE-agent
    *("--only-kept", "--draws", "--repeat", "--breaks", "--hook-type", "--upgrade", "--filter"),
}
OF_SOURCES = {
    *("--config", "--fewshot_as_multiturn", "--gen_kwargs", "--save-details", "--evaluate", "--generate-config"),
    *("--run-config", "--solver", "--solver-config", "--system-message", "--log-buffer", "--no-log-samples"),
    *("--sample-shuffle", "--task-config", "--font", "--main", "--option"),  # the last three are no options of programs
    *(one for one in (*OWNED, *AGENT) if one.startswith("--")),
    *("--dataset_name", "--predictions_path", "--run_id", "--run-id"),
}
SHARED = {"--help", "--version", "--debug", "--quiet", "--verbose"}
DEFAULT = "verdict"
"""Subcommand that a group stands for where none is named."""


@functools.cache
def commands():
    """Options of every command, by its words; None for a group that is no command itself."""

    def walk(group, words):
        for name in group.list_commands(click.Context(group)):
            command = group.get_command(click.Context(group), name)
            if isinstance(command, click.Group):
                walk(command, (*words, name))
                found[(*words, name)] = found.get((*words, name, DEFAULT))
            else:
                known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
                found[(*words, name)] = known | SHARED

    found = {}
    walk(cli, ())
    return found


def of_call(text):
    """Command of a call and the options it is given; those after two dashes are another program's."""
    words = QUOTED.sub("Q", text.replace("\\\n", " ")).split(" -- ")[0].split(" # ")[0].split()
    path = tuple(words[:1])
    is_group = path in commands() and commands()[path] is None
    if len(words) > 1 and (is_group or (*path, words[1]) in commands()):
        path = (*path, words[1])
    return path, re.findall(OPTION, " ".join(words[len(path) :]))


def wrong_calls(text):
    for found in CALL.finditer(text):
        path, options = of_call(found[1])
        known = commands().get(path)
        if known is None and len(path) > 1 and re.fullmatch(r"[a-z][\w-]*", path[1]):
            yield f"itembank {' '.join(path)} is no command"
        for option in options if known is not None else ():
            if option not in known:
                yield f"itembank {' '.join(path)} has no {option}.{did_you_mean(option, known)}"


def unknown_options(text):
    known = {option for options in commands().values() for option in options or ()} | FOREIGN
    plain = re.sub(rf"`{PROGRAMS}[^`]*`|(?m:^\s*(?:- )?{PROGRAMS} .*$)", "", text)
    plain = re.sub(r"--command (?:'[^']*'|\"[^\"]*\")|\"\$\([^)]*\)\"", "", plain)
    return sorted({option for option in re.findall(OPTION, plain) if option not in known})


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_options_exist_and_belong_to_their_command(page):
    text = page.read_text(encoding="utf-8")
    assert list(wrong_calls(text)) == []
    assert unknown_options(text) == []


def test_messages_and_help_name_options_that_exist():
    for path in SOURCES.rglob("*/*.py"):
        text = path.read_text(encoding="utf-8")
        assert list(wrong_calls(text)) == [], path
        assert sorted({*unknown_options(text)} - OF_SOURCES) == [], path


def test_a_wrong_option_and_a_wrong_command_are_found():
    text = (
        "`itembank select b --numbers 3`, `itembank bank raise b`, `--no-such`, `itembank gate a b --prize 1 -- --yes`"
    )
    wrong = ("select has no --numbers.", "bank raise is no command", "gate has no --prize.")
    assert list(wrong_calls(text)) == [f"itembank {one}" for one in wrong]
    assert unknown_options(text) == ["--no-such", "--numbers", "--prize", "--yes"]


COMMANDS = [name for commands in sections().values() for name in commands]


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    return importlib.import_module("make_cli_reference").reference()


def test_every_command_and_option_is_there_with_a_help_text(page):
    for name in COMMANDS:
        assert f"`itembank {name}`" in page
        command = cli.get_command(click.Context(cli), name)
        section = page.split(f"### `itembank {name}`")[1].split("\n### ")[0]
        for option in (one for one in command.params if isinstance(one, click.Option) and not one.hidden):
            assert all(f"`{spelling}`" in section for spelling in option.opts)

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
