"""Options that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv")


def format_option(function: Function) -> Function:
    """Add `--format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result on standard output.",
    )(function)


def seed_option(function: Function) -> Function:
    """Add `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything left to chance."
    )(function)


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=click.Path(exists=True, file_okay=False, path_type=Path))(function)


def output_option(what: str) -> Callable[[Function], Function]:
    """Add `-o/--output`, required."""
    return click.option(
        "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="PATH", help=f"Where to write {what}."
    )


def reading_options(function: Function) -> Function:
    """Add the options of reading responses; the command gets them as one mapping, `reading`."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    options = (
        click.option("--models", type=path, help="Table of what is known of each model (column model_id)."),
        click.option("--items", type=path, help="Table of what is known of each item (column item_id)."),
        click.option(
            "--metric",
            multiple=True,
            metavar="[TASK=]NAME",
            help="Harness logs: the metric to take as response; repeat it for an order of preference.",
        ),
        click.option(
            "--filter", "filter_name", multiple=True, metavar="[TASK=]NAME", help="Harness logs: the filter to take."
        ),
        click.option(
            "--response-column", default="response", show_default=True, help="Tables: column of the response."
        ),
    )

    @functools.wraps(function)
    def gathered(**arguments: Any) -> Any:
        names = ("models", "items", "metric", "filter_name", "response_column")
        reading = {name: arguments.pop(name) for name in names}
        return function(reading=reading, **arguments)

    result: Any = gathered
    for option in reversed(options):
        result = option(result)
    return result  # type: ignore[no-any-return]
