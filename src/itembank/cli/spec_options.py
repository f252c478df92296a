"""Options made of the fields of specs: a field's type, its choices and its default are not written again."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from itembank.cli.command import Decorator

Number: TypeAlias = type[int] | type[float]


class NumberOrWord(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A number, or one of a few words."""

    def __init__(self, number: Number, *words: str) -> None:
        self._number = number
        self._words = words
        self.name = "|".join(("N" if number is int else "NUMBER", *words))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Say in the help what may be given, in lower case where that is a word."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the word."""
        if value in self._words or isinstance(value, self._number):
            return value
        try:
            return self._number(value)
        except ValueError:
            kind = "a whole number" if self._number is int else "a number"
            allowed = " or ".join([kind, *map(repr, self._words)])
            self.fail(f"must be {allowed}, got {value!r}.", param, ctx)


class WholeNumbers(click.ParamType):  # type: ignore[type-arg]  # as above
    """Whole numbers with commas between them; 1e4 is one of them."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers as a tuple."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = [math.nan]
        if not all(number.is_integer() for number in numbers):
            self.fail(f"must be whole numbers with commas between them, got {value!r}.", param, ctx)
        return tuple(int(number) for number in numbers)


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
