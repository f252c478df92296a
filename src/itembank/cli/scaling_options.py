"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from itembank.cli.command import Function
from itembank.cli.new_results import read_results
from itembank.cli.options import BankPath
from itembank.cli.spec_options import spec_option
from itembank.scaling.pretraining.law_specs import ItemResponseLaw

if TYPE_CHECKING:
    from itembank.readers.builtin import BuiltinResponse
    from itembank.responses.responses import ResponseMatrix

CALIBRATED_HERE = "items that are calibrated here, not with --bank"
"""What options of the item model go with."""

bank_option = click.option(
    "--bank",
    type=BankPath(),
    help="Bank of past models with calibrated items.  [default: calibrate RESPONSES]",
)
item_model_option = spec_option(ItemResponseLaw, "item_model", "Without a bank: parameters an item.")
model_option = click.option(
    "--model", "models", multiple=True, metavar="MODEL_ID", help="Report this model only. Repeatable."
)


def responses_or_builtin(function: Function) -> Function:
    """Make the argument RESPONSES, and `--builtin`."""
    builtin = click.option(
        "--builtin",
        metavar="NAME[:KIND]",
        help="Take a data set of the package instead, and of it correct, probability or probability_per_byte: "
        "bytelms:correct.",
    )
    return click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))(builtin(function))


def read_responses_or_builtin(
    responses: Sequence[Path], builtin: str | None, *, prefers: "BuiltinResponse" = "correct"
) -> "ResponseMatrix":
    """Read the responses, from files or from the package.

    Parameters
    ----------
    responses, builtin
        What the command was given.
    prefers : {'correct', 'probability'}
        What of a built-in data set to take where it is not said and the data set has it; else, right or wrong.

    Raises
    ------
    click.UsageError
        Unless exactly one of `responses` and `builtin` was given.
    """
    from itembank.readers.builtin import BUILTIN_RESPONSES, load_builtin  # noqa: PLC0415

    if bool(responses) == (builtin is not None):
        raise click.UsageError("give RESPONSES or --builtin NAME, one of the two.")
    if builtin is None:
        return read_results(responses)
    name, _, kind = builtin.partition(":")
    unasked = prefers if prefers in BUILTIN_RESPONSES.get(name, ()) else "correct"
    return load_builtin(name, response=cast("BuiltinResponse", kind or unasked))
