"""Options made of the fields of specs: a field's type, its choices and its default are not written again."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from itembank.cli.command import Decorator
from itembank.cli.option_types import NumberOrWord


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


def typed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, wherever, and leave out those that have their default."""
    context = click.get_current_context()
    return {
        name: value for name, value in choices.items() if context.get_parameter_source(name) != ParameterSource.DEFAULT
    }


def _type(hint: Any) -> Any:
    """Return the type of click for that of a field."""
    members = list(_members(hint))
    words = [word for member in members for word in get_args(member)]
    numbers = [member for member in members if member in {int, float}]
    if words and numbers:
        return NumberOrWord(numbers[0], *words)
    return click.Choice(words) if words else numbers[0] if numbers else str


def _members(hint: Any) -> Iterator[Any]:
    """Members of a union, of whatever depth, but None."""
    if get_origin(hint) in {Union, UnionType}:
        for one in get_args(hint):
            yield from _members(one)
    elif hint is not NoneType:
        yield hint
