"""`itembank select`: choose the items to run on a new model."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.cli.command import Command
from itembank.cli.options import (
    COUNT,
    EXISTING,
    FILE,
    ID_FORMS,
    NEW_FILE,
    MethodName,
    bank_argument,
    file_choices,
    format_option,
    ids_of_file,
    listed_ids,
    method_option,
    option,
    parallel_option,
    refuse_unused,
    seed_option,
    spec_file_option,
)
from itembank.cli.render import note, print_exactly, print_object, print_rows, progress, warnings_as_notes
from itembank.errors import visible
from itembank.selection.selector_specs import METHODS

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.selection.selector_specs import SelectionSpec


@click.command("select", cls=Command)
@bank_argument
@option("-n --n-items", "Total number of items, over all scenarios and stages.", COUNT)
@option(
    "--stages",
    "Multistage testing: choose the routing stage, a third of -n. A model's answers to it decide what it is asked"
    " next (--after).",
    ["1", "2", "3"],
    default="1",
)
@option(
    "--after RESPONSES",
    "Choose the next stage for the model that gave these responses to --selection and to earlier stages.",
    EXISTING,
    many=True,
)
@option("--selection", "--after: the selection of the stage that the model answered.", FILE)
@option("--per-scenario", "Make -n the number for each scenario.", bool)
@option("-o --output", "Write the selection to this JSON file.", NEW_FILE)
@method_option(MethodName(METHODS, "auto"), "How the items are chosen.")
@option(
    "--target",
    "The score to estimate well: mean_win_rate or an external score with --method auto; overall or a scenario with "
    "--method v-optimal and optimal-design.",
)
@option(
    "--predict SCENARIO",
    "Ask no item of this scenario: choose those of others that tell most about its score, and say how well they "
    "predict it. Repeatable.",
    many=True,
)
@spec_file_option("the spec of --method", "the criterion of optimal-design, constraints or costs")
@option("--exclude", "File of ids that are never chosen, one a line.", FILE)
@option(
    "--must-include",
    "Items that are always chosen, as part of -n: ids one a line, a table with a column item_id, or a selection.",
    FILE,
)
@parallel_option
@seed_option
@option("--ids", "Print only the ids, in the form that a tool takes.", ID_FORMS)
@format_option
def select_command(
    *,
    bank: Path,
    n_items: int | None,
    after: tuple[Path, ...],
    selection: Path | None,
    output: Path | None,
    method: str,
    target: str | None,
    spec_file: Path | None,
    ids: str | None,
    output_format: str,
    **choices: Any,
) -> None:
    """Choose the items to run on a new model.

    Run them with your own harness, then give the results and the selection to itembank estimate.

    \b
      itembank select bank -n 100 -o selection.json
      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf ...
      itembank select bank -n 100 -o selection.json --ids list > items.txt
      itembank select bank -n 60 --ids swe-bench | xargs python -m swebench.harness.run_evaluation ... --instance_ids
      itembank select bank -n 90 --stages 2 -o stage1.json
      itembank select bank --after runs/m1 --selection stage1.json -o stage2.json
      itembank select bank -n 100 -o selection.json --method optimal-design --spec design.toml
      itembank select bank -n 30 -o selection.json --predict java

    with design.toml, for example:

    \b
      criterion = "d-optimal"
      per_cost = true
      cost = "tokens"
      at_most = 20
    """  # noqa: D301
    from itembank.files.atomic import check_destination  # noqa: PLC0415
    from itembank.files.documents import with_digest  # noqa: PLC0415
    from itembank.planning.select import next_stage  # noqa: PLC0415

    _check_stage(n_items, after, selection)
    if target is not None and choices["predict"]:
        raise click.UsageError("--predict names the wanted score itself: leave --target out.")
    refuse_unused(("output_format", ids is None, "what is printed without --ids"))
    if output is not None:
        check_destination(output)
    spec = _method(method, spec_file, target)
    loaded = _asked_for(ib.load_bank(bank), method, target)
    with warnings_as_notes():
        if after and selection is not None:
            chosen = next_stage(loaded, ib.Selection.load(selection), list(after))
        else:
            chosen = _first(loaded, int(n_items or 0), method=spec, **choices)
    if chosen.explanation:
        note(f"Chosen by {visible(chosen.explanation)}")
    text = None
    if ids is not None:
        from itembank.harnesses.id_forms import id_text  # noqa: PLC0415 (which other selections need not load)

        text = id_text(ids, chosen.item_ids, loaded.responses.items)
    if output is not None:
        chosen.save(output)
        note(f"{chosen.n_items} of {loaded.n_total} items by {chosen.method} written to {output}.")
        _say_next(chosen, bank, output)
    if text is not None:
        print_exactly(text)
    elif output_format == "json":
        print_object(with_digest(chosen.to_dict()), "selection")
    elif output is None or output_format == "csv":
        title = f"{chosen.n_items} of {loaded.n_total} items of bank {loaded.bank_id} by {chosen.method}"
        print_rows(chosen.to_dict()["items"], output_format, "selection", title=title, is_read_back=True)


def _asked_for(bank: "Bank", method: str, target: str | None) -> "Bank":
    """Return the bank that gives a headline score if that is the target."""
    from itembank.bank.bank_views import asked_for  # noqa: PLC0415

    if target is None:
        return bank
    asked = asked_for(bank, target)
    if (asked is bank) == (method == "auto"):
        what = "v-optimal or optimal-design" if asked is bank else "auto"
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
    stages: str,
    exclude: Path | None,
    must_include: Path | None,
    seed: int,
    **choices: Any,
) -> "Selection":
    """Choose all items, or those of the first stage."""
    excluded = () if exclude is None else listed_ids(exclude)
    included = () if must_include is None else ids_of_file(must_include)
    with progress("select") as report:
        return ib.select(
            bank,
            n_items,
            stages=int(stages),
            excluded=excluded,
            included=included,
            rng=seed,
            progress=report,
            **choices,
        )


def _say_next(selection: "Selection", bank: Path, path: Path) -> None:
    """Say what comes after the selection that was written."""
    from itembank.selection.recipes import stages_of  # noqa: PLC0415

    sizes, number = stages_of(selection)
    if number < len(sizes):
        note(
            f"This is stage {number} of {len(sizes)}. Run its items. Next, for the {sizes[number]} items of the next "
            f"stage: itembank select {bank} --after RESULTS --selection {path} -o stage{number + 1}.json"
        )
    else:
        note(f"Next: run these items, then itembank estimate {bank} RESULTS --selection {path}")


def _check_stage(n_items: int | None, after: tuple[Path, ...], selection: Path | None) -> None:
    """Check that either a number of items was given, or what a next stage needs and nothing that it does not."""
    if bool(after) != (selection is not None):
        raise click.UsageError(
            "A next stage needs the responses so far and the selection they belong to: --after RESPONSES --selection "
            "FILE."
        )
    if not after and n_items is None:
        raise click.UsageError(
            "The number of items is missing: -n N. For a next stage: --after RESPONSES --selection FILE."
        )
    first = ("n_items", "stages", "per_scenario", "method", "target", "predict", "spec_file", "exclude", "must_include")
    refuse_unused(*((name, not after, "a first stage, not with --after") for name in (*first, "seed")))
