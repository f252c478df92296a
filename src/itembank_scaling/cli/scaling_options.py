"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

import itembank as ib
from itembank.cli.command import together
from itembank.cli.new_results import read_results
from itembank.cli.options import EXISTING, BankPath, option
from itembank_scaling.pretraining.law_specs import ItemResponseLaw

if TYPE_CHECKING:
    from itembank.readers.builtin import BuiltinResponse
    from itembank.responses.responses import ResponseMatrix

CALIBRATED_HERE = "items that are calibrated here, not with --bank"
"""What options of the item model go with."""

bank_option = option("--bank", "Bank of past models with calibrated items.  [default: calibrate RESPONSES]", BankPath())
item_model_option = option("--item-model", "Without a bank: the item model.", ItemResponseLaw)
model_option = option("--model MODEL_ID models", "Report this model only. Repeatable.", many=True)


responses_or_builtin = together(
    click.argument("responses", nargs=-1, type=EXISTING),
    option(
        "--builtin NAME[:KIND]",
        "Take a data set of the package instead, with KIND correct, probability or probability_per_byte: "
        "bytelms:correct.",
    ),
)
"""The argument RESPONSES, and `--builtin`."""


def read_responses_or_builtin(
    responses: Sequence[Path], builtin: str | None, *, prefers: "BuiltinResponse" = "correct"
) -> "ResponseMatrix":
    """Read the responses, from files or from the package; `click.UsageError` unless one of both was given.

    Of a built-in data set `prefers` is taken where nothing is said and the data set has it; else, right or wrong.
    """
    from itembank.readers.builtin import BUILTIN_RESPONSES  # noqa: PLC0415

    if bool(responses) == (builtin is not None):
        raise click.UsageError("Give either RESPONSES or --builtin NAME.")
    if builtin is None:
        return read_results(responses)
    name, _, kind = builtin.partition(":")
    unasked = prefers if prefers in BUILTIN_RESPONSES.get(name, ()) else "correct"
    return ib.load_builtin(name, response=cast("BuiltinResponse", kind or unasked))
