"""Write docs/cli.md, the reference of all commands, from the commands themselves: `make docs` runs it."""

import inspect
import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import click

from itembank.cli.command import EXPLAINED_BY, OPTIONS, under_headings
from itembank.cli.main import cli
from itembank.output_keys import outputs, source

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """# Commands

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed, 2 usage,
3 precision that was asked for not reached, 4 integrity check failed. Every option can also come from the environment
(`ITEMBANK_CALIBRATE_DIMS=5`); the command line goes before it. `-v`, `-q` and `--debug` may come before any command or
after it. The default is in brackets after an option's name. Options after "Also" are explained
[once for all commands](#options-of-several-commands).

The shell completes commands, options and their choices after one line in its start-up file:

```
eval "$(_ITEMBANK_COMPLETE=bash_source itembank)"         # bash 4.4 or later, in ~/.bashrc
eval "$(_ITEMBANK_COMPLETE=zsh_source itembank)"          # zsh, in ~/.zshrc
_ITEMBANK_COMPLETE=fish_source itembank | source          # fish, in ~/.config/fish/completions/itembank.fish
```

"""


JSON = """## JSON

With `--format json` a command prints one object, which begins with its `schema_version`, such as `itembank.estimate/1`.
Within a version keys are only added: a reader that skips keys it does not know keeps working. When a key goes or
changes its meaning, the version becomes 2. Unknown numbers are `null`. Scores are from 0 to 1, as in Python and CSV.
`{}` in a key stands for a number, a name or a unit.
"""
SHARED = "Options of several commands"
FEWEST = 2  # commands that have an option with the same words, before it is explained once for all


def reference() -> str:
    """Return the whole page."""
    commands = list(_commands(cli, "itembank", 2))
    uses = Counter(row for command, path, _ in commands for row in _rows(command, path))
    often = (row for row, n_uses in uses.most_common() if n_uses >= FEWEST)
    shared = set({row.split(" ", 2)[1]: row for row in reversed(list(often))}.values())  # one meaning of each name
    once = [f"## {SHARED}\n", _list(sorted(shared, key=lambda row: row.lower().split("--")[1]))]
    sections = [part for command, path, level in commands for part in _section(command, path, level, shared)]
    return "\n".join([HEAD, *once, *sections, JSON, *_keys()])


def _keys() -> Iterator[str]:
    """Yield what each output holds, then what each key means and its unit."""
    uses: dict[str, dict[str, list[str]]] = {}  # outputs by key and by what it is described as
    for name, one in outputs().items():
        yield f"### `{one.version}`\n\nPrinted by `{one.commands}`.\n"
        yield _list(
            (f"- In `{path}`: " if path else "- ") + ", ".join(f"`{key}`" for key in keys)
            for path, keys in sorted(one.keys.items())
        )
        for keys in one.keys.values():
            for key, meaning in keys.items():
                uses.setdefault(key, {}).setdefault(meaning, []).append(f"`{name}`")
    yield "### What keys mean\n"
    yield _list(
        f"- `{key}`{' in ' + ', '.join(dict.fromkeys(of)) if key != meaning else ''} ({unit}): {words}"
        for key in sorted(uses)
        for meaning, of in sorted(uses[key].items())
        for unit, words in [source()["keys"][meaning]]
    )
    yield "### Units\n"
    yield _list(f"- {unit}: {words}." for unit, words in source()["units"].items())


def _commands(command: click.Command, path: str, level: int) -> Iterator[tuple[click.Command, str, int]]:
    """Yield a command, then its subcommands, each with its name and the level of its heading."""
    yield command, path, level
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is None:
                raise SystemExit(f"{path} lists a command {name} that it does not have")
            yield from _commands(child, f"{path} {name}", level + 1)


def _rows(command: click.Command, path: str) -> dict[str, tuple[str, str]]:
    """Return the line of each option that is explained, with its heading and its longest name."""
    context = click.Context(command, info_name=path)
    return {
        _row(one, context): (heading, max(one.opts, key=len))
        for heading, options in under_headings(command, context).items()
        for one in options
        if heading not in EXPLAINED_BY and "--help" not in one.opts
    }


def _section(command: click.Command, path: str, level: int, shared: Container[str]) -> Iterator[str]:
    """Yield the section of a command: what it is for, its own options, and the names of the others."""
    context = click.Context(command, info_name=path)
    yield f"{'#' * level} `{path}`\n"
    yield _usage(command, path, context)
    yield from _help(command)
    rows = _rows(command, path)
    for title in dict.fromkeys(heading for heading, _ in rows.values()):
        own = [row for row, (heading, _) in rows.items() if heading == title and row not in shared]
        if own:
            if title != OPTIONS:
                yield f"**{title}**\n"
            yield _list(own)
    also = [f"`{name}`" for row, (_, name) in rows.items() if row in shared]
    if also:
        yield f"Also {', '.join(also)}.\n"
    for heading, options in under_headings(command, context).items():
        if heading in EXPLAINED_BY:
            names = ", ".join(f"`{max(one.opts, key=len)}`" for one in options)
            yield f"{heading}: {names}; see {' and '.join(f'`{command}`' for command in EXPLAINED_BY[heading])}.\n"


def _list(rows: Iterable[str]) -> str:
    return "\n".join(rows) + "\n"


def _usage(command: click.Command, path: str, context: click.Context) -> str:
    return f"`{path} {' '.join(command.collect_usage_pieces(context))}`\n"


def _help(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of the help text; those whose line breaks click keeps become examples."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            lines = [line for line in paragraph.split("\n") if line != "\b"]
            yield "```\n" + textwrap.dedent("\n".join(lines)) + "\n```\n"
        else:
            yield f"{paragraph}\n"


def _row(option: click.Option, context: click.Context) -> str:
    """Return one line of the list of options; brackets outside code must be escaped."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{_value(option, context)}`"
    text = (option.help or "").replace("[", "\\[")
    if option.multiple and "epeat" not in text:
        text += " Repeatable."
    return f"- {names}{value}{_default(option)}: {text}".replace("\n", " ")


def _value(option: click.Option, context: click.Context) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(str(choice) for choice in option.type.choices)
    return option.make_metavar(context).replace(" RANGE", "")


def _default(option: click.Option) -> str:
    if option.required:
        return " (required)"
    if not option.show_default or option.is_flag:
        return ""
    value = option.default
    return f" (`{', '.join(map(str, value)) if isinstance(value, tuple) else value}`)"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
