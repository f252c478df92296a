"""What the commands of scaling laws share: responses from files, or from a data set that comes with the package."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from itembank.cli.options import reading_options, reading_spec

if TYPE_CHECKING:
    from itembank.data.responses import ResponseMatrix

Function = TypeVar("Function", bound=Callable[..., Any])


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
