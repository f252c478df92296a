"""`itembank import`: turn per-item results into a response file."""

from collections.abc import Callable, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, Decorator, Group, gathered, together
from itembank.cli.options import format_option, models_option, output_option, parallel_option
from itembank.cli.reading_options import (
    GENERAL_OPTIONS,
    LOG_OPTIONS,
    OPTIONS_OF,
    TABLE_OPTIONS,
    TASK_OPTIONS,
    VALUE_OPTIONS,
    column_mapping,
    items_option,
    refuse_unread,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.cli.spec_options import spec_option
from itembank.errors import ItembankError
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import LOGGED, SOURCES, Source

if TYPE_CHECKING:
    from itembank.readers.rows import ResponseRows
    from itembank.responses.responses import ResponseMatrix


model_id_from_option = spec_option(
    ReadingSpec,
    "model_id_from",
    "What tells models apart: the name, the arguments (with the revision), or the log's folder.",
)


paths_argument = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH..."
)


FEWEST_MODELS = 3
"""A calibration refuses fewer (`itembank.calibration.calibrate`, which takes longer to load than a small import)."""

exclude_files_option = spec_option(
    ReadingSpec,
    "exclude_files",
    "Leave out files whose path ends so, or that lie below such a folder: '*.bak', 'old/*', 'old'. Repeatable.",
    "--exclude-file",
    metavar="PATTERN",
)


def import_options(
    *own: Decorator,
    arguments: Decorator = paths_argument,
    values: Sequence[Decorator] = VALUE_OPTIONS,
    needs_output: bool = True,
) -> Decorator:
    """Add the options of one kind of results, and those that all kinds have in common."""
    return together(
        arguments,
        output_option("the response file (its name must end in .parquet)", required=needs_output),
        models_option,
        items_option,
        gathered(
            "reading",
            *own,
            *((exclude_files_option,) if arguments is paths_argument else ()),
            spec_option(ReadingSpec, "scenario", "Scenario of the items that have none.  [default: all]"),
            *values,
            click.option("--complete", is_flag=True, help="Refuse missing responses."),
            click.option("--drop-empty", is_flag=True, help="Leave out models and items without any response."),
        ),
        format_option,
    )


SECTIONS = {
    "Whatever there is": ("auto",),
    "Tables": ("table", "json", "py-irt"),
    "Logs of harnesses": ("lm-eval", "inspect", "helm", "eee", "evalscope", "lighteval", "opencompass"),
    "Agents, code and leaderboards": ("swe-bench", "bfcl", "alpaca-eval", "evalplus", "livecodebench"),
    "Public stores": ("public",),
    "Sets of results to be joined": ("match-names",),
}


@click.group("import", cls=Group, sections=SECTIONS)
def command() -> None:
    """Turn per-item results into a response file.

    \b
      itembank import auto results/ -o responses.parquet
      itembank import table results.csv -o responses.parquet
      itembank import lm-eval output/ -o responses.parquet
      itembank import public --list

    The file is one Parquet table (model_id, item_id, response, ...) that carries what is known of models and items.
    Everything is checked: a file with a mistake in it is refused, and the message says what and where.
    """  # noqa: D301 (click's \b keeps the block's lines)


@command.command("table", short_help="Read CSV, Parquet or JSON Lines, long or wide.")
@import_options(
    click.option(
        "--layout",
        type=click.Choice(["auto", "long", "wide-models", "wide-items"]),
        default="auto",
        show_default=True,
        help="long: one row a response; wide-models: one row a model; wide-items: one row an item.",
    ),
    *TABLE_OPTIONS,
    spec_option(ReadingSpec, "prefix_scenario", "Make item ids 'scenario/item_id'."),
    click.option(
        "--names",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Models that are the same under different names: the table of itembank import match-names, edited.",
    ),
)
def table(**given: Any) -> None:
    """Read tables: CSV, Parquet or JSON Lines, long or wide; also response files, to join them.

    \b
      itembank import table results.csv -o responses.parquet
      itembank import table scores.csv --layout wide-items --max-response 100 -o responses.parquet
      itembank import table a.parquet b.parquet --items items.csv -o responses.parquet
      itembank import table samples.csv --repeats count -o responses.parquet
      itembank import table graded.csv --true-value accepted -o responses.parquet
      itembank import table a.parquet b.parquet --names names.csv -o joined.parquet

    A long table has the columns model_id, item_id, response, and may have scenario, subscenario, n_trials,
    n_correct, seed, epoch, input_tokens, output_tokens, cost_usd, seconds. Rows of one model and item with other
    seeds or epochs are repeated attempts, which --repeats count turns into n_trials.
    """  # noqa: D301
    names = given["reading"].pop("names")
    given["reading"]["model_names"] = {}
    if names is not None:
        from itembank.studies.same_models import read_model_names  # noqa: PLC0415 (takes longer than a small import)

        given["reading"]["model_names"] = read_model_names(names)
    _import(given, given["reading"].pop("layout"))


@command.command("py-irt", short_help="Read py-irt's JSON Lines.")
@import_options()
def py_irt(**given: Any) -> None:
    """Read py-irt's JSON Lines: one line a model, {"subject_id": "a", "responses": {"x": 1, "y": 0}}.

    \b
      itembank import py-irt responses.jsonl --items items.csv -o responses.parquet
    """  # noqa: D301
    _import(given, "py-irt")


@command.command("lm-eval", short_help="Read logs of lm-evaluation-harness.")
@import_options(
    *LOG_OPTIONS,
    click.option(
        "--choice-scores",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Also write a table (.parquet, .csv) of all scores of the answer options: accuracy, probability, bits per "
        "byte.",
    ),
    spec_option(
        ReadingSpec,
        "use_groups",
        "Make a task's outermost group the scenario and the task the subscenario.",
        "--groups",
    ),
    model_id_from_option,
    OPTIONS_OF["ignore_content"],
)
@parallel_option
def lm_eval(**given: Any) -> None:
    """Read logs of lm-evaluation-harness, written with --log_samples: folders or samples_*.jsonl.

    \b
      itembank import lm-eval output/ -o responses.parquet
      itembank import lm-eval output/ --metric acc_norm --metric acc -o responses.parquet
      itembank import lm-eval output/ --response probability --choice-scores scores.parquet -o responses.parquet
      itembank import lm-eval output/ --filter gsm8k=flexible-extract --task gsm8k -o responses.parquet
      itembank import lm-eval output/ --exclude-task 'wmt*' --skip-unusable -o responses.parquet
      itembank import lm-eval thousands/ --jobs 4 -o responses.parquet

    The scenario is the task, the item id task/doc_id. One metric and one filter are taken of each task: the only one
    that can be a response, else acc or exact_match and none or strict-match, with a warning. Averages are never used.
    With --response, probabilities of the right option are made of the log-likelihoods in the samples. An import of many
    logs that was killed goes on after those it had read: give the same command again.
    """  # noqa: D301
    _import(given, "lm-eval", choice_scores=given["reading"].pop("choice_scores"))


@command.command("inspect", short_help="Read logs of Inspect.")
@import_options(
    spec_option(
        ReadingSpec,
        "metric",
        "The scorer whose scores are the responses. Repeat it for an order of preference.",
        "--scorer",
        "--metric",
        metavar="[TASK=]NAME",
    ),
    *TASK_OPTIONS,
    model_id_from_option,
    OPTIONS_OF["ignore_content"],
)
@parallel_option
def inspect(**given: Any) -> None:
    """Read logs of Inspect: folders, .eval or .json, finished or not.

    \b
      itembank import inspect logs/ -o responses.parquet
      itembank import inspect logs/ --scorer match --task popularity -o responses.parquet

    The scenario is the task, the item id task/sample_id. One scorer is taken of each task: the first, with a warning
    where there are others. The epochs of a run are trials, and of a run and its retries the last log counts. A sample
    that ended in an error, or that nobody scored, is missing and counted in a warning. An import of many logs that was
    killed goes on after those it had read: give the same command again.
    """  # noqa: D301
    _import(given, "inspect")


def _options_of(takes: Sequence[str]) -> Decorator:
    """Make the options of results in whose reading these choices have a say."""
    return import_options(*(OPTIONS_OF[name] for name in takes), values=GENERAL_OPTIONS)


def _of_source(name: str, source: Source) -> click.Command:
    """Make the command that reads results of one program."""

    @_options_of(source.takes)
    def read(**given: Any) -> None:
        _import(given, name)

    params: list[click.Parameter] = getattr(read, "__click_params__")[::-1]  # noqa: B009 (click puts them there)
    title, _, rest = cleandoc(source.help).partition("\n")
    examples = [f"  itembank import {name} {one} -o responses.parquet" for one in source.example.splitlines()]
    text = "\n".join([title, "", "\b", *examples, rest])
    return Command(name, callback=read, params=params, help=text, short_help=f"Read {source.title}.")


for _name, _source in SOURCES.items():
    if _source.help:
        command.add_command(_of_source(_name, _source))


@command.command("auto", short_help="Tell what files and folders hold, and read it.")
@_options_of((*LOGGED, "errors", "allow_mixed_prompts"))
def auto(**given: Any) -> None:
    """Tell what files and folders hold, and read it: whatever has a command here, and response files.

    \b
      itembank import auto results/ -o responses.parquet
      itembank import auto results/ more.csv -o responses.parquet

    Folders are walked, and what was found is said on standard error: files, models and tasks of each format, and the
    files that no reader knows. Results of several programs are joined; their items are the same only where their ids
    are. Tables with the columns model_id, item_id and response are read as well.
    """  # noqa: D301
    _import(given, "auto", tells_all=True)


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


def _import(given: dict[str, Any], form: str, *, choice_scores: Path | None = None, tells_all: bool = False) -> None:
    """Read, write, and say what was read; with `tells_all`, what of each format, and what is left out."""
    from itembank.readers.detection import find_sources  # noqa: PLC0415
    from itembank.readers.kept_parts import keeping_parts  # noqa: PLC0415
    from itembank.readers.lm_eval_coverage import warn_of_partial_runs  # noqa: PLC0415
    from itembank.readers.read import read_coded, read_matrix  # noqa: PLC0415

    if choice_scores is not None:
        from itembank.readers.choice_table import check_score_destination  # noqa: PLC0415

        check_score_destination(choice_scores)
    spec = import_spec(form, **given["reading"])
    found = find_sources(given["paths"], spec) if tells_all else None  # a look at every file, which is not taken twice
    refuse_unread(spec, found)

    def read(**known: Any) -> "ResponseMatrix":
        if found is None:
            responses = read_coded(given["paths"], spec, **known)
        else:
            _say_unknown(found.unknown if found.paths else ())
            responses = read_matrix(given["paths"], spec, found=found, told=_say_found, **known)
        warn_of_partial_runs(responses.models)
        if kept.n_found:
            note(f"{kept.n_found} files were read by an import that did not end, and were not read again.")
        return responses

    def also() -> None:
        if choice_scores is not None:
            from itembank.readers.choice_table import read_choice_scores, write_choice_scores  # noqa: PLC0415

            with progress("choice scores") as report:
                write_choice_scores(read_choice_scores(given["paths"], spec=spec, progress=report), choice_scores)

    with keeping_parts(given["output"]) as kept:
        try:
            finish_import(given, read, also)
        except ItembankError:
            if kept.folder.is_dir():
                note(f"What was read stays in {kept.folder}: the same command need not read it again.")
            raise


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


def import_spec(
    form: Any, *, complete: bool, drop_empty: bool, columns: tuple[str, ...] = (), **choices: Any
) -> ReadingSpec:
    """Make the spec of the options."""
    return ReadingSpec(
        format=form,
        missing="forbid" if complete else "allow",
        empty="drop" if drop_empty else "error",
        columns=column_mapping(columns),
        **choices,
    )


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
