"""Commands whose help lists options under headings, and the options that every command takes."""

import errno
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from itembank.errors import IntegrityError, ItembankError, ParameterError, did_you_mean

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_IMPRECISE = 3
EXIT_INTEGRITY = 4
EXIT_NO_VERDICT = 5

Sections = Mapping[str, Sequence[str]]
"""Names of commands by the heading under which help lists them."""

OPTIONS = "Options"
SESSION = "Choosing items, when to stop"
EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {SESSION: ("itembank session start",)}
"""Headings below which help lists names alone, and the commands whose help explains these options."""
HEADING = "itembank_heading"


class Command(click.Command):
    """A command with headings in its help."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **{"epilog": EPILOG, **more, "help": _with_examples(more)})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, or say where an option that is not ours belongs."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            harness = next((one.metavar for one in self.params if one.type is click.UNPROCESSED and one.metavar), "")
            name = harness.removeprefix("-- ").partition("_ARGUMENTS")[0].lower()
            words = (
                _in_file(self, option)
                or (name and f". Arguments of {name} come last, after two dashes: -- {option} ...")
                or _meant(self, option)
                or _belongs_to_import(self, ctx, option)
                or f".{did_you_mean(option, [one for known in self.params for one in known.opts if one[:2] == '--'])}"
            )
            raise click.UsageError(f"No such option {option}{words}", ctx) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options under their headings; of those that other commands explain, the names alone."""
        for heading, options in under_headings(self, ctx).items():
            with formatter.section(heading):
                if heading in EXPLAINED_BY:
                    names = ", ".join(max(one.opts, key=len) for one in options)
                    where = " and ".join(f"{command} --help" for command in EXPLAINED_BY[heading])
                    formatter.write_text(f"{names}: see {where}.")
                else:
                    formatter.write_dl([record for one in options if (record := one.get_help_record(ctx)) is not None])


class Group(click.Group):
    """A group of such commands; its help lists them under headings, if it has some."""

    command_class = Command

    def __init__(self, *arguments: Any, sections: Sections | None = None, **more: Any) -> None:
        super().__init__(*arguments, **{"epilog": EPILOG, **more, "help": _with_examples(more)})
        self.sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the headings, those without one last."""
        names = super().list_commands(ctx)
        headed = [name for section in self.sections.values() for name in section]
        return [*headed, *(name for name in names if name not in headed)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which was probably meant."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            name, names = args[0], self.list_commands(ctx)
            known = {*names, *(flag for one in self.get_params(ctx) for flag in one.opts)}
            meant = next((one for one in MEANT_COMMANDS.get(name, ()) if one.split()[0] in known), "")
            few = f" It is one of {', '.join(names)}." if len(names) <= MOST_NAMED else ""
            instead = f" Write {ctx.command_path} {meant}." if meant else did_you_mean(name, names) or few
            ctx.fail(f"No such command {name!r}.{instead}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings."""
        if not self.sections:
            super().format_commands(ctx, formatter)
            return
        room = formatter.width - 6 - max(map(len, self.commands))
        write_sections(formatter, self.sections, lambda name: self.commands[name].get_short_help_str(room))


def _with_examples(more: Mapping[str, Any]) -> str:
    """Return a command's help, in which click keeps the lines of examples: paragraphs that are indented, or calls."""
    paragraphs = inspect.cleandoc(more.get("help") or "").split("\n\n")
    calls = [textwrap.indent(one, "  ") if one.startswith("itembank ") else one for one in paragraphs]
    return "\n\n".join(f"\b\n{one}" if one.startswith(" ") else one for one in calls)


def write_sections(formatter: click.HelpFormatter, sections: Sections, help_of: Callable[[str], str]) -> None:
    """List commands under headings, all with their help in one column."""
    widest = max(len(name) for names in sections.values() for name in names)
    for heading, names in sections.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(widest), help_of(name)) for name in names])


def under_headings(command: click.Command, ctx: click.Context) -> dict[str, list[click.Option]]:
    """Return a command's options by heading: those without one first, those that other commands explain last."""
    found: dict[str, list[click.Option]] = {OPTIONS: []}
    for one in command.get_params(ctx):
        if isinstance(one, click.Option) and not one.hidden:
            found.setdefault(getattr(one, HEADING, OPTIONS), []).append(one)
    last = {heading: found.pop(heading) for heading in EXPLAINED_BY if heading in found}
    return {**found, **last}


def failure(error: BaseException) -> tuple[str, int]:
    """Return what the command line says of an error, and its exit code."""
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        text = (
            "there is not enough memory for this. Check that model_id and item_id are those columns, take fewer models "
            f"or items, or use a larger machine{f' ({error})' if str(error) else ''}."
        )
    elif isinstance(error, ItembankError | OSError):
        text = str(error)
    elif isinstance(error, SystemExit):
        text = f"the harness ended by itself, with exit code {error.code or 0}; its output is above."
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        text = "the command was stopped."
    else:
        text = f"{type(error).__name__}: {error} (run with --debug for the traceback)"
    if isinstance(error, IntegrityError):
        return text, EXIT_INTEGRITY
    return text, EXIT_USAGE if isinstance(error, ParameterError) else EXIT_FAILED


MOST_NAMED = 10
"""Commands of a group that a message lists."""
MEANT_COMMANDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("score", "evaluate", "eval", "predict"), ("estimate",)),
    **dict.fromkeys(("fit", "train", "create", "init"), ("calibrate",)),
    **dict.fromkeys(("audit", "validate"), ("check",)),
    **dict.fromkeys(("rank", "diff"), ("compare",)),
    **dict.fromkeys(("read", "load", "convert"), ("import",)),
    **dict.fromkeys(("show", "describe", "inspect"), ("info", "table")),
    "merge": ("add-models", "bank add-models"),
    "remove": ("retire", "bank retire"),
    "list": ("bank list",),
    "build": ("bank build",),
    "begin": ("start",),
    "help": ("--help",),
    "version": ("--version",),
}
"""What people type first, and the command that does it: the first that a group has."""
MEANT_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "json": ("--format json",),
    "csv": ("--format csv",),
    **dict.fromkeys(("output", "o"), ("--format csv > FILE.csv",)),
    "html": ("--report FILE.html",),
    "out": ("--output PATH",),
    **dict.fromkeys(("ci", "confidence", "alpha"), ("--level 0.95",)),
    **dict.fromkeys(("n", "k", "count", "size"), ("--n-items N", "--max-items N")),
    "items": ("--n-items N", "--selection FILE"),
    **dict.fromkeys(("items-file", "subset"), ("--must-include FILE", "--selection FILE")),
    "model": ("--model-id NAME", "--item-model NAME"),
    "precision": ("--half-width W",),
}


def _meant(command: click.Command, option: str) -> str:
    """Say what is written for an option that people try first, if the command has that."""
    known = {name for one in command.params for name in one.opts}
    lines = [one for one in MEANT_OPTIONS.get(option.lstrip("-"), ()) if one.split()[0] in known]
    return f". Write {lines[0]}." if lines else ""


def _belongs_to_import(command: click.Command, ctx: click.Context, option: str) -> str:
    """Say that an option of how files are read belongs to `import`, if a command reads results."""
    root = ctx.find_root()
    reader = root.command.get_command(root, "import") if isinstance(root.command, click.Group) else None
    reads = any(one.name in {"responses", "jq"} for one in command.params)
    if reader is None or not reads or not any(option in one.opts for one in reader.params):
        return ""
    return f": how files are read is chosen first, by itembank import FILES {option} ..."


_IN_FILE = {
    "--session": {
        "target": 'target = "..."',
        "predict": 'target = "SCENARIO" and constraints.at_most = {SCENARIO = 0}',
        "errors": 'errors = "..."',
        "threshold": "stopping.decision = {threshold = ...}",
        "better-than": 'stopping.decision = {model = "..."}',
        "level": "stopping.level = ...",
    },
    "--spec": {
        "exclude-task": 'exclude_tasks = ["..."]',
        "exclude-file": 'exclude_files = ["..."]',
        "skip-unusable": "skip_unusable = true",
        "filter": 'filter_name = ["..."]',
        "scenario": 'scenario = "..."',
    },
}
"""Choices without an option of their own, and what is written for them in the file of an option."""


def _in_file(command: click.Command, option: str) -> str:
    """Say that a choice is written in the file of an option, if the command has that."""
    for file, lines in _IN_FILE.items():
        has_file = any(file in one.opts for one in command.params) and (file == "--session" or command.name == "import")
        if has_file and (line := lines.get(option.removeprefix("--"))):
            return f": write {line} in a file, and give {file} FILE.toml."
    return ""


EPILOG = "--verbose, --quiet and --debug work here too: see itembank --help."
ANYWHERE = {"--debug", "--quiet", "-q", "--verbose", "-v"}
"""Flags that are taken before a command or after it."""


def name_variables(command: click.Command, prefix: str) -> None:
    """Name the environment's variables of a command and those below it: after the option, not its parameter."""
    for name, part in command.commands.items() if isinstance(command, click.Group) else ():
        name_variables(part, f"{prefix}_{name}")
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and longest.startswith("--"):
            parameter.envvar = f"{prefix}{longest[1:]}".replace("-", "_").upper()


def shared_options() -> list[click.Option]:
    """Make the options that are taken before a command or after it."""
    known: dict[str, Any] = {"expose_value": False, "is_eager": True, "is_flag": True, "callback": _keep}
    flags = {
        "-v --verbose": "Show all facts and notes. Before the command or after it.",
        "-q --quiet": "Show no progress and no notes. Before the command or after it.",
        "--debug": "Show a traceback when something fails. Before the command or after it.",
    }
    return [click.Option(one.split(), help=text, **known) for one, text in flags.items()]


def _keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Switch a flag on for the whole program."""
    if value:
        ctx.ensure_object(dict)[parameter.name] = True
