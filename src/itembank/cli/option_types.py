"""Types of options: one of several names, numbers that may be words, and lists of numbers."""

import math
from typing import Any, TypeAlias

import click

from itembank.errors import did_you_mean
from itembank.methods import MethodTable


class NamedChoice(click.Choice):  # type: ignore[type-arg]  # click 8.1 has no type arguments
    """A choice that says what was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice, or add the nearest one to the error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(str(value), self.choices)
            raise click.BadParameter(f"{error.message}{near}", ctx, param) from error


class MethodName(NamedChoice):
    """Name of a method: the help lists itembank's own, and those of installed packages are taken too.

    Packages are looked up only where another name is given, since that takes a while.
    """

    def __init__(self, table: MethodTable[Any], *others: str) -> None:
        super().__init__((*others, *table.builtin_names))
        self._table = table
        self._others = others

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, or fail and list all that there are."""
        if value in self.choices:
            return super().convert(value, param, ctx)
        return NamedChoice((*self._others, *self._table.names())).convert(value, param, ctx)


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
