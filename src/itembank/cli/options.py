"""Options that several commands share."""

import functools
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from itembank.cli.command import READING, Decorator, gathered, headed
from itembank.cli.render import is_quiet, note
from itembank.cli.spec_options import spec_option
from itembank.data.readers.sources import SOURCES
from itembank.data.readers.specs import ReadingSpec
from itembank.data.score_names import Across, Within
from itembank.estimation.estimand_names import ESTIMANDS, RUN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from itembank.data.readers.detection import Found
    from itembank.pages.blocks import Page

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def format_option(function: Function) -> Function:
    """Add `--format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(function)


def seed_option(function: Function) -> Function:
    """Add `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of all chance."
    )(function)


class BankPath(click.Path):
    """A bank's folder, or its name on the Hub (hf:owner/name[@revision]).

    Where there is no folder, the message says so of one that a killed command left aside.
    """

    def __init__(self, *, file_okay: bool = False) -> None:
        super().__init__(exists=True, file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that there is a folder, or that the name is one; nothing is pulled yet."""
        from itembank.data.hub_names import is_hub_name, parse_hub_name  # noqa: PLC0415

        if is_hub_name(value):
            parse_hub_name(value)
            if is_quiet():
                from itembank.data.hub_client import quieten  # noqa: PLC0415

                quieten()
            return Path(value)
        if not Path(value).exists():
            from itembank.data.atomic import kept_aside  # noqa: PLC0415
            from itembank.data.bank_records import where_a_bank_is  # noqa: PLC0415

            if kept_aside(Path(value)) is not None:
                self.fail(f"{value} is not there. {where_a_bank_is(Path(value))}", param, ctx)
        return super().convert(value, param, ctx)


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=BankPath())(function)


def responses_argument(function: Function) -> Function:
    """Add the argument RESPONSES."""
    kind = click.Path(exists=True, path_type=Path)
    return click.argument("responses", nargs=-1, required=True, type=kind)(function)


def output_option(what: str, *, required: bool = True) -> Decorator:
    """Add `-o/--output`."""
    return click.option(
        "-o",
        "--output",
        required=required,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help=f"Where to write {what}.",
    )


score_options = headed(
    "Scores",
    click.option(
        "--within",
        type=click.Choice(get_args(Within)),
        default="micro",
        show_default=True,
        help="A scenario: mean over items or subscenarios, or by column weight.",
    ),
    click.option(
        "--across",
        type=click.Choice(get_args(Across)),
        default="scenarios",
        show_default=True,
        help="The overall score: mean over scenarios or over all items.",
    ),
)
"""How items make scenario scores, and these the overall score."""


def folder_option(name: str, what: str) -> Decorator:
    """Add `-o/--output`, a folder that has this name unless another is given."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(name),
        show_default=True,
        metavar="FOLDER",
        help=f"Where to write {what}.",
    )


def method_option(kind: click.Choice, what: str, *, default: str = "auto") -> Decorator:  # type: ignore[type-arg]
    """Add `--method`."""
    return click.option("--method", type=kind, default=default, show_default=True, help=what)


def figure_option(what: str = "it", *, required: bool = False) -> Decorator:
    """Make `--figure`; a name that no figure can have is refused before any work."""
    return click.option(
        "--figure",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_checked_figure,
        required=required,
        metavar="FILE",
        help=f"{'Draw' if required else 'Also draw'} {what}: a PNG, SVG or PDF file.",
    )


def _checked_figure(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not ctx.resilient_parsing:
        from itembank.reports.canvas import check_figure_destination  # noqa: PLC0415

        kinds = next((one.type for one in ctx.command.params if one.name == "kind"), None)
        if isinstance(kinds, click.Choice) and str(path) in kinds.choices:
            raise click.UsageError(f"--figure is the file now: --kind {path} --figure FILE draws that.", ctx)
        check_figure_destination(path)
    return path


def write_figure(figure: "Figure", path: Path) -> None:
    """Write a figure, and say where it is."""
    from itembank.reports.canvas import save_figure  # noqa: PLC0415

    note(f"Figure: {save_figure(figure, path)}")


def report_option(function: Function) -> Function:
    """Add `--report`; a name that no page can have is refused before any work."""
    return click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=checked_report_path,
        metavar="FILE",
        help="Also write a page to look at and to send: one HTML file.",
    )(function)


def checked_report_path(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what no page could be written to."""
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.blocks import check_page_destination  # noqa: PLC0415
        from itembank.pages.runtime import check_libraries  # noqa: PLC0415

        check_page_destination(path)
        check_libraries()
    return path


def write_report(page: "Page", path: Path) -> None:
    """Write a page and say where it is."""
    note(f"Report: {page.save(path)}")


def note_report(path: Path | None) -> None:
    """Say how to see a result as a page, where no page was asked for."""
    if path is None:
        note("To see this as a page: --report FILE.html")


def report_result(path: Path | None, output_format: str, page: "Callable[[str], Page]") -> None:
    """Write the page of a result where one was asked for; else say below a table how to see it.

    `page` makes the page from the command as it was typed.
    """
    if path is not None:
        write_report(page(typed_command()), path)
    elif output_format == "table":
        note_report(path)


def typed_command() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return shlex.join(["itembank", *sys.argv[1:]])


def level_option(function: Function) -> Function:
    """Add `--level`."""
    return click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")(
        function
    )


def estimand_option(function: Function) -> Function:
    """Add `--estimand`."""
    return click.option(
        "--estimand",
        type=click.Choice(ESTIMANDS),
        default=RUN,
        show_default=True,
        help="Which score the intervals are for: of one full run (run), its mean over repeated runs (expected), or the "
        "score on items of which the bank's are a sample (items-like-these).",
    )(function)


def jobs_option(default: int) -> Decorator:
    """Make `--jobs`."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=-1),
        default=default,
        show_default=True,
        metavar="N",
        help="Processes that share the work; -1 for one a core.",
    )


def parallel_option(function: Callable[..., None]) -> Callable[..., None]:
    """Make `--jobs` of a command, and let what the command calls use so many processes."""

    @functools.wraps(function)
    def command(*, jobs: int, **choices: Any) -> None:
        from itembank.numerics import parallel  # noqa: PLC0415

        with parallel.jobs(jobs):
            function(**choices)

    given: Callable[..., None] = jobs_option(1)(command)
    return given


models_option = click.option("--models", type=FILE, help="What is known of each model, by model_id.")
items_option = click.option("--items", type=FILE, help="What is known of each item, by item_id.")


def _bytes(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Turn an amount of memory (8GB, 512 MiB, or a plain number) into bytes."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) *([kmgt]?)(i?)b?", value.strip().lower())
    if found is None or float(found[1]) == 0.0:
        raise click.BadParameter(f"must be an amount of memory such as 8GB, got {value!r}.")
    return float(found[1]) * (1024.0 if found[3] else 1000.0) ** " kmgt".index(found[2] or " ")


GENERAL_OPTIONS = (
    spec_option(ReadingSpec, "model_id", "Id of the model, for results of one model that do not name it."),
    spec_option(
        ReadingSpec,
        "repeats",
        "Where a model has several responses to an item: refuse them, count right ones and trials, average, or take "
        "the last.",
    ),
    click.option(
        "--max-memory",
        callback=_bytes,
        metavar="SIZE",
        help="Let reading take this much memory (8GB), even for a file that looks wrong because it asks for much.  "
        "[default: half of the machine's]",
    ),
)
"""How responses are read, whatever file they come from."""

max_response_option = spec_option(ReadingSpec, "max_response", "Divide responses by this: 100 for percentages.")
VALUE_OPTIONS = (
    max_response_option,
    *GENERAL_OPTIONS,
)
"""The same where responses may be on any scale."""

TABLE_OPTIONS = (
    spec_option(ReadingSpec, "response_column", "Column of the response."),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="OURS=THEIRS",
        help="What the file calls a column: --column model_id=llm. Repeatable.",
    ),
    spec_option(
        ReadingSpec,
        "true_value",
        "The response that is right, where responses are words. Usual ones (correct, pass, yes, C, ...) need none.",
        metavar="VALUE",
    ),
)
"""How tables are read."""

_metric_option = spec_option(
    ReadingSpec,
    "metric",
    "The metric to take as response. Repeat it for an order of preference.",
    metavar="[TASK=]NAME",
)
OPTIONS_OF: Mapping[str, Decorator] = {
    "metric": _metric_option,
    "tasks": spec_option(
        ReadingSpec, "tasks", "Read only these tasks: 'mmlu_*'. Repeatable.", "--task", metavar="PATTERN"
    ),
    "exclude_tasks": spec_option(
        ReadingSpec,
        "exclude_tasks",
        "Leave out these tasks: 'mmlu_*'. Repeatable.",
        "--exclude-task",
        metavar="PATTERN",
    ),
    "skip_unusable": spec_option(
        ReadingSpec, "skip_unusable", "Leave out tasks and runs that cannot be read, and list them."
    ),
    "ignore_content": spec_option(
        ReadingSpec, "ignore_content", "Take items whose content differs between runs as the same."
    ),
    "max_response": max_response_option,
    "errors": spec_option(
        ReadingSpec, "errors", "What an item is whose run or grading failed: one without a response, or a wrong one."
    ),
}
"""The options of the choices that `Source.takes` names."""

TASK_OPTIONS = tuple(OPTIONS_OF[name] for name in ("tasks", "exclude_tasks", "skip_unusable"))
"""Which tasks of a harness's logs are read."""

LOG_OPTIONS = (
    _metric_option,
    spec_option(ReadingSpec, "filter_name", "The filter to take. Repeatable.", "--filter", metavar="[TASK=]NAME"),
    spec_option(
        ReadingSpec,
        "response",
        "Take a logged metric, or what the log-likelihoods of the answer options say: whether the most likely is "
        "right, or how probable the right one is.",
    ),
    *TASK_OPTIONS,
)
"""How logs of lm-evaluation-harness are read."""


def reading_options(*tables: Decorator) -> Decorator:
    """Make the options of reading responses, those of `tables` before them; the command gets one mapping, `reading`."""
    return gathered("reading", *tables, headed(READING, *TABLE_OPTIONS, *LOG_OPTIONS, *VALUE_OPTIONS))


def reading_spec(reading: Mapping[str, Any], **choices: Any) -> ReadingSpec:
    """Make the spec of the options of reading responses, and of choices that the command makes itself.

    Raises
    ------
    click.UsageError
        For an option that was typed and that none of the command's files is read by.
    """
    given = {name: value for name, value in reading.items() if name not in {"models", "items"}}
    spec = ReadingSpec(**{**given, "columns": column_mapping(reading["columns"]), **choices})
    refuse_unread(spec)
    return spec


_LOGS = (frozenset({"lm-eval"}), "logs of lm-evaluation-harness")


def _taking(choice: str, what: str, *others: str) -> tuple[frozenset[str], str]:
    """Kinds of results in whose reading a choice has a say, and what they are called."""
    return frozenset({*others, *(name for name, one in SOURCES.items() if choice in one.takes)}), what


_HARNESS = "logs of evaluation harnesses"
_TABLES = (frozenset({"table"}), "tables")
READERS: Mapping[str, tuple[frozenset[str], str]] = {
    "metric": _taking("metric", _HARNESS),
    "filter_name": _LOGS,
    "response": _LOGS,
    **{name: _taking(name, _HARNESS) for name in ("tasks", "exclude_tasks", "skip_unusable")},
    "errors": _taking("errors", "results that tell errors from wrong answers, as SWE-bench's do"),
    "true_value": _TABLES,
    "response_column": _TABLES,
    "columns": _TABLES,
    "layout": _TABLES,
    "prefix_scenario": _TABLES,
    "max_response": _taking("max_response", "files that itembank import has not read yet", "table"),
}
"""Options of reading that are for some kinds of files only: the kinds, and what they are called."""


def refuse_unread(spec: ReadingSpec, found: "Found | None" = None) -> None:
    """Refuse options of reading that were typed and that none of the command's files is read by.

    `found` is what `find_sources` told of the files, where the command has looked before.
    """
    from itembank.data.readers.read import source_kinds  # noqa: PLC0415

    context = click.get_current_context()
    files = next(one.name for one in context.command.params if isinstance(one, click.Argument) and one.nargs == -1)
    kinds = source_kinds(context.params[files or ""], spec, found)
    if kinds:
        refuse_unused(*((name, not of.isdisjoint(kinds), words) for name, (of, words) in READERS.items()))


def refuse_unused(*rules: tuple[str, bool, str]) -> None:
    """Refuse options that were typed and have no say; of those that were set elsewhere say so in a note.

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
        where = "environment" if source is ParameterSource.ENVIRONMENT else "config file"
        note(f"Note: {names[name]} goes with {partners}; what the {where} says of it has no effect here.")


def column_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Turn OURS=THEIRS into a mapping."""
    split = [pair.partition("=") for pair in pairs]
    bad = [pair for pair, (ours, equals, theirs) in zip(pairs, split, strict=True) if not (ours and equals and theirs)]
    if bad:
        raise click.BadParameter(f"must be OURS=THEIRS, got {bad[0]!r}.", param_hint="--column")
    return {ours: theirs for ours, _, theirs in split}


def ids_of_file(path: Path) -> tuple[str, ...]:
    """Read item ids from a selection (.json), a table with a column `item_id`, or a text file, one a line."""
    from itembank.data.readers.known import read_known  # noqa: PLC0415
    from itembank.data.selections import Selection  # noqa: PLC0415
    from itembank.spreadsheets import unguarded  # noqa: PLC0415

    kinds = {one.casefold() for one in path.suffixes}
    if ".json" in kinds:
        return Selection.load(path).item_ids
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
