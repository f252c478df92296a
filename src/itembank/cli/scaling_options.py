"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from itembank.cli.options import reading_options, reading_spec

if TYPE_CHECKING:
    from itembank.data.responses import ResponseMatrix

Function = TypeVar("Function", bound=Callable[..., Any])

item_model_option = click.option(
    "--item-model",
    type=click.Choice(["1pl", "2pl"]),
    default="2pl",
    show_default=True,
    help="Without a bank: parameters an item.",
)
level_option = click.option(
    "--level", type=float, default=0.95, show_default=True, help="Level of intervals, between 0 and 1."
)


def responses_or_builtin(function: Function) -> Function:
    """Add the argument RESPONSES, `--builtin`, and the options of reading; the command gets all three."""
    function = reading_options(function)
    function = click.option("--builtin", metavar="NAME", help="Take a data set of the package instead of RESPONSES.")(
        function
    )
    return click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))(function)


def read_responses_or_builtin(
    responses: Sequence[Path], builtin: str | None, reading: Mapping[str, Any], **choices: Any
) -> "ResponseMatrix":
    """Read the responses, from files or from the package.

    Raises
    ------
    click.UsageError
        Unless exactly one of the two was given.
    """
    from itembank.data.builtin import load_builtin  # noqa: PLC0415
    from itembank.data.readers.read import read_responses  # noqa: PLC0415

    if bool(responses) == (builtin is not None):
        raise click.UsageError("give RESPONSES or --builtin NAME, one of the two.")
    if builtin is not None:
        return load_builtin(builtin)
    spec = reading_spec(reading, **choices)
    return read_responses(responses, spec=spec, models=reading["models"], items=reading["items"])


def numbers_of_samples(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them; 1e4 is one of them.

    Raises
    ------
    click.BadParameter
        For anything else.
    """
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(number.is_integer() for number in numbers):
        raise click.BadParameter(f"must be whole numbers with commas between them, got {text!r}.", param_hint="--k")
    return tuple(int(number) for number in numbers)
