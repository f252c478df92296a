"""Options of how responses are read: columns, metrics, scales, memory; tables of models and items."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from itembank.cli.command import Decorator
from itembank.cli.options import FILE, refuse_unused
from itembank.cli.spec_options import spec_option
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import SOURCES

if TYPE_CHECKING:
    from itembank.readers.detection import Found

items_option = click.option("--items", type=FILE, help="What is known of each item, by item_id.")


def _bytes(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Turn an amount of memory (8GB, 512 MiB, or a plain number) into bytes."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) *([kmgt]?)(i?)b?", value.strip().lower())
    if found is None or float(found[1]) == 0.0:
        raise click.BadParameter(f"must be an amount of memory such as 8GB, got {value!r}.")
    return float(found[1]) * (1024.0 if found[3] else 1000.0) ** " kmgt".index(found[2] or " ")


def _renamed(_ctx: click.Context, _parameter: click.Parameter, pairs: Sequence[str]) -> dict[str, str]:
    """Turn OLD=NEW into a mapping."""
    return _mapping(pairs, "OLD=NEW", "--rename")


GENERAL_OPTIONS = (
    spec_option(ReadingSpec, "model_id", "Id of the model, for results of one model that do not name it."),
    spec_option(
        ReadingSpec,
        "repeats",
        "Where a model has several responses to an item: refuse them, count right ones and trials, average, or take "
        "the last.",
    ),
    spec_option(
        ReadingSpec, "skip_unusable", "Leave out files, tasks and runs that cannot be read, and say which and why."
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
    "task_names": click.option(
        "--rename",
        "task_names",
        multiple=True,
        callback=_renamed,
        metavar="OLD=NEW",
        help="Take a task of these results for the one that others have under another name. Repeatable.",
    ),
    "ignore_content": spec_option(
        ReadingSpec, "ignore_content", "Take items whose content differs between runs as the same."
    ),
    "allow_mixed_prompts": spec_option(
        ReadingSpec, "allow_mixed_prompts", "Join models that were asked with different prompts."
    ),
    "max_response": max_response_option,
    "errors": spec_option(
        ReadingSpec, "errors", "What an item is whose run or grading failed: one without a response, or a wrong one."
    ),
}
"""The options of the choices that `Source.takes` names."""

TASK_OPTIONS = tuple(OPTIONS_OF[name] for name in ("tasks", "exclude_tasks", "task_names", "allow_mixed_prompts"))
"""Which tasks of a harness's logs are read, and whether together."""

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
    **{name: _taking(name, _HARNESS) for name in ("tasks", "exclude_tasks", "task_names")},
    "allow_mixed_prompts": (
        frozenset({"lm-eval", "inspect", "responses"}),
        "logs of lm-evaluation-harness and Inspect, and response files of them",
    ),
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
    from itembank.readers.read import source_kinds  # noqa: PLC0415

    context = click.get_current_context()
    files = next(one.name for one in context.command.params if isinstance(one, click.Argument) and one.nargs == -1)
    kinds = source_kinds(context.params[files or ""], spec, found)
    for_all = {"tasks", "exclude_tasks"} if found is not None else set()  # a folder may hold whatever it likes
    if kinds:
        named = {name: one for name, one in READERS.items() if name not in for_all}
        refuse_unused(*((name, not of.isdisjoint(kinds), words) for name, (of, words) in named.items()))


def column_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Turn OURS=THEIRS into a mapping."""
    return _mapping(pairs, "OURS=THEIRS", "--column")


def _mapping(pairs: Sequence[str], form: str, option: str) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    bad = [pair for pair, (one, equals, other) in zip(pairs, split, strict=True) if not (one and equals and other)]
    if bad:
        raise click.BadParameter(f"must be {form}, got {bad[0]!r}.", param_hint=option)
    return {one: other for one, _, other in split}
