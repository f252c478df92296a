"""`itembank import`: turn per-item results into a response file."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, gathered, headed
from itembank.cli.options import FILE, format_option, models_option, output_option, parallel_option, refuse_unused
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.cli.spec_options import spec_option
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import SOURCES

if TYPE_CHECKING:
    from itembank.readers.rows import ResponseRows
    from itembank.responses.responses import ResponseMatrix

JSON = "json"
FORMATS = ("long", "wide-models", "wide-items", JSON, *SOURCES)
"""What `--as` may say: the layouts of tables, JSON of any shape, and the programs whose results are read."""
FEWEST_MODELS = 3
"""A calibration refuses fewer (`itembank.calibration.calibrate`, which takes longer to load than a small import)."""


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


def column_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Turn OURS=THEIRS into a mapping."""
    return _mapping(pairs, "OURS=THEIRS", "--column")


def _mapping(pairs: Sequence[str], form: str, option: str) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    bad = [pair for pair, (one, equals, other) in zip(pairs, split, strict=True) if not (one and equals and other)]
    if bad:
        raise click.BadParameter(f"must be {form}, got {bad[0]!r}.", param_hint=option)
    return {one: other for one, _, other in split}


items_option = click.option("--items", type=FILE, help="What is known of each item, by item_id.")
metric_option = spec_option(
    ReadingSpec,
    "metric",
    "The metric (or scorer) to take as response. Repeat it for an order of preference.",
    metavar="[TASK=]NAME",
)
errors_option = spec_option(ReadingSpec, "errors", "What an item is whose run or grading failed.")
skip_option = spec_option(ReadingSpec, "skip_unusable", "Leave out what cannot be read, and say what and why.")
drop_option = click.option("--drop-empty", is_flag=True, help="Leave out models and items without any response.")

_WHICH = headed(
    "Which results, and of which models",
    spec_option(ReadingSpec, "tasks", "Read only these tasks: 'mmlu_*'. Repeatable.", "--task", metavar="PATTERN"),
    spec_option(
        ReadingSpec,
        "exclude_tasks",
        "Leave out these tasks: 'mmlu_*'. Repeatable.",
        "--exclude-task",
        metavar="PATTERN",
    ),
    spec_option(
        ReadingSpec,
        "exclude_files",
        "Leave out files and folders whose path ends so: '*.bak', 'old'. Repeatable.",
        "--exclude-file",
        metavar="PATTERN",
    ),
    click.option(
        "--rename",
        "task_names",
        multiple=True,
        callback=_renamed,
        metavar="OLD=NEW",
        help="Take a task of logs under another name. Repeatable.",
    ),
    spec_option(ReadingSpec, "model_id", "Id of the model, for results of one model that do not name it."),
    spec_option(
        ReadingSpec,
        "model_id_from",
        "What tells models of lm-eval and Inspect apart.",
    ),
    click.option(
        "--names",
        type=FILE,
        help="Models with two names: the edited table of itembank match-names.",
    ),
    spec_option(ReadingSpec, "allow_mixed_prompts", "Join models that were asked with different prompts."),
    spec_option(ReadingSpec, "ignore_content", "Take items whose content differs between runs as the same."),
    skip_option,
    drop_option,
    click.option("--complete", is_flag=True, help="Refuse missing responses."),
)
_RESPONSE = headed(
    "What the response is",
    metric_option,
    spec_option(
        ReadingSpec,
        "filter_name",
        "lm-eval: the filter to take. Repeatable.",
        "--filter",
        metavar="[TASK=]NAME",
    ),
    spec_option(
        ReadingSpec,
        "response",
        "lm-eval: a logged metric, or, by the log-likelihoods of the options, whether the most likely is right, or how "
        "probable the right one is.",
    ),
    spec_option(
        ReadingSpec,
        "true_value",
        "The response that is right, where they are unusual words.",
        metavar="VALUE",
    ),
    spec_option(ReadingSpec, "max_response", "Divide responses by this: 100 for percentages."),
    spec_option(
        ReadingSpec,
        "repeats",
        "Several responses to an item: refuse, count right ones and trials, average, or take the last.",
    ),
    errors_option,
)
_COLUMNS = headed(
    "Tables, JSON and scenarios",
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="OURS=THEIRS",
        help="What a table calls a column, or its path in JSON: model_id=llm. Repeatable.",
    ),
    click.option(
        "--rows",
        default="",
        metavar="PATH",
        help="--as json: path of the rows in a record.  [default: each record is one]",
    ),
    spec_option(ReadingSpec, "scenario", "Scenario of the items that have none.  [default: all]"),
    spec_option(ReadingSpec, "prefix_scenario", "Tables: make item ids 'scenario/item_id'."),
    spec_option(
        ReadingSpec,
        "use_groups",
        "lm-eval: a task's outermost group is the scenario, the task the subscenario.",
        "--groups",
    ),
)
_CHOICE_SCORES = click.option(
    "--choice-scores",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="lm-eval: also write a table (.parquet, .csv) of all scores of the answer options.",
)
_MEMORY = click.option(
    "--max-memory",
    callback=_bytes,
    metavar="SIZE",
    help="Let reading take so much (8GB).  [default: half of the machine's]",
)


def _taking(choice: str, what: str, *others: str) -> tuple[frozenset[str], str]:
    """Kinds of results in whose reading a choice has a say, and what they are called."""
    return frozenset({*others, *(name for name, one in SOURCES.items() if choice in one.takes)}), what


_LM_EVAL = (frozenset({"lm-eval"}), "logs of lm-evaluation-harness")
_TABLES = (frozenset({"table"}), "tables")
_BY_COLUMNS = (frozenset({"table", JSON}), "tables and JSON of any shape")
_HARNESS = "logs of evaluation harnesses"
READERS: Mapping[str, tuple[frozenset[str], str]] = {
    "metric": _taking("metric", _HARNESS),
    "filter_name": _LM_EVAL,
    "response": _LM_EVAL,
    "use_groups": _LM_EVAL,
    "choice_scores": _LM_EVAL,
    "task_names": _taking("task_names", _HARNESS),
    "ignore_content": _taking("ignore_content", _HARNESS),
    "model_id_from": (frozenset({"lm-eval", "inspect"}), "logs of lm-evaluation-harness and Inspect"),
    "allow_mixed_prompts": (
        frozenset({"lm-eval", "inspect", "responses"}),
        "logs of lm-evaluation-harness and Inspect, and response files of them",
    ),
    "errors": _taking("errors", "results that tell errors from wrong answers, as SWE-bench's do"),
    "names": (frozenset({"table", "responses"}), "tables and response files"),
    "true_value": _BY_COLUMNS,
    "columns": _BY_COLUMNS,
    "rows": (frozenset({JSON}), "--as json"),
    "tasks": (frozenset({"table", "responses", *SOURCES}), "results that are no JSON of any shape"),
    "exclude_tasks": (frozenset({"table", "responses", *SOURCES}), "results that are no JSON of any shape"),
    "prefix_scenario": _TABLES,
    "max_response": _taking("max_response", "files that itembank import has not read yet", "table", JSON),
}
"""Options that are for some kinds of results only: the kinds, and what they are called."""


@click.command("import", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@output_option("the response file (its name must end in .parquet)")
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help=f"What files are that do not tell: {', '.join(FORMATS)}.",
)
@models_option
@items_option
@gathered("reading", _WHICH, _RESPONSE, _COLUMNS, _MEMORY)
@_CHOICE_SCORES
@parallel_option
@format_option
def command(*, choice_scores: Path | None, form: str | None, reading: dict[str, Any], **given: Any) -> None:
    """Turn per-item results into a response file, whatever wrote them.

    \b
      itembank import results.csv -o responses.parquet
      itembank import output/ --metric acc_norm --metric acc -o responses.parquet
      itembank import scores.csv --as wide-items --max-response 100 -o responses.parquet
      itembank import a.parquet b.parquet --items items.csv -o joined.parquet

    Files are told by name and content: tables (CSV, Parquet, JSON Lines; long or wide), response files, logs of
    harnesses, results of leaderboards. Folders are walked. docs/data.md says what of each format becomes model, item,
    scenario and response.
    """  # noqa: D301 (click's \b keeps the block's lines)
    names, rows = reading.pop("names"), reading.pop("rows")
    spec = _spec(form, names, reading)
    if form == JSON:
        _import_json(given, spec, rows)
    else:
        _import(given, spec, choice_scores)


def _spec(form: str | None, names: Path | None, reading: dict[str, Any]) -> ReadingSpec:
    """Make the spec of the options."""
    model_names = {}
    if names is not None:
        from itembank.studies.same_models import read_model_names  # noqa: PLC0415 (takes longer than a small import)

        model_names = read_model_names(names)
    missing = "forbid" if reading.pop("complete") else "allow"
    empty = "drop" if reading.pop("drop_empty") else "error"
    columns = {} if form == JSON else column_mapping(reading["columns"])
    kind = "auto" if form in {None, JSON} else form
    return ReadingSpec(
        **{**reading, "columns": columns},
        format=str(kind),
        missing=missing,  # type: ignore[arg-type]
        empty=empty,  # type: ignore[arg-type]
        model_names=model_names,
    )


def _refuse_unread(kinds: set[str]) -> None:
    """Refuse options that were typed and that none of these kinds of results is read by."""
    if kinds:
        refuse_unused(*((name, not of.isdisjoint(kinds), words) for name, (of, words) in READERS.items()))


def _import_json(given: dict[str, Any], spec: ReadingSpec, rows: str) -> None:
    """Read JSON by paths."""
    from itembank.readers.json_import import JsonMapping, read_json_results  # noqa: PLC0415

    _refuse_unread({JSON})
    columns = column_mapping(click.get_current_context().params["columns"])
    if not columns:
        raise click.UsageError("--as json needs --column OURS=PATH: where item_id, response, ... stand.")
    mapping = JsonMapping(columns, rows)
    finish_import(given, lambda **known: read_json_results(given["paths"], mapping, spec=spec, **known))


def _import(given: dict[str, Any], spec: ReadingSpec, choice_scores: Path | None) -> None:
    """Read, write, and say what was read, and of folders what each format has and what is left out."""
    from itembank.files.memory import allowing  # noqa: PLC0415
    from itembank.readers.collecting import find_sources  # noqa: PLC0415
    from itembank.readers.matrix import warn_of_partial_runs  # noqa: PLC0415
    from itembank.readers.read import read_coded, source_kinds  # noqa: PLC0415

    if choice_scores is not None:
        from itembank.readers.choice_table import check_score_destination  # noqa: PLC0415

        check_score_destination(choice_scores)
    with allowing(spec.max_memory):
        found = find_sources(given["paths"], spec)  # a look at every file, which is not taken twice
    _refuse_unread(source_kinds(found))
    are_told = len(found.paths) > 1 or any(path.is_dir() for path in given["paths"])

    def read(**known: Any) -> "ResponseMatrix":
        _say_unknown(found.unknown if found.paths else ())
        responses = read_coded(found, spec, told=_say_found if are_told else None, **known)
        warn_of_partial_runs(responses.models)
        return responses

    def also() -> None:
        if choice_scores is not None:
            from itembank.readers.choice_table import read_choice_scores, write_choice_scores  # noqa: PLC0415

            with progress("choice scores") as report:
                write_choice_scores(read_choice_scores(given["paths"], spec=spec, progress=report), choice_scores)

    finish_import(given, read, also)


def _say_found(rows: "ResponseRows") -> None:
    """Say what one format holds."""
    from itembank.errors import visible  # noqa: PLC0415

    table = rows.item_table
    tasks = next((table[name].n_unique() for name in ("task", "scenario") if name in table.columns), 1)
    note(f"Found {visible(rows.source)}: {rows.models.n_names} models, {tasks} tasks, {rows.n_rows} responses.")


def _say_unknown(unknown: Sequence[Path]) -> None:
    """Name the files below folders that no reader knows."""
    from itembank.errors import shown, visible  # noqa: PLC0415

    if unknown:
        names = visible(shown([str(path) for path in unknown]))
        note(f"{len(unknown)} files hold no results that itembank knows, and are left out: {names}.")


def finish_import(
    given: dict[str, Any],
    read: Callable[..., "ResponseMatrix"],
    also: Callable[[], None] | None = None,
) -> None:
    """Read with `read(models=..., items=..., progress=...)`, write, do `also`, and say what was read."""
    from itembank.responses.overlap import warn_of_no_overlap  # noqa: PLC0415
    from itembank.responses.response_files import check_response_destination, write_responses  # noqa: PLC0415

    output: Path = given["output"]
    check_response_destination(output)
    with warnings_as_notes():
        with progress("import") as report:
            responses = read(models=given["models"], items=given["items"], progress=report)
        is_apart = warn_of_no_overlap(responses)
        write_responses(responses, output)
        if also is not None:
            also()
    print_rows([about_responses(responses, output)], given["output_format"], title="Responses")
    note(f"Next: {_next_step(responses, output, is_apart=is_apart)}")


def _next_step(responses: "ResponseMatrix", output: Path, *, is_apart: bool) -> str:
    """Say what can be done with what was imported."""
    if is_apart:
        return (
            "import each of these sets into a file of its own (--task, --exclude-task, --exclude-file), or add results "
            "of models that answered items of several; a bank needs models that share items."
        )
    if responses.n_models < FEWEST_MODELS:
        return (
            f"import results of more models to make a bank, which needs at least {FEWEST_MODELS}; or, with a bank of "
            f"these items, itembank estimate BANK {output}"
        )
    return f"itembank calibrate {output} -o bank"


def about_responses(responses: "ResponseMatrix", path: Path) -> dict[str, Any]:
    """One row on the responses of a file."""
    from itembank.responses.coded_responses import summary  # noqa: PLC0415

    found = summary(responses)
    n_cells = responses.n_models * responses.n_items
    return {
        "file": str(path),
        "n_models": responses.n_models,
        "n_items": responses.n_items,
        "n_scenarios": responses.items["scenario"].n_unique(),
        "n_responses": found.n_responses,
        "n_missing": n_cells - found.n_responses,
        "density": found.n_responses / n_cells,
        "mean_response": found.mean_response,
        "is_binary": found.is_binary,
        "n_trials": found.n_trials,
        "costs": ", ".join(responses.costs) or None,
    }
