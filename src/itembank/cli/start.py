"""`itembank start`: begin a bank without past results, or with few."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.new_results import importing_first
from itembank.cli.options import FILE, format_option, output_option, score_options, seed_option
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.responses.score_names import Across, Within

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.planning.more_models import MoreModels


@click.command("start", cls=Command)
@click.argument("items", type=FILE)
@click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))
@output_option("the bank folder")
@click.option("--force", is_flag=True, help="Replace the bank that stands at -o.")
@click.option(
    "-n", "--n-items", type=click.IntRange(min=1), help="Also choose this many items for the next model: --selection."
)
@click.option(
    "--selection",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the chosen items.",
)
@score_options
@seed_option
@format_option
def command(
    *,
    items: Path,
    responses: tuple[Path, ...],
    output: Path,
    force: bool,
    n_items: int | None,
    selection: Path | None,
    within: Within,
    across: Across,
    seed: int,
    output_format: str,
) -> None:
    """Begin a bank without past results, or with those of a few models.

    ITEMS is a table of the benchmark's items: a column item_id, and where known scenario, subscenario, weight and
    difficulty_prior (in logits, for an average model). RESPONSES are past results, if there are any.

    With fewer than ten past models, items are drawn at random and intervals rest on the draw alone: they hold whatever
    the items are like. From ten models on an item model is fitted. Begin again with more results as they come.

    \b
      itembank start items.csv -o bank -n 100 --selection selection.json
      itembank estimate bank first-model.csv --selection selection.json
      itembank start items.csv first-model-full.csv -o bank --force
    """  # noqa: D301
    from itembank.bank.bank_files import check_bank_destination, save_bank  # noqa: PLC0415
    from itembank.files.atomic import check_destination  # noqa: PLC0415
    from itembank.living.starting import start  # noqa: PLC0415
    from itembank.planning.more_models import plan_models  # noqa: PLC0415
    from itembank.planning.select import select  # noqa: PLC0415
    from itembank.readers.agreement import read_new_responses  # noqa: PLC0415
    from itembank.readers.matrix import read_known  # noqa: PLC0415

    if (n_items is None) != (selection is None):
        raise click.UsageError("Say how many items to choose and where to write them: -n N --selection FILE, or none.")
    check_bank_destination(output, overwrite=force)
    if selection is not None:
        check_destination(selection)
    with warnings_as_notes():
        table, _ = read_known(items, "item_id")
        matrix = None
        if responses:
            with importing_first(responses):
                matrix = read_new_responses(responses, table)
        with progress("start") as report:
            bank = start(table, matrix, within=within, across=across, rng=seed, progress=report)
        chosen = None if n_items is None else select(bank, n_items, rng=seed)
    if chosen is not None and selection is not None:
        chosen.save(selection)  # first: a command that is killed between the two is then simply given again
    save_bank(bank, output, overwrite=force)
    if chosen is not None:
        note(f"{chosen.n_items} of {bank.n_items} items by {chosen.method} written to {selection}.")
    plan = None if bank.calibration.is_fitted else plan_models(bank, min(n_items or 100, bank.n_items))
    print_rows([_summary(bank, plan)], output_format, title=f"Bank {output}")
    if plan is not None:
        _say_what_to_expect(bank, plan)
    if selection is None:
        note(f"Next: itembank select {output} -n {min(100, bank.n_items)} -o selection.json")
    else:
        note(f"Next: run these items, then itembank estimate {output} RESULTS --selection {selection}")


def _summary(bank: "Bank", plan: "MoreModels | None") -> dict[str, Any]:
    """One row on the bank, and how wide intervals will be where they rest on the draw of items."""
    row = {
        "bank": bank.bank_id,
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        "n_scenarios": bank.targets.n_scenarios,
        "method": bank.calibration.method,
    }
    if plan is None:
        return row
    now, *later = plan.rows()
    widths = {f"half_width_{one['n_models']}_models": one["half_width"] for one in later}
    return {**row, "n_items_to_run": plan.n_items, "half_width": now["half_width"], **widths}


def _say_what_to_expect(bank: "Bank", plan: "MoreModels") -> None:
    """Say how wide intervals will be, and what more past models would do."""
    if plan.n_items == bank.n_items:
        note(f"A model that runs all {bank.n_items} items needs no interval; what fewer give: -n N --selection FILE.")
        return
    now, *later = plan.rows()
    note(
        f"Expect {100.0 * plan.level:g} % intervals of +-{100.0 * now['half_width']:.1f} points for the overall score "
        f"from {plan.n_items} items drawn at random."
    )
    how = "this bank's models" if plan.is_measured else "models usually do"
    widths = " or ".join(
        f"+-{100.0 * row['half_width']:.1f} with {row['n_models'] - bank.n_models} more" for row in later
    )
    note(f"More models that run all items narrow this to {widths}, if they answer as much alike as {how}.")
