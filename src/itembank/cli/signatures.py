"""Commands made of functions: the signature of one is the list of its arguments and options, in the order of help.

An argument of the function is annotated with the help of its option, ``Annotated[int, "Items at most."]``, or with an
`option` or `argument` that says more. A mapping in the annotation is a group of options by name, or of such groups by
heading of help; the function gets their values as one mapping.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from types import NoneType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import click

from itembank.cli.command import HEADING, Command
from itembank.errors import did_you_mean
from itembank.files.documents import members_of
from itembank.methods import MethodTable

Maker: TypeAlias = Callable[[str, Any, Any], click.Parameter]
"""Makes an option or argument of the name, type and default of an argument of the function."""
Choices: TypeAlias = Mapping[str, Any]
"""Values of a group of options."""
UNSAID = inspect.Parameter.empty


def verb(
    name: str, group: click.Group | None = None, *, cls: type[Command] = Command
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function with annotated arguments, and put it into a group if that is given."""

    def make(function: Callable[..., None]) -> click.Command:
        groups, made = {}, []
        for one in inspect.signature(function).parameters.values():
            own = _parameters(one.name, one.annotation, one.default)
            made += own
            if isinstance(get_args(one.annotation)[-1], Mapping):
                groups[one.name] = [str(parameter.name) for parameter in own]

        @functools.wraps(function)
        def call(**values: Any) -> None:
            given = {into: {one: values.pop(one) for one in names} for into, names in groups.items()}
            function(**values, **given)

        command = click.command(name, cls=cls, params=made)(call)
        if group is not None:
            group.add_command(command)
        return command

    return make


def _parameters(name: str, annotation: Any, default: Any = UNSAID) -> list[click.Parameter]:
    """Make what an annotation says: an option or argument, or a group of options."""
    hint, what = (Any, annotation) if get_origin(annotation) is None else get_args(annotation)
    if isinstance(what, Mapping):
        found = []
        for each, its in what.items():
            own = _parameters(each, Annotated[Any, its] if isinstance(its, Mapping) else its)
            for parameter in own if isinstance(its, Mapping) else ():
                setattr(parameter, HEADING, each)
            found += own
        return found
    return [(option(what) if isinstance(what, str) else what)(name, hint, default)]


def option(text: str | Callable[[], str], *flags: str, of: type | None = None, heading: str = "", **more: Any) -> Maker:
    """Say what an option is.

    Parameters
    ----------
    text : str or function
        The help; a function is called where it is shown.
    flags : str
        What it is called; as the argument is, if nothing is given.
    of : type
        A spec, whose field of the argument's name gives type, choices and default.
    heading : str
        Of the help.
    more
        What `click.option` takes. A type may also be one of Python, a `Literal`, words or a table of methods; that of
        the annotation if none is given.
    """

    def make(name: str, hint: Any, default: Any) -> click.Parameter:
        given = more if default is UNSAID else {**more, "default": default}
        is_asked = hint is not Any and NoneType not in members_of(hint)
        if of is not None:
            hint = get_type_hints(of)[name]
            value = next(one.default for one in fields(of) if one.name == name)
            given = {"default": None if value is MISSING else value, **given}
        is_many = get_origin(hint) is tuple and not isinstance(given.get("type"), WholeNumbers)
        kind = given.get("type", get_args(hint)[0] if is_many else hint)
        own: dict[str, Any] = {"multiple": is_many, "required": is_asked and not is_many and "default" not in given}
        own["show_default"] = given.get("default") not in (None, "", ()) and kind is not bool
        names = flags or (f"--{name.replace('_', '-')}",)
        of_kind = {"is_flag": True, "required": False, "type": None} if kind is bool else {"type": _type(kind)}
        made = (LateHelp if callable(text) else click.Option)([*names, name], **{**own, **given, **of_kind})
        setattr(made, "told" if callable(text) else "help", text)
        if heading:
            setattr(made, HEADING, heading)
        return made

    return make


class LateHelp(click.Option):
    """An option whose help is what its function `told` returns where it is shown."""

    help = property(lambda self: self.told(), lambda *_: None)


def argument(**more: Any) -> Maker:
    """Say what an argument is that has no option, by what `click.argument` takes; several where it is a tuple."""

    def make(name: str, hint: Any, default: Any) -> click.Parameter:
        is_many = get_origin(hint) is tuple
        is_asked = NoneType not in members_of(hint)
        choices = {"nargs": -1 if is_many else 1, "required": is_asked and default is UNSAID}
        return click.Argument([name], **{**choices, **more})

    return make


def _type(hint: Any) -> Any:
    if isinstance(hint, MethodTable):
        return MethodName(hint)
    if isinstance(hint, list | tuple):
        return NamedChoice(hint)
    if isinstance(hint, click.ParamType):
        return hint
    members = [member for member in members_of(hint) if member is not NoneType]
    words = [word for member in members for word in get_args(member)]
    numbers = [member for member in members if member in {int, float}]
    if words and numbers:
        return NumberOrWord(numbers[0], *words)
    return NamedChoice(words) if words else numbers[0] if numbers else str


class NamedChoice(click.Choice):  # type: ignore[type-arg]  # click 8.1 has no type arguments
    """A choice that says what was probably meant, and what names of former times are called now."""

    def __init__(self, choices: Sequence[str], **former: str) -> None:
        super().__init__(choices)
        self._former = former

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice, or add the nearest one to the error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            now = self._former.get(str(value))
            near = f" It is called {now!r} now." if now else did_you_mean(str(value), self.choices)
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


class NumberOrWord(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A number, or one of a few words."""

    def __init__(self, number: type[int] | type[float], *words: str) -> None:
        self._number = number
        self._words = words
        self.name = "|".join(("N" if number is int else "NUMBER", *words))

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Say in the help what may be given, in lower case if that is a word."""
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
