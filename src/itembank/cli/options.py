"""Options that several commands share."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from itembank.cli.render import note

if TYPE_CHECKING:
    from itembank.data.readers.specs import ReadingSpec

Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv")


def format_option(function: Function) -> Function:
    """Add `--format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="How to print the result on standard output.",
    )(function)


def seed_option(function: Function) -> Function:
    """Add `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything left to chance."
    )(function)


class BankPath(click.Path):
    """A bank's folder; where there is none, the message says so of one that a killed command left aside."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that there is a folder."""
        if not Path(value).exists():
            from itembank.data.atomic import kept_aside  # noqa: PLC0415
            from itembank.data.bank_files import where_a_bank_is  # noqa: PLC0415

            if kept_aside(Path(value)) is not None:
                self.fail(f"{value} is not there. {where_a_bank_is(Path(value))}", param, ctx)
        return super().convert(value, param, ctx)


def bank_argument(function: Function) -> Function:
    """Add the argument BANK."""
    return click.argument("bank", type=BankPath(exists=True, file_okay=False, path_type=Path))(function)


def output_option(what: str) -> Callable[[Function], Function]:
    """Add `-o/--output`, required."""
    return click.option(
        "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="PATH", help=f"Where to write {what}."
    )


_TABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MODELS = click.option("--models", type=_TABLE, help="Table of what is known of each model (column model_id).")
_ITEMS = click.option("--items", type=_TABLE, help="Table of what is known of each item (column item_id).")


def reading_options(function: Function) -> Function:
    """Add the options of reading responses; the command gets them as one mapping, `reading`."""
    return gathered(function, (_MODELS, _ITEMS, *_response_options()), READING_OPTIONS, into="reading")


def item_reading_options(function: Function) -> Function:
    """Add the options of reading responses with a table of items alone; the command gets `reading`."""
    return gathered(function, (_ITEMS, *_response_options()), ("items", *RESPONSE_OPTIONS), into="reading")


def response_options(function: Function) -> Function:
    """Add the options of reading responses without tables of models and items; the command gets `reading`."""
    return gathered(function, _response_options(), RESPONSE_OPTIONS, into="reading")


RESPONSE_OPTIONS = (
    "metric",
    "filter_name",
    "tasks",
    "exclude_tasks",
    "skip_unusable",
    "response",
    "response_column",
    "columns",
    "true_value",
    "max_response",
    "model_id",
    "repeats",
    "max_memory",
)
READING_OPTIONS = ("models", "items", *RESPONSE_OPTIONS)


def reading_spec(reading: Mapping[str, Any], **choices: Any) -> "ReadingSpec":
    """Make the spec of the options of reading responses, and of choices that the command makes itself.

    Raises
    ------
    click.UsageError
        For an option that was typed and that none of the command's files is read by.
    """
    from itembank.data.readers.specs import ReadingSpec  # noqa: PLC0415

    given = {name: reading[name] for name in RESPONSE_OPTIONS}
    spec = ReadingSpec(**{**given, "columns": column_mapping(reading["columns"]), **choices})
    refuse_unread(spec)
    return spec


_LOGS = (frozenset({"lm-eval"}), "logs of lm-evaluation-harness")
_TABLES = (frozenset({"table"}), "tables")
READERS: Mapping[str, tuple[frozenset[str], str]] = {
    "metric": _LOGS,
    "filter_name": _LOGS,
    "response": _LOGS,
    "tasks": _LOGS,
    "exclude_tasks": _LOGS,
    "skip_unusable": _LOGS,
    "true_value": _TABLES,
    "response_column": _TABLES,
    "columns": _TABLES,
    "layout": _TABLES,
    "prefix_scenario": _TABLES,
    "max_response": (frozenset({"table", "py-irt", "lm-eval"}), "files that itembank import has not read yet"),
}
"""Options of reading that are for some kinds of files only: the kinds, and what they are called."""


def refuse_unread(spec: "ReadingSpec") -> None:
    """Refuse options of reading that were typed and that none of the command's files is read by."""
    from itembank.data.readers.read import source_kinds  # noqa: PLC0415

    context = click.get_current_context()
    files = next(one.name for one in context.command.params if isinstance(one, click.Argument) and one.nargs == -1)
    kinds = source_kinds(context.params[files or ""], spec)
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


def _bytes(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Turn an amount of memory (8GB, 512 MiB, or a plain number) into bytes."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) *([kmgt]?)(i?)b?", value.strip().lower())
    if found is None or float(found[1]) == 0.0:
        raise click.BadParameter(f"must be an amount of memory such as 8GB, got {value!r}.")
    return float(found[1]) * (1024.0 if found[3] else 1000.0) ** " kmgt".index(found[2] or " ")


def max_memory_option(function: Function) -> Function:
    """Add `--max-memory`."""
    return click.option(
        "--max-memory",
        callback=_bytes,
        metavar="SIZE",
        help="Let reading take so much memory (8GB), also for files that look wrong because they ask for much.  "
        "[default: half of the machine's]",
    )(function)


def column_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Turn OURS=THEIRS into a mapping."""
    split = [pair.partition("=") for pair in pairs]
    bad = [pair for pair, (ours, equals, theirs) in zip(pairs, split, strict=True) if not (ours and equals and theirs)]
    if bad:
        raise click.BadParameter(f"must be OURS=THEIRS, got {bad[0]!r}.", param_hint="--column")
    return {ours: theirs for ours, _, theirs in split}


def value_options() -> tuple[Callable[[Any], Any], ...]:
    """Make the options of how responses are read, whatever file they come from."""
    return (
        click.option(
            "--max-response",
            type=float,
            default=1.0,
            show_default=True,
            help="Divide responses by this: 100 for percentages.",
        ),
        click.option("--model-id", help="Id of the model, for results of one model that do not name it."),
        click.option(
            "--repeats",
            type=click.Choice(["error", "count", "mean", "last"]),
            default="error",
            show_default=True,
            help="Several responses of a model to an item: refuse, count right ones and trials, average, or take the "
            "last.",
        ),
        max_memory_option,
    )


def true_value_option(function: Function) -> Function:
    """Add `--true-value`."""
    return click.option(
        "--true-value",
        metavar="VALUE",
        help="Tables: the response that is right, where responses are words; usual ones (correct, pass, yes, C, ...) "
        "are read by themselves.",
    )(function)


def task_options(where: str = "") -> tuple[Callable[[Any], Any], ...]:
    """Make the options of which tasks of harness logs are read."""
    return (
        click.option(
            "--task",
            "tasks",
            multiple=True,
            metavar="PATTERN",
            help=f"{where}Read only these tasks: 'mmlu_*'. Repeatable.",
        ),
        click.option(
            "--exclude-task",
            "exclude_tasks",
            multiple=True,
            metavar="PATTERN",
            help=f"{where}Leave out these tasks: 'mmlu_*'. Repeatable.",
        ),
        click.option(
            "--skip-unusable",
            is_flag=True,
            help=f"{where}Leave out tasks and runs that cannot be read, and say which and why.",
        ),
    )


def response_kind_option(function: Function) -> Function:
    """Add `--response`."""
    return click.option(
        "--response",
        type=click.Choice(["metric", "accuracy", "accuracy-per-character", "probability", "probability-per-character"]),
        default="metric",
        show_default=True,
        help="Harness logs: a logged metric, or what the log-likelihoods of the answer options say: whether the most "
        "likely is right, or how probable the right one is.",
    )(function)


def _response_options() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--metric",
            multiple=True,
            metavar="[TASK=]NAME",
            help="Harness logs: the metric to take as response; repeat it for an order of preference.",
        ),
        click.option(
            "--filter", "filter_name", multiple=True, metavar="[TASK=]NAME", help="Harness logs: the filter to take."
        ),
        *task_options("Harness logs: "),
        response_kind_option,
        click.option(
            "--response-column", default="response", show_default=True, help="Tables: column of the response."
        ),
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="OURS=THEIRS",
            help="Tables: what the file calls a column: --column model_id=llm. Repeatable.",
        ),
        true_value_option,
        *value_options(),
    )


def gathered(
    function: Function, options: Sequence[Callable[[Any], Any]], names: Sequence[str], *, into: str
) -> Function:
    """Add options whose values the function gets as one mapping, its argument `into`."""

    @functools.wraps(function)
    def with_mapping(**arguments: Any) -> Any:
        mapping = {name: arguments.pop(name) for name in names}
        return function(**{into: mapping}, **arguments)

    result: Any = with_mapping
    for option in reversed(options):
        result = option(result)
    return result  # type: ignore[no-any-return]


def listed_ids(path: Path) -> tuple[str, ...]:
    """Read item ids, one a line, kept to the letter."""
    from itembank.errors import DataError  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: must be UTF-8 text, one item id a line: {error}. Save it as UTF-8.") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))  # splitlines would part ids at other characters too
    return tuple(line for line in lines if line)
