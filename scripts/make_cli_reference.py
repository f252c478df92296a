"""Write docs/cli.md, the reference of all commands, from the commands themselves.

    .venv/bin/python scripts/make_cli_reference.py

A test compares the page with what this makes.
"""

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from itembank.cli.main import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """# Commands

<!-- Made by scripts/make_cli_reference.py; change the help texts, then run it. -->

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed, 2 usage,
3 precision that was asked for not reached, 4 integrity check failed. Every option can also come from the environment
(`ITEMBANK_CALIBRATE_DIMS=5`) or from a TOML file given with `--config`, one table a command (`[calibrate]`,
`dims = 5`); the command line goes before the environment, the environment before the file. `--config`, `--debug` and
`--quiet` may stand before any command or after it.
"""


def reference() -> str:
    """Return the whole page."""
    sections = [HEAD, *_sections(cli, "itembank", 2)]
    return "\n".join(sections)


def _sections(command: click.Command, path: str, level: int) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    context = click.Context(command, info_name=path)
    yield f"{'#' * level} `{path}`\n"
    yield _usage(command, path, context)
    yield from _help(command)
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if options:
        yield "| option | default | |\n|---|---|---|"
        yield "\n".join(_row(option, context) for option in options) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is None:
                raise SystemExit(f"{path} lists a command {name} that it does not have")
            yield from _sections(child, f"{path} {name}", level + 1)


def _usage(command: click.Command, path: str, context: click.Context) -> str:
    return f"```\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"


def _help(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of the help text; those whose line breaks click keeps become examples."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            lines = [line for line in paragraph.split("\n") if line != "\b"]
            yield "```\n" + textwrap.dedent("\n".join(lines)) + "\n```\n"
        else:
            yield f"{paragraph}\n"


def _row(option: click.Option, context: click.Context) -> str:
    """Return one line of the table of options; bars inside it must be escaped, brackets outside code too."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{_value(option, context)}`"
    text = (option.help or "").replace("[", "\\[")
    if option.multiple and "epeat" not in text:
        text += " Repeatable."
    return f"| {names}{value} | {_default(option)} | {text} |".replace("\n", " ")


def _value(option: click.Option, context: click.Context) -> str:
    if isinstance(option.type, click.Choice):
        return "\\|".join(str(choice) for choice in option.type.choices)
    return option.make_metavar(context).replace(" RANGE", "")


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    return f"`{option.default}`" if option.show_default and not option.is_flag else ""


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE.name)
