"""What the commands of scaling laws share: responses from files or from the package, and numbers of samples."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from itembank.cli.options import READING_OPTIONS, item_reading_options, reading_options, reading_spec

if TYPE_CHECKING:
    from itembank.data.builtin import BuiltinResponse
    from itembank.data.responses import ResponseMatrix

Function = TypeVar("Function", bound=Callable[..., Any])

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


def samples_or_builtin(function: Function) -> Function:
    """Add what `responses_or_builtin` adds but `--models`, for a command to which models are ids alone."""
    return _or_builtin(item_reading_options(function))


def responses_or_builtin(function: Function) -> Function:
    """Add the argument RESPONSES, `--builtin`, and the options of reading; the command gets all three."""
    return _or_builtin(reading_options(function))


def _or_builtin(function: Function) -> Function:
    function = click.option(
        "--builtin",
        metavar="NAME",
        help="Take a data set of the package instead of RESPONSES; of the options of reading --response alone applies.",
    )(function)
    return click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))(function)


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
    from itembank.data.readers.read import read_responses  # noqa: PLC0415

    if bool(responses) == (builtin is not None):
        raise click.UsageError("give RESPONSES or --builtin NAME, one of the two.")
    if builtin is not None:
        return _builtin_responses(builtin, reading["response"], kind)
    return read_responses(responses, spec=reading_spec(reading), models=reading.get("models"), items=reading["items"])


def _builtin_responses(builtin: str, response: str, kind: str) -> "ResponseMatrix":
    """Load a built-in data set, as right or wrong or as the probabilities that were asked for."""
    from itembank.data.builtin import load_builtin  # noqa: PLC0415
    from itembank.errors import shown  # noqa: PLC0415

    given = _given_reading_options()
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


def _given_reading_options() -> dict[str, str]:
    """Name the options of reading that were given, by parameter, each with where it was given unless in the command."""
    context = click.get_current_context()
    found = {}
    for parameter in context.command.params:
        name, source = parameter.name or "", context.get_parameter_source(parameter.name or "")
        if name in READING_OPTIONS and source in _PLACES:
            found[name] = f"{max(parameter.opts, key=len)}{_PLACES[source]}"
    return found


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
