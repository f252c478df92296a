"""`itembank import`: turn per-item results into a response file."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.options import (
    column_mapping,
    format_option,
    output_option,
    refuse_unread,
    response_kind_option,
    task_options,
    true_value_option,
    value_options,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes

if TYPE_CHECKING:
    from itembank.data.readers.specs import ReadingSpec
    from itembank.data.responses import ResponseMatrix

Command = Callable[..., None]

_PATHS = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH..."
)
_TABLE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHARED = (
    output_option("the response file (its name must end in .parquet)"),
    click.option("--models", type=_TABLE, help="Table of what is known of each model (column model_id)."),
    click.option("--items", type=_TABLE, help="Table of what is known of each item (column item_id)."),
    click.option("--scenario", help="Scenario of the items that have none.  [default: all]"),
    *value_options(),
    click.option("--complete", is_flag=True, help="Refuse missing responses."),
    click.option("--drop-empty", is_flag=True, help="Leave out models and items without any response."),
    format_option,
)


def _shared(function: Command) -> Command:
    """Add what all kinds of results have in common."""
    for option in reversed((_PATHS, *_SHARED)):
        function = option(function)
    return function


def _tasks(function: Command) -> Command:
    """Add the options of which tasks are read."""
    for option in reversed(task_options()):
        function = option(function)
    return function


@click.group("import")
def command() -> None:
    """Turn per-item results into a response file.

    \b
      itembank import table results.csv -o responses.parquet
      itembank import py-irt responses.jsonl -o responses.parquet
      itembank import lm-eval output/ -o responses.parquet

    The file is one Parquet table (model_id, item_id, response, ...) that carries what is known of models and items.
    Everything is checked: a file with a mistake in it is refused, and the message says what and where.
    """  # noqa: D301 (click's \b keeps the block's lines)


@command.command("table")
@_shared
@click.option(
    "--layout",
    type=click.Choice(["auto", "long", "wide-models", "wide-items"]),
    default="auto",
    show_default=True,
    help="One row a response; one row a model and a column an item; one row an item and a column a model.",
)
@click.option("--response-column", default="response", show_default=True, help="Long tables: column of the response.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="What the table calls a column: --column model_id=llm --column seconds=latency. Repeatable.",
)
@true_value_option
@click.option("--prefix-scenario", is_flag=True, help="Make item ids 'scenario/item_id'.")
def table(
    *,
    layout: str,
    response_column: str,
    columns: tuple[str, ...],
    true_value: str | None,
    prefix_scenario: bool,
    **shared: Any,
) -> None:
    """Read tables: CSV, Parquet or JSON Lines, long or wide; also response files, to join them.

    \b
      itembank import table results.csv -o responses.parquet
      itembank import table scores.csv --layout wide-items --max-response 100 -o responses.parquet
      itembank import table a.parquet b.parquet --items items.csv -o responses.parquet
      itembank import table samples.csv --repeats count -o responses.parquet
      itembank import table graded.csv --true-value accepted -o responses.parquet

    A long table has the columns model_id, item_id, response, and may have scenario, subscenario, n_trials,
    n_correct, seed, epoch, input_tokens, output_tokens, cost_usd, seconds. Rows of one model and item with other
    seeds or epochs are repeated attempts, which --repeats count turns into n_trials.
    """  # noqa: D301
    choices = {
        "response_column": response_column,
        "columns": column_mapping(columns),
        "true_value": true_value,
        "prefix_scenario": prefix_scenario,
        "format": layout,
    }
    _import(shared, choices)


@command.command("py-irt")
@_shared
def py_irt(**shared: Any) -> None:
    """Read py-irt's JSON Lines: one line a model, {"subject_id": "a", "responses": {"x": 1, "y": 0}}.

    \b
      itembank import py-irt responses.jsonl --items items.csv -o responses.parquet
    """  # noqa: D301
    _import(shared, {"format": "py-irt"})


@command.command("lm-eval")
@_shared
@click.option(
    "--metric",
    multiple=True,
    metavar="[TASK=]NAME",
    help="Metric to take as response; repeat it for an order of preference, or with TASK= for some tasks.",
)
@click.option("--filter", "filter_name", multiple=True, metavar="[TASK=]NAME", help="Filter to take; as --metric.")
@response_kind_option
@click.option(
    "--choice-scores",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Also write a table (.parquet, .csv) of all scores of the answer options: accuracy, probability, bits per "
    "byte.",
)
@_tasks
@click.option("--groups", is_flag=True, help="Make a task's outermost group the scenario and the task the subscenario.")
@click.option(
    "--model-id-from",
    type=click.Choice(["name", "args", "folder"]),
    default="name",
    show_default=True,
    help="What tells models apart: the name, the arguments (with the revision), or the log's folder.",
)
@click.option("--ignore-content", is_flag=True, help="Take items whose content differs between runs as the same.")
def lm_eval(
    *,
    metric: tuple[str, ...],
    filter_name: tuple[str, ...],
    response: str,
    choice_scores: Path | None,
    tasks: tuple[str, ...],
    exclude_tasks: tuple[str, ...],
    skip_unusable: bool,
    groups: bool,
    model_id_from: str,
    ignore_content: bool,
    **shared: Any,
) -> None:
    """Read logs of lm-evaluation-harness, written with --log_samples: folders or samples_*.jsonl.

    \b
      itembank import lm-eval output/ -o responses.parquet
      itembank import lm-eval output/ --metric acc_norm --metric acc -o responses.parquet
      itembank import lm-eval output/ --response probability --choice-scores scores.parquet -o responses.parquet
      itembank import lm-eval output/ --filter gsm8k=flexible-extract --task gsm8k -o responses.parquet
      itembank import lm-eval output/ --exclude-task 'wmt*' --skip-unusable -o responses.parquet

    The scenario is the task, the item id task/doc_id. One metric and one filter are taken of each task: the only one
    that can be a response, else acc or exact_match and none or strict-match, with a warning. Averages are never used.
    With --response, probabilities of the right option are made of the log-likelihoods in the samples.
    """  # noqa: D301
    choices = {
        "format": "lm-eval",
        "metric": metric,
        "filter_name": filter_name,
        "response": response,
        "tasks": tasks,
        "exclude_tasks": exclude_tasks,
        "skip_unusable": skip_unusable,
        "use_groups": groups,
        "model_id_from": model_id_from,
        "ignore_content": ignore_content,
    }
    _import(shared, choices, choice_scores)


def _import(shared: dict[str, Any], choices: dict[str, Any], choice_scores: Path | None = None) -> None:
    """Read, write, and say what was read."""
    from itembank.data.overlap import warn_of_no_overlap  # noqa: PLC0415
    from itembank.data.readers.choice_table import (  # noqa: PLC0415
        check_score_destination,
        read_choice_scores,
        write_choice_scores,
    )
    from itembank.data.readers.read import read_responses  # noqa: PLC0415
    from itembank.data.response_files import check_response_destination, write_responses  # noqa: PLC0415
    from itembank.errors import ParameterError  # noqa: PLC0415

    output: Path = shared["output"]
    try:
        check_response_destination(output)
        if choice_scores is not None:
            check_score_destination(choice_scores)
        spec = _spec(shared, choices)
        refuse_unread(spec)
    except ParameterError as error:
        raise click.UsageError(str(error)) from error
    with warnings_as_notes():
        with progress("import") as report:
            responses = read_responses(
                shared["paths"], models=shared["models"], items=shared["items"], spec=spec, progress=report
            )
        warn_of_no_overlap(responses)
        write_responses(responses, output)
        if choice_scores is not None:
            with progress("choice scores") as report:
                write_choice_scores(read_choice_scores(shared["paths"], spec=spec, progress=report), choice_scores)
    print_rows([_summary(responses, output)], shared["output_format"], title="Responses")
    note(f"Next: itembank calibrate {output} -o bank")


def _spec(shared: dict[str, Any], choices: dict[str, Any]) -> "ReadingSpec":
    """Make the spec of the options."""
    from itembank.data.readers.specs import ReadingSpec  # noqa: PLC0415

    return ReadingSpec(
        scenario=shared["scenario"],
        max_response=shared["max_response"],
        model_id=shared["model_id"],
        repeats=shared["repeats"],
        max_memory=shared["max_memory"],
        missing="forbid" if shared["complete"] else "allow",
        empty="drop" if shared["drop_empty"] else "error",
        **choices,
    )


def _summary(responses: "ResponseMatrix", output: Path) -> dict[str, Any]:
    """One row on the responses."""
    observed = responses.observed
    return {
        "file": str(output),
        "n_models": responses.n_models,
        "n_items": responses.n_items,
        "n_scenarios": responses.items["scenario"].n_unique(),
        "n_responses": int(observed.sum()),
        "n_missing": int((~observed).sum()),
        "density": float(observed.mean()),
        "mean_response": float(responses.responses[observed].mean()),
        "is_binary": responses.is_binary,
        "n_trials": None if responses.n_trials is None else int(responses.n_trials[observed].sum()),
        "costs": ", ".join(responses.costs) or None,
    }
