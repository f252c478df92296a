"""`itembank select`: choose the items to run on a new model."""

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.option_types import MethodName
from itembank.cli.options import (
    FILE,
    bank_argument,
    format_option,
    ids_of_file,
    listed_ids,
    method_option,
    parallel_option,
    refuse_unused,
    seed_option,
)
from itembank.cli.render import (
    check_one_a_line,
    note,
    print_ids,
    print_object,
    print_rows,
    progress,
    warnings_as_notes,
)
from itembank.cli.spec_options import file_choices, spec_file_option
from itembank.errors import visible
from itembank.selection.selector_specs import METHODS

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.selection.selector_specs import SelectionSpec


@click.command("select", cls=Command)
@bank_argument
@click.option(
    "-n", "--n-items", type=click.IntRange(min=1), help="Number of items in all, spread over scenarios; of all stages."
)
@click.option(
    "--stages",
    type=click.Choice(["1", "2", "3", "auto"]),
    default="1",
    show_default=True,
    help="Multistage testing: choose the routing stage, a third of -n. A model's answers to it decide what it is asked "
    "next (--after). auto: two stages where past models say that they pay.",
)
@click.option(
    "--later-scenarios",
    type=click.IntRange(min=1),
    metavar="K",
    help="--stages: let each later stage ask of at most K scenarios, those that are least sure for the model.",
)
@click.option(
    "--after",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="RESPONSES",
    help="Choose the next stage for the model that gave these responses to --selection and to the stages before it.",
)
@click.option("--selection", type=FILE, help="--after: the selection of the stage that the model answered.")
@click.option("--per-scenario", is_flag=True, help="Make -n the number for each scenario.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the selection to this JSON file."
)
@method_option(MethodName(METHODS, "auto"), "How the items are chosen.")
@click.option(
    "--target",
    help="The wanted score: mean_win_rate or an external score, which --method auto aims at; with --method v-optimal "
    "and optimal-design, overall or a scenario.",
)
@spec_file_option("the spec of --method", "the criterion of optimal-design, constraints or costs")
@click.option("--exclude", type=FILE, help="File of ids never to choose, one a line.")
@click.option(
    "--must-include",
    type=FILE,
    help="Items that are always chosen, among the -n: ids one a line, a table with a column item_id, or a selection.",
)
@click.option(
    "--emit",
    type=click.Choice(["lm-eval", "ids"]),
    help="Print the documents of each task as lm_eval --samples takes them, or plain ids, instead of a table. With "
    "--samples, lm_eval draws other few-shot examples than in a full run: itembank run lm-eval does not.",
)
@parallel_option
@seed_option
@format_option
def command(
    *,
    bank: Path,
    n_items: int | None,
    stages: str,
    later_scenarios: int | None,
    after: tuple[Path, ...],
    selection: Path | None,
    per_scenario: bool,
    output: Path | None,
    method: str,
    target: str | None,
    spec_file: Path | None,
    exclude: Path | None,
    must_include: Path | None,
    emit: str | None,
    seed: int,
    output_format: str,
) -> None:
    """Choose the items to run on a new model.

    Run them with your own harness, then give the results and the selection to itembank estimate.

    \b
      itembank select bank -n 100 -o selection.json
      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf ...
      itembank select bank -n 100 -o selection.json --emit ids > items.txt
      itembank select bank -n 90 --stages 2 -o stage1.json
      itembank select bank --after runs/m1 --selection stage1.json -o stage2.json
      itembank select bank -n 100 -o selection.json --method optimal-design --spec design.toml

    where design.toml says how, for example:

    \b
      criterion = "d-optimal"
      per_cost = true
      cost = "tokens"
      at_most = 20
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.files.atomic import check_destination  # noqa: PLC0415
    from itembank.files.documents import with_digest  # noqa: PLC0415
    from itembank.planning.next_stage import next_stage  # noqa: PLC0415
    from itembank.selection.emit import as_lm_eval_samples  # noqa: PLC0415

    _check_stage(n_items, after, selection)
    refuse_unused(("later_scenarios", stages != "1", "--stages"))
    later_scenarios = None if stages == "1" else later_scenarios
    refuse_unused(("output_format", emit is None, "a printed selection, not with --emit"))
    if output is not None:
        check_destination(output)
    spec = _method(method, spec_file, target)
    loaded = _asked_for(load_bank(bank), method, target)
    with warnings_as_notes():
        if after and selection is not None:
            chosen = next_stage(loaded, Selection.load(selection), list(after))
        else:
            chosen = _first(
                loaded,
                int(n_items or 0),
                stages="auto" if stages == "auto" else int(stages),
                later_scenarios=later_scenarios,
                method=spec,
                per_scenario=per_scenario,
                exclude=exclude,
                must_include=must_include,
                seed=seed,
            )
    if chosen.explanation:
        note(f"Chosen by {visible(chosen.explanation)}")
    # The samples are made before the file is written: a bank they cannot be made from leaves nothing behind.
    samples = as_lm_eval_samples(chosen) if emit == "lm-eval" else None
    if emit == "ids":
        check_one_a_line(chosen.item_ids)
    if output is not None:
        chosen.save(output)
        note(f"{chosen.n_items} of {loaded.n_items} items by {chosen.method} written to {output}.")
        _say_next(chosen, output)
    if samples is not None:
        click.echo(json.dumps(samples, ensure_ascii=False))
    elif emit == "ids":
        print_ids(chosen.item_ids)
    elif output_format == "json":
        print_object(with_digest(chosen.to_dict()))
    elif output is None or output_format == "csv":
        title = f"{chosen.n_items} of {loaded.n_items} items of bank {loaded.bank_id} by {chosen.method}"
        print_rows(chosen.to_dict()["items"], output_format, title=title, is_read_back=True)


def _asked_for(bank: "Bank", method: str, target: str | None) -> "Bank":
    """Return the bank that gives a headline score where that is the target."""
    from itembank.bank.bank_views import asked_for  # noqa: PLC0415

    if target is None:
        return bank
    asked = asked_for(bank, target)
    if (asked is bank) == (method == "auto"):
        what = "v-optimal or optimal-design" if asked is bank else "auto, which chooses by past errors"
        raise click.UsageError(f"--target {visible(target)} goes with --method {what}.")
    return asked


def _method(method: str, spec_file: Path | None, target: str | None) -> "SelectionSpec | str":
    """Return the method with what was chosen of it."""
    if method == "auto":
        refuse_unused(("spec_file", False, "--method NAME, whose choices it has"))
        return method
    kind = METHODS.kinds[method]
    refuse_unused(
        ("target", "target" in {one.name for one in fields(kind)}, "--method auto, v-optimal or optimal-design")
    )
    wanted = {} if target is None else {"target": target}
    return kind(**file_choices(spec_file, kind) | wanted)


def _first(
    bank: "Bank",
    n_items: int,
    *,
    exclude: Path | None,
    must_include: Path | None,
    seed: int,
    **choices: Any,
) -> "Selection":
    """Choose all items, or those of the first stage."""
    from itembank.planning.select import select  # noqa: PLC0415

    excluded = () if exclude is None else listed_ids(exclude)
    included = () if must_include is None else ids_of_file(must_include)
    with progress("select") as report:
        return select(bank, n_items, excluded=excluded, included=included, rng=seed, progress=report, **choices)


def _say_next(selection: "Selection", path: Path) -> None:
    """Say what comes after the stage that was written, where there is a next one."""
    from itembank.selection.recipes import stages_of  # noqa: PLC0415

    sizes, number = stages_of(selection)
    if number < len(sizes):
        note(
            f"This is stage {number} of {len(sizes)}. Run its items; then itembank select BANK --after RESULTS "
            f"--selection {path} -o FILE chooses the {sizes[number]} items of the next stage."
        )


def _check_stage(n_items: int | None, after: tuple[Path, ...], selection: Path | None) -> None:
    """Check that either a number of items was given, or what a next stage needs and nothing that it does not."""
    if bool(after) != (selection is not None):
        raise click.UsageError(
            "A next stage needs the responses so far and the selection they belong to: --after RESPONSES --selection "
            "FILE."
        )
    if not after and n_items is None:
        raise click.UsageError("Say how many items to choose: -n N. Or choose a next stage: --after RESPONSES.")
    first = (
        "n_items",
        "stages",
        "later_scenarios",
        "per_scenario",
        "method",
        "target",
        "spec_file",
        "exclude",
        "must_include",
        "seed",
    )
    refuse_unused(*((name, not after, "a first stage, not with --after") for name in first))
