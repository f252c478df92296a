"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from itembank.cli.command import Decorator, Function
from itembank.cli.options import BankPath
from itembank.cli.reading_options import reading_options, reading_spec
from itembank.cli.spec_options import spec_option
from itembank.scaling.pretraining.method_specs import ItemResponseLaw

if TYPE_CHECKING:
    from itembank.readers.builtin import BuiltinResponse
    from itembank.responses.responses import ResponseMatrix

BUILTIN_KINDS: dict[str, dict[str, "BuiltinResponse"]] = {
    "classifiers": {"metric": "correct", "accuracy": "correct", "probability": "probability"},
    "bytelms": {
        "metric": "correct",
        "accuracy-per-character": "correct",
        "probability": "probability",
        "probability-per-character": "probability_per_byte",
    },
    "bytelms-samples": {"metric": "correct", "accuracy": "correct"},
}
"""What --response takes of each built-in data set."""

_PLACES = {
    ParameterSource.COMMANDLINE: "",
    ParameterSource.ENVIRONMENT: " in the environment",
    ParameterSource.DEFAULT_MAP: " in the file of --config",
}
"""Where an option may be given, in words that follow its name."""

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


def responses_or_builtin(*tables: Decorator) -> Decorator:
    """Make the argument RESPONSES, `--builtin`, and the options of reading; the command gets all three."""
    builtin = click.option(
        "--builtin",
        metavar="NAME",
        help="Take a data set of the package instead.",
    )

    def add(function: Function) -> Function:
        function = reading_options(*tables)(function)
        return click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))(builtin(function))

    return add


def read_responses_or_builtin(
    responses: Sequence[Path], builtin: str | None, reading: Mapping[str, Any], *, kind: str = "metric"
) -> "ResponseMatrix":
    """Read the responses, from files or from the package.

    Parameters
    ----------
    responses, builtin, reading
        What the command was given.
    kind : str
        What of a built-in data set to take, in the words of --response, where --response is not given and the data set
        has it; else, right or wrong.

    Raises
    ------
    click.UsageError
        Unless exactly one of `responses` and `builtin` was given; for options of reading beside a built-in data set,
        which is not read; and for a --response that it does not have.
    """
    from itembank.readers.read import read_responses  # noqa: PLC0415

    if bool(responses) == (builtin is not None):
        raise click.UsageError("give RESPONSES or --builtin NAME, one of the two.")
    if builtin is not None:
        return _builtin_responses(builtin, reading, kind)
    return read_responses(responses, spec=reading_spec(reading), models=reading.get("models"), items=reading["items"])


def _builtin_responses(builtin: str, reading: Mapping[str, Any], kind: str) -> "ResponseMatrix":
    """Load a built-in data set, as right or wrong or as the probabilities that were asked for."""
    from itembank.errors import shown  # noqa: PLC0415
    from itembank.readers.builtin import load_builtin  # noqa: PLC0415

    given, response = _given_reading_options(reading), reading["response"]
    unused = [shown_as for name, shown_as in given.items() if name != "response"]
    if unused:
        raise click.UsageError(
            f"--builtin {builtin} takes no option of how files are read but --response, got {', '.join(unused)}. "
            f"Leave {'it' if len(unused) == 1 else 'them'} out."
        )
    kinds = BUILTIN_KINDS.get(builtin, {})  # load_builtin names the data sets there are
    if "response" not in given:
        return load_builtin(builtin, response=kinds.get(kind, "correct"))
    if kinds and response not in kinds:
        raise click.UsageError(
            f"--response must be one of {shown(list(kinds))} with --builtin {builtin}, got {given['response']} "
            f"{response!r}."
        )
    return load_builtin(builtin, response=kinds.get(response, "correct"))


def _given_reading_options(reading: Mapping[str, Any]) -> dict[str, str]:
    """Name the options of reading that were given, by parameter, each with where it was given unless in the command."""
    context = click.get_current_context()
    found = {}
    for parameter in context.command.params:
        name, source = parameter.name or "", context.get_parameter_source(parameter.name or "")
        if name in reading and source in _PLACES:
            found[name] = f"{max(parameter.opts, key=len)}{_PLACES[source]}"
    return found
