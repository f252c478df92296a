"""The `itembank` command: loads a subcommand's module only when it is called."""

import atexit
import gc
import importlib
import io
import sys
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from itembank.cli.command import ANYWHERE, EXIT_FAILED, Group, failure, name_variables, shared_options, write_sections
from itembank.errors import command_line_words
from itembank.methods import entry_points_of

Commands: TypeAlias = Mapping[str, tuple[str, str]]

ELSEWHERE = ("", "")
"""Keeps the place of a command that another package brings, in the order of the work."""
SECTIONS: Mapping[str, Commands] = {
    "From past results to scores": {
        "import": ("itembank.cli.import_results", "Turn per-item results into a response file."),
        "download": ELSEWHERE,
        "calibrate": ("itembank.cli.calibrate", "Fit item parameters and write a bank, or begin one."),
        "info": ("itembank.cli.info", "Show what is in a bank, its history, what differs."),
        "bank": ELSEWHERE,
        "select": ("itembank.cli.select", "Choose the items to run on a new model."),
        "run": ELSEWHERE,
        "estimate": ("itembank.cli.estimate", "Estimate full-benchmark scores from some responses."),
        "check": ("itembank.cli.check", "Find what is wrong: with items, or with new models."),
        "gate": ("itembank.cli.gate", "Did a change break the model? Pass, fail or undecided."),
        "compare": ("itembank.cli.compare", "Compare models that ran the same items."),
        "plan": ("itembank.cli.plan", "Find how many items a question needs."),
    },
    "One item at a time": {
        "session": ("itembank.cli.session", "Test a model adaptively: ask for items, tell the answers."),
        "replay": ELSEWHERE,
    },
    "The benchmark and larger models": {},  # what other packages bring
    "For others": {
        "export": ("itembank.cli.select", "Write chosen items for another tool."),
        "report": ("itembank.cli.info", "Write a shareable page: one HTML file."),
        "publish-tiny": ELSEWHERE,
        "push": ELSEWHERE,
        "pull": ELSEWHERE,
    },
    "To begin with": {
        "sample-data": ("itembank.cli.quickstart", "Write example results to try the commands on."),
        "quickstart": ("itembank.cli.quickstart", "Run the whole job on built-in data."),
    },
}
"""Commands in the order of the work, with the module and one line of help of each, under the headings of help."""


@cache
def sections() -> Mapping[str, Commands]:
    """Return these commands and those of installed packages, whose entry points are tables like this one."""
    found = {heading: dict(commands) for heading, commands in SECTIONS.items()}
    for entry in entry_points_of("itembank.commands").values():
        for heading, commands in entry.load().items():
            found.setdefault(heading, {}).update(commands)
    brought = {
        heading: {name: one for name, one in commands.items() if one != ELSEWHERE}
        for heading, commands in found.items()
    }
    return {heading: commands for heading, commands in brought.items() if commands}


class LazyGroup(Group):
    """A group that knows its commands' names and one-line helps without importing them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of the whole program, wherever they are."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*sorted(args[:end], key=lambda word: word not in ANYWHERE), *args[end:]])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Names in the order of the work."""
        return [name for commands in sections().values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of one command."""
        for known in (SECTIONS, sections):  # other packages are asked for what is not here
            for commands in (known() if callable(known) else known).values():
                if commands.get(cmd_name, ELSEWHERE) != ELSEWHERE:
                    module = importlib.import_module(commands[cmd_name][0])
                    command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
                    name_variables(command, f"ITEMBANK_{cmd_name}")
                    return command
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the tables, importing none, or an option's."""
        known = [one for commands in sections().values() for one in commands.items()]
        names = [CompletionItem(name, help=text) for name, (_, text) in known if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands from the tables, importing none."""
        texts = {name: text for commands in sections().values() for name, (_, text) in commands.items()}
        write_sections(formatter, {heading: list(one) for heading, one in sections().items()}, texts.__getitem__)


@click.group(
    cls=LazyGroup,
    params=shared_options(),
    epilog=None,
    context_settings={
        "auto_envvar_prefix": "ITEMBANK",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 120,
    },
)
@click.version_option(package_name="itembank", message="%(package)s %(version)s")
def cli() -> None:
    """Estimate a model's full-benchmark score from a handful of items.

    The usual order: import past results, calibrate a bank, select items, run them on the
    new model with your own harness, estimate.

      itembank import results.csv -o responses.parquet
      itembank calibrate responses.parquet -o bank
      itembank select bank -n 100 -o selection.json
      itembank estimate bank new-model.csv --selection selection.json

    Or see it all at once: itembank quickstart
    """


def main() -> None:
    """Run the command line; exit 0 done, 1 failed, 2 usage, 3 precision not reached, 4 integrity check failed.

    Of gates 1 is the verdict FAIL, 3 undecided, and 5 says that there is no verdict.
    """
    # or Python would look through all objects for cycles, while libraries load and once more before it ends: a third of
    # a short command's time
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    asked: dict[str, bool] = {}  # --verbose, --quiet and --debug, wherever they are
    try:
        with command_line_words():
            code = cli.main(standalone_mode=False, obj=asked)  # what a command exits with (ctx.exit) comes back
    except click.Abort:
        click.echo("Aborted.", err=True)
        sys.exit(EXIT_FAILED)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _say(shown.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except Exception as error:
        if asked.get("debug"):
            raise
        text, code = failure(error)
        _say(f"Error: {text}")
        sys.exit(code)
    else:
        if isinstance(code, int) and code:
            sys.exit(code)


def _say(text: str) -> None:
    """Say on standard error what went wrong, in lines that fit."""
    from itembank.cli.render import wrapped

    click.echo(wrapped(text), err=True)
