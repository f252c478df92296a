"""What several commands take: options and arguments as annotations, and what commands do with them."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import click
from click.core import ParameterSource

import itembank as ib
from itembank.cli.render import Printer, detail, is_quiet, note
from itembank.cli.signatures import Maker, NamedChoice, argument, option
from itembank.errors import DataError, shell_word
from itembank.files.atomic import check_destination, check_no_bank, kept_aside, replacing_file
from itembank.files.documents import Named, read_choices
from itembank.files.hub import is_hub_name, quieten
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses import score_names
from itembank.responses.error_kinds import Errors
from itembank.spreadsheets import unguarded

if TYPE_CHECKING:
    import polars as pl

    from itembank.pages.blocks import Chart
    from itembank.pages.render import Page

FORMATS = ("table", "json", "csv")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Existing(click.Path):
    """A file or folder that is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Say of a pattern, which a shell leaves as it is where nothing matches, that no file does."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if not {"*", "?", "["} & {*str(value)}:
                raise
            raise click.BadParameter(f"no file matches {str(value)!r}.", ctx, param) from error


EXISTING = _Existing(exists=True, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class _NoBank(click.Path):
    """A folder to write into that is not a bank's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the folder of a bank."""
        path = Path(str(super().convert(value, param, ctx)))
        check_no_bank(path)
        return path


OTHER_FOLDER = _NoBank(file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
ANY_PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


class _Form(NamedChoice):
    """A form in which results are printed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what prints in it."""
        return Printer(super().convert(value, param, ctx))


class BankPath(click.Path):
    """A bank's folder, or its name: bank:name of a ready bank, hf:owner/name[@revision] of one on the Hub.

    Where there is no folder, the message says so of one that a killed command left aside.
    """

    def __init__(self, *, file_okay: bool = False) -> None:
        super().__init__(exists=True, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that there is a folder, or that the name is one; nothing is pulled yet."""
        from itembank.bank.bank_places import check_bank_name, is_bank_name

        if is_bank_name(value):
            check_bank_name(value)
            if is_quiet() and is_hub_name(value):
                quieten()
            return Path(value)
        if not self.file_okay and Path(value).is_file():
            words = f"{value} is a file; a bank is a folder, or a name such as bank:mmlu-pro."
            words += " BANK comes first, then results." if isinstance(param, click.Argument) else ""
            self.fail(words, param, ctx)
        if not Path(value).exists():
            from itembank.bank.bank_records import where_a_bank_is

            if kept_aside(Path(value)) is not None:
                self.fail(f"{value} is not there. {where_a_bank_is(Path(value))}", param, ctx)
        return super().convert(value, param, ctx)


def is_bank(path: Path) -> bool:
    """Whether a path is that of a bank, or a bank's name, and no responses."""
    from itembank.bank.bank_places import is_bank_name

    return is_bank_name(path) or (path / "bank.json").is_file()


def _checked_figure(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_drawing_library, check_picture_destination

        check_picture_destination(path)
        check_drawing_library()
    return path


def checked_report_path(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what no page could be written to."""
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_libraries
        from itembank.pages.render import check_page_destination

        check_page_destination(path)
        check_libraries()
    return path


def figure(what: str = "it", **more: Any) -> Maker:
    """Make `--figure`; a name that no figure can have is refused before any work."""
    text = f"Also draw {what}: a PNG, SVG or PDF file."
    return option(text, metavar="FILE", type=NEW_FILE, callback=_checked_figure, **more)


Figure: TypeAlias = Annotated[Path | None, figure()]
Report: TypeAlias = Annotated[
    Path | None,
    option("Also write a shareable page: one HTML file.", metavar="FILE", type=NEW_FILE, callback=checked_report_path),
]
"""A name that no page can have is refused before any work."""


ID_FORMS = ("list", "lm-eval", "swe-bench", "mini-swe-agent", "harbor", "bfcl")
"""As `itembank.harnesses.id_forms` has them."""

Bank: TypeAlias = Annotated[Path, argument(type=BankPath())]
BankOfJournal: TypeAlias = Annotated[
    Path | None, option("Where the bank is now.  [default: where the journal says]", "--bank", type=BankPath())
]
Responses: TypeAlias = Annotated[tuple[Path, ...], argument(type=EXISTING)]
Selection: TypeAlias = Annotated[Path | None, option("The selection that was run; only its items are used.", type=FILE)]
IgnoreUnknown: TypeAlias = Annotated[bool, "Leave out items that the bank does not have instead of refusing them."]
MixedPrompts: TypeAlias = Annotated[bool, "Take models with other prompts, or judges, than the bank's."]
Match: TypeAlias = Annotated[
    str,
    option(
        "How items of the bank are found in the harness: hash (same content), doc.FIELD (a field of its documents, "
        "such as doc.question_id), or auto: by task and number, then by hash, then by a field with a usual name "
        "of ids.",
        metavar="RULE",
        default="auto",
    ),
]
Jq: TypeAlias = Annotated[
    str | None,
    option(
        "Make rows of JSON of any shape by a program of jq, or by that in FILE.jq. Values of CSV are text: "
        "(.score | tonumber).",
        metavar="PROGRAM|FILE.jq",
        of=ReadingSpec,
    ),
]
Models: TypeAlias = Annotated[Path | None, option("What is known about each model, by model_id.", type=FILE)]
LostAnswers: TypeAlias = Annotated[
    Errors | None,
    option(
        "What lost answers (time-outs, crashes) count as: missing; wrong; or bounds: the interval covers both cases.  "
        "[default: as imported, else missing]",
        of=ReadingSpec,
    ),
]
NewResults: TypeAlias = Annotated[
    Mapping[str, Any], {"jq": Jq, "errors": LostAnswers, "match": Match, "allow_mixed_prompts": MixedPrompts}
]
"""How results of new models are read."""
Within: TypeAlias = Annotated[
    score_names.Within,
    option("A scenario: mean over items or subscenarios, or by column weight.", default="micro", heading="Scores"),
]
"""How items make scenario scores."""
Across: TypeAlias = Annotated[
    score_names.Across,
    option("The overall score: mean over scenarios or over all items.", default="scenarios", heading="Scores"),
]
"""How scenario scores make the overall one."""
Estimand: TypeAlias = Annotated[
    Literal["run", "repeated"],
    option(
        "Which score the intervals are for: of one full run (run), or the mean over repeated runs (repeated).",
        type=NamedChoice(("run", "repeated"), expected="repeated"),  # as `estimator_specs` has them, which loads slowly
        default="run",
    ),
]
Level: TypeAlias = Annotated[float, option("Level of the intervals.", default=0.95)]
Seed: TypeAlias = Annotated[
    int, option("Seed of everything random.", metavar="N", type=click.IntRange(min=0), default=0)
]
Out: TypeAlias = Annotated[
    Printer, option("How to print the result.", "--format", type=_Form(FORMATS), default="table")
]


def written(text: str, metavar: str, kind: click.Path = ANY_PATH, **more: Any) -> Maker:
    """Make `-o/--output`."""
    return option(text, "-o", "--output", metavar=metavar, type=kind, **more)


def output(what: str, **more: Any) -> Maker:
    """Make `-o/--output`, any path."""
    return written(f"Where to write {what}.", "PATH", **more)


def folder(what: str) -> Maker:
    """Make `-o/--output`, a folder."""
    return written(f"Where to write {what}.", "FOLDER", OTHER_FOLDER)


Jobs: TypeAlias = Annotated[
    int,
    option(
        "Processes that share the work; -1: one for each core.", metavar="N", type=click.IntRange(min=-1), default=1
    ),
]


def share_work(jobs: int) -> None:
    """Let what the command calls use so many processes."""
    from itembank.numerics import parallel

    click.get_current_context().with_resource(parallel.jobs(jobs))


def spec_file(of: str, such_as: str) -> Maker:
    """Make `--spec`, a file of the choices of a spec that have no option."""
    return option(
        f"Rarer choices, such as {such_as}: fields of {of}, with their names in Python. Options override its fields.",
        "--spec",
        metavar="FILE.toml",
        type=FILE,
    )


def refuse_unused(*rules: tuple[str | Iterable[str], bool, str]) -> None:
    """Refuse options that were typed and have no say; of those that the environment sets say so in a note.

    Parameters
    ----------
    rules : (names, has_say, partners)
        The argument of an option, or those of several, whether they have a say in this call, and what they go with:
        words that end the sentence '--option goes with'.

    Raises
    ------
    click.UsageError
        For the first option on the command line that has no say.
    """
    context = click.get_current_context()
    names = {one.name: max(one.opts, key=len) for one in context.command.params}
    for arguments, has_say, partners in rules:
        for name in [arguments] if isinstance(arguments, str) else arguments:
            source = context.get_parameter_source(name)
            if has_say or source in {None, ParameterSource.DEFAULT}:
                continue
            if source is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{names[name]} goes with {partners}. Leave it out.")
            note(f"Note: {names[name]} goes with {partners}; its value from the environment has no effect here.")


def ids_of_file(path: Path) -> tuple[str, ...]:
    """Read item ids from a selection (.json), a table with a column `item_id`, or a text file, one a line."""
    from itembank.readers.matrix import read_known
    from itembank.responses.opening import SUFFIXES

    kinds = {one.casefold() for one in path.suffixes}
    if ".json" in kinds:
        return ib.Selection.load(path).item_ids
    if not kinds.isdisjoint(SUFFIXES):
        ids = read_known(path, "item_id")[0]["item_id"].to_list()
        return tuple(unguarded(one) for one in ids) if ".csv" in kinds else tuple(ids)
    return listed_ids(path)


def listed_ids(path: Path) -> tuple[str, ...]:
    """Read item ids, one a line, kept to the letter."""
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


def write_figure(chart: "Chart", path: Path) -> None:
    """Write a chart as a picture, and say where it is."""
    note(f"Figure: {chart.save(path)}")


def checked_table_path(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse before the work what no table could be written to after it."""
    if path is not None:
        if path.suffix.lower() not in {".csv", ".parquet"}:
            has_page = any(one.name == "report" for one in ctx.command.params)
            else_where = "; a page is written by --report" if has_page else ""
            raise click.BadParameter(f"must end in .csv or .parquet, got {path.name!r}{else_where}.")
        check_destination(path)
    return path


def write_table(table: "pl.DataFrame", path: Path, write_csv: Callable[[Path], object]) -> None:
    """Write a table as the name of its file says."""
    write = write_csv if path.suffix.lower() == ".csv" else table.write_parquet
    with replacing_file(path) as temporary:
        write(temporary)


def write_report(page: "Page", path: Path) -> None:
    """Write a page and say where it is."""
    note(f"Report: {page.save(path)}")


def report_result(path: Path | None, out: Printer, page: "Callable[[str], Page]") -> None:
    """Write the page of a result if one was asked for; else say below a table how to see it.

    `page` makes the page from the command as it was typed.
    """
    if path is not None:
        write_report(page(typed_command()), path)
    elif out.is_table:
        detail("To see this as a page: --report FILE.html")


def typed_command() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return " ".join(map(shell_word, ["itembank", *sys.argv[1:]]))
