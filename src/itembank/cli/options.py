"""Options that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource

from itembank.cli.command import Decorator, headed
from itembank.cli.render import is_quiet, note
from itembank.estimation.estimand_names import ESTIMANDS, RUN
from itembank.responses.score_names import Across, Within

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def format_option(function: Function) -> Function:
    """Add `--format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(function)


def seed_option(function: Function) -> Function:
    """Add `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of all chance."
    )(function)


class BankPath(click.Path):
    """A bank's folder, or its name on the Hub (hf:owner/name[@revision]).

    Where there is no folder, the message says so of one that a killed command left aside.
    """

    def __init__(self, *, file_okay: bool = False) -> None:
        super().__init__(exists=True, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that there is a folder, or that the name is one; nothing is pulled yet."""
        from itembank.files.hub_names import is_hub_name, parse_hub_name  # noqa: PLC0415

        if is_hub_name(value):
            parse_hub_name(value)
            if is_quiet():
                from itembank.files.hub_client import quieten  # noqa: PLC0415

                quieten()
            return Path(value)
        if not Path(value).exists():
            from itembank.bank.bank_records import where_a_bank_is  # noqa: PLC0415
            from itembank.files.atomic import kept_aside  # noqa: PLC0415

            if kept_aside(Path(value)) is not None:
                self.fail(f"{value} is not there. {where_a_bank_is(Path(value))}", param, ctx)
        return super().convert(value, param, ctx)


models_option = click.option("--models", type=FILE, help="What is known of each model, by model_id.")


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=BankPath())(function)


def responses_argument(function: Function) -> Function:
    """Add the argument RESPONSES."""
    kind = click.Path(exists=True, path_type=Path)
    return click.argument("responses", nargs=-1, required=True, type=kind)(function)


def output_option(what: str, *, required: bool = True) -> Decorator:
    """Add `-o/--output`."""
    return click.option(
        "-o",
        "--output",
        required=required,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help=f"Where to write {what}.",
    )


score_options = headed(
    "Scores",
    click.option(
        "--within",
        type=click.Choice(get_args(Within)),
        default="micro",
        show_default=True,
        help="A scenario: mean over items or subscenarios, or by column weight.",
    ),
    click.option(
        "--across",
        type=click.Choice(get_args(Across)),
        default="scenarios",
        show_default=True,
        help="The overall score: mean over scenarios or over all items.",
    ),
)
"""How items make scenario scores, and these the overall score."""


def folder_option(name: str, what: str) -> Decorator:
    """Add `-o/--output`, a folder that has this name unless another is given."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(name),
        show_default=True,
        metavar="FOLDER",
        help=f"Where to write {what}.",
    )


def method_option(kind: click.Choice, what: str, *, default: str = "auto") -> Decorator:  # type: ignore[type-arg]
    """Add `--method`."""
    return click.option("--method", type=kind, default=default, show_default=True, help=what)


def level_option(function: Function) -> Function:
    """Add `--level`."""
    return click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")(
        function
    )


def estimand_option(function: Function) -> Function:
    """Add `--estimand`."""
    return click.option(
        "--estimand",
        type=click.Choice(ESTIMANDS),
        default=RUN,
        show_default=True,
        help="Which score the intervals are for: of one full run (run), or its mean over repeated runs (expected).",
    )(function)


def jobs_option(default: int) -> Decorator:
    """Make `--jobs`."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=-1),
        default=default,
        show_default=True,
        metavar="N",
        help="Processes that share the work; -1 for one a core.",
    )


def parallel_option(function: Callable[..., None]) -> Callable[..., None]:
    """Make `--jobs` of a command, and let what the command calls use so many processes."""

    @functools.wraps(function)
    def command(*, jobs: int, **choices: Any) -> None:
        from itembank.numerics import parallel  # noqa: PLC0415

        with parallel.jobs(jobs):
            function(**choices)

    given: Callable[..., None] = jobs_option(1)(command)
    return given


def refuse_unused(*rules: tuple[str, bool, str]) -> None:
    """Refuse options that were typed and have no say; of those that were set elsewhere say so in a note.

    Parameters
    ----------
    rules : (name, has_say, partners)
        The option's argument, whether it has a say in this call, and what it goes with: words that end the
        sentence '--option goes with'.

    Raises
    ------
    click.UsageError
        For the first option on the command line that has no say.
    """
    context = click.get_current_context()
    names = {one.name: max(one.opts, key=len) for one in context.command.params}
    for name, has_say, partners in rules:
        source = context.get_parameter_source(name)
        if has_say or source in {None, ParameterSource.DEFAULT}:
            continue
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{names[name]} goes with {partners}. Leave it out.")
        where = "environment" if source is ParameterSource.ENVIRONMENT else "config file"
        note(f"Note: {names[name]} goes with {partners}; what the {where} says of it has no effect here.")


def ids_of_file(path: Path) -> tuple[str, ...]:
    """Read item ids from a selection (.json), a table with a column `item_id`, or a text file, one a line."""
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.readers.matrix import read_known  # noqa: PLC0415
    from itembank.spreadsheets import unguarded  # noqa: PLC0415

    kinds = {one.casefold() for one in path.suffixes}
    if ".json" in kinds:
        return Selection.load(path).item_ids
    if kinds & {".parquet", ".csv", ".tsv", ".jsonl", ".ndjson"}:
        ids = read_known(path, "item_id")[0]["item_id"].to_list()
        return tuple(unguarded(one) for one in ids) if ".csv" in kinds else tuple(ids)
    return listed_ids(path)


def listed_ids(path: Path) -> tuple[str, ...]:
    """Read item ids, one a line, kept to the letter."""
    from itembank.errors import DataError  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: must be UTF-8 text, one item id a line: {error}. Save it as UTF-8.") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))  # splitlines would part ids at other characters too
    return tuple(line for line in lines if line)
