"""Options that several commands share."""

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
        "--seed", type=int, default=0, show_default=True, help="Seed of everything left to chance."
    )(function)


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=click.Path(exists=True, file_okay=False, path_type=Path))(function)


def output_option(what: str) -> Callable[[Function], Function]:
    """Add `-o/--output`, required."""
    return click.option(
        "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="PATH", help=f"Where to write {what}."
    )
