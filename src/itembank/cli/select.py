"""`itembank select`: choose the items to run on a new model."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.command import Group
from itembank.cli.options import file_choices, ids_of_file, listed_ids, refuse_unused
from itembank.cli.render import note, print_exactly, print_object, working
from itembank.cli.signatures import MethodName, option, verb
from itembank.errors import shell_word, visible
from itembank.files.atomic import check_destination
from itembank.files.documents import with_digest
from itembank.selection.selector_specs import METHODS

if TYPE_CHECKING:
    from itembank.selection.selector_specs import SelectionSpec


@verb("select")
def select_command(
    *,
    bank: options.Bank,
    n_items: Annotated[
        int | None,
        option("Total number of items, over all scenarios and stages.", "-n", "--n-items", type=options.COUNT),
    ],
    stages: Annotated[
        str,
        option(
            "Multistage testing: choose the routing stage, a third of -n. A model's answers to it decide what it is "
            "asked next (--after).",
            type=("1", "2", "3"),
        ),
    ] = "1",
    after: Annotated[
        tuple[Path, ...],
        option(
            "Choose the next stage for the model that gave these responses to --selection and to earlier stages.",
            metavar="RESPONSES",
            type=options.EXISTING,
        ),
    ],
    selection: Annotated[
        Path | None, option("With --after: the selection of the stage that the model answered.", type=options.FILE)
    ],
    per_scenario: Annotated[bool, "Make -n the number for each scenario."],
    output: Annotated[
        Path | None, option("Write the selection to this JSON file.", "-o", "--output", type=options.NEW_FILE)
    ],
    method: Annotated[str, option("How the items are chosen.", type=MethodName(METHODS, "auto"))] = "auto",
    target: Annotated[
        str | None,
        "The score to estimate well: mean_win_rate or an external score with --method auto; overall or a scenario with "
        "--method v-optimal and optimal-design.",
    ],
    predict: Annotated[
        tuple[str, ...],
        option(
            "Ask no item of this scenario: choose those of others that tell most about its score, and say how well "
            "they predict it. Repeatable.",
            metavar="SCENARIO",
        ),
    ],
    spec_file: Annotated[
        Path | None, options.spec_file("the spec of --method", "the criterion of optimal-design, constraints or costs")
    ],
    exclude: Annotated[Path | None, option("File of ids that are never chosen, one a line.", type=options.FILE)],
    must_include: Annotated[
        Path | None,
        option(
            "Items that are always chosen, as part of -n: ids one a line, a table with a column item_id, or a "
            "selection.",
            type=options.FILE,
        ),
    ],
    jobs: options.Jobs,
    seed: options.Seed,
    ids: Annotated[str | None, option("Print only the ids, in the form that a tool takes.", type=options.ID_FORMS)],
    out: options.Out,
) -> None:
    """Choose the items to run on a new model.

    Run them with your own harness, then give the results and the selection to itembank estimate.

      itembank select bank -n 100 -o selection.json
      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf ...
      itembank select bank -n 100 -o selection.json --ids list > items.txt
      itembank select bank -n 60 --ids swe-bench | xargs python -m swebench.harness.run_evaluation ... --instance_ids
      itembank select bank -n 90 --stages 2 -o stage1.json
      itembank select bank --after runs/m1 --selection stage1.json -o stage2.json
      itembank select bank -n 100 -o selection.json --method optimal-design --spec design.toml
      itembank select bank -n 30 -o selection.json --predict java

    with design.toml, for example:

      criterion = "d-optimal"
      per_cost = true
      cost = "tokens"
      at_most = 20
    """
    from itembank.planning.select import next_stage

    options.share_work(jobs)
    _check_stage(n_items, after, selection)
    if target is not None and predict:
        raise click.UsageError("--predict names the wanted score itself: leave --target out.")
    refuse_unused(("out", ids is None, "what is printed without --ids"))
    if output is not None:
        check_destination(output)
    spec = _method(method, spec_file, target)
    loaded = _asked_for(ib.load_bank(bank), method, target)
    with working("select") as report:
        if after and selection is not None:
            chosen = next_stage(loaded, ib.Selection.load(selection), list(after))
        else:
            own: dict[str, Any] = {
                "method": spec,
                "stages": int(stages),
                "per_scenario": per_scenario,
                "predict": predict,
            }
            own["excluded"] = () if exclude is None else listed_ids(exclude)
            own["included"] = () if must_include is None else ids_of_file(must_include)
            chosen = ib.select(loaded, int(n_items or 0), **own, rng=seed, progress=report)
    how, _, what = (chosen.explanation or f"{chosen.method}. ").partition(". ")
    words = f"Chose {chosen.n_items} of {loaded.n_total} items"
    note(visible(f"{words} ({how}). {what}".strip() if how == chosen.method else f"{words}: {chosen.explanation}"))
    text = None
    if ids is not None:
        from itembank.harnesses.id_forms import id_text

        text = id_text(ids, chosen.item_ids, loaded.responses.items)
    if output is not None:
        chosen.save(output)
        note(f"Written to {output}.")
        _say_next(chosen, bank, output)
    if text is not None:
        print_exactly(text)
    elif out.is_json:
        print_object(with_digest(chosen.to_dict()), "selection")
    elif output is None or out.is_csv:
        title = f"{chosen.n_items} of {loaded.n_total} items"
        out.rows(chosen.to_dict()["items"], "selection", title=title, is_read_back=True)


def _asked_for(bank: "ib.Bank", method: str, target: str | None) -> "ib.Bank":
    """Return the bank that gives a headline score if that is the target."""
    from itembank.bank.bank_views import asked_for

    if target is None:
        return bank
    asked = asked_for(bank, target)
    if (asked is bank) == (method == "auto"):
        what = "v-optimal or optimal-design" if asked is bank else "auto"
        raise click.UsageError(f"--target {shell_word(target)} goes with --method {what}.")
    return asked


def _method(method: str, spec_file: Path | None, target: str | None) -> "SelectionSpec | str":
    if method == "auto":
        refuse_unused(("spec_file", False, "--method NAME, whose choices it has"))
        return method
    kind = METHODS.kinds[method]
    refuse_unused(
        ("target", "target" in {one.name for one in fields(kind)}, "--method auto, v-optimal or optimal-design")
    )
    wanted = {} if target is None else {"target": target}
    return kind(**file_choices(spec_file, kind) | wanted)


def _say_next(selection: "ib.Selection", bank: Path, path: Path) -> None:
    from itembank.selection.recipes import stages_of

    sizes, number = stages_of(selection)
    made, chosen = shell_word(bank), shell_word(path)
    if number < len(sizes):
        note(
            f"This is stage {number} of {len(sizes)}. Run its items. Next, for the {sizes[number]} items of the next "
            f"stage: itembank select {made} --after RESULTS --selection {chosen} -o stage{number + 1}.json"
        )
    else:
        note(f"Next: run these items, then itembank estimate {made} RESULTS --selection {chosen}")


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
    refuse_unused(((*first, "seed"), not after, "a first stage, not with --after"))


@click.group("export", cls=Group)
def export_command() -> None:
    """Write chosen items in the form that another tool reads.

    itembank export ids bank --selection selection.json --form swe-bench
    """


@verb("ids", export_command)
def export_ids_command(
    *,
    bank: options.Bank,
    selection: Annotated[
        Path | None, option("The items.  [default: those that the bank was published with]", type=options.FILE)
    ],
    form: Annotated[str, option("The form that a tool takes.", type=options.ID_FORMS)] = "list",
) -> None:
    """Write the ids of chosen items in the form that a tool takes.

      itembank export ids bank --selection selection.json > items.txt
      itembank export ids bank --selection selection.json --form bfcl > test_case_ids_to_generate.json
      mini-extra swebench --filter "$(itembank export ids bank --selection selection.json --form mini-swe-agent)" ...

    docs/harnesses.md describes each form.
    """
    from itembank.estimation.asked import selection_or_published
    from itembank.harnesses.id_forms import id_text

    loaded = ib.load_bank(bank)
    chosen = selection_or_published(loaded, None if selection is None else ib.Selection.load(selection))
    if chosen is None:
        raise click.UsageError("Say which items: --selection FILE.")
    print_exactly(id_text(form, chosen.item_ids, loaded.responses.items))
