"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import read_results
from itembank.cli.signatures import argument, option

if TYPE_CHECKING:
    from itembank.readers.builtin import BuiltinResponse

Bank: TypeAlias = Annotated[
    Path | None,
    option("Bank of past models with calibrated items.  [default: calibrate RESPONSES]", type=options.BankPath()),
]
Responses: TypeAlias = Annotated[tuple[Path, ...], argument(type=options.EXISTING, required=False)]
Builtin: TypeAlias = Annotated[
    str | None,
    option(
        "Take a data set of the package instead, with KIND correct, probability or probability_per_byte: "
        "bytelms:correct.",
        metavar="NAME[:KIND]",
    ),
]
"""In place of RESPONSES."""


def read_responses_or_builtin(
    responses: Sequence[Path], builtin: str | None, *, prefers: "BuiltinResponse" = "correct"
) -> "ib.ResponseMatrix":
    """Read the responses, from files or from the package; `click.UsageError` unless one of both was given.

    Of a built-in data set `prefers` is taken where nothing is said and the data set has it; else, right or wrong.
    """
    from itembank.readers.builtin import BUILTIN_RESPONSES

    if bool(responses) == (builtin is not None):
        raise click.UsageError("Give either RESPONSES or --builtin NAME.")
    if builtin is None:
        return read_results(responses)
    name, _, kind = builtin.partition(":")
    unasked = prefers if prefers in BUILTIN_RESPONSES.get(name, ()) else "correct"
    return ib.load_builtin(name, response=cast("BuiltinResponse", kind or unasked))
