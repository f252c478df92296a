"""Commands that publish, and how they say what is published and what is not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import itembank as ib
from itembank.cli.command import Command, Group, together
from itembank.cli.options import (
    COUNT,
    FILE,
    FOLDER,
    ID_FORMS,
    NEW_FILE,
    bank_argument,
    format_option,
    option,
    refuse_unused,
)
from itembank.cli.render import is_quiet, note, print_exactly, print_rows, progress, warnings_as_notes
from itembank.errors import visible

license_option = option("--license NAME license_name", "License, as the Hub has it: cc-by-4.0.", default="")
column_options = together(
    option(
        "--include-column NAME include_columns",
        "Publish this column of items although it looks like questions or answers, or this column of models although "
        "nothing needs it. Repeatable.",
        many=True,
    ),
    option("--drop-column NAME drop_columns", "A column of items or models to leave out. Repeatable.", many=True),
)
MOST_LISTED = 40


def note_files(files: Mapping[str, int]) -> None:
    """List the files that are published, with their sizes."""
    note(f"Published: {len(files)} files, {sum(files.values()):,} bytes.")
    for name, size in list(files.items())[:MOST_LISTED]:
        note(f"  {size:>12,}  {visible(name)}")
    if len(files) > MOST_LISTED:
        note(f"  and {len(files) - MOST_LISTED} more")


def note_columns(went: Sequence[str], left_out: Sequence[str]) -> None:
    """List the columns of models that are published and those of any table that are not."""
    if went:
        note(f"Columns of models that are published: {visible(', '.join(went))}.")
    if left_out:
        note(f"Columns that are not published: {visible(', '.join(left_out))}.")


@click.command("publish-tiny", cls=Command)
@bank_argument
@option("-n --n-items", "How many items to choose.", COUNT, default=100)
@option("--selection", "Publish these items.  [default: choose them]", FILE)
@option("-o --output", "Folder to publish.", FOLDER, required=True)
@option("--name", "Its name.  [default: that of the folder]", default="")
@license_option
@column_options
@option("--force", "Replace what was published there before.", bool)
@format_option
def publish_tiny_command(
    *,
    bank: Path,
    n_items: int,
    selection: Path | None,
    output: Path,
    name: str,
    license_name: str,
    include_columns: tuple[str, ...],
    drop_columns: tuple[str, ...],
    force: bool,
    output_format: str,
) -> None:
    """Publish a small subset of a benchmark: items, weights and parameters, without past models' responses.

    The folder is a bank for itembank estimate, with the intervals of the whole bank. It also has the items as a table,
    a figure of its precision, and a README. Needs pip install vl-convert-python.

    \b
      itembank publish-tiny bank -n 100 -o tiny
      itembank estimate tiny new-model.csv
      itembank push tiny hf:me/tiny
    """  # noqa: D301
    from itembank.publishing.publishable import file_sizes  # noqa: PLC0415

    refuse_unused(("n_items", selection is None, "items that are chosen here, not with --selection FILE"))
    spec = ib.publishing.TinySpec(name, license_name, include_columns, drop_columns)
    with warnings_as_notes(), progress("publish-tiny") as report:
        tiny = ib.publishing.publish_tiny(
            bank,
            output,
            n_items,
            selection=selection,
            spec=spec,
            overwrite=force,
            progress=report,
        )
    cross_validated = tiny.cross_validated
    row = {
        "bank": tiny.bank.bank_id,
        "items": tiny.selection.n_items,
        "n_total": tiny.bank.n_items,
        "mean_error": float("nan") if cross_validated is None else cross_validated.error,
        "half_width": float("nan") if cross_validated is None else cross_validated.half_width,
        "coverage": float("nan") if cross_validated is None else cross_validated.coverage,
    }
    print_rows([row], output_format, "publish-tiny", title=f"Published in {output}; errors are cross-validated")
    note_files(file_sizes(output))
    note_columns((), tiny.left_out)
    note(f"Next: itembank estimate {output} new-model.csv")


@click.command("push", cls=Command)
@bank_argument
@click.argument("place", metavar="HF:OWNER/NAME")
@option("--private", "Make the repository private, if it is new.", bool)
@option("--no-responses", "Leave out past models and their responses. The card says what needs them.", bool)
@license_option
@column_options
@option("--message", "Message of the commit.", default="Push a bank of itembank")
@format_option
def push_command(
    *, bank: Path, place: str, no_responses: bool, license_name: str, output_format: str, **choices: Any
) -> None:
    """Push a bank to the Hugging Face Hub, with a card that says what is in it and how precise it is.

    Those who may read it can then give hf:owner/name to every command in place of a bank. Needs pip install
    huggingface_hub and hf auth login. Columns of models that nothing needs are not published unless --include-column
    names them.

    \b
      itembank push bank hf:me/bank --license cc-by-4.0
      itembank push bank hf:me/bank --private --no-responses
    """  # noqa: D301
    from itembank.files.hub import quieten  # noqa: PLC0415

    if is_quiet():
        quieten()
    spec = ib.publishing.PushSpec(with_responses=not no_responses, license=license_name, **choices)
    with warnings_as_notes(), progress("push") as report:
        done = ib.publishing.push(bank, place, spec, progress=report)
    row = {"bank": done.bank_id, "name": done.name, "files": len(done.files)}
    print_rows([row], output_format, "push", title=f"Pushed {bank}")
    note_files(done.files)
    note_columns(done.columns, done.left_out)
    note(f"Look at it: {done.address}")


@click.command("pull", cls=Command)
@click.argument("place", metavar="HF:OWNER/NAME[@REVISION]")
@option("-o --output", "Folder of the bank.", FOLDER, required=True)
@option("--force", "Replace the bank that is there.", bool)
@format_option
def pull_command(*, place: str, output: Path, force: bool, output_format: str) -> None:
    """Copy a bank of the Hugging Face Hub into a folder, after its files were checked.

    Every command also takes hf:owner/name in place of a bank: it is downloaded once, and then found without a
    connection. A revision is a branch, a tag or a commit. Needs pip install huggingface_hub.

    \b
      itembank pull hf:me/bank -o bank
      itembank pull hf:me/bank@v1.0 -o bank
    """  # noqa: D301
    from itembank.files.hub import quieten  # noqa: PLC0415

    if is_quiet():
        quieten()
    bank = ib.publishing.pull_bank(place, output, overwrite=force)
    row = {"bank": bank.bank_id, "name": bank.cache.source, "models": bank.n_models, "items": bank.n_items}
    print_rows([row], output_format, "pull", title=f"Bank {output}")


@click.command("ids", cls=Command)
@bank_argument
@option("--selection", "The items.  [default: those that the bank was published with]", FILE)
@option("--form", "The form that a tool takes.", ID_FORMS, default="list")
@option("-o --output FILE", "Write them to this file instead of printing them.", NEW_FILE)
def export_ids_command(*, bank: Path, selection: Path | None, form: str, output: Path | None) -> None:
    """Write the ids of chosen items in the form that a tool takes.

    \b
      itembank export ids bank --selection selection.json > items.txt
      itembank export ids bank --selection selection.json --form bfcl -o test_case_ids_to_generate.json
      mini-extra swebench --filter "$(itembank export ids bank --selection selection.json --form mini-swe-agent)" ...

    docs/harnesses.md describes each form.
    """  # noqa: D301
    from itembank.estimation.asked import selection_or_published  # noqa: PLC0415
    from itembank.files.atomic import check_destination, write_text  # noqa: PLC0415
    from itembank.harnesses.id_forms import id_text  # noqa: PLC0415

    loaded = ib.load_bank(bank)
    chosen = selection_or_published(loaded, None if selection is None else ib.Selection.load(selection))
    if chosen is None:
        raise click.UsageError("Say which items: --selection FILE.")
    text = id_text(form, chosen.item_ids, loaded.responses.items)
    if output is None:
        print_exactly(text)
        return
    check_destination(output)
    write_text(output, text)
    note(f"{chosen.n_items} ids written to {output}.")


@click.group("export", cls=Group)
def export_command() -> None:
    """Write chosen items in the form that another tool reads.

    \b
      itembank export ids bank --selection selection.json --form swe-bench
    """  # noqa: D301 (click's \b keeps the block's lines)


export_command.add_command(export_ids_command)
