"""Options that several commands share."""

import functools
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

import itembank as ib
from itembank.cli.command import Decorator, headed
from itembank.cli.render import detail, is_quiet, note
from itembank.errors import did_you_mean
from itembank.files.documents import Named, members_of, read_choices
from itembank.methods import MethodTable
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.score_names import Across, Within

if TYPE_CHECKING:
    from itembank.pages.blocks import Chart
    from itembank.pages.render import Page

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING = click.Path(exists=True, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class _NoBank(click.Path):
    """A folder to write into that is not a bank's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the folder of a bank."""
        from itembank.files.atomic import check_no_bank  # noqa: PLC0415

        path = Path(str(super().convert(value, param, ctx)))
        check_no_bank(path)
        return path


OTHER_FOLDER = _NoBank(file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
ANY_PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


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


Number: TypeAlias = type[int] | type[float]


class NumberOrWord(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A number, or one of a few words."""

    def __init__(self, number: Number, *words: str) -> None:
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


def option(names: str, text: str, kind: Any = str, **more: Any) -> Decorator:
    """Make an option.

    Parameters
    ----------
    names : str
        What it is called; then, where they differ from what follows from the name, what its value is called in the
        help (no lower case alone) and the argument that the command gets: ``"-n --n-items N sizes"``.
    text : str
        The help.
    kind : type
        Of its value: a type of click, a number, ``bool`` for a flag, words or a ``Literal`` of them, a table of
        methods; or a spec, whose field of the argument's name gives type, choices and default.
    more
        ``many=True`` for an option that may be repeated, ``default``, and what else `click.option` takes.
    """
    words = names.split()
    flags = [one for one in words if one.startswith("-")]
    into = [one for one in words if one.isidentifier() and one.islower()]
    metavar = " ".join(one for one in words if one not in (*flags, *into))
    choices: dict[str, Any] = {"help": text, "metavar": metavar or None}
    hint = kind
    if isinstance(kind, type) and is_dataclass(kind):
        field = into[0] if into else max(flags, key=len).lstrip("-").replace("-", "_")
        hint = get_type_hints(kind)[field]
        default = next(one.default for one in fields(kind) if one.name == field)
        choices["default"] = None if default is MISSING else default
    choices["multiple"] = more.pop("many", False) or get_origin(hint) is tuple
    if hint is bool:
        choices["is_flag"] = True
    else:
        choices["type"] = _type(get_args(hint)[0] if get_origin(hint) is tuple else hint)
    choices |= more
    is_told = choices.get("default") not in (None, "", ()) and hint is not bool
    return click.option(*flags, *into, **{"show_default": is_told, **choices})


def _type(hint: Any) -> Any:
    """Return the type of click for that of a field."""
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


format_option = option("--format output_format", "How to print the result.", FORMATS, default="table")
ID_FORMS = ("list", "lm-eval", "swe-bench", "mini-swe-agent", "harbor", "bfcl")
"""As `itembank.harnesses.id_forms` has them."""
seed_option = option("--seed N", "Seed of everything random.", click.IntRange(min=0), default=0)
models_option = option("--models", "What is known about each model, by model_id.", FILE)
level_option = option("--level", "Level of the intervals.", float, default=0.95)
estimand_option = option(
    "--estimand",
    "Which score the intervals are for: of one full run (run), or the mean over repeated runs (repeated).",
    NamedChoice(("run", "repeated"), expected="repeated"),  # as `estimator_specs` has them, which loads slowly
    default="run",
)
errors_option = option(
    "--errors",
    "What lost answers (time-outs, crashes) count as: missing, wrong, or bounds: the interval that holds either way.  "
    "[default: as imported, else missing]",
    ReadingSpec,
)
responses_argument = click.argument("responses", nargs=-1, required=True, type=EXISTING)


def method_option(kind: Any, text: str, *, default: str = "auto") -> Decorator:
    """Make `--method`."""
    return option("--method", text, kind, default=default)


def output_option(what: str, *, required: bool = True) -> Decorator:
    """Make `-o/--output`."""
    return option("-o --output PATH", f"Where to write {what}.", ANY_PATH, required=required)


def folder_option(name: str, what: str) -> Decorator:
    """Make `-o/--output`, a folder that has this name unless another is given."""
    return option("-o --output FOLDER", f"Where to write {what}.", OTHER_FOLDER, default=Path(name))


def jobs_option(default: int) -> Decorator:
    """Make `--jobs`."""
    text = "Processes that share the work; -1: one for each core."
    return option("--jobs N", text, click.IntRange(min=-1), default=default)


def spec_file_option(of: str, such_as: str) -> Decorator:
    """Make `--spec`, a file of the choices of a spec that have no option."""
    return option(
        "--spec FILE.toml spec_file",
        f"Rarer choices, such as {such_as}: fields of {of}, with their names in Python. Options override its fields.",
        FILE,
    )


class BankPath(click.Path):
    """A bank's folder, or its name: bank:name of a ready bank, hf:owner/name[@revision] of one on the Hub.

    Where there is no folder, the message says so of one that a killed command left aside.
    """

    def __init__(self, *, file_okay: bool = False) -> None:
        super().__init__(exists=True, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that there is a folder, or that the name is one; nothing is pulled yet."""
        from itembank.bank.bank_places import check_bank_name, is_bank_name  # noqa: PLC0415
        from itembank.files.hub import is_hub_name  # noqa: PLC0415

        if is_bank_name(value):
            check_bank_name(value)
            if is_quiet() and is_hub_name(value):
                from itembank.files.hub import quieten  # noqa: PLC0415

                quieten()
            return Path(value)
        if not self.file_okay and Path(value).is_file():
            words = f"{value} is a file; a bank is a folder, or a name such as bank:mmlu-pro."
            words += " BANK comes first, then results." if isinstance(param, click.Argument) else ""
            self.fail(words, param, ctx)
        if not Path(value).exists():
            from itembank.bank.bank_records import where_a_bank_is  # noqa: PLC0415
            from itembank.files.atomic import kept_aside  # noqa: PLC0415

            if kept_aside(Path(value)) is not None:
                self.fail(f"{value} is not there. {where_a_bank_is(Path(value))}", param, ctx)
        return super().convert(value, param, ctx)


bank_option = option("--bank", "Where the bank is now.  [default: where the journal says]", BankPath())
"""Of a journal's commands."""


def is_bank(path: Path) -> bool:
    """Whether a path is that of a bank, or a bank's name, and no responses."""
    from itembank.bank.bank_places import is_bank_name  # noqa: PLC0415

    return is_bank_name(path) or (path / "bank.json").is_file()


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=BankPath())(function)


score_options = headed(
    "Scores",
    option("--within", "A scenario: mean over items or subscenarios, or by column weight.", Within, default="micro"),
    option("--across", "The overall score: mean over scenarios or over all items.", Across, default="scenarios"),
)
"""How items make scenario scores, and these the overall score."""


def parallel_option(function: Callable[..., None]) -> Callable[..., None]:
    """Make `--jobs` of a command, and let what the command calls use so many processes."""

    @functools.wraps(function)
    def command(*, jobs: int, **choices: Any) -> None:
        from itembank.numerics import parallel  # noqa: PLC0415

        with parallel.jobs(jobs):
            function(**choices)

    given: Callable[..., None] = jobs_option(1)(command)
    return given


def refuse_unused(*rules: tuple[str, bool, str]) -> None:
    """Refuse options that were typed and have no say; of those that the environment sets say so in a note.

    Parameters
    ----------
    rules : (name, has_say, partners)
        The option's argument, whether it has a say in this call, and what it goes with: words that end the
        sentence '--option goes with'.

    Raises
    ------
    click.UsageError
        For the first option on the command line that has no say.
    """
    context = click.get_current_context()
    names = {one.name: max(one.opts, key=len) for one in context.command.params}
    for name, has_say, partners in rules:
        source = context.get_parameter_source(name)
        if has_say or source in {None, ParameterSource.DEFAULT}:
            continue
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{names[name]} goes with {partners}. Leave it out.")
        note(f"Note: {names[name]} goes with {partners}; its value from the environment has no effect here.")


def ids_of_file(path: Path) -> tuple[str, ...]:
    """Read item ids from a selection (.json), a table with a column `item_id`, or a text file, one a line."""
    from itembank.readers.matrix import read_known  # noqa: PLC0415
    from itembank.spreadsheets import unguarded  # noqa: PLC0415

    kinds = {one.casefold() for one in path.suffixes}
    if ".json" in kinds:
        return ib.Selection.load(path).item_ids
    if kinds & {".parquet", ".csv", ".tsv", ".jsonl", ".ndjson"}:
        ids = read_known(path, "item_id")[0]["item_id"].to_list()
        return tuple(unguarded(one) for one in ids) if ".csv" in kinds else tuple(ids)
    return listed_ids(path)


def listed_ids(path: Path) -> tuple[str, ...]:
    """Read item ids, one a line, kept to the letter."""
    from itembank.errors import DataError  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: must be UTF-8 text, one item id a line: {error}. Save it as UTF-8.") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))  # splitlines would part ids at other characters too
    return tuple(line for line in lines if line)


def file_choices(path: Path | None, kind: type, named: Named | None = None) -> dict[str, Any]:
    """Return the choices of `--spec`, none without a file; raises as `read_choices`."""
    return {} if path is None else read_choices(path, kind, named)


def typed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, wherever, and leave out those that have their default."""
    context = click.get_current_context()
    return {
        name: value for name, value in choices.items() if context.get_parameter_source(name) != ParameterSource.DEFAULT
    }


def figure_option(what: str = "it") -> Decorator:
    """Make `--figure`; a name that no figure can have is refused before any work."""
    return option("--figure FILE", f"Also draw {what}: a PNG, SVG or PDF file.", NEW_FILE, callback=_checked_figure)


def _checked_figure(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_drawing_library, check_picture_destination  # noqa: PLC0415

        check_picture_destination(path)
        check_drawing_library()
    return path


def write_figure(chart: "Chart", path: Path) -> None:
    """Write a chart as a picture, and say where it is."""
    note(f"Figure: {chart.save(path)}")


def checked_report_path(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what no page could be written to."""
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_libraries  # noqa: PLC0415
        from itembank.pages.render import check_page_destination  # noqa: PLC0415

        check_page_destination(path)
        check_libraries()
    return path


report_option = option(
    "--report FILE",
    "Also write a shareable page: one HTML file.",
    NEW_FILE,
    callback=checked_report_path,
)
"""A name that no page can have is refused before any work."""


def write_report(page: "Page", path: Path) -> None:
    """Write a page and say where it is."""
    note(f"Report: {page.save(path)}")


def note_report(path: Path | None) -> None:
    """Say how to see a result as a page, if no page was asked for."""
    if path is None:
        detail("To see this as a page: --report FILE.html")


def report_result(path: Path | None, output_format: str, page: "Callable[[str], Page]") -> None:
    """Write the page of a result if one was asked for; else say below a table how to see it.

    `page` makes the page from the command as it was typed.
    """
    if path is not None:
        write_report(page(typed_command()), path)
    elif output_format == "table":
        note_report(path)


def typed_command() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return shlex.join(["itembank", *sys.argv[1:]])
