"""`itembank import`: turn per-item results into a response file."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.options import file_choices, refuse_unused, typed
from itembank.cli.render import Printer, is_verbose, note, working
from itembank.cli.signatures import Choices, NamedChoice, argument, option, verb
from itembank.errors import shell_word, shown, visible
from itembank.files.memory import allowing
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import sources
from itembank.tables import plural

if TYPE_CHECKING:
    from itembank.progress import ProgressCallback
    from itembank.readers.collecting import Found
    from itembank.readers.rows import ResponseRows

Read: TypeAlias = Callable[..., "ib.ResponseMatrix"]
LAYOUTS = ("long", "wide-models", "wide-items")
"""Of tables, as `--as` names them."""
BRIEF = ("n_scenarios", "n_responses", "n_missing", "n_lost", "errors", "mean_response", "n_trials", "costs")
"""Facts on responses without --verbose."""
FEWEST_MODELS = 3
"""A calibration refuses fewer (`calibration.fit_item_model`, which takes longer to load than a small import)."""


NO_ERRORS = "error"
"""Of our columns the one that may be told to be none of a table's: 'error='."""


def column_mapping(pairs: Sequence[str], option: str = "--column", form: str = "OURS=THEIRS") -> dict[str, str]:
    """Turn OURS=THEIRS into a mapping."""
    split = [pair.partition("=") for pair in pairs]
    bad = [
        pair
        for pair, (one, equals, other) in zip(pairs, split, strict=True)
        if not (one and equals and (other or one == NO_ERRORS or option == "--where"))
    ]
    if bad:
        raise click.BadParameter(f"must be {form}, got {bad[0]!r}.", param_hint=option)
    return {one: other for one, _, other in split}


Items: TypeAlias = Annotated[Path | None, option("What is known about each item, by item_id.", type=options.FILE)]
SpecFile: TypeAlias = Annotated[
    Path | None, options.spec_file("ReadingSpec", "exclude_tasks, skip_unusable, filter_name or scenario")
]
_field = partial(option, of=ReadingSpec)
_READING: Choices = {
    "Which results, and of which models": {
        "tasks": _field("Read only these tasks: 'mmlu_*'. Repeatable.", "--task", metavar="PATTERN"),
        "jq": options.Jq,
        "model_id": _field("Id of the model, for results of one model that do not name it."),
        "allow_mixed_prompts": _field("Join models that were asked with different prompts, or have different judges."),
    },
    "What the response is, and names of columns": {
        "metric": _field(
            "The metric (or scorer) to take as response; pass^4: the chance that 4 counted trials all succeed. "
            "Repeatable.",
            metavar="[TASK=]NAME",
        ),
        "true_value": _field("The response that is right, if unusual.", metavar="VALUE"),
        "missing_values": _field(
            "A value that means no response, such as -1 or skip. Repeatable.", "--missing", metavar="VALUE"
        ),
        "max_response": _field("Divide responses by this, the highest mark: 100 for percentages."),
        "repeats": _field(
            "Several responses to an item: refuse them, count right ones and trials, average, or take the last: of the "
            "last file, by a column of attempts or times, else the last row."
        ),
        "errors": options.LostAnswers,
        "columns": option(
            "The name of a column in a table: model_id=llm. Columns to join: model_id=agent+llm. Repeatable.",
            "--column",
            metavar="OURS=THEIRS",
            multiple=True,
        ),
        "drop_columns": _field(
            "Tables: leave out this column: 'note_*'. Repeatable.", "--drop-column", metavar="PATTERN"
        ),
        "where": option(
            "Tables: read only rows with this value: judge=gpt-4o. Repeatable.", metavar="COLUMN=VALUE", multiple=True
        ),
        "prefix_scenario": _field("Put the scenario before item ids that start anew in each."),
    },
}
"""How files are read."""


_TABLES = (("table",), "tables")
READERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "metric": (("table",), "logs of evaluation harnesses, and long tables"),
    "allow_mixed_prompts": (
        ("responses", "table"),
        "logs of lm-evaluation-harness and Inspect, trials of agents, tables, response files",
    ),
    "true_value": _TABLES,
    "columns": _TABLES,
    "missing_values": _TABLES,
    "prefix_scenario": (("table",), "tables, jobs of Harbor and runs of Terminal-Bench 1"),
    "where": _TABLES,
    "drop_columns": _TABLES,
    "errors": (("table", "responses"), "results that tell lost answers from others"),
    "max_response": (("table",), "files that itembank import has not read yet"),
}
"""Options that are for some kinds of results only: the kinds beside sources that take them, and what all are called."""


class FormatName(NamedChoice):
    """Name of a layout of tables, or of a source, for which installed packages are asked where it is named or shown."""

    choices = property(lambda _: (*LAYOUTS, *sources()), lambda *_: None)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, or fail and list all that there are."""
        return value if value in LAYOUTS else super().convert(value, param, ctx)


FORMAT = FormatName(LAYOUTS)


@verb("import")
def import_command(
    *,
    paths: Annotated[tuple[Path, ...], argument(type=options.EXISTING, metavar="PATH...")],
    output: Annotated[Path, options.output("the response file (its name must end in .parquet)")],
    form: Annotated[
        str | None,
        option(
            lambda: f"Format of files that do not show it: {', '.join(FORMAT.choices)}.",
            "--as",
            metavar="FORMAT",
            type=FORMAT,
        ),
    ],
    models: options.Models,
    items: Items,
    reading: Annotated[Choices, _READING],
    spec_file: SpecFile,
    out: options.Out,
) -> None:
    """Turn per-item results into a response file.

      itembank import results.csv -o responses.parquet
      itembank import output/ --metric acc_norm --metric acc -o responses.parquet
      itembank import scores.csv --as wide-items --max-response 100 -o responses.parquet
      itembank import a.parquet b.parquet --items items.csv -o joined.parquet
      itembank import run.jsonl -o answers.parquet
      itembank import runs/*.json --jq '.[] | {model_id: $stem, item_id: .task, response: .reward}' -o r.parquet

    It reads tables (CSV, Parquet, JSON Lines; long or wide), response files, logs of harnesses, results of
    leaderboards, and the journal of a session, and finds out by name and content which it is. Of folders it reads all
    files. docs/data.md says what becomes model, item, scenario and response, and what can be in the file of --spec.
    """
    from itembank.sessions.journal import is_journal

    if len(paths) == 1 and paths[0].is_file() and is_journal(paths[0]):
        refuse_unused(((*reading, "form"), False, "other results than journals of sessions"))
        read: Read = partial(_answers_of_session, paths[0])
    else:
        found = file_choices(spec_file, ReadingSpec) | typed(reading)
        if reading["columns"]:
            found["columns"] = column_mapping(reading["columns"])
        if reading["where"]:
            found["where"] = column_mapping(reading["where"], "--where", "COLUMN=VALUE")
        if form is not None:
            found["format"] = form
        read = _reader(paths, ReadingSpec(**found), (models, items))
    write_read(partial(read, models=models, items=items), output, out)


def _answers_of_session(journal: Path, *, progress: "ProgressCallback", **known: Path | None) -> "ib.ResponseMatrix":
    if any(known.values()):
        raise click.UsageError("--models and --items go with other results than journals of sessions. Leave them out.")
    return ib.session_responses(ib.read_session(journal, progress=progress))


def _reader(given: tuple[Path, ...], spec: ReadingSpec, known: Iterable[Path | None]) -> "Read":
    """Find out what is to be read; what reads it says what it found in folders, and what is ignored."""
    from itembank.readers.collecting import find_sources
    from itembank.readers.matrix import warn_of_lost, warn_of_partial_runs
    from itembank.readers.read import read_found, source_kinds
    from itembank.responses.responses import DEFAULT_SCENARIO

    with allowing(spec.max_memory):
        found = find_sources(given, spec, known)  # a look at every file, which is not taken twice
    if kinds := source_kinds(found):
        choices = {name: one for name, one in READERS.items() if name != "metric" or spec.of_trials().metric}
        refuse_unused(*((name, _takes(name, kinds, others), words) for name, (others, words) in choices.items()))
    are_told = len(found.paths) > 1 or any(path.is_dir() for path in given)

    def read(**known: Any) -> "ib.ResponseMatrix":
        unknown = found.unknown if found.paths else ()

        if unknown:
            names = visible(shown([str(path) for path in unknown]))
            note(
                f"{plural(len(unknown), 'file', 'have')} no results that itembank knows, and "
                f"{'is' if len(unknown) == 1 else 'are'} ignored: {names}."
            )
        responses = read_found(found, spec, told=_say_found if are_told else None, **known)
        scenarios = responses.items["scenario"]
        is_lacking = scenarios.n_unique() == 1 or DEFAULT_SCENARIO in scenarios
        is_said = is_lacking and spec.jq is None and say_scenarios(found, spec)
        if not is_said and DEFAULT_SCENARIO in scenarios and known.get("items"):
            say_scenario_of_items(known["items"])
        warn_of_partial_runs(responses.models)
        warn_of_lost(responses)
        return responses

    return read


def _takes(choice: str, kinds: Iterable[str], others: Collection[str]) -> bool:
    """Whether a choice has a say in how results of one of these kinds are read."""
    return any(
        kind in others or (kind not in {"table", "responses"} and choice in sources()[kind].takes) for kind in kinds
    )


def say_scenarios(found: "Found", spec: ReadingSpec, how: str = "add: ") -> bool:
    """Name the columns of the first table with some that are not read and that may say the items' scenario, if any."""
    from itembank.readers.table import scenario_columns

    for path in (path for form, paths in found.paths.items() if form in {"auto", "long"} for path in paths):
        others, likely = scenario_columns(path, spec)
        if likely:
            how += f"--column {shell_word(f'scenario={likely[0]}')}"
            note(
                f"Columns of {visible(str(path))} that are not read: {visible(shown(others, 12))}. If "
                f"{visible(repr(likely[0]))} is the scenario of an item, {visible(how)}"
            )
            return True
    return False


def say_scenario_of_items(path: Path) -> None:
    """Name the first column of a table of items that may be their scenario, where it has none called so."""
    from itembank.readers.table import groups
    from itembank.readers.table_files import first_rows

    frame = first_rows(path).frame
    names = [one.name for one in frame if groups(one, frame["item_id"], is_of_one=True)]
    if names and "scenario" not in frame.columns:
        name, file = visible(repr(names[0])), visible(str(path))
        note(f"If {name} of {file} is the scenario of an item, call that column scenario.")


def _say_found(rows: "ResponseRows") -> None:
    table = rows.items
    name = next((name for name in ("task", "scenario") if name in table.columns), "task")
    n = table[name].n_unique() if name in table.columns else 1
    note(
        f"Found {visible(rows.source)}: {plural(rows.models.height, 'model')}, {plural(n, name)}, "
        f"{plural(rows.n_rows, 'response')}."
    )


def write_read(read: "Read", output: Path, out: Printer) -> None:
    """Read with `read(progress=...)`, write, and say what was read."""
    from itembank.responses.contents import about_responses, means_in_words, scenario_rows
    from itembank.responses.response_files import check_response_destination
    from itembank.responses.siblings import warn_of_no_overlap

    check_response_destination(output)
    with working("import") as report:
        responses = read(progress=report)
        is_apart = warn_of_no_overlap(responses)
        ib.write_responses(responses, output)
    about = {"file": str(output), **about_responses(responses)}
    out.rows(
        [about],
        "responses",
        title=f"{output}: answers of {plural(about['n_models'], 'model')} to {plural(about['n_items'], 'item')}",
        columns=() if is_verbose() else [name for name in BRIEF if about[name] or name == "mean_response"],
    )
    for text in means_in_words(about, scenario_rows(responses)):
        note(text)
    step = f"itembank calibrate {shell_word(output)} -o bank"
    if is_apart:
        step = (
            "import each of these sets into its own file (--task, or exclude_files in the file of --spec), or add "
            "results of models that answered items of several; a bank needs models that share items."
        )
    elif responses.n_models < FEWEST_MODELS:
        step = (
            f"import results of more models: an item model needs {FEWEST_MODELS}. Or, with a bank of these items, and "
            f"--selection FILE if a selection was run: itembank estimate BANK {shell_word(output)}"
        )
    note(f"Next: {step}")
