"""Options that take one of several names."""

from typing import Any

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
