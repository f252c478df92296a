"""Options made of the fields of specs, and files of the rest: types, choices and defaults are not written again."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from itembank.cli.command import Decorator
from itembank.cli.option_types import NumberOrWord
from itembank.cli.options import FILE
from itembank.files.documents import Named, members_of, read_choices


def spec_option(spec: type, field: str, text: str, *names: str, **more: Any) -> Decorator:
    """Make the option of a spec's field, and let the command get it under the field's name.

    Parameters
    ----------
    spec : dataclass
    field : str
    text : str
        The help.
    names : str
        What the option is called; by default as the field is.
    more
        What `click.option` is to take instead of what follows from the field.
    """
    hint = get_type_hints(spec)[field]
    default = next(one.default for one in fields(spec) if one.name == field)
    choices: dict[str, Any] = {"default": None if default is MISSING else default, "help": text}
    if hint is bool:
        choices["is_flag"] = True
    elif get_origin(hint) is tuple:
        choices |= {"multiple": True, "type": _type(get_args(hint)[0])}
    else:
        choices |= {"type": _type(hint), "show_default": choices["default"] is not None}
    return click.option(*(names or (f"--{field.replace('_', '-')}",)), field, **{**choices, **more})


def spec_file_option(of: str, such_as: str) -> Decorator:
    """Make `--spec`, a file of the choices of a spec that have no option."""
    return click.option(
        "--spec",
        "spec_file",
        type=FILE,
        metavar="FILE.toml",
        help=f"Rarer choices, such as {such_as}: fields of {of}, as Python calls them. An option takes the place of "
        "the same field.",
    )


def file_choices(path: Path | None, kind: type, named: Named | None = None) -> dict[str, Any]:
    """Return the choices of `--spec`, none without a file; raises as `read_choices`."""
    return {} if path is None else read_choices(path, kind, named)


def typed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, wherever, and leave out those that have their default."""
    context = click.get_current_context()
    return {
        name: value for name, value in choices.items() if context.get_parameter_source(name) != ParameterSource.DEFAULT
    }


def _type(hint: Any) -> Any:
    """Return the type of click for that of a field."""
    members = [member for member in members_of(hint) if member is not NoneType]
    words = [word for member in members for word in get_args(member)]
    numbers = [member for member in members if member in {int, float}]
    if words and numbers:
        return NumberOrWord(numbers[0], *words)
    return click.Choice(words) if words else numbers[0] if numbers else str
